"""Channels in which agents take turns, through the server."""

import json
import time

from .world import ROOT, Server, wait_for


def record(world):
    if not any(name.startswith(world.only) for name in (*SCENARIOS, *CRASHED, IMPORTED)):
        return
    server = Server(world)
    for name, scenario in {**SCENARIOS, **CRASHED}.items():
        if world.wants(name):
            scenario(Channel(server, name))
    server.crash()
    # Longer than the turns that go on, so that they are over when the server is back.
    time.sleep(2)
    seeds = ROOT / "seeds.json"
    seeds.write_text(json.dumps(state_file(IMPORTED)))
    server = Server(world, "--import", str(seeds))
    for name, scenario in AFTERWARDS.items():
        if name.startswith(world.only):
            scenario(Channel(server, name))
    server.crash()


class Channel:
    """A channel and the requests about it."""

    def __init__(self, server, name):
        self.server, self.name, self.keys = server, name, 0

    def open(self, *agents, personas=None, **config):
        body = {"channel": self.name, "agents": list(agents), "config": config}
        if personas:
            body["personas"] = personas
        return self.server.post("/v1/channels", body)

    def say(self, agent, *texts, **more):
        words = {"text": texts[0]} if len(texts) == 1 else {"texts": list(texts)}
        return self.post("messages", agent=agent, **words, **more)

    def human(self, text, **more):
        return self.post("human", text=text, **more)

    def post(self, what, key=None, **body):
        return self.server.post(f"/v1/channels/{self.name}/{what}", body, key)

    def wish(self, what, **body):
        return self.server.post(f"/v1/runs/{self.name}/{what}", body)

    def configure(self, **config):
        path = f"/v1/channels/{self.name}/config"
        return self.server.request("PUT", path, {"config": config})

    def remove(self, agent):
        return self.server.request("DELETE", f"/v1/channels/{self.name}/queue/{agent}")

    def rules(self):
        decisions = self.server.get(f"/v1/runs/{self.name}/why?limit=1000")["decisions"]
        return [decision["rule"] for decision in decisions]

    def until(self, rule, times=1):
        wait_for(f"{self.name}: {rule}", lambda: self.rules().count(rule) >= times)


def signals(channel):
    """Words, keywords, near misses, several messages at once, somebody else's turn, a repeat."""
    channel.open("pm", "dev", "qa", alternative_signals=["OVER_TO_YOU"])
    channel.say("pm", "The plan is simple.")
    channel.say("pm", "I will say TURN_COMPLETE when I am done.")
    channel.say("dev", "Me first!")
    channel.say("pm", "Yes. TURN_COMPLETE", key="k1")
    channel.say("pm", "Yes. TURN_COMPLETE", key="k1")
    channel.say("dev", "Half.", "All of it.\nOVER_TO_YOU", "And more.", turn=2)
    channel.say("qa", "TURN_COMPLETE", turn=3)
    channel.say("pm", "Wait.", turn=1)
    channel.say("stranger", "Hello.")
    channel.wish("abort")
    channel.say("pm", "Anybody?")


def relaxed(channel):
    """A keyword in any case and anywhere, and channels that end turns without it."""
    keyword = {"keyword": "over", "case_sensitive": False, "require_at_end": False}
    auto = {"enabled": True, "silence_threshold": 1, "completion_phrases": ["that's all"]}
    channel.open("pm", "dev", **keyword, auto_detect=auto)
    channel.say("pm", "Done and OVER, I think.")
    channel.say("dev", "The tests are green. That’s all.")
    channel.say("pm", "I am looking at it")
    channel.say("pm", "It looks good.")
    channel.until("turns/silence")
    channel.wish("pause")


def inject(channel):
    channel.open("pm", "dev")
    channel.human("hurry TURN_COMPLETE", **{"from": "ada"})
    channel.human("and you?", to="dev")
    channel.human("who?", to="nobody")
    channel.wish("abort")


