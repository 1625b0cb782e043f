//! The turn of a run between processes: its own run waits, nobody else does.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use aldis_store::{RunId, SqliteStore, Store as _};

use crate::child;

const DIRECTORY: &str = "ALDIS_TEST_TURN_DIRECTORY";

/// The other process: holds the turn until its input ends.
#[test]
fn holder() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let store = SqliteStore::open(directory).unwrap();
    let turn = store.turn(&child::run()).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "holding").unwrap();
    out.flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    fs::write(directory.join("given-back"), "").unwrap();
    drop(turn);
}

fn holding(directory: &Path) -> Child {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["turns::holder", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("holding")));
    holder
}

#[test]
fn another_process_is_waited_for_and_holds_up_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut holder = holding(directory.path());
    // The very run can be committed to, and others have their turns.
    child::count_once(&store, "one");
    for number in 0..8 {
        let other = RunId::new(format!("other-{number}")).unwrap();
        drop(store.turn(&other).unwrap());
    }
    drop(holder.stdin.take());
    let _turn = store.turn(&child::run()).unwrap();
    assert!(directory.path().join("given-back").exists(), "the turn was held by two");
    assert!(holder.wait().unwrap().success());
    child::count_once(&store, "two");
}

#[test]
fn the_turn_of_a_killed_process_is_free() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut holder = holding(directory.path());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let _turn = store.turn(&child::run()).unwrap();
    assert!(!directory.path().join("given-back").exists());
}
