"""Deliveries whose agents are a program's own, through the server: every rule, one story each."""

import json
import re
import time

ACCEPTANCE = ["it works"]


def tasks(*ids, **more):
    return [{"id": id, "title": f"Task {id}", "acceptance": ACCEPTANCE, **more} for id in ids]


def deliver(run, listed, key=None, secret=None, title="Billing export", **config):
    """Begins a delivery; returns its agents."""
    start = {"plan": {"title": title, "tasks": listed}, "config": config}
    if secret:
        start["token"] = secret
    run.begin("delivery", start, key)
    return Agents(run)


class Agents:
    """The agents at work, by what they were started for."""

    def __init__(self, run):
        self.run, self.live, self.prompts = run, {}, {}

    def event(self, event, key=None, **members):
        return self.heed(self.run.event(event, key, **members))

    def wish(self, what, **body):
        return self.heed(self.run.wish(what, **body))

    def heed(self, answer):
        """Notes which agents are to be started."""
        for effect in answer["effects"]:
            if effect["effect"] == "dispatch":
                who = (effect["role"], effect.get("task"))
                self.live[who] = effect["agent"]
                self.prompts[who] = effect["prompt"]
        return answer

    def says(self, role, task, text, key=None, **more):
        """Lets the agent of a role and a task say its last word."""
        agent = self.live[role, task]
        return self.event("finished", key, agent=agent, text=text, **more)

    def ready(self, task, more=""):
        words = f"Done.\n\nREADY_FOR_REVIEW: {task}\nSummary: done\n{more}"
        return self.says("developer", task, words)

    def passes(self, task):
        self.ready(task)
        self.says("critic", task, f"REVIEW_PASSED: {task}")

    def completes(self, task):
        self.passes(task)
        return self.says("auditor", task, f"AUDIT_PASSED: {task}")

    def fails(self, task, *issues, more=""):
        listed = "".join(f"- {issue}\n" for issue in issues)
        return self.says("critic", task, f"REVIEW_FAILED: {task}\nIssues Found:\n{listed}{more}")

    def catch_up(self):
        """Notes agents that were started by an alarm."""
        sql = "SELECT body FROM decisions WHERE run = ? ORDER BY seq"
        for (body,) in self.run.world.query(sql, self.run.name):
            self.heed({"effects": json.loads(body).get("effects", [])})


def whole(run):
    """A task of each kind of way, with repeats of requests."""
    listed = tasks("a", "b") + tasks("c", needs=["a"], priority="high") + tasks("d", done=True)
    agents = deliver(run, listed, "open", slots=1)
    run.begin("delivery", {"plan": {"tasks": listed}}, "open")
    agents.event("begin", "begin")
    agents.event("begin", "begin")
    agents.completes("a")
    agents.completes("c")
    agents.completes("b")


def rework(run):
    """Findings: open, disputed, settled, raised again, and no fewer of them."""
    agents = deliver(run, tasks("csv"), failure_limit=5, plateau_rounds=3)
    agents.event("begin")
    agents.ready("csv")
    agents.fails("csv", "a.rs:1: wrong quotes", "a.rs:9: no test", "b.rs:3: bad name")
    agents.ready("csv", "Disputed:\n- bad name: it is the team's word\n")
    agents.fails("csv", "a.rs:2: wrong quotes")
    agents.ready("csv")
    agents.fails("csv", "b.rs:3: bad name")
    agents.fails("csv", "b.rs:3: bad name", more="Evidence: the style guide, section 4\n")
    agents.ready("csv")
    agents.fails("csv", "a.rs:2: wrong quotes", "b.rs:3: bad name", more="Evidence: it fails\n")
    agents.wish("answer", id="q1", text="Rename it.")
    agents.passes("csv")
    agents.says("auditor", "csv", "AUDIT_FAILED: csv\nFailed Criteria:\n- it works\n")
    agents.wish("abort")


