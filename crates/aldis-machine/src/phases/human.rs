//! What humans want of a run: cancel, pause, resume, tell. And what they did to its state file.

use super::block_limit::BlockLimit;
use super::config::ExitReason;
use super::rule::Rule;
use super::state::{Effect, Outcome, State};
use super::wake;
use crate::{Evidence, Refusal, words};
use aldis_signal::time::Timestamp;

/// How many messages from humans wait for the agent, and how many characters each may have.
const MESSAGES_MAX: usize = 8;
const MESSAGE_LENGTH: usize = 4_000;
/// How much of one is shown to whoever asks why.
const QUOTE_MAX: usize = 200;

/// Why a run cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotResumable {
    /// It is complete.
    #[error("the run is complete")]
    Complete,
    /// It was ended by a human.
    #[error("the run was cancelled")]
    Cancelled,
    /// It has ended already.
    #[error("the run has ended")]
    Ended,
}

pub(super) fn on_cancel(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if !state.progress.active {
        return Outcome::untouched();
    }
    state.touch(now);
    let summary = format!("Cancelled the run in phase {}", state.progress.phase);
    state.end(now, ExitReason::UserCancelled);
    Outcome::allowed(Rule::Cancelled, summary)
        .because(format!("cancelled by {}", words::cause(by)))
        .next("`aldis auto start` starts another run")
}

pub(super) fn on_edit(members: &[String]) -> Outcome {
    let edited = Evidence::new("refused", members.join(", "));
    let evidence = edited.refused(Refusal::StateEdited.as_str());
    Outcome::decided(Rule::StateFileEdited, "Undid an edit of the state file")
        .because("the store decides, and the state file only shows it")
        .seen([evidence])
        .next("`aldis auto stop` ends the run")
        .with([Effect::WriteView])
}

/// The run rests: its agent may stop whenever it likes.
pub(super) fn on_pause(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if !state.is_live() || state.paused {
        return Outcome::untouched();
    }
    state.touch(now);
    state.paused = true;
    let phase = &state.progress.phase;
    Outcome::decided(Rule::Paused, format!("Paused the run in phase {phase}"))
        .because(format!("requested by {}", words::cause(by)))
        .next(format!("the agent may stop at any time; `aldis resume` continues phase {phase}"))
        .with([Effect::WriteView])
}

/// Keeps a human's message for the agent's next prompt. The oldest give way to newer ones.
pub(super) fn on_tell(state: &mut State, now: Timestamp, text: &str, by: &str) -> Outcome {
    let text = text.trim();
    if !state.is_live() || text.is_empty() {
        return Outcome::untouched();
    }
    state.touch(now);
    let mut because = format!("sent by {}", words::cause(by));
    if state.handover.human_messages.len() == MESSAGES_MAX {
        state.handover.human_messages.remove(0);
        because = format!("{because}; the oldest of {MESSAGES_MAX} waiting messages was dropped");
    }
    let kept: String = text.chars().take(MESSAGE_LENGTH).collect();
    if kept.len() < text.len() {
        because = format!("{because}; only its first {MESSAGE_LENGTH} characters are kept");
    }
    state.handover.human_messages.push(kept);
    wake::call(state);
    let quote = words::inline(text, QUOTE_MAX);
    let message = Evidence::new("said", quote);
    let next = match (state.paused, &state.parked) {
        (true, _) => "the agent gets it after the run is resumed",
        (false, Some(_)) => "the agent gets it when it is woken, or with its next prompt",
        (false, None) => "the agent gets it with its next prompt or at its next stop",
    };
    Outcome::decided(Rule::MessageQueued, "Queued a message for the agent")
        .because(because)
        .seen([message])
        .next(next)
}

pub(super) fn on_resume(
    state: &mut State,
    now: Timestamp,
    token: Option<&str>,
    by: &str,
) -> Outcome {
    if state.can_resume().is_err() {
        return Outcome::untouched();
    }
    if state.progress.active && std::mem::take(&mut state.paused) {
        return resume_paused(state, now, by);
    }
    if let Some(phase) = state.closing.failed_in.take() {
        state.progress.phase = phase;
    }
    state.progress.active = true;
    state.closing.exit_reason = None;
    state.closing.completed_at = None;
    state.progress.iteration = 0;
    (state.session, state.handover.prompted) = (None, None);
    state.clock.turn = None;
    state.clock.started_at = Some(state.clock.started_at.unwrap_or(now));
    state.clock.phase_started_at = now;
    state.touch(now);
    state.reading.read_cursor = None;
    state.last_refused = None;
    state.handover.prompt_pending = true;
    wake::call(state);
    (state.handover.advanced_by_subagent, state.handover.ends_at_next_stop) = (false, false);
    state.checks.drop_claims();
    state.clock.open_since = Some(now);
    state.block_limit = BlockLimit::default();
    state.rotate_token(token);
    let phase = &state.progress.phase;
    Outcome::decided(Rule::Resumed, format!("Resumed the run in phase {phase}"))
        .because(format!(
            "requested by {}; iterations start at 0, and any session can take the run",
            words::cause(by)
        ))
        .next(format!("send a prompt in this project: that session continues phase {phase}"))
        .with([Effect::WriteView])
}

/// A paused run keeps its session, its counters and its token: what was reported meanwhile counts.
fn resume_paused(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    state.touch(now);
    // The time for which the run was paused is no inactivity.
    if let Some(turn) = &mut state.clock.turn {
        turn.active_before = Some(turn.began);
    }
    // Meanwhile the session may have talked about anything.
    state.handover.prompt_pending = true;
    wake::call(state);
    let phase = &state.progress.phase;
    Outcome::decided(Rule::ResumedAfterPause, format!("Resumed the run in phase {phase}"))
        .because(format!("requested by {}; session and counters are kept", words::cause(by)))
        .next(format!("send a prompt to continue phase {phase}"))
        .with([Effect::WriteView])
}
