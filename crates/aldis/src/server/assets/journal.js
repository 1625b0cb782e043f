// The journal of a run, and why. A list may have a hundred thousand rows: only those in sight are made.

import { ask, runPath } from "./api.js";
import { clock, dialog, exact, facts, make, tell } from "./dom.js";

const ROW = 36;
const PAGE = 500;
const SPARE = 12;

function evidence(seen) {
  const label = [seen.what, seen.name, seen.reason, seen.agent && `agent ${seen.agent}`, seen.line && `line ${seen.line}`].filter(Boolean).join(" · ");
  return make("div", null, make("p", { class: "dim" }, label.replaceAll("_", " ")),
    make("p", { class: "words", tabindex: "0" }, seen.quote));
}

// Says why something was decided.
export function why(decision) {
  dialog(decision.summary,
    facts([["when", exact(decision.at)], ["task", decision.task], ["rule", decision.rule], ["because", decision.because],
      ["next", decision.remedy],
      ["counters", Object.entries(decision.counters ?? {}).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ")]]),
    decision.evidence?.length ? [make("h3", null, "Evidence"), decision.evidence.map(evidence)] : null);
}

// The same of a decision of which only the number is known.
export async function whyOf(run, decision) {
  try {
    const { decisions } = await ask("GET", `${runPath(run)}/why?limit=1&after=${decision + 1}`);
    if (decisions.length) why(decisions[0]);
  } catch (error) {
    tell(error.message);
  }
}

export class Journal {
  constructor(run) {
    this.run = run;
    this.rows = [];
    this.list = make("ol", { class: "lines" });
    this.space = make("div", { class: "space" }, this.list);
    this.scroll = make("div", { class: "virtual", tabindex: "0", role: "region", "aria-label": "Journal", on: { scroll: () => this.draw() } }, this.space);
    this.count = make("p", { class: "dim" });
    this.element = make("section", { class: "journal" }, make("h2", null, "Journal"), this.count, this.scroll);
  }

  // What was decided since; at the end of the list older ones are fetched when they come into sight.
  async refresh(count) {
    this.total = count;
    if (this.busy) return;
    this.busy = true;
    try {
      const answer = await ask("GET", `${runPath(this.run)}/why?limit=${this.rows.length ? 100 : PAGE}`);
      const newest = this.rows[0]?.seq ?? -1;
      const fresh = answer.decisions.filter((one) => one.seq > newest);
      if (this.rows.length && fresh.length === answer.decisions.length && fresh.length) this.rows = [];
      if (!this.rows.length) this.next = answer.next;
      this.rows.unshift(...fresh);
      // Whoever reads further down stays where they are.
      if (this.scroll.scrollTop > 0) this.scroll.scrollTop += fresh.length * ROW;
    } finally {
      this.busy = false;
    }
    this.draw();
  }

  async older() {
    if (this.busy || !this.next) return;
    this.busy = true;
    try {
      const answer = await ask("GET", `${runPath(this.run)}/why?limit=${PAGE}&after=${encodeURIComponent(this.next)}`);
      this.rows.push(...answer.decisions);
      this.next = answer.next;
    } catch (error) {
      tell(error.message);
    } finally {
      this.busy = false;
    }
    this.draw();
  }

  draw() {
    const all = Math.max(this.rows.length, this.next ? this.total ?? 0 : 0);
    this.space.style.height = `${all * ROW}px`;
    this.count.textContent = `${this.total ?? all} decisions, the latest first. Each opens its why.`;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - SPARE);
    const last = Math.min(this.rows.length, first + Math.ceil((this.scroll.clientHeight || 480) / ROW) + 2 * SPARE);
    this.list.style.transform = `translateY(${first * ROW}px)`;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.seq : null;
    this.list.replaceChildren(...this.rows.slice(first, last).map((one, at) => make("li", { value: first + at + 1 },
      make("button", { type: "button", class: "linelike", "data-seq": one.seq, on: { click: () => why(one) } },
        make("time", { datetime: one.at, title: exact(one.at) }, clock(one.at)), " ",
        one.task ? make("b", null, `${one.task} `) : null, make("span", { class: "told" }, one.summary), " ", make("span", { class: "rule dim" }, one.rule)))));
    if (focused) this.list.querySelector(`[data-seq="${focused}"]`)?.focus({ preventScroll: true });
    if (last >= this.rows.length - SPARE && this.next) this.older();
  }
}
