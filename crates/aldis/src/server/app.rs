//! What all requests share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aldis_engine::{Engine, EngineError, NewRun, RequestOutcome};
use aldis_machine::turns::Persona;
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, RunId, Step, Store, TimerChange};
use axum::extract::State;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use super::access::Access;
use super::dashboard::Dashboard;
use super::error::ApiError;
use super::events::Bus;
use super::metrics::{Decisions, Metrics};
use super::output;
use super::runs::Runs;
use crate::app::formats::turn_state::ChannelSet;
use crate::error::CommandError;
use crate::notify;
use crate::notify::routes::Routes;
use crate::settings::clock::SteadyClock;

/// How many timers are fired at once.
const TIMERS_MAX: usize = 256;
/// How often it is tried whether the store can be written, at most.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// How a request gets it.
pub(super) type AppState = State<Arc<App>>;

/// What all requests share.
pub(crate) struct App {
    pub(super) access: Access,
    pub(super) bus: Bus,
    pub(super) clock: SteadyClock,
    pub(super) metrics: Metrics,
    /// Who there is, in channels that do not say.
    pub(super) personas: BTreeMap<String, Persona>,
    /// Takes steps.
    pub(super) runs: Runs,
    /// Where the logs of agents are.
    pub(super) state_dir: PathBuf,
    /// What the dashboard remembers of what it showed.
    pub(super) dashboard: Arc<Dashboard>,
    /// For those who read output.
    pub(super) output_seats: Arc<Semaphore>,
    /// Wakes whoever waits for something to be committed.
    pub(super) commits: Arc<Commits>,
    /// Whether the store could be written, and when that was tried.
    writable: Mutex<Option<(Timestamp, bool)>>,
    /// Which sinks take nothing, and when that was looked up.
    sinks: Mutex<Option<(Timestamp, Vec<String>)>>,
    /// What each part that works in the background could not do the last time.
    failing: Mutex<BTreeMap<&'static str, String>>,
    /// Whether the server is stopping.
    pub(super) stopping: watch::Sender<bool>,
}

/// Wakes whoever waits for commits: one `Notify` per consumer, because `notify_one` wakes only one.
#[derive(Debug, Default)]
pub(super) struct Commits {
    decisions: Decisions,
    pub(super) bus: Notify,
    pub(super) timers: Notify,
    /// Until when the timers sleep; waking them before that would be for nothing.
    asleep_until: AtomicI64,
}

impl Commits {
    /// Tells of a step that is durable.
    pub(super) fn notify(&self, step: &Step) {
        if !step.decisions.is_empty() {
            self.decisions.made(&step.record.machine, step.decisions.len());
            self.bus.notify_one();
        }
        for timer in &step.timers {
            if let TimerChange::Set { due, .. } = timer {
                self.notify_timers(*due);
            }
        }
    }

    /// Tells of a step whose answer is known.
    pub(super) fn notify_of(&self, answer: &RequestOutcome) {
        if !answer.repeated {
            self.decisions.made(answer.run.machine(), answer.decisions.len());
        }
        self.bus.notify_one();
        if let Some(due) = answer.run.next_wake() {
            self.notify_timers(due);
        }
    }

    /// Tells of a step of which nothing is known. Timers are not told: only they ask.
    pub(super) fn notify_all(&self) {
        self.bus.notify_one();
    }

    fn notify_timers(&self, due: Timestamp) {
        if due.as_millis() < self.asleep_until.load(Ordering::SeqCst) {
            self.timers.notify_one();
        }
    }

    /// Says until when the timers sleep. Whoever sets a timer wakes them, or was seen by a look after
    /// this.
    pub(super) fn sleep_until(&self, until: Timestamp) {
        self.asleep_until.store(until.as_millis(), Ordering::SeqCst);
    }
}

