//! What a hook asks of the store, and nothing else: open, find the run, take a turn, commit, leave.
//!
//! `cargo build --release --example hook_cost -p aldis-store`, then
//! `perf stat -r 200 target/release/examples/hook_cost DIRECTORY`. `none` instead of a directory
//! gives the cost of the empty process, to be subtracted; `open` or `read` after the directory stops
//! there.

use std::error::Error;
use std::path::Path;

use aldis_signal::time::Timestamp;
use aldis_store::{
    Driver, NewDecision, NewEffect, NewEvent, Revision, RunFilter, RunId, RunRecord, Source,
    SqliteStore, Step, Store,
};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("name a directory, or none")?;
    if directory == "none" {
        return Ok(());
    }
    let stop = std::env::args().nth(2);
    let store = SqliteStore::open(Path::new(&directory))?;
    if stop.as_deref() == Some("open") {
        store.abandon();
        return Ok(());
    }
    let turn = store.turn(&RunId::new("run")?)?;
    let of_session =
        RunFilter { session: Some("session".to_owned()), limit: 1, ..RunFilter::default() };
    let expected = store.loaded(&of_session)?.first().map_or(Revision(0), |it| it.run.revision);
    if stop.as_deref() != Some("read") {
        store.commit(&step(expected)?)?;
    }
    drop(turn);
    store.abandon();
    Ok(())
}

fn step(expected: Revision) -> Result<Step, Box<dyn Error>> {
    let at = Timestamp::from_millis(1_772_445_600_000);
    let record = RunRecord {
        project: "project".to_owned(),
        session: Some("session".to_owned()),
        machine: "run".to_owned(),
        driver: Driver::Hook,
        title: "A run".to_owned(),
        active: true,
        state: format!(r#"{{"iteration":{expected},"notes":"{}"}}"#, "x".repeat(1_000)),
    };
    let key = format!("answer-{expected}");
    let body = format!(r#"{{"text":"{}"}}"#, "y".repeat(500));
    Ok(Step {
        events: vec![NewEvent {
            kind: "stop".to_owned(),
            body: body.clone(),
            source: Some(Source::new(format!("stop-{expected}"))),
            at,
        }],
        decisions: vec![NewDecision { body: body.clone(), at }],
        effects: vec![NewEffect {
            key: key.clone(),
            kind: "answer".to_owned(),
            body,
            due: at,
            lane: String::new(),
            requires: Vec::new(),
        }],
        done: vec![key],
        ..Step::new(RunId::new("run")?, expected, record, at)
    })
}
