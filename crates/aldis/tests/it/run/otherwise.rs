//! Runs that take another way than most: interrupted in a check, continued, answered from elsewhere.

use std::fs;

use super::{Stage, wait_until};
use crate::sandbox::ALDIS;

#[test]
fn an_interrupt_ends_a_run_whose_claim_is_checked() {
    let stage = Stage::new("echo '<chorus>COMPLETE</chorus>'");
    let child = stage.start(&["--verify", "touch checking; sleep 60"]);
    wait_until("the check runs", || stage.0.path().join("checking").exists());
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(stage.status()["exit_reason"], "aborted");
    assert_eq!(fs::read_to_string(stage.0.path().join("count")).unwrap().trim(), "1");
    super::assert_nothing_runs_in(&stage.0.path(), "the check");
}

/// The words that were agreed on are told, and no prompt says them by itself.
#[test]
fn a_word_of_ones_own_ends_a_run() {
    let stage = Stage::new("");
    stage.script(
        "agent.sh",
        "#!/bin/sh\ncat > prompt\necho 'The suite is green.'\necho '<promise>ALL TESTS PASS</promise>'\n",
    );
    let done = stage.run(&["--dialect", "promise=ALL TESTS PASS"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let prompt = fs::read_to_string(stage.0.path().join("prompt")).unwrap();
    assert!(prompt.contains("\n    <promise>ALL TESTS PASS</promise>\n"), "{prompt}");
    let other = stage.run(&["--dialect", "promise=SHIPPED", "--max-iterations", "1"]);
    assert_eq!(other.code, 5, "{}", other.text());
}

/// Hosts report limits on standard error too; only a process that failed has met one.
#[test]
fn a_limit_on_standard_error_is_waited_for() {
    let limit = "echo 'ERROR: You have hit it.' >&2; \
                 echo \"You've hit your usage limit. Try again in 1 second.\" >&2";
    let stage = Stage::new(&format!(
        "if [ $n = 1 ]; then {limit}; exit 1; fi; {limit}; echo '<chorus>COMPLETE</chorus>'"
    ));
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(stage.status()["iteration"], 1);
    assert_eq!(fs::read_to_string(stage.0.path().join("count")).unwrap().trim(), "2");
}

/// `aldis status` shows the runs of all projects, and how to continue them: that works from anywhere.
#[test]
fn a_run_is_continued_in_its_own_directory() {
    let stage = Stage::new("[ $n -lt 2 ] || echo '<chorus>COMPLETE</chorus>'");
    let check = ["--verify", "test -x agent.sh", "--max-iterations", "1"];
    assert_eq!(stage.run(&check).code, 5);
    let next = stage.status()["remedy"].as_str().unwrap().to_owned();
    let command = next.split('`').nth(1).unwrap_or_else(|| panic!("no command in {next}"));
    let elsewhere = tempfile::tempdir().unwrap();
    let go_on = || {
        let words = command.split(' ').skip(1);
        stage.0.command(ALDIS).args(words).current_dir(&elsewhere).output().unwrap()
    };
    let project = stage.0.path();
    let moved = project.with_extension("moved");
    fs::rename(&project, &moved).unwrap();
    let gone = go_on();
    let text = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert_eq!(gone.status.code(), Some(2), "{text}");
    assert!(text.contains("the directory of the run is gone"), "{text}");
    fs::rename(&moved, &project).unwrap();
    let done = go_on();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(stage.status()["exit_reason"], "done");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing happened elsewhere");
}

#[test]
fn what_is_used_up_wants_a_higher_limit() {
    let stage = Stage::new("touch f.$n; [ $n -lt 3 ] || echo '<chorus>COMPLETE</chorus>'");
    assert_eq!(stage.run(&["--max-iterations", "1"]).code, 5);
    let refused = stage.0.run(&["run", "--continue"]);
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("--max-iterations"), "{}", refused.text());
    let done = stage.0.run(&["run", "--continue", "--max-iterations", "5"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(stage.status()["iteration"], 3);
}

/// Whoever sits in another directory can answer too, if only one run asks.
#[test]
fn the_only_question_is_answered_from_anywhere() {
    let stage = Stage::new(
        "if [ $n = 1 ]; then echo '<chorus>NEEDS_HUMAN: keep?</chorus>'; else echo '<chorus>COMPLETE</chorus>'; fi",
    );
    let child = stage.start(&[]);
    stage.wait_for("asking");
    let elsewhere = tempfile::tempdir().unwrap();
    let answer = |id: &str| {
        let mut command = stage.0.command(ALDIS);
        command.current_dir(elsewhere.path()).args(["answer", id, "Drop it."]);
        command.output().unwrap().status.code()
    };
    assert_eq!((answer("q9"), answer("q1")), (Some(1), Some(0)));
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(stage.prompt(2).contains("> Drop it."));
}

/// What ended it and what to do is said at the end.
#[test]
fn the_last_lines_say_why_and_what_to_do() {
    for (script, options, words) in [
        ("echo '<chorus>BLOCKED: no key</chorus>'", &[][..], "Blocked after 1 iteration"),
        ("echo '<chorus>BLOCKED: no key</chorus>'", &[], ": no key"),
        ("exit 7", &["--max-crashes", "0"], "the agent exited with code 7"),
        ("echo '<chorus>NEEDS_HELP: which?</chorus>'", &["--no-wait"], ": which?"),
        (
            "echo '<chorus>NEEDS_HELP: which?</chorus>'",
            &["--no-wait"],
            "`aldis answer q1 TEXT`, then",
        ),
    ] {
        let stage = Stage::new(script);
        let done = stage.run(options);
        assert!(done.stdout.contains(words), "{script}: {}", done.text());
    }
}

/// A permission that the host denies is named where people look, with what allows it; the same one a
/// second time ends the run.
#[test]
fn a_denied_permission_is_named_and_ends_the_run_the_second_time() {
    let init = r#"{"type":"system","subtype":"init","cwd":"/p","session_id":"s1","tools":["Write"],"mcp_servers":[],"model":"m","permissionMode":"default","apiKeySource":"none","claude_code_version":"2.1.326"}"#;
    let result = concat!(
        r#"{"type":"result","subtype":"success","is_error":false,"result":"I could not write.","#,
        r#""session_id":"s1","permission_denials":[{"tool_name":"Write","tool_use_id":"t1","#,
        r#""tool_input":{"file_path":"src/a.rs","content":"x"}}]}"#
    );
    let stage = Stage::new(&format!("echo '{init}'\necho '{result}'"));
    let done = stage.run(&[]);
    assert_eq!(done.code, 3, "{}", done.text());
    assert!(done.stdout.contains("the host denied Write src/a.rs"), "{}", done.text());
    assert!(!done.stdout.contains("session_id"), "the host's internals: {}", done.text());
    assert_eq!(stage.status()["exit_reason"], "permission_denied");
    assert_eq!(stage.status()["iteration"], 2);
    let why = stage.0.run(&["why"]).stdout;
    assert!(why.contains("--permission-mode acceptEdits"), "{why}");
    assert!(stage.prompt(2).contains("Write"), "{}", stage.prompt(2));
    stage.script("allowed.sh", "#!/bin/sh\ncat > prompt.3\necho '<chorus>COMPLETE</chorus>'\n");
    let done = stage.0.run(&["run", "--continue", "--", "./allowed.sh"]);
    assert_eq!(done.code, 0, "{}", done.text());
}

/// An ending that was no success names the last claim that did not count, and why, wherever it is
/// shown.
#[test]
fn every_surface_names_the_last_refused_claim() {
    let stage = Stage::new("echo '<chorus>COMPLETE</chorus>'");
    let done = stage.run(&["--verify", "false", "--max-iterations", "2"]);
    assert_eq!(done.code, 5, "{}", done.text());
    let form = stage.status();
    let id = form["run"].as_str().unwrap();
    let shown = |args: &[&str]| stage.0.run(args).stdout;
    for (surface, text) in [
        ("live view", done.stdout),
        ("status", shown(&["status"])),
        ("status RUN", shown(&["status", id])),
        ("why", shown(&["why"])),
        ("JSON", form["refused"].as_str().unwrap().to_owned()),
    ] {
        let named = text.contains("<chorus>COMPLETE</chorus>") && text.contains("the check failed");
        assert!(named, "{surface}: {text}");
    }
    assert_eq!((&form["tone"], &form["active"]), (&"bad".into(), &false.into()));
    assert!(form["remedy"].as_str().unwrap().contains(&format!("aldis run --continue {id}")));
}

/// A run whose supervisor was killed is shown as gone, with what to do; the run that is named is
/// continued, also when a later one was started.
#[test]
fn a_supervisor_that_is_gone_is_shown_as_gone_and_its_run_continued() {
    let stage = Stage::new("if [ $n = 1 ]; then sleep 60; fi; echo '<chorus>COMPLETE</chorus>'");
    let mut child = stage.start(&[]);
    stage.wait_for("working");
    wait_until("the agent works", || stage.0.path().join("prompt.1").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let form = stage.status();
    let id = form["run"].as_str().unwrap();
    assert_eq!((&form["status"], &form["active"]), (&"unsupervised".into(), &true.into()));
    let command = format!("aldis run --continue {id}");
    let shown = |args: &[&str]| stage.0.run(args).stdout;
    for (surface, text) in [
        ("status", shown(&["status"])),
        ("status RUN", shown(&["status", id])),
        ("why", shown(&["why", id])),
        ("JSON", format!("{} {}", form["summary"], form["remedy"])),
    ] {
        let named = text.contains("its process is gone") && text.contains(&command);
        assert!(named && !text.contains("working"), "{surface}: {text}");
    }
    assert_eq!(stage.run(&[]).code, 0, "another run");
    let done = stage.0.run(&["run", "--continue", id]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains(id), "{}", done.text());
}
