//! What must hold in every world of coordinators, seen from outside: processes as they really are,
//! the store as anybody reads it, and what agents really wrote.

use std::collections::BTreeMap;
use std::time::Duration;

use aldis::coordinate::simulated::PROJECT;
use aldis_engine::{Engine, Snapshot, State};
use aldis_machine::run::{Exit, Status};
use aldis_signal::time::Timestamp;
use aldis_store::{EffectFilter, RunId};

use super::fate::SharedFate;
use super::world::Process;

/// What is wrong: the invariant's name, and how it shows.
pub(super) type Wrong = (&'static str, String);

/// What is known of a world beside its store.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// Whether claims are checked.
    pub(super) verified: bool,
    /// How long a cost may stay unwritten.
    pub(super) slack: Duration,
    costs: BTreeMap<u64, Cost>,
    /// Whether the last check passed that ended since the last agent was started.
    check: Option<bool>,
    failing_since: Option<Timestamp>,
}

/// What a process has reported of its cost: when, and how many tokens in all.
#[derive(Debug, Default)]
struct Cost {
    reports: Vec<(Timestamp, u64)>,
    /// What must have been written when its coordinator went.
    least: Option<u64>,
}

impl Oracle {
    pub(super) fn new(verified: bool, slack: Duration) -> Self {
        Self { verified, slack, ..Self::default() }
    }

    pub(super) fn reported(&mut self, process: u64, now: Timestamp, tokens: u64) {
        self.costs.entry(process).or_default().reports.push((now, tokens));
    }

    pub(super) fn store_fails(&mut self, since: Option<Timestamp>) {
        self.failing_since = since;
    }

    /// Whatever was reported to the coordinator that has gone is written but for the very last.
    pub(super) fn coordinator_gone(&mut self, now: Timestamp) {
        let until = self.failing_since.map_or(now, |since| since.min(now));
        for cost in self.costs.values_mut().filter(|cost| cost.least.is_none()) {
            let written = cost.reports.iter().filter(|(at, _)| at.after(self.slack) <= until);
            cost.least = Some(written.map(|(_, tokens)| *tokens).max().unwrap_or(0));
        }
    }

    pub(super) fn ended(&mut self, is_agent: bool, exit: Exit, heard: bool) {
        if !is_agent && heard {
            self.check = Some(exit.is_clean());
        }
    }

