//! What the host reports of the run's session beside its stops.

use super::event::{Event, PhaseFinding};
use super::rule::Rule;
use super::state::{Effect, Outcome, PendingResponse, SessionTurn, State};
use super::wake;
use crate::words::counted;
use aldis_signal::time::Timestamp;

/// How many findings of a response wait for its stop; the last ones.
const FINDINGS_MAX: usize = 256;

/// The host ended the turn with an error.
pub(super) fn on_failure(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    (error, until): (&str, Option<Timestamp>),
) -> Outcome {
    // Its very first turn ends so, and no stop has bound the run yet.
    let begins = state.is_live()
        && state.session.is_none()
        && session.is_some()
        && state.handover.prompted.as_deref() == session;
    if !begins && !state.heeds(now, session) {
        return Outcome::untouched();
    }
    state.touch(now);
    let wakes = wake::park_limited(state, now, session, until);
    state.note_error(now, Some("host"), format!("the host ended the turn: {error}"));
    let summary = "Let the agent stop: the host ended the turn with an error";
    Outcome::allowed(Rule::TurnFailed, summary)
        .because(format!("the host reported `{error}`; no iteration is used up"))
        .next(match wakes {
            true => format!(
                "the run is still active: phase {} continues when the error has passed, if the host \
                 can be woken, else with the next prompt",
                state.progress.phase
            ),
            false => {
                format!("the run is still active: the next prompt continues phase {}", state.progress.phase)
            }
        })
}

/// A prompt begins a turn. It brings the prompt of the phase, or what humans sent, to the agent.
pub(super) fn on_prompt(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    turn: Option<&str>,
    own: bool,
) -> Outcome {
    let ours = state.is_ours(session);
    // Before a run is bound, any session may get the prompt of its phase.
    let newcomer = state.session.is_none() && session.is_some() && state.handover.prompt_pending;
    if !state.is_live() || !(ours || newcomer && !state.paused) {
        return Outcome::untouched();
    }
    let active_before = state.clock.last_activity;
    state.touch(now);
    if own {
        let because = "the prompt is the continuation that the machine asked for";
        let summary = "Received our own continuation prompt";
        return recorded(Rule::ContinuationReceived, summary, because);
    }
    state.clock.turn = Some(SessionTurn { began: now, active_before });
    state.block_limit.new_turn(turn);
    state.parked = None;
    if state.paused {
        let because = "a new turn began; the run is paused, so the prompt brings nothing of ours";
        return recorded(Rule::PromptReceived, "Received a prompt", because);
    }
    if state.handover.prompt_pending {
        let text = state.start_prompt();
        (state.handover.prompt_pending, state.checks.advanced) = (false, false);
        state.handover.prompted = session.map(str::to_owned);
        state.handover.human_messages.clear();
        let summary = format!("Gave the agent the prompt of phase {}", state.progress.phase);
        let because = "this is the first prompt since the phase began";
        return recorded(Rule::StartPromptDelivered, &summary, because)
            .with([Effect::Context { text }]);
    }
    if let Some(refused) = state.checks.refused.take() {
        let text = super::prompts::refused(state, &refused.feedback);
        state.handover.human_messages.clear();
        let summary = "Gave the agent the verdict of the checks";
        return recorded(Rule::MessagesDelivered, summary, &refused.because)
            .with([Effect::Context { text }]);
    }
    if state.handover.human_messages.is_empty() {
        let because = "a new turn of the run's session began";
        return recorded(Rule::PromptReceived, "Received a prompt", because);
    }
    let text = super::prompts::human_messages(state);
    let count = std::mem::take(&mut state.handover.human_messages).len();
    let summary = format!("Gave the agent {}", counted(count, "message"));
    let because = "sent by a human; this is the first prompt since";
    recorded(Rule::MessagesDelivered, &summary, because).with([Effect::Context { text }])
}

/// Keeps what was reported for the stop that follows. Before a run is bound, everyone's response is
/// kept: whose stop binds it is not known yet.
pub(super) fn on_response(
    state: &mut State,
    session: Option<&str>,
    findings: &[PhaseFinding],
    closing_text: &str,
) -> Outcome {
    let Some(session) = session else { return Outcome::untouched() };
    if !state.is_live() || state.session.as_deref().is_some_and(|bound| bound != session) {
        return Outcome::untouched();
    }
    let surplus = findings.len().saturating_sub(FINDINGS_MAX);
    state.reading.pending_response = Some(PendingResponse {
        session: session.to_owned(),
        findings: findings.iter().skip(surplus).cloned().collect(),
        closing_text: closing_text.to_owned(),
    });
    let because = "this host reports it apart from the stop, which will judge it";
    recorded(Rule::ResponseReceived, "Received the agent's response", because)
}

pub(super) fn on_interrupt(state: &mut State, now: Timestamp, session: Option<&str>) -> Outcome {
    if !state.heeds(now, session) {
        return Outcome::untouched();
    }
    let because = "the host reported it; no iteration is used up";
    recorded(Rule::UserInterrupted, "The user interrupted the turn", because)
}

pub(super) fn on_session(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    event: &Event,
) -> Outcome {
    if !state.heeds(now, session) {
        return Outcome::untouched();
    }
    state.parked = None;
    let because = "the host reported it";
    if matches!(event, Event::SessionEnd { .. }) {
        return recorded(Rule::SessionEnded, "The session ended", because);
    }
    // A compacted or resumed session no longer knows the prompt of the phase.
    state.handover.prompt_pending = true;
    recorded(Rule::SessionStarted, "The session started", because)
}

/// A decision that changes nothing an agent would notice.
fn recorded(rule: Rule, summary: &str, because: &str) -> Outcome {
    Outcome::decided(rule, summary).because(because)
}
