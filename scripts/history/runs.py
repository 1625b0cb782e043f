"""Supervised runs: shell agents and the scripted agent, humans, crashes of ours and of theirs."""

import json
import pathlib
import signal

from .world import Project, ended, kill, wait_for

TASK = "Add CSV export"
DONE = "echo '<chorus>COMPLETE</chorus>'"
# Asks the first time, and is done then.
ASKS = f"if [ $n = 1 ]; then echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>'; else {DONE}; fi"
NEEDS_HELP = ASKS.replace("NEEDS_HUMAN: keep or drop?", "NEEDS_HELP: which way?")
# Is killed in its second iteration, and done in its third.
HANGS = "[ $n = 2 ] && { touch MARKS/here; sleep 60; }; touch f.$n; " f"[ $n -ge 3 ] && {DONE}"


def record(world):
    for name, scenario in SCENARIOS.items():
        if world.wants(name):
            scenario(Run(world, name))


class Run(Project):
    """A project with an agent that counts its starts in `n`."""

    def agent(self, script):
        count = f"{self.marks}/count"
        lines = [
            "#!/bin/sh",
            f"n=$(($(cat {count} 2>/dev/null || echo 0) + 1)); echo $n > {count}",
            "cat > /dev/null",
            script.replace("MARKS", str(self.marks)),
            "exit 0",
        ]
        self.write("agent.sh", "\n".join(lines) + "\n")
        self.command = ["./agent.sh"]

    def rounds(self, voice, *rounds):
        """Lets the scripted agent speak in the form of a host, one round a start."""
        rounds = "".join(f"[[round]]\ndo = [{steps}]\n" for steps in rounds)
        self.write("script.toml", f'voice = "{voice}"\n{rounds}'.replace("MARKS", str(self.marks)))
        count = ["--count-in", f"{self.marks}/count"]
        self.command = [str(self.world.binary), "scripted-agent", "script.toml", *count]

    def arguments(self, *options):
        return ["run", "--task", TASK, *options, "--", *self.command]

    def play(self, *options, code=0):
        self.run(*self.arguments(*options), codes=(code,))

    def begin(self, *options):
        return self.start(*self.arguments(*options))

    def go_on(self, *options, code=0):
        self.run("run", "--continue", *options, codes=(code,))

    def until_status(self, status):
        self.until(status, lambda state: state["status"]["status"] == status)


def done(run):
    run.agent(f"echo '<chorus>PROGRESS: 40</chorus>'; sleep 0.3; {DONE}")
    run.play()


def verified(run):
    """A claim counts when the check agrees; near misses are explained in the next prompt."""
    mentions = "echo 'I will print <chorus>COMPLETE</chorus> later.'"
    run.agent(f"if [ $n = 1 ]; then {mentions}; else {DONE}; fi")
    run.play("--verify", f"echo two tests failed; test $(cat {run.marks}/count) -ge 4")


def blocked(run):
    run.agent("echo '<chorus>BLOCKED: no database</chorus>'")
    run.play(code=3)


def answered(run):
    """A question waits for its answer."""
    run.agent(ASKS)
    child = run.begin()
    run.until_status("asking")
    run.run("answer", "q1", "Drop it.")
    ended(child, 0)


def answered_later(run):
    """A question that nobody waits for is answered after the end, and the run goes on."""
    run.agent(NEEDS_HELP)
    run.play("--no-wait", code=3)
    run.run("answer", "q1", "The left one.")
    run.go_on()


def asked_again(run):
    """A run that ended with its question open waits for the answer again."""
    run.agent(NEEDS_HELP)
    run.play("--no-wait", code=3)
    child = run.start("run", "--continue", "--no-wait=false")
    run.until_status("asking")
    run.run("answer", "q1", "The right one.")
    ended(child, 0)


def crashed(run):
    """A crash outranks what was said; the iteration is repeated."""
    run.agent(f"{DONE}; [ $n = 1 ] && exit 7; [ $n = 2 ] && kill -SEGV $$; exit 0")
    run.play(code=1)
    run.go_on(code=1)
    run.go_on()


def missing(run):
    run.command = ["./no-such-agent"]
    run.play(code=1)


