//! The database of 0.1.0, as its user has it on the disk when today's binary is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, EngineError, State};
use aldis_machine::HumanCommand;
use aldis_store::{RunFilter, Source, SqliteStore};

use super::VERSION;
use super::journal::{directory, journals};

/// Opens a copy of the release's database.
fn open(directory: &Path) -> Engine {
    Engine::new(Arc::new(SqliteStore::open(directory).unwrap()))
}

/// Unpacks the database into a directory of the test's own.
fn unpacked() -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    fs::set_permissions(target.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let database = target.path().join("aldis.db");
    let unpacked = Command::new("gzip")
        .args(["--decompress", "--stdout"])
        .stdin(fs::File::open(directory(VERSION).join("store.db.gz")).unwrap())
        .stdout(fs::File::create(&database).unwrap())
        .stderr(Stdio::inherit())
        .status();
    assert!(unpacked.is_ok_and(|status| status.success()), "gzip must be on the PATH");
    fs::set_permissions(database, fs::Permissions::from_mode(0o600)).unwrap();
    target
}

#[test]
fn every_run_of_0_1_0_is_understood() {
    let directory = unpacked();
    let engine = open(directory.path());
    let snapshots = engine.snapshots(&RunFilter::default()).unwrap();
    assert_eq!(snapshots.len(), journals(VERSION).len());
    for snapshot in &snapshots {
        let id = snapshot.id();
        if let State::Unreadable(why) = &snapshot.state {
            panic!("{id}: {why}");
        }
        engine.replay(id).unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    let asked = |snapshot: &&aldis_engine::Snapshot| !snapshot.questions().is_empty();
    assert!(snapshots.iter().filter(asked).count() >= 3, "some wait for a human");
}

#[test]
fn every_active_run_of_0_1_0_takes_a_further_step() {
    let directory = unpacked();
    let engine = open(directory.path());
    let active = RunFilter { active: Some(true), ..RunFilter::default() };
    let runs = engine.store().list(&active).unwrap();
    assert!(runs.len() >= 10, "{}", runs.len());
    for run in &runs {
        let later = run.updated.after(Duration::from_secs(60));
        let source = Source::new("further");
        let abort = |at| engine.command(at, &run.id, &HumanCommand::Abort, "a test", Some(&source));
        let answer = abort(later).unwrap_or_else(|error| panic!("{}: {error}", run.id));
        assert_ne!(answer.decisions, [], "{}: {}", run.machine, run.id);
        assert_eq!(answer.run.revision().0, run.revision.0 + 1, "{}", run.id);
        let again = abort(later).unwrap();
        assert!(again.repeated, "{}", run.id);
        assert_eq!((again.effects, again.decisions), (answer.effects, answer.decisions));
    }
    // They can be read again in the form of today, and those without an agent have ended.
    drop(engine);
    let engine = open(directory.path());
    for run in &runs {
        let snapshot = engine.snapshot(&run.id).unwrap().unwrap();
        match &snapshot.state {
            State::Unreadable(why) => panic!("{}: {why}", run.id),
            State::Run(_) => {}
            _ => assert!(!snapshot.run.record.active, "{}: {}", run.machine, run.id),
        }
    }
}

/// Whoever sent 0.1.0 a request and heard nothing sends it to today's program again.
#[test]
fn requests_that_0_1_0_took_get_their_first_answer() {
    let directory = unpacked();
    let engine = open(directory.path());
    let mut found = 0;
    for run in engine.store().list(&RunFilter::default()).unwrap() {
        for event in engine.store().events(&run.id, 0, usize::MAX).unwrap() {
            let Some(key) = &event.source else { continue };
            let source = Source { key: key.clone(), digest: "anything".to_owned() };
            let answer = engine.answered(&run.id, &source).unwrap().unwrap();
            assert!(answer.repeated);
            found += usize::from(!answer.decisions.is_empty() && !answer.effects.is_empty());
        }
    }
    assert!(found > 0, "no answer with effects was found");
    let nobody = engine.store().list(&RunFilter::default()).unwrap().remove(0).id;
    assert!(engine.answered(&nobody, &Source::new("never sent")).unwrap().is_none());
    let missing = "no-such-run".parse().unwrap();
    assert!(matches!(engine.open_any(&missing), Err(EngineError::NoSuchRun(_))));
}
