//! The decision at a stop, in the order of the specification.

use std::time::Duration;

use super::event::{MustAllow, PhaseFinding, PhaseSignal, Stop};
use super::pipeline::COMPLETE;
use super::prompts::{self, Feedback};
use super::rule::Rule;
use super::said::{self, Fate};
use super::state::{
    AfterTransition, Detected, Effect, ExitReason, Outcome, State, TokenPolicy, digest,
};
use super::tally::{EVIDENCE_MAX, StopTally};
use crate::{Decision, Evidence, Miss, Refusal};
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// What a sub-agent's stop brings.
pub(super) struct Subagent<'e> {
    pub(super) agent: Option<&'e str>,
    pub(super) findings: &'e [PhaseFinding],
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
    state.block_limit.observe(stop);
    let stop = &with_response(state, stop);
    let tally = StopTally::default();
    let tally = hear(state, now, &stop.findings, stop.fresh_token.as_deref(), tally);
    state.touch(now);
    state.last_checked = Some(now);
    state.read_until = Some(now);
    if stop.read_cursor.is_some() {
        state.read_cursor.clone_from(&stop.read_cursor);
    }
    if stop.token_leaked && tally.completed.is_empty() && tally.ended.is_none() {
        state.rotate_token(stop.fresh_token.as_deref());
    }
    decide(state, now, stop, tally)
}