def host(run):
    """What a host says beside the agent's words: tools, costs, a retry, limits of its service."""
    run.rounds(
        "claude-stream",
        "{ tool = { name = 'Bash', output = '2 of 118 tests failed' } }, "
        "{ spend = { tokens = 1200, dollars = 0.03 } }, { say = '<chorus>PROGRESS: 60</chorus>' }",
        "{ limit = { seconds = 1 } }",
        "{ retry = 'overloaded' }, { tool = { name = 'Edit' } }, { limit = { seconds = 1 } }",
        "{ retry = 'overloaded' }, { say = '<chorus>COMPLETE</chorus>' }, "
        "{ spend = { tokens = 800, dollars = 0.02 } }",
    )
    run.play()


def limited(run):
    """A service that refuses again and again ends the run."""
    run.settings("[run]\nmax_limit_waits = 1\nlimit_wait = 1\n")
    run.agent('echo "You\'ve hit your usage limit." >&2; exit 1')
    run.play(code=4)


def refused(run):
    run.rounds("claude-stream", "{ fail = 'OAuth token has expired' }")
    run.play(code=1)


def pilot(reply):
    return "{ say = '''\n```pilot-signal\n" + reply + "\n```\n''' }"


def gave_up(run):
    """Phases and percentages of another dialect, a contradiction, and giving up."""
    run.rounds(
        "text",
        pilot('{"v":2,"type":"status","phase":"RESEARCH","iteration":1,"max_iterations":5}')
        + ", "
        + pilot('{"v":2,"type":"status","phase":"IMPL","progress":70,"iteration":1}'),
        pilot('{"v":2,"type":"exit","success":false,"reason":"no way"}')
        + ", "
        + pilot('{"v":2,"type":"exit","success":true,"reason":"found one"}'),
        pilot('{"v":2,"type":"exit","success":false,"reason":"no way at all"}'),
    )
    run.play("--dialect", "pilot", code=1)


def no_op(run):
    """There was nothing to do, but something was changed."""
    fine = '{"v":2,"type":"exit","exit_signal":true,"success":true,"no_op":true,"reason":"fine"}'
    acts = ("{ run = 'touch new' }, ", "{ run = 'rm new' }, ")
    run.rounds("text", *(act + pilot(fine) for act in acts))
    run.git("init", "-q", ".")
    run.git("add", ".")
    run.git("commit", "-qm", "first")
    run.play("--dialect", "pilot", "--require-commit")


def promise(run):
    run.agent("echo 'The suite is green.'; echo '<promise>ALL TESTS PASS</promise>'")
    run.play("--dialect", "promise=ALL TESTS PASS")


def stagnated(run):
    """Iterations without evidence: a warning, a louder one, the end."""
    run.settings("[stagnation]\nwarn_repeats = 2\npause_repeats = 3\nabort_repeats = 4\n")
    run.agent("echo working")
    run.play(code=4)


def stagnation_paused(run):
    """Silence: a warning, then the agent is suspended; a human lets it go on, and ends it."""
    run.settings("[stagnation]\nwarn_timeout = 1\npause_timeout = 2\ngrace_period = 1\n")
    run.agent("sleep 60")
    child = run.begin()
    run.until_status("paused")
    run.run("resume")
    run.until_status("working")
    run.until_status("paused")
    run.run("abort")
    ended(child, 130)


def stagnation_over(run):
    """The work moves again after a warning."""
    run.settings("[stagnation]\nwarn_timeout = 1\n")
    run.rounds(
        "claude-stream",
        "{ pause = 2.5 }, { tool = { name = 'Bash' } }, { pause = 0.5 }, "
        "{ say = '<chorus>COMPLETE</chorus>' }",
    )
    run.play()


def stagnation_aborted(run):
    """A run that lasts too long is ended, and its partial work is kept."""
    run.settings("[stagnation]\nabort_timeout = 2\ngrace_period = 1\n")
    run.agent("echo partial > new.txt; sleep 60")
    run.git("init", "-q", ".")
    run.git("add", ".")
    run.git("commit", "-qm", "first")
    run.play(code=4)


