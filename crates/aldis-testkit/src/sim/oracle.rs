//! What must hold after every step, judged from the outside.
//!
//! The oracle sees each event as it was delivered, the state before and after, and what was
//! answered. It keeps its own books: which steps were acknowledged, which codes were used, which
//! phases were truly completed. It never asks the machine whether the machine is right.

mod progress;

use std::collections::BTreeSet;
use std::rc::Rc;

use aldis_machine::phases::{COMPLETE, Effect, Event, ExitReason, FAILED, Outcome, Said, State};
use aldis_signal::time::Timestamp;

use super::engine::{Delivery, Entry, Happened, Held};

/// Which invariant does not hold, and how that shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The invariant's name.
    pub invariant: &'static str,
    /// What was seen.
    pub detail: String,
}

pub(super) type Check = Result<(), Broken>;

/// Demands that something holds.
pub(super) fn hold(holds: bool, invariant: &'static str, detail: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Broken { invariant, detail: detail() }) }
}

/// One step as it is judged.
#[derive(Debug)]
pub(super) struct Seen<'s> {
    pub(super) now: Timestamp,
    pub(super) before: &'s State,
    pub(super) after: &'s State,
    pub(super) event: &'s Event,
    /// What was answered; nobody knows after a crash.
    pub(super) outcome: Option<&'s Outcome>,
}

/// The oracle's books about one run.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) project: usize,
    pub(super) revision: u64,
    /// The journal as it must be.
    pub(super) ledger: Vec<Entry>,
    sources: BTreeSet<Rc<str>>,
    tokens: BTreeSet<String>,
    /// The phase in which the run began.
    first: String,
    /// Phases that were completed by a signal that was really said.
    completed: BTreeSet<String>,
    /// Sub-agents' signals that were heard.
    heard: BTreeSet<(String, String)>,
}

impl Books {
    /// Opens the books of a run that was just created.
    pub(super) fn open(project: usize, entries: Vec<Entry>, state: &State) -> Self {
        Self {
            project,
            revision: 1,
            ledger: entries,
            tokens: state.token.iter().cloned().collect(),
            first: state.phase.clone(),
            completed: state.completed.clone(),
            ..Self::default()
        }
    }

    /// Judges a step that is in the store, and enters it.
    pub(super) fn enter(&mut self, seen: &Seen<'_>, delivery: &Delivery, held: &Held) -> Check {
        let expected = self.revision + 1;
        hold(held.revision == expected, "revision_grows_by_one", || {
            format!("revision {} after {}", held.revision, self.revision)
        })?;
        self.revision = expected;
        if let Some(source) = &delivery.source {
            hold(self.sources.insert(Rc::clone(source)), "acknowledged_once", || {
                format!("`{source}` was taken a second time")
            })?;
        }
        let happened = Happened::Took(Rc::clone(&delivery.event));
        self.ledger.push(Entry { at: seen.now, happened, source: delivery.source.clone() });
        self.judge(seen)
    }

    /// Judges that nothing happened.
    pub(super) fn untouched(&self, before: &State, after: &State, held: &Held) -> Check {
        hold(held.revision == self.revision, "revision_grows_by_one", || {
            format!("revision {} though nothing was decided", held.revision)
        })?;
        hold(before == after, "undecided_is_unchanged", || {
            "the state changed without a decision".to_owned()
        })
    }

    /// Every acknowledged event is in the journal once, in order, and nothing else is.
    pub(super) fn compare(&self, journal: &[Entry]) -> Check {
        let lengths = (journal.len(), self.ledger.len());
        hold(lengths.0 == lengths.1, "acknowledged_once", || {
            format!("{} events in the journal, {} were acknowledged", lengths.0, lengths.1)
        })?;
        for (number, (found, wanted)) in journal.iter().zip(&self.ledger).enumerate() {
            let same = match (&found.happened, &wanted.happened) {
                (Happened::Took(found), Happened::Took(wanted)) => {
                    Rc::ptr_eq(found, wanted) || found == wanted
                }
                (Happened::Began(_), Happened::Began(_)) => true,
                _ => false,
            };
            let same = same && found.at == wanted.at && found.source == wanted.source;
            hold(same, "acknowledged_once", || {
                format!("event {number}: {found:?} for {wanted:?}")
            })?;
        }
        Ok(())
    }

