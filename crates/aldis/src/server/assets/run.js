// The page of a run: how it is, what happened, what its agents write, and why.

import { ask, runPath, save, text } from "./api.js";
import { change, command, item, line } from "./actions.js";
import { Timeline, graph, plot, sparkline } from "./charts.js";
import { brief, button, clock, cost, deadline, dialog, dollars, exact, facts, lasting, make, mark, project, short, since, span, sure, sync, tell, words } from "./dom.js";
import { Journal, whyOf } from "./journal.js";
import { Output } from "./output.js";
import { bar } from "./overview.js";

const TABS = { story: "Story", output: "Output", journal: "Journal" };
const FATES = { held: ["good", "held"], refused: ["bad", "did not hold"], open: ["neutral", "not judged yet"] };
const ACCEPTANCE = { accepted: ["good", "accepted"], refused: ["bad", "refused"], asks: ["warn", "needs a human"] };
const CHECKS = { passed: "good", failed: "bad", timed_out: "bad", not_started: "bad" };
const WEIGHTS = { refuses: "bad", asks: "warn", named: "neutral" };
const COMMIT = 10;
// Nobody supervises the run, so nobody could pause it or pass something on.
const GONE = "unsupervised";
// What the figures of the page say already.
const KNOWN = ["activity", "started"];
const BY_STATE = ["awaiting-guidance", "implementing", "awaiting-review", "awaiting-audit", "expanding", "blocked", "failed", "pending", "complete"];
const STATE_TONES = { complete: "good", failed: "bad", "awaiting-guidance": "warn", blocked: "warn" };

// A part of the page that is there only if it has something to say.
class Part {
  constructor(title, attributes) {
    this.body = make("div");
    this.element = make("section", { class: "panel", ...attributes }, make("h2", null, title), this.body);
    this.element.hidden = true;
  }

  show(data, build) {
    const print = JSON.stringify(data);
    this.element.hidden = !data || data.length === 0;
    if (print === this.print || this.element.hidden) return;
    this.print = print;
    const open = new Set([...this.body.querySelectorAll("details[open]")].map((one) => one.dataset.key));
    this.body.replaceChildren(...[build(data)].flat());
    for (const one of this.body.querySelectorAll("details")) if (open.has(one.dataset.key)) one.open = true;
  }
}

export class RunPage {
  constructor(run, tab) {
    this.run = run;
    this.tab = TABS[tab] ? tab : "story";
    this.title = run;
    this.head = make("div", { class: "head" });
    this.controls = make("div", { class: "row actions" });
    this.tell = make("details", { class: "tell" }, make("summary", null, "Say something to the agents"),
      line("Your message", (said) => change(`${runPath(run)}/tell`, { text: said })));
    this.figures = make("div");
    this.tabs = make("nav", { class: "tabs", "aria-label": "Parts of the run" });
    this.needs = make("div", { class: "items" });
    this.timeline = new Timeline((decision) => whyOf(run, decision));
    this.parts = {
      plan: new Part("Plan", { id: "plan" }),
      channel: new Part("Conversation", { id: "conversation" }),
      timeline: new Part("Timeline"),
      plots: new Part("Progress and cost"),
      claims: new Part("Claims, and what became of each"),
      proof: new Part("Proof"),
      questions: new Part("Questions"),
      waits: new Part("Waits"),
      facts: new Part("Details"),
    };
    const say = line("Say something to the channel", (said) => change(`/v1/channels/${encodeURIComponent(run)}/human`, { text: said }));
    this.parts.channel.element.append(say);
    const { plan, channel, timeline, ...others } = this.parts;
    this.story = make("div", null, plan.element, channel.element, timeline.element,
      make("div", { class: "flow" }, Object.values(others).map((part) => part.element)));
    this.pane = make("div", { class: "pane" });
    this.element = make("div", { class: "run-page" }, this.head, this.needs, this.controls, this.tell, this.figures, this.tabs, this.pane);
    this.open();
  }

  // What is said in a channel is its story.
  links(card, needs) {
    const tabs = Object.entries(TABS).filter(([name]) => name !== "output" || card.machine !== "turns");
    return make("div", null, tabs.map(([name, label]) =>
      make("a", { href: `/runs/${encodeURIComponent(this.run)}${name === "story" ? "" : `?tab=${name}`}`,
        "aria-current": name === this.tab ? "page" : null }, label,
      name === "story" && needs && this.tab !== name ? [" ", make("span", { class: "count", title: "needs you" }, needs)] : null)));
  }

  open() {
    if (this.tab === "story") this.pane.replaceChildren(this.story);
    if (this.tab === "journal") {
      this.journal = new Journal(this.run);
      this.pane.replaceChildren(this.journal.element);
    }
  }

  close() {
    this.output?.close();
  }

