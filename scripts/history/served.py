"""Phases and supervised runs that a program steps through the server, and the server's own end."""

import time

from . import served_deliveries
from .phases import block, error
from .world import ROOT, Server, wait_for


def record(world):
    scenarios = {**SCENARIOS, **served_deliveries.SCENARIOS}
    if not any(name.startswith(world.only) for name in (*scenarios, *SUNK)):
        return
    server = Server(world)
    for name, scenario in scenarios.items():
        if world.wants(name):
            scenario(Run(server, name))
    abort_by_server(server)
    server.stop()
    # Sinks that cannot be reached: what is to be sent stays in the outbox. One of them is gone when
    # the server is back, so what was for it is given up.
    (world.state / "secret").write_text("whsec_" + "MDEy" * 8 + "\n")
    (world.state / "secret").chmod(0o600)
    for sinks in (PEOPLE + PROGRAMS, PROGRAMS):
        (world.state / "serve.toml").write_text(sinks)
        server = Server(world)
        for name, scenario in SUNK.items():
            if sinks != PROGRAMS and world.wants(name):
                scenario(Run(server, name))
        count = "SELECT 1 FROM outbox WHERE kind = 'sink' AND " + (
            "state = 2" if sinks == PROGRAMS else "attempts > 1"
        )
        wait_for("the outbox", lambda: world.query(count))
        server.crash()


class Run:
    """A run and the requests about it."""

    def __init__(self, server, name):
        self.server, self.name, self.world = server, name, server.world

    def begin(self, machine, start, key=None):
        body = {"machine": machine, "id": self.name, "start": start}
        return self.server.post("/v1/runs", body, key)

    def event(self, event, key=None, **members):
        body = {"event": event, **members}
        return self.server.post(f"/v1/runs/{self.name}/events", body, key)

    def wish(self, what, key=None, **body):
        return self.server.post(f"/v1/runs/{self.name}/{what}", body, key)

    def rules(self):
        decisions = self.server.get(f"/v1/runs/{self.name}/why?limit=1000")["decisions"]
        return [decision["rule"] for decision in decisions]

    def until(self, rule, times=1):
        wait_for(f"{self.name}: {rule}", lambda: self.rules().count(rule) >= times)


def abort_by_server(server):
    """A run under a hook is ended through the server."""
    id, _ = server.world.run_of(ROOT / "phases-by-server")
    if id:
        server.post(f"/v1/runs/{id}/abort", {}, "once")
        server.post(f"/v1/runs/{id}/abort", {}, "once")


def phases(run):
    """Everything that a host's hooks report, in a program's own words."""
    run.begin("phases", {"task": "Add CSV export", "phase": "qa"}, "open")
    run.begin("phases", {"task": "Add CSV export", "phase": "qa"}, "open")
    stop = lambda text, **more: run.event("stop", session="S1", text=text, **more)
    run.event("prompt", session="S1", turn="t1")
    stop("Half done.", key="k1")
    stop("Half done.", key="k1")
    stop("I will print SIGNAL: QA_COMPLETE soon.")
    run.event("session_start", session="S1")
    run.event("stop_failed", session="S1", error="rate_limit")
    run.event("interrupted", session="S1")
    run.event("responded", session="S1", text=block("qa"))
    run.event("stop", session="S1")
    run.event("subagent_stop", session="S1", agent="a1", text=block("review"))
    stop("My helper is done.", hold={"why": "background", "what": "a build"})
    stop("My helper is done.")
    run.event("edited", members=["phase"])
    stop(error("fix", "no way", True))
    run.event("session_end", session="S1")
    run.event("stop", session="S2", text="Not you.")
    run.wish("abort")


def phases_failed(run):
    """Failed, resumed, left active."""
    pipeline = {
        "name": "two",
        "dialect": "chorus",
        "phases": [{"name": "build", "purpose": "Build it."}, {"name": "test"}],
    }
    config = {"after_transition": "stop", "stale_after": 60}
    start = {"task": "Add CSV export", "pipeline": pipeline, "config": config, "max_iterations": 1}
    run.begin("phases", start)
    stop = lambda text, **more: run.event("stop", session="S9", text=text, **more)
    stop("Not yet.")
    stop("Not yet.")
    run.wish("resume")
    stop("<chorus>COMPLETE</chorus>")
    stop("Not yet.", cap={"limit": 1})


