//! `aldis run` around the hosts themselves: what they write is understood, their costs arrive, and
//! a claim counts only when the check agrees.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use aldis_testkit::model_server::{ModelServer, ScriptedReply};
use aldis_testkit::real_host::{HostKind, Installed, RealHost, SessionChoice};
use serde_json::Value;
use tempfile::TempDir;

use super::by_name::ended;
use super::{assert_told, model};
use crate::sandbox::ALDIS;

mod claude {
    //! `claude -p --output-format stream-json --verbose`.

    use aldis_testkit::real_host::HostKind::Claude;

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

    #[test]
    fn ends_by_call() {
        super::ends_by_call(Claude);
    }

    #[test]
    fn the_first_command_of_the_readme_writes_a_file() {
        super::the_first_command_of_the_readme_writes_a_file();
    }

    #[test]
    fn calls_are_allowed_in_a_folder_that_nobody_trusted() {
        super::calls_are_allowed_in_a_folder_that_nobody_trusted();
    }

    #[test]
    fn a_denied_permission_is_named() {
        super::a_denied_permission_is_named();
    }
}

mod codex {
    //! `codex exec --json`.

    use aldis_testkit::real_host::HostKind::Codex;

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

    #[test]
    fn ends_by_call() {
        super::ends_by_call(Codex);
    }

    #[test]
    fn a_receipt_is_bound_to_the_run() {
        super::a_receipt_is_bound_to_the_run();
    }
}

