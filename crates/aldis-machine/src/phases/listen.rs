//! Events that only inform the machine, and the words of humans.

use super::block_limit::BlockLimit;
use super::event::{Event, PhaseFinding};
use super::rule::Rule;
use super::state::{Effect, ExitReason, Outcome, PendingResponse, SessionTurn, State};
use crate::{Decision, Evidence, Refusal, words};
use aldis_signal::time::Timestamp;

/// How many messages of humans wait for the agent, and how long one may be.
const TOLD_MAX: usize = 8;
const TOLD_LENGTH: usize = 4_000;
/// How much of one is shown to whoever asks why.
const QUOTE_MAX: usize = 200;

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
        .because(format!("the host reported `{error}`; nothing is counted"))
        .next("the run is still active: the next prompt goes on with the phase");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

pub(super) fn on_prompt(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    turn: Option<&str>,
    own: bool,
) -> Outcome {
    let newcomer = state.session.is_none() && session.is_some() && state.prompt_pending;
    if !state.is_live() || !(state.is_ours(session) || newcomer) {
        return Outcome::untouched();
    }
    let active_before = state.last_activity;
    state.touch(now);
    if own {
        let because = "the prompt is the continuation that was asked for".to_owned();
        return Outcome::decided(
            [],
            heard(state, Rule::ContinuationReceived, "Heard its own continuation", because),
        );
    }
    state.turn = Some(SessionTurn { began: now, active_before });
    state.block_limit.new_turn(turn);
    if !state.prompt_pending && !state.human_messages.is_empty() {
        let mut text = String::new();
        super::prompts::told(&mut text, state);
        state.human_messages.clear();
        let because = "a human wants the agent to know it".to_owned();
        let decision = heard(state, Rule::MessagesDelivered, "Gave the agent a message", because);
        return Outcome::decided([Effect::Context { text }], decision);
    }
    if !state.prompt_pending {
        let because = "a new turn of the run's session begins".to_owned();
        return Outcome::decided([], heard(state, Rule::PromptReceived, "Heard a prompt", because));
    }
    state.prompt_pending = false;
    let because = "it is the first prompt since the phase began".to_owned();
    let decision =
        heard(state, Rule::StartPromptDelivered, "Tell the agent what the phase is about", because);
    let text = state.start_prompt();
    state.human_messages.clear();
    Outcome::decided([Effect::Context { text }], decision)
}

/// Keeps what was said for the stop that follows. An unbound run listens to everyone: whose stop
/// binds it is not known yet.
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
    state.pending_response = Some(PendingResponse {
        session: session.to_owned(),
        findings: findings.to_vec(),
        closing_text: closing_text.to_owned(),
    });
    let because = "the host reports it apart from the stop".to_owned();
    Outcome::decided([], heard(state, Rule::ResponseReceived, "Heard what the agent said", because))
}

pub(super) fn on_interrupt(state: &mut State, now: Timestamp, session: Option<&str>) -> Outcome {
    if !state.is_live() || !state.is_ours(session) {
        return Outcome::untouched();
    }
    state.touch(now);
    let because = "the user broke the turn off; nothing is counted".to_owned();
    Outcome::decided([], heard(state, Rule::UserInterrupted, "Heard an interruption", because))
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
    let began = matches!(event, Event::SessionStart { .. });
    if began {
        // A compacted or resumed session has forgotten what it was told.
        state.prompt_pending = true;
    }
    let (rule, what) = if began {
        (Rule::SessionStarted, "Heard the session begin")
    } else {
        (Rule::SessionEnded, "Heard the session end")
    };
    Outcome::decided([], heard(state, rule, what, "the host reported it".to_owned()))
}

pub(super) fn on_cancel(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if !state.active {
        return Outcome::untouched();
    }
    state.touch(now);
    state.end(now, ExitReason::UserCancelled);
    let decision = Decision::new(Rule::Cancelled, "Ended the run: cancelled")
        .counted(state.counters())
        .because(format!("{by} says so"))
        .next("start a new run with `aldis auto start`");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

pub(super) fn on_edit(state: &State, members: &[String]) -> Outcome {
    let quote = members.join(", ");
    let evidence = Evidence {
        what: "refused".to_owned(),
        reason: Some(Refusal::StateEdited.as_str().to_owned()),
        quote,
        ..Evidence::default()
    };
    let decision = Decision::new(Rule::StateFileEdited, "Undid an edit of the state file")
        .counted(state.counters())
        .because("the store decides; the file is a view of it")
        .seen([evidence])
        .next("use `aldis auto stop` to end the run, `aldis auto start` for another");
    Outcome::decided([Effect::WriteView], decision)
}

/// The run rests: its agent may stop whenever it likes.
pub(super) fn on_pause(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if !state.is_live() || state.paused {
        return Outcome::untouched();
    }
    state.touch(now);
    state.paused = true;
    let decision = Decision::new(Rule::Paused, "Paused the run")
        .counted(state.counters())
        .because(asked_for(by))
        .next("the agent may stop; `aldis resume` goes on with the phase");
    Outcome::decided([Effect::WriteView], decision)
}

/// Keeps what a human said for the agent's next prompt.
pub(super) fn on_tell(state: &mut State, now: Timestamp, text: &str, by: &str) -> Outcome {
    if !state.is_live() {
        return Outcome::untouched();
    }
    state.touch(now);
    if state.human_messages.len() == TOLD_MAX {
        state.human_messages.remove(0);
    }
    state.human_messages.push(text.chars().take(TOLD_LENGTH).collect());
    let quote = words::inline(text, QUOTE_MAX);
    let said = Evidence { what: "said".to_owned(), quote, ..Evidence::default() };
    let decision = Decision::new(Rule::MessageQueued, "Took a message for the agent")
        .counted(state.counters())
        .because(asked_for(by))
        .seen([said])
        .next("the agent reads it at its next stop or prompt");
    Outcome::decided([], decision)
}

fn asked_for(by: &str) -> String {
    if by.is_empty() { "a human asked for it".to_owned() } else { format!("{by} asked for it") }
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
    if state.active && std::mem::take(&mut state.paused) {
        state.touch(now);
        let decision = Decision::new(Rule::ResumedAfterPause, "Resumed the run")
            .counted(state.counters())
            .because(asked_for(by))
            .next("the agent is kept working from its next stop on");
        return Outcome::decided([Effect::WriteView], decision);
    }
    state.paused = false;
    if let Some(phase) = state.failed_in.take() {
        state.phase = phase;
    }
    state.active = true;
    state.exit_reason = None;
    state.completed_at = None;
    state.iteration = 0;
    state.session = None;
    state.turn = None;
    state.started_at = Some(state.started_at.unwrap_or(now));
    state.phase_started_at = now;
    state.touch(now);
    state.read_cursor = None;
    state.prompt_pending = true;
    (state.advanced_by_subagent, state.ends_at_next_stop) = (false, false);
    state.open_since = Some(now);
    state.block_limit = BlockLimit::default();
    state.rotate_token(token);
    let because = "a human asked for it: same phase, counters at zero, any session".to_owned();
    let decision = heard(state, Rule::Resumed, "Resumed the run", because)
        .next("the next session that works here goes on with the phase");
    Outcome::decided([Effect::WriteView], decision)
}

/// A decision that changes nothing an agent would notice.
fn heard(state: &State, rule: Rule, summary: &str, because: String) -> Decision {
    Decision::new(rule, summary).counted(state.counters()).because(because).next("nothing to do")
}
