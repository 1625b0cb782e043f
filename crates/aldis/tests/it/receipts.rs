//! Receipts: whatever is done has one, it outlives its run, and no edit of it goes unseen.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::phases::fault::{Act, Fault, START, Snapshot, has_strace};
use crate::phases::project::{Project, block};
use crate::sandbox::{ALDIS, Done, Sandbox};

/// A project whose run is one claim away from its end.
fn nearly_done() -> (Project, Act) {
    let project = Project::new();
    for act in [START, project.stopping(&block("init")), project.stopping(&block("planning"))] {
        project.act(&act);
    }
    let last = project.stopping(&block("execution"));
    (project, last)
}

/// A project whose run is complete.
fn done() -> Project {
    let (project, last) = nearly_done();
    let stopped = project.act(&last);
    assert_eq!((stopped.code, &*stopped.stderr), (0, ""), "{}", stopped.text());
    project
}

/// The files of all receipts.
fn files(project: &Project) -> Vec<PathBuf> {
    let listed = project.run(&["proof", "list", "--json"]);
    listed.json().iter().map(|line| line["file"].as_str().unwrap().into()).collect()
}

fn verified(project: &Project, what: &[&str]) -> (Done, Vec<Value>) {
    let done = project.run(&[&["proof", "verify", "--json"], what].concat());
    let lines = done.json();
    (done, lines)
}

/// What a comparison came to, by part.
fn result(line: &Value, part: &str) -> String {
    let findings = line["findings"].as_array().unwrap();
    let found = findings.iter().find(|it| it["part"] == part);
    found.map_or("-", |it| it["result"].as_str().unwrap()).to_owned()
}

