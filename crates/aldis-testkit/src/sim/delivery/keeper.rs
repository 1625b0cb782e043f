//! What outlives the coordinator: the journal, the parts of the state, and what is still to be done.

use std::path::Path;
use std::rc::Rc;

use aldis_machine::delivery::{Effect, Event, Outcome, Run, Start, State, Task};
use aldis_signal::time::Timestamp;
use aldis_store::{
    Driver, EffectFilter, Fault, Loaded, MemoryStore, NewDecision, NewEffect, NewEvent, PartChange,
    Revision, RunId, RunRecord, SqliteStore, Step, Store, When,
};

use super::super::faulty::Faulty;

/// One step, to be written whole or not at all.
pub(super) struct Written<'s> {
    pub(super) at: Timestamp,
    /// What happened; nothing but the beginning has no event.
    pub(super) event: Option<&'s Rc<Event>>,
    pub(super) state: &'s State,
    pub(super) outcome: &'s Outcome,
}

/// The write failed, and nobody knows whether it is there.
#[derive(Debug)]
pub(super) struct Failed;

/// A store of one delivery.
pub(super) trait Keeper {
    /// Writes a step.
    fn commit(&mut self, step: &Written<'_>) -> Result<(), Failed>;

    /// Returns the state as the last step left it.
    fn load(&self) -> Result<State, String>;

    /// Returns how many steps were taken.
    fn revision(&self) -> u64;

    /// Returns the first effect that is still to be performed, with its key.
    fn pending(&self) -> Option<(String, Effect)>;

    /// Notes that an effect was performed.
    fn done(&mut self, key: &str) -> Result<(), String>;

    /// Returns what happened, in order.
    fn journal(&self) -> Vec<(Timestamp, Rc<Event>)>;

    /// Lets the next commit fail.
    fn fail_next(&mut self, fault: Option<Fault>);
}

/// Effects that must be performed even if the coordinator dies first.
fn lasting(outcome: &Outcome) -> impl Iterator<Item = &Effect> {
    let fleeting =
        |effect: &&Effect| !matches!(effect, Effect::Notice { .. } | Effect::Wake { .. });
    outcome.effects.iter().filter(fleeting)
}

/// Plain values: what a store does, without any text.
#[derive(Default)]
pub(super) struct Plain {
    parts: Option<(Run, Vec<Task>)>,
    revision: u64,
    outbox: std::collections::BTreeMap<u64, Effect>,
    enqueued: u64,
    journal: Vec<(Timestamp, Rc<Event>)>,
    fault: Option<Fault>,
}

impl Keeper for Plain {
    fn commit(&mut self, step: &Written<'_>) -> Result<(), Failed> {
        let fault = self.fault.take();
        if fault.is_some_and(|fault| fault.when == When::Before) {
            return Err(Failed);
        }
        let Written { at, event, state, outcome } = step;
        match &mut self.parts {
            None => self.parts = Some((state.run().clone(), state.tasks().to_vec())),
            Some((run, tasks)) => {
                run.clone_from(state.run());
                for no in &outcome.changed {
                    tasks[*no].clone_from(&state.tasks()[*no]);
                }
            }
        }
        self.journal.extend(event.map(|event| (*at, Rc::clone(event))));
        for effect in lasting(outcome) {
            self.enqueued += 1;
            self.outbox.insert(self.enqueued, effect.clone());
        }
        self.revision += 1;
        if fault.is_some() { Err(Failed) } else { Ok(()) }
    }

    fn load(&self) -> Result<State, String> {
        let (run, tasks) = self.parts.clone().ok_or("nothing was written")?;
        State::from_parts(run, tasks).map_err(|error| error.to_string())
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn pending(&self) -> Option<(String, Effect)> {
        self.outbox.first_key_value().map(|(key, effect)| (key.to_string(), effect.clone()))
    }

    fn done(&mut self, key: &str) -> Result<(), String> {
        let key = key.parse().map_err(|_| format!("`{key}` was never enqueued"))?;
        self.outbox.remove(&key);
        Ok(())
    }

    fn journal(&self) -> Vec<(Timestamp, Rc<Event>)> {
        self.journal.clone()
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }
}

/// A real store, through JSON.
pub(super) struct Stored<S> {
    store: Faulty<S>,
    run: RunId,
    revision: u64,
}

impl Stored<MemoryStore> {
    pub(super) fn memory(name: &str) -> Result<Self, String> {
        Self::over(MemoryStore::new(), name)
    }
}

impl Stored<SqliteStore> {
    pub(super) fn sqlite(directory: &Path, name: &str) -> Result<Self, String> {
        let store = SqliteStore::open(directory).map_err(|error| error.to_string())?;
        Self::over(store, name)
    }
}

impl<S: Store> Stored<S> {
    fn over(store: S, name: &str) -> Result<Self, String> {
        let run = RunId::new(name).map_err(|error| error.to_string())?;
        Ok(Self { store: Faulty::new(store), run, revision: 0 })
    }

