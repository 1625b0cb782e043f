//! The real keeper over a real store: everything goes through its stored form.

use std::path::PathBuf;
use std::sync::Arc;

use aldis::engine::channel_log::{ChannelError, ChannelLog, Kept};
use aldis_machine::turns::{Effect, Event, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{EffectFilter, Fault, MemoryStore, RunId, SqliteStore, Store, Timer};
use serde_json::Value;

use super::super::faulty::Faulty;
use super::engine::{Engine, Failed, Line};

/// A death of the server is not always one of its store: every so often it is opened anew.
const REOPEN_EVERY: u64 = 4;

/// A server's channels.
pub(super) struct Stored {
    backend: Backend,
    log: ChannelLog,
    deaths: u64,
}

enum Backend {
    Memory(Arc<Faulty<MemoryStore>>),
    Sqlite(PathBuf, Arc<Faulty<SqliteStore>>),
}

impl Stored {
    pub(super) fn memory() -> Self {
        let store = Arc::new(Faulty::new(MemoryStore::new()));
        let log = ChannelLog::new(store.clone());
        Self { backend: Backend::Memory(store), log, deaths: 0 }
    }

    pub(super) fn sqlite(directory: PathBuf) -> Result<Self, String> {
        let store = SqliteStore::open(&directory).map_err(|error| error.to_string())?;
        let store = Arc::new(Faulty::new(store));
        let log = ChannelLog::new(store.clone());
        Ok(Self { backend: Backend::Sqlite(directory, store), log, deaths: 0 })
    }

    fn store(&self) -> &dyn Store {
        match &self.backend {
            Backend::Memory(store) => &**store,
            Backend::Sqlite(_, store) => &**store,
        }
    }

    fn timers(&self, now: Timestamp) -> Vec<Timer> {
        self.store().due_timers(now, usize::MAX).unwrap_or_default()
    }
}

fn judged(result: Result<Kept, ChannelError>) -> Result<Kept, Failed> {
    match result {
        Ok(kept) => Ok(kept),
        Err(ChannelError::Store(_)) => Err(Failed),
        Err(other) => unreachable!("{other}"),
    }
}

impl Engine for Stored {
    fn open(&mut self, now: Timestamp, start: &Start) -> Result<Kept, Failed> {
        judged(self.log.open(now, start, None))
    }

    fn take(
        &mut self,
        now: Timestamp,
        channel: &str,
        event: &Event,
        source: Option<&str>,
    ) -> Result<Kept, Failed> {
        let event = serde_json::to_value(event).unwrap_or_default();
        judged(self.log.take(now, channel, &event, source))
    }

    fn due(&self, now: Timestamp) -> Vec<String> {
        self.timers(now).iter().map(|timer| timer.run.as_str().to_owned()).collect()
    }

    fn ring(&mut self, now: Timestamp, channel: &str, missed: bool) -> Result<Kept, Failed> {
        let timers = self.timers(now);
        let timer = timers.iter().find(|timer| timer.run.as_str() == channel);
        timer.map_or_else(|| Ok(Kept::default()), |timer| judged(self.log.ring(now, timer, missed)))
    }

    fn state(&self, channel: &str) -> State {
        match self.log.state(channel) {
            Ok(state) => state,
            Err(error) => unreachable!("{channel}: {error}"),
        }
    }

    fn alarm(&self, channel: &str) -> Option<Timestamp> {
        let timers = self.timers(Timestamp::from_millis(i64::MAX));
        timers.iter().find(|timer| timer.run.as_str() == channel).map(|timer| timer.due)
    }

    fn pending(&self) -> Option<(String, Effect)> {
        let ever = Timestamp::from_millis(i64::MAX);
        let filter = EffectFilter { limit: 1, ..EffectFilter::due_by(ever) };
        let effect = self.store().pending_effects(&filter).ok()?.into_iter().next()?;
        let body: Value = serde_json::from_str(&effect.body).ok()?;
        Some((effect.key, serde_json::from_value(body.get("effect")?.clone()).ok()?))
    }

    fn done(&mut self, key: &str) {
        // What is not recorded is carried out again: that is what faults are about.
        if let Ok(Some(effect)) = self.store().effect(key) {
            self.store().effects_done(&effect.run, None, &[effect.key]).ok();
        }
    }

    fn journal(&self, channel: &str) -> (Timestamp, Vec<Line>) {
        let run = RunId::new(channel).map_err(|error| error.to_string());
        let events = run.and_then(|run| {
            self.store().events(&run, 0, usize::MAX).map_err(|error| error.to_string())
        });
        let mut events = events.unwrap_or_default().into_iter();
        let opened = events.next().map_or(Timestamp::from_millis(0), |first| first.at);
        let line = |event: aldis_store::Event| {
            let read = serde_json::from_str(&event.body);
            match read {
                Ok(read) => Line { at: event.at, event: read, source: event.source },
                Err(error) => unreachable!("{}: {error}", event.body),
            }
        };
        (opened, events.map(line).collect())
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        match &self.backend {
            Backend::Memory(store) => store.plan(fault),
            Backend::Sqlite(_, store) => store.plan(fault),
        }
    }

    fn restart(&mut self) {
        self.deaths += 1;
        match &mut self.backend {
            Backend::Memory(store) => self.log = ChannelLog::new(store.clone()),
            Backend::Sqlite(directory, store) => {
                if self.deaths.is_multiple_of(REOPEN_EVERY)
                    && let Ok(fresh) = SqliteStore::open(directory)
                {
                    *store = Arc::new(Faulty::new(fresh));
                }
                self.log = ChannelLog::new(store.clone());
            }
        }
    }
}
