//! Exports while runs go on: a thread of its own reads what was committed and sends what is over.
//!
//! The supervisor of a run exports that run. A server exports those that nobody supervises: of hooks, and
//! of requests to any server. What ended while nobody exported is left to `aldis log --otlp RUN`.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use aldis_store::{
    ChangeStamp, Cursor, Decision, DecisionFilter, Driver, Event, Revision, RunId, Store,
    StoreError,
};

use super::context::NOTE;
use super::export::{Connection, Queue};
use super::target::Target;
use super::trace::RunTrace;
use crate::error::CommandError;
use crate::failures::{self, Failure};
use crate::settings::clock;

/// Even without a change is looked so often: a batch may be due again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long changes gather before they are read.
const GATHER: Duration = Duration::from_millis(100);
/// How long the last spans of a run may take.
const FINAL_WAIT: Duration = Duration::from_secs(3);
/// How many decisions, and events, are read at once.
const PAGE: usize = 500;
/// How many runs a server follows; another one is read from its beginning when it goes on.
const RUNS_MAX: usize = 256;

/// Which runs are exported.
pub(crate) enum ExportScope {
    /// The one that this process supervises.
    Run(RunId),
    /// Those that nobody supervises.
    Server,
}

/// Exports in the background until it is dropped.
pub(crate) struct Exporter {
    stopping: Arc<AtomicBool>,
    /// Closed by the thread when it has sent what it can.
    done: Receiver<()>,
}

impl Exporter {
    /// Starts to export, if that is set. What is wrong with the settings is recorded in `state`, and fails
    /// nothing.
    pub(crate) fn start(store: &Arc<dyn Store>, scope: ExportScope, state: &Path) -> Option<Self> {
        let record = |what: String| {
            tracing::warn!(what, "traces are not exported");
            let (at, part) = (clock::wall(), "telemetry".to_owned());
            failures::record(state, &Failure { at, part, what });
        };
        let target = match Target::load() {
            Ok(target) => target?,
            Err(error) => {
                record(error.to_string());
                return None;
            }
        };
        let stopping = Arc::new(AtomicBool::new(false));
        let (closes, done) = mpsc::channel();
        let worker = Worker {
            store: Arc::clone(store),
            runs: BTreeMap::new(),
            bodies: target.bodies,
            queue: Queue::new(target, state.to_owned()),
            after: Cursor::START,
            known: None,
            stopping: Arc::clone(&stopping),
            turn: 0,
        };
        let state = state.to_owned();
        let thread = thread::Builder::new().name("telemetry".to_owned());
        let spawned = thread.spawn(move || {
            let _closes = closes;
            // A bug of the exporter is its own: the run goes on.
            if catch_unwind(AssertUnwindSafe(|| worker.work(&scope))).is_err() {
                let (at, part) = (clock::wall(), "telemetry".to_owned());
                let what = "ended by a defect; traces are not exported".to_owned();
                failures::record(&state, &Failure { at, part, what });
            }
        });
        spawned.ok().map(|_| Self { stopping, done })
    }

