//! The decision at a stop, in the order of the specification.

use std::time::Duration;

use super::event::{Hold, Said, SaidSignal, Stop};
use super::hearing::{EVIDENCE_MAX, Hearing};
use super::pipeline::COMPLETE;
use super::prompts::{self, Feedback};
use super::rule::Rule;
use super::said::{self, Fate};
use super::state::{
    AfterTransition, Detected, Effect, ExitReason, Outcome, State, TokenPolicy, digest,
};
use crate::{Decision, Evidence, Miss, Refusal};
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// What a sub-agent's stop brings.
pub(super) struct Subagent<'e> {
    pub(super) agent: Option<&'e str>,
    pub(super) said: &'e [Said],
    pub(super) fresh_token: &'e Option<String>,
}

/// Judges a stop of the main agent.
pub(super) fn on_stop(state: &mut State, now: Timestamp, stop: &Stop) -> Outcome {
    // Rules 1 and 2: nobody else's session is touched.
    if !state.is_live() || !may_bind(state, stop) {
        return Outcome::untouched();
    }
    state.session.clone_from(&stop.session);
    // Rule 3.
    if state.pipeline.phase(&state.phase).is_none() {
        return unknown_phase(state, now);
    }
    if is_stale(state, now, stop) {
        return stale(state, now);
    }
    if state.paused {
        return paused(state, now, stop);
    }
    state.governor.observe(stop);
    let stop = &with_response(state, stop);
    let hearing = Hearing::default();
    let hearing = hear(state, now, &stop.said, stop.fresh_token.as_deref(), hearing);
    state.touch(now);
    state.last_checked = Some(now);
    state.heard_until = Some(now);
    if stop.heard_to.is_some() {
        state.heard_to.clone_from(&stop.heard_to);
    }
    if stop.token_leaked && hearing.completed.is_empty() && hearing.ended.is_none() {
        state.rotate_token(stop.fresh_token.as_deref());
    }
    decide(state, now, stop, hearing)
}

