//! `aldis run` around the hosts themselves: what they write is understood, their costs arrive, and
//! a claim counts only when the check agrees.

use std::ffi::OsStr;
use std::process::{Command, Output};

use aldis_testkit::model_server::{ModelServer, Reply};
use aldis_testkit::real_host::{Installed, Kind, RealHost, Session};
use serde_json::Value;
use tempfile::TempDir;

use super::{assert_told, model};
use crate::sandbox::ALDIS;

mod claude {
    //! `claude -p --output-format stream-json --verbose`.

    use aldis_testkit::real_host::Kind::Claude;

    #[test]
    fn is_done_when_the_check_agrees() {
        super::is_done_when_the_check_agrees(Claude);
    }

    #[test]
    fn is_blocked() {
        super::is_blocked(Claude);
    }

    #[test]
    fn stagnates() {
        super::stagnates(Claude);
    }

    #[test]
    fn delivers_a_task() {
        super::delivers_a_task(Claude);
    }
}

mod codex {
    //! `codex exec --json`.

    use aldis_testkit::real_host::Kind::Codex;

    #[test]
    fn is_done_when_the_check_agrees() {
        super::is_done_when_the_check_agrees(Codex);
    }

    #[test]
    fn is_blocked() {
        super::is_blocked(Codex);
    }

    #[test]
    fn stagnates() {
        super::stagnates(Codex);
    }

    #[test]
    fn delivers_a_task() {
        super::delivers_a_task(Codex);
    }
}

/// The first claim is wrong; the second iteration is told what the check said, and is right.
fn is_done_when_the_check_agrees(kind: Kind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![
        Reply::runs("echo '<chorus>COMPLETE</chorus>'; echo half > work.txt"),
        Reply::says("Everything works.\n\n<chorus>COMPLETE</chorus>"),
        Reply::runs("echo whole > work.txt"),
        Reply::says("Now it does.\n\n<chorus>PROGRESS: 100</chorus>\n<chorus>COMPLETE</chorus>"),
    ]);
    let verify = "echo work.txt is $(cat work.txt); grep -q whole work.txt";
    let (code, text) = stage.run(&model, &["--verify", verify]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("done and verified after 2 iterations"), "{text}");
    let asked = model.main_requests();
    assert_eq!(asked.len(), 4, "{text}");
    assert_told(&asked[0], "Write the parser");
    assert_told(&asked[2], "> work.txt is half");
    let status = stage.status();
    assert_eq!(status["exit_reason"], "done", "{status}");
    assert_eq!(status["iteration"], 2, "{status}");
    assert_eq!(status["progress"], 100, "{status}");
    assert!(status["tokens"].as_u64() > Some(0), "what the host reports arrives: {status}");
    let replay = stage.aldis(&["replay", status["run"].as_str().unwrap()]);
    assert!(replay.status.success(), "{replay:?}");
}

fn is_blocked(kind: Kind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![Reply::says("<chorus>BLOCKED: there is no database</chorus>")]);
    let (code, text) = stage.run(&model, &[]);
    assert_eq!(code, Some(3), "{text}");
    assert_eq!(model.main_requests().len(), 1);
    let status = stage.status();
    assert_eq!(status["exit_reason"], "blocked", "{status}");
    let why = stage.aldis(&["why", "--last", "--json"]);
    let why: Value = serde_json::from_slice(&why.stdout).unwrap();
    assert_eq!(why["because"], "there is no database", "{why}");
    assert_eq!(why["evidence"][0]["name"], "BLOCKED", "{why}");
}

/// It talks and does nothing. What it says of a signal does not count either.
fn stagnates(kind: Kind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![Reply::says("I will say <chorus>COMPLETE</chorus> when I am there.")]);
    let (code, text) = stage.run(&model, &[]);
    assert_eq!(code, Some(4), "{text}");
    let status = stage.status();
    assert_eq!(status["exit_reason"], "stagnated", "{status}");
    assert_eq!(status["iteration"], 7, "{status}");
    assert_told(&model.main_requests()[3], "no evidence of progress");
}

/// One task, from its developer by its critic to its auditor: each of them the host itself.
fn delivers_a_task(kind: Kind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![
        Reply::runs("echo 'AUDIT_PASSED: csv'; echo rows > export.csv"),
        Reply::says("It is written.\n\nREADY_FOR_REVIEW: csv\nSummary: written"),
        Reply::says("REVIEW_FAILED: csv\nIssues Found:\n- export.csv:1: there is no header"),
        Reply::runs("printf 'name\\nrows\\n' > export.csv"),
        Reply::says("READY_FOR_REVIEW: csv\nSummary: with a header"),
        Reply::says("REVIEW_PASSED: csv"),
        Reply::says("AUDIT_PASSED: csv"),
    ]);
    let plan = "# Export\n\n- [ ] csv: Write the CSV\n  - [ ] it has a header\n";
    std::fs::write(stage.host.project().join("plan.md"), plan).unwrap();
    let (code, text) = stage.command(&model, &["deliver", "plan.md"]);
    assert_eq!(code, Some(0), "{text}");
    let asked = model.main_requests();
    assert_eq!(asked.len(), 7, "{text}");
    assert_told(&asked[0], "it has a header");
    assert_told(&asked[3], "there is no header");
    assert_told(&asked[6], "You are the auditor");
    let exported = std::fs::read_to_string(stage.host.project().join("export.csv")).unwrap();
    assert_eq!(exported, "name\nrows\n");
    let tasks = stage.aldis(&["tasks", "--json"]);
    let task: Value = serde_json::from_slice(&tasks.stdout).unwrap();
    assert_eq!((&task["status"], &task["round"]), (&"complete".into(), &2.into()), "{task}");
}

/// A host in a scratch home, and a state directory beside it.
struct Stage {
    host: RealHost,
    _root: TempDir,
}

impl Stage {
    fn new(kind: Kind) -> Option<Self> {
        let installed = Installed::find()?;
        let root = TempDir::new().unwrap();
        let host = match kind {
            Kind::Claude => RealHost::claude(&installed.claude, root.path()),
            Kind::Codex => RealHost::codex(&installed.codex, root.path()),
        };
        let host = host.unwrap().with_env("ALDIS_STATE_DIR", root.path().join("state"));
        Some(Self { host, _root: root })
    }

    /// Supervises the host. Returns the exit code and everything that was printed.
    fn run(&self, model: &ModelServer, options: &[&str]) -> (Option<i32>, String) {
        self.command(model, &[&["run", "--task", "Write the parser"], options].concat())
    }

    /// Runs a command that starts the host.
    fn command(&self, model: &ModelServer, arguments: &[&str]) -> (Option<i32>, String) {
        let host = self.host.command(model, &Session::New).unwrap();
        let mut command = Command::new(ALDIS);
        command.current_dir(self.host.project()).env_clear();
        command.envs(host.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(arguments);
        command.arg("--").arg(host.get_program()).args(host.get_args());
        let done = output(command);
        let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (done.status.code(), text.join("\n"))
    }

    fn status(&self) -> Value {
        let done = self.aldis(&["status", "--json"]);
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
    }

    fn aldis<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        let mut command = Command::new(ALDIS);
        command.current_dir(self.host.project()).env_clear().envs(self.host.environment());
        command.args(arguments);
        output(command)
    }
}

fn output(mut command: Command) -> Output {
    command.stdin(std::process::Stdio::null()).output().unwrap()
}
