// What a human can do: one place for the overview, the inbox and the page of a run.

import { ask, runPath } from "./api.js";
import { button, facts, make, sure, tell, words, mark, since, project } from "./dom.js";

// Does something that a human asked for, and says so if it fails.
export async function change(path, body, done) {
  tell("");
  try {
    const answer = await ask("POST", path, body);
    tell((answer.warnings ?? []).join("; "));
    done?.(answer);
    document.dispatchEvent(new CustomEvent("changed"));
    return true;
  } catch (error) {
    tell(error.message);
    return false;
  }
}

// A line to type in, sent with Enter or its button.
export function line(label, send, suggestions = []) {
  const input = make("input", { "aria-label": label, placeholder: label, maxlength: "4000", autocomplete: "off" });
  const submit = async (text) => {
    if (!text.trim()) return;
    input.disabled = true;
    if (await send(text.trim())) input.value = "";
    input.disabled = false;
  };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") submit(input.value); });
  return make("div", { class: "line" },
    suggestions.length ? make("div", { class: "row" }, suggestions.map((one) =>
      button(one, () => submit(one), { class: "option" }))) : null,
    make("div", { class: "row" }, input, button("Send", () => submit(input.value), { class: "main" })));
}

// A command to be typed elsewhere, with a button that copies it.
export function command(text, attributes) {
  const element = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      element.textContent = "Copied";
    } catch {
      tell(`Type this where the project is: ${text}`);
    }
  }, { ...attributes, "aria-label": `Copy: ${text}` });
  return make("div", { class: "command" }, make("code", null, text), element);
}

const LABELS = { resume: "Resume", pause: "Pause", abort: "Abort" };

// One action as a control. The first of an item is its obvious one.
function control(item, action, first, send) {
  const attributes = { class: first ? "main" : "quiet", "data-action": action.action };
  const path = runPath(item.run);
  const go = (verb) => send ? send(action) : change(`${path}/${verb}`, {});
  switch (action.action) {
    case "answer":
      return line("Your answer", (text) => send ? send(action, text)
        : change(`${path}/answer`, { id: action.question, text }), item.options);
    case "command":
      return command(action.command, attributes);
    case "dismiss":
      return send ? null : button("Dismiss", () => change(`${path}/dismiss`, { id: item.id, at: item.at }), attributes);
    case "abort":
      return sure("Abort", () => go("abort"), attributes);
    default:
      return button(LABELS[action.action] ?? words(action.action), () => go(action.action), attributes);
  }
}

export const NEEDS = { question: "Question", permission: "Permission", unsupervised: "Unsupervised", stalled: "Stalled",
  capped: "Limit used up", failed: "Failed", check_failed: "Check failed", paused: "Paused" };
const NEED_TONES = { failed: "bad", check_failed: "bad" };

// What the page of a run offers anyway.
const OF_RUN = ["pause", "resume", "abort"];

// Something that needs a person, with what one should know and what one can do. On the page of its own run
// the rest of that page says what run it is.
export function item(data, { own = false, send, heading = "h2" } = {}) {
  const context = data.context.filter((fact) => fact.label !== "next" || data.actions[0]?.action !== "answer");
  const where = [data.host, project(data.project), data.task].filter(Boolean).join(" · ");
  const actions = data.actions.filter((action, at) => at === 0 || !own || !OF_RUN.includes(action.action));
  const controls = actions.map((action, at) => control(data, action, at === 0, send));
  const title = send ? data.title : make("a", { href: `/runs/${encodeURIComponent(data.run)}` }, data.title);
  return make("article", { class: "item", id: `item-${data.run}-${data.id}`, tabindex: "-1", "data-item": "",
    "data-need": data.need, "aria-label": `${NEEDS[data.need]}: ${data.title}` },
  make(own ? "h2" : "p", { class: "eyebrow" }, mark(NEED_TONES[data.need] ?? "warn"), ` ${NEEDS[data.need]} · `, since(data.at)),
  own ? null : [make(heading, null, title), make("p", { class: "dim" }, where)],
  make("p", { class: "words", tabindex: "0" }, data.text),
  data.output ? make("pre", { class: "words", tabindex: "0", "aria-label": "Output" }, data.output) : null,
  context.length ? make("details", { open: Boolean(send) }, make("summary", null, "Context"),
    facts(context.map((fact) => [fact.label, fact.text]))) : null,
  make("div", { class: "actions" }, controls));
}