def refused_work(run):
    """Reviews and audits that fail as often as they may; the task is given up."""
    listed = tasks("a") + tasks("b", needs=["a"])
    agents = deliver(run, listed, failure_limit=2, plateau_rounds=9)
    agents.event("begin")
    for number in range(2):
        agents.ready("a")
        agents.fails("a", f"a.rs:{number}: wrong number {'x' * number}")
    agents.wish("answer", id="q1", text="Go on.")
    for number in range(2):
        agents.passes("a")
        agents.says("auditor", "a", "AUDIT_FAILED: a\nIssues Found:\n- it does not\n")
    agents.wish("answer", id="q2", text="fail")


def repair(run):
    """What all tasks need is broken: two report it, it is repaired at the third attempt."""
    agents = deliver(run, tasks("a", "b"), experts={"ops": "machines"}, remediation_attempts=9)
    agents.event("begin")
    agents.ready("b")
    agents.says("critic", "b", "REVIEW_PASSED: b")
    agents.says("developer", "a", "INFRA_BLOCKED: a\nIssue: the database is down\nCommand: make\n")
    agents.says("auditor", "b", "AUDIT_BLOCKED: b\nPre-existing Failures:\n- test_old\n")
    repairs = lambda text, **more: agents.says("remediation", None, text, **more)
    judges = lambda text: agents.says("health_auditor", None, text)
    repairs("I do not know.")
    who = agents.live["remediation", None]
    agents.event("heard", agent=who, text="CHECKPOINT: a\nProgress: 1\n")
    agents.event("active", agent=who)
    repairs("SEEKING_DIVINE_CLARIFICATION\nQuestion: may I restart it?\n")
    agents.wish("answer", id="q1", text="Yes.")
    repairs("FILE CONFLICT: src/db.rs\nCan Wait: NO\n")
    repairs(request("ops", "Which port?"))
    agents.says("expert", None, "EXPERT_ADVICE: req-1\nAdvice: the usual one\n")
    repairs(request("nobody", "Which port?"))
    repairs("REMEDIATION_COMPLETE\nSummary: restarted\n")
    judges("HEALTH_AUDIT: UNHEALTHY\nSummary: it does not answer\n")
    repairs("Oops.", exit={"code": 3, "signal": None})
    repairs("REMEDIATION_COMPLETE\n")
    judges("HEALTH_AUDIT: HEALTHY\n")
    agents.says("auditor", "b", "AUDIT_PASSED: b")
    agents.wish("abort")


def exhausted(run):
    """The repair does not succeed: again, as if it had, or not at all."""
    agents = deliver(run, tasks("a"), remediation_attempts=1)
    agents.event("begin")
    blocked = "INFRA_BLOCKED: a\nIssue: no disk\n"
    agents.says("developer", "a", blocked)
    for question, word in (("q1", "retry with more memory"), ("q2", "override")):
        agents.says("remediation", None, "REMEDIATION_COMPLETE\n")
        agents.says("health_auditor", None, "HEALTH_AUDIT: UNHEALTHY\n")
        agents.wish("answer", id=question, text=word)
    agents.says("developer", "a", blocked)
    agents.says("remediation", None, "REMEDIATION_COMPLETE\n")
    agents.says("health_auditor", None, "HEALTH_AUDIT: MAYBE\n")
    agents.says("health_auditor", None, "HEALTH_AUDIT: UNHEALTHY\n")
    agents.wish("answer", id="q3", text="halt")


def request(expert, prompt, task=None):
    about = f"Task: {task}\n" if task else ""
    return (
        f"EXPERT_REQUEST\n{about}Target Agent: {expert}\nRequest Type: decision\n"
        "Context Snapshot: notes.md\n\n---DELEGATION PROMPT START---\n"
        f"{prompt}\n---DELEGATION PROMPT END---\n"
    )


