//! The commit protocol over plain values: what the driver and a store do, without any text.
//!
//! This is a copy of the protocol, so it proves nothing about the driver by itself. A test runs the
//! same seeds through the model, the driver with the memory store and the driver with SQLite, and
//! expects the same trace of all three.

use std::collections::BTreeSet;
use std::rc::Rc;

use aldis::engine::driver::{Origin, begun};
use aldis_machine::phases::{Effect, Event, Outcome, State, View};
use aldis_signal::time::Timestamp;
use aldis_store::{Fault, When};

use super::engine::{Delivery, Engine, Entry, Failure, Happened, Held, Taken};
use super::machine::{Bug, Machine};
use super::replay;

/// How often a step is tried again because somebody else was first.
const TRIES_MAX: usize = 32;

/// How many runs of a project a left-over file may be of.
const RUNS_MAX: usize = 8;

/// Runs as long as the world lasts.
#[derive(Debug, Default)]
pub(super) struct Model {
    machine: Machine,
    runs: Vec<Option<Row>>,
    fault: Option<Fault>,
}

#[derive(Debug)]
struct Row {
    project: usize,
    /// Grows with each run that is created.
    revision: u64,
    state: Rc<State>,
    journal: Vec<Entry>,
    sources: BTreeSet<Rc<str>>,
    written: bool,
}

/// Why a commit did not happen.
enum Refused {
    Conflict,
    Duplicate,
    Store,
}

/// What a commit writes.
struct Write {
    run: usize,
    project: usize,
    expected: u64,
    state: Rc<State>,
    entries: Vec<Entry>,
}

impl Model {
    pub(super) fn new(machine: Machine) -> Self {
        Self { machine, ..Self::default() }
    }

    fn row(&self, run: usize) -> Option<&Row> {
        self.runs.get(run).and_then(Option::as_ref)
    }

    fn find(&self, wanted: impl Fn(&Row) -> bool) -> Option<Held> {
        let latest = (0..self.runs.len()).rev();
        latest
            .into_iter()
            .find(|run| self.row(*run).is_some_and(&wanted))
            .and_then(|n| self.held(n))
    }

    fn commit(&mut self, write: Write) -> Result<u64, Refused> {
        let fault = self.fault.take();
        if fault.is_some_and(|fault| fault.when == When::Before) {
            return Err(Refused::Store);
        }
        self.admit(&write)?;
        let Write { run, project, expected, state, entries } = write;
        let row = self.runs[run].get_or_insert_with(|| Row {
            project,
            revision: 0,
            state: Rc::clone(&state),
            journal: Vec::new(),
            sources: BTreeSet::new(),
            written: false,
        });
        row.revision = expected + 1;
        row.state = state;
        row.sources.extend(entries.iter().filter_map(|entry| entry.source.clone()));
        row.journal.extend(entries);
        if fault.is_some() { Err(Refused::Store) } else { Ok(expected + 1) }
    }

    fn admit(&mut self, write: &Write) -> Result<(), Refused> {
        if self.runs.len() <= write.run {
            self.runs.resize_with(write.run + 1, || None);
        }
        let Some(row) = &self.runs[write.run] else { return Ok(()) };
        let known = |entry: &Entry| entry.source.as_ref().is_some_and(|s| row.sources.contains(s));
        if self.machine.bug != Some(Bug::DedupeDropped) && write.entries.iter().any(known) {
            return Err(Refused::Duplicate);
        }
        if self.machine.bug != Some(Bug::LostUpdate) && row.revision != write.expected {
            return Err(Refused::Conflict);
        }
        Ok(())
    }
}

impl Engine for Model {
    fn live(&self, project: usize, session: Option<&str>) -> Option<Held> {
        let bound = session
            .and_then(|id| self.find(|r| r.state.active && r.state.session.as_deref() == Some(id)));
        bound.or_else(|| self.find(|row| row.state.active && row.project == project))
    }

