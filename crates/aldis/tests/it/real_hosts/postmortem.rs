//! What `aldis postmortem` says of sessions that the hosts themselves wrote down, with nothing of ours
//! installed in them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use aldis_testkit::model_server::{ModelServer, Script, ScriptedReply};
use aldis_testkit::real_host::{HostKind, Installed, RealHost, SessionChoice};
use serde_json::Value;
use tempfile::TempDir;

use crate::sandbox::{ALDIS, QA_COMPLETE};

#[test]
fn claude_code_left_a_false_claim() {
    a_false_claim_is_told_with_its_line(HostKind::Claude);
}

#[test]
fn codex_left_a_false_claim() {
    a_false_claim_is_told_with_its_line(HostKind::Codex);
}

/// The agent writes a file, sees its check fail, and claims all the same.
fn a_false_claim_is_told_with_its_line(kind: HostKind) {
    let Some(installed) = Installed::find() else { return };
    let root = TempDir::new().unwrap();
    let host = match kind {
        HostKind::Claude => RealHost::claude(&installed.claude, root.path()),
        HostKind::Codex => RealHost::codex(&installed.codex, root.path()),
    };
    let host = host.unwrap();
    let check = host.project().join("check");
    fs::write(&check, "#!/bin/sh\necho 2 of 118 failed\nexit 3\n").unwrap();
    fs::set_permissions(&check, fs::Permissions::from_mode(0o755)).unwrap();
    let replies = [ScriptedReply::runs("./check"), ScriptedReply::says(QA_COMPLETE)];
    let model = ModelServer::start(Script::new(replies)).unwrap();
    let run = host.run(&model, "Add CSV export.", &SessionChoice::New).unwrap();
    assert!(run.status.success(), "{}", run.text());

    let output = Command::new(ALDIS)
        .args(["postmortem", "--json"])
        .current_dir(root.path())
        .env_clear()
        .envs(host.environment())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(1), ""));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [session] = &lines[..] else { panic!("{text}") };
    let [claim] = &session["claims"].as_array().unwrap()[..] else { panic!("{session:#}") };
    assert_eq!(claim["verdict"], "contradicted", "{session:#}");
    assert_eq!(claim["check"]["exit"], 3, "{session:#}");
    assert!(claim["check"]["command"].as_str().unwrap().contains("./check"), "{claim}");
    // The line is the one in which the host wrote the claim.
    let file = fs::read_to_string(session["file"].as_str().unwrap()).unwrap();
    let line = |line: &Value| file.lines().nth(line.as_u64().unwrap() as usize - 1).unwrap();
    assert!(line(&claim["line"]).contains("SIGNAL: QA_COMPLETE"), "{claim}");
    assert!(line(&claim["check"]["line"]).contains("2 of 118 failed"), "{claim}");
    assert!(session["tokens"].as_u64().unwrap() > 0, "{session:#}");
    assert_eq!(session["tools"], 1, "{session:#}");
    assert_eq!(session["asked"], "Add CSV export.", "{session:#}");
    let project = host.project();
    assert_eq!(session["directory"], project.to_str().unwrap(), "{session:#}");
}