/// A paused run lets its agent stop. What it said counts once the run is resumed.
fn paused(state: &mut State, now: Timestamp, stop: &Stop) -> Outcome {
    state.touch(now);
    let said = Evidence {
        what: "said".to_owned(),
        quote: stop.closing_words.clone(),
        ..Evidence::default()
    };
    let decision = decision(
        state,
        Rule::AllowedWhilePaused,
        "Let the agent stop: the run is paused",
        vec![said],
    )
    .because("a human paused it; nothing is counted")
    .next("`aldis resume` goes on with the phase");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

/// Adds what the host reported apart from the stop, where the stop itself has no text.
fn with_response(state: &mut State, stop: &Stop) -> Stop {
    let mut stop = stop.clone();
    if let Some(response) = state.response.take()
        && Some(&response.session) == stop.session.as_ref()
        && stop.closing_words.is_empty()
    {
        stop.said.extend(response.said);
        stop.closing_words = response.closing_words;
    }
    stop
}

/// Hears what a sub-agent said. Only listens: never refuses, counts, binds or goes stale.
pub(super) fn on_subagent_stop(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    heard: &Subagent<'_>,
) -> Outcome {
    if !state.is_live() || !state.is_ours(session) || state.pipeline.phase(&state.phase).is_none() {
        return Outcome::untouched();
    }
    state.touch(now);
    let hearing = Hearing { listening: true, ..Hearing::default() };
    let hearing = hear(state, now, heard.said, heard.fresh_token.as_deref(), hearing);
    let who = heard.agent.unwrap_or("without a name");
    let decision = if hearing.completed.is_empty() {
        decision(state, Rule::SubagentStopped, "Heard a sub-agent stop", hearing.evidence)
            .because(format!("sub-agent {who} completed no phase"))
            .next("nothing to do")
    } else {
        state.handed_over = true;
        let done = hearing.completed.join(", ");
        decision(
            state,
            Rule::SubagentCompletedPhase,
            &format!("Phase {done} is complete"),
            hearing.evidence,
        )
        .because(format!("sub-agent {who} said so"))
        .next("the main agent is told at its next stop")
    };
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

/// Whether the run belongs to this session, or may from now on.
fn may_bind(state: &State, stop: &Stop) -> bool {
    let Some(session) = &stop.session else { return false };
    if let Some(bound) = &state.session {
        return bound == session;
    }
    // A turn that began before the run did is about something else. The machine's own note of the
    // turn counts only for the bound session.
    match (stop.turn_began, state.open_since) {
        (Some(began), Some(open)) => began >= open,
        _ => true,
    }
}

fn is_stale(state: &State, now: Timestamp, stop: &Stop) -> bool {
    let limit = Duration::from_secs(state.config.stale_after);
    let (Some(_), Some(active)) = (state.started_at, state.last_activity) else { return true };
    // A turn that goes on began before the last sign of life.
    let same_turn = stop.turn.is_some() && stop.turn == state.governor.turn;
    if same_turn || stop.continued == Some(true) {
        return false;
    }
    // What was noted when the prompt arrived knows the silence before it, unless the host tells of
    // a later turn whose prompt was never reported.
    let later = |began: Timestamp| state.turn.as_ref().is_some_and(|turn| began > turn.began);
    if let Some(turn) = state.turn.as_ref().filter(|_| !stop.turn_began.is_some_and(later)) {
        return turn.after.is_some_and(|after| turn.began.since(after) > limit);
    }
    let signalled = stop.said.iter().any(|said| matches!(said, Said::Signal(_)));
    match stop.turn_began {
        Some(began) => began.since(active) > limit,
        None => !signalled && now.since(active) > limit,
    }
}

fn unknown_phase(state: &mut State, now: Timestamp) -> Outcome {
    let message = format!("unknown phase `{}`", state.phase);
    state.note_error(now, Some("phase"), message.clone());
    state.last_checked = Some(now);
    let decision =
        decision(state, Rule::UnknownPhase, "Let the agent stop: the phase is unknown", vec![])
            .because(message)
            .next("end the run with `aldis auto stop`, or correct the pipeline");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

fn stale(state: &mut State, now: Timestamp) -> Outcome {
    let because = match state.last_activity {
        Some(active) => format!("no sign of life between {active} and the current turn"),
        None => "the run does not say legibly when it was active".to_owned(),
    };
    state.end(now, ExitReason::StaleState);
    let decision =
        decision(state, Rule::Stale, "Let the agent stop and left the run: stale", vec![])
            .because(because)
            .next("`aldis auto resume` goes on with the same phase");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

/// Applies the signals in text order.
fn hear(
    state: &mut State,
    now: Timestamp,
    said: &[Said],
    fresh: Option<&str>,
    mut hearing: Hearing,
) -> Hearing {
    for (signal, fate) in said::judge(state, said) {
        if hearing.ended.is_some() {
            break;
        }
        match fate {
            Fate::Skip => {}
            Fate::Refuse(refusal) => hearing.refuse(signal, refusal),
            Fate::Take => take(state, now, signal, fresh, &mut hearing),
        }
    }
    let room = EVIDENCE_MAX.saturating_sub(hearing.evidence.len());
    hearing.evidence.extend(said::misses(said).take(room).map(|miss| Evidence {
        what: "near_miss".to_owned(),
        name: Some(miss.name.clone()),
        reason: Some(miss.reason.clone()),
        quote: miss.quote.clone(),
        line: Some(miss.line),
        agent: None,
    }));
    hearing
}

fn take(
    state: &mut State,
    now: Timestamp,
    signal: &SaidSignal,
    fresh: Option<&str>,
    hearing: &mut Hearing,
) {
    if let Some(key) = said::counted_key(signal) {
        state.counted.insert(key);
    }
    let by_meaning = state.pipeline.phase(&state.phase).is_some_and(|p| p.signal.is_none());
    let ends = state.pipeline.ended_by(&signal.name).map(|phase| phase.name.clone());
    if state.pipeline.finish.as_deref() == Some(&*signal.name) {
        finish(state, now, signal, hearing);
    } else if ends.as_deref() == Some(&*state.phase)
        || by_meaning && signal.meaning == Meaning::Done
    {
        complete(state, now, signal, fresh, hearing);
    } else if let Some(other) = ends {
        // Saying again what was taken is no mistake worth a word.
        if !state.completed.contains(&other) {
            note(state, now, signal);
            hearing.refuse(signal, Refusal::OutOfOrder);
        }
    } else if signal.meaning == Meaning::Failed {
        fail(state, now, signal, hearing);
    } else {
        note(state, now, signal);
        hearing.quote("signal", signal, None);
    }
}

/// The whole run is declared complete, which only the main agent may do.
fn finish(state: &mut State, now: Timestamp, signal: &SaidSignal, hearing: &mut Hearing) {
    if signal.subagent {
        return hearing.refuse(signal, Refusal::RoleNotAllowed);
    }
    note(state, now, signal);
    hearing.quote("signal", signal, None);
    let mut phase = state.phase.clone();
    while phase != COMPLETE {
        let next = state.pipeline.next(&phase, &state.config.skip).unwrap_or(COMPLETE).to_owned();
        state.left_out.push(std::mem::replace(&mut phase, next));
    }
    state.end(now, ExitReason::AutoCompleteSignal);
    hearing.ended = Some(ExitReason::AutoCompleteSignal);
}

/// The current phase is complete; the next one begins where this was said.
fn complete(
    state: &mut State,
    now: Timestamp,
    signal: &SaidSignal,
    fresh: Option<&str>,
    hearing: &mut Hearing,
) {
    // A phase that began in this very message has a code that the agent was never told.
    if state.config.token == TokenPolicy::Require && !hearing.completed.is_empty() {
        return hearing.refuse(signal, Refusal::WrongToken);
    }
    note(state, now, signal);
    hearing.quote("signal", signal, None);
    let said_at = signal.at.unwrap_or(now).max(state.phase_started_at);
    let next = state.pipeline.next(&state.phase, &state.config.skip).unwrap_or(COMPLETE).to_owned();
    state.durations.insert(state.phase.clone(), said_at.since(state.phase_started_at).as_secs());
    state.completed.insert(state.phase.clone());
    hearing.completed.push(state.phase.clone());
    // The last phase is left by the main agent's stop: a sub-agent ends no run.
    if next == COMPLETE && hearing.listening {
        state.over = true;
        return;
    }
    state.phase = next;
    hearing.error = None;
    state.iteration = 0;
    state.phase_started_at = said_at;
    if state.phase == COMPLETE {
        state.end(now, ExitReason::AllPhasesComplete);
        hearing.ended = Some(ExitReason::AllPhasesComplete);
    } else {
        state.untold = true;
        state.rotate_token(fresh);
    }
}

fn fail(state: &mut State, now: Timestamp, signal: &SaidSignal, hearing: &mut Hearing) {
    note(state, now, signal);
    let message = signal.error.clone().unwrap_or_else(|| signal.quote.clone());
    state.note_error(now, None, message);
    if signal.subagent {
        // A sub-agent speaks for its part, never for the run.
        return hearing.refuse(signal, Refusal::RoleNotAllowed);
    }
    hearing.quote("signal", signal, None);
    let recoverable = signal.recoverable.unwrap_or(true);
    hearing.error = Some(recoverable);
    if !recoverable {
        state.end(now, ExitReason::CriticalError);
        hearing.ended = Some(ExitReason::CriticalError);
    }
}

/// Records that a signal was heard, each name once.
fn note(state: &mut State, now: Timestamp, signal: &SaidSignal) {
    match state.detected.iter_mut().find(|known| known.signal == signal.name) {
        Some(known) => known.detected_at = now,
        None => state.detected.push(Detected { signal: signal.name.clone(), detected_at: now }),
    }
}

/// Rules 4 to 7: what the agent may do now.
fn decide(state: &mut State, now: Timestamp, stop: &Stop, mut hearing: Hearing) -> Outcome {
    if hearing.evidence.is_empty() && !stop.closing_words.is_empty() {
        let quote = stop.closing_words.clone();
        hearing.evidence.push(Evidence { what: "said".to_owned(), quote, ..Evidence::default() });
    }
    if !hearing.completed.is_empty() {
        state.governor.advanced(stop.cap);
    }
    // An error takes back what a sub-agent claimed.
    let over = std::mem::take(&mut state.over) && hearing.error.is_none();
    if over && hearing.ended.is_none() {
        hearing.completed.push(state.phase.clone());
        state.end(now, ExitReason::AllPhasesComplete);
        hearing.ended = Some(ExitReason::AllPhasesComplete);
    }
    let handed_over = std::mem::take(&mut state.handed_over) && hearing.completed.is_empty();
    if let Some(reason) = hearing.ended {
        return ended(state, reason, hearing);
    }
    if hearing.error.is_some() {
        let decision = decision(
            state,
            Rule::RecoverableError,
            "Let the agent stop: it reported an error",
            hearing.evidence,
        )
        .because("the error is recoverable; no iteration is used up".to_owned())
        .next("remove the cause and send a prompt: the run is still active");
        return Outcome::decided([Effect::Allow, Effect::WriteView], decision);
    }
    if let Some(hold) = &stop.hold {
        return held(state, hold, hearing);
    }
    if !hearing.completed.is_empty() || handed_over {
        return advanced(state, stop, hearing);
    }
    missed(state, now, stop, hearing)
}

fn ended(state: &State, reason: ExitReason, hearing: Hearing) -> Outcome {
    let (rule, summary, because, next) = match reason {
        ExitReason::AutoCompleteSignal => {
            let left_out = state.left_out.join(", ");
            let because = format!("the agent declared the run complete; left out: {left_out}");
            (
                Rule::AutoComplete,
                "Let the agent stop: the run is complete",
                because,
                "nothing to do",
            )
        }
        ExitReason::CriticalError => (
            Rule::CriticalError,
            "Let the agent stop: the run failed",
            "the agent reported an error it cannot recover from".to_owned(),
            "remove the cause, then `aldis auto resume` goes on with the same phase",
        ),
        _ => (
            Rule::AllPhasesComplete,
            "Let the agent stop: all phases are complete",
            format!("the last phase was completed: {}", hearing.completed.join(", ")),
            "nothing to do",
        ),
    };
    let decision = decision(state, rule, summary, hearing.evidence).because(because).next(next);
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

fn held(state: &State, hold: &Hold, hearing: Hearing) -> Outcome {
    let because = match hold {
        Hold::Aborted => "the user broke off".to_owned(),
        Hold::Background { what } => format!("it waits for work in the background: {what}"),
        Hold::Failed { what } => format!("the host reported `{what}`"),
        Hold::Question => "it waits for an answer of the user".to_owned(),
    };
    let decision =
        decision(state, Rule::AllowedForNow, "Let the agent stop for now", hearing.evidence)
            .because(format!("{because}; nothing is counted"))
            .next("the run is still active: the next turn goes on with the phase");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

/// Rule 4: the next phase goes on by itself.
fn advanced(state: &mut State, stop: &Stop, hearing: Hearing) -> Outcome {
    let done = match hearing.completed.join(", ") {
        done if done.is_empty() => "the last phase".to_owned(),
        done => format!("phase {done}"),
    };
    if state.config.after_transition == AfterTransition::Stop {
        let summary = format!("Let the agent stop after {done}");
        let decision = decision(state, Rule::StoppedAfterPhase, &summary, hearing.evidence)
            .because("`after_transition` is `stop`".to_owned())
            .next("the next prompt begins the next phase");
        return Outcome::decided([Effect::Allow, Effect::WriteView], decision);
    }
    if !state.governor.may_block(stop.cap) {
        return capped(state, stop, hearing);
    }
    state.untold = false;
    let reason = prompts::start(state);
    state.told.clear();
    state.governor.told = Some(digest(reason.trim()));
    let summary =
        format!("Kept the agent working: {done} is complete, phase {} begins", state.phase);
    let decision = decision(state, Rule::PhaseComplete, &summary, hearing.evidence)
        .because("the signal that ends the phase was said since it began".to_owned())
        .next("the agent was told what the next phase is for; to end the run: aldis auto stop");
    Outcome::decided([Effect::Block { reason }, Effect::WriteView], decision)
}

/// The limit of refusals in a row is reached: let go before the host does.
fn capped(state: &State, stop: &Stop, hearing: Hearing) -> Outcome {
    let host = if stop.host.is_empty() { "the host" } else { &stop.host };
    let because = match stop.cap.limit {
        Some(limit) => format!("{host} gives up after {limit} refusals in a row"),
        None => format!("{host} has no limit of its own; ours is {}", super::OWN_CAP),
    };
    let summary = "Let the agent stop: too many refusals in a row, the run is capped";
    let decision = decision(state, Rule::Capped, summary, hearing.evidence)
        .because(because)
        .next("the run is not complete: send a prompt or `aldis auto resume` to go on");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

/// Rule 7: the phase is not complete.
fn missed(state: &mut State, now: Timestamp, stop: &Stop, hearing: Hearing) -> Outcome {
    let expected = state.expected();
    let since = state.phase_started_at;
    if state.iteration >= state.max_iterations {
        let limit = state.max_iterations;
        state.end(now, ExitReason::MaxIterationsReached);
        let summary = "Let the agent stop: the run failed, too many iterations";
        let decision = decision(state, Rule::IterationsUsedUp, summary, hearing.evidence)
            .because(format!("{limit} stops of this phase without {expected}"))
            .next("`aldis auto resume` goes on with the same phase and new iterations");
        return Outcome::decided([Effect::Allow, Effect::WriteView], decision);
    }
    if !state.governor.may_block(stop.cap) {
        return capped(state, stop, hearing);
    }
    state.iteration += 1;
    state.untold = false;
    let misses: Vec<_> = said::misses(&stop.said).collect();
    let feedback = feedback(state, &misses, &hearing.refused);
    let reason = prompts::continuation(state, &feedback);
    state.told.clear();
    state.governor.told = Some(digest(reason.trim()));
    let summary = "Blocked the stop and asked the agent to go on";
    let decision = decision(state, Rule::Blocked, summary, hearing.evidence)
        .because(format!("no {expected} in what the agent said since {since}"))
        .next("the agent was told what is missing; to end the run: aldis auto stop");
    Outcome::decided([Effect::Block { reason }, Effect::WriteView], decision)
}

/// What the agent should know beside the form of the signal. The same explanation is given twice.
fn feedback<'s>(
    state: &mut State,
    misses: &[&'s Miss],
    refused: &[(String, Refusal)],
) -> Feedback<'s> {
    let mut feedback = Feedback { refused: refused.to_vec(), ..Feedback::default() };
    // What stands last is what the agent meant.
    if let Some(miss) = misses.last() {
        let key = format!("{}/{}", miss.name, miss.reason);
        if state.governor.may_explain(&key) {
            feedback.miss = Some(miss);
        } else {
            feedback.again = true;
        }
    }
    feedback
}

fn decision(state: &State, rule: Rule, summary: &str, evidence: Vec<Evidence>) -> Decision {
    Decision::new(rule, summary).counted(state.counters()).seen(evidence)
}
