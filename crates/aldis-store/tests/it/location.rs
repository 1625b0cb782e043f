//! Where the database may live: in a directory of our own, and nowhere else.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use aldis_store::{SqliteStore, Store as _, StoreError};

use crate::child;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[track_caller]
fn assert_refused(directory: &Path, reason: &str) {
    match SqliteStore::open(directory) {
        Err(error @ StoreError::Unsafe { .. }) => {
            assert!(error.to_string().contains(reason), "{error}");
        }
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn what_is_created_is_ours_alone() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("deep/state");
    let store = SqliteStore::open(&state).unwrap();
    child::count_once(&store, "one");
    drop(store.turn(&child::run()).unwrap());
    let turns = state.join("aldis.db.turns");
    assert_eq!([mode(&state), mode(&turns)], [0o700; 2]);
    let files =
        ["aldis.db", "aldis.db-wal", "aldis.db-shm", "aldis.db.lock"].map(|it| state.join(it));
    let locks = fs::read_dir(turns).unwrap().map(|entry| entry.unwrap().path());
    for file in files.into_iter().chain(locks) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn links_and_strange_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real");
    drop(SqliteStore::open(&real).unwrap());

    let link = directory.path().join("link");
    symlink(&real, &link).unwrap();
    assert_refused(&link, "symbolic link");

    let linked = directory.path().join("linked");
    fs::create_dir(&linked).unwrap();
    fs::set_permissions(&linked, Permissions::from_mode(0o700)).unwrap();
    symlink(real.join("aldis.db"), linked.join("aldis.db")).unwrap();
    assert_refused(&linked, "symbolic link");
    fs::remove_file(linked.join("aldis.db")).unwrap();
    // Dangling: SQLite would create what it points to.
    symlink(directory.path().join("nowhere"), linked.join("aldis.db")).unwrap();
    assert_refused(&linked, "symbolic link");
    fs::remove_file(linked.join("aldis.db")).unwrap();
    fs::create_dir(linked.join("aldis.db")).unwrap();
    assert_refused(&linked, "not a regular file");

    assert_refused(&real.join("aldis.db"), "not a directory");
}

#[test]
fn directories_that_others_can_write_to_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    drop(SqliteStore::open(&state).unwrap());
    fs::set_permissions(&state, Permissions::from_mode(0o770)).unwrap();
    assert_refused(&state, "chmod go-w");
    fs::set_permissions(&state, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(state.join("aldis.db"), Permissions::from_mode(0o666)).unwrap();
    assert_refused(&state, "chmod go-w");
    fs::set_permissions(state.join("aldis.db"), Permissions::from_mode(0o600)).unwrap();
    SqliteStore::open(&state).unwrap();
}

fn log_size(directory: &Path) -> u64 {
    fs::metadata(directory.join("aldis.db-wal")).unwrap().len()
}

#[test]
fn the_log_of_a_long_lived_process_stays_small() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    for number in 0..200 {
        child::count_once(&store, &number.to_string());
        assert!(log_size(directory.path()) < 1 << 20);
    }
    store.abandon();
    assert_eq!(child::verify(directory.path(), &[]), 200);
}

#[test]
fn the_log_of_many_short_lived_processes_stays_small() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let store = SqliteStore::open(directory.path()).unwrap();
        child::count_once(&store, &number.to_string());
        store.abandon();
        assert!(log_size(directory.path()) < 1 << 20);
    }
    assert_eq!(child::verify(directory.path(), &[]), 100);
}

#[test]
fn a_reader_does_not_keep_writers_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    child::count_once(&store, "first");
    let reader = rusqlite::Connection::open(directory.path().join("aldis.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM runs").unwrap();
    for number in 0..60 {
        child::count_once(&store, &number.to_string());
    }
    assert!(log_size(directory.path()) > 512 << 10, "the reader still needs the log");
    drop(reader);
    child::count_once(&store, "last");
    assert!(log_size(directory.path()) < 512 << 10);
    store.check().unwrap();
}
