//! `aldis store`, and how long things are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};

/// So far in the future that every ended run is past its retention.
const FAR: &str = "2099-01-01T00:00:00Z";

fn at(project: &Project, now: &str, args: &[&str]) -> Done {
    let mut command = project.command(ALDIS);
    command.env("ALDIS_NOW", now).args(args);
    feed(command, b"")
}

/// A project with a run that ended and left output. Returns where that is.
fn ended_run() -> (Project, PathBuf) {
    let project = Project::new();
    let agent = "cat > /dev/null; echo '<chorus>COMPLETE</chorus>'";
    let done = project.run(&["run", "--task", "x", "--quiet", "--", "/bin/sh", "-c", agent]);
    assert_eq!(done.code, 0, "{}", done.text());
    let run = runs(&project)[0]["run"].as_str().unwrap().to_owned();
    let logs = project.state_dir().join("logs").join(run);
    assert!(logs.join("agent.log").exists());
    (project, logs)
}

fn runs(project: &Project) -> Vec<Value> {
    project.run(&["status", "--all", "--json"]).json()
}

/// Writes the user's own settings.
fn set(project: &Project, text: &str) {
    let directory = project.home().join(".config/aldis");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("aldis.toml"), text).unwrap();
}

#[test]
fn pruning_deletes_old_runs_with_their_output_and_says_so() {
    let (project, logs) = ended_run();
    let bytes = fs::metadata(logs.join("agent.log")).unwrap().len();
    let prune = |now: &str, more: &[&str]| {
        let done = at(&project, now, &[&["store", "prune"], more].concat());
        assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
        done.stdout
    };
    let nothing = "Deleted 0 runs, 0 B of agents' output and 0 work trees.\n";
    assert_eq!(prune(&project.now, &[]), nothing);
    let expected = format!("Would delete 1 run, {bytes} B of agents' output and 0 work trees.\n");
    assert_eq!(prune(FAR, &["--dry-run"]), expected);
    assert!(logs.exists() && runs(&project).len() == 1, "a dry run deletes nothing");
    let line: Value = serde_json::from_str(&prune(FAR, &["--json"])).unwrap();
    assert_eq!((&line["runs"], &line["output_bytes"]), (&1.into(), &bytes.into()));
    let schema = serde_json::from_str(&project.run(&["schema", "store-prune"]).stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&line), "{line}");
    assert!(!logs.exists() && runs(&project).is_empty());
    assert_eq!(prune(FAR, &[]), nothing);
}

#[test]
fn what_is_kept_is_the_users_to_say() {
    let (project, logs) = ended_run();
    set(&project, "[store]\nkeep_ended = \"never\"\nkeep_output = \"never\"\n");
    assert_eq!(at(&project, FAR, &["store", "prune"]).code, 0);
    assert!(logs.exists() && runs(&project).len() == 1, "never is never");
    // A repository has no say in the history of other projects.
    fs::write(project.path().join("aldis.toml"), "[store]\nkeep_ended = \"1s\"\n").unwrap();
    let done = project.run(&["config", "show"]);
    assert!(done.code == 2 && done.stderr.contains("`store.keep_ended`"), "{}", done.text());
    fs::remove_file(project.path().join("aldis.toml")).unwrap();
    let done = at(&project, FAR, &["store", "prune", "--ended-before", "1d"]);
    assert!(done.stdout.starts_with("Deleted 1 run, "), "{}", done.text());
    assert!(!logs.exists());
}

#[test]
fn output_may_go_before_its_run() {
    let (project, logs) = ended_run();
    // As the run, which is of today.
    let today = aldis_signal::time::Timestamp::from_millis(
        i64::try_from(
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis(),
        )
        .unwrap(),
    );
    let log = fs::File::options().append(true).open(logs.join("agent.log")).unwrap();
    log.set_modified(SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60)).unwrap();
    let done = at(&project, &today.to_string(), &["store", "prune"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(!logs.exists() && runs(&project).len() == 1, "{}", done.text());
}

fn git(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
    let output = command.current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn work_trees_of_deleted_runs_go_and_the_work_in_them_stays() {
    let (project, _) = ended_run();
    let trees = project.state_dir().join("worktrees/gone");
    fs::create_dir_all(trees.join("lost")).unwrap();
    let here = project.path();
    git(&here, &["init", "-q", "."]);
    git(&here, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let tree = trees.join("0");
    git(&here, &["worktree", "add", "-q", "-b", "aldis/gone/0", tree.to_str().unwrap()]);
    fs::write(tree.join("half"), "half of it").unwrap();
    let mut command = project.command(ALDIS);
    command.env("PATH", std::env::var_os("PATH").unwrap()).args(["store", "prune"]);
    let done = feed(command, b"");
    assert!(done.code == 0 && done.stdout.contains("and 1 work tree."), "{}", done.text());
    assert!(!tree.exists());
    assert_eq!(git(&here, &["show", "aldis/gone/0:half"]), "half of it");
    assert!(trees.join("lost").exists() && done.stderr.contains("lost: "), "{}", done.text());
}
