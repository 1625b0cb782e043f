//! The hook as hosts call it: pipes that stay open or are gone, calls that make no sense, and every
//! host's own words.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Stdio};

use aldis_store::SqliteStore;
use serde_json::{Value, json};

use super::project::{Answer, NOW, Project, block, conversation, feed, prompted, said, testdata};
use crate::sandbox::ALDIS;

fn spawn(project: &Project) -> Child {
    let mut command = project.command(ALDIS);
    command
        .args(["hook", "claude-code"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_pipe_that_stays_open_is_answered() {
    let project = Project::new();
    project.start(&[]);
    for end in ["", "\n", "  \n\n"] {
        let mut child = spawn(&project);
        let mut input = child.stdin.take().unwrap();
        write!(input, "{}{end}", project.payload("Not yet.")).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(input);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["decision"], "block");
    }
    assert_eq!(project.alarms(), "");
}

#[test]
fn a_pipe_that_stays_silent_is_given_up() {
    let project = Project::new();
    project.start(&[]);
    for beginning in ["", "{\"session_id\": \"S1\","] {
        let mut child = spawn(&project);
        let mut input = child.stdin.take().unwrap();
        input.write_all(beginning.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert!(output.status.success(), "{output:?}");
        assert_eq!((&*output.stdout, &*output.stderr), (&b""[..], &b""[..]));
        let alarms = project.alarms();
        let last = alarms.lines().last().unwrap_or_default();
        assert!(last.contains("deadline"), "{alarms}");
    }
    assert_eq!(project.status()["iteration"], 0);
}

#[test]
fn a_record_that_cannot_be_written_holds_nobody() {
    let project = Project::new();
    project.start(&[]);
    let pipe = project.state_dir().join("failures.jsonl");
    fs::remove_file(&pipe).unwrap_or_default();
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut child = spawn(&project);
    // The payload never comes, so the deadline ends the hook.
    let input = child.stdin.take().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert!(output.status.success(), "{output:?}");
    assert_eq!((&*output.stdout, &*output.stderr), (&b""[..], &b""[..]));
}

#[test]
fn a_failure_is_recorded_before_there_is_a_state_directory() {
    let project = Project::new();
    assert_eq!(project.hook_bytes("claude-code", b"not a payload"), Answer::Allow);
    assert!(project.alarms().contains("not_json"), "{}", project.alarms());
    let failure = project.run(&["log", "--json"]).json().remove(0);
    assert_eq!(
        (&failure["kind"], &failure["part"]),
        (&json!("failure"), &json!("hook claude-code"))
    );
    assert!(project.run(&["doctor"]).stdout.contains("not_json"));
    // Runs begin beside it as if nothing had been there.
    project.start(&[]);
    assert_eq!(project.stop("Not yet.").word(), "block");
}

#[test]
fn the_user_is_told_how_a_run_ends() {
    let skip = ["--skip-expansion", "--skip-qa", "--skip-review", "--skip-reflect"];
    let project = Project::new();
    project.start(&skip);
    for phase in ["init", "planning"] {
        let told = project.notice(&block(phase));
        assert!(told.contains(&format!("Phase {phase} is complete. ")), "{told}");
    }
    assert!(project.notice(&block("execution")).ends_with(" is complete."));
    assert_eq!(project.notice("Nothing to do."), "");

    let project = Project::new();
    project.start(&["--max-iterations", "50"]);
    let mut payload = project.payload("Not yet.");
    for _ in 0..8 {
        assert_eq!(project.hook(&payload).word(), "block");
        payload["stop_hook_active"] = json!(true);
    }
    let done = project.run_with(&["hook", "claude-code"], payload.to_string().as_bytes());
    let told = "is paused, not finished: Claude Code allows only 8 blocked stops in a row.";
    assert!(done.stdout.contains(told), "{}", done.stdout);

    let mut project = Project::new();
    project.start(&["--max-iterations", "1"]);
    assert_eq!(project.notice("Not yet."), "");
    let told = project.notice("Not yet.");
    assert!(told.contains("failed in phase expansion") && told.contains("1 stops"), "{told}");

    project = Project::new();
    project.start(&[]);
    "2026-03-02T13:00:00Z".clone_into(&mut project.now);
    let told = project.notice("Not yet.");
    assert!(told.contains("no activity") && told.contains("aldis auto resume"), "{told}");
}

#[test]
fn a_clock_that_steps_back_hides_no_signal() {
    let mut project = Project::new();
    project.start(&[]);
    let begun = "2026-03-02T10:01:00Z";
    let mut entries = vec![prompted("Go", Some(NOW)), said(&block("expansion"), Some(begun))];
    begun.clone_into(&mut project.now);
    let stop = |project: &Project, entries: &[Value], text: Option<&str>| {
        let mut payload = project.payload(text.unwrap_or_default());
        if text.is_none() {
            payload.as_object_mut().unwrap().remove("last_assistant_message");
        }
        payload["transcript_path"] = json!(project.transcript(&conversation(entries)));
        assert_eq!(project.hook(&payload).word(), "block");
        project.status()["phase"].clone()
    };
    assert_eq!(stop(&project, &entries, Some(&block("expansion"))), "init");
    // Ten minutes back: the final message of the payload, then words that only the file has.
    "2026-03-02T09:50:00Z".clone_into(&mut project.now);
    entries.extend([prompted("Go", None), said(&block("init"), Some("2026-03-02T09:50:00Z"))]);
    assert_eq!(stop(&project, &entries, Some(&block("init"))), "planning");
    entries.extend([prompted("Go", None), said(&block("planning"), Some("2026-03-02T09:50:30Z"))]);
    assert_eq!(stop(&project, &entries, None), "execution");
}

#[test]
fn calls_that_make_no_sense_are_silent() {
    let project = Project::new();
    project.start(&[]);
    let elsewhere = project.root().join("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    for args in [
        &["hook"][..],
        &["hook", "nonsense"],
        &["hook", "claude-code", "more"],
        &["hook", "--what", "claude-code"],
        &["hook", "claude-code", "--color"],
        &["--color", "pink", "hook", "claude-code"],
        &["--color=pink", "hook", "claude-code"],
        &["--state-dir", elsewhere, "hook", "nonsense"],
        &["--what", "hook", "claude-code"],
    ] {
        let done = project.run_with(args, project.payload("Not yet.").to_string().as_bytes());
        let said = (done.code, &*done.stdout, &*done.stderr);
        assert_eq!(said, (0, "", ""), "{args:?}");
    }
    assert!(project.alarms().contains("usage: error: "), "{}", project.alarms());
    // Other commands still tell people what they did wrong.
    assert_eq!(project.run(&["scan", "--what", "hook"]).code, 2);
    for payload in ["", "no JSON", "[]", "7", "{}", "{\"hook_event_name\":7}", "\u{feff}", "{}}"] {
        assert_eq!(project.hook_bytes("claude-code", payload.as_bytes()), Answer::Allow);
    }
    assert_eq!(project.status()["iteration"], 0);
}

#[test]
fn a_host_that_does_not_listen_changes_nothing() {
    let project = Project::new();
    project.start(&[]);
    let payload = project.payload("Not yet.").to_string();
    for redirection in [">&-", ">&- 2>&-", ">/dev/full", "| true"] {
        let mut shell = project.command("/bin/sh");
        let line = format!("\"$0\" hook claude-code {redirection}");
        shell.args(["-c", &line, ALDIS]);
        let done = feed(shell, payload.as_bytes());
        assert_eq!((done.code, &*done.stderr), (0, ""), "{redirection}: {}", done.text());
    }
    // Counted, whether or not the host heard that it should go on.
    assert_eq!(project.status()["iteration"], 4);
    project.assert_sound();
}

#[test]
fn a_newer_database_is_left_alone() {
    let project = Project::new();
    project.start(&[]);
    drop(SqliteStore::open(&project.state_dir()).unwrap());
    let path = project.state_dir().join("aldis.db");
    let file = fs::File::options().write(true).open(&path).unwrap();
    // Where SQLite keeps the version of the schema.
    file.write_all_at(&99_u32.to_be_bytes(), 60).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    assert!(project.alarms().contains("newer version"), "{}", project.alarms());
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// A sample payload in this project, without words that could mean anything.
fn sample(project: &Project, name: &str) -> Value {
    let text = fs::read_to_string(testdata("hosts/samples").join(name)).unwrap();
    let mut payload: Value = serde_json::from_str(&text).unwrap();
    for (member, value) in payload.as_object_mut().unwrap() {
        match &**member {
            "cwd" => *value = json!(project.path()),
            "workspace_roots" => *value = json!([project.path()]),
            "last_assistant_message" | "prompt_response" | "text" => *value = json!("Not yet."),
            // There is no such file.
            "transcript_path" | "transcriptPath" => *value = Value::Null,
            _ => {}
        }
    }
    payload
}

fn session(payload: &Value) -> String {
    let members = ["session_id", "sessionId", "conversation_id"];
    members.iter().find_map(|name| payload[name].as_str()).unwrap().to_owned()
}

#[test]
fn every_host_is_refused_in_its_own_words() {
    for (host, stop, refusal, text) in [
        ("claude-code", "claude_code/in_stop.json", "claude_code/out_block.json", "reason"),
        ("codex", "codex/in_stop.json", "codex/out_block.json", "reason"),
        ("copilot", "copilot/in_stop_pascal.json", "copilot/out_block.json", "reason"),
        ("copilot", "copilot/in_agent_stop_camel.json", "copilot/out_block.json", "reason"),
        ("cursor", "cursor/in_stop.json", "cursor/out_followup.json", "followup_message"),
        ("droid", "droid/in_stop.json", "droid/out_block.json", "reason"),
        ("gemini", "gemini/in_after_agent.json", "gemini/out_deny.json", "reason"),
        ("goose", "goose/in_stop.json", "goose/out_block.json", "reason"),
        ("qwen", "qwen/in_stop.json", "qwen/out_block.json", "reason"),
    ] {
        // Under its own name, and where it runs what is registered with Claude Code.
        for registered in [host, "claude-code"] {
            let project = Project::new();
            let payload = sample(&project, stop);
            let session = session(&payload);
            project.run(&["auto", "start", "Add CSV export", "--session", &session]);
            let done = project.run_with(&["hook", registered], payload.to_string().as_bytes());
            assert_eq!((done.code, &*done.stderr), (0, ""), "{stop}: {}", done.text());
            assert!(!done.stdout.is_empty(), "{stop} registered with {registered}");
            let mut answer = done.json().remove(0);
            // Cursor translates what hooks out of Claude Code's settings say.
            let imported = host == "cursor" && registered == "claude-code";
            let (refusal, text) =
                if imported { ("claude_code/out_block.json", "reason") } else { (refusal, text) };
            let reason = answer[text].take();
            let said = reason.as_str().unwrap_or_default();
            assert!(said.contains("EXPANSION_COMPLETE"), "{stop}: {}", done.text());
            let mut expected: Value =
                serde_json::from_slice(&fs::read(testdata("hosts/samples").join(refusal)).unwrap())
                    .unwrap();
            expected[text] = Value::Null;
            assert_eq!(answer, expected, "{stop} registered with {registered}");
            assert_eq!(project.status()["iteration"], 1, "{stop}");
        }
    }
}

#[test]
fn cursor_says_the_text_first_and_stops_then() {
    let project = Project::new();
    let mut response = sample(&project, "cursor/in_after_agent_response.json");
    let stop = sample(&project, "cursor/in_stop.json");
    project.run(&["auto", "start", "Add CSV export", "--session", &session(&stop)]);
    response["text"] = json!(block("expansion"));
    assert_eq!(session(&response), session(&stop));
    // The host wants an object in any case.
    let heard = project.hook_bytes("cursor", response.to_string().as_bytes());
    assert_ne!(heard.word(), "block");
    assert_eq!(project.status()["phase"], "expansion", "until the agent stops");
    let Answer::Other(answer) = project.hook_bytes("cursor", stop.to_string().as_bytes()) else {
        panic!("no follow-up")
    };
    assert!(answer["followup_message"].as_str().unwrap().contains("phase init"), "{answer}");
    assert_eq!(project.status()["phase"], "init");
    // Said once, it counts once.
    project.hook_bytes("cursor", stop.to_string().as_bytes());
    assert_eq!(project.status()["phase"], "init");
}
