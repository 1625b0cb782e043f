// The dashboard: which page is shown, and how it is kept up to date.
"use strict";

import { ask, events } from "./api.js";
import { byId, dialog, facts, make, tell } from "./dom.js";
import { Fleet } from "./fleet.js";
import { Inbox, Overview } from "./overview.js";
import { RunPage } from "./run.js";

// How long changes gather before the page is read again, and how often it is anyway: an agent that works
// without a word decides nothing, and still shows signs of life.
const GATHER = 200;
const ANYWAY = 5000;
let page = null;
let newest = null;
let needs = null;

function pageOf(path, query) {
  const run = path.match(/^\/runs\/([^/]+)$/);
  if (run) return new RunPage(decodeURIComponent(run[1]), new URLSearchParams(query).get("tab"));
  if (path === "/fleet") return new Fleet();
  return path === "/inbox" ? new Inbox() : new Overview(query);
}

async function go(address, remember = true) {
  const url = new URL(address, location.href);
  if (remember) history.pushState(null, "", url);
  page?.close?.();
  page = pageOf(url.pathname, url.search);
  retitle();
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.getAttribute("href") === url.pathname) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  tell("");
  byId("main").replaceChildren(page.element);
  if (remember) byId("main").focus();
  await refresh();
}

// What needs somebody is seen on the tab of the browser, too.
function retitle() {
  document.title = `${needs ? `(${needs}) ` : ""}${page.title} · Aldis`;
}

let timer = null;
let again = false;

// Reads the page again, not more often than a person can look.
async function refresh() {
  if (timer !== null) { again = true; return; }
  timer = setTimeout(() => {}, 0);
  const shown = page;
  try {
    await shown.refresh();
    if (shown instanceof RunPage || shown instanceof Fleet) await count(shown.waiting);
    retitle();
    if (byId("message").dataset.from === "refresh") { tell(""); delete byId("message").dataset.from; }
    if (!performance.getEntriesByName("first-view").length) performance.mark("first-view");
    document.body.dataset.ready = location.pathname + location.search;
  } catch (error) {
    tell(error.message);
    byId("message").dataset.from = "refresh";
  }
  timer = setTimeout(() => {
    timer = null;
    if (again || shown !== page) { again = false; refresh(); }
  }, shown === page ? GATHER : 0);
}

let counted = 0;
let waiting = null;

// How much needs somebody anywhere, for pages that do not show it: now and then, and when it has changed here.
async function count(here) {
  if (Date.now() - counted < ANYWAY && here === waiting) return;
  counted = Date.now();
  waiting = here;
  document.dispatchEvent(new CustomEvent("overview", { detail: await ask("GET", "/v1/overview?limit=1") }));
}

function connected(state, text) {
  byId("connection").dataset.state = state;
  byId("connection").textContent = text;
}

// Follows what is decided. After a loss everything is read again: nothing is missed.
async function follow() {
  for (;;) {
    try {
      if (newest === null) newest = String((await ask("GET", "/v1/decisions?limit=1")).decisions[0]?.seq ?? 0);
      const stream = events(`/v1/events?after=${encodeURIComponent(newest)}`);
      refresh();
      connected("live", "live");
      for await (const { event, data } of stream) {
        if (event === "gap") newest = null;
        if (event === "decision") newest = JSON.parse(data).id;
        if (event) refresh();
      }
    } catch (error) {
      console.warn(error);
    }
    connected("lost", "connection lost, trying again");
    await new Promise((wake) => { setTimeout(wake, 2000); });
  }
}

const KEYS = [["j k", "next and previous item"], ["Enter", "open the run"], ["a", "answer"], ["p r", "pause, resume"], ["x", "abort; press again to confirm"],
  ["d", "dismiss"], ["c", "copy the command"], ["1 to 9", "go to an answer that is offered"], ["/", "search"], ["g then i", "inbox"], ["g then r", "runs"], ["g then f", "fleet, where there are workers"], ["Esc", "leave a field, close a window"], ["?", "these keys"]];

const help = () => dialog("Keys", facts(KEYS));

function move(by) {
  const items = [...document.querySelectorAll("main [data-item]")].filter((one) => one.offsetParent);
  const at = items.findIndex((one) => one.contains(document.activeElement));
  const next = items[Math.min(items.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

// What a letter does to the item that has the focus, else to the page.
function act(letter) {
  const item = document.activeElement.closest?.("[data-item]") ?? byId("main");
  const action = { p: "pause", r: "resume", x: "abort", d: "dismiss", c: "command" }[letter];
  const label = { p: "Pause", r: "Resume", x: "Abort" }[letter];
  const buttons = [...item.querySelectorAll("button")];
  const found = buttons.find((one) => one.dataset.action === action) ?? buttons.find((one) => (one.dataset.label ?? one.textContent) === label);
  found?.focus();
  found?.click();
}

let prefix = null;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("dialog").open) return;
  const field = document.activeElement.matches("input, textarea, select");
  if (event.key === "Escape" && field) {
    (document.activeElement.closest("[data-item]") ?? byId("main")).focus();
    return;
  }
  if (field) return;
  const before = prefix;
  prefix = event.key === "g" ? "g" : null;
  const item = document.activeElement.closest?.("[data-item]");
  if (before === "g" && event.key === "i") go("/inbox");
  else if (before === "g" && event.key === "r") go("/");
  else if (before === "g" && event.key === "f") go("/fleet");
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "?") help();
  else if (event.key === "/") (document.querySelector("main input[type=search]"))?.focus();
  else if (event.key === "a") (item ?? byId("main")).querySelector("[data-item] .line input, .line input")?.focus();
  else if ("prxdc".includes(event.key)) act(event.key);
  else if (/^[1-9]$/.test(event.key)) (item ?? byId("main")).querySelectorAll(".option")[event.key - 1]?.focus();
  else if (event.key === "Enter" && document.activeElement === item) item.querySelector("a[href]")?.click();
  else return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || link.download || link.origin !== location.origin || link.classList.contains("skip")) return;
  event.preventDefault();
  go(link.href);
});

document.addEventListener("overview", ({ detail: overview }) => {
  const detail = overview.needs.length;
  byId("nav-fleet").hidden = !overview.workers && location.pathname !== "/fleet";
  const count = byId("inbox-count");
  count.textContent = String(detail);
  count.hidden = detail === 0;
  if (needs !== null && detail > needs) byId("announce").textContent = `${detail - needs} more need you`;
  needs = detail;
});
document.addEventListener("changed", () => refresh());
addEventListener("popstate", () => go(location.href, false));
byId("help-button").addEventListener("click", help);
byId("sign-out").addEventListener("click", async () => {
  try { await ask("POST", "/v1/logout", {}); } catch (error) { console.warn(error); }
  localStorage.removeItem("key");
  location.assign("/login");
});
setInterval(() => { if (!document.hidden) refresh(); }, ANYWAY);

go(location.href, false).then(follow);
