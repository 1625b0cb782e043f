//! The machine under test, and the bugs that can be planted in it.
//!
//! A simulator that finds nothing proves little unless it is known to find something. Each [`Bug`]
//! changes what the machine or the commit protocol does, never what the simulator checks.

use aldis_machine::phases::{Effect, Event, ExitReason, Outcome, Said, State};
use aldis_signal::time::Timestamp;

/// A mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The answer is given although the write failed.
    AckBeforeCommit,
    /// The host's limit of refusals is taken for one more than it is.
    CapOffByOne,
    /// A second delivery is taken for a new event.
    DedupeDropped,
    /// Events of other sessions are taken for our own.
    ForeignHeard,
    /// A stop is refused while the user is asked something.
    HoldIgnored,
    /// A signal that was said before its phase began counts.
    LateSignalTaken,
    /// Refusals are not always counted.
    LostIncrement,
    /// Of two processes at once the last one wins.
    LostUpdate,
    /// A decision is recorded without its reason.
    ReasonForgotten,
    /// A signal that is heard again is listed again.
    SignalListedTwice,
    /// A run that was left alone too long is reported as done.
    StaleIsSuccess,
    /// A sub-agent may declare the whole run complete.
    SubagentEndsRun,
    /// The next phase keeps the code of the last one.
    TokenKept,
    /// An error of the agent ends nothing, and no limit counts.
    Unlimited,
}

impl Bug {
    /// Every bug there is.
    pub const ALL: [Self; 14] = [
        Self::AckBeforeCommit,
        Self::CapOffByOne,
        Self::DedupeDropped,
        Self::ForeignHeard,
        Self::HoldIgnored,
        Self::LateSignalTaken,
        Self::LostIncrement,
        Self::LostUpdate,
        Self::ReasonForgotten,
        Self::SignalListedTwice,
        Self::StaleIsSuccess,
        Self::SubagentEndsRun,
        Self::TokenKept,
        Self::Unlimited,
    ];
}

/// The real machine, or one with a bug.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machine {
    pub(super) bug: Option<Bug>,
}

impl Machine {
    /// Takes one event.
    pub(super) fn take(self, state: &mut State, now: Timestamp, event: &Event) -> Outcome {
        let Some(bug) = self.bug else { return state.on_event(now, event) };
        let mut event = event.clone();
        misread(bug, state, &mut event);
        let mut outcome = state.on_event(now, &event);
        misjudge(bug, state, &mut outcome);
        outcome
    }
}

/// Bugs in understanding what happened.
fn misread(bug: Bug, state: &State, event: &mut Event) {
    match (bug, event) {
        (Bug::CapOffByOne, Event::Stop(stop)) => {
            stop.cap.limit = stop.cap.limit.map(|limit| limit + 1);
        }
        (Bug::ForeignHeard, Event::Stop(stop)) if state.session.is_some() => {
            stop.session.clone_from(&state.session);
        }
        (Bug::HoldIgnored, Event::Stop(stop)) => stop.hold = None,
        (Bug::LateSignalTaken, Event::Stop(stop)) => {
            for said in &mut stop.said {
                if let Said::Signal(signal) = said {
                    signal.at = None;
                }
            }
        }
        (Bug::SubagentEndsRun, Event::SubagentStop { said, .. }) => {
            for said in said {
                if let Said::Signal(signal) = said {
                    signal.subagent = false;
                }
            }
        }
        (Bug::TokenKept, Event::Stop(stop)) => stop.fresh_token = None,
        _ => {}
    }
}

/// Bugs in what comes of it.
fn misjudge(bug: Bug, state: &mut State, outcome: &mut Outcome) {
    let refused = outcome.effects.iter().any(|effect| matches!(effect, Effect::Block { .. }));
    match bug {
        Bug::LostIncrement if refused && state.iteration > 2 => state.iteration -= 1,
        Bug::ReasonForgotten => {
            let decision = outcome.decision.as_mut();
            if let Some(decision) = decision.filter(|decision| decision.rule == "phases/cap") {
                decision.because.clear();
            }
        }
        Bug::SignalListedTwice => {
            if let Some(last) = state.detected.last().cloned().filter(|_| refused) {
                state.detected.push(last);
            }
        }
        Bug::StaleIsSuccess if state.exit_reason == Some(ExitReason::StaleState) => {
            state.exit_reason = Some(ExitReason::AllPhasesComplete);
        }
        Bug::Unlimited if refused && state.iteration + 1 >= state.max_iterations => {
            state.max_iterations += 1;
        }
        _ => {}
    }
}
