//! This test binary again, as another process: a writer that prints which steps were acknowledged.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Driver, NewDecision, NewEffect, NewEvent, Revision, RunId, RunRecord, Source,
    SqliteStore, Step, Store, StoreError, TimerChange,
};

/// Where the child writes; without it the test below does nothing.
const DIRECTORY: &str = "ALDIS_TEST_DIRECTORY";
const NAME: &str = "ALDIS_TEST_NAME";
const STEPS: &str = "ALDIS_TEST_STEPS";

/// The arguments that make this binary a writer.
pub(crate) const ARGUMENTS: [&str; 3] = ["child::writer", "--exact", "--nocapture"];

/// Returns a process that counts one run up by `steps`, and prints `acknowledged NAME.NUMBER` for
/// each step.
pub(crate) fn command(directory: &Path, name: &str, steps: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGUMENTS);
    configure(&mut command, directory, name, steps);
    command
}

/// Passes the parameters to whatever process runs this binary.
pub(crate) fn configure(command: &mut Command, directory: &Path, name: &str, steps: u64) {
    command
        .env(DIRECTORY, directory)
        .env(NAME, name)
        .env(STEPS, steps.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
}

#[test]
fn writer() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let name = std::env::var(NAME).unwrap();
    let steps: u64 = std::env::var(STEPS).unwrap().parse().unwrap();
    let store = retry(|| SqliteStore::open(Path::new(&directory)));
    for number in 0..steps {
        let mark = format!("{name}.{number}");
        count_once(&store, &mark);
        // Not `println!`, which the harness may keep back.
        let mut out = std::io::stdout();
        writeln!(out, "acknowledged {mark}").unwrap();
        out.flush().unwrap();
    }
}

/// Retries while the disk fails, and prints each error: with a fault injected, that is what is expected.
fn retry<T>(mut work: impl FnMut() -> Result<T, StoreError>) -> T {
    for _ in 0..50 {
        match work() {
            Ok(value) => return value,
            Err(error) => report(&error),
        }
    }
    panic!("the store does not recover");
}

fn report(error: &StoreError) {
    let mut out = std::io::stdout();
    writeln!(out, "failed: {error}").unwrap();
}

/// Raises the counter by one, exactly once, whatever happens in between.
pub(crate) fn count_once(store: &SqliteStore, mark: &str) {
    for _ in 0..1_000 {
        let step = next_step(retry(|| store.run(&run())).as_ref(), mark);
        match store.commit(&step) {
            Ok(_) | Err(CommitError::Duplicate { .. }) => return,
            Err(CommitError::Conflict { found }) => assert!(found > step.expected),
            Err(CommitError::Store(error)) => report(&error),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the store does not let us through");
}

/// The step that raises the counter by one.
pub(crate) fn step(store: &SqliteStore, mark: &str) -> Step {
    next_step(store.run(&run()).unwrap().as_ref(), mark)
}

/// A step that touches every table and counts one up.
fn next_step(found: Option<&aldis_store::Run>, mark: &str) -> Step {
    let at = Timestamp::from_millis(1_000);
    let counter = found.map_or(0, |run| run.record.state.parse::<u64>().unwrap());
    let record = RunRecord {
        project: "project".to_owned(),
        session: None,
        machine: "counter".to_owned(),
        driver: Driver::Process,
        title: "x".repeat(3_000),
        active: true,
        state: (counter + 1).to_string(),
    };
    Step {
        events: vec![NewEvent {
            kind: "count".to_owned(),
            body: mark.to_owned(),
            source: Some(Source::new(mark)),
            at,
        }],
        decisions: vec![NewDecision { body: mark.to_owned(), at }],
        effects: vec![NewEffect {
            key: mark.to_owned(),
            kind: "notify".to_owned(),
            body: String::new(),
            due: at,
            lane: String::new(),
            requires: Vec::new(),
        }],
        timers: vec![TimerChange::Set { key: mark.to_owned(), due: at }],
        ..Step::new(run(), found.map_or(Revision(0), |run| run.revision), record, at)
    }
}

pub(crate) fn run() -> RunId {
    RunId::new("counter").unwrap()
}

/// Returns the marks of the steps that the child's output acknowledges.
pub(crate) fn acknowledged(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let mut marks: Vec<String> = text
        .split_inclusive('\n')
        .filter_map(|line| Some(line.split_once("acknowledged ")?.1))
        .filter_map(|mark| mark.strip_suffix('\n'))
        .map(str::to_owned)
        .collect();
    marks.dedup();
    marks
}

/// Checks that the store is sound, that its tables agree, and that every mark is there once.
/// Returns how many steps there are.
pub(crate) fn verify<'a>(directory: &Path, marks: impl IntoIterator<Item = &'a String>) -> u64 {
    let store = SqliteStore::open(directory).unwrap();
    store.check().unwrap();
    let events = store.events(&run(), 0, usize::MAX).unwrap();
    let count = events.len() as u64;
    let found = store.run(&run()).unwrap();
    let state = found.as_ref().map_or("0", |run| &*run.record.state);
    assert_eq!(state, count.to_string(), "the counter and the history disagree");
    assert_eq!(found.as_ref().map_or(0, |run| run.revision.0), count);
    assert!(events.iter().map(|event| event.seq).eq(1..=count));

    let mut bodies: Vec<&str> = events.iter().map(|event| &*event.body).collect();
    bodies.sort_unstable();
    let all = bodies.len();
    bodies.dedup();
    assert_eq!(bodies.len(), all, "a step was written twice");
    for mark in marks {
        assert!(bodies.binary_search(&&**mark).is_ok(), "{mark} was acknowledged and is lost");
        assert!(store.effect(mark).unwrap().is_some(), "the effect of {mark} is lost");
    }
    let timers = store.due_timers(Timestamp::from_millis(1_000), usize::MAX).unwrap();
    assert_eq!(timers.len(), all, "a step was written in part");
    assert_eq!(store.decisions(&aldis_store::DecisionFilter::default()).unwrap().len(), all);
    count
}
