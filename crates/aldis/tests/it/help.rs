//! Help, version, completions and usage errors.

use std::process::{Command, Stdio};

use crate::sandbox::{ALDIS, Sandbox};

const COMMANDS: &[&[&str]] = &[
    &[],
    &["scan"],
    &["explain"],
    &["dialects"],
    &["dialects", "list"],
    &["dialects", "show"],
    &["dialects", "check"],
    &["plan"],
    &["plan", "check"],
    &["plan", "new"],
    &["postmortem"],
    &["prompt"],
    &["schema"],
    &["completions"],
    &["config"],
    &["config", "check"],
    &["config", "init"],
    &["config", "show"],
    &["init"],
    &["man"],
    &["run"],
    &["deliver"],
    &["demo"],
    &["trust"],
    &["install"],
    &["uninstall"],
    &["doctor"],
    &["auto"],
    &["auto", "start"],
    &["auto", "status"],
    &["auto", "resume"],
    &["auto", "stop"],
    &["hook"],
    &["status"],
    &["why"],
    &["watch"],
    &["log"],
    &["output"],
    &["report"],
    &["store"],
    &["store", "prune"],
    &["step"],
    &["replay"],
    &["serve"],
    &["mcp"],
    &["signal"],
    &["signal", "done"],
    &["token"],
    &["token", "new"],
];

#[test]
fn every_command_has_help() {
    let sandbox = Sandbox::new();
    for command in COMMANDS {
        let done = sandbox.run(&[command, &["--help"][..]].concat());
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{command:?}");
        let name = [&["help"], *command].concat().join("-");
        insta::assert_snapshot!(name, done.stdout);
    }
}

#[test]
fn help_is_coloured_only_when_asked() {
    let sandbox = Sandbox::new();
    assert!(!sandbox.run(&["--help"]).stdout.contains('\x1b'));
    assert!(sandbox.run(&["dialects", "list", "--color", "always"]).stdout.contains('\x1b'));
    assert!(!sandbox.run(&["dialects", "list"]).stdout.contains('\x1b'));
}

#[test]
fn says_its_version() {
    assert_eq!(
        Sandbox::new().run(&["--version"]).text(),
        "exit 0\n-- stdout\naldis 0.2.0\n-- stderr\n"
    );
}

#[test]
fn wrong_usage_exits_with_2() {
    let sandbox = Sandbox::new();
    let table: &[&[&str]] = &[
        &[],
        &["no-such-command"],
        &["scan", "--no-such-option"],
        &["scan", "--input", "no-such-host"],
        &["scan", "--matching", "sloppy"],
        &["scan", "--require-token"],
        &["scan", "--token", ""],
        &["scan", "--dialect", "no-such-dialect"],
        &["scan", "--dialect", "caw=WORD"],
        &["scan", "--dialect", "turn=no blanks"],
        &["scan", "--dialect", "missing.toml"],
        &["scan", "--follow", "a", "b"],
        &["schema", "no-such-format"],
        &["prompt", "no-such-dialect"],
        &["dialects", "show", "no-such-dialect"],
        &["dialects", "check", "missing.toml"],
        &["completions", "no-such-shell"],
        &["config", "show", "no.such.key"],
        &["config", "show", "--timeout", "0"],
        &["config", "show", "--max-cost", "free"],
        &["config", "check", "missing.toml"],
        &["trust", "--list", "--revoke"],
        &["trust"],
        &["install"],
        &["install", "no-such-host"],
        &["install", "codex", "--user", "--project"],
        &["install", "codex", "--local"],
        &["doctor", "no-such-host"],
    ];
    for args in table {
        let done = sandbox.run(args);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{args:?}");
        assert!(!done.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn errors_name_the_thing_and_the_remedy() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(&["scan", "--dialect", "cow"]).text(), @r"
    exit 2
    -- stdout
    -- stderr
    error: there is no dialect `cow`
     help: the dialects are caw, delivery, chorus, turn, pilot, promise, ralph-status, ralphex, event, axiom
    ");
}

#[test]
fn completions_know_the_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let done = sandbox.run(&["completions", shell]);
        assert_eq!(done.code, 0, "{shell}");
        assert!(done.stdout.contains("near-misses"), "{shell}");
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let sandbox = Sandbox::new();
    let done = sandbox.run(&["man", "pages/man1"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{}", done.text());
    for page in ["aldis.1", "aldis-run.1", "aldis-config-show.1"] {
        let text = std::fs::read_to_string(sandbox.path().join("pages/man1").join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    assert!(!sandbox.path().join("pages/man1/aldis-agent-reaper.1").exists());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(ALDIS)
        .env_clear()
        .args(["schema", "scan"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(ALDIS)
        .env_clear()
        .args(["schema", "scan"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "error: failed to write standard output: no space left on device\n");
}

#[test]
fn prompts_signal_nothing() {
    let sandbox = Sandbox::new();
    for line in sandbox.run(&["dialects", "list", "--json"]).json() {
        let name = line["name"].as_str().unwrap();
        let prompt = sandbox.run(&["prompt", name]);
        assert_eq!(prompt.code, 0, "{name}");
        assert!(prompt.stdout.len() > 100, "{name}");
        let scanned = sandbox.run_with(&["scan"], prompt.stdout.as_bytes());
        assert_eq!(scanned.text(), "exit 1\n-- stdout\n-- stderr\n", "{name}");
    }
}
