//! `aldis signal`: to the store, else to the work tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::aldis;
use crate::phases::project::{Answer, Project};
use crate::sandbox::{ALDIS, Done};

const SESSION: (&str, &str) = ("CLAUDE_CODE_SESSION_ID", "S1");

fn signal(project: &Project, args: &[&str], state: Option<&Path>) -> Done {
    let mut command = project.command(ALDIS);
    command.arg("signal").args(args).env(SESSION.0, SESSION.1);
    if let Some(state) = state {
        command.env("ALDIS_STATE_DIR", state);
    }
    let output = command.output().unwrap();
    Done {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_report_of_the_shell_ends_the_phase() {
    let project = Project::new();
    project.start(&[]);
    let done = signal(&project, &["done", "analysed"], None);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.starts_with("Accepted as aldis-call-"), "{}", done.text());
    assert!(matches!(project.stop("I am through."), Answer::Block(_)));
    let why = project.why();
    assert_eq!(project.status()["phase"], "init", "{why}");
    assert_eq!(why["evidence"][0]["via"], "receipt", "{why}");
}

#[test]
fn a_refusal_says_why_and_what_to_do() {
    let project = Project::new();
    let done = signal(&project, &["done"], None);
    assert_eq!(done.code, 1, "{}", done.text());
    assert!(done.stdout.contains("no run is active in this project"), "{}", done.text());
    project.start(&[]);
    let done = signal(&project, &["done", "tested", "--phase", "qa", "--json"], None);
    assert_eq!(done.code, 1, "{}", done.text());
    assert_eq!(done.json()[0]["rule"], "call/out-of-order", "{}", done.text());
    assert_eq!(signal(&project, &["progress", "101"], None).code, 2);
}

#[test]
fn what_the_store_does_not_take_waits_in_the_work_tree() {
    let project = Project::new();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(project.path()).env("HOME", project.home());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    let before = git(&["status", "--porcelain"]);
    project.start(&[]);
    assert!(project.view_path().exists());
    assert_eq!(git(&["status", "--porcelain"]), before, "git shows the state file");
    // A directory that cannot be made: what a sandbox looks like from inside.
    let file = project.root().join("file");
    fs::write(&file, "").unwrap();
    let done = signal(&project, &["done", "analysed"], Some(&file.join("state")));
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains("Recorded in the work tree"), "{}", done.text());
    let spool = project.path().join(".aldis/spool");
    let waiting: Vec<_> = fs::read_dir(&spool).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(waiting.len(), 1);
    let mode = fs::metadata(&waiting[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(git(&["status", "--porcelain"]), before, "git shows it");
    // Of a session that nobody knows of it means nothing.
    let text = fs::read_to_string(&waiting[0]).unwrap();
    let forged = text.replace("\"S1\"", "\"S9\"").replace("aldis-call-", "aldis-call-x");
    fs::write(spool.join("forged.json"), &forged).unwrap();
    fs::write(spool.join("broken.json"), "{").unwrap();
    assert!(matches!(project.stop("I am through."), Answer::Block(_)));
    let why = project.why();
    assert_eq!(project.status()["phase"], "init", "{why}");
    assert_eq!(why["evidence"][0]["via"], "receipt", "{why}");
    assert!(!waiting[0].exists());
    assert_eq!(fs::read_to_string(spool.join("forged.json")).unwrap(), forged);
}

/// Where nothing can be written the report is printed, and counts in the result of that very command.
#[test]
fn what_can_be_written_nowhere_is_printed_as_a_receipt() {
    for (name, command, counts) in [
        ("the command alone", "aldis signal done 'analysed; all of it'", true),
        ("another command", "cat notes.txt", false),
        ("one among others", "cd . && aldis signal done analysed", false),
    ] {
        let project = Project::new();
        project.start(&[]);
        let file = project.root().join("file");
        fs::write(&file, "").unwrap();
        fs::write(project.path().join(".aldis"), "").unwrap();
        let done = signal(&project, &["done", "analysed"], Some(&file.join("state")));
        assert_eq!(done.code, 0, "{}", done.text());
        let receipt = done.stdout.lines().next().unwrap();
        assert!(receipt.starts_with("aldis-receipt v1 mac=- {"), "{}", done.text());
        assert!(done.stdout.contains("this line is the report"), "{}", done.text());
        let calls = [("toolu_1", json!({ "command": command }), done.stdout.clone())];
        assert!(matches!(project.hook(&payload_of(&project, &calls)), Answer::Block(_)), "{name}");
        let phase = if counts { "init" } else { "expansion" };
        assert_eq!(project.status()["phase"], phase, "{name}: {}", project.why());
        // The same line once more is the same report.
        assert!(matches!(project.hook(&payload_of(&project, &calls)), Answer::Block(_)), "{name}");
        assert_eq!(project.status()["phase"], phase, "{name}: {}", project.why());
    }
}

/// A stop whose transcript shows commands of a shell with what they printed.
fn payload_of(project: &Project, calls: &[(&str, Value, String)]) -> Value {
    let shown: Vec<_> = calls
        .iter()
        .map(|(id, input, printed)| (*id, "Bash", input.clone(), json!(printed)))
        .collect();
    super::payload_showing(project, &shown)
}

/// A supervised agent that is a shell script: it knows its run by the variable.
#[test]
fn a_supervised_agent_reports_from_its_shell() {
    let project = Project::new();
    let agent = |body: &str| {
        let path = project.path().join("agent.sh");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let args = ["run", "--task", "Add CSV export", "--max-iterations", "2", "--", "./agent.sh"];
        project.run(&args)
    };
    let aldis = aldis();
    let done = agent(&format!("{aldis} signal progress 40; {aldis} signal done 'it works' >told"));
    assert_eq!(done.code, 0, "{}", done.text());
    let told = fs::read_to_string(project.path().join("told")).unwrap();
    assert!(told.contains("It counts when you stop"), "{told}");
    let log = project.run(&["why", "--all", "--json", &latest(&project)]).stdout;
    assert!(log.contains("with `aldis signal`"), "{log}");
    assert!(log.contains("\"via\":\"receipt\""), "{log}");
    let done = agent(&format!("{aldis} signal blocked 'no database' --needs environment"));
    assert_eq!(done.code, 3, "{}", done.text());
    // Without the variable nobody knows whose it is; the agent's session is not ours.
    let done = agent(&format!(
        "env -u ALDIS_RUN CLAUDE_CODE_SESSION_ID=S7 {aldis} signal done 'it works' >told; exit 0"
    ));
    assert_ne!(done.code, 0, "{}", done.text());
    let told = fs::read_to_string(project.path().join("told")).unwrap();
    assert!(told.contains("belongs to another session"), "{told}");
}

/// A claim is checked while its caller waits. At the end the result counts, unless something changed since.
#[test]
fn a_claim_is_checked_at_once_and_again_only_after_a_change() {
    for (name, after, checks) in [("unchanged", "true", 2), ("changed", "echo more >other.txt", 3)]
    {
        let project = Project::new();
        let count = project.root().join("checks");
        let aldis = aldis();
        let agent = format!(
            "#!/bin/sh\n{aldis} signal done first >../told1; echo $? >../code1\n\
             echo whole >work.txt\n{aldis} signal done second >../told2; echo $? >../code2\n{after}\n"
        );
        let path = project.path().join("agent.sh");
        fs::write(&path, agent).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let verify = format!("echo run >>{}; grep whole work.txt", count.display());
        let args = ["run", "--task", "Add CSV export", "--verify", &verify, "--", "./agent.sh"];
        let done = project.run(&args);
        assert_eq!(done.code, 0, "{name}: {}", done.text());
        let read = |file: &str| fs::read_to_string(project.path().join("..").join(file)).unwrap();
        assert!(
            read("told1").contains("the check failed (call/check-failed)"),
            "{}",
            read("told1")
        );
        assert!(read("told1").contains("No such file"), "{}", read("told1"));
        assert!(read("told2").contains("The check passed"), "{}", read("told2"));
        assert_eq!((&*read("code1"), &*read("code2")), ("1\n", "0\n"));
        assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), checks, "{name}");
        assert_eq!(project.run(&["replay", &latest(&project)]).code, 0);
    }
}

fn latest(project: &Project) -> String {
    let status: Value = project.run(&["status", "--json"]).json().remove(0);
    status["run"].as_str().unwrap().to_owned()
}