  async refresh() {
    const answer = await ask("GET", `${runPath(this.run)}/details`);
    const { card, needs, story, receipts } = answer;
    this.title = card.title;
    this.waiting = needs.length;
    sync(this.head, [["head", [card.title, card.status, card.detail, card.tone, card.host, card.machine]]], () => this.heading(card));
    sync(this.controls, [["controls", [card.active, card.status === GONE, card.status.startsWith("paused"), card.machine]]], () => this.verbs(card));
    this.tell.hidden = this.tab === "journal" || !card.active || card.machine === "turns" || card.status === GONE;
    // Beside the story these would push down what one came for.
    this.figures.replaceChildren(this.tab === "story" ? this.kpis(card) : "");
    sync(this.needs, this.tab === "story" ? needs.map((one) => [one.id, one]) : [], (one) => item(one, { own: true }));
    sync(this.tabs, [["tabs", [card.machine, this.tab === "story" ? 0 : needs.length]]], () => this.links(card, needs.length));
    if (this.tab === "output" && !this.output) {
      this.output = new Output(this.run, card.active);
      this.pane.replaceChildren(this.output.element);
    }
    if (this.tab === "story") this.tale(card, story, receipts);
    if (this.journal) await this.journal.refresh(story.decisions);
  }

  heading(card) {
    return make("div", null,
      make("p", { class: "dim" }, make("a", { href: "/" }, "Runs"), " / ", [card.host, project(card.project)].filter(Boolean).join(" · "), " · ",
        make("code", null, card.run)),
      make("h1", null, card.machine === "turns" ? `# ${card.title}` : card.title),
      make("p", { class: "status" }, mark(card.tone), " ", make("span", { class: card.tone }, card.status), card.detail));
  }

  verbs(card) {
    const go = (verb) => () => change(`${runPath(this.run)}/${verb}`, {});
    const paused = card.status.startsWith("paused");
    const report = (form, ending, type) => button(`Save report (${ending})`, async () => {
      try {
        save(`${this.run}.${ending}`, await text(`${runPath(this.run)}/report?form=${form}`), type);
      } catch (error) {
        tell(error.message);
      }
    });
    return make("div", { class: "row" },
      card.active ? [card.status === GONE ? null : paused ? button("Resume", go("resume"), { class: "main" }) : button("Pause", go("pause")),
        sure(card.machine === "turns" ? "Close" : "Abort", go("abort"))] : null,
      make("details", { class: "share" }, make("summary", null, "Share"),
        make("div", { class: "row" }, report("html", "html", "text/html"), report("markdown", "md", "text/markdown"))));
  }

  kpis(card) {
    const took = card.ended ? span((Date.parse(card.ended) - Date.parse(card.began)) / 1000) : lasting(card.began);
    return make("dl", { class: "kpis" }, [
      ["progress", card.state === "done" ? null : bar(card.progress)], ["cost", cost(card)], ["tokens", card.tokens ? short(card.tokens) : null],
      [card.active ? "elapsed" : "took", took], ["phase", card.phase],
      [card.active ? "active" : "ended", since(card.ended ?? card.last_activity)],
      ["turn", card.deadline ? deadline(card.deadline) : null],
      ["last half hour", card.active ? sparkline(card.activity) : null],
    ].filter(([, value]) => value !== null).map(([name, value]) => make("div", null, make("dt", null, name), make("dd", null, value))));
  }

  tale(card, story, receipts) {
    const { parts } = this;
    const lanes = story.timeline.lanes.some((lane) => lane.spans.length || lane.marks.length);
    parts.timeline.show(lanes ? ["timeline", story.left_out] : null, () => [this.timeline.element,
      story.left_out ? make("p", { class: "dim" }, `${story.left_out} parts are too small to be shown; the journal has them.`) : ""]);
    if (lanes) this.timeline.show(story.timeline);
    const span = { from: story.timeline.from, to: story.timeline.to };
    parts.plots.show(story.progress.length + story.cost.length + story.tokens.length ? [story.progress, story.cost, story.tokens, card.active ? span.to : 0] : null,
      () => make("div", { class: "plots" },
        plot("Progress", story.progress, { ...span, most: 100, say: (value) => `${Math.round(value)} %` }),
        story.cost.some((point) => point.value) ? plot("Cost", story.cost, { ...span, say: dollars }) : null,
        plot("Tokens", story.tokens, { ...span, say: (value) => short(Math.round(value)) })));
    parts.plan.show(story.plan, (tasks) => this.plan(tasks));
    if (card.machine === "turns") this.channel(story);
    parts.claims.show(story.claims, (claims) => make("ol", { class: "claims" }, [...claims].reverse().map((claim) => this.claim(claim))));
    this.proof(story, receipts, card.active);
    parts.questions.show(story.questions, (questions) => make("ol", { class: "claims" }, [...questions].reverse().map((one) =>
      make("li", null, make("p", { class: "words", tabindex: "0" }, one.text), make("p", { class: "dim" }, clock(one.at), " ",
        one.answer ? ["answered: ", make("span", { class: "answer" }, one.answer)] : one.answered ? `answered at ${clock(one.answered)}` : "open")))));
    parts.waits.show(story.waits, (waits) => make("ul", { class: "plain" }, [...waits].reverse().map((one) => make("li", null,
      make("span", { class: "dim" }, `${clock(one.from)}, ${span_(one)} `), one.task ? `${one.task}: ` : "", one.what))));
    parts.facts.show([...story.facts.filter((fact) => !KNOWN.includes(fact.label)).map((fact) => [fact.label, fact.text]), ["began", exact(card.began)], ["asked", story.asked]], (rows) => facts(rows));
  }

