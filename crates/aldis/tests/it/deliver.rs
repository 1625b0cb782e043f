//! `aldis deliver` with real processes: plans of any size, questions, failures, work trees, crashes.

mod budgets;
mod isolation;
mod kills;
mod people;
mod stagnation;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};

/// An agent that says what its role should, unless `special` says something else.
const AGENT: &str = r#"#!/bin/sh
prompt=$(cat)
role=$ALDIS_ROLE task=$ALDIS_TASK
echo "$role $task" >> "$LOG"
first() { [ ! -e "$MARKS/$role-$task" ] && touch "$MARKS/$role-$task"; }
SPECIAL
case $role in
developer) printf 'Done.\n\nREADY_FOR_REVIEW: %s\nSummary: done\n' "$task";;
critic) printf 'REVIEW_PASSED: %s\n' "$task";;
auditor) printf 'AUDIT_PASSED: %s\n' "$task";;
remediation) echo REMEDIATION_COMPLETE;;
health_auditor) echo 'HEALTH_AUDIT: HEALTHY';;
esac
"#;

struct Stage(Project);

/// Lets an agent speak as Claude Code does: its session, its words, and what it has cost.
const SPEAK: &str = r#"
speak() {
    session="session-$role-$(wc -l < "$LOG")"
    printf '{"type":"system","subtype":"init","session_id":"%s","cwd":".","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"default"}
' "$session"
    printf '{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null,"session_id":"%s"}
' "$1" "$session"
    printf '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.40,"usage":{"input_tokens":90,"output_tokens":10},"session_id":"%s"}
' "$session"
    exit 0
}
"#;
/// All roles do so.
const ALL_SPEAK: &str = r#"
case $role in
developer) speak "READY_FOR_REVIEW: $task";;
critic) speak "REVIEW_PASSED: $task";;
auditor) speak "AUDIT_PASSED: $task";;
esac
"#;

impl Stage {
    /// Agents that speak as Claude Code does, unless `special` says something else.
    fn speaking(special: &str) -> Self {
        Self::new(&format!("{SPEAK}{special}{ALL_SPEAK}"), ONE)
    }