def experts(run):
    """A planner makes experts; one is asked, and answers, fails, gives up, is not there."""
    known = {"keys": "key derivation"}
    agents = deliver(run, tasks("a"), planner=True, expert_tries=2, experts=known)
    agents.event("begin")
    created = "EXPERT_CREATED: {}\nFile: {}\nGap Filled: {}\n\n"
    words = created.format("io", "experts/io.md", "disks")
    words += created.format("gone", "experts/gone.md", "nothing")
    words += created.format("evil", "../evil.md", "nothing")
    agents.says("planner", None, words)
    agents.event("expert_checked", name="io", present=True)
    agents.event("expert_checked", name="gone", present=False)
    asks = lambda expert: agents.says("developer", "a", request(expert, "Which KDF?", "a"))
    asks("nobody")
    asks("keys")
    agents.says("expert", "a", "EXPERT_ADVICE: req-1\nAdvice: the usual one\n")
    asks("IO")
    agents.says("expert", "a", "I think so.", exit={"code": None, "signal": 9})
    agents.says("expert", "a", "EXPERT_UNSUCCESSFUL: req-2\nReason: no idea\n")
    agents.wish("answer", id="q1", text="Ask the other one.")
    asks("keys")
    agents.says("expert", "a", "FILE CONFLICT: a.rs\nCan Wait: YES\n")
    agents.says("expert", "a", "EXPERT_ADVICE: req-1\nAdvice: about something else\n")
    agents.wish("answer", id="q2", text="Use the usual one.")
    agents.wish("abort")


def conflicts(run):
    """Files: free, taken and waited for, taken and shared, outside, never given back."""
    listed = tasks("a", files=["src/a.rs"]) + tasks("b", "d") + tasks("c", files=["./src/a.rs"])
    agents = deliver(run, listed, conflict_wait=1, conflict_retries=1)
    agents.event("begin")
    asks = lambda task, path, wait: agents.says(
        "developer", task, f"FILE CONFLICT: {path}\nCan Wait: {wait}\n"
    )
    asks("b", "src/b.rs", "YES")
    asks("b", "src/a.rs", "YES")
    asks("d", "../etc/passwd", "YES")
    # The scanner lets no such path through; a program that reads replies itself may.
    outside = [{"name": "FILE CONFLICT", "subject": "../etc/passwd", "quote": "FILE CONFLICT"}]
    agents.event("finished", agent=agents.live["developer", "d"], signals=outside)
    asks("d", "src/a.rs", "NO")
    agents.run.until("delivery/conflict", 4)
    agents.catch_up()
    asks("b", "src/a.rs", "YES")
    agents.run.until("delivery/question")
    agents.wish("answer", id="q1", text="Wait for it.")
    asks("b", "src/a.rs", "YES")
    agents.completes("a")
    agents.ready("d")
    agents.says("critic", "d", "REVIEW_PASSED: d")
    agents.says("auditor", "d", "AUDIT_PASSED: d")
    agents.wish("abort")


def expansions(run):
    """A business analyst who is sure, one who is not, and one who has no criteria."""
    listed = [{"id": id, "title": f"Task {id}"} for id in "abcd"]
    agents = deliver(run, listed, business_analyst=True)
    agents.event("begin")
    expands = lambda task, confidence, criteria="Acceptance Criteria:\n- it works\n": agents.says(
        "business_analyst",
        task,
        f"EXPANDED_TASK_SPECIFICATION: {task}\nConfidence: {confidence}\n"
        f"Expanded Specification: do {task}\n{criteria}Technical Approach: by hand\n"
        f"Target Files:\n- src/{task}.rs\n",
    )
    expands("a", "MEDIUM", "")
    expands("a", "MEDIUM")
    expands("b", "LOW")
    agents.wish("answer", id="q1", text="accept")
    expands("c", "LOW")
    agents.wish("answer", id="q2", text="No: do less.")
    expands("c", "HIGH")
    expands("d", "LOW")
    agents.wish("answer", id="q3", text="fail")
    agents.wish("abort")