    /// Judges the start of a process.
    pub(super) fn start(
        &mut self,
        engine: &Engine,
        run: &RunId,
        process: &Process,
        living: &BTreeMap<u64, Process>,
    ) -> Result<(), Wrong> {
        let Ok(Some(snapshot)) = engine.snapshot(run) else { return Ok(()) };
        if process.is_agent {
            self.check = None;
        }
        match &snapshot.state {
            State::Run(state) => {
                if !living.is_empty() {
                    return Err(("one_process_at_a_time", format!("{} live", living.len())));
                }
                if let Some(ending) = state.ending() {
                    return Err(("what_ended_starts_nothing", ending.as_str().to_owned()));
                }
                let config = &state.setup().config;
                if state.iteration() > config.max_iterations {
                    return Err(("limits_hold", format!("iteration {}", state.iteration())));
                }
                let spent = state.cost().tokens;
                match config.max_tokens {
                    Some(most) if process.is_agent && spent >= most => {
                        Err(("limits_hold", format!("{spent} of {most} tokens are spent")))
                    }
                    _ => Ok(()),
                }
            }
            State::Delivery(state) => {
                if let Some(ending) = state.ending() {
                    return Err(("what_ended_starts_nothing", ending.as_str().to_owned()));
                }
                let of_task = |it: &&Process| {
                    !it.task.is_empty() && it.task == process.task && it.role != "expert"
                };
                if process.role != "expert" && living.values().any(|it| of_task(&it)) {
                    return Err(("one_agent_per_task", process.task.clone()));
                }
                let own = |it: &&Process| it.directory == process.directory;
                let shared = process.directory.as_os_str() == PROJECT;
                if !shared && living.values().any(|it| own(&it)) {
                    let directory = process.directory.display().to_string();
                    return Err(("one_agent_per_directory", directory));
                }
                let most = state.run().config.slots as usize;
                let agents = living.values().filter(|it| it.is_agent).count();
                if process.is_agent && agents >= most {
                    return Err(("limits_hold", format!("{agents} live, {most} slots")));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Judges the processes of a coordinator that has done all it decided.
    pub(super) fn standing<'p>(
        &self,
        engine: &Engine,
        run: &RunId,
        mut own: impl Iterator<Item = &'p Process>,
    ) -> Result<(), String> {
        let Ok(Some(Snapshot { state: State::Run(state), .. })) = engine.snapshot(run) else {
            return Ok(());
        };
        let paused = matches!(state.status(), Status::Paused { .. });
        match own.any(|process| process.is_agent && !process.suspended) {
            true if paused => Err(format!("{:?}", state.status())),
            _ => Ok(()),
        }
    }

    /// Judges a run whose coordinator says that it is over.
    pub(super) fn over(
        &self,
        engine: &Engine,
        run: &RunId,
        shared: &SharedFate,
        (ending, replayed): (&'static str, bool),
    ) -> Result<(), Wrong> {
        let read = |error: String| ("the_store_is_readable", error);
        let snapshot = engine.snapshot(run).map_err(|error| read(error.to_string()))?;
        let snapshot = snapshot.ok_or_else(|| read("the run is gone".to_owned()))?;
        let (stored, tokens) = match &snapshot.state {
            State::Run(state) => (state.ending().map(|it| it.as_str()), state.cost().tokens),
            State::Delivery(state) => {
                (state.ending().map(|it| it.as_str()), state.run().spending.spent.tokens)
            }
            _ => return Err(read("it is another machine's".to_owned())),
        };
        if stored != Some(ending) {
            return Err(("what_ended_has_ended", format!("{ending}, but {stored:?} is stored")));
        }
        if ending == "done" && self.verified && self.check != Some(true) {
            return Err(("done_only_with_a_passed_check", format!("{:?}", self.check)));
        }
        self.costs(tokens)?;
        self.effects(engine, &snapshot, shared)?;
        journal(engine, run, shared, replayed)
    }

    fn costs(&self, tokens: u64) -> Result<(), Wrong> {
        let last = |cost: &Cost| cost.reports.iter().map(|(_, tokens)| *tokens).max().unwrap_or(0);
        let most: u64 = self.costs.values().map(last).sum();
        let least: u64 =
            self.costs.values().map(|cost| cost.least.unwrap_or_else(|| last(cost))).sum();
        match tokens {
            few if few < least => Err(("no_cost_is_lost", format!("{few}, not {least} tokens"))),
            many if many > most => {
                Err(("no_cost_counts_twice", format!("{many}, not {most} tokens")))
            }
            _ => Ok(()),
        }
    }

    fn effects(
        &self,
        engine: &Engine,
        snapshot: &Snapshot,
        shared: &SharedFate,
    ) -> Result<(), Wrong> {
        let ever = Timestamp::from_millis(i64::MAX);
        let filter =
            EffectFilter { run: Some(snapshot.id().clone()), ..EffectFilter::due_by(ever) };
        let pending = engine.store().pending_effects(&filter);
        let pending = pending.map_err(|error| ("the_store_is_readable", error.to_string()))?;
        // Git may take longer than anybody waits for it.
        let waits = |body: &str| {
            ["keep_work", "look", "merge", "dispatch", "check_expert", "inspect"]
                .iter()
                .any(|slow| body.contains(&format!(r#""effect":"{slow}""#)))
        };
        if let Some(effect) = pending.iter().find(|effect| !waits(&effect.body)) {
            return Err(("every_effect_is_performed", effect.body.clone()));
        }
        // Of deliveries, people are not told everything.
        let is_run = matches!(snapshot.state, State::Run(_));
        match shared.lock().notices.iter().find(|(_, told)| is_run && !**told) {
            Some((key, _)) => Err(("every_effect_is_performed", key.clone())),
            None => Ok(()),
        }
    }
}

/// Judges a journal: whatever was acknowledged to people is in it, once; and it leads to what is
/// stored.
pub(super) fn journal(
    engine: &Engine,
    run: &RunId,
    shared: &SharedFate,
    replayed: bool,
) -> Result<(), Wrong> {
    let read = |error: &dyn std::fmt::Display| ("the_store_is_readable", error.to_string());
    let events = engine.store().events(run, 0, usize::MAX).map_err(|error| read(&error))?;
    for text in &shared.lock().acknowledged {
        let quoted = format!("\"{text}\"");
        let found = events.iter().filter(|event| event.body.contains(&quoted)).count();
        if found != 1 {
            let detail = format!("{text} is in the journal {found} times");
            return Err(("what_was_acknowledged_happened_once", detail));
        }
    }
    if !replayed {
        return Ok(());
    }
    shared.lock().tally.replayed += 1;
    let replay = engine.replay(run).map_err(|error| read(&error))?;
    match replay.differences.first() {
        None => Ok(()),
        Some(first) => Err(("the_journal_replays", format!("{first:?}"))),
    }
}
