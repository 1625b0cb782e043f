//! What the host reports of the run's session beside its stops.

use super::event::{Event, PhaseFinding};
use super::rule::Rule;
use super::state::{Effect, Outcome, PendingResponse, SessionTurn, State};
use crate::Decision;
use aldis_signal::time::Timestamp;

/// How many findings of a response wait for its stop; the last ones.
const FINDINGS_MAX: usize = 256;

/// The host ended the turn with an error.
pub(super) fn on_failure(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    error: &str,
) -> Outcome {
    if !state.is_live() || !state.is_ours(session) {
        return Outcome::untouched();
    }
    state.touch(now);
    state.note_error(now, Some("host"), format!("the host ended the turn: {error}"));
    let summary = "Let the agent stop: the host ended the turn with an error";
    let decision = Decision::new(Rule::TurnFailed, summary)
        .counted(state.counters())
        .because(format!("the host reported `{error}`; no iteration is used up"))
        .next(format!("the run is still active: the next prompt continues phase {}", state.phase));
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
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
    let newcomer = state.session.is_none() && session.is_some() && state.prompt_pending;
    if !state.is_live() || !(ours || newcomer && !state.paused) {
        return Outcome::untouched();
    }
    let active_before = state.last_activity;
    state.touch(now);
    if own {
        let because = "the prompt is the continuation that the machine asked for";
        let summary = "Received our own continuation prompt";
        return recorded(state, Rule::ContinuationReceived, summary, because);
    }
    state.turn = Some(SessionTurn { began: now, active_before });
    state.block_limit.new_turn(turn);
    if state.paused {
        let because = "a new turn began; the run is paused, so the prompt brings nothing of ours";
        return recorded(state, Rule::PromptReceived, "Received a prompt", because);
    }
    if state.prompt_pending {
        let text = state.start_prompt();
        state.prompt_pending = false;
        state.human_messages.clear();
        let summary = format!("Gave the agent the prompt of phase {}", state.phase);
        let because = "this is the first prompt since the phase began";
        let decision = record(state, Rule::StartPromptDelivered, &summary, because);
        return Outcome::decided([Effect::Context { text }], decision);
    }
    if state.human_messages.is_empty() {
        let because = "a new turn of the run's session began";
        return recorded(state, Rule::PromptReceived, "Received a prompt", because);
    }
    let text = super::prompts::human_messages(state);
    let count = std::mem::take(&mut state.human_messages).len();
    let summary = match count {
        1 => "Gave the agent 1 message".to_owned(),
        count => format!("Gave the agent {count} messages"),
    };
    let because = "sent by a human; this is the first prompt since";
    let decision = record(state, Rule::MessagesDelivered, &summary, because);
    Outcome::decided([Effect::Context { text }], decision)
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
    state.pending_response = Some(PendingResponse {
        session: session.to_owned(),
        findings: findings.iter().skip(surplus).cloned().collect(),
        closing_text: closing_text.to_owned(),
    });
    let because = "this host reports it apart from the stop, which will judge it";
    recorded(state, Rule::ResponseReceived, "Received the agent's response", because)
}

pub(super) fn on_interrupt(state: &mut State, now: Timestamp, session: Option<&str>) -> Outcome {
    if !state.is_live() || !state.is_ours(session) {
        return Outcome::untouched();
    }
    state.touch(now);
    let because = "the host reported it; no iteration is used up";
    recorded(state, Rule::UserInterrupted, "The user interrupted the turn", because)
}

pub(super) fn on_session(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    event: &Event,
) -> Outcome {
    if !state.is_live() || !state.is_ours(session) {
        return Outcome::untouched();
    }
    state.touch(now);
    let because = "the host reported it";
    if matches!(event, Event::SessionEnd { .. }) {
        return recorded(state, Rule::SessionEnded, "The session ended", because);
    }
    // A compacted or resumed session no longer knows the prompt of the phase.
    state.prompt_pending = true;
    recorded(state, Rule::SessionStarted, "The session started", because)
}

/// A decision that changes nothing an agent would notice.
fn record(state: &State, rule: Rule, summary: &str, because: &str) -> Decision {
    Decision::new(rule, summary).counted(state.counters()).because(because).next("nothing to do")
}

fn recorded(state: &State, rule: Rule, summary: &str, because: &str) -> Outcome {
    Outcome::decided([], record(state, rule, summary, because))
}