/// The first claim is wrong; the second iteration is told what the check said, and is right.
fn is_done_when_the_check_agrees(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![
        ScriptedReply::runs("echo '<chorus>COMPLETE</chorus>'; echo half > work.txt"),
        ScriptedReply::says("Everything works.\n\n<chorus>COMPLETE</chorus>"),
        ScriptedReply::runs("echo whole > work.txt"),
        ScriptedReply::says(
            "Now it does.\n\n<chorus>PROGRESS: 100</chorus>\n<chorus>COMPLETE</chorus>",
        ),
    ]);
    let verify = "echo work.txt is $(cat work.txt); grep -q whole work.txt";
    let (code, text) = stage.run(&model, &["--verify", verify]);
    assert_eq!(code, Some(0), "{text}");
    // People see the agent's words and tools, and what became of its claims; of the host's records nothing.
    for words in [
        "Bash echo '<chorus>COMPLETE</chorus>'; echo half > work.txt  ✓",
        "Everything works.",
        "failed (exit 1). Sent the output back.",
        "work.txt is half",
        "Now it does.",
        "Done and verified after 2 iterations",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("session") && !text.contains("init"), "{text}");
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
    let report = stage.aldis(&["report", "--json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let fates: Vec<&Value> =
        report["claims"].as_array().unwrap().iter().map(|claim| &claim["fate"]).collect();
    assert_eq!(fates, ["refused", "held"], "{report}");
    assert_eq!(report["agents"][0]["tools"]["Bash"], 2, "{report}");
}

/// With what `aldis install` writes, the prompt asks for the call, the agent makes it, the answer brings
/// what the check says, and the run ends by it.
fn ends_by_call(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let name = match kind {
        HostKind::Claude => "claude-code",
        HostKind::Codex => "codex",
    };
    let installed = stage.aldis(&["install", name, "--user"]);
    assert!(installed.status.success(), "{installed:?}");
    let claim = || ScriptedReply::calls("complete", serde_json::json!({"summary": "it is there"}));
    let model = model(vec![
        claim(),
        ScriptedReply::runs("echo whole > work.txt"),
        claim(),
        ScriptedReply::says("I am through."),
    ]);
    let verify = ["--verify", "echo run >> ../checks; grep whole work.txt"];
    let options = match kind {
        HostKind::Claude => [&["--host", name, "--allow", "Bash"], &verify[..]].concat(),
        HostKind::Codex => verify.to_vec(),
    };
    let (code, text) = ended(stage.by_name(&model, &options, &["Write work.txt"]));
    assert_eq!(code, Some(0), "{text}");
    let asked = model.main_requests();
    assert_eq!(asked.len(), 4, "{text}");
    assert_told(&asked[0], "    complete {");
    // Within one turn: refused with what the check printed, cured, and checked.
    assert_told(&asked[1], "call/check-failed");
    assert_told(&asked[1], "work.txt: No such file");
    assert_told(&asked[3], "The check passed. End your turn now");
    assert_eq!(stage.status()["iteration"], 1);
    // The result counts at the end, because nothing changed since.
    let checks = std::fs::read_to_string(stage.host.project().join("../checks")).unwrap();
    assert_eq!(checks, "run\nrun\n");
    let why = stage.aldis(&["why", "--last", "--json"]);
    let why: Value = serde_json::from_slice(&why.stdout).unwrap();
    assert_eq!(why["evidence"][0]["via"], "call", "{why}");
}

/// `aldis install` without options writes into the project. Claude Code ignores permissions from there
/// until somebody trusted the folder, which no run without a person can do.
fn calls_are_allowed_in_a_folder_that_nobody_trusted() {
    let Some(stage) = Stage::new(HostKind::Claude) else { return };
    let installed = stage.aldis(&["install", "claude-code"]);
    assert!(installed.status.success(), "{installed:?}");
    let model = model(vec![
        ScriptedReply::calls("complete", serde_json::json!({"summary": "nothing was to do"})),
        ScriptedReply::says("I am through."),
    ]);
    let options = ["--host", "claude-code", "--verify", "true"];
    let (code, text) = ended(stage.by_name(&model, &options, &["Look around"]));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Aldis complete") && text.contains("claims done (by call)"), "{text}");
    // What the host writes to standard error is for `-v` and for crashes.
    assert!(!text.contains("has not been trusted"), "{text}");
    assert_eq!(stage.status()["iteration"], 1, "{text}");
}

/// Where Codex' sandbox lets nothing be written, a receipt with the run's code counts as one.
fn a_receipt_is_bound_to_the_run() {
    let Some(stage) = Stage::new(HostKind::Codex) else { return };
    let model = model(vec![
        // Its shell is a login shell, which sets the PATH anew.
        ScriptedReply::runs(format!("{ALDIS} signal done 'nothing was to do'")),
        ScriptedReply::says("I am through."),
    ]);
    let host = stage.host.command(&model, &SessionChoice::New).unwrap();
    let mut agent: Vec<String> =
        host.get_args().map(|it| it.to_str().unwrap().to_owned()).collect();
    for argument in agent.iter_mut().filter(|it| it.starts_with("sandbox_mode")) {
        *argument = "sandbox_mode=\"read-only\"".to_owned();
    }
    let (code, text) = stage.run_as(&model, &[], &agent);
    assert_eq!(code, Some(0), "{text}");
    assert_told(&model.main_requests()[1], "aldis-receipt v1 mac=");
    let why = stage.aldis(&["why", "--last", "--json"]);
    let why: Value = serde_json::from_slice(&why.stdout).unwrap();
    assert_eq!(why["evidence"][0]["via"], "receipt", "{why}");
}

fn is_blocked(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![ScriptedReply::says("<chorus>BLOCKED: there is no database</chorus>")]);
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
fn stagnates(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model =
        model(vec![ScriptedReply::says("I will say <chorus>COMPLETE</chorus> when I am there.")]);
    let (code, text) = stage.run(&model, &[]);
    assert_eq!(code, Some(4), "{text}");
    let status = stage.status();
    assert_eq!(status["exit_reason"], "stagnated", "{status}");
    assert_eq!(status["iteration"], 7, "{status}");
    assert_told(&model.main_requests()[3], "no evidence of progress");
}

/// One task, from its developer by its critic to its auditor: each of them the host itself.
fn delivers_a_task(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let model = model(vec![
        ScriptedReply::runs("echo 'AUDIT_PASSED: csv'; echo rows > export.csv"),
        ScriptedReply::says("It is written.\n\nREADY_FOR_REVIEW: csv\nSummary: written"),
        ScriptedReply::says(
            "REVIEW_FAILED: csv\nIssues Found:\n- export.csv:1: there is no header",
        ),
        ScriptedReply::runs("printf 'name\\nrows\\n' > export.csv"),
        ScriptedReply::says("READY_FOR_REVIEW: csv\nSummary: with a header"),
        ScriptedReply::says("REVIEW_PASSED: csv"),
        ScriptedReply::says("AUDIT_PASSED: csv"),
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

/// What a reader copies first lets the agent edit the project, and the live view shows what it says
/// and nothing of the host's own records.
fn the_first_command_of_the_readme_writes_a_file() {
    let Some(stage) = Stage::new(HostKind::Claude) else { return };
    let readme = include_str!("../../../../../README.md");
    let (_, rest) = readme.split_once("aldis run --host claude-code --allow Bash ").unwrap();
    assert!(rest.starts_with("\"Make the tests in tests/api pass\"\n"), "{rest:.80}");
    let file = stage.host.project().join("parser.txt");
    let model = model(vec![
        ScriptedReply::writes(file.to_str().unwrap(), "parsed\n"),
        ScriptedReply::says("It parses.\n\n<chorus>COMPLETE</chorus>"),
    ]);
    let options =
        ["--host", "claude-code", "--allow", "Bash", "--verify", "grep -q parsed parser.txt"];
    let (code, text) = ended(stage.by_name(&model, &options, &["Make the tests pass"]));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "parsed\n");
    assert!(text.contains("It parses."), "{text}");
    for internal in ["session_id", "claude_code_version", "mcp_servers", "system\n", "init"] {
        assert!(!text.contains(internal), "{internal}: {text}");
    }
    assert!(text.lines().count() < 20, "{text}");
}

/// Without a permission the run says which one is missing and which flag gives it, and ends.
fn a_denied_permission_is_named() {
    let Some(stage) = Stage::new(HostKind::Claude) else { return };
    let file = stage.host.project().join("parser.txt");
    let denied = || ScriptedReply::writes(file.to_str().unwrap(), "parsed\n");
    let gives_up = || ScriptedReply::says("I may not write.");
    let model = model(vec![denied(), gives_up(), denied(), gives_up()]);
    let arguments = ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned);
    let (code, text) = stage.run_as(&model, &[], &arguments);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("the host denied Write"), "{text}");
    assert!(!file.exists());
    let why = String::from_utf8(stage.aldis(&["why"]).stdout).unwrap();
    assert!(why.contains("`--permission-mode acceptEdits`"), "{why}");
    assert_eq!(stage.status()["exit_reason"], "permission_denied");
}

/// A host in a scratch home, and a state directory beside it.
pub(super) struct Stage {
    pub(super) host: RealHost,
    _root: TempDir,
}

impl Stage {
    pub(super) fn new(kind: HostKind) -> Option<Self> {
        let installed = Installed::find()?;
        let root = TempDir::new().unwrap();
        let (host, program) = match kind {
            HostKind::Claude => {
                (RealHost::claude(&installed.claude, root.path()), installed.claude)
            }
            HostKind::Codex => (RealHost::codex(&installed.codex, root.path()), installed.codex),
        };
        let host = host.unwrap().with_path(program.parent().unwrap());
        let host = host.with_path(Path::new(ALDIS).parent().unwrap());
        let host = host.with_env("ALDIS_STATE_DIR", root.path().join("state"));
        Some(Self { host, _root: root })
    }

    /// Sets a variable for the host.
    pub(super) fn with_env(self, name: &str, value: &str) -> Self {
        Self { host: self.host.with_env(name, value), ..self }
    }

    /// Supervises the host. Returns the exit code and everything that was printed.
    fn run(&self, model: &ModelServer, options: &[&str]) -> (Option<i32>, String) {
        self.command(model, &[&["run", "--task", "Write the parser"], options].concat())
    }

    /// Supervises the host with exactly these arguments of its own.
    fn run_as(
        &self,
        model: &ModelServer,
        options: &[&str],
        agent: &[String],
    ) -> (Option<i32>, String) {
        let host = self.host.command(model, &SessionChoice::New).unwrap();
        let arguments = [&["run", "--task", "Write the parser"], options].concat();
        self.start(&host, &arguments, agent)
    }

    /// Runs a command that starts the host.
    pub(super) fn command(&self, model: &ModelServer, arguments: &[&str]) -> (Option<i32>, String) {
        let host = self.host.command(model, &SessionChoice::New).unwrap();
        let agent: Vec<&OsStr> = host.get_args().collect();
        self.start(&host, arguments, &agent)
    }

    fn start(
        &self,
        host: &Command,
        arguments: &[&str],
        agent: &[impl AsRef<OsStr>],
    ) -> (Option<i32>, String) {
        let mut command = Command::new(ALDIS);
        command.current_dir(self.host.project()).env_clear();
        command.envs(host.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(arguments).arg("--").arg(host.get_program()).args(agent);
        let done = output(command);
        let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (done.status.code(), text.join("\n"))
    }

    pub(super) fn status(&self) -> Value {
        let done = self.aldis(&["status", "--json"]);
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
    }

    pub(super) fn aldis<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        let mut command = Command::new(ALDIS);
        command.current_dir(self.host.project()).env_clear().envs(self.host.environment());
        command.args(arguments);
        output(command)
    }
}

pub(super) fn output(mut command: Command) -> Output {
    command.stdin(std::process::Stdio::null()).output().unwrap()
}