def budget(run):
    """Two thirds of a budget, all of it, and more of it."""
    spend = "{ tool = { name = 'Bash' } }, { spend = { tokens = 100, dollars = 0.2 } }"
    run.rounds("claude-stream", spend, spend, spend, "{ say = '<chorus>COMPLETE</chorus>' }")
    run.play("--max-tokens", "300", code=5)
    run.go_on(code=2)
    run.go_on("--max-tokens", "3000")


def cost(run):
    """Money runs out while the agent works."""
    spend = "{ spend = { dollars = 0.6 } }"
    run.rounds("claude-stream", f"{{ tool = {{ name = 'Bash' }} }}, {spend}")
    run.play("--max-cost", "1", code=5)


def iteration_timeout(run):
    run.agent(f"[ $n = 1 ] && sleep 60; {DONE}")
    run.play("--timeout", "1", "--grace", "1")


def total_timeout(run):
    run.agent("trap '' TERM INT; sleep 60 & wait; sleep 60")
    run.play("--total-timeout", "1", "--grace", "1", code=4)


def grace(run):
    """An agent that says that it is done and goes on is asked to stop; then its claim counts."""
    run.rounds(
        "claude-stream",
        "{ say = '<chorus>COMPLETE</chorus>' }, { tool = { name = 'Bash' } }, { hang = true }",
    )
    run.play("--grace", "1")


def aborted(run):
    run.agent("touch MARKS/here; sleep 60")
    child = run.begin("--grace", "1")
    run.until_mark()
    run.run("abort")
    ended(child, 130)


def interrupted(run):
    run.agent("touch MARKS/here; sleep 60")
    child = run.begin("--grace", "1")
    run.until_mark()
    child.send_signal(signal.SIGINT)
    ended(child, 130)
    run.agent(DONE)
    run.go_on()


def aborted_asking(run):
    """Ended while nobody works: a question is open."""
    run.agent("echo '<chorus>NEEDS_HUMAN: keep?</chorus>'")
    child = run.begin()
    run.until_status("asking")
    run.run("abort")
    ended(child, 130)


def paused(run):
    run.agent(f"touch MARKS/here; while [ ! -e MARKS/go ]; do sleep 0.05; done; {DONE}")
    child = run.begin()
    run.until_mark()
    run.until("the agent", lambda state: state["agent"])
    run.run("pause")
    run.until_status("paused")
    run.run("resume")
    (run.marks / "go").touch()
    ended(child, 0)


def used_up(run):
    run.agent(f"touch f.$n; [ $n -lt 3 ] || {DONE}")
    run.play("--max-iterations", "2", code=5)
    run.go_on("--max-iterations", "5")


def required(run):
    """Done needs a commit and a clean work tree."""
    commit = "git add . && git -c user.name=dev -c user.email=dev@example.com commit -qm work"
    run.agent(f"{DONE}; [ $n = 1 ] && echo $n > new.txt; [ $n = 2 ] && {commit}; exit 0")
    run.git("init", "-q", ".")
    run.git("add", ".")
    run.git("commit", "-qm", "first")
    run.play("--require-commit", "--require-clean")


def resolved(run):
    """Conflicts that are claimed to be resolved and are not."""
    run.settings("[run]\nmax_attempts = 2\n")
    run.agent("echo '<chorus>RESOLVED</chorus>'; [ $n = 3 ] && echo both > a; exit 0")
    run.write("a", "base\n")
    run.git("init", "-q", ".")
    run.git("add", ".")
    run.git("commit", "-qm", "first")
    run.write("a", "<<<<<<< one\n1\n=======\n2\n>>>>>>> two\n")
    child = run.begin()
    run.until_status("asking")
    run.run("answer", "q1", "Keep both.")
    ended(child, 0)


def killed(run):
    """The supervisor is killed while the agent works, and the run is continued."""
    run.agent(HANGS)
    child = run.begin()
    run.until_mark()
    kill(child)
    run.go_on()


def killed_checking(run):
    run.agent(DONE)
    mark = f"{run.marks}/here"
    child = run.begin("--verify", f"[ -e {mark} ] || {{ touch {mark}; sleep 60; }}")
    run.until_mark()
    kill(child)
    run.go_on()


