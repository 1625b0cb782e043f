// Makes elements, keeps lists up to date, and says times. Whatever an agent said becomes a text node,
// never markup: there is no innerHTML here, and the page's policy forbids it.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

// Makes an element with attributes and children; strings become text nodes.
export const make = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

// The same for pictures.
export const draw = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const button = (label, handler, attributes) =>
  make("button", { type: "button", ...attributes, on: { click: handler } }, label);

const SURE_FOR = 5000;

// A button that must be pressed twice: what it does cannot be undone.
export function sure(label, handler, attributes) {
  const element = button(label, () => {
    if (element.dataset.sure) return handler();
    element.dataset.sure = "yes";
    element.textContent = `${label}: press again to confirm`;
    setTimeout(() => { delete element.dataset.sure; element.textContent = label; }, SURE_FOR);
  }, { ...attributes, "data-label": label });
  return element;
}

// Says what happened, to whoever reads and whoever listens.
export function tell(text) {
  byId("message").textContent = text;
}

// How something is meant, by its shape and its name as well as by its colour.
const MARKS = { good: "✔", bad: "✘", warn: "!", neutral: "●" };
export const mark = (tone, label) => make("span", { class: `mark ${tone}`, role: label ? "img" : null,
  "aria-label": label, "aria-hidden": label ? null : "true" }, MARKS[tone] ?? "●");

// A stable code as words.
export const words = (code) => code.replaceAll("_", " ").replaceAll("-", " ").toLowerCase();

export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${(seconds / 3600).toFixed(seconds < 36000 ? 1 : 0)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// How long something took that may have been over at once.
export const brief = (milliseconds) => milliseconds < 1000 ? `${milliseconds} ms` : span(milliseconds / 1000);

const ago = (moment) => `${span(Math.max(0, (Date.now() - Date.parse(moment)) / 1000))} ago`;

// A time of day; of another day with its date.
export function clock(moment, withSeconds = true) {
  const at = new Date(moment);
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: withSeconds ? "2-digit" : undefined, hour12: false });
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? time : `${at.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

export const exact = (moment) => new Date(moment).toLocaleString([], { hour12: false, timeZoneName: "short" });

// A time as seen from now; what it is exactly is there for whoever points at it.
export const since = (moment) => make("time", { datetime: moment, title: exact(moment), "data-since": moment }, ago(moment));

export const lasting = (from) => make("time", { datetime: from, title: exact(from), "data-lasting": from }, lasted(from));

const lasted = (from) => span(Math.max(0, (Date.now() - Date.parse(from)) / 1000));

export function left(moment) {
  const seconds = Math.ceil((Date.parse(moment) - Date.now()) / 1000);
  const text = (value) => value < 90 ? `${value} s` : `${Math.floor(value / 60)} min ${value % 60} s`;
  return seconds >= 0 ? `${text(seconds)} left` : `${text(-seconds)} over`;
}

// How long something still lasts.
export const deadline = (moment) => make("span", { "data-deadline": moment, title: exact(moment) }, left(moment));

export const dollars = (micro) => `$${(micro / 1e6).toFixed(micro < 1e7 ? 2 : 0)}`;

export const short = (count) => count < 1e4 ? String(count) : count < 1e6 ? `${Math.round(count / 1e3)}k` : `${(count / 1e6).toFixed(1)}M`;

export const cost = (run) => run.micro_dollars ? dollars(run.micro_dollars)
  : run.tokens ? `${short(run.tokens)} tokens` : null;

setInterval(() => {
  for (const one of document.querySelectorAll("[data-since]")) one.textContent = ago(one.dataset.since);
  for (const one of document.querySelectorAll("[data-lasting]")) one.textContent = lasted(one.dataset.lasting);
  for (const one of document.querySelectorAll("[data-deadline]")) one.textContent = left(one.dataset.deadline);
}, 1000);

// The last part of a path, for people.
export const project = (path) => path ? path.replace(/\/+$/, "").split("/").pop() : "no project";

// Says which control this is, also after it was made anew.
const keyOf = (element) => element.dataset.label ?? element.getAttribute("aria-label") ?? element.textContent;

// Keeps what is typed, open, scrolled and focused when an element is replaced by another one.
function adopt(before, after) {
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const open = new Set(all(before, "details[open] > summary").map(keyOf));
  for (const one of all(after, "details > summary")) if (open.has(keyOf(one))) one.parentElement.open = true;
  const typed = new Map(all(before, "input, textarea").filter((one) => one.value).map((one) => [keyOf(one), one.value]));
  for (const one of all(after, "input, textarea")) one.value = typed.get(keyOf(one)) ?? one.value;
  const active = before.contains(document.activeElement) ? document.activeElement : null;
  const same = active && (before === active ? after
    : all(after, "a, button, input, textarea, summary").find((one) => keyOf(one) === keyOf(active)));
  before.replaceWith(after);
  same?.focus({ preventScroll: true });
}

// Brings the children of a place up to date: what has not changed stays as it is, under the pointer, too.
// `rows` are pairs of a key and what the child is made of.
export function sync(place, rows, build) {
  const known = new Map([...place.children].map((child) => [child.dataset.key, child]));
  const wanted = new Set(rows.map(([key]) => key));
  for (const [key, child] of known) if (!wanted.has(key)) child.remove();
  let before = null;
  for (const [key, data] of rows) {
    const print = JSON.stringify(data);
    let child = known.get(key);
    const input = child?.contains(document.activeElement) && document.activeElement.matches("input, textarea") && document.activeElement.value;
    if (child && child.print !== print && !input) {
      const fresh = build(data, key);
      adopt(child, fresh);
      child = fresh;
    } else if (!child) {
      child = build(data, key);
    }
    child.dataset.key = key;
    if (!input) child.print = print;
    const next = before ? before.nextElementSibling : place.firstElementChild;
    if (next !== child) place.insertBefore(child, next);
    before = child;
  }
}

// Our own sentences have commands between backticks; what others said stays as it is.
const OWN = ["next", "to allow it"];
const ticked = (text) => text.split("`").map((part, at) => at % 2 ? make("code", null, part) : part);

// A label and what belongs to it.
const fact = (name, value) => make("div", null, make("dt", null, name),
  make("dd", null, OWN.includes(name) && typeof value === "string" ? ticked(value) : value));

// Labels and what belongs to them.
export const facts = (rows, attributes) => make("dl", attributes, rows
  .filter(([, value]) => value !== null && value !== undefined && value !== "")
  .map(([name, value]) => fact(name, value)));

// A window above the page, closed by Escape.
export function dialog(title, ...children) {
  const place = byId("dialog");
  place.replaceChildren(
    make("header", null, make("h2", { id: "dialog-title" }, title),
      button("Close", () => place.close(), { class: "quiet" })),
    make("div", { class: "body", tabindex: "0", role: "region", "aria-label": "Details" }, ...children));
  if (!place.open) place.showModal();
}
