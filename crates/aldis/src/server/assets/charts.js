// Pictures: the timeline, curves, sparklines and the graph of a plan. Kinds differ in shape as well as
// in colour, and everything in a picture is said in words beside it.

import { button, clock, draw, make, words } from "./dom.js";

// How much happened in each minute, as bars.
export function sparkline(values) {
  const most = Math.max(1, ...values);
  const total = values.reduce((sum, value) => sum + value, 0);
  const width = 4;
  return draw("svg", { class: "spark", viewBox: `0 0 ${values.length * width} 24`, role: "img",
    preserveAspectRatio: "none", "aria-label": total ? `${total} events in ${values.length} minutes` : "no events lately" },
  values.map((value, at) => draw("rect", { x: at * width, width: width - 1,
    y: value ? 24 - Math.max(3, 24 * value / most) : 23, height: value ? Math.max(3, 24 * value / most) : 1 })));
}

const PLOT = { width: 480, height: 120, left: 44, bottom: 18, top: 8, right: 8 };

// A curve over time, as steps.
export function plot(title, points, { from, to, most, say }) {
  if (!points.length) return null;
  const begin = Date.parse(from);
  const whole = Math.max(1, Date.parse(to) - begin);
  const top = Math.max(most ?? 0, ...points.map((point) => point.value)) || 1;
  const x = (at) => PLOT.left + (PLOT.width - PLOT.left - PLOT.right) * Math.min(1, Math.max(0, (Date.parse(at) - begin) / whole));
  const y = (value) => PLOT.top + (PLOT.height - PLOT.top - PLOT.bottom) * (1 - value / top);
  let path = "";
  for (const [at, point] of points.entries()) {
    path += at === 0 ? `M${x(point.at).toFixed(1)},${y(point.value).toFixed(1)}`
      : `H${x(point.at).toFixed(1)}V${y(point.value).toFixed(1)}`;
  }
  path += `H${x(to).toFixed(1)}`;
  const last = points.at(-1);
  const base = PLOT.height - PLOT.bottom;
  const label = `${title}: ${say(last.value)} at ${clock(last.at)}, from ${say(points[0].value)} at ${clock(points[0].at)}`;
  return make("figure", { class: "plot" },
    make("figcaption", null, make("span", null, title), make("b", null, say(last.value))),
    draw("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: "img", "aria-label": label },
      [0, 0.5, 1].map((part) => [
        draw("path", { class: "grid", d: `M${PLOT.left},${y(top * part)}H${PLOT.width - PLOT.right}` }),
        draw("text", { x: PLOT.left - 6, y: y(top * part) + 4, "text-anchor": "end" }, say(top * part))]),
      draw("path", { class: "area", d: `${path}V${base}H${x(points[0].at).toFixed(1)}Z` }),
      draw("path", { class: "curve", d: path }),
      draw("circle", { class: "last", cx: x(last.at), cy: y(last.value), r: 3.5 }),
      draw("text", { x: PLOT.left, y: PLOT.height - 4 }, clock(from, false)),
      draw("text", { x: PLOT.width - PLOT.right, y: PLOT.height - 4, "text-anchor": "end" }, clock(to, false))));
}

