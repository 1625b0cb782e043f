//! A session that was let go before the run's end, and what wakes it: a human's word.
//!
//! Whoever waits beside the session asks with [`Event::Woken`](super::Event::Woken) when
//! [`Parked::due`] says so. Nobody else is given the words meanwhile: they are given once.

use serde::{Deserialize, Serialize};

use super::block_limit::limit;
use super::event::{BlockCap, MustAllow, Stop};
use super::prompts;
use super::rule::Rule;
use super::state::{Effect, Outcome, SessionTurn, State};
use crate::run::Question;
use crate::words::counted;
use aldis_signal::time::Timestamp;

/// A session that stopped while its run goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// The session.
    pub session: String,
    /// Since when.
    pub since: Timestamp,
    /// What the agent needs of a human.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Whether a human's word waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub due: bool,
}

/// Notes whether the session waits after its stop. An agent that the user interrupted has its user,
/// and one that waits for background work is woken by that.
pub(super) fn park(state: &mut State, now: Timestamp, stop: &Stop, outcome: &Outcome) {
    if !state.is_ours(stop.session.as_deref()) || outcome.decisions.is_empty() {
        return;
    }
    let works = outcome.effects.iter().any(|effect| matches!(effect, Effect::Block { .. }));
    let returns =
        matches!(stop.must_allow, Some(MustAllow::Aborted | MustAllow::Background { .. }));
    state.parked = None;
    if let (Some(session), true) = (&stop.session, state.is_live() && !works && !returns) {
        let asks = outcome.decision().is_some_and(|it| it.rule == Rule::RecoverableError.as_str());
        let question = state.last_error.as_ref().filter(|_| asks).map(|error| {
            state.questions_asked = state.questions_asked.saturating_add(1);
            let id = format!("q{}", state.questions_asked);
            Question { id, text: error.message.clone(), asked_at: now }
        });
        let due = !state.paused && !state.human_messages.is_empty();
        state.parked = Some(Parked { session: session.clone(), since: now, question, due });
    }
}

/// A human's word is there for the session that waits.
pub(super) fn call(state: &mut State) {
    if let Some(parked) = &mut state.parked
        && !state.paused
    {
        parked.due = true;
        parked.question = None;
    }
}

/// Gives the session that waits what it was woken for. `cap` says that the host counts this as one
/// more blocked stop; without one it begins a new turn.
pub(super) fn on_woken(
    state: &mut State,
    now: Timestamp,
    session: &str,
    cap: Option<BlockCap>,
) -> Outcome {
    let is_due = |it: &&Parked| it.due && it.session == session;
    let full = cap.is_some_and(|cap| state.block_limit.blocks >= limit(cap));
    if !state.is_live() || state.paused || full || state.parked.as_ref().filter(is_due).is_none() {
        return Outcome::untouched();
    }
    state.parked = None;
    state.session = Some(session.to_owned());
    match cap {
        Some(cap) => drop(state.block_limit.may_block(cap)),
        None => {
            let active_before = state.last_activity;
            state.turn = Some(SessionTurn { began: now, active_before });
            state.block_limit.new_turn(None);
        }
    }
    state.touch(now);
    let messages = state.human_messages.len();
    let (what, text) = if state.prompt_pending {
        (format!("the prompt of phase {}", state.phase), state.start_prompt())
    } else {
        let count = u64::try_from(messages).unwrap_or(u64::MAX);
        (counted(count, "message"), prompts::messages_alone(state))
    };
    state.prompt_pending = false;
    state.human_messages.clear();
    Outcome::decided(Rule::Woken, format!("Woke the session with {what}"))
        .because("sent by a human while the agent waited")
        .next(format!("the agent continues phase {}", state.phase))
        .with([Effect::Context { text }, Effect::WriteView])
}