def interrupt(channel):
    """The turn waits until whoever is asked has answered, or has not."""
    channel.open("pm", "dev", "qa", human_interrupt="interrupt", default_timeout_seconds=2)
    channel.human("which way?")
    channel.say("pm", "Left.")
    channel.human("and you?", to="dev")
    channel.say("qa", "Me?")
    channel.say("dev", "Right.")
    channel.human("and qa?", to="qa")
    channel.until("turns/unanswered")
    channel.human("again?", to="qa")
    channel.post("crashed", agent="qa")
    channel.human("dev?", to="dev")
    channel.wish("resume")
    channel.wish("abort")


def parallel(channel):
    channel.open("pm", "dev", human_interrupt="parallel")
    channel.human("listen, all of you")
    channel.wish("abort")


def queued(channel):
    channel.open("pm", "dev", human_interrupt="queue")
    channel.human("later: use tabs")
    channel.human("later: and semicolons", **{"from": "ada"})
    channel.say("pm", "TURN_COMPLETE")
    channel.wish("abort")


def broadcast(channel):
    """Everyone hears everyone; then there are turns, and then none again."""
    channel.open("pm", "dev", mode="broadcast")
    channel.say("pm", "Hello.")
    channel.say("stranger", "Hello.")
    channel.human("hello, all")
    channel.configure(mode="turn-based")
    channel.say("pm", "TURN_COMPLETE")
    channel.configure(mode="direct")
    channel.say("dev", "Between us.")
    channel.wish("abort")


def single(channel):
    channel.open("pm", mode="single")
    channel.post("queue", agent="dev")
    channel.say("pm", "TURN_COMPLETE")
    channel.wish("abort")


def manual(channel):
    """Somebody names who is next; agents come, go and crash."""
    channel.open("pm", "dev", turn_order="manual")
    channel.human("who begins?")
    channel.post("next", agent="dev")
    channel.say("dev", "TURN_COMPLETE")
    channel.post("next", agent="pm", turn=7)
    channel.post("next", agent="pm", turn=1)
    channel.post("queue", agent="qa", position="start")
    channel.post("queue", agent="ops", position=1)
    channel.remove("dev")
    channel.remove("pm")
    channel.configure(turn_order="round-robin")
    channel.post("crashed", agent="qa")
    channel.post("crashed", agent="qa")
    channel.remove("ops")
    channel.post("queue", agent="pm")
    channel.wish("abort")


def priority(channel):
    """Personas say who is called what, who is first, and how long each may take."""
    personas = {
        "pm": {"displayName": "The manager", "priority": 1},
        "dev": {
            "displayName": "The developer",
            "priority": 5,
            "avatarUrl": "https://example.com/d.png",
        },
        "qa": {"turnBehavior": {"timeoutSeconds": 1}, "priority": 3},
    }
    channel.open("pm", "dev", "qa", "unknown", personas=personas, turn_order="priority")
    channel.say("dev", "First. TURN_COMPLETE")
    channel.until("turns/timeout")
    ops = {"displayName": "The operator", "priority": 4}
    channel.post("queue", agent="ops", persona=ops)
    channel.wish("abort")


def timeouts(channel):
    """A warning and a moment more, timeouts, and what is said too late."""
    grace = {"grace": True, "grace_seconds": 1}
    words = {"timeout_message": "{agent} took {duration} s"}
    channel.open("pm", "dev", default_timeout_seconds=1, **grace, **words)
    channel.until("turns/grace")
    channel.say("pm", "Just a moment.")
    channel.until("turns/timeout")
    channel.say("pm", "Sorry. TURN_COMPLETE")
    channel.say("dev", "TURN_COMPLETE", turn=1)
    channel.wish("pause")
    channel.say("dev", "While it rests. TURN_COMPLETE")
    channel.wish("resume")
    channel.wish("abort")


