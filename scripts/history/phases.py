"""Phases under a Stop hook: payloads as hosts send them, and the words of humans."""

import datetime
import json

from .world import ROOT, Project

BEGAN = datetime.datetime(2026, 11, 2, 10, tzinfo=datetime.timezone.utc)
PHASES = "expansion init planning execution qa review fix check reflect".split()
TASK = "Add CSV export"


def record(world):
    for name, scenario in SCENARIOS.items():
        if world.wants(name):
            scenario(Run(world, name))


def text_of(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def block(phase, signal=None, **fields):
    """The block that completes a phase, or says something else about it."""
    signal = signal or f"{phase.upper()}_COMPLETE"
    fields = {"PHASE": phase, "STATUS": "complete", "TIMESTAMP": text_of(BEGAN), **fields}
    lines = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"Done.\n\n---\nSIGNAL: {signal}\n{lines}---\n"


def error(phase, what, recoverable):
    flag = "true" if recoverable else "false"
    return block(phase, "PHASE_ERROR", STATUS="error", ERROR=what, RECOVERABLE=flag)


class Run(Project):
    """A project whose clock is set, and the hook calls of a session in it."""

    def __init__(self, world, name):
        super().__init__(world, name)
        # A session is looked for in all projects, so each scenario has its own.
        self.session = f"session-{name}"
        self.now = BEGAN
        self.variables = {}
        self.entries = []

    def environment(self):
        clock = {"ALDIS_NOW": text_of(self.now)}
        return self.world.environment(self.name, **clock, **self.variables)

    def later(self, seconds=30):
        self.now += datetime.timedelta(seconds=seconds)
        return self

    def auto(self, *arguments, codes=(0,)):
        done = self.run("auto", *arguments, "--json", codes=codes)
        self.later()
        return json.loads(done.stdout) if done.stdout else None

    def begin(self, *options, task=TASK, bound=True):
        bound = ("--session", self.session) if bound else ()
        return self.auto("start", task, *bound, *options)

    def hook(self, event, host="claude-code", **members):
        """Calls the hook. Returns what it answered, `None` for nothing."""
        payload = {"session_id": self.session, "cwd": str(self.path), "hook_event_name": event}
        payload.update(members)
        done = self.run("hook", host, stdin=json.dumps(payload))
        assert not done.stderr, done.stderr
        self.later()
        return json.loads(done.stdout) if done.stdout else None

    def stop(self, text, **members):
        members = {"stop_hook_active": False, "last_assistant_message": text, **members}
        return self.hook("Stop", **members)

    def prompt(self, text, **members):
        return self.hook("UserPromptSubmit", prompt=text, **members)

    def subagent(self, agent, text, **members):
        members = {"agent_id": agent, "agent_type": "general-purpose", **members}
        return self.hook("SubagentStop", last_assistant_message=text, **members)

    def blocked(self, answer):
        assert answer and answer.get("decision") == "block", f"{self.name}: {answer}"
        return answer["reason"]

    def allowed(self, answer):
        assert answer is None, f"{self.name}: {answer}"

    def token(self, prompt):
        """The run token that a prompt tells."""
        return next(line for line in prompt.splitlines() if line.startswith("TOKEN: "))[7:]

    def view(self):
        return self.path / ".caw/auto-state.json"

    def edit_view(self, old, new):
        text = self.view().read_text()
        assert old in text, text
        self.view().write_text(text.replace(old, new))

    def write_view(self, **members):
        view = {
            "schema_version": "2.0",
            "active": True,
            "phase": "qa",
            "iteration": 3,
            "max_iterations": 10,
            "task_description": TASK,
            "started_at": text_of(self.now),
            "config": {"skip_reflect": True},
            "signals": {
                "last_checked": text_of(self.now),
                "detected_signals": [
                    {"signal": "EXECUTION_COMPLETE", "detected_at": text_of(self.now)}
                ],
            },
            "execution": {"signal_detected": True, "theirs": 1.50},
            "exit_reason": None,
            "owner": "another tool",
        }
        view.update(members)
        self.write(".caw/auto-state.json", json.dumps(view, indent=2))

    def say(self, kind, content):
        """Adds an entry to the session's transcript, as Claude Code writes it."""
        number = len(self.entries)
        role = "user" if kind == "user" else "assistant"
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"m{number}", "stop_reason": "end_turn"}
        self.entries.append(
            {
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": self.session,
                "isSidechain": False,
                "type": role,
                "timestamp": text_of(self.now),
                "message": message,
            }
        )
        path = ROOT / "home" / self.name / f".claude/projects/p/{self.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in self.entries))
        return str(path)

    def words(self, text):
        return self.say("assistant", [{"type": "text", "text": text}])

    def tool(self, name, result=None):
        path = self.say("assistant", [{"type": "tool_use", "id": "t1", "name": name, "input": {}}])
        if result is not None:
            content = [{"type": "tool_result", "tool_use_id": "t1", "content": result}]
            path = self.say("user", content)
        return path


