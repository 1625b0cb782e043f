//! `aldis run` with an agent that follows a script, in the form of every host.

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::assert_nothing_runs_in;
use crate::phases::project::Project;
use crate::sandbox::{ALDIS, Done, scripted_agent};

/// The hosts whose live output can be supervised.
const VOICES: [&str; 11] = [
    "acp",
    "claude-stream",
    "cline",
    "codex-exec",
    "copilot",
    "cursor-stream",
    "droid-stream",
    "gemini-stream",
    "goose",
    "opencode",
    "text",
];

/// The agent's script.
const SCRIPT: &str = ".aldis/script.toml";

/// A project with a script.
pub(super) struct Stage(pub(super) Project);

impl Stage {
    pub(super) fn new(voice: &str, rounds: &[&str]) -> Self {
        let project = Project::new();
        let rounds: Vec<_> =
            rounds.iter().map(|steps| format!("[[round]]\ndo = [{steps}]\n")).collect();
        let script = format!("voice = \"{voice}\"\n{}", rounds.concat());
        // Where nothing counts as work of the agent.
        fs::create_dir_all(project.path().join(".aldis")).unwrap();
        fs::write(project.path().join(SCRIPT), script).unwrap();
        Self(project)
    }

    pub(super) fn command(&self, options: &[&str]) -> Command {
        let mut command = self.0.command(ALDIS);
        // The directory of the prompt's file must be the test's own.
        command.env("TMPDIR", self.0.root()).args(["run", "--task", "Add CSV export"]);
        command.args(options).args(["--", &scripted_agent(), SCRIPT]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(super) fn start(&self, options: &[&str]) -> Child {
        self.command(options).spawn().unwrap()
    }

    pub(super) fn run(&self, options: &[&str]) -> Done {
        finished(self.command(options).output().unwrap())
    }

    pub(super) fn status(&self) -> Value {
        let done = self.0.run(&["status", "--json"]);
        assert_eq!(done.code, 0, "{}", done.text());
        done.json().remove(0)
    }

    /// How often the agent was started.
    pub(super) fn starts(&self) -> u64 {
        let count = fs::metadata(self.0.path().join(format!("{SCRIPT}.count")));
        count.map(|count| count.len()).unwrap_or(0)
    }

    /// The journal leads to what is stored.
    #[track_caller]
    pub(super) fn assert_replays(&self) {
        let run = self.status()["run"].as_str().unwrap().to_owned();
        let replay = self.0.run(&["replay", &run]);
        assert_eq!(replay.code, 0, "{}", replay.text());
    }
}

pub(super) fn finished(output: Output) -> Done {
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

const SAYS_DONE: &str = "{ say = '<chorus>COMPLETE</chorus>' }";

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_ending_is_reached() {
    for (name, rounds, options, code, ending, starts) in [
        ("done", &[SAYS_DONE][..], &[][..], 0, "done", 1),
        ("verified", &["", SAYS_DONE], &["--verify", "test -s .aldis/script.toml"], 0, "done", 2),
        ("blocked", &["{ say = '<chorus>BLOCKED: no key</chorus>' }"], &[], 3, "blocked", 1),
        (
            "needs a human",
            &["{ say = '<chorus>NEEDS_HELP: which?</chorus>' }"],
            &["--no-wait"],
            3,
            "needs_human",
            1,
        ),
        (
            "crashed",
            &["{ say = '<chorus>COMPLETE</chorus>' }, { exit = 3 }"],
            &["--max-crashes", "0"],
            1,
            "crashed",
            1,
        ),
        (
            "killed",
            &["{ say = '<chorus>COMPLETE</chorus>' }, { crash = 11 }"],
            &["--max-crashes", "0"],
            1,
            "crashed",
            1,
        ),
        ("refused", &["{ fail = 'OAuth token has expired' }"], &[], 1, "crashed", 1),
        (
            "gave up",
            &[
                "{ say = '''\n```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"success\":false,\"reason\":\"no way\"}\n```\n''' }",
            ],
            &["--dialect", "pilot"],
            1,
            "failed",
            1,
        ),
        (
            "used up",
            &["{ tool = { name = 'Bash' } }"],
            &["--max-iterations", "3"],
            5,
            "iterations_used_up",
            3,
        ),
        (
            "no time",
            &["{ stubborn = true }, { leave = 'sleep 600' }, { hang = true }"],
            &["--total-timeout", "1", "--grace", "1"],
            4,
            "timed_out",
            1,
        ),
        ("stuck", &["{ say = 'Still thinking.' }"], &[], 4, "stagnated", 7),
        (
            "no tokens left, whatever is claimed",
            &[
                "{ tool = { name = 'Bash' } }, { spend = { tokens = 200 } }",
                "{ say = '<chorus>COMPLETE</chorus>' }, { spend = { tokens = 200 } }",
            ],
            &["--max-tokens", "300"],
            5,
            "over_budget",
            2,
        ),
        (
            "no money left",
            &["{ tool = { name = 'Bash' } }, { spend = { dollars = 0.6 } }"],
            &["--max-cost", "1"],
            5,
            "over_budget",
            2,
        ),
    ] {
        let stage = Stage::new("claude-stream", rounds);
        let done = stage.run(options);
        assert_eq!(done.code, code, "{name}: {}", done.text());
        let status = stage.status();
        assert_eq!(status["exit_reason"], ending, "{name}: {}", done.text());
        assert_eq!(status["active"], false, "{name}");
        assert_eq!(stage.starts(), starts, "{name}: {}", done.text());
        stage.assert_replays();
        assert_nothing_runs_in(&stage.0.path(), name);
    }
}

#[test]
fn an_interrupted_run_says_so() {
    let stage = Stage::new("codex-exec", &["{ run = 'touch here' }, { hang = true }"]);
    let child = stage.start(&["--grace", "1"]);
    super::wait_until("the agent works", || stage.0.path().join("here").exists());
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = finished(child.wait_with_output().unwrap());
    assert_eq!(done.code, 130, "{}", done.text());
    assert_eq!(stage.status()["exit_reason"], "aborted");
    stage.assert_replays();
    assert_nothing_runs_in(&stage.0.path(), "interrupted");
}

/// The service refuses twice, in the words of each host; the iteration is repeated and not counted.
#[test]
fn limits_are_waited_for_in_every_form() {
    let stages: Vec<_> = VOICES
        .iter()
        .map(|voice| {
            let limit = "{ limit = { seconds = 1 } }";
            let stage = Stage::new(voice, &[limit, limit, SAYS_DONE]);
            let child = stage.start(&["--json", "--max-iterations", "1"]);
            (voice, stage, child)
        })
        .collect();
    for (voice, stage, child) in stages {
        let done = finished(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{voice}: {}", done.text());
        let waits = done.json().iter().filter(|line| line["notice"] == "rate_limit").count();
        assert_eq!(waits, 2, "{voice}: {}", done.text());
        let status = stage.status();
        assert_eq!(status["iteration"], 1, "{voice}: a refusal uses up no iteration");
        assert_eq!(stage.starts(), 3, "{voice}");
        stage.assert_replays();
    }
}

#[test]
fn what_the_host_charges_is_what_the_status_says() {
    for (voice, dollars) in
        [("claude-stream", 750_000), ("codex-exec", 0), ("gemini-stream", 0), ("opencode", 750_000)]
    {
        let rounds = [
            "{ spend = { tokens = 1000, dollars = 0.5 } }, { tool = { name = 'Bash' } }",
            "{ spend = { tokens = 234, dollars = 0.25 } }, { say = '<chorus>COMPLETE</chorus>' }",
        ];
        let stage = Stage::new(voice, &rounds);
        let done = stage.run(&[]);
        assert_eq!(done.code, 0, "{voice}: {}", done.text());
        let status = stage.status();
        assert_eq!(status["tokens"], 1234, "{voice}: {status}");
        assert_eq!(status["micro_dollars"], dollars, "{voice}: {status}");
        let cost = if dollars > 0 { "$0.75" } else { "1234 tokens" };
        assert!(done.stdout.contains(cost), "{voice}: {}", done.text());
        stage.assert_replays();
    }
}

#[test]
fn a_host_that_tries_again_by_itself_is_left_alone() {
    let rounds = ["{ retry = 'overloaded' }, { say = '<chorus>COMPLETE</chorus>' }"];
    let stage = Stage::new("claude-stream", &rounds);
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains("overloaded"), "{}", done.text());
    assert_eq!(stage.starts(), 1);
}

#[test]
fn a_limit_that_somebody_else_mentions_is_none() {
    let words = "You've hit your limit · resets 5pm";
    let rounds = [format!(
        "{{ tool = {{ name = 'Bash', output = \"{words}\" }} }}, {{ say = \"{words}\" }}, \
         {{ say = '<chorus>COMPLETE</chorus>' }}"
    )];
    for voice in VOICES {
        let stage = Stage::new(voice, &[&rounds[0]]);
        let done = stage.run(&[]);
        assert_eq!(done.code, 0, "{voice}: {}", done.text());
        assert_eq!(stage.starts(), 1, "{voice}");
    }
}

#[test]
fn floods_children_and_broken_lines_change_nothing() {
    let rounds = [r#"{ flood = { bytes = 20000000, line = 200 } },
        { flood = { bytes = 3000000, line = 4000000 } },
        { write = "\n{\"type\":\"assistant\",\"mess" }, { write = "\n" },
        { leave = "setsid sleep 600" }, { complain = "warning: x" },
        { say = "<chorus>COMPLETE</chorus>" }"#];
    for voice in ["claude-stream", "text"] {
        let stage = Stage::new(voice, &rounds);
        let done = stage.run(&["--quiet"]);
        assert_eq!(done.code, 0, "{voice}: {}", done.text());
        assert_nothing_runs_in(&stage.0.path(), voice);
        let left: Vec<_> = fs::read_dir(stage.0.root()).unwrap().flatten().collect();
        let stray = |name: &str| !["project", "home", "state"].contains(&name);
        let strays: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
        assert!(!strays.iter().any(|name| stray(&name.to_string_lossy())), "{strays:?}");
    }
}
