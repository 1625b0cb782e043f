//! A session that was let go before the run's end, and what wakes it: a human's word, or the end of a
//! limit.
//!
//! Whoever waits beside the session asks with [`Event::Woken`](super::Event::Woken) when
//! [`Parked::due`] says so. Nobody else is given the words meanwhile: they are given once.

use serde::{Deserialize, Serialize};

use super::block_limit::limit;
use super::event::{BlockCap, MustAllow, Stop};
use super::prompts;
use super::rule::Rule;
use super::state::{Effect, Outcome, SessionTurn, State};
use crate::run::{Question, QuestionDraft};
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
    /// When the limit is over that ended its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How often in a row a session is woken after a limit: one that comes back for ever must not wake it
/// for ever.
pub const LIMIT_WAKES_MAX: u32 = 40;

impl Parked {
    /// Returns whether there is something to wake it for.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due || self.until.is_some_and(|until| until <= now)
    }
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
    // It stopped by itself: whatever ended its turns before has passed.
    state.limit_wakes = 0;
    if let (Some(session), true) = (&stop.session, state.is_live() && !works && !returns) {
        let asks = outcome.decision().is_some_and(|it| it.rule == Rule::RecoverableError.as_str());
        let error = state.closing.last_error.as_ref().filter(|_| asks);
        let draft = error.map(|error| QuestionDraft::new(&*error.message));
        let question = draft.or_else(|| stop.asks.as_deref().cloned()).map(|draft| {
            state.questions_asked = state.questions_asked.saturating_add(1);
            draft.named(&format!("q{}", state.questions_asked), now)
        });
        let due = !state.paused && !state.handover.human_messages.is_empty();
        let session = session.clone();
        state.parked = Some(Parked { session, since: now, question, due, until: None });
    }
}

/// Notes that the session waits until an error has passed that ended its turn. Returns whether it does.
pub(super) fn park_limited(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    until: Option<Timestamp>,
) -> bool {
    let (Some(session), Some(until)) = (session, until) else { return false };
    if state.limit_wakes >= LIMIT_WAKES_MAX {
        return false;
    }
    let due = !state.paused && !state.handover.human_messages.is_empty();
    let session = session.to_owned();
    state.parked = Some(Parked { session, since: now, question: None, due, until: Some(until) });
    true
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
    let is_due = |it: &&Parked| it.is_due(now) && it.session == session;
    let full = cap.is_some_and(|cap| state.block_limit.blocks >= limit(cap));
    if !state.is_live() || state.paused || full || state.parked.as_ref().filter(is_due).is_none() {
        return Outcome::untouched();
    }
    let limited = state.parked.take().is_some_and(|parked| !parked.due);
    state.limit_wakes = state.limit_wakes.saturating_add(u32::from(limited));
    state.session = Some(session.to_owned());
    match cap {
        Some(cap) => drop(state.block_limit.may_block(cap)),
        None => {
            // The time of a limit is no inactivity.
            let active_before = if limited { Some(now) } else { state.clock.last_activity };
            state.clock.turn = Some(SessionTurn { began: now, active_before });
            state.block_limit.new_turn(None);
        }
    }
    state.touch(now);
    let messages = state.handover.human_messages.len();
    let (what, text) = if state.handover.prompt_pending {
        (format!("the prompt of phase {}", state.progress.phase), state.start_prompt())
    } else if let Some(refused) = state.checks.refused.take() {
        ("the verdict of the checks".to_owned(), prompts::refused(state, &refused.feedback))
    } else {
        let count = u64::try_from(messages).unwrap_or(u64::MAX);
        (counted(count, "message"), prompts::messages_alone(state))
    };
    (state.handover.prompt_pending, state.checks.advanced) = (false, false);
    state.handover.human_messages.clear();
    let (summary, because, text) = if limited {
        let text = format!("The limit that ended your turn is over. {text}");
        let because = "the limit that ended its turn is over";
        ("Woke the session after a limit".to_owned(), because, text)
    } else {
        let because = "sent by a human, or found by the checks, while the agent waited";
        (format!("Woke the session with {what}"), because, text)
    };
    Outcome::decided(Rule::Woken, summary)
        .because(because)
        .next(format!("the agent continues phase {}", state.progress.phase))
        .with([Effect::Context { text }, Effect::WriteView])
}
