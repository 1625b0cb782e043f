//! Counts what happens in all runs of the store, whoever steps them: hooks and supervisors report to nobody,
//! but what they did is in the journal.
//!
//! Counting begins when the server starts, and never holds anything up: whoever looks at the figures sees
//! what was committed a moment ago. Every server of a store counts the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, Snapshot, State as RunState};
use aldis_machine::proof::CheckResult;
use aldis_machine::run::Usage;
use aldis_machine::{Decision, Machine as _, delivery, phases, run, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{
    Cursor, Decision as StoredDecision, DecisionFilter, Event, Revision, RunFilter, RunId,
    StoreError,
};
use serde::Deserialize;
use tokio::time;

use super::app::App;
use super::metrics::JournalMetrics;

/// How often the journal is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many decisions, and events of a run, are read at once.
const PAGE: usize = 1_000;
/// How many runs are remembered.
const RUNS_MAX: usize = 10_000;
/// The machines whose runs have questions, costs and checks. Channels have none, and are many.
const COUNTED: [&str; 3] = [delivery::State::NAME, phases::State::NAME, run::State::NAME];

/// Counts until the server stops.
pub(super) async fn count(app: Arc<App>) {
    let mut journal = Journal::default();
    loop {
        let metrics = app.metrics.journal.clone();
        let looked = app.with_engine(move |engine| {
            journal.look(engine, &metrics)?;
            Ok::<_, StoreError>(journal)
        });
        // What could not be read now is read the next time; where that was is lost with an error.
        journal = app.noted("metrics", looked.await).unwrap_or_default();
        tokio::select! {
            () = app.stopped() => return,
            () = time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// How far the journal was read.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Nothing before the first look: counting begins then.
    after: Option<Cursor>,
    runs: BTreeMap<RunId, Seen>,
    looks: u64,
}

/// What is remembered of a run.
#[derive(Debug, Default)]
struct Seen {
    machine: String,
    active: bool,
    last_event: u64,
    /// What the iteration had cost when that was last reported.
    spent: Option<Usage>,
    questions: Vec<Timestamp>,
    /// When it last changed.
    look: u64,
}

impl Journal {
    /// Reads what is new, and counts it.
    pub(super) fn look(
        &mut self,
        engine: &Engine,
        metrics: &JournalMetrics,
    ) -> Result<(), StoreError> {
        self.looks += 1;
        let mut after = match self.after {
            Some(after) => after,
            None => self.begin(engine)?,
        };
        loop {
            let page = engine.store().decisions_after(None, &after, PAGE)?;
            let mut changed: BTreeMap<&RunId, Revision> = BTreeMap::new();
            for decision in page.iter().filter(|decision| !is_of_channel(&decision.body)) {
                changed.entry(&decision.run).or_insert(decision.revision);
                count_evidence(decision, metrics);
            }
            for (run, since) in changed {
                self.run(engine, (run, since), metrics)?;
            }
            after = page.last().map_or(after, |last| last.cursor);
            self.after = Some(after);
            if page.len() < PAGE {
                break;
            }
        }
        let questions = self.runs.values().flat_map(|seen| &seen.questions);
        metrics.questions(questions.clone().count(), questions.min().copied());
        Ok(())
    }

    /// Begins with now, and with the questions that are open.
    fn begin(&mut self, engine: &Engine) -> Result<Cursor, StoreError> {
        let filter = DecisionFilter { limit: 1, ..DecisionFilter::default() };
        let newest = engine.store().decisions(&filter)?;
        for machine in COUNTED {
            let filter = RunFilter {
                machine: Some(machine.to_owned()),
                active: Some(true),
                limit: RUNS_MAX / COUNTED.len(),
                ..RunFilter::default()
            };
            for snapshot in engine.snapshots(&filter)? {
                self.runs.insert(snapshot.id().clone(), Seen::of(&snapshot, self.looks));
            }
        }
        let after = newest.first().map_or(Cursor::START, |decision| decision.cursor);
        self.after = Some(after);
        Ok(after)
    }

    /// Counts what is new in a run; in one that nobody knew yet what happened from this step on.
    fn run(
        &mut self,
        engine: &Engine,
        (id, since): (&RunId, Revision),
        metrics: &JournalMetrics,
    ) -> Result<(), StoreError> {
        let Some(snapshot) = engine.snapshot(id)? else { return Ok(()) };
        let now = Seen::of(&snapshot, self.looks);
        let known = self.runs.remove(id);
        let was_active = known.as_ref().is_none_or(|known| known.active);
        // Of a run that is known everything counts that was not seen: events need no decision.
        let since = if known.is_some() { Revision::default() } else { since };
        let mut seen = match known {
            Some(known) => {
                Seen { questions: now.questions, active: now.active, look: now.look, ..known }
            }
            // Of a long journal nobody saw, the end is enough.
            None => Seen { last_event: now.last_event.saturating_sub(PAGE as u64), ..now },
        };
        loop {
            let events = engine.store().events(id, seen.last_event, PAGE)?;
            for event in &events {
                seen.last_event = event.seq;
                if event.revision.is_some_and(|revision| revision >= since) {
                    seen.event(engine, event, metrics)?;
                }
            }
            if events.len() < PAGE {
                break;
            }
        }
        if was_active && let Some(ending) = ending(&snapshot) {
            metrics.ended(&seen.machine, &ending);
        }
        self.runs.insert(id.clone(), seen);
        self.forget();
        Ok(())
    }

    /// Forgets the run that has been quiet for longest; rather one that has ended.
    fn forget(&mut self) {
        if self.runs.len() > RUNS_MAX {
            let quiet = self.runs.iter().min_by_key(|(_, seen)| (seen.active, seen.look));
            if let Some(quiet) = quiet.map(|(id, _)| id.clone()) {
                self.runs.remove(&quiet);
            }
        }
    }
}

impl Seen {
    fn of(snapshot: &Snapshot, look: u64) -> Self {
        Self {
            machine: snapshot.run.record.machine.clone(),
            active: snapshot.run.record.active,
            last_event: snapshot.run.last_event,
            spent: None,
            questions: snapshot.questions().into_iter().map(|question| question.asked_at).collect(),
            look,
        }
    }

    /// Counts an event.
    fn event(
        &mut self,
        engine: &Engine,
        event: &Event,
        metrics: &JournalMetrics,
    ) -> Result<(), StoreError> {
        match (&*self.machine, &*event.kind) {
            (phases::State::NAME, "stop") => {
                let revision = event.revision.unwrap_or_default();
                let decided = engine.store().decisions_of(&event.run, revision)?;
                let rule = decided.last().and_then(|last| rule(&last.body));
                metrics.stop(&rule.unwrap_or_else(|| "none".to_owned()));
                let took = parsed::<HookTiming>(event).and_then(|stopped| stopped.took_ms);
                took.map(Duration::from_millis).iter().for_each(|took| metrics.hook(*took));
            }
            (_, "check_ended") => {
                let result = parsed::<Checked>(event).map(|checked| checked.result());
                result.flatten().iter().for_each(|result| metrics.check(result.status.as_str()));
            }
            (_, "recovered") => metrics.lease_lost(),
            (run::State::NAME, "launched") => self.spent = Some(Usage::default()),
            (run::State::NAME, "spent") => {
                let Some(usage) = parsed::<Usage>(event) else { return Ok(()) };
                // What was spent before anybody counted is not counted.
                let before = self.spent.replace(usage).unwrap_or(usage);
                metrics.spent(
                    usage.tokens.saturating_sub(before.tokens),
                    usage.micro_dollars.saturating_sub(before.micro_dollars),
                );
            }
            (delivery::State::NAME, "spent") => {
                let usage = parsed::<Usage>(event).unwrap_or_default();
                metrics.spent(usage.tokens, usage.micro_dollars);
            }
            _ => {}
        }
        Ok(())
    }
}

/// What a hook said of itself.
#[derive(Deserialize)]
struct HookTiming {
    #[serde(default)]
    took_ms: Option<u64>,
}

/// The result of a check: a run writes it alone, a delivery beside its task.
#[derive(Deserialize)]
struct Checked {
    result: Option<Box<CheckResult>>,
    #[serde(flatten)]
    alone: serde_json::Map<String, serde_json::Value>,
}

impl Checked {
    fn result(self) -> Option<CheckResult> {
        let alone = || serde_json::from_value(self.alone.into()).ok();
        self.result.map(|result| *result).or_else(alone)
    }
}

fn parsed<'e, T: Deserialize<'e>>(event: &'e Event) -> Option<T> {
    serde_json::from_str(&event.body).ok()
}

/// Whether a channel decided it: told without reading all of it, because there are many.
fn is_of_channel(body: &str) -> bool {
    body.strip_prefix(r#"{"rule":""#).is_some_and(|rest| rest.starts_with(turns::State::NAME))
}

fn rule(body: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct JournalRule {
        rule: String,
    }
    serde_json::from_str(body).ok().map(|ruled: JournalRule| ruled.rule)
}

/// Counts what a decision rests on.
fn count_evidence(stored: &StoredDecision, metrics: &JournalMetrics) {
    let Ok(decision) = serde_json::from_str::<Decision>(&stored.body) else { return };
    for evidence in &decision.evidence {
        let reason = evidence.reason.as_deref().unwrap_or_default();
        match &*evidence.what {
            "near_miss" => metrics.near_miss(reason),
            "signal" => metrics.signal(evidence.via.as_str(), "counted"),
            "refused" => metrics.signal(evidence.via.as_str(), "refused"),
            _ => {}
        }
    }
}

/// How a run ended.
fn ending(snapshot: &Snapshot) -> Option<String> {
    let ending = match &snapshot.state {
        RunState::Run(state) => state.ending().map(run::Ending::as_str),
        RunState::Delivery(state) => state.ending().map(delivery::Ending::as_str),
        RunState::Phases(state) if !state.is_active() => {
            Some(state.exit_reason().map_or("ended", phases::ExitReason::as_str))
        }
        RunState::Phases(_) | RunState::Turns(_) | RunState::Unreadable(_) => None,
    };
    ending.map(str::to_owned)
}
