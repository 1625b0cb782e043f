// One thing that needs a person, opened by the signed link of a notice: no login, and nothing else can
// be seen or done with it. Looking at it changes nothing; what is sent uses the link up.

import { item } from "./actions.js";
import { make, mark, sync, tell } from "./dom.js";

const token = location.hash.slice(1);
const place = document.getElementById("place");

async function ask(method, body) {
  const response = await fetch("/v1/item", { method, headers: { "x-aldis-item": token, "content-type": "application/json" }, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error?.message ?? `the server answered ${response.status}`);
  return answer;
}

function say(tone, text) {
  sync(place, [[text, text]], () => make("article", { class: "item" }, make("p", { class: tone, role: "status" }, mark(tone), ` ${text}`),
    make("p", null, make("a", { href: "/" }, "Open the dashboard"))));
}

async function send(action, text) {
  tell("");
  try {
    const answer = await ask("POST", { action: action.action, text });
    say("good", answer.said);
    return true;
  } catch (error) {
    tell(error.message);
    return false;
  }
}

async function show() {
  try {
    const answer = await ask("GET");
    if (answer.item) sync(place, [["item", answer.item]], () => item(answer.item, { send }));
    else say("neutral", answer.said);
  } catch (error) {
    say("bad", error.message);
  }
}

addEventListener("hashchange", () => location.reload());
show();