def unknown(run):
    """Replies without a signal: asked for a sign of life, then again, then given up."""
    agents = deliver(run, tasks("a"), timeout_limit=2)
    agents.event("begin")
    who = agents.live["developer", "a"]
    agents.says("developer", "a", "All done, I think.")
    agents.event("heard", agent=who, text="CHECKPOINT: a\nProgress: 90%\nBlockers: none\n")
    agents.says("developer", "a", "I will say READY_FOR_REVIEW: a soon.")
    agents.event("heard", agent=who, text="Still here.")
    agents.says("developer", "a", "Well.")
    agents.says("developer", "a", "EXPERT_REQUEST\nTarget Agent: keys\n")
    agents.says("developer", "a", "Well.")
    agents.says("developer", "a", "Well.")
    agents.wish("answer", id="q1", text="Say the word.")
    agents.wish("abort")


def unheard(run):
    """The same for agents that cannot be asked."""
    agents = deliver(run, tasks("a"), requests=False, unknown_limit=2, timeout_limit=9)
    agents.event("begin")
    agents.says("developer", "a", "All done, I think.")
    agents.says("developer", "a", "```\nREADY_FOR_REVIEW: a\n```\nas I said.")
    agents.ready("a")
    agents.says("critic", "a", "Fine.")
    agents.says("critic", "a", "Fine, really.")
    agents.wish("abort")


def refusals(run):
    """Signals of the wrong role, about something else, contradictory, without a verdict."""
    agents = deliver(run, tasks("a", "b"), refusal_limit=3, slots=1)
    agents.event("begin")
    agents.says("developer", "a", "AUDIT_PASSED: a")
    agents.says("developer", "a", "READY_FOR_REVIEW: b")
    agents.says("developer", "a", "CHECKPOINT: a\nProgress: nearly\n")
    agents.wish("answer", id="q1", text="Only your own.")
    agents.says("developer", "a", "READY_FOR_REVIEW: b\n\nREADY_FOR_REVIEW: a\nSummary: done\n")
    both = "REVIEW_FAILED: a\nIssues Found:\n- a.rs:1: wrong\n\nREVIEW_PASSED: a\n"
    agents.says("critic", "a", both)
    agents.says("critic", "a", "REVIEW_PASSED: a\n\nREADY_FOR_REVIEW: a\n")
    auditor = agents.live["auditor", "a"]
    both = "AUDIT_PASSED: a\n\nAUDIT_BLOCKED: a\nPre-existing Failures:\n- old\n"
    agents.says("auditor", "a", both)
    agents.says("remediation", None, "REMEDIATION_COMPLETE\n\nAUDIT_PASSED: a\n")
    agents.says("health_auditor", None, "HEALTH_AUDIT: HEALTHY\n")
    agents.event("finished", agent=auditor, text="AUDIT_PASSED: a")
    agents.event("heard", agent=auditor, text="CHECKPOINT: a\nProgress: 1\n")
    agents.event("heard", agent=agents.live["auditor", "a"], text="CHECKPOINT: a\nProgress: 1\n")
    agents.says("auditor", "a", "AUDIT_PASSED: a")
    agents.wish("abort")


def matrix(run):
    """A claim needs a table of checks by environment."""
    environments = {"require_environment_matrix": True, "environments": ["linux", "macos"]}
    agents = deliver(run, tasks("a"), refusal_limit=9, failure_limit=9, **environments)
    agents.event("begin")
    rows = lambda *rows: "Verification Results:\n" + "".join(f"- {row}\n" for row in rows)
    both = rows("tests (linux): PASS", "tests (macos): PASS")
    agents.ready("a")
    agents.ready("a", rows("tests (linux): PASS"))
    agents.ready("a", rows("tests (linux): PASS", "tests (macos): FAIL"))
    agents.ready("a", both)
    agents.says("critic", "a", "REVIEW_PASSED: a")
    agents.says("auditor", "a", "AUDIT_PASSED: a\n" + rows("tests (linux): PASS"))
    agents.says("auditor", "a", "AUDIT_PASSED: a\n" + rows("tests (macos): FAILED"))
    agents.wish("abort")