    /// Settings of the user's own.
    fn settings(&self, text: &str) {
        let directory = self.0.home().join(".config/aldis");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("aldis.toml"), text).unwrap();
    }

    fn new(special: &str, plan: &str) -> Self {
        let stage = Self(Project::new());
        fs::create_dir(stage.0.root().join("marks")).unwrap();
        let path = stage.0.path().join("agent.sh");
        let script = AGENT
            .replace("SPECIAL", special)
            .replace("$LOG", &stage.0.root().join("dispatches").display().to_string())
            .replace("$MARKS", &stage.0.root().join("marks").display().to_string());
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(stage.0.path().join("plan.md"), plan).unwrap();
        stage
    }

    fn arguments<'a>(options: &[&'a str]) -> Vec<&'a str> {
        [&["deliver", "plan.md"], options, &["--", "./agent.sh"]].concat()
    }

    fn run(&self, options: &[&str]) -> Done {
        self.0.run(&Self::arguments(options))
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.0.command(ALDIS);
        command.args(args).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn tasks(&self) -> Vec<Value> {
        self.0.run(&["tasks", "--json"]).json()
    }

    fn status(&self) -> Value {
        self.0.run(&["status", "--json"]).json().remove(0)
    }

    /// Waits until a question is asked; returns its name.
    fn question(&self) -> String {
        let mut found = None;
        self.wait_for("a question", || {
            let done = self.0.run(&["status", "--json"]);
            let asked = (done.code == 0).then(|| done.json()[0]["question"]["id"].clone());
            found = asked.as_ref().and_then(Value::as_str).map(str::to_owned);
            found.is_some()
        });
        found.unwrap()
    }

    fn wait_for(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..600 {
            if holds() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("waited in vain for {what}: {}", self.0.run(&["tasks"]).text());
    }

    /// Which agents were started, in order.
    fn dispatches(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.root().join("dispatches")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// All decisions of the delivery, oldest first.
    fn journal(&self) -> Vec<Value> {
        let run = self.status()["run"].as_str().unwrap().to_owned();
        self.0.run(&["log", &run, "--json", "-n", "100000"]).json()
    }

    /// Every task is complete, and was completed once.
    fn assert_complete(&self) {
        let tasks = self.tasks();
        assert!(tasks.iter().all(|task| task["status"] == "complete"), "{tasks:#?}");
        let log = self.journal();
        for task in &tasks {
            let completed = log.iter().filter(|decision| {
                decision["task"] == task["task"] && decision["rule"] == "delivery/task-complete"
            });
            assert_eq!(completed.count(), 1, "{}", task["task"]);
        }
    }
}

/// Tasks of which each needs one before it.
fn plan(tasks: usize) -> String {
    let mut plan = "# Many\n\n".to_owned();
    for task in 0..tasks {
        writeln!(plan, "- [ ] t{task}: Task {task}").unwrap();
        if task >= 5 {
            writeln!(plan, "  needs: t{}", task - 5).unwrap();
        }
        writeln!(plan, "  - [ ] it works").unwrap();
    }
    plan
}

const ONE: &str = "# One\n\n- [ ] csv: Write the CSV\n  - [ ] quotes are escaped\n";

#[test]
fn the_demonstration_shows_everything() {
    let project = Project::new();
    let done = project.run(&["demo", "--fast"]);
    assert_eq!(done.code, 0, "{}", done.text());
    for words in ["Sent the work back", "repair", "keep or drop", "5 of 5 tasks complete"] {
        assert!(done.stdout.contains(words), "{words}: {}", done.text());
    }
    let why = project.run(&["why", "writer"]);
    assert_eq!(why.code, 0, "{}", why.text());
    assert!(why.stdout.contains("-> REVIEW_FAILED"), "{}", why.text());
    assert!(fs::read_dir(project.path()).unwrap().next().is_none(), "nothing is left");
}

#[test]
fn plans_of_any_size_are_delivered() {
    for tasks in [1, 20] {
        let stage = Stage::new("", &plan(tasks));
        let done = stage.run(&[]);
        assert_eq!(done.code, 0, "{}", done.text());
        stage.assert_complete();
        assert_eq!(stage.dispatches().len(), 3 * tasks, "nobody is started twice");
    }
}

/// Much goes wrong, once for each task: refused work, a broken machine, crashes, a file that several
/// want, questions to an expert.
const EVENTFUL: &str = r#"
case $role-$task in
critic-*1) first && { printf 'REVIEW_FAILED: %s\nIssues Found:\n- a.rs:1: wrong\n' "$task"; exit 0; };;
auditor-*4) first && { printf 'AUDIT_FAILED: %s\nFailed Criteria:\n- it works\n' "$task"; exit 0; };;
developer-t3) first && { printf 'INFRA_BLOCKED: %s\nIssue: down\n' "$task"; exit 0; };;
developer-*7) first && exit 9;;
developer-*8) first && { printf 'FILE CONFLICT: src/shared.rs\nCan Wait: YES\n'; exit 0; };;
developer-*9) first && { printf 'EXPERT_REQUEST\nTarget Agent: crypto\nRequest Type: decision\nContext Snapshot: notes.md\n\n---DELEGATION PROMPT START---\nWhich KDF?\n---DELEGATION PROMPT END---\n'; exit 0; };;
expert-*) printf 'EXPERT_ADVICE: %s\nAdvice: the usual one\n' "$(printf '%s' "$prompt" | grep -o 'req-[0-9]*' | head -n 1)"; exit 0;;
esac
"#;

#[test]
fn eventful_plans_are_delivered() {
    eventful(20, "5");
}

#[test]
fn large_plans_are_delivered() {
    eventful(200, "8");
}

fn eventful(tasks: usize, slots: &str) {
    let stage = Stage::new(EVENTFUL, &plan(tasks));
    stage.settings("[experts.crypto]\nabout = \"keys\"\n");
    let done = stage.run(&["--slots", slots]);
    assert_eq!(done.code, 0, "{}", done.text());
    stage.assert_complete();
    let dispatches = stage.dispatches();
    for role in ["remediation", "health_auditor", "expert"] {
        let worked = dispatches.iter().any(|line| line.split(' ').next() == Some(role));
        assert!(worked, "{role}: {dispatches:?}");
    }
}