    /// A source that the store says it knows must have been acknowledged.
    pub(super) fn knows(&self, source: Option<&Rc<str>>) -> Check {
        let known = source.is_some_and(|source| self.sources.contains(source));
        hold(known, "acknowledged_once", || format!("{source:?} is refused as known, and is not"))
    }

    /// Judges a step that the books have already.
    pub(super) fn judge(&mut self, seen: &Seen<'_>) -> Check {
        state(seen.after)?;
        ownership(seen)?;
        counting(seen)?;
        subagents(seen)?;
        if let Some(outcome) = seen.outcome {
            answer(seen.event, outcome, seen.after)?;
        }
        self.progress(seen)?;
        self.token(seen)
    }

    /// The code of a phase is never that of an earlier one.
    fn token(&mut self, seen: &Seen<'_>) -> Check {
        let Seen { before, after, .. } = seen;
        let moved = before.phase != after.phase && after.is_live();
        let Some(token) = after.token.as_ref().filter(|_| moved || before.token != after.token)
        else {
            return Ok(());
        };
        hold(self.tokens.insert(token.clone()), "token_never_reused", || {
            format!("phase {} has a code that was used before", after.phase)
        })
    }
}

/// What every state must be, whatever happened.
pub(super) fn state(state: &State) -> Check {
    hold(state.iteration <= state.max_iterations, "iteration_within_limit", || {
        format!("iteration {} of {}", state.iteration, state.max_iterations)
    })?;
    hold((1..=50).contains(&state.max_iterations), "iteration_within_limit", || {
        format!("the limit is {}", state.max_iterations)
    })?;
    let success = state.exit_reason.is_some_and(ExitReason::is_success);
    hold(
        success == (state.phase == COMPLETE) && success == state.completed_at.is_some(),
        "success_is_complete",
        || format!("phase {} with {:?}", state.phase, state.exit_reason),
    )?;
    let failed = matches!(
        state.exit_reason,
        Some(ExitReason::CriticalError | ExitReason::MaxIterationsReached)
    );
    hold(failed == (state.phase == FAILED), "failure_is_failed", || {
        format!("phase {} with {:?}", state.phase, state.exit_reason)
    })?;
    hold(state.active == state.exit_reason.is_none(), "ended_has_a_reason", || {
        format!("active {} with {:?}", state.active, state.exit_reason)
    })?;
    hold(state.active || state.token.is_none(), "token_dies_with_the_run", String::new)?;
    for (at, signal) in state.detected.iter().enumerate() {
        let again = state.detected[..at].iter().any(|other| other.signal == signal.signal);
        hold(!again, "signals_listed_once", || format!("{} is there twice", signal.signal))?;
    }
    Ok(())
}

/// Nobody else's events touch a run, and only a stop binds it.
fn ownership(seen: &Seen<'_>) -> Check {
    let Seen { before, after, event, .. } = seen;
    let (session, binds, listens) = match event {
        Event::Stop(stop) => (&stop.session, true, false),
        Event::Prompt { session, .. } => (session, false, before.untold),
        Event::Responded { session, .. } => (session, false, true),
        Event::SubagentStop { session, .. }
        | Event::StopFailed { session, .. }
        | Event::Interrupted { session }
        | Event::SessionStart { session }
        | Event::SessionEnd { session } => (session, false, false),
        Event::Resume { .. } => {
            return hold(after.session.is_none(), "resume_is_open_to_all", String::new);
        }
        Event::Cancel { .. } | Event::Edited { .. } => {
            return hold(after.session == before.session, "only_a_stop_binds", String::new);
        }
    };
    let ours = match &before.session {
        Some(bound) => session.as_ref() == Some(bound),
        None => session.is_some() && (binds || listens),
    };
    hold(ours && before.is_live(), "foreign_changes_nothing", || {
        format!("an event of {session:?} touched the run of {:?}", before.session)
    })?;
    hold(
        after.session == before.session || binds && after.session == *session,
        "only_a_stop_binds",
        || format!("bound to {:?} after {:?}", after.session, before.session),
    )?;
    if let (Event::Stop(stop), None) = (event, &before.session) {
        let early = match (stop.turn_began, before.open_since) {
            (Some(began), Some(open)) => began < open,
            _ => false,
        };
        hold(!early, "earlier_turns_do_not_bind", || format!("bound to {session:?}"))?;
    }
    Ok(())
}