def timeouts(run):
    """Agents of each kind that take too long."""
    limits = dict.fromkeys(
        ("developer", "critic", "auditor", "remediation", "health_auditor", "expert", "planner"), 1
    )
    timing = {"timeouts": limits, "timeout_limit": 2, "planner": True, "remediation_attempts": 2}
    agents = deliver(run, tasks("a"), experts={"keys": "keys"}, expert_tries=1, **timing)
    agents.event("begin")
    agents.run.until("delivery/plan")
    agents.run.until("delivery/timeout")
    agents.run.until("delivery/question")
    agents.wish("answer", id="q1", text="Be quick.")
    agents.says("developer", "a", request("keys", "Which KDF?", "a"))
    agents.run.until("delivery/question", 2)
    agents.wish("answer", id="q2", text="The usual one.")
    agents.says("developer", "a", "INFRA_BLOCKED: a\nIssue: slow disk\n")
    agents.run.until("delivery/question", 3)
    agents.wish("answer", id="q3", text="halt")


def stalled(run):
    """No sign of life, although one was asked for."""
    timing = {"checkpoint_every": 1, "checkpoint_answer": 1, "checkpoint_misses": 2}
    agents = deliver(run, tasks("a"), **timing)
    agents.event("begin")
    agents.run.until("delivery/checkpoint")
    words = "CHECKPOINT: a\nProgress: half\nCurrent Activity: tests\n"
    agents.event("heard", agent=agents.live["developer", "a"], text=words)
    agents.run.until("delivery/timeout")
    agents.catch_up()
    agents.event("active", agent=agents.live["developer", "a"])
    agents.says("developer", "a", "Hm.")
    agents.run.until("delivery/timeout", 2)
    agents.wish("abort")


def stagnated(run):
    """Work that does not move: a warning, progress, waiting for a service, the end."""
    watched = {"enabled": True, "warn_repeats": 2, "pause_repeats": 4, "warn_timeout": 1}
    agents = deliver(run, tasks("a"), stagnation={**watched, "pause_timeout": 60})
    agents.event("begin")
    who = agents.live["developer", "a"]
    agents.run.until("delivery/stagnation")
    agents.event("worked", agent=who)
    agents.event("waiting", agent=who)
    agents.event("active", agent=who)
    words = "CHECKPOINT: a\nProgress: half\n"
    for _ in range(4):
        agents.event("heard", agent=who, text=words)
    agents.wish("abort")


def merges(run):
    """Work that cannot be merged, and work that can."""
    agents = deliver(run, tasks("a"), worktrees=True, failure_limit=2)
    agents.event("begin")
    for ok, detail in ((False, "a.rs conflicts"), (False, "a.rs still conflicts"), (True, "")):
        if detail == "":
            agents.wish("answer", id="q1", text="Take theirs.")
        agents.completes("a")
        agents.event("recovered")
        agents.event("merged", task="a", ok=ok, detail=detail)


def budget(run):
    """Tokens, money and time, each used up and raised."""
    agents = deliver(run, tasks("a"), max_tokens=100, max_micro_dollars=1_000_000)
    agents.event("begin")
    who = agents.live["developer", "a"]
    agents.event("spent", agent=who, tokens=70)
    agents.event("spent", agent=who, tokens=40)
    agents.event("spent", agent=who, tokens=5)
    agents.event("reopen", config={"max_tokens": 1_000, "max_micro_dollars": 1_000_000})
    agents.event("spent", agent=agents.live["developer", "a"], micro_dollars=1_234_567)
    agents.event("reopen", config={"max_time": 1, "requests": True})
    agents.run.until("delivery/used-up", 3)
    agents.event("reopen", config={"requests": True})
    agents.completes("a")
    agents.event("reopen", config={})


