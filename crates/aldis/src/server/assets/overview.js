// The overview: what needs a person, what is running, what ended and how.

import { ask } from "./api.js";
import { item } from "./actions.js";
import { sparkline } from "./charts.js";
import { button, byId, cost, deadline, lasting, make, mark, project, since, sync, span, words } from "./dom.js";

const KINDS = { run: "agent", delivery: "plan", phases: "session", turns: "channel" };
const LIMIT = 60;
const NEEDS_MAX = 6;

const link = (run) => make("a", { href: `/runs/${encodeURIComponent(run.run)}`, class: "title" },
  run.machine === "turns" ? `# ${run.title}` : run.title);

const where = (run) => [run.host, KINDS[run.machine], project(run.project), run.run].filter(Boolean).join(" · ");

export function bar(percent) {
  if (percent === null || percent === undefined) return null;
  return make("span", { class: "bar-line" },
    make("progress", { max: "100", value: String(percent), "aria-label": `progress: ${percent} %` }), ` ${percent} %`);
}

// How many tasks are where; how many are complete is said beside it.
const tally = (tasks) => Object.entries(tasks).filter(([state]) => state !== "complete")
  .map(([state, count]) => `${count} ${words(state)}`).join(", ");

function running(run) {
  return make("li", { class: `card run ${run.tone}`, "data-item": "", "data-run": run.run, tabindex: "-1", "aria-label": run.title },
    make("div", { class: "what" },
      make("h3", null, mark(run.tone), " ", link(run)),
      make("p", null, make("span", { class: run.tone }, run.status), run.detail,
        run.deadline ? [", ", deadline(run.deadline)] : null),
      make("p", { class: "dim" }, where(run))),
    make("div", { class: "how" }, sparkline(run.activity), bar(run.progress), make("p", { class: "dim" }, tally(run.tasks))),
    make("dl", { class: "figures" },
      make("div", null, make("dt", null, "cost"), make("dd", null, cost(run) ?? "–")),
      make("div", null, make("dt", null, "elapsed"), make("dd", null, lasting(run.began))),
      make("div", null, make("dt", null, "active"), make("dd", null, since(run.last_activity)))));
}

function ended(run) {
  const took = run.ended ? span((Date.parse(run.ended) - Date.parse(run.began)) / 1000) : null;
  return make("li", { class: `ended ${run.tone}`, "data-item": "", "data-run": run.run, tabindex: "-1", "aria-label": run.title },
    make("span", { class: "what" }, mark(run.tone), " ", link(run)),
    make("span", { class: run.tone }, run.status, make("span", { class: "dim" }, run.detail)),
    make("span", { class: "dim where" }, where(run)),
    make("span", { class: "dim number" }, [cost(run), took].filter(Boolean).join(" · ")),
    make("span", { class: "dim number" }, since(run.ended ?? run.began)));
}

