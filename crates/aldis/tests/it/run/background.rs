//! `aldis run --detach` and `aldis attach`; programs that are missing; messages that end a wait.

use std::fs;
use std::process::{Child, Stdio};

use super::terminal::Terminal;
use super::{Stage, assert_nothing_runs_in, left_in, wait_until};
use crate::phases::project::feed;
use crate::sandbox::{ALDIS, Done};

/// Works until the file `go` is there.
const UNTIL_GO: &str = "echo at it; touch here; while [ ! -e go ]; do sleep 0.05; done; echo '<chorus>COMPLETE</chorus>'";

fn let_go(stage: &Stage) {
    fs::write(stage.0.path().join("go"), "").unwrap();
}

/// Runs a command where no agent is on the `PATH`.
fn without_agents(stage: &Stage, args: &[&str]) -> Done {
    let mut command = stage.0.command(ALDIS);
    command.env("PATH", stage.0.path()).args(args);
    feed(command, b"")
}

fn attach(stage: &Stage) -> Child {
    let mut command = stage.0.command(ALDIS);
    command.arg("attach").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_missing_program_is_found_before_anything_begins() {
    let stage = Stage::new("");
    for (options, what, help) in [
        (
            &["--host", "claude-code"][..],
            "Claude Code is not installed (no `claude` on the PATH)",
            "npm install -g @anthropic-ai/claude-code",
        ),
        (&["--host", "cursor", "--allow", "Bash"], "Cursor has no option", ".cursor/cli.json"),
        (&[], "no agent is installed", "aldis run TASK -- COMMAND"),
        (&["--allow", "Bash", "--", "./agent.sh"], "--allow needs --host HOST", "after `--`"),
        (&["--", "codex"], "Codex is not installed", "npm install -g @openai/codex"),
        (&["--", "./missing"], "there is no program `./missing`", "check the path"),
    ] {
        let done =
            without_agents(&stage, &[&["run", "--task", "Add CSV export"], options].concat());
        assert_eq!(done.code, 2, "{}", done.text());
        assert!(done.stderr.contains(what) && done.stderr.contains(help), "{}", done.text());
    }
    assert_eq!(stage.0.run(&["status", "--all", "--json"]).stdout, "", "a run was begun");
}

#[test]
fn the_host_of_the_settings_is_taken() {
    let stage = Stage::new("");
    let path = stage.0.path().join("aldis.toml");
    fs::write(&path, "[run]\nhost = \"goose\"\n").unwrap();
    let done = without_agents(&stage, &["run", "Add CSV export"]);
    assert_eq!(done.code, 2, "{}", done.text());
    assert!(done.stderr.contains("Goose is not installed"), "{}", done.text());
    fs::write(&path, "[run]\nhost = \"geese\"\n").unwrap();
    let done = without_agents(&stage, &["run", "Add CSV export"]);
    assert!(done.stderr.contains("unknown host `geese`"), "{}", done.text());
}

/// The window is closed, and the run ends well.
#[test]
fn a_run_in_the_background_survives_its_terminal() {
    let stage = Stage::new(UNTIL_GO);
    let line =
        format!("'{ALDIS}' run --detach 'Add CSV export' -- ./agent.sh; echo back; sleep 60");
    let terminal = Terminal::open(&stage, &line);
    wait_until("the agent works", || stage.0.path().join("here").exists());
    terminal.close();
    assert_eq!(stage.status()["status"], "working");
    let watching = attach(&stage);
    let_go(&stage);
    let watched = watching.wait_with_output().unwrap();
    let text = String::from_utf8(watched.stdout).unwrap();
    assert_eq!(watched.status.code(), Some(0), "{text}");
    for part in ["Add CSV export", "at it", "Done after 1 iteration", ": done"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(stage.status()["exit_reason"], "done");
    // Whoever is attached sees the end a moment before the supervisor has gone.
    wait_until("nothing runs any more", || left_in(&stage.0.path()).is_none());
}

/// Ctrl-C leaves the run alone, and says so.
#[test]
fn whoever_watches_a_run_can_leave_it() {
    let stage = Stage::new(UNTIL_GO);
    let done = stage.run(&["--detach"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let run = stage.status()["run"].as_str().unwrap().to_owned();
    for part in [format!("run {run} works in the background"), format!("aldis attach {run}")] {
        assert!(done.stdout.contains(&part), "{}", done.text());
    }
    // It is supervised: a second supervisor is refused.
    let second = stage.0.run(&["run", "--continue"]);
    assert_eq!(second.code, 2, "{}", second.text());
    assert!(second.stderr.contains(&format!("run {run} is running")), "{}", second.text());
    let mut terminal = Terminal::open(&stage, &format!("exec '{ALDIS}' attach"));
    wait_until("the agent works", || stage.0.path().join("here").exists());
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.types("\x03");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains(&format!("detached; run {run} goes on")), "{shown}");
    assert_eq!(stage.status()["status"], "working");
    assert_eq!(stage.0.run(&["abort"]).code, 0);
    let ended = attach(&stage).wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_nothing_runs_in(&stage.0.path(), "an aborted run in the background");
}

/// A supervisor that was killed is not waited for, and the run is continued in the background.
#[test]
fn a_run_whose_supervisor_is_gone_says_how_to_continue_it() {
    let stage = Stage::new(UNTIL_GO);
    assert_eq!(stage.run(&["--detach"]).code, 0);
    wait_until("the agent works", || stage.0.path().join("here").exists());
    let path = stage.0.path();
    let supervisors = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let cwd = fs::read_link(entry.path().join("cwd")).ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let pid = entry.file_name().to_str()?.parse::<i32>().ok()?;
        (cwd == path && line.contains("--continue")).then_some(pid)
    });
    for pid in supervisors {
        let pid = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    wait_until("the lease is nobody's", || {
        stage.0.run(&["status"]).stdout.contains("unsupervised")
    });
    let left = attach(&stage).wait_with_output().unwrap();
    let text = String::from_utf8(left.stdout).unwrap();
    assert_eq!(left.status.code(), Some(1), "{text}");
    assert!(text.contains("aldis run --continue"), "{text}");
    let run = stage.status()["run"].as_str().unwrap().to_owned();
    let told = stage.0.run(&["tell", &run, "The API has moved."]).stdout;
    assert!(told.contains("no process supervises it\n  continue it: aldis run"), "{told}");
    let_go(&stage);
    assert_eq!(stage.0.run(&["run", "--continue", "--detach"]).code, 0);
    assert_eq!(attach(&stage).wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(stage.status()["exit_reason"], "done");
}

/// The answers that an agent suggests are shown wherever its question is.
#[test]
fn a_question_is_shown_with_its_options() {
    let ask = format!("{ALDIS} signal ask 'Keep the old\nendpoint?' --option keep --option drop");
    let stage = Stage::new(&ask);
    let done = stage.run(&["--no-wait"]);
    assert_eq!(done.code, 3, "{}", done.text());
    let options = "options: keep, drop";
    let why = stage.0.run(&["why"]).stdout;
    assert!(why.contains(options), "{why}");
    let run = stage.status()["run"].as_str().unwrap().to_owned();
    for shown in [stage.0.run(&["status"]), stage.0.run(&["status", &run])] {
        assert!(shown.stdout.contains("q1: Keep the old endpoint?"), "{}", shown.text());
        assert!(shown.stdout.contains(options), "{}", shown.text());
    }
    assert_eq!(stage.status()["question"]["options"], serde_json::json!(["keep", "drop"]));
    let stage = Stage::new(&format!(
        "if [ $n = 1 ]; then {ask}; else echo '<chorus>COMPLETE</chorus>'; fi"
    ));
    let child = stage.start(&[]);
    stage.wait_for("asking");
    assert_eq!(stage.0.run(&["answer", "q1", "keep"]).code, 0);
    let done = child.wait_with_output().unwrap();
    let live = String::from_utf8(done.stdout).unwrap();
    assert!(live.contains(options), "{live}");
}

/// A message answers the question that is open.
#[test]
fn a_message_ends_the_wait_for_an_answer() {
    let stage = Stage::new(
        "if [ $n = 1 ]; then echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>'; else echo '<chorus>COMPLETE</chorus>'; fi",
    );
    let child = stage.start(&[]);
    stage.wait_for("asking");
    let run = stage.status()["run"].as_str().unwrap().to_owned();
    let told = stage.0.run(&["tell", &run, "Drop it."]);
    assert_eq!(told.code, 0, "{}", told.text());
    assert!(told.stdout.starts_with("Answered q1; run "), "{}", told.text());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let prompt = stage.prompt(2);
    assert!(prompt.contains("> keep or drop?") && prompt.contains("> Drop it."), "{prompt}");
}

/// Two agents in one work tree overwrite each other's changes: whoever starts the second one is told.
#[test]
fn a_second_run_in_the_same_place_is_warned_of() {
    let stage =
        Stage::idle("[ -e works ] || { touch works; sleep 60; }; echo '<chorus>COMPLETE</chorus>'");
    let mut first = stage.start(&[]);
    wait_until("the first agent works", || stage.0.path().join("works").exists());
    let second = stage.run(&[]);
    assert_eq!(second.code, 0, "{}", second.text());
    assert!(second.stderr.contains("works here, too"), "{}", second.text());
    first.kill().unwrap();
    first.wait().unwrap();
    let third = stage.run(&[]);
    assert!(!third.stderr.contains("works here, too"), "nobody works there: {}", third.text());
}