def limits(run):
    """Limits of the service, of agents per task, of tasks that are given back."""
    agents = deliver(run, tasks("a", "b"), slots=1, incomplete_limit=2, dispatch_limit=4)
    agents.event("begin")
    who = agents.live["developer", "a"]
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3_600))
    agents.event("limited", agent=who, until=until)
    lacking = "TASK_INCOMPLETE: {}\nBlocker: no key\nNeeded: a key\n"
    agents.says("developer", "a", lacking.format("a"))
    agents.says("developer", "b", lacking.format("b"))
    agents.says("developer", "a", lacking.format("a"))
    agents.wish("answer", id="q1", text="Here it is.")
    agents.completes("a")
    agents.says("developer", "b", "Oops.", exit={"code": 9, "signal": None})
    agents.says("developer", "b", "SEEKING_DIVINE_CLARIFICATION\nTask: b\nQuestion: how?\n")
    agents.wish("answer", id="q2", text="By hand.")
    agents.ready("b")
    agents.says("critic", "b", "Oops.", exit={"code": None, "signal": 11})
    agents.says("critic", "b", "Oops.", exit={"code": None, "signal": None})
    agents.says("critic", "b", "REVIEW_PASSED: b")
    agents.wish("answer", id="q3", text="One more.")
    agents.says("auditor", "b", "AUDIT_PASSED: b")


def humans(run):
    """Paused, resumed, recovered, aborted, reopened."""
    agents = deliver(run, tasks("a", "b"), slots=1)
    agents.event("begin")
    agents.wish("pause")
    agents.ready("a")
    agents.wish("resume")
    agents.event("recovered")
    agents.says("critic", "a", "REVIEW_PASSED: a")
    agents.wish("abort")
    agents.event("reopen", config={"slots": 2, "requests": True})
    agents.says("auditor", "a", "AUDIT_PASSED: a")
    agents.event("abort", by="the program")


def codes(run):
    """Each agent has a code of its own; its signals must carry it, or no other."""
    policy = run.name.rpartition("-")[2]
    agents = deliver(run, tasks("a"), secret="k7qz0123abcd", token=policy)
    agents.event("begin")
    agents.ready("a", "TOKEN: 00000000\n")
    if policy == "require":
        agents.ready("a")
    for role, signal in (("developer", "READY_FOR_REVIEW: a\n"), ("critic", "REVIEW_PASSED: a\n")):
        code = re.search(r"The code of this run is (\w+)", agents.prompts[role, "a"])[1]
        agents.says(role, "a", f"{signal}TOKEN: {code}\n")
    agents.wish("abort")


def ready(run):
    """Planned and never begun."""
    deliver(run, tasks("a"), title="Not begun")


def active(run):
    """In the middle: a review, a question, an alarm, and effects that nobody has taken."""
    agents = deliver(run, tasks("a", "b") + tasks("c", needs=["a"]))
    agents.event("begin")
    agents.ready("a")
    asks = "SEEKING_DIVINE_CLARIFICATION\nTask: b\nQuestion: keep or drop?\n"
    agents.says("developer", "b", asks)


SCENARIOS = {
    "delivery-served-whole": whole,
    "delivery-served-rework": rework,
    "delivery-served-refused-work": refused_work,
    "delivery-served-repair": repair,
    "delivery-served-exhausted": exhausted,
    "delivery-served-experts": experts,
    "delivery-served-conflicts": conflicts,
    "delivery-served-expansions": expansions,
    "delivery-served-unknown": unknown,
    "delivery-served-unheard": unheard,
    "delivery-served-refusals": refusals,
    "delivery-served-matrix": matrix,
    "delivery-served-timeouts": timeouts,
    "delivery-served-stalled": stalled,
    "delivery-served-stagnated": stagnated,
    "delivery-served-merges": merges,
    "delivery-served-budget": budget,
    "delivery-served-limits": limits,
    "delivery-served-humans": humans,
    "delivery-served-token-accept": codes,
    "delivery-served-token-require": codes,
    "delivery-served-ready": ready,
}
