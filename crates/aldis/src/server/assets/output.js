// What the agents of a run write, live: followed at its end, paused, searched, saved.

import { events, runPath, save } from "./api.js";
import { button, make, tell } from "./dom.js";

const LINES_MAX = 20000;
const SHOWN_MAX = 1500;

const nameOf = (piece) => piece.role ? [piece.role, piece.task && `of ${piece.task}`].filter(Boolean).join(" ") : "the agent";

export class Output {
  constructor(run, active) {
    this.run = run;
    this.active = active;
    this.lines = [];
    this.agents = new Set();
    this.pre = make("pre", { class: "output", tabindex: "0", role: "region", "aria-label": "What the agents wrote" });
    this.search = make("input", { type: "search", "aria-label": "Search the output", placeholder: "Search", on: { input: () => this.draw() } });
    this.agent = make("select", { "aria-label": "Agent", on: { change: () => this.draw() } }, make("option", { value: "" }, "All agents"));
    this.pauseButton = button("Pause output", () => this.pause(), { "aria-pressed": "false" });
    this.state = make("p", { class: "dim", role: "status" });
    this.element = make("section", { class: "output-pane" }, make("h2", null, "Output"),
      make("div", { class: "row tools" }, this.search, this.agent, this.pauseButton, button("Save as a file", () => this.save())),
      this.state, this.pre);
    this.pre.addEventListener("scroll", () => {
      this.follows = this.pre.scrollTop + this.pre.clientHeight >= this.pre.scrollHeight - 24;
    });
    this.follows = true;
    this.read();
  }

  async read() {
    this.stop = new AbortController();
    const path = `${runPath(this.run)}/output${this.active ? "?follow=true" : ""}`;
    for (let tries = 0; !this.stop.signal.aborted; tries += 1) {
      try {
        this.lines = [];
        this.over = false;
        for await (const { event, data } of events(path, this.stop.signal)) {
          if (event === "end") { this.over = true; this.later(); return; }
          if (event === "problem") tell(data);
          if (event !== "output") continue;
          this.take(JSON.parse(data));
        }
      } catch (error) {
        if (this.stop.signal.aborted) return;
        this.state.textContent = `connection lost: ${error.message}`;
      }
      await new Promise((wake) => { setTimeout(wake, Math.min(30000, 2000 * (tries + 1))); });
    }
  }

  take(piece) {
    const agent = nameOf(piece);
    if (!this.agents.has(agent)) {
      this.agents.add(agent);
      this.agent.append(make("option", { value: agent }, agent));
    }
    for (const line of piece.text.replace(/\n$/, "").split("\n")) this.lines.push({ agent, line, own: piece.own });
    if (this.lines.length > LINES_MAX) this.lines.splice(0, this.lines.length - LINES_MAX);
    if (!this.paused) this.later();
  }

  later() {
    this.timer ??= setTimeout(() => { this.timer = null; this.draw(); }, 100);
  }

  pause() {
    this.paused = !this.paused;
    this.pauseButton.setAttribute("aria-pressed", String(this.paused));
    this.draw();
  }

  draw() {
    const wanted = this.search.value.toLowerCase();
    const agent = this.agent.value;
    const found = this.lines.filter((one) => (!agent || one.agent === agent) && (!wanted || one.line.toLowerCase().includes(wanted)));
    const shown = found.slice(-SHOWN_MAX);
    const several = this.agents.size > 1;
    let before = null;
    this.pre.replaceChildren(...shown.flatMap((one) => {
      const head = several && one.agent !== before ? [make("b", { class: "who" }, `${one.agent}\n`)] : [];
      before = one.agent;
      return [...head, make("span", { class: one.own ? null : "dim" }, `${one.line}\n`)];
    }));
    const parts = [this.paused ? "paused" : this.over ? "complete" : this.active ? "live" : "reading",
      wanted || agent ? `${found.length} of ${this.lines.length} lines` : `${this.lines.length} lines`];
    if (found.length > SHOWN_MAX) parts.push(`the last ${SHOWN_MAX} are shown`);
    if (!this.lines.length && this.over) parts.splice(1, 1, "its agents wrote nothing that is kept");
    this.state.textContent = parts.join(", ");
    if (this.follows) this.pre.scrollTop = this.pre.scrollHeight;
  }

  async save() {
    const texts = [];
    try {
      for await (const { event, data } of events(`${runPath(this.run)}/output`)) {
        if (event === "output") texts.push(JSON.parse(data).text);
      }
      save(`${this.run}.txt`, texts.join(""));
    } catch (error) {
      tell(error.message);
    }
  }

  close() {
    this.stop?.abort();
  }
}
