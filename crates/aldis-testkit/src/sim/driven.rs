//! The real driver over a real store: everything goes through its stored form.

use std::path::PathBuf;
use std::rc::Rc;

use aldis::engine::driver::{Driver, DriverError, Loaded, Origin, Stepped, load};
use aldis::hosts::state_file;
use aldis_machine::phases::{Event, State};
use aldis_signal::time::Timestamp;
use aldis_store::{
    Event as Stored, Fault, MemoryStore, Revision, Run, RunId, RunRecord, SqliteStore, Store,
};

use super::engine::{Delivery, Engine, Entry, Failure, Happened, Held, Taken};
use super::faulty::Faulty;

/// A crash does not happen to the process alone: every so often the store is opened anew.
const REOPEN_EVERY: u64 = 8;

/// The driver with its store.
pub(super) struct Driven {
    /// Distinguishes this world's runs from those of others in the same store.
    world: u64,
    backend: Backend,
    crashes: u64,
}

enum Backend {
    Memory(Box<Faulty<MemoryStore>>),
    Sqlite(PathBuf, Box<Faulty<SqliteStore>>),
}

impl Driven {
    pub(super) fn memory(world: u64) -> Self {
        Self {
            world,
            backend: Backend::Memory(Box::new(Faulty::new(MemoryStore::new()))),
            crashes: 0,
        }
    }

    pub(super) fn sqlite(world: u64, directory: PathBuf) -> Result<Self, String> {
        let store = SqliteStore::open(&directory).map_err(|error| error.to_string())?;
        Ok(Self {
            world,
            backend: Backend::Sqlite(directory, Box::new(Faulty::new(store))),
            crashes: 0,
        })
    }

    fn store(&self) -> &dyn Store {
        match &self.backend {
            Backend::Memory(store) => &**store,
            Backend::Sqlite(_, store) => &**store,
        }
    }

    fn driver(&self, now: Timestamp) -> Driver<'_> {
        Driver { store: self.store(), now }
    }

    fn id(&self, run: usize) -> Option<RunId> {
        RunId::new(format!("w{}-{run}", self.world)).ok()
    }

    fn project(&self, project: usize) -> String {
        format!("/sim/{}/{project}", self.world)
    }

    /// A name that this world gave.
    fn number(name: &str) -> usize {
        name.rsplit(['-', '/']).next().and_then(|number| number.parse().ok()).unwrap_or(usize::MAX)
    }

    fn hold(loaded: Loaded) -> Held {
        let Loaded { run, state } = loaded;
        let number = Self::number(run.id.as_str());
        Held { run: number, revision: run.revision.0, state: Rc::new(state) }
    }

    /// What the process had read, which need not be what is stored now.
    fn loaded(&self, held: Held) -> Option<Loaded> {
        let run = self.store().run(&self.id(held.run)?).ok()??;
        let record = RunRecord { state: String::new(), ..run.record };
        let run = Run { revision: Revision(held.revision), record, ..run };
        let state = Rc::try_unwrap(held.state).unwrap_or_else(|state| State::clone(&state));
        Some(Loaded { run, state })
    }
}

fn taken(stepped: Stepped) -> Taken {
    let Stepped { run, revision, state, outcome, .. } = stepped;
    let run = Driven::number(run.as_str());
    Taken { run, revision: revision.0, state: Rc::new(state), outcome }
}

fn failure(error: DriverError) -> Failure {
    match error {
        DriverError::Store(_) => Failure::Store,
        DriverError::Duplicate => Failure::Duplicate,
        other => Failure::Broken(other.to_string()),
    }
}

impl Engine for Driven {
    fn live(&self, project: usize, session: Option<&str>) -> Option<Held> {
        let driver = self.driver(Timestamp::from_millis(0));
        driver.live_in(&[self.project(project)], session).ok()?.map(Self::hold)
    }

    fn latest(&self, project: usize) -> Option<Held> {
        let driver = self.driver(Timestamp::from_millis(0));
        driver.latest(&self.project(project)).ok()?.map(Self::hold)
    }

    fn held(&self, run: usize) -> Option<Held> {
        let run = self.store().run(&self.id(run)?).ok()??;
        load(run).ok().map(Self::hold)
    }

    fn create(
        &mut self,
        now: Timestamp,
        (run, project): (usize, usize),
        origin: &Rc<Origin>,
        event: Option<&Rc<Event>>,
    ) -> Result<Taken, Failure> {
        let id = self.id(run).ok_or_else(|| Failure::Broken("no name".to_owned()))?;
        let event = event.map(|event| &**event);
        let created = self.driver(now).create_as(&id, &self.project(project), origin, event);
        created.map(taken).map_err(failure)
    }

    fn advance(
        &mut self,
        now: Timestamp,
        held: Held,
        delivery: &Delivery,
    ) -> Result<Taken, Failure> {
        let loaded = self.loaded(held).ok_or_else(|| Failure::Broken("no such run".to_owned()))?;
        let advanced =
            self.driver(now).advance(loaded, &delivery.event, delivery.source.as_deref());
        advanced.map(taken).map_err(failure)
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        match &self.backend {
            Backend::Memory(store) => store.plan(fault),
            Backend::Sqlite(_, store) => store.plan(fault),
        }
    }

    fn restart(&mut self) {
        self.crashes += 1;
        if let Backend::Sqlite(directory, store) = &mut self.backend
            && self.crashes.is_multiple_of(REOPEN_EVERY)
            && let Ok(fresh) = SqliteStore::open(directory)
        {
            std::mem::replace(&mut **store, Faulty::new(fresh)).inner.abandon();
        }
    }

    fn view_done(&mut self, run: usize, revision: u64) {
        if let Some(id) = self.id(run) {
            // A record that is missing is what faults are about.
            state_file::written(self.store(), &id, Revision(revision)).ok();
        }
    }

    fn was_written(&self, run: usize) -> bool {
        let id = self.id(run);
        id.is_some_and(|id| state_file::was_written(self.store(), &id).unwrap_or(false))
    }

    fn is_outdated(&self, project: usize, text: &str) -> bool {
        state_file::is_outdated(self.store(), &self.project(project), text).unwrap_or(false)
    }

    fn journal(&self, run: usize) -> Vec<Entry> {
        let Some(id) = self.id(run) else { return Vec::new() };
        let events = self.store().events(&id, 0, usize::MAX).unwrap_or_default();
        events.into_iter().filter_map(entry).collect()
    }
}

fn entry(stored: Stored) -> Option<Entry> {
    let Stored { at, kind, body, source, .. } = stored;
    let happened = if matches!(&*kind, "start" | "adopt") {
        Happened::Began(Rc::new(serde_json::from_str(&body).ok()?))
    } else {
        Happened::Took(Rc::new(serde_json::from_str(&body).ok()?))
    };
    Some(Entry { at, happened, source: source.map(Rc::from) })
}