const ROW = 30;
const BARS = { work: 14, check: 8, wait: 3 };
const KINDS = { work: "work", check: "check", wait: "waiting", good: "held, complete", bad: "refused, failed", note: "question, notice" };
const PATHS = { good: "l4,4 l7,-9", bad: "l9,9 m0,-9 l-9,9", note: "l5,-5 l5,5 l-5,5 z" };
const OFFSETS = { good: [-5, 0], bad: [-4.5, -4.5], note: [-5, 0] };
const STEPS = [1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const SHORTEST = 1000;
const HINT = "Every part opens its why. Zoom with + and −, or the wheel with Ctrl.";
const EDGE = 48;
// How wide a letter of a label is, about.
const LETTER = 6.5;

const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

function symbol(kind, x, y, scale = 1) {
  const [dx, dy] = OFFSETS[kind];
  const d = `M${(x + dx * scale).toFixed(1)},${(y + dy * scale).toFixed(1)} ${PATHS[kind]}`;
  return [draw("path", { class: "halo", d }), draw("path", { class: "line", d })];
}

// What happened when, in rows above one axis of time: zoomed with the wheel, the buttons or the keys,
// moved by dragging or with the arrows.
export class Timeline {
  constructor(open) {
    this.open = open;
    this.svg = draw("svg", { class: "timeline", role: "group", "aria-label": "Timeline" });
    this.hint = make("p", { class: "dim hint", role: "status" }, HINT);
    const zoom = (label, name, factor) => button(label, () => this.zoom(factor), { "aria-label": name });
    const legend = make("ul", { class: "legend" }, Object.entries(KINDS).map(([kind, name]) => make("li", null,
      draw("svg", { viewBox: "0 0 20 16", width: "20", height: "16", "aria-hidden": "true" }, BARS[kind]
        ? draw("rect", { class: `part ${kind}`, x: 1, width: 18, y: 8 - BARS[kind] / 2, height: BARS[kind], rx: 1 })
        : draw("g", { class: `part ${kind}` }, symbol(kind, 10, 8))), ` ${name}`)));
    this.element = make("div", { class: "chart" },
      make("div", { class: "row tools" }, legend, make("div", { class: "row" }, zoom("−", "Zoom out", 2), zoom("+", "Zoom in", 0.5),
        button("All", () => { this.view = null; this.draw(); }, { "aria-label": "Show all of it" }))),
      this.svg, this.hint);
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, this.timeAt(event.offsetX));
    }, { passive: false });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("pointerdown", (event) => this.drag(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show(timeline) {
    const print = JSON.stringify([timeline.lanes, timeline.from]);
    this.data = timeline;
    if (print === this.print && this.view) return;
    this.print = print;
    this.draw();
  }

  get range() {
    const [from, to] = [Date.parse(this.data.from), Math.max(Date.parse(this.data.to), Date.parse(this.data.from) + SHORTEST)];
    return this.view ?? [from, to];
  }

  timeAt(x) {
    const [from, to] = this.range;
    return from + (to - from) * Math.min(1, Math.max(0, (x - this.labels) / (this.width - this.labels - 12)));
  }

  zoom(factor, around) {
    const [from, to] = this.range;
    const middle = around ?? (from + to) / 2;
    const whole = [Date.parse(this.data.from), Math.max(Date.parse(this.data.to), Date.parse(this.data.from) + SHORTEST)];
    const length = Math.max(SHORTEST, (to - from) * factor);
    if (length >= whole[1] - whole[0]) this.view = null;
    else {
      const begin = middle - (middle - from) * (length / (to - from));
      this.view = [begin, begin + length];
    }
    this.draw();
  }

  move(part) {
    if (!this.view) return;
    const by = (this.view[1] - this.view[0]) * part;
    this.view = this.view.map((at) => at + by);
    this.draw();
  }

  drag(event) {
    if (!this.view || event.target.closest(".part")) return;
    const [x, view] = [event.clientX, this.view];
    const moved = (later) => {
      const by = (x - later.clientX) / (this.width - this.labels) * (view[1] - view[0]);
      this.view = view.map((at) => at + by);
      this.draw();
    };
    const end = () => { removeEventListener("pointermove", moved); removeEventListener("pointerup", end); };
    addEventListener("pointermove", moved);
    addEventListener("pointerup", end);
  }

  key(event) {
    const parts = [...this.svg.querySelectorAll(".part")];
    const at = parts.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: parts.length - 1 }[event.key];
    if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 0.5 : 2);
    else if (event.key === "Enter" && at >= 0) parts[at].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    else if (to !== undefined && parts[to]) {
      parts.forEach((part, place) => part.setAttribute("tabindex", place === to ? "0" : "-1"));
      parts[to].focus();
      this.at = parts[to].dataset.part;
    } else return;
    event.preventDefault();
  }

  draw() {
    if (!this.data) return;
    this.width = Math.max(280, this.element.clientWidth);
    this.labels = Math.min(170, Math.round(this.width * 0.26));
    const lanes = this.data.lanes;
    const height = ROW * Math.max(1, lanes.length) + 34;
    const [from, to] = this.range;
    const x = (moment) => this.labels + (this.width - this.labels - 12) * ((Date.parse(moment) - from) / (to - from));
    const focused = this.svg.contains(document.activeElement) ? document.activeElement.dataset.part : null;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("height", height);
    const clip = draw("clipPath", { id: "clip" }, draw("rect", { x: this.labels - 6, y: 0, width: this.width - this.labels, height }));
    const parts = draw("g", { "clip-path": "url(#clip)" });
    for (const [row, lane] of lanes.entries()) {
      const middle = ROW * (row + 0.5) + 4;
      for (const part of lane.spans) if (Date.parse(part.to) >= from && Date.parse(part.from) <= to) parts.append(this.bar(part, lane, x, middle));
      for (const part of lane.marks) if (Date.parse(part.at) >= from && Date.parse(part.at) <= to) parts.append(this.moment(part, lane, x, middle));
    }
    const labels = lanes.map((lane, row) => draw("text", { x: this.labels - 12, y: ROW * (row + 0.5) + 8, "text-anchor": "end", class: "label" },
      cut(lane.label, Math.floor((this.labels - 14) / LETTER)), draw("title", null, lane.label)));
    this.svg.replaceChildren(clip, ...this.axis(from, to, height), ...labels, parts);
    const all = [...parts.children];
    const same = all.find((one) => one.dataset.part === (focused ?? this.at)) ?? all[0];
    same?.setAttribute("tabindex", "0");
    if (focused) same?.focus();
  }

  axis(from, to, height) {
    const seconds = (to - from) / 1000;
    const step = STEPS.find((one) => seconds / one <= Math.max(3, this.width / 110)) ?? 86400 * Math.ceil(seconds / 86400 / 8);
    const lines = [];
    for (let at = Math.ceil(from / 1000 / step) * step * 1000; at <= to; at += step * 1000) {
      const place = this.labels + (this.width - this.labels - 12) * ((at - from) / (to - from));
      lines.push(draw("path", { class: "grid", d: `M${place.toFixed(1)},0V${height - 24}` }),
        draw("text", { x: place.toFixed(1), y: height - 8, "text-anchor": place > this.width - EDGE ? "end" : "middle" },
          step >= 86400 ? new Date(at).toLocaleDateString() : clock(at, step < 60)));
    }
    return lines;
  }

  part(group, title, decision) {
    group.append(draw("title", null, title));
    group.setAttribute("aria-label", title);
    group.setAttribute("role", "button");
    group.setAttribute("tabindex", "-1");
    group.addEventListener("focus", () => { this.hint.textContent = title; });
    group.addEventListener("pointerenter", () => { this.hint.textContent = title; });
    group.addEventListener("click", () => { if (decision) this.open(decision); });
    return group;
  }

  bar(part, lane, x, middle) {
    const [begin, end] = [x(part.from), x(part.to)];
    const thick = BARS[part.kind] ?? 3;
    const group = draw("g", { class: `part ${part.kind}`, "data-part": `${lane.task ?? ""}${part.from}${part.kind}` },
      // Something thin must still be hit by a finger.
      draw("rect", { class: "hit", x: begin, width: Math.max(6, end - begin), y: middle - 12, height: 24 }),
      draw("rect", { x: begin, width: Math.max(2, end - begin), y: middle - thick / 2, height: thick, rx: Math.min(3, thick / 2) }));
    return this.part(group, `${clock(part.from)} to ${clock(part.to)}, ${KINDS[part.kind]}: ${part.title}`, part.decision);
  }

  moment(part, lane, x, middle) {
    const place = x(part.at);
    const group = draw("g", { class: `part ${part.kind}`, "data-part": `${lane.task ?? ""}${part.at}${part.decision}` },
      draw("rect", { class: "hit", x: place - 9, width: 18, y: middle - 12, height: 24 }), symbol(part.kind, place, middle));
    return this.part(group, `${clock(part.at)} ${KINDS[part.kind]}: ${part.title}`, part.decision);
  }
}

