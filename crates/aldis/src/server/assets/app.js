// The dashboard. Whatever an agent said becomes a text node, never markup: there is no innerHTML here,
// and the page's policy forbids it.
"use strict";

const JOURNAL_MAX = 200;
const ENDED_MAX = 5;
const runs = new Map();
let questions = [];
let newest = "0";

// The half of the login that is not in the cookie: other ports of this host get the cookie, too.
const login = new URLSearchParams(location.hash.slice(1)).get("key");
if (login) {
  localStorage.setItem("key", login);
  history.replaceState(null, "", "/");
}
const KEY = { "x-aldis-key": localStorage.getItem("key") ?? "" };

const byId = (id) => document.getElementById(id);

// Makes an element with attributes and children; strings become text nodes.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

async function ask(method, path, body) {
  const headers = method === "GET" ? KEY : {
    ...KEY,
    "content-type": "application/json",
    "idempotency-key": crypto.randomUUID(),
  };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error?.message ?? `the server answered ${response.status}`);
  return answer;
}

// Does something that a human asked for, and says so if it fails.
async function change(path, body, method = "POST") {
  byId("message").textContent = "";
  try {
    const answer = await ask(method, path, body);
    const warnings = answer.warnings ?? [];
    byId("message").textContent = warnings.join("; ");
  } catch (error) {
    byId("message").textContent = error.message;
  }
}

function ago(moment) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(moment)) / 1000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

const since = (moment) => make("time", { datetime: moment, title: moment, "data-since": moment }, ago(moment));

function left(moment) {
  const seconds = Math.ceil((Date.parse(moment) - Date.now()) / 1000);
  return seconds >= 0 ? `${seconds} s left` : `${-seconds} s over`;
}

// What the server says about a run, in its colour.
const status = (run) => make("span", { class: run.tone }, run.summary);

const button = (label, handler) => make("button", { type: "button", on: { click: handler } }, label);

// A line to type in, sent with Enter or its button.
function line(label, send) {
  const input = make("input", { "aria-label": label, placeholder: label, maxlength: "4000" });
  const submit = async () => {
    const text = input.value.trim();
    if (!text) return;
    input.value = "";
    await send(text);
  };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") submit(); });
  return make("div", { class: "row" }, input, button("Send", submit));
}

// A stable code as words.
const words = (code) => code.replaceAll("_", " ").toLowerCase();

function facts(rows) {
  return make("dl", null, rows.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => [make("dt", null, name), make("dd", null, value)]));
}

const ASKED_FOR = 5000;

// A button that must be pressed twice: what it does cannot be undone.
function sure(label, handler) {
  const element = button(label, () => {
    if (element.dataset.sure) return handler();
    element.dataset.sure = "yes";
    element.textContent = `${label}: press again to confirm`;
    setTimeout(() => { delete element.dataset.sure; element.textContent = label; }, ASKED_FOR);
  });
  return element;
}

function controls(run, verbs) {
  const path = `/v1/runs/${encodeURIComponent(run.run)}`;
  return make("div", { class: "row" }, verbs.map(([label, verb]) =>
    (verb === "abort" ? sure : button)(label, () => change(`${path}/${verb}`, {}))));
}

function channel(run) {
  const path = `/v1/channels/${encodeURIComponent(run.channel)}`;
  const deadline = run.turn_timeout_at
    ? make("span", { "data-deadline": run.turn_timeout_at }, left(run.turn_timeout_at)) : null;
  const agents = run.queue.map((agent) => make("li", null,
    `${agent} `, make("span", { class: "dim" }, run.agents[agent]?.state ?? ""),
    " ", run.floor === "free" ? button(`Give the turn to ${agent}`, () => change(`${path}/next`, { agent })) : null));
  const history = run.history.slice(-8).reverse().map((entry) => make("li", null,
    since(entry.at), ` ${words(entry.event)} ${entry.agent}`, entry.reason ? ` (${words(entry.reason)})` : ""));
  return make("article", { id: `run-${run.run}` },
    make("h3", null, `# ${run.channel}`),
    facts([["status", status(run)], ["deadline", deadline], ["next", run.remedy]]),
    make("ol", null, agents),
    line("Say something to the channel", (text) => change(`${path}/human`, { text })),
    controls(run, [run.floor === "paused" ? ["Resume", "resume"] : ["Pause", "pause"], ["Close", "abort"]]),
    make("details", null, make("summary", null, "History"), make("ul", null, history)));
}

