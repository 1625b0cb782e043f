// The fleet: machines and their workers, what waits for one, and who coordinates what.

import { ask } from "./api.js";
import { exact, facts, make, mark, since, sync, words } from "./dom.js";

const TONES = { ready: "good", draining: "warn", gone: "bad" };

const count = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

export class Fleet {
  constructor() {
    this.title = "Fleet";
    this.figures = make("div");
    this.queue = make("ul", { class: "rows" });
    this.machines = make("div", { class: "items" });
    this.leases = make("ul", { class: "rows" });
    const part = (name, title, body) => make("section", { id: name, "aria-labelledby": `${name}-title` }, make("h2", { id: `${name}-title` }, title), body);
    this.element = make("div", null, make("h1", null, "Fleet"), this.figures, part("queue", "Waiting for a worker", this.queue),
      part("machines", "Machines", this.machines), part("leases", "Coordinators", this.leases));
  }

  async refresh() {
    const fleet = await ask("GET", "/v1/fleet");
    const there = fleet.workers.filter((worker) => worker.state !== "gone");
    const [slots, busy] = [there.reduce((sum, worker) => sum + worker.slots, 0), there.reduce((sum, worker) => sum + worker.agents.length, 0)];
    this.figures.replaceChildren(facts([["workers", String(there.length)], ["slots in use", `${busy} of ${slots}`], ["waiting", String(fleet.queued)],
      ["longest wait", fleet.queue.length ? since(fleet.queue[0].since) : null]], { class: "kpis" }));
    const name = (run) => fleet.titles[run] || run;
    const link = (run) => make("a", { href: `/runs/${encodeURIComponent(run)}` }, name(run));
    const list = (place, rows, nothing, build) => sync(place, rows.length ? rows : [["none", {}]],
      (one, key) => key === "none" ? make("li", { class: "empty" }, nothing) : make("li", null, build(one)));
    list(this.queue, fleet.queue.map((one) => [`${one.run}/${one.agent}`, { ...one, title: name(one.run) }]), "Nothing waits for a worker.",
      (one) => [make("b", null, words(one.role)), one.task ? ` of ${one.task}` : "", " · ", link(one.run), make("span", { class: "dim" }, " wanted ", since(one.since))]);
    if (fleet.queue.length < fleet.queued) this.queue.append(make("li", { class: "empty", "data-key": "more" }, `${fleet.queued - fleet.queue.length} more wait.`));
    const machines = grouped(fleet.workers);
    sync(this.machines, machines.size ? [...machines] : [["none", []]], (workers, machine) => workers.length ? this.machine(machine, workers, link)
      : make("p", { class: "empty" }, "No workers. Start one: ", make("code", null, "aldis worker")));
    list(this.leases, fleet.leases.map((one) => [one.run, { ...one, title: name(one.run) }]), "Nobody coordinates a run.",
      (one) => [mark(one.over ? "warn" : "good"), " ", link(one.run), make("span", { class: "dim" }, ` ${one.holder}, `,
        make("span", { title: exact(one.until) }, one.over ? ["lease over ", since(one.until)] : "lease held"))]);
  }

  machine(machine, workers, link) {
    return make("article", { class: "panel machine", "aria-label": machine }, make("h3", null, machine), make("ul", { class: "plain" }, workers.map((worker) => make("li", { "data-worker": worker.name },
      make("p", null, mark(TONES[worker.state] ?? "neutral"), " ", make("b", null, worker.name), " ", make("span", { class: TONES[worker.state] }, worker.state),
        make("span", { class: "dim" }, worker.state === "ready" ? "" : [", seen ", since(worker.seen)])),
      make("p", { class: "slots" }, make("span", { class: "boxes", "aria-hidden": "true" }, Array.from({ length: Math.min(worker.slots, 40) }, (_, at) => make("i", { class: at < worker.agents.length ? "busy" : "" }))),
        ` ${worker.agents.length} of ${count(worker.slots, "slot")}`),
      worker.labels.length || worker.roles.length ? make("p", { class: "dim" }, [worker.labels.length ? `labels ${worker.labels.join(", ")}` : "", worker.roles.length ? `roles ${worker.roles.map(words).join(", ")}` : ""].filter(Boolean).join(" · ")) : null,
      worker.agents.length ? make("ul", null, worker.agents.map((agent) => make("li", null, words(agent.role), agent.task ? ` of ${agent.task}` : "", " · ", link(agent.run),
        make("span", { class: "dim" }, " ", since(agent.since))))) : null))));
  }
}

function grouped(workers) {
  const machines = new Map();
  for (const worker of workers) machines.set(worker.machine, [...machines.get(worker.machine) ?? [], worker]);
  return machines;
}
