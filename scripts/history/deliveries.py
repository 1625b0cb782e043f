"""Deliveries with real processes: plans, questions, repairs, work trees, budgets, crashes."""

from .world import Project, ended, kill, wait_for

ONE = "# One\n\n- [ ] csv: Write the CSV\n  - [ ] quotes are escaped\n"
ASKS = (
    "[ $role = developer ] && first && { printf 'SEEKING_DIVINE_CLARIFICATION\\nTask: csv\\n"
    "Question: keep or drop?\\n'; exit 0; }"
)
# Says what its role should, unless SPECIAL says something else.
AGENT = r"""#!/bin/sh
prompt=$(cat)
role=$ALDIS_ROLE task=$ALDIS_TASK
first() { [ ! -e "MARKS/$role-$task" ] && touch "MARKS/$role-$task"; }
SPECIAL
case $role in
developer) printf 'Done.\n\nREADY_FOR_REVIEW: %s\nSummary: done\n' "$task";;
critic) printf 'REVIEW_PASSED: %s\n' "$task";;
auditor) printf 'AUDIT_PASSED: %s\n' "$task";;
remediation) echo REMEDIATION_COMPLETE;;
health_auditor) echo 'HEALTH_AUDIT: HEALTHY';;
esac
"""
# Speaks as Claude Code does: its session, its words, what it has cost.
SPEAK = r"""
speak() {
    session="session-$role-$(ls MARKS | wc -l)"
    printf '{"type":"system","subtype":"init","session_id":"%s","cwd":".","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"default"}
' "$session"
    printf '{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},"parent_tool_use_id":null,"session_id":"%s"}
' "$session"
    printf '{"type":"assistant","message":{"id":"msg_2","type":"message","role":"assistant","model":"scripted","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null,"session_id":"%s"}
' "$1" "$session"
    printf '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.40,"usage":{"input_tokens":90,"output_tokens":10},"session_id":"%s"}
' "$session"
    exit 0
}
"""
ALL_SPEAK = """
case $role in
developer) speak "READY_FOR_REVIEW: $task";;
critic) speak "REVIEW_PASSED: $task";;
auditor) speak "AUDIT_PASSED: $task";;
esac
"""
# Much goes wrong, once each.
EVENTFUL = r"""
case $role-$task in
critic-a) first && { printf 'REVIEW_FAILED: a\nIssues Found:\n- a.rs:1: wrong\n'; exit 0; };;
auditor-b) first && { printf 'AUDIT_FAILED: b\nFailed Criteria:\n- it works\n'; exit 0; };;
developer-c) first && { printf 'INFRA_BLOCKED: c\nIssue: the database is down\n'; exit 0; };;
developer-d) first && exit 9;;
developer-e) first && { printf 'FILE CONFLICT: src/shared.rs\nCan Wait: YES\n'; exit 0; };;
developer-f) first && { printf 'EXPERT_REQUEST\nTarget Agent: crypto\nRequest Type: decision\nContext Snapshot: notes.md\n\n---DELEGATION PROMPT START---\nWhich KDF?\n---DELEGATION PROMPT END---\n'; exit 0; };;
critic-f) first && { echo 'I looked at it.'; exit 0; };;
developer-g) first && { printf 'TASK_INCOMPLETE: g\nNeeded: a key\n'; exit 0; };;
expert-*) printf 'EXPERT_ADVICE: %s\nAdvice: the usual one\n' "$(printf '%s' "$prompt" | grep -o 'req-[0-9]*' | head -n 1)"; exit 0;;
esac
"""


def record(world):
    for name, scenario in SCENARIOS.items():
        if world.wants(name):
            scenario(Delivery(world, name))


def plan(*tasks):
    lines = ["# Many", ""]
    for task in tasks:
        lines += [f"- [ ] {task}: Task {task}", "  - [ ] it works"]
    return "\n".join(lines) + "\n"