const NODE = { letters: 26, lines: 2, width: 232, height: 74, gapX: 56, gapY: 14 };
const TASK_MARKS = { complete: "✔", failed: "✘", "awaiting-guidance": "?", blocked: "!", pending: "○" };

// A title in lines; what is too long for them is cut.
function wrapped(text) {
  const lines = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && (lines.length === NODE.lines || last.length + word.length < NODE.letters)) lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines.map((line) => cut(line, NODE.letters));
}

// The graph of a plan: from left to right, whoever waits stands right of what it waits for. The critical
// path is drawn thick.
export function graph(tasks, open) {
  const columns = [];
  for (const task of tasks) (columns[task.level] ??= []).push(task);
  const place = new Map();
  for (const [level, column] of columns.entries()) {
    for (const [row, task] of (column ?? []).entries()) {
      place.set(task.task, [16 + level * (NODE.width + NODE.gapX), 16 + row * (NODE.height + NODE.gapY)]);
    }
  }
  const width = 32 + columns.length * (NODE.width + NODE.gapX) - NODE.gapX;
  const height = 32 + Math.max(...columns.map((column) => column?.length ?? 0)) * (NODE.height + NODE.gapY) - NODE.gapY;
  const critical = new Set(tasks.filter((task) => task.critical).map((task) => task.task));
  const edges = tasks.flatMap((task) => task.needs.filter((need) => place.has(need)).map((need) => {
    const [[x1, y1], [x2, y2]] = [place.get(need), place.get(task.task)];
    const [from, to] = [[x1 + NODE.width, y1 + NODE.height / 2], [x2, y2 + NODE.height / 2]];
    const bend = Math.max(24, (to[0] - from[0]) / 2);
    const both = critical.has(need) && critical.has(task.task);
    return draw("path", { class: both ? "edge critical" : "edge", d: `M${from}C${from[0] + bend},${from[1]} ${to[0] - bend},${to[1]} ${to}` });
  }));
  const nodes = tasks.map((task) => {
    const [x, y] = place.get(task.task);
    const title = task.title || task.task;
    const findings = task.findings.filter((one) => one.status === "open").length;
    const note = [words(task.status), task.round ? `round ${task.round}` : null, findings ? `${findings} open` : null].filter(Boolean).join(" · ");
    const lines = wrapped(title);
    const top = y + (lines.length > 1 ? 23 : 31);
    const node = draw("g", { class: `node ${task.status}${task.critical ? " critical" : ""}`, role: "button", tabindex: "0",
      "data-task": task.task, "aria-label": `${lines.join(" ")}: ${note}` },
    draw("rect", { x, y, width: NODE.width, height: NODE.height, rx: 8 }),
    lines.map((line, at) => draw("text", { x: x + 12, y: top + 17 * at, class: "title" }, `${line} `)),
    draw("text", { x: x + 12, y: top + 17 * lines.length + 3, class: "note" }, `${TASK_MARKS[task.status] ?? "●"} ${note}`),
    draw("title", null, `${title} (${task.task}): ${note}`));
    node.addEventListener("click", () => open(task));
    node.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(task); } });
    return node;
  });
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph of the tasks" },
    draw("svg", { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Tasks" }, edges, nodes));
}