  claim(claim) {
    const [tone, fate] = FATES[claim.fate];
    return make("li", { class: tone },
      make("p", null, mark(tone), " ", make("b", { class: tone }, fate), make("span", { class: "dim" }, ` ${clock(claim.at)}${claim.via && claim.via !== "said" ? `, by ${claim.via}` : ""}`),
        claim.task ? ` ${claim.task}` : ""),
      make("p", { class: "words", tabindex: "0" }, claim.quote),
      claim.because ? make("p", null, claim.because) : null,
      claim.output ? make("details", { "data-key": `${claim.at}` }, make("summary", null, "What the check printed"), make("pre", { class: "words", tabindex: "0" }, claim.output)) : null,
      claim.decision ? button("Why", () => whyOf(this.run, claim.decision), { class: "quiet", "aria-label": `Why: ${fate} at ${clock(claim.at)}` }) : null);
  }

  // What the last claims rest on, the receipts of what is done, and all checks that were run.
  proof({ proof, timeline }, receipts, active) {
    const checks = timeline.lanes.flatMap((lane) => lane.spans.filter((part) => part.kind === "check")
      .map((part) => ({ ...part, label: lane.label, end: lane.marks.find((one) => one.at === part.to), open: active && part.to === timeline.to })));
    this.parts.proof.show(proof.length + receipts.length + checks.length ? { proof, receipts, checks } : null, () => [
      proof.map((one) => this.proved(one)),
      receipts.length ? [make("h3", null, "Receipts"), make("ul", { class: "plain" }, [...receipts].reverse().map((one) => make("li", null,
        mark("good"), ` ${one.number}. ${one.title} `, make("span", { class: "dim" }, [one.commit ? `commit ${one.commit.slice(0, COMMIT)}${one.clean === false ? " with uncommitted changes" : ""}` : "no commit",
          one.checks ? `${one.checks_passed} of ${one.checks} checks passed` : "no check"].join(", "), ", ", since(one.ended))))),
      command(`aldis proof verify ${this.run}`, {})] : "",
      checks.length ? make("details", { "data-key": "checks" }, make("summary", null, `All checks so far (${checks.length})`), this.checks(checks)) : ""].flat());
  }

  // The checks of one claim.
  proved({ title, acceptance, clean, checks, changes, findings }) {
    const [tone, verdict] = ACCEPTANCE[acceptance] ?? ["neutral", "checking"];
    return make("div", { class: "proved" },
      make("p", null, mark(tone), " ", make("b", { class: tone }, verdict), title ? ` ${title}` : "",
        clean ? make("span", { class: "dim" }, ` in a clean checkout of ${clean.slice(0, COMMIT)}`) : null),
      make("ul", { class: "plain" }, checks.map((check) => make("li", null,
        mark(CHECKS[check.status] ?? "neutral"), " ", check.name ? make("b", null, `${check.name} `) : null, make("code", null, check.command), " ",
        make("span", { class: CHECKS[check.status] ?? "dim" }, words(check.status), check.exit_code ? `, exit code ${check.exit_code}` : null),
        make("span", { class: "dim" }, [check.tests ? `, ${check.tests.passed} tests passed, ${check.tests.failed} failed, ${check.tests.skipped} skipped` : "",
          check.runs > 1 ? `, ${check.runs} runs` : "", check.flaky ? ", flaky" : "", check.runs ? `, ${brief(check.took_ms)}` : ""].join("")))),
      changes.map((one) => make("li", null, mark("warn"), " ", make("code", null, one.path, one.part ? ` ${one.part}` : ""), ` ${words(one.change)} (${words(one.class)})`)),
      findings.map((one) => make("li", null, mark(WEIGHTS[one.weight] ?? "neutral"), ` ${one.what} `, make("span", { class: "dim" }, one.rule)))));
  }