class Delivery(Project):
    def agents(self, special="", text=ONE):
        script = AGENT.replace("SPECIAL", special).replace("MARKS", str(self.marks))
        self.write("agent.sh", script)
        self.write("plan.md", text)

    def speaking(self, special="", text=ONE):
        self.agents(SPEAK + special + ALL_SPEAK, text)

    def arguments(self, *options, command="./agent.sh"):
        return ["deliver", "plan.md", *options, "--", command]

    def play(self, *options, code=0, command="./agent.sh"):
        self.run(*self.arguments(*options, command=command), codes=(code,))

    def begin(self, *options):
        return self.start(*self.arguments(*options))

    def go_on(self, *options, code=0):
        self.run("deliver", "--continue", *options, codes=(code,))

    def question(self):
        """Waits until a question is asked; returns its name."""
        self.until("a question", lambda state: state["questions"])
        return next(iter(self.state()["questions"]))

    def until_working(self):
        """Waits until an agent works and its process is known."""
        self.until_mark()
        sql = "SELECT 1 FROM parts WHERE run = ? AND key LIKE 'process/%'"
        wait_for(f"{self.name}: a process", lambda: self.world.query(sql, self.id()))

    def commit(self):
        self.git("init", "-q", ".")
        self.git("add", ".")
        self.git("commit", "-qm", "first")


def demo(delivery):
    delivery.run("demo", "--fast")


def eventful(delivery):
    delivery.settings('[experts.crypto]\nabout = "keys"\n')
    delivery.agents(EVENTFUL, plan(*"abcdefg"))
    delivery.play("--slots", "3")


def answered(delivery):
    delivery.agents(ASKS)
    child = delivery.begin()
    delivery.run("answer", delivery.question(), "Drop it.")
    ended(child, 0)


def answered_later(delivery):
    delivery.agents(ASKS)
    delivery.play("--no-wait", code=3)
    delivery.run("answer", delivery.question(), "Drop it.")
    delivery.go_on()


def given_up(delivery):
    delivery.agents(ASKS, ONE + "- [ ] guide: Describe it\n  needs: csv\n  - [ ] all of it\n")
    child = delivery.begin()
    delivery.run("answer", delivery.question(), "fail")
    ended(child, 1)


def money(delivery):
    """Money ends a delivery, and more of it lets it go on."""
    delivery.speaking()
    delivery.play("--max-cost", "0.70", code=5)
    delivery.go_on("--max-cost", "9")


def tokens(delivery):
    delivery.settings("[deliver]\nmax_tokens = 150\n")
    delivery.speaking()
    delivery.play(code=5)


def time_up(delivery):
    delivery.settings("[deliver]\ntotal_timeout = 1\n")
    delivery.agents("[ $role = developer ] && first && sleep 60")
    delivery.play(code=4)
    delivery.go_on("--total-timeout", "1h")


def work_trees(delivery):
    """Work trees are merged; one conflicts first."""
    special = (
        '[ $role = developer ] && { if first; then echo "$task" > shared.txt; '
        "else git checkout -q HEAD -- . ; git -c user.name=dev -c user.email=dev@example.com "
        'merge -q -X theirs main; echo "$task" > "$task.txt"; fi; }'
    )
    delivery.agents(special, plan("a", "b"))
    delivery.commit()
    delivery.play("--worktrees", "--slots", "2", command=str(delivery.path / "agent.sh"))


def paused(delivery):
    """A human lets it rest and go on, ends it, and changes their mind."""
    special = "[ $role = developer ] && first && { touch MARKS/here; sleep 60; }"
    delivery.agents(special)
    child = delivery.begin()
    delivery.until_working()
    delivery.run("pause")
    delivery.until("the pause", lambda state: state["paused"])
    delivery.run("resume")
    delivery.run("abort")
    ended(child, 130)
    delivery.go_on()


def killed(delivery):
    """The coordinator is killed while agents work, and continued."""
    special = "[ $role = critic ] && first && { touch MARKS/here; sleep 60; }"
    delivery.agents(special, plan("a", "b"))
    child = delivery.begin()
    delivery.until_working()
    kill(child)
    delivery.go_on()


def stagnated(delivery):
    """A silent agent is ended; then a human is asked."""
    delivery.settings(
        "[stagnation]\nwarn_timeout = 1\npause_timeout = 2\n[deliver]\ntimeout_limit = 2\n"
    )
    delivery.agents("sleep 60")
    delivery.play("--no-wait", code=3)
    delivery.run("abort")


