//! Stores that fail and are meddled with on command, and runs of every machine.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aldis_engine::{Dialects, Engine, Handle, Members, NewRun};
use aldis_machine::delivery::{Plan, TaskSpec};
use aldis_machine::phases::Pipeline;
use aldis_machine::{Machine, delivery, phases, run, turns};
use aldis_signal::Dialect;
use aldis_signal::time::Timestamp;
use aldis_store::{
    ChangeStamp, Claim, ClaimRequest, CommitError, Committed, Continuity, Cursor, Decision,
    DecisionFilter, Driver, Effect, EffectFilter, Event, Lease, LeaseError, Loaded, MemoryStore,
    PendingCount, Prune, Revision, Run, RunFilter, RunId, RunSummary, SqliteStore, Step, Store,
    StoreError, StoreSize, Ticket, Tickets, Timer, Turn, WorkerRecord,
};
use serde_json::Value;

/// What happens at a commit.
pub(crate) enum Fate {
    /// The store fails and wrote nothing.
    FailsBefore,
    /// The store fails and wrote the step.
    FailsAfter,
    /// Somebody does something first.
    After(Box<dyn FnOnce() + Send>),
    /// Nothing in particular.
    Nothing,
}

/// Any store, whose next writes have fates of their own.
pub(crate) struct TestStore {
    inner: Box<dyn Store>,
    fates: Mutex<VecDeque<Fate>>,
}

impl fmt::Debug for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestStore")
    }
}

impl TestStore {
    pub(crate) fn new(inner: impl Store + 'static) -> Arc<Self> {
        Arc::new(Self { inner: Box::new(inner), fates: Mutex::default() })
    }

    /// Gives the next commit that has none this fate.
    pub(crate) fn plan(&self, fate: Fate) {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).push_back(fate);
    }

    /// Forgets the fates that did not come to pass; returns how many.
    pub(crate) fn forget(&self) -> usize {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).drain(..).count()
    }

    fn next_fate(&self) -> Fate {
        let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
        fates.pop_front().unwrap_or(Fate::Nothing)
    }
}

fn failure() -> StoreError {
    StoreError::Busy { location: "the store of a test".to_owned() }
}

impl Tickets for TestStore {
    fn put_ticket(&self, ticket: &Ticket) -> Result<bool, StoreError> {
        self.inner.put_ticket(ticket)
    }

    fn ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        self.inner.ticket(kind, key)
    }

    fn tickets(&self, kind: &str, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.inner.tickets(kind, limit)
    }

    fn take_ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        self.inner.take_ticket(kind, key)
    }
}

impl Store for TestStore {
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.inner.run(id)
    }

    fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        self.inner.load(id)
    }

    fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError> {
        self.inner.loaded(filter)
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.list(filter)
    }

    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        self.inner.count(filter)
    }

    fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.find(prefix, limit)
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        match self.next_fate() {
            Fate::FailsBefore => Err(failure().into()),
            Fate::FailsAfter => {
                self.inner.commit(step)?;
                Err(failure().into())
            }
            Fate::After(act) => {
                act();
                self.inner.commit(step)
            }
            Fate::Nothing => self.inner.commit(step),
        }
    }

    fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.inner.events(run, after, limit)
    }

    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError> {
        self.inner.event_by_source(run, source)
    }

    fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions(filter)
    }

    fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions_after(run, after, limit)
    }

    fn decisions_of(&self, run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions_of(run, revision)
    }

    fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError> {
        self.inner.continuity(after)
    }

    fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        self.inner.pending_effects(filter)
    }

    fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        self.inner.effect(key)
    }

    fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError> {
        self.inner.pending_count()
    }

    fn effects_done(
        &self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError> {
        match self.next_fate() {
            Fate::FailsBefore => Err(failure().into()),
            Fate::FailsAfter => {
                self.inner.effects_done(run, fence, keys)?;
                Err(failure().into())
            }
            Fate::After(act) => {
                act();
                self.inner.effects_done(run, fence, keys)
            }
            Fate::Nothing => self.inner.effects_done(run, fence, keys),
        }
    }

    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.inner.claim(request)
    }

    fn keep(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        self.inner.keep(claims, now, ttl)
    }

    fn done(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.inner.done(claim)
    }

    fn failed(
        &self,
        claim: &Claim,
        next: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.inner.failed(claim, next, error)
    }

    fn trim_lane(
        &self,
        lane: &str,
        keep: usize,
        now: Timestamp,
        error: &str,
    ) -> Result<usize, StoreError> {
        self.inner.trim_lane(lane, keep, now, error)
    }

    fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
        self.inner.due_timers(now, limit)
    }

    fn next_timer(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_timer()
    }

    fn change(&self) -> Result<ChangeStamp, StoreError> {
        self.inner.change()
    }

    fn wait_for_change(
        &self,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        self.inner.wait_for_change(after, timeout)
    }

    fn acquire_lease(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.inner.acquire_lease(run, holder, now, ttl)
    }

    fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.inner.renew_lease(lease, now, ttl)
    }

    fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError> {
        self.inner.release_lease(lease)
    }

    fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError> {
        self.inner.break_lease(run, fence)
    }

    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError> {
        self.inner.turn(run)
    }

    fn announce(
        &self,
        name: &str,
        body: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        self.inner.announce(name, body, now, ttl)
    }

    fn withdraw(&self, name: &str) -> Result<bool, StoreError> {
        self.inner.withdraw(name)
    }

    fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.inner.workers()
    }

    fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError> {
        self.inner.prune(prune)
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.inner.probe()
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        self.inner.size()
    }
}