def run_everything(run):
    """Every event of a supervised run."""
    stagnation = {"enabled": True, "warn_repeats": 2, "pause_repeats": 3, "abort_repeats": 5}
    config = {"verify": True, "max_tokens": 1_000, "limit_wait": 1, "stagnation": stagnation}
    run.begin("run", {"task": "Add CSV export", "launch": "elsewhere", "config": config})
    run.event("begin")
    run.event("looked", fingerprint="f1", head="c1", dirty=False)
    run.event("launched", agent="agent 1")
    run.event("heard", text="<chorus>PROGRESS: 10</chorus>")
    run.event("missed", hint="write the tag as plain text")
    run.event("worked")
    run.event("spent", tokens=300, micro_dollars=5_000)
    run.event("retrying", what="overloaded")
    run.event("retrying", what="overloaded")
    run.event("looked", fingerprint="f2", head="c1", dirty=True)
    run.event("pause")
    run.event("tick")
    run.event("resume")
    run.event("limited", what="usage limit")
    run.event("exited", code=1, signal=None)
    time.sleep(1.1)
    run.event("tick")
    run.event("launched", agent="agent 2")
    run.event("spent", tokens=400)
    run.event("heard", text="<chorus>COMPLETE</chorus>")
    run.event("exited", code=0, signal=None)
    run.event("recovered")
    run.event("looked", fingerprint="f3", head="c2", dirty=False)
    run.event("recovered")
    run.event("checked", passed=False, output="two tests failed")
    run.event("heard", text="<chorus>NEEDS_HUMAN: keep or drop?</chorus>", key="asks")
    run.event("heard", text="<chorus>NEEDS_HUMAN: keep or drop?</chorus>", key="asks")
    run.event("exited", code=0, signal=None)
    run.event("recovered")
    run.wish("answer", id="q1", text="Drop it.")
    run.wish("pause")
    run.wish("resume")
    run.event("refused", what="the login has expired")
    run.event("exited", code=1, signal=None)
    more = {**config, "max_tokens": 5_000}
    run.event("reopen", config=more)
    run.event("recovered")
    for _ in range(4):
        run.event("heard", text="<chorus>PROGRESS: 50</chorus>")
    run.event("heard", text="<chorus>PROGRESS: 50</chorus>")
    run.event("heard", text="<chorus>PROGRESS: 50</chorus>")
    run.event("exited", code=None, signal=15)
    run.event("reopen", config=more)
    run.event("spent", tokens=6_000)
    run.event("exited", code=None, signal=15)
    run.event("reopen", config={**more, "max_tokens": None})
    run.wish("abort")
    run.event("exited", code=None, signal=9)


def run_ready(run):
    """Begun and never started."""
    run.begin("run", {"task": "Add TSV export", "dialect": "pilot", "instructions": "Be brief."})


def run_active(run):
    """In the middle of its first iteration."""
    run.begin("run", {"task": "Add TSV export"})
    run.event("begin")
    run.event("launched", agent="agent 1")
    run.event("heard", text="<chorus>PROGRESS: 30</chorus>")


def sunk_channel(run):
    """A channel with posts that nobody has taken, and an alarm."""
    body = {"channel": run.name, "agents": ["pm", "dev"]}
    run.server.post("/v1/channels", body)
    path = f"/v1/channels/{run.name}/messages"
    run.server.post(path, {"agent": "pm", "text": "The plan is simple. TURN_COMPLETE"})
    run.server.post(path, {"agent": "dev", "text": "On it."})


SCENARIOS = {
    "phases-served-all": phases,
    "phases-served-active": phases_failed,
    "run-served-all": run_everything,
    "run-served-ready": run_ready,
    "run-served-active": run_active,
}
# With a sink.
SUNK = {
    "turns-active": sunk_channel,
    "delivery-served-active": served_deliveries.active,
}
PEOPLE = """
[[sinks]]
name = "people"
kind = "discord"
url = "http://127.0.0.1:9/hook"
webhook_private = true
"""
PROGRAMS = """
[[sinks]]
name = "programs"
kind = "webhook"
url = "http://127.0.0.1:9/hook"
secret_file = "secret"
webhook_private = true
effects = ["notify", "dispatch", "ask"]
"""