def killed_asking(run):
    run.agent(ASKS)
    child = run.begin()
    run.until_status("asking")
    kill(child)
    child = run.start("run", "--continue")
    sql = "SELECT 1 FROM events WHERE run = ? AND kind = 'recovered'"
    run.until("recovery", lambda _: run.world.query(sql, run.id()))
    run.run("answer", "q1", "Yes.")
    ended(child, 0)


def killed_paused(run):
    run.agent(f"[ $n = 1 ] && {{ touch MARKS/here; sleep 60; }}; {DONE}")
    child = run.begin()
    run.until_mark()
    run.until("the agent", lambda state: state["agent"])
    run.run("pause")
    run.until_status("paused")
    kill(child)
    run.go_on()


def killed_limited(run):
    says_done = "{ say = '<chorus>COMPLETE</chorus>' }"
    run.rounds("claude-stream", "{ limit = { seconds = 2 } }", says_done)
    child = run.begin()
    run.until_status("limited")
    kill(child)
    run.go_on()


def killed_ending(run):
    """Killed while an agent that was asked to stop did not: the run only has to be ended."""
    run.agent("trap '' TERM INT; touch MARKS/here; while :; do sleep 0.1; done")
    child = run.begin()
    run.until_mark()
    run.until("the agent", lambda state: state["agent"])
    run.run("abort")
    run.until_status("ending")
    kill(child)
    run.go_on(code=130)


def aborted_dead(run):
    """Ended from elsewhere after its supervisor died: effects stay that nobody performs."""
    run.agent("touch MARKS/here; sleep 60")
    child = run.begin()
    run.until_mark()
    run.until("the agent", lambda state: state["agent"])
    kill(child)
    # Until then the agent may still report its own end.
    agent = json.loads(run.state()["agent"])["pid"]
    wait_for("the agent's end", lambda: not pathlib.Path(f"/proc/{agent}").exists())
    run.run("abort")


def dead(run):
    """Left as a killed supervisor leaves it: its lease, its agent's identity."""
    run.agent(HANGS)
    child = run.begin()
    run.until_mark()
    run.until("the agent", lambda state: state["agent"] and state["iteration"] == 2)
    kill(child)


def dead_asking(run):
    run.agent("echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>'")
    child = run.begin()
    run.until_status("asking")
    kill(child)


def dead_answered(run):
    """Answered after its supervisor died: the next start of the agent is still to be performed."""
    run.agent(NEEDS_HELP)
    child = run.begin()
    run.until_status("asking")
    kill(child)
    run.run("answer", "q1", "The left one.")


SCENARIOS = {
    "run-done": done,
    "run-verified": verified,
    "run-blocked": blocked,
    "run-answered": answered,
    "run-answered-later": answered_later,
    "run-asked-again": asked_again,
    "run-crashed": crashed,
    "run-missing": missing,
    "run-host": host,
    "run-limited": limited,
    "run-refused": refused,
    "run-gave-up": gave_up,
    "run-no-op": no_op,
    "run-promise": promise,
    "run-stagnated": stagnated,
    "run-stagnation-paused": stagnation_paused,
    "run-stagnation-over": stagnation_over,
    "run-stagnation-aborted": stagnation_aborted,
    "run-budget": budget,
    "run-cost": cost,
    "run-iteration-timeout": iteration_timeout,
    "run-total-timeout": total_timeout,
    "run-grace": grace,
    "run-aborted": aborted,
    "run-interrupted": interrupted,
    "run-aborted-asking": aborted_asking,
    "run-paused": paused,
    "run-used-up": used_up,
    "run-required": required,
    "run-resolved": resolved,
    "run-killed": killed,
    "run-killed-checking": killed_checking,
    "run-killed-asking": killed_asking,
    "run-killed-paused": killed_paused,
    "run-killed-limited": killed_limited,
    "run-killed-ending": killed_ending,
    "run-aborted-dead": aborted_dead,
    "run-dead": dead,
    "run-dead-asking": dead_asking,
    "run-dead-answered": dead_answered,
}