impl App {
    /// Puts an application together, without files or sockets.
    pub(super) fn new(
        store: Arc<dyn Store>,
        access: Access,
        routes: Routes,
        personas: BTreeMap<String, Persona>,
        state_dir: PathBuf,
    ) -> Arc<Self> {
        let metrics = Metrics::new();
        let decisions = metrics.decisions.clone();
        let commits = Arc::new(Commits { decisions, ..Commits::default() });
        let engine = Engine::new(store).with_route(Arc::new(routes));
        Arc::new(Self {
            access,
            bus: Bus::default(),
            clock: SteadyClock::start(),
            metrics,
            personas,
            runs: Runs::new(engine, Arc::clone(&commits)),
            state_dir,
            dashboard: Arc::default(),
            output_seats: Arc::new(Semaphore::new(output::CLIENTS_MAX)),
            commits,
            writable: Mutex::default(),
            sinks: Mutex::default(),
            failing: Mutex::default(),
            stopping: watch::Sender::new(false),
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns whether the store can be written. Tried at most once a second: whoever has no token
    /// asks, too, and it costs a write.
    pub(super) async fn is_writable(&self) -> bool {
        let now = self.now();
        let lock = || self.writable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, writable)) = *lock()
            && now.since(at) < PROBE_EVERY
        {
            return writable;
        }
        let writable = self.with_engine(|engine| engine.store().probe()).await.is_ok();
        *lock() = Some((now, writable));
        writable
    }

    /// Takes what came of work in the background: a failure is reported until the work is done again.
    pub(super) fn noted<T>(&self, part: &'static str, result: Result<T, ApiError>) -> Option<T> {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(_) => failing.remove(part),
            Err(error) => {
                tracing::warn!(part, %error, "background work failed");
                failing.insert(part, error.to_string())
            }
        };
        result.ok()
    }

    /// Returns what keeps the server from its work.
    pub(super) async fn failures(&self) -> Vec<String> {
        let is_writable = self.is_writable().await;
        let failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let failing = failing.iter().map(|(part, what)| format!("{part}: {what}"));
        let store = (!is_writable).then(|| "the store cannot be written".to_owned());
        store.into_iter().chain(failing).collect()
    }

    /// Says which sinks take nothing, and that something was given up.
    pub(super) async fn sinks_fail(&self) -> Vec<String> {
        let failing = self.failing_sinks().await;
        let lost = self.metrics.lost();
        let given_up = format!("{lost} effects were given up since the start; see `aldis log`");
        let given_up = (lost > 0).then_some(given_up);
        failing.into_iter().chain(given_up).collect()
    }

    /// Returns which sinks take nothing. Looked up at most once a second, as whether the store can be
    /// written: what waits is counted for it.
    async fn failing_sinks(&self) -> Vec<String> {
        let now = self.now();
        let lock = || self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, failing)) = &*lock()
            && now.since(*at) < PROBE_EVERY
        {
            return failing.clone();
        }
        let failing = self.with_engine(|engine| notify::failing(engine.store())).await;
        let failing = failing.unwrap_or_default();
        *lock() = Some((now, failing.clone()));
        failing
    }

    /// Fires the timers that were due while nobody watched.
    pub(super) async fn recover(self: &Arc<Self>) -> Result<(), CommandError> {
        let now = self.now();
        while self.fire(now, true).await? > 0 {}
        Ok(())
    }

    /// Fires timers that are due, all at once so that they are written together. Returns how many;
    /// an error only if none could be fired.
    pub(super) async fn fire(
        self: &Arc<Self>,
        now: Timestamp,
        missed: bool,
    ) -> Result<usize, ApiError> {
        let due = self.with_engine(move |engine| engine.due(now, TIMERS_MAX)).await?;
        let mut timers = JoinSet::new();
        for timer in due {
            let app = Arc::clone(self);
            timers.spawn(async move { app.runs.fire(now, timer, missed).await });
        }
        let (mut fired, mut failure) = (0, None);
        for result in timers.join_all().await {
            match result {
                Ok(()) => fired += 1,
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if fired == 0 => Err(error),
            _ => Ok(fired),
        }
    }

    /// Takes over channels that are not there yet; returns those that were and those that are.
    pub(super) async fn adopt(
        self: &Arc<Self>,
        board: ChannelSet,
    ) -> Result<(Vec<String>, Vec<String>), ApiError> {
        let now = self.now();
        let adopted = self.with_engine(move |engine| {
            let (mut adopted, mut skipped) = (Vec::new(), Vec::new());
            for (name, state) in board.channels {
                let id = RunId::new(&*name);
                let id = id.map_err(|error| EngineError::Invalid(error.to_string()))?;
                let new = NewRun { id: Some(id), ..NewRun::of("", Driver::Server) };
                match engine.adopt(now, &new, state, None) {
                    Ok(_) => adopted.push(name),
                    Err(EngineError::Exists(_)) => skipped.push(name),
                    Err(error) => return Err(error),
                }
            }
            Ok((adopted, skipped))
        });
        let adopted = adopted.await?;
        self.commits.notify_all();
        Ok(adopted)
    }

    /// Does something that may wait for the disk.
    pub(super) async fn with_engine<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.runs.with_engine(work).await
    }

    /// Waits until the server stops.
    pub(super) async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives as long as this does.
        stopping.wait_for(|stopping| *stopping).await.ok();
    }
}
