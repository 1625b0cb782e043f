//! `aldis run --host`: the host is started by what we know of it, in one session from iteration to
//! iteration.

use std::fs;
use std::process::{Command, Stdio};

use aldis_testkit::model_server::{ModelServer, ScriptedReply};
use aldis_testkit::real_host::{HostKind, SessionChoice};

use super::supervised::{Stage, output};
use super::{assert_told, model};
use crate::sandbox::ALDIS;

mod claude {
    //! `aldis run --host claude-code`.

    use aldis_testkit::real_host::HostKind::Claude;

    #[test]
    fn the_only_one_is_taken_and_edits() {
        super::the_only_one_is_taken_and_edits(Claude);
    }

    #[test]
    fn an_answer_reaches_the_session_that_asked() {
        super::an_answer_reaches_the_session_that_asked(Claude);
    }

    #[test]
    fn a_message_reaches_the_session_at_work() {
        super::a_message_reaches_the_session_at_work(Claude);
    }

    #[test]
    fn a_denied_tool_is_allowed_when_the_run_continues() {
        super::a_denied_tool_is_allowed_when_the_run_continues();
    }

    #[test]
    fn a_crash_begins_a_new_session() {
        super::a_crash_begins_a_new_session(Claude);
    }
}

mod codex {
    //! `aldis run --host codex`.

    use aldis_testkit::real_host::HostKind::Codex;

    #[test]
    fn the_only_one_is_taken_and_edits() {
        super::the_only_one_is_taken_and_edits(Codex);
    }

    #[test]
    fn an_answer_reaches_the_session_that_asked() {
        super::an_answer_reaches_the_session_that_asked(Codex);
    }

    #[test]
    fn a_message_reaches_the_session_at_work() {
        super::a_message_reaches_the_session_at_work(Codex);
    }

    #[test]
    fn a_crash_begins_a_new_session() {
        super::a_crash_begins_a_new_session(Codex);
    }
}

/// Nobody named a host, and one is there.
fn the_only_one_is_taken_and_edits(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let file = stage.host.project().join("made.txt");
    let edit = match kind {
        HostKind::Claude => ScriptedReply::writes(file.to_str().unwrap(), "made\n"),
        HostKind::Codex => ScriptedReply::runs("echo made > made.txt"),
    };
    let model = model(vec![edit, ScriptedReply::says("It is there.\n\n<chorus>COMPLETE</chorus>")]);
    let verify = ["--verify", "grep -q made made.txt"];
    let (code, text) = ended(stage.by_name(&model, &verify, &TASK));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(fs::read_to_string(file).unwrap(), "made\n");
    assert_told(&model.main_requests()[0], TASK[0]);
    if kind == HostKind::Claude {
        // With Codex the host is named: its model stands in further arguments.
        assert!(text.contains("using Claude Code, the only agent found here"), "{text}");
    }
    assert!(stage.status()["tokens"].as_u64() > Some(0), "{}", stage.status());
}

/// A question ends the run with `--no-wait`; the answer reaches the same conversation.
fn an_answer_reaches_the_session_that_asked(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![
        ScriptedReply::says(
            "I looked at the heron.\n\n<chorus>NEEDS_HUMAN: keep or drop?</chorus>",
        ),
        ScriptedReply::says("Dropped.\n\n<chorus>COMPLETE</chorus>"),
    ]);
    let (code, text) = ended(stage.by_name(&model, &["--no-wait"], &TASK));
    assert_eq!(code, Some(3), "{text}");
    assert!(stage.aldis(&["answer", "q1", "Drop it."]).status.success());
    let (code, text) = ended(stage.by_name(&model, &["--continue"], &[]));
    assert_eq!(code, Some(0), "{text}");
    let asked = model.main_requests();
    assert_eq!(asked.len(), 2, "{text}");
    assert_told(&asked[1], "> Drop it.");
    assert!(asked[1].knows("I looked at the heron."), "it is another session");
    // What the session had cost before is not counted twice: one more request, not two.
    assert_eq!(stage.status()["iteration"], 1, "{text}");
}

