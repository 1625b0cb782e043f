//! The real journal over a real store: everything goes through its stored form.

use std::path::PathBuf;

use aldis::engine::driver::DriverError;
use aldis::engine::run_log::RunLog;
use aldis_machine::run::{Event, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{DecisionFilter, EffectFilter, Fault, MemoryStore, RunId, SqliteStore, Store};
use serde_json::Value;

use super::super::faulty::Faulty;
use super::engine::{Due, Engine, Failure, Journal};

/// A death of the supervisor is not one of the store: every so often it is opened anew.
const REOPEN_EVERY: u64 = 8;

/// The journal with its store.
pub(super) struct Driven {
    backend: Backend,
    run: Option<RunId>,
    supervisor: Option<RunLog>,
    deaths: u64,
}

enum Backend {
    Memory(Box<Faulty<MemoryStore>>),
    Sqlite(PathBuf, Box<Faulty<SqliteStore>>),
}

impl Driven {
    pub(super) fn memory() -> Self {
        let backend = Backend::Memory(Box::new(Faulty::new(MemoryStore::new())));
        Self { backend, run: None, supervisor: None, deaths: 0 }
    }

    pub(super) fn sqlite(directory: PathBuf) -> Result<Self, String> {
        let store = SqliteStore::open(&directory).map_err(|error| error.to_string())?;
        let backend = Backend::Sqlite(directory, Box::new(Faulty::new(store)));
        Ok(Self { backend, run: None, supervisor: None, deaths: 0 })
    }

    fn store(&self) -> &dyn Store {
        store(&self.backend)
    }

    fn load(&self) -> Result<RunLog, Failure> {
        let missing = || Failure::Broken("the run is not there".to_owned());
        let id = self.run.as_ref().ok_or_else(missing)?;
        let run = self.store().run(id).map_err(|_| Failure::Store)?.ok_or_else(missing)?;
        RunLog::load(run).map_err(failure)
    }

    fn supervised(
        &mut self,
        act: impl FnOnce(&mut RunLog, &dyn Store) -> Result<(), DriverError>,
    ) -> Result<(), Failure> {
        let Some(log) = &mut self.supervisor else {
            return Err(Failure::Broken("nobody supervises".to_owned()));
        };
        act(log, store(&self.backend)).map_err(failure)
    }
}

fn store(backend: &Backend) -> &dyn Store {
    match backend {
        Backend::Memory(store) => &**store,
        Backend::Sqlite(_, store) => &**store,
    }
}

fn failure(error: DriverError) -> Failure {
    match error {
        DriverError::Store(_) => Failure::Store,
        other => Failure::Broken(other.to_string()),
    }
}

impl Engine for Driven {
    fn create(&mut self, now: Timestamp, start: Start) -> Result<(), Failure> {
        let log = RunLog::create(self.store(), now, "/sim", start).map_err(failure)?;
        self.run = Some(log.id().clone());
        Ok(())
    }

    fn take_over(&mut self) -> Result<(), Failure> {
        let log = self.load()?;
        log.forget_hands(self.store()).map_err(failure)?;
        self.supervisor = Some(log);
        Ok(())
    }

    fn lose(&mut self) {
        self.supervisor = None;
        self.deaths += 1;
        if let Backend::Sqlite(directory, store) = &mut self.backend
            && self.deaths.is_multiple_of(REOPEN_EVERY)
            && let Ok(fresh) = SqliteStore::open(directory)
        {
            std::mem::replace(&mut **store, Faulty::new(fresh)).inner.abandon();
        }
    }

    fn known(&self) -> &State {
        match &self.supervisor {
            Some(log) => log.state(),
            None => unreachable!("nobody supervises"),
        }
    }

    fn stored(&self) -> State {
        match self.load() {
            Ok(log) => log.state().clone(),
            Err(failure) => unreachable!("{failure:?}"),
        }
    }

    fn advance(&mut self, now: Timestamp, event: Event) -> Result<(), Failure> {
        self.supervised(|log, store| log.advance(store, now, event).map(drop))
    }

    fn refresh(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.supervised(|log, store| log.refresh(store, now).map(drop))
    }

    fn intrude(&mut self, now: Timestamp, event: Event) -> Result<bool, Failure> {
        let mut log = self.load()?;
        log.advance(self.store(), now, event).map_err(failure)
    }

    fn due(&self) -> Option<Due> {
        let due_by = Timestamp::from_millis(i64::MAX);
        let run = self.run.clone();
        let filter = EffectFilter { run, limit: 1, ..EffectFilter::due_by(due_by) };
        let stored = self.store().pending_effects(&filter).ok()?.into_iter().next()?;
        let effect = serde_json::from_str(&stored.body).ok()?;
        Some(Due { key: stored.key, effect })
    }

    fn performed(&mut self, key: &str) {
        // What is not recorded is performed again: that is what faults are about.
        if let Some(run) = &self.run {
            self.store().effects_done(run, None, &[key.to_owned()]).ok();
        }
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        match &self.backend {
            Backend::Memory(store) => store.plan(fault),
            Backend::Sqlite(_, store) => store.plan(fault),
        }
    }

    fn journal(&self) -> Option<Journal> {
        let run = self.run.clone()?;
        let mut events = self.store().events(&run, 0, usize::MAX).ok()?.into_iter();
        let first = events.next()?;
        let body: Value = serde_json::from_str(&first.body).ok()?;
        let start = serde_json::from_value(body.get("start")?.clone()).ok()?;
        let events =
            events.map(|event| Some((event.at, serde_json::from_str::<Event>(&event.body).ok()?)));
        let filter = DecisionFilter { run: Some(run), ..DecisionFilter::default() };
        let kept = self.store().decisions(&filter).ok()?;
        let decisions = kept.iter().rev().map(|kept| serde_json::from_str(&kept.body).ok());
        Some(Journal {
            began: (first.at, start),
            events: events.collect::<Option<Vec<_>>>()?,
            decisions: decisions.collect::<Option<Vec<_>>>()?,
        })
    }
}