    fn step(&self, step: &Written<'_>) -> Step {
        let Written { at, event, state, outcome } = step;
        let record = RunRecord {
            project: "simulated".to_owned(),
            session: None,
            machine: "delivery".to_owned(),
            driver: Driver::Process,
            title: state.run().title.clone(),
            active: state.ending().is_none(),
            state: json(state.run()),
        };
        let mut step = Step::new(self.run.clone(), Revision(self.revision), record, *at);
        let tasks = state.tasks().iter().enumerate();
        let changed = tasks.filter(|(no, _)| self.revision == 0 || outcome.changed.contains(no));
        step.parts.extend(
            changed.map(|(no, task)| PartChange::Set {
                key: format!("task/{no:06}"),
                body: json(task),
            }),
        );
        step.events.extend(event.map(|event| NewEvent {
            kind: "event".to_owned(),
            body: json(&**event),
            source: None,
            at: *at,
        }));
        step.decisions.extend(
            outcome.decisions.iter().map(|noted| NewDecision { body: json(noted), at: *at }),
        );
        let run = &self.run;
        step.effects.extend(lasting(outcome).enumerate().map(|(no, effect)| NewEffect {
            key: format!("{run}/{}/{no:03}", self.revision),
            kind: "effect".to_owned(),
            body: json(effect),
            due: Timestamp::from_millis(0),
            lane: String::new(),
            requires: Vec::new(),
        }));
        step
    }
}

impl<S: Store> Keeper for Stored<S> {
    fn commit(&mut self, step: &Written<'_>) -> Result<(), Failed> {
        let result = self.store.commit(&self.step(step));
        let run = self.store.run(&self.run).ok().flatten();
        self.revision = run.map_or(0, |run| run.revision.0);
        result.map(|_| ()).map_err(|_| Failed)
    }

    fn load(&self) -> Result<State, String> {
        let loaded = self.store.load(&self.run).map_err(|error| error.to_string())?;
        let Loaded { run, parts } = loaded.ok_or("nothing was written")?;
        let run: Run = serde_json::from_str(&run.record.state).map_err(|it| it.to_string())?;
        let tasks: Result<Vec<Task>, _> =
            parts.iter().map(|part| serde_json::from_str(&part.body)).collect();
        let tasks = tasks.map_err(|error| error.to_string())?;
        State::from_parts(run, tasks).map_err(|error| error.to_string())
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn pending(&self) -> Option<(String, Effect)> {
        let due_by = Timestamp::from_millis(i64::MAX);
        let run = Some(self.run.clone());
        let filter = EffectFilter { run, limit: 1, ..EffectFilter::due_by(due_by) };
        let effect = self.store.pending_effects(&filter).ok()?.into_iter().next()?;
        let body = serde_json::from_str(&effect.body).ok()?;
        Some((effect.key, body))
    }

    fn done(&mut self, key: &str) -> Result<(), String> {
        let closed = self.store.effects_done(&self.run, None, &[key.to_owned()]);
        closed.map(drop).map_err(|error| error.to_string())
    }

    fn journal(&self) -> Vec<(Timestamp, Rc<Event>)> {
        let events = self.store.events(&self.run, 0, usize::MAX).unwrap_or_default();
        let read = |body: &str| serde_json::from_str(body).map(Rc::new);
        events.iter().filter_map(|event| Some((event.at, read(&event.body).ok()?))).collect()
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        self.store.plan(fault);
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The state that a journal leads to.
pub(super) fn replayed(
    began: Timestamp,
    start: &Start,
    journal: &[(Timestamp, Rc<Event>)],
) -> State {
    let mut state = State::start(began, start.clone());
    for (at, event) in journal {
        state.on_event(*at, event);
    }
    state
}