def silent(channel):
    """Nobody takes a turn for three rounds: the channel rests until a human speaks."""
    channel.open("pm", "dev", default_timeout_seconds=1, announce_timeouts=False)
    channel.until("turns/timeout", 6)
    channel.human("is anybody there?")
    channel.say("pm", "Yes. TURN_COMPLETE")
    channel.wish("pause")
    channel.wish("resume")
    channel.remove("dev")
    channel.wish("abort")


def through_runs(channel):
    """Opened and stepped as a run of any machine is."""
    start = {"channel": channel.name, "agents": ["pm", "dev"]}
    body = {"machine": "turns", "id": channel.name, "start": start}
    channel.server.post("/v1/runs", body, "open")
    channel.server.post("/v1/runs", body, "open")
    event = lambda **event: channel.server.post(f"/v1/runs/{channel.name}/events", event)
    event(event="said", agent="pm", text="Yes. TURN_COMPLETE")
    event(event="wake", turn=1)
    event(event="recovered")
    event(event="add", agent="qa")
    event(event="close", by="the test")


def recovered(channel):
    """Its turn is over while the server is away."""
    channel.open("pm", "dev", default_timeout_seconds=1)


def goes_on(channel):
    """Its turn is not over when the server is back."""
    channel.open("pm", "dev", default_timeout_seconds=3_600)
    channel.say("pm", "Thinking.")


def after_recovery(channel):
    channel.until("turns/recovery")
    channel.say("pm", "I am back. TURN_COMPLETE")
    channel.wish("abort")


def state_file(name):
    """The state file of another turn manager, with a turn that is over."""
    agent = lambda state, at=None: {"state": state, "currentChannel": name, "lastActivity": at}
    return {
        "version": "1.0",
        "lastUpdated": "2026-11-02T10:05:00Z",
        "agents": {
            "pm": agent("ACTIVE", "2026-11-02T10:00:00Z"),
            "dev": agent("QUEUED"),
            "qa": agent("OFFLINE"),
        },
        "channels": {
            name: {
                "queue": ["pm", "dev", "qa"],
                "currentIndex": 0,
                "activeAgent": "pm",
                "turnStartedAt": "2026-11-02T10:00:00Z",
                "turnTimeoutAt": "2026-11-02T10:01:00Z",
            }
        },
        "history": [
            {
                "timestamp": "2026-11-02T09:59:00Z",
                "event": "turn_timeout",
                "agentId": "dev",
                "channelId": name,
                "details": {"durationSeconds": 60},
            }
        ],
    }


def imported(channel):
    """Taken over from a file when the server began."""
    channel.until("turns/recovery")
    channel.say("dev", "Late, I know. TURN_COMPLETE")


def posted(channel):
    """Taken over from a request, with nobody's turn."""
    state = state_file(channel.name)
    state["channels"][channel.name].update(activeAgent=None, turnStartedAt=None, turnTimeoutAt=None)
    body = {"state": state, "config": {"turn_order": "manual"}}
    channel.server.post("/v1/turns/state", body)
    channel.server.post("/v1/turns/state", body)
    channel.post("next", agent="dev")
    channel.say("dev", "TURN_COMPLETE")


SCENARIOS = {
    "turns-signals": signals,
    "turns-relaxed": relaxed,
    "turns-inject": inject,
    "turns-interrupt": interrupt,
    "turns-parallel": parallel,
    "turns-queued": queued,
    "turns-broadcast": broadcast,
    "turns-single": single,
    "turns-manual": manual,
    "turns-priority": priority,
    "turns-timeouts": timeouts,
    "turns-silent": silent,
    "turns-through-runs": through_runs,
}
# Open when the server is killed.
CRASHED = {"turns-recovered": recovered, "turns-goes-on": goes_on}
IMPORTED = "turns-imported"
# Once it is back.
AFTERWARDS = {"turns-recovered": after_recovery, IMPORTED: imported, "turns-posted": posted}
