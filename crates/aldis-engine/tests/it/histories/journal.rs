//! A recorded journal: everything that an older release stored about one run.

use std::fs;
use std::path::{Path, PathBuf};

use aldis_signal::time::Timestamp;
use aldis_store::{
    Driver, MemoryStore, NewDecision, NewEvent, PartChange, Revision, RunId, RunRecord, Source,
    Step, Store as _,
};
use serde::Deserialize;
use serde_json::Value;

/// The file of one run. `testdata/histories/README.md` says what its lines hold.
pub(super) struct Journal {
    /// The name of its scenario.
    pub(super) name: String,
    pub(super) header: Header,
    lines: Vec<Line>,
}

/// The first line.
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) machine: String,
    pub(super) run: String,
    project: String,
    driver: String,
    active: bool,
    title: String,
    session: Option<String>,
}

/// Any other line.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Event { at: Timestamp, kind: String, source: Option<String>, body: Value },
    Decision { at: Timestamp, body: Value },
    Part { key: String, body: Value },
    Effect {},
    Timer {},
    State(Value),
}

/// Where the histories of a release are.
pub(super) fn directory(version: &str) -> PathBuf {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    testdata.join("histories").join(version)
}

/// All journals of a release, by name.
pub(super) fn journals(version: &str) -> Vec<Journal> {
    let entries = fs::read_dir(directory(version)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    let mut paths: Vec<PathBuf> = paths.filter(is_journal).collect();
    paths.sort();
    paths.iter().map(|path| Journal::read(path)).collect()
}

impl Journal {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        let header = serde_json::from_str(lines.next().unwrap()).unwrap();
        let line = |line: &str| serde_json::from_str(line).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Self { name, header, lines: lines.map(line).collect() }
    }

    pub(super) fn id(&self) -> RunId {
        RunId::new(&*self.header.run).unwrap()
    }

    /// How many decisions were recorded.
    pub(super) fn decisions(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, Line::Decision { .. })).count()
    }

    /// Takes the first decision out. Returns its rule, which has kept its name.
    pub(super) fn take_first_decision(&mut self) -> String {
        let is_decision = |line: &Line| matches!(line, Line::Decision { .. });
        let at = self.lines.iter().position(is_decision).unwrap();
        drop(self.lines.remove(at));
        "run/iteration-started".to_owned()
    }

    /// Puts everything into a store, as the release left it.
    pub(super) fn store(&self) -> MemoryStore {
        let Header { machine, project, driver, active, title, session, .. } = &self.header;
        let record = RunRecord {
            project: project.clone(),
            session: session.clone(),
            machine: machine.clone(),
            driver: Driver::named(driver).unwrap(),
            title: title.clone(),
            active: *active,
            state: String::new(),
        };
        let mut step = Step::new(self.id(), Revision(0), record, Timestamp::from_millis(0));
        for line in &self.lines {
            match line {
                Line::Event { at, kind, source, body } => step.events.push(NewEvent {
                    kind: kind.clone(),
                    body: body.to_string(),
                    source: source.as_ref().map(Source::new),
                    at: *at,
                }),
                Line::Decision { at, body } => {
                    step.decisions.push(NewDecision { body: body.to_string(), at: *at });
                }
                Line::Part { key, body } => {
                    step.parts.push(PartChange::Set { key: key.clone(), body: body.to_string() });
                }
                Line::State(state) => step.record.state = state.to_string(),
                Line::Effect {} | Line::Timer {} => {}
            }
        }
        let store = MemoryStore::new();
        store.commit(&step).unwrap();
        store
    }
}