// Tasks by what somebody who looks wants to know first.
const STATES = ["awaiting-guidance", "implementing", "awaiting-review", "awaiting-audit", "expanding",
  "blocked", "failed", "pending", "complete"];
const STATE_CLASSES = { complete: "good", failed: "bad", "awaiting-guidance": "warn", pending: "dim" };

function tasks(list) {
  return STATES.map((state) => [state, list.filter((task) => task.status === state)])
    .filter(([, some]) => some.length > 0)
    .map(([state, some]) => make("section", { class: "tasks", "data-state": state },
      make("h4", { class: STATE_CLASSES[state] }, `${state} (${some.length})`),
      make("ul", null, some.map((task) => make("li", null,
        make("b", null, task.task), ` ${task.title} `,
        make("span", { class: "dim" }, `round ${task.round}`),
        task.role ? [` ${task.role} `, since(task.since)] : null,
        task.progress ? make("span", { class: "dim" }, ` ${task.progress}`) : null)))));
}

// How far a run is, in percent.
function share(run) {
  if (run.list?.length) {
    return Math.round((100 * run.list.filter((task) => task.status === "complete").length) / run.list.length);
  }
  return run.progress ?? (run.max_iterations ? Math.round((100 * run.iteration) / run.max_iterations) : null);
}

function supervised(run) {
  const far = share(run);
  const bar = far === null ? null : make("progress", { max: "100", value: String(far), "aria-label": "progress" });
  return make("article", { id: `run-${run.run}` },
    make("h3", null, run.task || run.title),
    bar,
    facts([["run", run.run], ["status", status(run)],
      ["stalled", run.active && (run.level ?? "none") !== "none" ? make("span", { class: "warn" }, run.level) : null],
      ["last activity", since(run.last_activity ?? run.updated)],
      ["refused", run.refused], ["next", run.remedy], ["project", run.project]]),
    run.list ? tasks(run.list) : null,
    run.active ? controls(run, [["Pause", "pause"], ["Resume", "resume"], ["Abort", "abort"]]) : null);
}

function question(item) {
  return make("article", { id: `asks-${item.run}-${item.id}` },
    make("h3", null, `Question of run ${item.run}`),
    make("p", { class: "words" }, item.text),
    since(item.asked_at),
    line("Your answer", (text) => change(`/v1/runs/${encodeURIComponent(item.run)}/answer`, { id: item.id, text })));
}

// Says which control this is, also after it was made anew.
function keyOf(element) {
  return `${element.closest("article")?.id}/${element.getAttribute("aria-label") ?? element.textContent}`;
}

// Replaces the children. What is open, typed and focused stays so; nothing changes under somebody's typing.
function show(place, children, empty) {
  const active = place.contains(document.activeElement) ? document.activeElement : null;
  if (active?.tagName === "INPUT" && active.value) return;
  const all = (selector) => [...place.querySelectorAll(selector)];
  const focused = active && keyOf(active);
  const open = new Set(all("details[open] > summary").map(keyOf));
  const typed = new Map(all("input").filter((input) => input.value).map((input) => [keyOf(input), input.value]));
  place.replaceChildren(...(children.length ? children : [make("p", { class: "empty" }, empty)]));
  for (const summary of all("summary")) summary.parentElement.open = open.has(keyOf(summary));
  for (const input of all("input")) input.value = typed.get(keyOf(input)) ?? "";
  if (focused) all("a, button, input, summary").find((one) => keyOf(one) === focused)?.focus();
}

function render() {
  // By when they began: what moves under the pointer is pressed by mistake.
  const latest = [...runs.values()].sort((a, b) => (a.created < b.created ? 1 : -1));
  const active = latest.filter((run) => run.active);
  const ended = latest.filter((run) => !run.active).slice(0, ENDED_MAX);
  const article = (run) => (run.kind === "channel" ? channel(run) : supervised(run));
  show(byId("now"), active.map(article), "Nothing is running.");
  show(byId("ended"), ended.map(article), "Nothing has ended yet.");
  const gone = active.filter((run) => run.status === "unsupervised")
    .map((run) => make("article", { id: `gone-${run.run}` }, make("h3", null, run.task || run.title),
      make("p", { class: "warn" }, run.summary), make("p", null, run.remedy)));
  const idle = active.filter((run) => run.kind === "channel" && (run.floor === "paused" || run.floor === "free"))
    .map((run) => make("article", { id: `idle-${run.run}` }, make("h3", null, `# ${run.channel}`),
      make("p", null, run.summary),
      make("a", { href: `#run-${run.run}` }, "Show it")));
  show(byId("waiting"), [...questions.map(question), ...gone, ...idle], "Nothing needs you.");
}