fn git(project: &Project, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let mut command = Command::new("git");
    let done = command.args(identity).args(args).current_dir(project.path()).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository may name a work tree that is gone: then a receipt says nothing of it.
#[test]
fn a_work_tree_that_is_gone_costs_no_receipt() {
    let project = Project::new();
    git(&project, &["init", "-q", "."]);
    let gone = project.root().join("gone");
    git(&project, &["config", "core.worktree", gone.to_str().unwrap()]);
    let agent = "cat > /dev/null; echo '<chorus>COMPLETE</chorus>'";
    let done = project.run(&["run", "--task", "x", "--", "/bin/sh", "-c", agent]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(project.alarms(), "");
    assert_eq!(files(&project).len(), 1);
}

#[test]
fn a_run_ends_in_a_receipt_that_can_be_verified() {
    let project = Project::new();
    git(&project, &["init", "-q", "."]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let mut command = project.command(ALDIS);
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", project.root());
    command.args(["run", "Add CSV export", "--", "sh", "-c", "echo '<chorus>COMPLETE</chorus>'"]);
    assert!(command.output().unwrap().status.success());
    let shown = project.run(&["proof", "show", "--json"]);
    let sealed = shown.json().remove(0);
    let receipt = &sealed["receipt"];
    assert_eq!(
        (&receipt["rule"], &receipt["asked"]),
        (&"run/done".into(), &"Add CSV export".into())
    );
    assert_eq!(receipt["signals"][0]["name"], "COMPLETE");
    assert_eq!((&receipt["number"], &receipt["previous"]), (&1.into(), &Value::Null));
    assert_eq!(receipt["repository"]["clean"], true);
    let schema = Sandbox::new().run(&["schema", "receipt"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&sealed), "{sealed}");
    let in_path = |args: &[&str]| {
        let mut command = project.command(ALDIS);
        let path = std::env::var_os("PATH").unwrap();
        let output = command.env("PATH", path).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = in_path(&["proof", "verify"]);
    assert_eq!(code, Some(0), "{text}");
    for part in ["form", "mac", "chain", "commit", "decisions"] {
        assert!(text.contains(&format!("ok       {part}")), "{part}: {text}");
    }
    let run = receipt["run"].as_str().unwrap();
    for args in [&["why"][..], &["report"]] {
        let (_, text) = in_path(args);
        assert!(text.contains(&format!("aldis proof show {run}")), "{args:?}: {text}");
    }
    // The commit is gone.
    git(&project, &["commit", "-q", "--amend", "--allow-empty", "-m", "other"]);
    git(&project, &["reflog", "expire", "--expire=now", "--all"]);
    git(&project, &["gc", "-q", "--prune=now"]);
    let (code, text) = in_path(&["proof", "verify"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("differs  commit"), "{text}");
}

#[test]
fn every_flipped_byte_is_seen() {
    let project = done();
    let bytes = fs::read(&files(&project)[0]).unwrap();
    let place = project.root().join("flipped");
    fs::create_dir(&place).unwrap();
    let mut flipped = Vec::new();
    for at in 0..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 1 << (at % 8);
        let file = place.join(format!("{at}"));
        fs::write(&file, other).unwrap();
        flipped.push(file.to_str().unwrap().to_owned());
    }
    for (name, other) in [
        ("longer", [&bytes[..], b"\n"].concat()),
        ("shorter", bytes[..bytes.len() - 1].to_vec()),
        ("empty", Vec::new()),
        ("spaced", [b" ", &bytes[..]].concat()),
        ("twice", bytes.repeat(2)),
    ] {
        let file = place.join(name);
        fs::write(&file, other).unwrap();
        flipped.push(file.to_str().unwrap().to_owned());
    }
    let names: Vec<&str> = flipped.iter().map(String::as_str).collect();
    let (done, lines) = verified(&project, &names);
    assert_eq!((done.code, lines.len()), (1, bytes.len() + 5), "{}", done.stderr);
    let missed: Vec<&Value> = lines.iter().filter(|line| line["ok"] == true).collect();
    assert_eq!(missed, [&Value::Null; 0], "an edit was not seen");
    // The receipt itself is genuine.
    assert_eq!(verified(&project, &[]).0.code, 0);
}

#[test]
fn a_receipt_outlives_its_run() {
    let project = done();
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let before = fs::read(&files(&project)[0]).unwrap();
    let project = project.at("2026-04-02T10:00:00Z");
    let pruned = project.run(&["store", "prune", "--ended-before", "1d"]);
    assert_eq!(pruned.code, 0, "{}", pruned.text());
    assert_eq!(project.run(&["why", &run]).code, 2, "the run is gone");
    assert_eq!(fs::read(&files(&project)[0]).unwrap(), before);
    let (done, lines) = verified(&project, &[&run]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(result(&lines[0], "mac"), "ok");
    assert_eq!(result(&lines[0], "decisions"), "unknown");
    assert_eq!(project.run(&["proof", "show", &run]).code, 0);
}

#[test]
fn an_edit_of_the_journal_is_seen() {
    let project = done();
    let database = project.state_dir().join("aldis.db");
    let sql = "UPDATE decisions SET body = replace(body, 'EXECUTION_COMPLETE', 'INIT_COMPLETE')";
    rusqlite::Connection::open(database).unwrap().execute(sql, []).unwrap();
    let (done, lines) = verified(&project, &[]);
    assert_eq!(done.code, 1, "{}", done.text());
    assert_eq!(
        (result(&lines[0], "mac"), result(&lines[0], "decisions")),
        ("ok".into(), "differs".into())
    );
}

#[test]
fn another_key_or_none_signs_nothing_of_ours() {
    let project = done();
    let key = project.state_dir().join("receipts.key");
    let kept = fs::read(&key).unwrap();
    let other = String::from_utf8(kept.clone()).unwrap();
    let other: String = other.chars().map(|c| if c == '0' { '1' } else { c }).collect();
    fs::write(&key, format!("{}f\n", &other.trim()[..63])).unwrap();
    assert_eq!(verified(&project, &[]).0.code, 1);
    fs::remove_file(&key).unwrap();
    assert_eq!(verified(&project, &[]).0.code, 1);
    fs::write(&key, kept).unwrap();
    assert_eq!(verified(&project, &[]).0.code, 2, "others could read it");
}

/// `kill -9` at every call around the end of a run: there is one receipt, sooner or later, and it is
/// genuine.
#[test]
#[expect(clippy::print_stderr, reason = "how much was tested is part of the result")]
fn killed_around_the_receipt() {
    if !has_strace() {
        return;
    }
    let (project, last) = nearly_done();
    let start = Snapshot::of(project.root());
    let (mut killed, mut late) = (0, 0);
    for calls in ["fsync,fdatasync", "?link,linkat,?rename,renameat,?renameat2", "openat"] {
        for nth in 1..500 {
            start.restore();
            let fault = Fault { calls, what: "signal=KILL", when: &nth.to_string() };
            let done = project.act_with(&last, fault);
            if done.code == 0 {
                break;
            }
            killed += 1;
            let place = format!("{calls} {nth}: {}", done.text());
            let had = project.state_dir().join("receipts").exists();
            // Whoever was killed before the commit stops once more; nobody else helps.
            if project.status()["active"] == true {
                assert_eq!(files(&project).len(), 0, "{place}");
                project.act(&last);
            } else if !had {
                late += 1;
            }
            assert_eq!(files(&project).len(), 1, "{place}");
            assert_eq!(project.run(&["proof", "verify"]).code, 0, "{place}");
            let left = fs::read_dir(files(&project)[0].parent().unwrap()).unwrap();
            let left: Vec<String> =
                left.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
            assert!(!left.iter().any(|name| name.starts_with(".tmp")), "{place}: {left:?}");
        }
    }
    eprintln!("killed {killed} times, {late} between the commit and the receipt");
    assert!(killed >= 20 && late >= 1, "killed {killed} times, {late} in between");
}