#[test]
fn failures_are_reworked_repaired_and_asked_about() {
    for (name, special, words) in [
        (
            "a failed review",
            "[ $role = critic ] && first && { printf 'REVIEW_FAILED: csv\\nIssues Found:\\n- a.rs:1: wrong\\n'; exit 0; }",
            "critic refused",
        ),
        (
            "a failed audit",
            "[ $role = auditor ] && first && { printf 'AUDIT_FAILED: csv\\nFailed Criteria:\\n- quotes\\n'; exit 0; }",
            "auditor refused",
        ),
        (
            "a broken machine",
            "[ $role = developer ] && first && { printf 'INFRA_BLOCKED: csv\\nIssue: no disk\\n'; exit 0; }",
            "repair",
        ),
        ("a crash", "[ $role = developer ] && first && exit 7", "crash"),
        ("talk", "[ $role = developer ] && first && { echo 'I am done.'; exit 0; }", ""),
    ] {
        let stage = Stage::new(special, ONE);
        let done = stage.run(&[]);
        assert_eq!(done.code, 0, "{name}: {}", done.text());
        assert!(done.stdout.contains(words), "{name}: {}", done.text());
        stage.assert_complete();
    }
}

#[test]
fn nobody_passes_their_own_work() {
    let special = "[ $role = developer ] && { echo 'AUDIT_PASSED: csv'; exit 0; }";
    let stage = Stage::new(special, ONE);
    let done = stage.run(&["--no-wait"]);
    assert_eq!(done.code, 3, "{}", done.text());
    assert_ne!(stage.tasks()[0]["status"], "complete");
    let why = stage.0.run(&["why", "csv"]);
    assert!(why.stdout.contains("role_not_allowed"), "{}", why.text());
}

#[test]
fn a_question_waits_for_its_answer() {
    let special = "[ $role = developer ] && first && { printf 'SEEKING_DIVINE_CLARIFICATION\\nTask: csv\\nQuestion: keep or drop?\\n'; exit 0; }";
    let stage = Stage::new(special, ONE);
    let mut child = stage.start(&Stage::arguments(&[]));
    let id = stage.question();
    assert_eq!(stage.0.run(&["answer", "q77", "x"]).code, 1);
    assert_eq!(stage.0.run(&["answer", &id, "Drop it."]).code, 0);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    stage.assert_complete();

    // The same with nobody there: the answer waits.
    let stage = Stage::new(special, ONE);
    assert_eq!(stage.run(&["--no-wait"]).code, 3);
    assert_eq!(stage.0.run(&["answer", &stage.question(), "Drop it."]).code, 0);
    let done = stage.0.run(&["deliver", "--continue"]);
    assert_eq!(done.code, 0, "{}", done.text());
    stage.assert_complete();
}

#[test]
fn a_delivery_can_be_ended_from_elsewhere() {
    let stage =
        Stage::new("[ $role = developer ] && first && { touch $MARKS/here; sleep 600; }", ONE);
    let mut child = stage.start(&Stage::arguments(&[]));
    stage.wait_for("the agent", || stage.0.root().join("marks/here").exists());
    assert_eq!(stage.0.run(&["abort"]).code, 0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(stage.status()["exit_reason"], "aborted");
    assert_nobody_is_left(&stage);
    // Who ended it may change their mind.
    let again = stage.0.run(&["deliver", "--continue"]);
    assert_eq!(again.code, 0, "{}", again.text());
    stage.assert_complete();
    assert_eq!(stage.dispatches().len(), 4, "only the one that was ended is started again");
    let over = stage.0.run(&["deliver", "--continue"]);
    assert_eq!(over.code, 2, "{}", over.text());
    assert!(over.stderr.contains("is complete"), "{}", over.text());
}

#[test]
fn a_limit_of_the_service_is_waited_for() {
    let special = "[ $role = developer ] && first && { echo \"Claude AI usage limit reached|$(($(date +%s) + 2))\"; exit 1; }";
    let stage = Stage::new(special, ONE);
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains("Rate limited"), "{}", done.text());
    stage.assert_complete();
}