/// An engine and the store below it.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<TestStore>,
}

impl World {
    fn new(inner: impl Store + 'static) -> Self {
        let store = TestStore::new(inner);
        Self { engine: Engine::new(Arc::<TestStore>::clone(&store)), store }
    }

    pub(crate) fn memory() -> Self {
        Self::new(MemoryStore::new())
    }

    /// Begins a run under a name.
    pub(crate) fn begin<M: Machine>(&self, id: &str, driver: Driver, start: M::Start) -> Handle<M> {
        self.engine.begin(at(0), &named(id, driver), start).unwrap().0
    }

    /// The kinds of the run's events, in order.
    pub(crate) fn kinds(&self, run: &RunId) -> Vec<String> {
        let events = self.engine.store().events(run, 0, usize::MAX).unwrap();
        events.into_iter().map(|event| event.kind).collect()
    }

    /// The rules of the run's decisions, in order.
    pub(crate) fn rules(&self, run: &RunId) -> Vec<String> {
        let filter = DecisionFilter { run: Some(run.clone()), ..DecisionFilter::default() };
        let decisions = self.engine.store().decisions(&filter).unwrap();
        let body = |decision: &Decision| serde_json::from_str::<Value>(&decision.body).unwrap();
        decisions.iter().rev().map(|it| body(it)["rule"].as_str().unwrap().to_owned()).collect()
    }

    /// The effects of a run that nobody has performed.
    pub(crate) fn pending(&self, run: &RunId) -> Vec<Effect> {
        let ever = Timestamp::from_millis(i64::MAX);
        let filter = EffectFilter { run: Some(run.clone()), ..EffectFilter::due_by(ever) };
        self.engine.store().pending_effects(&filter).unwrap()
    }

    /// What is stored is what today's machine makes of the journal.
    #[track_caller]
    pub(crate) fn assert_replays(&self, run: &RunId) {
        let replay = self.engine.replay(run).unwrap();
        assert_eq!(replay.differences, [], "{:?}", self.kinds(run));
    }
}

/// Does the same with every kind of store.
pub(crate) fn each_store(test: impl Fn(&World)) {
    test(&World::memory());
    let directory = tempfile::tempdir().unwrap();
    test(&World::new(SqliteStore::open(&directory.path().join("state")).unwrap()));
}

/// A moment, in seconds.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

pub(crate) fn id(text: &str) -> RunId {
    text.parse().unwrap()
}

/// A run that is to begin under this name.
pub(crate) fn named(name: &str, driver: Driver) -> NewRun {
    NewRun { id: Some(id(name)), ..NewRun::of("project", driver) }
}

pub(crate) fn a_run() -> run::Start {
    run::Start {
        task: "Add CSV export".to_owned(),
        dialect: "chorus".to_owned(),
        instructions: "Say how it is.".to_owned(),
        launch: String::new(),
        config: run::Config::default(),
    }
}

/// A plan of tasks with these ids and titles.
pub(crate) fn plan(tasks: &[(&str, &str)]) -> Plan {
    let spec = |&(id, title): &(&str, &str)| TaskSpec {
        id: id.to_owned(),
        title: title.to_owned(),
        acceptance: vec!["it works".to_owned()],
        ..TaskSpec::default()
    };
    Plan { title: String::new(), tasks: tasks.iter().map(spec).collect() }
}

pub(crate) fn a_delivery() -> delivery::Start {
    let plan = plan(&[("csv", "Write the CSV"), ("pdf", "Write the PDF")]);
    delivery::Start { plan, config: delivery::Config::default(), token: None }
}

pub(crate) fn phases() -> phases::Start {
    let pipeline = Pipeline::caw();
    let config = phases::Config::default();
    let phase = pipeline.first(&config.skip).to_owned();
    let (session, token) = (Some("S1".to_owned()), None);
    let task = "Add CSV export".to_owned();
    let proof = aldis_machine::proof::Proof::default();
    phases::Start { task, pipeline, config, phase, max_iterations: 10, session, token, proof }
}

pub(crate) fn a_channel() -> turns::Start {
    let agents = ["pm", "dev", "qa"].map(str::to_owned).to_vec();
    let (config, personas) = (turns::Config::default(), BTreeMap::new());
    turns::Start { channel: "general".to_owned(), agents, config, personas }
}

/// The phases machine hears that its session wants to stop.
pub(crate) fn a_stop(session: &str) -> phases::Event {
    let session = Some(session.to_owned());
    phases::Event::Stop(phases::Stop { session, ..phases::Stop::default() })
}

/// The dialects that are built in.
pub(crate) struct Builtin;

impl Dialects for Builtin {
    fn dialect(&self, name: &str) -> Result<Arc<Dialect>, String> {
        Dialect::builtin(name).cloned().ok_or_else(|| format!("there is no dialect `{name}`"))
    }
}

/// The members of an object.
pub(crate) fn members(value: Value) -> Members {
    match value {
        Value::Object(members) => members,
        other => panic!("no object: {other}"),
    }
}