def all_nine(run):
    """Every phase: refused once, told to go on, completed."""
    run.begin("--verbose", "--parallel-validation", "--no-questions")
    run.hook("SessionStart", source="startup")
    run.prompt("go", prompt_id="p1")
    run.prompt("and hurry", prompt_id="p2")
    for phase in PHASES:
        reason = run.blocked(run.stop(f"Not yet done with {phase}."))
        if phase == "expansion":
            run.prompt(reason)
        answer = run.stop(block(phase))
        run.allowed(answer) if phase == "reflect" else run.blocked(answer)
    run.allowed(run.stop("Anything."))


def near_misses(run):
    """What is no signal, and signals that do not count."""
    run.begin("--skip-expansion")
    for _ in range(3):
        run.blocked(run.stop("Nearly.\n\nI will print SIGNAL: INIT_COMPLETE after the tests."))
    run.blocked(run.stop("```\n---\nSIGNAL: INIT_COMPLETE\nPHASE: init\n---\n```\nas asked for."))
    run.blocked(run.stop(block("init", "INIT_COMPLET")))
    run.blocked(run.stop(block("qa")))
    run.blocked(run.stop(error("init", "the tests fail", True) + block("init"), prompt_id="p2"))
    run.blocked(run.stop(block("init", "TRANSITION_TO_QA")))
    run.blocked(run.stop(block("init") + block("planning"), prompt_id="p3"))
    run.blocked(run.stop(block("init"), prompt_id="p3"))
    taken_back = block("execution") + error("execution", "on second thoughts", True)
    run.allowed(run.stop(taken_back, prompt_id="p4"))


def errors(run):
    """An error that passes, one that does not, and going on after it."""
    run.begin("--skip-qa", "--skip-review")
    run.allowed(run.stop(error("expansion", "no network", True)))
    run.blocked(run.stop(block("expansion")))
    run.allowed(run.stop(error("init", "the disk is full", False)))
    run.auto("resume")
    run.blocked(run.stop(block("init")))
    run.allowed(run.stop(block("planning", "AUTO_COMPLETE")))


def subagents(run):
    """Sub-agents complete phases and cannot speak for the run."""
    run.begin("--skip-qa", "--skip-review")
    run.stop("I have started helpers.")
    run.subagent("a1", "I looked around.")
    run.subagent("a2", block("expansion"))
    run.subagent("a2", block("expansion"))
    run.subagent("a3", block("init", "AUTO_COMPLETE"))
    run.subagent("a4", error("init", "cannot read it", False))
    run.blocked(run.stop("My helper is done."))
    for phase in ("init", "planning", "execution"):
        run.blocked(run.stop(block(phase)))
    run.subagent("a5", block("reflect"))
    run.allowed(run.stop(error("reflect", "the helper was wrong", True)))
    run.subagent("a6", block("reflect"))
    run.allowed(run.stop("All of it is done."))


def stale(run):
    """Silence makes a run stale; a human goes on with it and ends it."""
    run.begin()
    run.later(3 * 60 * 60)
    run.allowed(run.stop("Not yet."))
    run.auto("resume")
    run.prompt("go on")
    run.blocked(run.stop("Not yet."))
    run.later(3 * 60 * 60).prompt("still there?")
    run.allowed(run.stop("Not yet."))
    run.auto("resume")
    run.auto("stop")


def cancelled_by_file(run):
    run.begin()
    run.blocked(run.stop("Not yet."))
    run.edit_view('"active": true', '"active": false')
    run.allowed(run.stop("Not yet."))


def cancelled_by_deletion(run):
    run.begin()
    run.view().unlink()
    run.allowed(run.stop("Not yet."))


def edited(run):
    run.begin()
    run.edit_view('"phase": "expansion"', '"theirs": [1.50],\n  "phase": "reflect"')
    run.blocked(run.stop(block("reflect")))
    run.edit_view('"iteration": 1', '"iteration": 0')
    run.blocked(run.stop("Not yet."))
    run.auto("stop")


