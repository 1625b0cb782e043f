//! Keeps many runs of any machine: decide, commit, then act.
//!
//! Steps of one run follow each other; steps of different runs meet in the store. What an event
//! leads to is kept with its decision, so that a second delivery gets the first one's answer and
//! whoever follows the decisions sees everything.

mod delivery;
mod places;
mod soon;
mod wishes;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use aldis_signal::redact::redact_value;
use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Committed, Decision, DecisionFilter, Driver, NewDecision, NewEffect, NewEvent,
    Revision, Run, RunId, RunRecord, Source, Step, Store, StoreError, Timer, TimerChange,
};
use serde_json::{Value, json};

use self::places::Places;
use crate::engine::book;
use crate::engine::machines::{self, Machine, Members, Refused, Stepped};
use crate::settings::secret;

/// Runs that belong to the server alone: no project, and nobody else drives them.
const SERVED: (&str, Driver) = ("", Driver::Server);
/// The kind of effects that go to a sink.
pub(crate) const SINK: &str = "sink";
/// The only alarm of a run.
const ALARM: &str = "wake";
/// How often a step is tried again because another process was first.
const TRIES_MAX: usize = 32;
/// How far back the answer to a repeated request is looked for, where its revision is unknown.
const LOOK_BACK: usize = 1_000;
/// How many alarms are taken at once.
const ALARMS_MAX: usize = 256;
/// The longest source of an event: an idempotency key.
pub(crate) const SOURCE_MAX: usize = 200;

/// Says where an effect goes: the names of sinks, and what each gets of it.
pub(crate) type Route = Box<dyn Fn(&RunId, &Value) -> Vec<(String, Value)> + Send + Sync>;
/// Tells whoever waits that something was committed.
pub(crate) type Nudge = Arc<dyn Fn(News) + Send + Sync>;

/// What whoever waits must know of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Whether something waits to be carried out.
    pub(crate) effects: bool,
    /// When the run wants to be woken, where that has changed.
    pub(crate) wake: Option<Timestamp>,
}

/// Keeps runs.
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    route: Route,
    nudge: Nudge,
    places: Places,
}

/// What a request came to.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The run after it.
    pub(crate) run: Run,
    /// What must now be done.
    pub(crate) effects: Vec<Value>,
    /// What became of each message.
    pub(crate) replies: Vec<Value>,
    /// What was asked for and not done.
    pub(crate) warnings: Vec<String>,
    /// Why; `null` when nothing changed.
    pub(crate) decision: Value,
    /// Whether this is the answer to an earlier delivery of the same request.
    pub(crate) repeated: bool,
}

/// What a try to step a run came to.
enum Attempt {
    /// The step is stored.
    Kept(Answer),
    /// There was nothing to store.
    Idle(Answer),
    /// Another process was first.
    Late,
    /// The event of this source was taken before.
    Known(String),
}