#[test]
fn work_trees_are_merged() {
    let special = "[ $role = developer ] && echo \"$task\" > \"$task.txt\"";
    let stage = Stage::new(special, &plan(6));
    // The agents run elsewhere, so the command needs its full path.
    let agent = stage.0.path().join("agent.sh").display().to_string();
    let path = std::env::var_os("PATH").unwrap();
    let git = |args: &[&str]| {
        let mut command = stage.0.command("git");
        command.env("PATH", &path).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        command.args(args).output().unwrap()
    };
    git(&["init", "-q", "."]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let mut command = stage.0.command(ALDIS);
    command.env("PATH", &path).args(["deliver", "plan.md", "--worktrees", "--", &agent]);
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    stage.assert_complete();
    for task in 0..6 {
        let text = fs::read_to_string(stage.0.path().join(format!("t{task}.txt")));
        assert_eq!(text.unwrap(), format!("t{task}\n"));
    }
    let trees = String::from_utf8(git(&["worktree", "list"]).stdout).unwrap();
    assert_eq!(trees.lines().count(), 1, "{trees}");
}

fn assert_nobody_is_left(stage: &Stage) {
    let root = stage.0.path();
    for _ in 0..100 {
        let left = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&root))
        });
        if !left {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("a process is left");
}

#[test]
fn secrets_are_kept_nowhere() {
    let key = format!("ghp_{}", "x".repeat(36));
    let speech = r#"
        [ $role = developer ] && first && { printf 'SEEKING_DIVINE_CLARIFICATION\nTask: csv\nQuestion: is KEY ours?\n'; exit 0; }
        [ $role = developer ] && { printf 'CHECKPOINT: csv\nProgress: KEY\n'; printf 'READY_FOR_REVIEW: csv\nSummary: KEY\n'; exit 0; }
        [ $role = critic ] && first && { printf 'REVIEW_FAILED: csv\nIssues:\n- a.rs:1: KEY is in the code\n'; exit 0; }
    "#;
    let stage = Stage::new(&speech.replace("KEY", &key), ONE);
    let mut child = stage.start(&Stage::arguments(&[]));
    assert_eq!(stage.0.run(&["answer", &stage.question(), "no"]).code, 0);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    stage.assert_complete();
    let why = stage.0.run(&["why", "csv"]).text();
    assert!(why.contains("[redacted]"), "{why}");
    let holds = Command::new("grep").args(["-rl", &key]).arg(stage.0.state_dir()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&holds.stdout), "");
}

#[test]
fn agents_that_are_not_installed_are_not_started() {
    let project = Project::new();
    fs::write(project.path().join("plan.md"), "# Export\n\n- [ ] csv: Write it\n").unwrap();
    for (host, program, get) in [
        ("claude-code", "`claude` (Claude Code)", "npm install -g @anthropic-ai/claude-code"),
        ("codex", "`codex` (Codex)", "npm install -g @openai/codex"),
        ("gemini", "`gemini` (Gemini CLI)", "npm install -g @google/gemini-cli"),
    ] {
        let mut command = project.command(ALDIS);
        command.env("PATH", project.path()).args(["deliver", "plan.md", "--host", host]);
        let done = feed(command, b"");
        assert_eq!((done.code, &*done.stdout), (2, ""), "{}", done.text());
        assert!(done.stderr.contains(&format!("{program} is not on the PATH")), "{}", done.stderr);
        assert!(done.stderr.contains(get), "{}", done.stderr);
    }
    assert_eq!(project.run(&["status"]).code, 1, "no delivery was begun");
}

#[test]
fn mistakes_are_explained() {
    for (plan, word) in [
        ("# x\n\n- [ ] a: A\n  needs: b\n- [ ] b: B\n  needs: a\n", "a -> b -> a"),
        ("# x\n\n- [ ] a: A\n- [ ] a: B\n", "line 4"),
        ("nothing", "task"),
    ] {
        let stage = Stage::new("", plan);
        let done = stage.run(&[]);
        assert_eq!(done.code, 2, "{plan}: {}", done.text());
        assert!(done.stderr.contains(word), "{plan}: {}", done.text());
    }
    let stage = Stage::new("", ONE);
    assert_eq!(stage.0.run(&["deliver", "--continue"]).code, 2);
    assert_eq!(stage.0.run(&["deliver", "plan.txt"]).code, 2);
    assert_eq!(stage.0.run(&["tasks"]).code, 1);
}