/// A paused run lets its agent stop. What it said counts once the run is resumed.
fn paused(state: &mut State, now: Timestamp, stop: &Stop) -> Outcome {
    state.touch(now);
    let said = Evidence {
        what: "said".to_owned(),
        quote: stop.closing_text.clone(),
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
    if let Some(response) = state.pending_response.take()
        && Some(&response.session) == stop.session.as_ref()
        && stop.closing_text.is_empty()
    {
        stop.findings.extend(response.findings);
        stop.closing_text = response.closing_text;
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
    let tally = StopTally { listening: true, ..StopTally::default() };
    let tally = hear(state, now, heard.findings, heard.fresh_token.as_deref(), tally);
    let who = heard.agent.unwrap_or("without a name");
    let decision = if tally.completed.is_empty() {
        decision(state, Rule::SubagentStopped, "Heard a sub-agent stop", tally.evidence)
            .because(format!("sub-agent {who} completed no phase"))
            .next("nothing to do")
    } else {
        state.advanced_by_subagent = true;
        let done = tally.completed.join(", ");
        decision(
            state,
            Rule::SubagentCompletedPhase,
            &format!("Phase {done} is complete"),
            tally.evidence,
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
    let same_turn = stop.turn.is_some() && stop.turn == state.block_limit.turn;
    if same_turn || stop.continued == Some(true) {
        return false;
    }
    // What was noted when the prompt arrived knows the silence before it, unless the host tells of
    // a later turn whose prompt was never reported.
    let later = |began: Timestamp| state.turn.as_ref().is_some_and(|turn| began > turn.began);
    if let Some(turn) = state.turn.as_ref().filter(|_| !stop.turn_began.is_some_and(later)) {
        return turn.active_before.is_some_and(|before| turn.began.since(before) > limit);
    }
    let signalled = stop.findings.iter().any(|said| matches!(said, PhaseFinding::Signal(_)));
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
    said: &[PhaseFinding],
    fresh: Option<&str>,
    mut tally: StopTally,
) -> StopTally {
    for (signal, fate) in said::judge(state, said) {
        if tally.ended.is_some() {
            break;
        }
        match fate {
            Fate::Skip => {}
            Fate::Refuse(refusal) => tally.refuse(signal, refusal),
            Fate::Take => take(state, now, signal, fresh, &mut tally),
        }
    }
    let room = EVIDENCE_MAX.saturating_sub(tally.evidence.len());
    tally.evidence.extend(said::misses(said).take(room).map(|miss| Evidence {
        what: "near_miss".to_owned(),
        name: Some(miss.name.clone()),
        reason: Some(miss.reason.clone()),
        quote: miss.quote.clone(),
        line: Some(miss.line),
        agent: None,
    }));
    tally
}

fn take(
    state: &mut State,
    now: Timestamp,
    signal: &PhaseSignal,
    fresh: Option<&str>,
    tally: &mut StopTally,
) {
    if let Some(key) = said::counted_key(signal) {
        state.counted.insert(key);
    }
    let by_meaning = state.pipeline.phase(&state.phase).is_some_and(|p| p.signal.is_none());
    let ends = state.pipeline.ended_by(&signal.name).map(|phase| phase.name.clone());
    if state.pipeline.finish.as_deref() == Some(&*signal.name) {
        finish(state, now, signal, tally);
    } else if ends.as_deref() == Some(&*state.phase)
        || by_meaning && signal.meaning == Meaning::Done
    {
        complete(state, now, signal, fresh, tally);
    } else if let Some(other) = ends {
        // Saying again what was taken is no mistake worth a word.
        if !state.completed.contains(&other) {
            note(state, now, signal);
            tally.refuse(signal, Refusal::OutOfOrder);
        }
    } else if signal.meaning == Meaning::Failed {
        fail(state, now, signal, tally);
    } else {
        note(state, now, signal);
        tally.quote("signal", signal, None);
    }
}

/// The whole run is declared complete, which only the main agent may do.
fn finish(state: &mut State, now: Timestamp, signal: &PhaseSignal, tally: &mut StopTally) {
    if signal.subagent {
        return tally.refuse(signal, Refusal::RoleNotAllowed);
    }
    note(state, now, signal);
    tally.quote("signal", signal, None);
    let mut phase = state.phase.clone();
    while phase != COMPLETE {
        let next = state.pipeline.next(&phase, &state.config.skip).unwrap_or(COMPLETE).to_owned();
        state.left_out.push(std::mem::replace(&mut phase, next));
    }
    state.end(now, ExitReason::AutoCompleteSignal);
    tally.ended = Some(ExitReason::AutoCompleteSignal);
}

/// The current phase is complete; the next one begins where this was said.
fn complete(
    state: &mut State,
    now: Timestamp,
    signal: &PhaseSignal,
    fresh: Option<&str>,
    tally: &mut StopTally,
) {
    // A phase that began in this very message has a code that the agent was never told.
    if state.config.token == TokenPolicy::Require && !tally.completed.is_empty() {
        return tally.refuse(signal, Refusal::WrongToken);
    }
    note(state, now, signal);
    tally.quote("signal", signal, None);
    let said_at = signal.at.unwrap_or(now).max(state.phase_started_at);
    let next = state.pipeline.next(&state.phase, &state.config.skip).unwrap_or(COMPLETE).to_owned();
    state.durations.insert(state.phase.clone(), said_at.since(state.phase_started_at).as_secs());
    state.completed.insert(state.phase.clone());
    tally.completed.push(state.phase.clone());
    // The last phase is left by the main agent's stop: a sub-agent ends no run.
    if next == COMPLETE && tally.listening {
        state.ends_at_next_stop = true;
        return;
    }
    state.phase = next;
    tally.error = None;
    state.iteration = 0;
    state.phase_started_at = said_at;
    if state.phase == COMPLETE {
        state.end(now, ExitReason::AllPhasesComplete);
        tally.ended = Some(ExitReason::AllPhasesComplete);
    } else {
        state.prompt_pending = true;
        state.rotate_token(fresh);
    }
}

fn fail(state: &mut State, now: Timestamp, signal: &PhaseSignal, tally: &mut StopTally) {
    note(state, now, signal);
    let message = signal.error.clone().unwrap_or_else(|| signal.quote.clone());
    state.note_error(now, None, message);
    if signal.subagent {
        // A sub-agent speaks for its part, never for the run.
        return tally.refuse(signal, Refusal::RoleNotAllowed);
    }
    tally.quote("signal", signal, None);
    let recoverable = signal.recoverable.unwrap_or(true);
    tally.error = Some(recoverable);
    if !recoverable {
        state.end(now, ExitReason::CriticalError);
        tally.ended = Some(ExitReason::CriticalError);
    }
}

/// Records that a signal was heard, each name once.
fn note(state: &mut State, now: Timestamp, signal: &PhaseSignal) {
    match state.detected.iter_mut().find(|known| known.signal == signal.name) {
        Some(known) => known.detected_at = now,
        None => state.detected.push(Detected { signal: signal.name.clone(), detected_at: now }),
    }
}

/// Rules 4 to 7: what the agent may do now.
fn decide(state: &mut State, now: Timestamp, stop: &Stop, mut tally: StopTally) -> Outcome {
    if tally.evidence.is_empty() && !stop.closing_text.is_empty() {
        let quote = stop.closing_text.clone();
        tally.evidence.push(Evidence { what: "said".to_owned(), quote, ..Evidence::default() });
    }
    if !tally.completed.is_empty() {
        state.block_limit.advanced(stop.cap);
    }
    // An error takes back what a sub-agent claimed.
    let over = std::mem::take(&mut state.ends_at_next_stop) && tally.error.is_none();
    if over && tally.ended.is_none() {
        tally.completed.push(state.phase.clone());
        state.end(now, ExitReason::AllPhasesComplete);
        tally.ended = Some(ExitReason::AllPhasesComplete);
    }
    let advanced_by_subagent =
        std::mem::take(&mut state.advanced_by_subagent) && tally.completed.is_empty();
    if let Some(reason) = tally.ended {
        return ended(state, reason, tally);
    }
    if tally.error.is_some() {
        let decision = decision(
            state,
            Rule::RecoverableError,
            "Let the agent stop: it reported an error",
            tally.evidence,
        )
        .because("the error is recoverable; no iteration is used up".to_owned())
        .next("remove the cause and send a prompt: the run is still active");
        return Outcome::decided([Effect::Allow, Effect::WriteView], decision);
    }
    if let Some(hold) = &stop.must_allow {
        return held(state, hold, tally);
    }
    if !tally.completed.is_empty() || advanced_by_subagent {
        return advanced(state, stop, tally);
    }
    missed(state, now, stop, tally)
}

fn ended(state: &State, reason: ExitReason, tally: StopTally) -> Outcome {
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
            format!("the last phase was completed: {}", tally.completed.join(", ")),
            "nothing to do",
        ),
    };
    let decision = decision(state, rule, summary, tally.evidence).because(because).next(next);
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

fn held(state: &State, hold: &MustAllow, tally: StopTally) -> Outcome {
    let because = match hold {
        MustAllow::Aborted => "the user broke off".to_owned(),
        MustAllow::Background { what } => format!("it waits for work in the background: {what}"),
        MustAllow::Failed { what } => format!("the host reported `{what}`"),
        MustAllow::Question => "it waits for an answer of the user".to_owned(),
    };
    let decision =
        decision(state, Rule::AllowedForNow, "Let the agent stop for now", tally.evidence)
            .because(format!("{because}; nothing is counted"))
            .next("the run is still active: the next turn goes on with the phase");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

/// Rule 4: the next phase goes on by itself.
fn advanced(state: &mut State, stop: &Stop, tally: StopTally) -> Outcome {
    let done = match tally.completed.join(", ") {
        done if done.is_empty() => "the last phase".to_owned(),
        done => format!("phase {done}"),
    };
    if state.config.after_transition == AfterTransition::Stop {
        let summary = format!("Let the agent stop after {done}");
        let decision = decision(state, Rule::StoppedAfterPhase, &summary, tally.evidence)
            .because("`after_transition` is `stop`".to_owned())
            .next("the next prompt begins the next phase");
        return Outcome::decided([Effect::Allow, Effect::WriteView], decision);
    }
    if !state.block_limit.may_block(stop.cap) {
        return capped(state, stop, tally);
    }
    state.prompt_pending = false;
    let reason = prompts::start(state);
    state.human_messages.clear();
    state.block_limit.last_prompt = Some(digest(reason.trim()));
    let summary =
        format!("Kept the agent working: {done} is complete, phase {} begins", state.phase);
    let decision = decision(state, Rule::PhaseComplete, &summary, tally.evidence)
        .because("the signal that ends the phase was said since it began".to_owned())
        .next("the agent was told what the next phase is for; to end the run: aldis auto stop");
    Outcome::decided([Effect::Block { reason }, Effect::WriteView], decision)
}

/// The limit of refusals in a row is reached: let go before the host does.
fn capped(state: &State, stop: &Stop, tally: StopTally) -> Outcome {
    let host = if stop.host.is_empty() { "the host" } else { &stop.host };
    let because = match stop.cap.limit {
        Some(limit) => format!("{host} gives up after {limit} refusals in a row"),
        None => format!("{host} has no limit of its own; ours is {}", super::DEFAULT_BLOCK_LIMIT),
    };
    let summary = "Let the agent stop: too many refusals in a row, the run is capped";
    let decision = decision(state, Rule::Capped, summary, tally.evidence)
        .because(because)
        .next("the run is not complete: send a prompt or `aldis auto resume` to go on");
    Outcome::decided([Effect::Allow, Effect::WriteView], decision)
}

/// Rule 7: the phase is not complete.
fn missed(state: &mut State, now: Timestamp, stop: &Stop, tally: StopTally) -> Outcome {
    let expected = state.expected();
    let since = state.phase_started_at;
    if state.iteration >= state.max_iterations {
        let limit = state.max_iterations;
        state.end(now, ExitReason::MaxIterationsReached);
        let summary = "Let the agent stop: the run failed, too many iterations";
        let decision = decision(state, Rule::IterationsUsedUp, summary, tally.evidence)
            .because(format!("{limit} stops of this phase without {expected}"))
            .next("`aldis auto resume` goes on with the same phase and new iterations");
        return Outcome::decided([Effect::Allow, Effect::WriteView], decision);
    }
    if !state.block_limit.may_block(stop.cap) {
        return capped(state, stop, tally);
    }
    state.iteration += 1;
    state.prompt_pending = false;
    let misses: Vec<_> = said::misses(&stop.findings).collect();
    let feedback = feedback(state, &misses, &tally.refused);
    let reason = prompts::continuation(state, &feedback);
    state.human_messages.clear();
    state.block_limit.last_prompt = Some(digest(reason.trim()));
    let summary = "Blocked the stop and asked the agent to go on";
    let decision = decision(state, Rule::Blocked, summary, tally.evidence)
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
        if state.block_limit.may_explain(&key) {
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
