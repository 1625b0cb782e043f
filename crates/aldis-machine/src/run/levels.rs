//! What missing progress means for the run: a warning, a pause, the end.

use super::ending::{ended, finish};
use super::event::{Effect, Notice};
use super::events::stop;
use super::prompt::replace_feedback;
use super::rule::Rule;
use super::state::{Ending, Outcome, State, Status};
use crate::stagnation::{Change, Level, Observation};
use crate::words::duration;
use aldis_signal::time::Timestamp;

/// Takes an observation, and does what a change of the level asks for.
pub(super) fn observe(state: &mut State, now: Timestamp, observation: &Observation) -> Outcome {
    let change = state.monitor.observe(now, observation);
    let mut outcome = Outcome::nothing();
    if let Some(change) = change {
        on_level_change(state, now, &change, &mut outcome);
    }
    outcome
}

/// What a change of the level means while the agent works.
pub(super) fn on_level_change(
    state: &mut State,
    now: Timestamp,
    change: &Change,
    outcome: &mut Outcome,
) {
    let text = change.because.clone();
    let working = state.status == Status::Working;
    // An agent that is suspended for this very reason is stopped by the next level.
    let suspended = state.status == Status::Paused { stagnated: true };
    let (rule, summary) = match change.to {
        Level::None => (Rule::StagnationCleared, "Progress again"),
        Level::Warn => (Rule::StagnationWarn, "Warning: no progress"),
        Level::Pause => (Rule::StagnationPause, "Suspending the agent: no progress"),
        Level::Abort => (Rule::StagnationAbort, "Stopping the agent: no progress"),
    };
    let decision = state.decision(rule, summary).because(&*text);
    match change.to {
        Level::None => outcome.decisions.push(decision.next("nothing to do")),
        Level::Warn => {
            nudge(state, &text);
            outcome.effects.push(Effect::Notice { notice: Notice::StagnationWarn, text });
            outcome.decisions.push(decision.next("the agent gets a hint in its next prompt"));
        }
        Level::Pause if working => {
            outcome.effects.push(Effect::Suspend);
            outcome.effects.push(Effect::Notice { notice: Notice::StagnationPause, text });
            state.status = Status::Paused { stagnated: true };
            state.paused_at = Some(now);
            let limit = state.config.stagnation.pause_limit;
            let limit =
                limit.map(|limit| format!("; without either it ends in {}", duration(limit)));
            let limit = limit.unwrap_or_default();
            outcome.decisions.push(
                decision
                    .next(format!("`aldis resume` lets it work on, `aldis abort` ends it{limit}")),
            );
        }
        Level::Abort if working || suspended => {
            let decision = decision.next("the run ends when the agent has stopped");
            let stopped = stop(state, Some(Ending::Stagnated), decision);
            outcome.effects.extend(stopped.effects);
            outcome.effects.push(Effect::Notice { notice: Notice::StagnationAbort, text });
            outcome.decisions.extend(stopped.decisions);
        }
        Level::Pause | Level::Abort => {}
    }
}

/// Stops an agent that was suspended for missing progress and that nobody resumed.
pub(super) fn on_expired_pause(state: &mut State, limit: u64) -> Outcome {
    let because = format!(
        "it was suspended for missing progress, and nobody resumed it within {}",
        duration(limit)
    );
    let decision = state
        .decision(Rule::PauseExpired, "Stopping the agent: it stayed suspended")
        .because(&*because)
        .next("the run ends when the agent has stopped");
    let mut outcome = stop(state, Some(Ending::Stagnated), decision);
    let text = because;
    outcome.effects.push(Effect::Notice { notice: Notice::StagnationAbort, text });
    outcome
}

/// What the level means between two iterations; `None` to go on. `notices` takes what people are
/// told.
pub(super) fn between_iterations(
    state: &mut State,
    now: Timestamp,
    change: Option<&Change>,
    notices: &mut Vec<Effect>,
) -> Option<Outcome> {
    match state.monitor.level() {
        Level::None => None,
        // A pause without an agent would have nobody to suspend: the next prompt has the hint.
        level @ (Level::Warn | Level::Pause) => {
            if let Some(change) = change {
                nudge(state, &change.because);
                let notice = match level {
                    Level::Pause => Notice::StagnationPause,
                    _ => Notice::StagnationWarn,
                };
                notices.push(Effect::Notice { notice, text: change.because.clone() });
            }
            None
        }
        // Whenever it was reached: while an agent is asked to stop, nothing is done about it.
        Level::Abort => {
            let because = change.map(|change| change.because.clone());
            state.stop_because = because.or_else(|| state.monitor.cause(now));
            let decision = ended(state, Ending::Stagnated);
            let text = decision.because.clone();
            let notice = Effect::Notice { notice: Notice::StagnationAbort, text };
            Some(finish(state, Ending::Stagnated, decision, vec![notice]))
        }
    }
}

/// Hints at missing progress in the next prompt. One hint is enough, and the latest is right.
fn nudge(state: &mut State, because: &str) {
    const BEGINNING: &str = "There is no evidence of progress";
    let hint = format!("{BEGINNING}: {because}. Try another approach, or report what you need.");
    replace_feedback(state, BEGINNING, hint);
}