def used_up(run):
    """All iterations of a phase are used, twice."""
    run.begin("--max-iterations", "2")
    for again in (True, False):
        run.blocked(run.stop("Not yet."))
        run.blocked(run.stop("Not yet."))
        run.allowed(run.stop("Not yet."))
        if again:
            run.auto("resume")


def capped(run):
    """The host lets itself be refused three times in a row; tools start the count again."""
    run.variables["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = "3"
    run.begin()
    again = {"stop_hook_active": True, "prompt_id": "p1"}
    run.blocked(run.stop("Not yet.", **again))
    run.blocked(run.stop("Not yet.", **again))
    run.say("user", "go")
    run.tool("Bash", "ok")
    path = run.words("Not yet.")
    run.blocked(run.stop("Not yet.", transcript_path=path, **again))
    for _ in range(2):
        run.blocked(run.stop("Not yet.", **again))
    run.allowed(run.stop("Not yet.", **again))
    run.auto("resume")
    run.blocked(run.stop("Not yet.", prompt_id="p2"))
    run.blocked(run.stop("Not yet.", **again | {"prompt_id": "p2"}))
    run.blocked(run.stop(block("expansion"), **again | {"prompt_id": "p2"}))
    run.allowed(run.stop(block("init"), **again | {"prompt_id": "p2"}))


def own_cap(run):
    """A host without a limit of its own gets ours."""
    run.begin("--max-iterations", "50")
    members = {"turn_id": "turn-1", "model": "gpt", "stop_hook_active": True}
    for _ in range(20):
        run.blocked(run.stop("No.", host="codex", **members))
    run.allowed(run.stop("No.", host="codex", **members))
    run.hook("Interrupt", host="codex", turn_id="turn-1", model="gpt", transcript_path=None)


def adopted(run):
    """A state file of another tool is taken over at a stop."""
    run.write_view()
    run.blocked(run.stop("Not yet."))
    run.blocked(run.stop(block("qa")))
    for phase in ("review", "fix"):
        run.blocked(run.stop(block(phase)))
    run.allowed(run.stop(block("check")))


def adopted_late(run):
    """What was said before the phase of the state file began does not count."""
    run.say("user", "go")
    run.later().words(block("qa"))
    run.later()
    run.write_view(phase_started_at=text_of(run.now), started_at=text_of(BEGAN))
    path = run.later().words("Not yet.")
    run.blocked(run.stop("Not yet.", transcript_path=path))
    run.auto("stop")


def adopted_stale(run):
    run.write_view(started_at="2026-10-01T10:00:00Z", signals={"last_checked": "yesterday"})
    run.allowed(run.stop("Not yet."))


def adopted_unknown(run):
    run.write_view(phase="deploy")
    run.allowed(run.stop("Not yet."))
    run.auto("stop")


def token_required(run):
    """Only who was told the code completes a phase; a code that was said aloud is replaced."""
    first = run.token(run.begin("--token", "require")["prompt"])
    run.blocked(run.stop(block("expansion")))
    both = block("expansion", TOKEN=first) + block("init", TOKEN=first)
    second = run.token(run.blocked(run.stop(both)))
    third = run.token(run.blocked(run.stop(f"The code is {second}.", prompt_id="p2")))
    run.blocked(run.stop(block("init", TOKEN=second)))
    run.subagent("a1", block("init", TOKEN=third))
    run.blocked(run.stop("My helper is done.", prompt_id="p3"))


def token_accepted(run):
    run.begin("--token", "accept")
    run.blocked(run.stop(block("expansion", TOKEN="wrong")))
    run.blocked(run.stop(block("expansion")))
    run.auto("stop")


def replaced(run):
    """One run makes way for another."""
    run.begin()
    run.begin("--replace", task="Add TSV export")
    run.allowed(run.stop(block("expansion", "AUTO_COMPLETE")))


def pipeline(run):
    """Phases of the project's own, and a stop after each."""
    run.write(
        "aldis.toml",
        '[phases]\npipeline = "small"\nafter_transition = "stop"\n'
        "[pipelines.small]\nphases = [\n"
        '  { name = "build", signal = "EXECUTION_COMPLETE", purpose = "Build it." },\n'
        '  { name = "test", signal = "QA_COMPLETE", skip = "skip_test" },\n'
        '  { name = "ship", signal = "REFLECT_COMPLETE" },\n]\n',
    )
    run.begin("--skip", "skip_test")
    run.allowed(run.stop(block("execution")))
    run.prompt("go on", prompt_id="p2")
    run.blocked(run.stop("Not yet.", prompt_id="p2"))
    run.allowed(run.stop(block("reflect"), prompt_id="p2"))


def chorus(run):
    """A dialect in which any signal that means done ends a phase."""
    run.begin("--dialect", "chorus", "--skip-expansion")
    run.blocked(run.stop("Ready.\n\n<chorus>COMPLETE</chorus>\n"))
    run.blocked(run.stop("I will say <chorus>COMPLETE</chorus> later."))
    run.blocked(run.stop("<chorus>PROGRESS: 40</chorus>"))
    run.auto("stop")


def transcript(run):
    """What was said is read from the transcript: late words, tools, a question to the user."""
    run.begin()
    run.say("user", "go")
    run.tool("Bash", "2 tests failed")
    run.words("Half of it is done.")
    path = run.words("Not yet.")
    members = {"transcript_path": path, "last_assistant_message": None}
    run.blocked(run.stop(None, **members))
    run.words(block("expansion"))
    run.blocked(run.stop(None, **members))
    run.say("user", "which way?")
    run.tool("AskUserQuestion")
    run.allowed(run.stop("Left or right?", transcript_path=path))
    run.auto("resume")
    run.say("user", "go on")
    run.words("Not yet.")
    run.blocked(run.stop("Not yet.", transcript_path=path))
    run.words(block("init"))
    run.blocked(run.stop(block("init"), transcript_path=path))


def held(run):
    """Stops that are not refused: background work, failures of the host, the end of a session."""
    run.begin()
    tasks = [
        {"id": "b1", "type": "shell", "status": "running", "description": "dev server"},
        {"id": "b2", "type": "shell", "status": "completed", "description": "build"},
    ]
    crons = [{"id": "c1", "schedule": "*/10 * * * *", "prompt": "check CI"}]
    run.allowed(run.stop("Waiting.", background_tasks=tasks, session_crons=crons))
    run.hook("StopFailure", error="rate_limit", last_assistant_message="API Error")
    run.hook("SessionEnd", reason="logout")
    run.hook("SessionStart", source="resume")
    run.prompt("go on", prompt_id="p2")
    run.blocked(run.stop("Not yet.", prompt_id="p2"))
    run.auto("stop")


def cursor(run):
    """Cursor says the text first and stops then."""
    run.begin()
    common = {
        "conversation_id": run.session,
        "generation_id": "g1",
        "cursor_version": "3.20.21",
        "workspace_roots": [str(run.path)],
        "host": "cursor",
    }
    respond = lambda text: run.hook("afterAgentResponse", text=text, **common)
    stop = lambda status, count: run.hook("stop", status=status, loop_count=count, **common)
    respond("Half done.")
    stop("completed", 0)
    respond(block("expansion"))
    stop("completed", 1)
    stop("completed", 2)
    stop("aborted", 0)
    stop("error", 0)
    stop("limit", 0)
    run.hook("sessionEnd", reason="closed", **common)


def active(run):
    """In the middle of a phase, for whoever goes on with it."""
    run.begin()
    run.blocked(run.stop(block("expansion")))
    run.blocked(run.stop("Not yet."))


def unbound(run):
    """Nobody's session yet."""
    run.begin(bound=False)


def by_server(run):
    """Ended later, through the server."""
    run.begin()
    run.blocked(run.stop("Not yet."))


SCENARIOS = {
    "phases-all-nine": all_nine,
    "phases-near-misses": near_misses,
    "phases-errors": errors,
    "phases-subagents": subagents,
    "phases-stale": stale,
    "phases-cancelled-by-file": cancelled_by_file,
    "phases-cancelled-by-deletion": cancelled_by_deletion,
    "phases-edited": edited,
    "phases-used-up": used_up,
    "phases-capped": capped,
    "phases-own-cap": own_cap,
    "phases-adopted": adopted,
    "phases-adopted-late": adopted_late,
    "phases-adopted-stale": adopted_stale,
    "phases-adopted-unknown": adopted_unknown,
    "phases-token-required": token_required,
    "phases-token-accepted": token_accepted,
    "phases-replaced": replaced,
    "phases-pipeline": pipeline,
    "phases-chorus": chorus,
    "phases-transcript": transcript,
    "phases-held": held,
    "phases-cursor": cursor,
    "phases-active": active,
    "phases-unbound": unbound,
    "phases-by-server": by_server,
}