  checks(checks) {
    return make("table", null,
      make("thead", null, make("tr", null, ["Check", "When", "Took", "Result"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", null, checks.map((check) => make("tr", null, make("td", null, check.label),
        make("td", null, clock(check.from)), make("td", null, brief(Date.parse(check.to) - Date.parse(check.from))),
        make("td", { class: check.end?.kind }, check.end ? [mark(check.end.kind === "good" ? "good" : "bad"), ` ${check.end.kind === "good" ? "passed" : "failed"} `] : check.open ? "running " : "no result ",
          check.end?.decision ? button("Why", () => whyOf(this.run, check.end.decision), { class: "quiet", "aria-label": `Why: check at ${clock(check.from)}` }) : null)))));
  }

  plan(tasks) {
    const order = [...tasks].sort((a, b) => BY_STATE.indexOf(a.status) - BY_STATE.indexOf(b.status));
    const critical = tasks.filter((task) => task.critical).length;
    const title = (id) => tasks.find((task) => task.task === id)?.title || id;
    return [
      critical ? make("p", { class: "dim" }, `Critical path: ${critical} task${critical === 1 ? "" : "s"}, drawn thick.`) : "",
      graph(tasks, (task) => this.task(task)),
      make("ul", { class: "tasks plain" }, order.map((task) => make("li", { "data-state": task.status, "data-task": task.task },
        mark(STATE_TONES[task.status] ?? "neutral"), " ", make("b", null, task.title || task.task), " ",
        make("span", { class: STATE_TONES[task.status] ?? "" }, words(task.status)),
        make("span", { class: "dim" }, task.round ? ` · round ${task.round}` : "", task.role ? [` · ${task.role}${task.queued ? " waits for a worker" : task.worker ? ` on ${task.worker}` : ""} `, since(task.since)] : "",
          task.progress ? ` · ${task.progress}` : "", task.needs.length && task.status === "pending" ? ` · waits for ${task.needs.map(title).join(", ")}` : ""),
        task.setback ? make("p", { class: "bad" }, task.setback) : null, this.findings(task))))];
  }

  findings(task) {
    if (!task.findings.length) return null;
    const open = task.findings.filter((one) => one.status === "open" || one.status === "disputed").length;
    return make("details", { "data-key": task.task }, make("summary", null, `${task.findings.length} finding${task.findings.length === 1 ? "" : "s"}, ${open} open`),
      make("ul", { class: "plain" }, task.findings.map((one) => make("li", null, mark(one.status === "fixed" || one.status === "withdrawn" ? "good" : "warn"),
        ` ${one.status} `, make("code", null, one.place), " ", make("span", null, one.text), make("span", { class: "dim" }, ` ${one.by}${one.raised > 1 ? `, raised ${one.raised} times` : ""}`)))));
  }

  task(task) {
    dialog(task.title || task.task, facts([["id", task.task], ["state", words(task.status)], ["rounds", task.round], ["agent", task.role],
      ["waits for", task.needs.join(", ")], ["progress", task.progress], ["last failure", task.setback]]), this.findings(task));
    for (const one of document.querySelectorAll("#dialog details")) one.open = true;
  }

  async channel(story) {
    const run = await ask("GET", runPath(this.run));
    this.parts.channel.show([run.queue, run.agents, run.active_agent, run.turn_timeout_at, story.messages, run.history], () => [
      make("p", { class: "turn" }, run.active_agent ? [make("b", null, run.active_agent), " has the turn, ",
        run.turn_timeout_at ? deadline(run.turn_timeout_at) : "without a deadline"] : "Nobody has the turn."),
      make("ol", { class: "queue" }, run.queue.map((agent) => make("li", { "aria-current": agent === run.active_agent ? "true" : null },
        make("b", null, agent), " ", make("span", { class: "dim" }, words(run.agents[agent]?.state ?? "")), " ",
        agent === run.active_agent || !run.active ? "" : button(`Give the turn to ${agent}`, () => change(`/v1/channels/${encodeURIComponent(this.run)}/next`, { agent }), { class: "quiet" })))),
      make("ol", { class: "talk", tabindex: "0", "aria-label": "Conversation" }, talk(story.messages, run.history))]);
  }
}

const span_ = (wait) => span((Date.parse(wait.until) - Date.parse(wait.from)) / 1000);

// Messages and turns, in the order of their times.
function talk(messages, history) {
  const turns = history.filter((one) => one.event !== "turn_started").map((one) => ({ at: one.at,
    note: `${words(one.event)}: ${one.agent}${one.reason ? ` (${words(one.reason)})` : ""}` }));
  return [...messages, ...turns].sort((a, b) => Date.parse(a.at) - Date.parse(b.at)).map((one) => one.note
    ? make("li", { class: "note dim" }, `${clock(one.at)} ${one.note}`)
    : make("li", { class: one.human ? "human" : "agent" }, make("p", { class: "dim" }, make("b", null, one.who), ` ${clock(one.at)}`),
      make("p", { class: "words" }, one.text)));
}