    fn latest(&self, project: usize) -> Option<Held> {
        self.find(|row| row.project == project)
    }

    fn held(&self, run: usize) -> Option<Held> {
        let row = self.row(run)?;
        Some(Held { run, revision: row.revision, state: Rc::clone(&row.state) })
    }

    fn create(
        &mut self,
        now: Timestamp,
        (run, project): (usize, usize),
        origin: &Rc<Origin>,
        event: Option<&Rc<Event>>,
    ) -> Result<Taken, Failure> {
        let mut state = Origin::clone(origin).state(now);
        let entry = |happened| Entry { at: now, happened, source: None };
        let mut entries = vec![entry(Happened::Began(Rc::clone(origin)))];
        let outcome = match event {
            Some(event) => {
                entries.push(entry(Happened::Took(Rc::clone(event))));
                self.machine.take(&mut state, now, event)
            }
            None => Outcome { effects: vec![Effect::WriteView], decision: Some(begun(&state)) },
        };
        let state = Rc::new(state);
        let write = Write { run, project, expected: 0, state: Rc::clone(&state), entries };
        match self.commit(write) {
            Ok(revision) => Ok(Taken { run, revision, state, outcome }),
            Err(Refused::Conflict) => Err(Failure::Broken("the name is taken".to_owned())),
            Err(Refused::Duplicate) => Err(Failure::Duplicate),
            Err(Refused::Store) => Err(Failure::Store),
        }
    }

    fn advance(
        &mut self,
        now: Timestamp,
        mut held: Held,
        delivery: &Delivery,
    ) -> Result<Taken, Failure> {
        let run = held.run;
        for _ in 0..TRIES_MAX {
            let mut state = State::clone(&held.state);
            let outcome = self.machine.take(&mut state, now, &delivery.event);
            let state = Rc::new(state);
            if outcome.decision.is_none() {
                return Ok(Taken { run, revision: held.revision, state, outcome });
            }
            let happened = Happened::Took(Rc::clone(&delivery.event));
            let entry = Entry { at: now, happened, source: delivery.source.clone() };
            let project = self.row(run).map_or(0, |row| row.project);
            let (expected, entries) = (held.revision, vec![entry]);
            let write = Write { run, project, expected, state: Rc::clone(&state), entries };
            match self.commit(write) {
                Ok(revision) => return Ok(Taken { run, revision, state, outcome }),
                Err(Refused::Store) if self.machine.bug == Some(Bug::AckBeforeCommit) => {
                    return Ok(Taken { run, revision: expected + 1, state, outcome });
                }
                Err(Refused::Store) => return Err(Failure::Store),
                Err(Refused::Duplicate) => return Err(Failure::Duplicate),
                Err(Refused::Conflict) => {
                    let again = self.held(run);
                    held = again.ok_or_else(|| Failure::Broken("the run is gone".to_owned()))?;
                }
            }
        }
        Err(Failure::Broken("others were always first".to_owned()))
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }

    fn restart(&mut self) {}

    fn view_done(&mut self, run: usize, _revision: u64) {
        if let Some(row) = self.runs.get_mut(run).and_then(Option::as_mut) {
            row.written = true;
        }
    }

    fn was_written(&self, run: usize) -> bool {
        self.row(run).is_some_and(|row| row.written)
    }

    fn is_outdated(&self, project: usize, text: &str) -> bool {
        let Ok(view) = View::parse(text) else { return false };
        let rows = self.runs.iter().flatten().rev().filter(|row| row.project == project);
        rows.take(RUNS_MAX).any(|row| {
            view.started_at().is_none_or(|at| row.state.started_at == Some(at))
                && replay::states(self.machine, &row.journal)
                    .collect::<Vec<_>>()
                    .iter()
                    .rev()
                    .any(|state| view.edits(state).is_empty())
        })
    }

    fn journal(&self, run: usize) -> Vec<Entry> {
        self.row(run).map(|row| row.journal.clone()).unwrap_or_default()
    }
}