    /// Gives the last spans a little time.
    pub(crate) fn finish(self) {
        self.stopping.store(true, Ordering::Relaxed);
        // Closed or not: nobody waits any longer.
        let _closed = self.done.recv_timeout(FINAL_WAIT);
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

/// Exports everything that is known of a run now. Returns how many spans were sent.
///
/// # Errors
///
/// Fails if the store does, or if the collector does not take them.
pub(crate) fn export_run(
    store: &dyn Store,
    run: &RunId,
    target: Target,
) -> Result<usize, CommandError> {
    let mut followed = Followed::open(store, run, target.bodies)?
        .ok_or_else(|| CommandError::new(format!("run {run} cannot be read")))?;
    let connection = Connection::new(target);
    let mut sent = 0;
    loop {
        let is_last = followed.read(store)?;
        for batch in followed.trace.finished().chunks(PAGE) {
            if let Some(refused) = connection.send(batch)? {
                return Err(CommandError::new(refused));
            }
            sent += batch.len();
        }
        if is_last {
            return Ok(sent);
        }
    }
}

/// A run that is followed.
struct Followed {
    trace: RunTrace,
    /// What ended up to this revision was exported before, if anything was.
    known: Option<Revision>,
    /// Decisions of 0.1.0, whose events do not say which step they are of.
    undated: Option<VecDeque<Decision>>,
    /// When it was last needed.
    turn: u64,
}

impl Followed {
    /// Begins with a run that is there and whose machine is known.
    fn open(store: &dyn Store, id: &RunId, bodies: bool) -> Result<Option<Self>, StoreError> {
        let Some(run) = store.find(id.as_str(), 1)?.into_iter().find(|run| run.id == *id) else {
            return Ok(None);
        };
        let note = store.load(id)?.and_then(|loaded| {
            let part = loaded.parts.into_iter().find(|part| part.key == NOTE)?;
            serde_json::from_str::<String>(&part.body).ok()
        });
        let trace = RunTrace::new(&run, note.as_deref(), bodies).ok();
        Ok(trace.map(|trace| Self { trace, known: None, undated: None, turn: 0 }))
    }

    /// Takes a page of what was committed since, step by step. Returns whether that was all. A journal
    /// that cannot be understood is taken no further.
    fn read(&mut self, store: &dyn Store) -> Result<bool, StoreError> {
        let run = self.trace.run().clone();
        let mut events = store.events(&run, self.trace.last_event, PAGE)?;
        let is_last = events.len() < PAGE;
        let last = events.last().and_then(|event| event.revision);
        if !is_last && last.is_some() && events.first().and_then(|it| it.revision) != last {
            // The rest of its step may be on the next page.
            events.retain(|event| event.revision != last);
        }
        let same =
            |one: &Event, other: &Event| one.revision.is_some() && one.revision == other.revision;
        for step in events.chunk_by(same) {
            let Some(first) = step.first() else { continue };
            let decisions = match first.revision {
                Some(revision) => store.decisions_of(&run, revision)?,
                None => self.decided_until(store, first)?,
            };
            if let Err(error) = self.trace.take(step, &decisions) {
                tracing::debug!(%run, %error, "the journal cannot be exported");
                return Ok(true);
            }
            let before = |known| first.revision.is_none_or(|revision| revision <= known);
            if self.known.is_some_and(before) {
                drop(self.trace.finished());
            }
        }
        Ok(is_last)
    }

    /// Returns what 0.1.0 decided until an event, and was not returned yet.
    fn decided_until(
        &mut self,
        store: &dyn Store,
        event: &Event,
    ) -> Result<Vec<Decision>, StoreError> {
        let undated = match self.undated.take() {
            Some(undated) => undated,
            None => {
                let run = Some(event.run.clone());
                let filter = DecisionFilter { run, ..DecisionFilter::default() };
                store.decisions(&filter)?.into_iter().rev().collect()
            }
        };
        let undated = self.undated.insert(undated);
        let count = undated.iter().take_while(|decision| decision.at <= event.at).count();
        Ok(undated.drain(..count).collect())
    }
}

/// The thread.
struct Worker {
    store: Arc<dyn Store>,
    runs: BTreeMap<RunId, Followed>,
    bodies: bool,
    queue: Queue,
    /// Up to where decisions of all runs were read.
    after: Cursor,
    /// Up to where the only run was exported before.
    known: Option<Revision>,
    stopping: Arc<AtomicBool>,
    turn: u64,
}

impl Worker {
    fn work(mut self, scope: &ExportScope) {
        match scope {
            // Whoever supervised it before has exported what was over then.
            ExportScope::Run(run) => {
                let run = self.store.run(run).ok().flatten();
                self.known = run.map(|run| run.revision);
            }
            ExportScope::Server => {
                let filter = DecisionFilter { limit: 1, ..DecisionFilter::default() };
                let newest = self.store.decisions(&filter).unwrap_or_default();
                self.after = newest.first().map_or(Cursor::START, |decision| decision.cursor);
            }
        }
        loop {
            let stopping = self.stopping.load(Ordering::Relaxed);
            let stamp = self.store.change();
            // A store that fails now is read again later.
            if let Err(error) = self.read(scope) {
                tracing::debug!(%error, "cannot read what to export yet");
            }
            if self.queue.is_due() || stopping && !self.queue.is_empty() {
                self.queue.flush();
            }
            if stopping {
                return self.queue.give_up();
            }
            self.wait(stamp);
        }
    }

    /// Waits for a change, or until this ends. In short pieces: whoever ends this does not wait for it.
    fn wait(&self, stamp: Result<ChangeStamp, StoreError>) {
        let mut waited = Duration::ZERO;
        while waited < LOOK_EVERY && !self.stopping.load(Ordering::Relaxed) {
            waited += GATHER;
            match &stamp {
                Ok(stamp) => match self.store.wait_for_change(stamp, GATHER) {
                    Ok(now) if now == *stamp => {}
                    _ => return thread::sleep(GATHER),
                },
                Err(_) => thread::sleep(GATHER),
            }
        }
    }

    /// Reads what is new, and queues what is over.
    fn read(&mut self, scope: &ExportScope) -> Result<(), StoreError> {
        match scope {
            ExportScope::Run(run) => self.follow(run, self.known, |_| true),
            ExportScope::Server => loop {
                let page = self.store.decisions_after(None, &self.after, PAGE)?;
                let mut changed = BTreeMap::new();
                for decision in &page {
                    changed.entry(decision.run.clone()).or_insert(decision.revision);
                }
                for (run, revision) in changed {
                    let before = Some(Revision(revision.0.saturating_sub(1)));
                    let unsupervised = |driver| matches!(driver, Driver::Hook | Driver::Server);
                    self.follow(&run, before, unsupervised)?;
                }
                self.after = page.last().map_or(self.after, |last| last.cursor);
                if page.len() < PAGE || self.stopping.load(Ordering::Relaxed) {
                    return Ok(());
                }
            },
        }
    }

    /// Takes what is new in a run. `known` is where one that is not followed yet begins to count.
    fn follow(
        &mut self,
        id: &RunId,
        known: Option<Revision>,
        wanted: impl Fn(Driver) -> bool,
    ) -> Result<(), StoreError> {
        self.turn += 1;
        if !self.runs.contains_key(id) {
            let Some(run) = self.store.run(id)? else { return Ok(()) };
            if !wanted(run.record.driver) {
                return Ok(());
            }
            let opened = Followed::open(&*self.store, id, self.bodies)?;
            let Some(followed) = opened else { return Ok(()) };
            self.make_room();
            self.runs.insert(id.clone(), Followed { known, ..followed });
        }
        let Some(followed) = self.runs.get_mut(id) else { return Ok(()) };
        followed.turn = self.turn;
        if !followed.trace.is_sampled() {
            return Ok(());
        }
        while !followed.read(&*self.store)? {
            self.queue.push(followed.trace.finished());
        }
        self.queue.push(followed.trace.finished());
        Ok(())
    }

    /// Forgets the run that has been quiet for longest.
    fn make_room(&mut self) {
        if self.runs.len() >= RUNS_MAX
            && let Some(quiet) =
                self.runs.iter().min_by_key(|(_, it)| it.turn).map(|(id, _)| id.clone())
        {
            self.runs.remove(&quiet);
        }
    }
}