/// A refusal without progress counts exactly one, and nothing else counts.
fn counting(seen: &Seen<'_>) -> Check {
    let Seen { before, after, event, outcome, .. } = seen;
    let moved = before.phase != after.phase;
    let resumed = matches!(event, Event::Resume { .. });
    let refused = |outcome: &&Outcome| {
        outcome.effects.iter().any(|effect| matches!(effect, Effect::Block { .. }))
            && outcome.decision.as_ref().is_some_and(|decision| decision.rule == "phases/7")
    };
    let counts = u32::from(outcome.as_ref().is_some_and(refused));
    if moved || resumed {
        let kept = after.phase == FAILED || after.phase == COMPLETE;
        return hold(kept || after.iteration == 0, "a_phase_starts_at_zero", || {
            format!("iteration {}", after.iteration)
        });
    }
    let right = match outcome {
        Some(_) => after.iteration == before.iteration + counts,
        None => (before.iteration..=before.iteration + 1).contains(&after.iteration),
    };
    hold(right, "refusals_are_counted", || {
        format!("iteration {} after {}, refused {counts}", after.iteration, before.iteration)
    })?;
    hold(after.max_iterations == before.max_iterations, "limit_is_fixed", || {
        format!("{} after {}", after.max_iterations, before.max_iterations)
    })
}

/// A sub-agent only listens.
fn subagents(seen: &Seen<'_>) -> Check {
    let Seen { before, after, event, .. } = seen;
    if !matches!(event, Event::SubagentStop { .. }) {
        return Ok(());
    }
    hold(after.active == before.active, "subagents_end_nothing", || {
        format!("the run ended: {:?}", after.exit_reason)
    })?;
    let counts = after.governor.blocks == before.governor.blocks
        && (after.iteration == before.iteration || after.phase != before.phase);
    hold(counts, "subagents_count_nothing", String::new)
}

/// What may be answered to which event.
fn answer(event: &Event, outcome: &Outcome, after: &State) -> Check {
    let blocks = outcome.effects.iter().filter(|e| matches!(e, Effect::Block { .. })).count();
    let allows = outcome.effects.iter().filter(|e| matches!(e, Effect::Allow)).count();
    if let Event::Stop(stop) = event {
        hold(blocks + allows == 1, "a_stop_has_one_answer", || format!("{:?}", outcome.effects))?;
        hold(blocks == 0 || stop.hold.is_none(), "holds_are_respected", || {
            format!("refused although {:?}", stop.hold)
        })?;
        hold(blocks == 0 || after.is_live(), "an_ended_run_lets_go", String::new)?;
    } else {
        hold(blocks == 0, "only_stops_are_refused", || format!("{event:?}"))?;
    }
    let Some(decision) = &outcome.decision else { return Ok(()) };
    let said = [&decision.rule, &decision.summary, &decision.because, &decision.remedy];
    hold(said.iter().all(|text| !text.is_empty()), "decisions_explain_themselves", || {
        format!("{decision:?}")
    })
}

/// The signals that an event brings, the response before the stop included.
fn signals<'s>(before: &'s State, event: &'s Event) -> Vec<&'s aldis_machine::phases::SaidSignal> {
    let (said, response): (&[Said], &[Said]) = match event {
        Event::Stop(stop) => {
            let response = before.response.as_ref().filter(|response| {
                Some(&response.session) == stop.session.as_ref() && stop.closing_words.is_empty()
            });
            (&stop.said, response.map_or(&[], |response| &response.said))
        }
        Event::SubagentStop { said, .. } => (said, &[]),
        _ => (&[], &[]),
    };
    let signal = |said: &'s Said| match said {
        Said::Signal(signal) => Some(signal),
        Said::NearMiss(_) => None,
    };
    said.iter().chain(response).filter_map(signal).collect()
}