export class Overview {
  constructor(query) {
    this.query = new URLSearchParams(query);
    this.more = [];
    const choose = (name, label, options) => {
      const select = make("select", { "aria-label": label, on: { change: () => this.filter(name, select.value) } },
        make("option", { value: "" }, label), options.map(([value, text]) => make("option", { value }, text)));
      select.value = this.query.get(name) ?? "";
      return select;
    };
    this.search = make("input", { type: "search", "aria-label": "Search", placeholder: "Search runs", value: this.query.get("q") ?? "" });
    let timer;
    this.search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => this.filter("q", this.search.value), 250); });
    this.projects = choose("project", "All projects", []);
    this.hosts = choose("host", "All hosts", []);
    this.needs = make("div", { class: "items" });
    this.running = make("ul", { class: "cards" });
    this.ended = make("ul", { class: "rows" });
    this.titles = { needs: make("h2", { id: "needs-title" }), running: make("h2", { id: "running-title" }), ended: make("h2", { id: "ended-title" }, "Ended") };
    this.moreButton = button("Show more", () => this.page(), { hidden: true });
    this.element = make("div", { class: "overview" },
      make("h1", { class: "sr" }, "Runs"),
      make("section", { "aria-labelledby": "needs-title", id: "needs" }, this.titles.needs, this.needs),
      make("form", { class: "row filters", role: "search", on: { submit: (event) => event.preventDefault() } }, this.search, this.projects, this.hosts,
        choose("machine", "All kinds", Object.entries(KINDS)),
        choose("state", "All states", [["needs_you", "needs you"], ["running", "running"], ["done", "done"], ["failed", "ended badly"]])),
      make("section", { "aria-labelledby": "running-title", id: "running" }, this.titles.running, this.running),
      make("section", { "aria-labelledby": "ended-title", id: "ended" }, this.titles.ended, this.ended, this.moreButton));
    this.title = "Runs";
  }

  filter(name, value) {
    if (value) this.query.set(name, value); else this.query.delete(name);
    history.replaceState(null, "", `/${this.query.size ? `?${this.query}` : ""}`);
    this.more = [];
    return this.refresh();
  }

  path(after) {
    const query = new URLSearchParams(this.query);
    query.set("limit", LIMIT);
    if (after) query.set("after", after);
    return `/v1/overview?${query}`;
  }

  async refresh() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const answer = await ask("GET", this.path());
    // What was asked for later counts.
    if (turn === this.turn) this.show(answer);
  }

  show(answer) {
    this.answer = answer;
    const count = answer.needs.length;
    this.titles.needs.textContent = count ? `Needs you (${count})` : "Needs you";
    sync(this.needs, count ? answer.needs.slice(0, NEEDS_MAX).map((one) => [`${one.run}/${one.id}`, one]) : [["none", {}]],
      (one, key) => key === "none" ? make("p", { class: "empty" }, mark("good"), " Nothing needs you.") : item(one, { heading: "h3" }));
    if (count > NEEDS_MAX) this.needs.append(make("p", { "data-key": "all" }, make("a", { href: "/inbox" }, `All ${count} in the inbox`)));
    const shown = answer.active.length;
    this.titles.running.textContent = answer.active_count ? `Running (${answer.active_count})` : "Running";
    const rows = answer.active.map((run) => [run.run, run]);
    if (!shown) rows.push(["none", {}]);
    if (shown < answer.active_count) rows.push(["rest", answer.active_count - shown]);
    sync(this.running, rows, (run, key) => key === "none" ? make("li", { class: "empty" }, this.query.size ? "No running run is like that." : ["Nothing is running. Start something: ", make("code", null, "aldis run"), ", ", make("code", null, "aldis deliver"), " or ", make("code", null, "aldis demo"), "."])
      : key === "rest" ? make("li", { class: "empty" }, `${run} more are running: narrow the list by a filter.`) : running(run));
    this.list();
    for (const [select, values, say] of [[this.projects, answer.projects, project], [this.hosts, answer.hosts, (one) => one]]) {
      const known = new Set([...select.options].map((option) => option.value));
      for (const value of values) if (!known.has(value)) select.append(make("option", { value }, say(value)));
      select.value = this.query.get(select === this.projects ? "project" : "host") ?? "";
    }
    document.dispatchEvent(new CustomEvent("overview", { detail: answer }));
  }

  list() {
    const all = [...this.answer.ended, ...this.more];
    const rows = [...new Map(all.map((run) => [run.run, run]))];
    if (!rows.length) rows.push(["none", {}]);
    sync(this.ended, rows, (run, key) => key === "none" ? make("li", { class: "empty" }, this.query.size ? "No run that ended is like that." : "Nothing has ended yet.") : ended(run));
    this.moreButton.hidden = !(this.more.length ? this.next : this.answer.next);
  }

  async page() {
    const answer = await ask("GET", this.path(this.more.length ? this.next : this.answer.next));
    this.more.push(...answer.ended);
    this.next = answer.next;
    this.list();
  }
}

// The inbox: all that needs a person, and nothing else.
export class Inbox {
  constructor() {
    this.list = make("div", { class: "items" });
    this.element = make("div", { class: "narrow" }, make("h1", null, "Inbox"), this.list);
    this.title = "Inbox";
  }

  async refresh() {
    const answer = await ask("GET", "/v1/overview?limit=1");
    sync(this.list, answer.needs.length ? answer.needs.map((one) => [`${one.run}/${one.id}`, one]) : [["none", {}]],
      (one, key) => key === "none" ? make("p", { class: "empty" }, mark("good"), " Nothing needs you.") : item(one));
    document.dispatchEvent(new CustomEvent("overview", { detail: answer }));
    byId("main").dataset.needs = String(answer.needs.length);
  }
}