/// Why a request led to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    /// The request cannot be meant.
    #[error("{0}")]
    Bad(String),
    /// It cannot be done as things are.
    #[error("{0}")]
    Conflict(String),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// Something is wrong with us.
    #[error("{0}")]
    Failed(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Refused> for KeeperError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Bad(what) => Self::Bad(what),
            Refused::Unreadable(_) => Self::Failed(refused.to_string()),
        }
    }
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn Store>, route: Route, nudge: Nudge) -> Self {
        Self { store, route, nudge, places: Places::default() }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Begins a run, under a name of its own if none is given.
    pub(crate) fn begin(
        &self,
        now: Timestamp,
        machine: &str,
        id: Option<RunId>,
        mut start: Members,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        let name = machine;
        let machine = machines::named(name);
        if machine.is_none() && name != book::NAME {
            return Err(KeeperError::Bad(format!("there is no machine `{name}`")));
        }
        let random = |error: getrandom::Error| KeeperError::Failed(error.to_string());
        let id = id.map_or_else(|| secret::run_id().map_err(random), Ok)?;
        let place = self.places.of(&id);
        let mut mine = place.blocking_lock();
        mine.take();
        if self.store.run(&id)?.is_some() {
            let repeated = source.map(|source| self.answered(&id, source)).transpose()?.flatten();
            return repeated.ok_or_else(|| KeeperError::Conflict(format!("`{id}` exists already")));
        }
        start.values_mut().for_each(redact_value);
        let Some(machine) = machine else {
            return self.begin_delivery(now, &id, start, source);
        };
        let mut stepped = machine.begin(now, start)?;
        let (step, why) = self.step(now, &id, Revision(0), SERVED, machine, &mut stepped, source);
        match self.store.commit(&step) {
            Ok(committed) => {
                let run = after(step, committed, now, 0);
                mine.keep(&run);
                Ok(answer(&self.nudge, run, stepped, why))
            }
            Err(error) => Err(refused(error, &id)),
        }
    }

    /// Lets a run take an event.
    pub(crate) fn advance(
        &self,
        now: Timestamp,
        id: &RunId,
        event: &Members,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        self.advance_by(now, id, |_| Ok(event.clone()), source)
    }

    /// Lets a run of this machine take an event; one of another machine is not there.
    pub(crate) fn advance_only(
        &self,
        machine: &str,
        now: Timestamp,
        id: &RunId,
        event: &Members,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        let event = |run: &Run| {
            let mine = run.record.machine == machine;
            mine.then(|| event.clone()).ok_or_else(|| KeeperError::NoSuchRun(id.clone()))
        };
        self.advance_by(now, id, event, source)
    }

    /// Lets a run take the event that there is for it.
    fn advance_by(
        &self,
        now: Timestamp,
        id: &RunId,
        event: impl Fn(&Run) -> Result<Members, KeeperError>,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        let place = self.places.of(id);
        let mut mine = place.blocking_lock();
        let mut remembered = mine.take();
        for _ in 0..TRIES_MAX {
            let old = remembered.is_some();
            let run = remembered.take().map_or_else(|| self.load(id), Ok)?;
            match self.attempt(now, run, &event, source) {
                Ok(Attempt::Kept(answer)) => {
                    mine.keep(&answer.run);
                    return Ok(answer);
                }
                // Whether it is written is unknown.
                Err(KeeperError::Store(error)) => return Err(error.into()),
                // Only of what is stored now can be said that it changes nothing.
                Ok(Attempt::Idle(_)) | Err(_) if old => {}
                Ok(Attempt::Idle(answer)) => {
                    let known = source.map(|source| self.answered(id, source)).transpose()?;
                    return Ok(known.flatten().unwrap_or(answer));
                }
                Ok(Attempt::Late) => {}
                Ok(Attempt::Known(source)) => {
                    let known = self.answered(id, &source)?;
                    return known.ok_or_else(|| {
                        KeeperError::Conflict("this request was taken before".to_owned())
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Err(KeeperError::Conflict("too many processes change the run at once".to_owned()))
    }

    /// Steps a run as it is known.
    fn attempt(
        &self,
        now: Timestamp,
        run: Run,
        event: impl Fn(&Run) -> Result<Members, KeeperError>,
        source: Option<&str>,
    ) -> Result<Attempt, KeeperError> {
        let mut event = event(&run)?;
        event.values_mut().for_each(redact_value);
        if delivery::is_one(&run) {
            return self.attempt_delivery(now, run, event, source);
        }
        let machine = machine_of(&run)?;
        let mut stepped = machine.step(now, &run.record.state, event)?;
        if stepped.decision.is_none() && !machine.listens() {
            return Ok(Attempt::Idle(answer(&self.nudge, run, stepped, Value::Null)));
        }
        let (id, driven) = (&run.id, (&*run.record.project, run.record.driver));
        let (step, why) = self.step(now, id, run.revision, driven, machine, &mut stepped, source);
        match self.store.commit(&step) {
            Ok(committed) => {
                let run = after(step, committed, run.created, run.fence);
                Ok(Attempt::Kept(answer(&self.nudge, run, stepped, why)))
            }
            Err(error) => not_kept(error, id),
        }
    }

    /// Returns alarms that are due, the earliest first. Those that are not taken are due again.
    pub(crate) fn due(&self, now: Timestamp) -> Result<Vec<Timer>, KeeperError> {
        Ok(self.store.due_timers(now, ALARMS_MAX)?)
    }

    /// Takes an alarm that is due; `missed` when it was due while nobody watched.
    pub(crate) fn ring(
        &self,
        now: Timestamp,
        timer: &Timer,
        missed: bool,
    ) -> Result<(), KeeperError> {
        let alarm = |run: &Run| {
            if delivery::is_one(run) {
                return Ok(delivery::alarm());
            }
            match machine_of(run)?.alarm(missed) {
                Some(Value::Object(event)) => Ok(event),
                _ => Err(KeeperError::Bad("nothing wakes this machine".to_owned())),
            }
        };
        match self.advance_by(now, &timer.run, alarm, None) {
            Ok(answer) if !answer.decision.is_null() => Ok(()),
            // A delivery sets its alarm anew with every one that it takes.
            Ok(answer) if delivery::is_one(&answer.run) => Ok(()),
            Err(KeeperError::Store(error)) => Err(error.into()),
            // One that wakes nobody would be due for ever, before all others.
            Ok(_) | Err(_) => self.silence(now, &timer.run, &timer.key),
        }
    }

    /// Clears an alarm that nobody wants any more.
    fn silence(&self, now: Timestamp, id: &RunId, key: &str) -> Result<(), KeeperError> {
        let place = self.places.of(id);
        let mut mine = place.blocking_lock();
        mine.take();
        let run = self.load(id)?;
        let mut step = Step::new(id.clone(), run.revision, run.record, now);
        step.timers.push(TimerChange::Clear { key: key.to_owned() });
        match self.store.commit(&step) {
            // Whoever was first has set the alarm anew, or will.
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(refused(error, id)),
        }
    }

    /// Returns a run that must exist.
    pub(crate) fn load(&self, id: &RunId) -> Result<Run, KeeperError> {
        self.store.run(id)?.ok_or_else(|| KeeperError::NoSuchRun(id.clone()))
    }

    /// Makes a step of what an event led to, and returns it with the decision. What only the step
    /// needs is moved into it.
    #[expect(clippy::too_many_arguments, reason = "a step is made of all of these")]
    fn step(
        &self,
        now: Timestamp,
        id: &RunId,
        expected: Revision,
        (project, driver): (&str, Driver),
        machine: &dyn Machine,
        stepped: &mut Stepped,
        source: Option<&str>,
    ) -> (Step, Value) {
        let record = RunRecord {
            project: project.to_owned(),
            session: stepped.session.take(),
            machine: machine.name().to_owned(),
            driver,
            title: std::mem::take(&mut stepped.title),
            active: stepped.active,
            state: std::mem::take(&mut stepped.state),
        };
        let mut step = Step::new(id.clone(), expected, record, now);
        let kind = stepped.event.get("event").and_then(Value::as_str).unwrap_or("event");
        step.events.push(NewEvent {
            kind: kind.to_owned(),
            body: stepped.event.to_string(),
            source: source.map(Source::new),
            at: now,
        });
        let mut decision = Value::Null;
        if let Some(decided) = stepped.decision.take() {
            decision = serde_json::to_value(decided).unwrap_or_default();
            let body = written(&mut decision, stepped, source);
            step.decisions.push(NewDecision { body, at: now });
        }
        let revision = expected.0 + 1;
        step.effects = self.parcels(id, revision, &stepped.effects, now);
        let key = ALARM.to_owned();
        step.timers.extend(stepped.wake.map(|wake| match wake {
            Some(due) => TimerChange::Set { key, due },
            None => TimerChange::Clear { key },
        }));
        (step, decision)
    }

    /// What sinks get of effects.
    fn parcels(
        &self,
        id: &RunId,
        revision: u64,
        effects: &[Value],
        due: Timestamp,
    ) -> Vec<NewEffect> {
        let routed = effects.iter().flat_map(|effect| (self.route)(id, effect));
        let parcel = |(number, (sink, effect)): (usize, (String, Value))| NewEffect {
            key: format!("{id}/{revision}/{number}/{sink}"),
            kind: SINK.to_owned(),
            body: json!({ "sink": sink, "effect": effect }).to_string(),
            due,
            // What one run sends to one sink keeps its order.
            lane: format!("{id}/{sink}"),
            requires: Vec::new(),
        };
        routed.enumerate().map(parcel).collect()
    }

    /// Finds what an earlier delivery of the same request led to.
    fn answered(&self, id: &RunId, source: &str) -> Result<Option<Answer>, KeeperError> {
        let Some(event) = self.store.event_by_source(id, source)? else { return Ok(None) };
        let run = self.load(id)?;
        let decisions = match event.revision {
            Some(revision) => self.store.decisions_of(id, revision)?,
            // Written by 0.1.0.
            None => {
                let run = Some(id.clone());
                self.store.decisions(&DecisionFilter { run, limit: LOOK_BACK, before: None })?
            }
        };
        let found = decisions.iter().filter_map(body).find(|body| body["source"] == source);
        let decision = found.unwrap_or_default();
        let list = |name: &str| decision.get(name).and_then(Value::as_array).cloned();
        let warnings = list("warnings").unwrap_or_default();
        Ok(Some(Answer {
            effects: list("effects").unwrap_or_default(),
            replies: list("replies").unwrap_or_default(),
            warnings: warnings.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            run,
            decision,
            repeated: true,
        }))
    }
}

/// Tells whoever waits, and answers.
fn answer(nudge: &Nudge, run: Run, stepped: Stepped, decision: Value) -> Answer {
    let Stepped { effects, replies, warnings, wake, .. } = stepped;
    if !decision.is_null() {
        nudge(News { effects: !effects.is_empty(), wake: wake.flatten() });
    }
    Answer { run, effects, replies, warnings, decision, repeated: false }
}

/// The run that a step has led to.
fn after(step: Step, committed: Committed, created: Timestamp, fence: u64) -> Run {
    let Committed { revision, last_event } = committed;
    let Step { run: id, record, at: updated, .. } = step;
    Run { id, revision, last_event, created, updated, fence, lease: None, record }
}

/// A decision as it is stored: with what it led to, which is lent for as long as that takes.
fn written(decision: &mut Value, stepped: &mut Stepped, source: Option<&str>) -> String {
    let Value::Object(members) = decision else { return decision.to_string() };
    let Stepped { effects, replies, warnings, .. } = stepped;
    members.insert("effects".to_owned(), Value::Array(std::mem::take(effects)));
    members.insert("replies".to_owned(), Value::Array(std::mem::take(replies)));
    members.insert("warnings".to_owned(), json!(warnings));
    members.insert("source".to_owned(), json!(source));
    let body = serde_json::to_string(members).unwrap_or_default();
    for (name, list) in [("effects", effects), ("replies", replies)] {
        if let Some(Value::Array(lent)) = members.remove(name) {
            *list = lent;
        }
    }
    members.remove("warnings");
    members.remove("source");
    body
}

fn body(decision: &Decision) -> Option<Value> {
    serde_json::from_str(&decision.body).ok()
}

fn machine_of(run: &Run) -> Result<&'static dyn Machine, KeeperError> {
    let name = &run.record.machine;
    machines::named(name)
        .ok_or_else(|| KeeperError::Bad(format!("this server does not know the machine `{name}`")))
}

/// Says what to make of a step that was not stored.
fn not_kept(error: CommitError, id: &RunId) -> Result<Attempt, KeeperError> {
    match error {
        CommitError::Conflict { .. } => Ok(Attempt::Late),
        CommitError::Duplicate { source_key, .. } => Ok(Attempt::Known(source_key)),
        error => Err(refused(error, id)),
    }
}

fn refused(error: CommitError, id: &RunId) -> KeeperError {
    match error {
        CommitError::NoSuchRun { .. } => KeeperError::NoSuchRun(id.clone()),
        CommitError::Store(error) => KeeperError::Store(error),
        other => KeeperError::Conflict(other.to_string()),
    }
}