function entry(decision) {
  const evidence = (decision.evidence ?? []).map((one) => [
    make("p", { class: "dim" }, [one.what, one.name, one.reason].filter(Boolean).join(" ")),
    make("p", { class: "words" }, one.quote)]);
  const subject = [decision.run, decision.task].filter(Boolean).join(" ");
  return make("li", null, make("details", null,
    make("summary", null, since(decision.at), ` ${subject}: ${decision.summary}`),
    facts([["rule", decision.rule], ["because", decision.because], ["next", decision.remedy],
      ["counters", Object.entries(decision.counters ?? {}).map(([name, value]) => `${name} ${value}`).join(", ")]]),
    evidence));
}

function note(decision) {
  const journal = byId("journal");
  journal.prepend(entry(decision));
  while (journal.children.length > JOURNAL_MAX) journal.lastElementChild.remove();
}

let asked = new Set();
let timer = null;

// Reads again what has changed, not more often than a person can look.
function refresh(run) {
  asked.add(run);
  timer ??= setTimeout(async () => {
    const changed = asked;
    asked = new Set();
    timer = null;
    try {
      for (const id of changed) runs.set(id, await whole(await ask("GET", `/v1/runs/${encodeURIComponent(id)}`)));
      questions = (await ask("GET", "/v1/questions")).questions;
      render();
    } catch (error) {
      byId("message").textContent = error.message;
    }
  }, 150);
}

// A run with its tasks, where it has some.
async function whole(run) {
  if (run.machine !== "delivery") return run;
  return { ...run, list: (await ask("GET", `/v1/runs/${encodeURIComponent(run.run)}/tasks`)).tasks };
}

async function load() {
  const [active, ended, decided, waiting] = await Promise.all([
    ask("GET", "/v1/runs?active=true"), ask("GET", `/v1/runs?active=false&limit=${ENDED_MAX}`),
    ask("GET", "/v1/decisions?limit=50"), ask("GET", "/v1/questions")]);
  const listed = await Promise.all([...active.runs, ...ended.runs].map(whole));
  runs.clear();
  for (const run of listed) runs.set(run.run, run);
  questions = waiting.questions;
  newest = String(decided.decisions[0]?.seq ?? 0);
  byId("journal").replaceChildren(...decided.decisions.map(entry));
  render();
}

// Follows the stream by fetch, because an EventSource cannot send the key.
async function follow() {
  const connection = byId("connection");
  for (;;) {
    try {
      const response = await fetch(`/v1/events?after=${newest}`, { headers: KEY });
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      connection.textContent = "live";
      await listen(response.body);
    } catch (error) {
      console.warn(error);
    }
    connection.textContent = "connection lost, trying again";
    await new Promise((wake) => { setTimeout(wake, 2000); });
  }
}

// Takes every event of a stream.
async function listen(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) await take(event);
  }
}

async function take(event) {
  const members = new Map(event.split("\n").map((one) => one.split(/: (.*)/s, 2)));
  if (members.get("event") === "gap") await load();
  if (members.get("event") !== "decision") return;
  const cloud = JSON.parse(members.get("data"));
  newest = cloud.id;
  note({ ...cloud.data, run: cloud.subject, at: cloud.time });
  refresh(cloud.subject);
}

setInterval(() => {
  for (const element of document.querySelectorAll("[data-deadline]")) element.textContent = left(element.dataset.deadline);
  for (const element of document.querySelectorAll("[data-since]")) element.textContent = ago(element.dataset.since);
}, 1000);

// An agent that works without a word decides nothing, and still shows signs of life.
setInterval(() => {
  for (const run of runs.values()) if (run.active && run.machine === "run") refresh(run.run);
}, 5000);

load().then(follow).catch((error) => {
  byId("connection").textContent = "not connected";
  byId("message").textContent = error.message;
});