/// What a human says while it works is in the next prompt of the same conversation, once.
fn a_message_reaches_the_session_at_work(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![
        ScriptedReply::runs("touch here; while [ ! -e go ]; do sleep 0.05; done"),
        ScriptedReply::says("I looked at the heron."),
        ScriptedReply::says("<chorus>COMPLETE</chorus>"),
    ]);
    let mut command = stage.by_name(&model, ALL_TOOLS[kind as usize], &TASK);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    stage.wait_until(|| stage.host.project().join("here").exists());
    let run = stage.status()["run"].as_str().unwrap().to_owned();
    assert!(stage.aldis(&["tell", &run, "Use v2."]).status.success());
    fs::write(stage.host.project().join("go"), "").unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let asked = model.main_requests();
    assert_told(asked.last().unwrap(), "> Use v2.");
    assert!(asked.last().unwrap().knows("I looked at the heron."), "it is another session");
}

/// The flag that `why` names cures it, in the same run.
fn a_denied_tool_is_allowed_when_the_run_continues() {
    let Some(stage) = Stage::new(HostKind::Claude) else { return };
    let denied = || ScriptedReply::runs("sh -c 'echo 1 > made.txt'");
    let gives_up = || ScriptedReply::says("I may not do that.");
    let model = model(vec![
        denied(),
        gives_up(),
        denied(),
        gives_up(),
        denied(),
        ScriptedReply::says("<chorus>COMPLETE</chorus>"),
    ]);
    let (code, text) = ended(stage.by_name(&model, &["--host", "claude-code"], &TASK));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("the host denied Bash sh -c"), "{text}");
    assert_eq!(stage.status()["exit_reason"], "permission_denied");
    let run = stage.status()["run"].as_str().unwrap().to_owned();
    let why = String::from_utf8(stage.aldis(&["why"]).stdout).unwrap();
    let cure = format!("aldis run --continue {run} --allow Bash");
    assert!(why.contains(&cure), "{why}");
    assert!(model.main_requests()[2].is_told("The host denied the permission to use Bash"));
    let (code, text) = ended(stage.by_name(&model, &["--continue", &run, "--allow", "Bash"], &[]));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(fs::read_to_string(stage.host.project().join("made.txt")).unwrap(), "1\n");
}

/// The session in which it crashed is left.
fn a_crash_begins_a_new_session(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    fs::write(stage.host.project().join("aldis.toml"), "[run]\ncrash_wait = 1\n").unwrap();
    let kill = "kill -9 $PPID";
    let model = model(vec![
        ScriptedReply::runs(kill),
        ScriptedReply::says("Done.\n\n<chorus>COMPLETE</chorus>"),
    ]);
    let (code, text) = ended(stage.by_name(&model, ALL_TOOLS[kind as usize], &TASK));
    assert_eq!(code, Some(0), "{text}");
    let asked = model.main_requests();
    let last = asked.last().unwrap();
    assert_told(last, "The last attempt crashed");
    // In a new session the model has said nothing yet.
    let spoken = last.body["messages"].as_array().or_else(|| last.body["input"].as_array());
    let spoke = spoken.unwrap().iter().any(|item| item["role"] == "assistant");
    assert!(!spoke, "the session that crashed goes on");
}

const TASK: [&str; 1] = ["Write the parser"];

/// What lets a host run commands, by kind.
const ALL_TOOLS: [&[&str]; 2] = [&["--host", "claude-code", "--allow", "Bash"], &["--yolo"]];

impl Stage {
    /// Returns the command that supervises the host, which finds the model in its environment or, with
    /// Codex, in further arguments.
    pub(super) fn by_name(&self, model: &ModelServer, options: &[&str], task: &[&str]) -> Command {
        let host = self.host.command(model, &SessionChoice::New).unwrap();
        let mut command = Command::new(ALDIS);
        command.current_dir(self.host.project()).env_clear();
        command.envs(host.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.arg("run").args(options);
        let begins = !options.contains(&"--continue");
        if self.host.kind() == HostKind::Codex && begins {
            let yolo = if options.contains(&"--yolo") { &[][..] } else { &["--yolo"] };
            command.args(["--host", "codex"]).args(yolo).args(task).arg("--");
            let own = ["exec", "--json", "--skip-git-repo-check", "-"];
            command.args(host.get_args().filter(|word| !own.iter().any(|own| word == own)));
        } else {
            command.args(task);
        }
        command
    }

    fn wait_until(&self, condition: impl Fn() -> bool) {
        for _ in 0..1_200 {
            if condition() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
        panic!("it never happened: {}", self.status());
    }
}

pub(super) fn ended(command: Command) -> (Option<i32>, String) {
    let done = output(command);
    let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (done.status.code(), text.join("\n"))
}