def repeated(delivery):
    """The same checkpoint again and again ends an agent."""
    special = r"""
[ $role = developer ] && first && {
    printf '{"type":"system","subtype":"init","session_id":"s","cwd":".","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"default"}\n'
    while :; do
        number=$((number + 1))
        printf '{"type":"assistant","message":{"id":"msg_%s","type":"message","role":"assistant","model":"scripted","content":[{"type":"text","text":"CHECKPOINT: csv\\nProgress: 10%%"}]},"parent_tool_use_id":null,"session_id":"s"}\n' "$number"
        sleep 0.1
    done
}
"""
    delivery.speaking(special)
    delivery.play()


def limited(delivery):
    """A limit of the service is waited for; a host that tries again by itself is left alone."""
    special = (
        '[ $role = developer ] && first && { echo "Claude AI usage limit reached|$(($(date +%s) + 2))"; '
        "exit 1; }"
    )
    delivery.agents(special)
    delivery.play()


def timeouts(delivery):
    delivery.settings("[deliver.timeouts]\ndeveloper = 1\n")
    delivery.agents("[ $role = developer ] && first && sleep 60")
    delivery.play()


def sessions(delivery):
    """A developer goes on in its own session after a failed review."""
    special = '[ $role = critic ] && first && speak "REVIEW_FAILED: csv\\\\nIssues Found:\\\\n- a.rs:1: wrong"\n'
    delivery.speaking(special)
    resume = '["./agent.sh", "--resume", "{session}"]'
    delivery.settings(f'[roles.developer]\nresume = {resume}\nprompt = "Be brief.\\n"\n')
    delivery.play()


def planned(delivery):
    """A planner makes experts, a business analyst gives a task its criteria."""
    delivery.settings("[deliver]\nplanner = true\n")
    special = r"""
case $role in
planner) printf 'Two are needed.\n\nEXPERT_CREATED: keys\nFile: experts/keys.md\nGap Filled: key derivation\n\nEXPERT_CREATED: gone\nFile: experts/gone.md\nGap Filled: nothing\n'; exit 0;;
business_analyst) printf 'EXPANDED_TASK_SPECIFICATION: csv\nConfidence: HIGH\nExpanded Specification: Write the CSV with quotes.\nAcceptance Criteria:\n- quotes are escaped\nTechnical Approach: a writer\nTarget Files:\n- src/csv.rs\n'; exit 0;;
esac
"""
    delivery.agents(special, "# One\n\n- [ ] csv: Write the CSV\n")
    delivery.write("experts/keys.md", "You know keys.\n")
    delivery.play("--business-analyst")


def dead(delivery):
    """Left as a killed coordinator leaves it: its lease, the processes of its agents."""
    special = "[ $role = developer ] && first && { touch MARKS/here; sleep 60; }"
    delivery.agents(special, plan("a", "b", "c"))
    child = delivery.begin("--slots", "2")
    delivery.until_working()
    kill(child)


def dead_answered(delivery):
    """Answered after nobody waited any more: the next agent is still to be started."""
    delivery.agents(ASKS)
    delivery.play("--no-wait", code=3)
    delivery.run("answer", delivery.question(), "Drop it.")


def waiting(delivery):
    """Waits for a human."""
    delivery.agents(ASKS)
    delivery.play("--no-wait", code=3)


SCENARIOS = {
    "delivery-demo": demo,
    "delivery-eventful": eventful,
    "delivery-answered": answered,
    "delivery-answered-later": answered_later,
    "delivery-given-up": given_up,
    "delivery-money": money,
    "delivery-tokens": tokens,
    "delivery-time-up": time_up,
    "delivery-work-trees": work_trees,
    "delivery-paused": paused,
    "delivery-killed": killed,
    "delivery-stagnated": stagnated,
    "delivery-repeated": repeated,
    "delivery-limited": limited,
    "delivery-timeouts": timeouts,
    "delivery-sessions": sessions,
    "delivery-planned": planned,
    "delivery-dead": dead,
    "delivery-dead-answered": dead_answered,
    "delivery-waiting": waiting,
}
