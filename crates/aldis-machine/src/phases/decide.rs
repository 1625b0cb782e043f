//! What the agent may do after its signals were applied: rules 4 to 7 of the specification.

use super::checks;
use super::config::{AfterTransition, ExitReason};
use super::eligibility;
use super::event::{MustAllow, Stop};
use super::prompts::{self, Feedback};
use super::rule::Rule;
use super::state::{Effect, Outcome, State, digest};
use super::stop::complete_phases;
use super::tally::{CompletedPhase, RefusedSignal, StopTally};
use crate::words::{counted, listed};
use crate::{Evidence, Miss, Refusal};
use aldis_signal::time::Timestamp;

const NOT_COUNTED: &str = "no iteration is used up";

/// Decides what the agent may do now.
pub(super) fn decide(
    state: &mut State,
    now: Timestamp,
    stop: &Stop,
    mut tally: StopTally,
) -> Outcome {
    if tally.evidence.is_empty() && !stop.closing_text.is_empty() {
        let quote = stop.closing_text.clone();
        tally.evidence.push(Evidence::new("said", quote));
    }
    if !tally.completed.is_empty() {
        state.block_limit.advanced(stop.cap);
    }
    // An error of the main agent takes back what a sub-agent claimed.
    let over = std::mem::take(&mut state.handover.ends_at_next_stop) && !tally.error;
    if over && tally.ended.is_none() {
        let by = format!("a sub-agent completed phase {} before this stop", state.progress.phase);
        tally.completed.push(CompletedPhase { phase: state.progress.phase.clone(), by });
        state.end(now, ExitReason::AllPhasesComplete);
        tally.ended = Some(ExitReason::AllPhasesComplete);
    }
    let by_subagent =
        std::mem::take(&mut state.handover.advanced_by_subagent) && tally.completed.is_empty();
    if let Some(reason) = tally.ended {
        return ended(state, reason, tally, None);
    }
    if tally.error {
        return recoverable(state, tally);
    }
    if let Some(must_allow) = &stop.must_allow {
        return allowed_for_now(state, must_allow, tally);
    }
    if let Some(asked) = &state.checks.asks {
        return checks::waits_for_human(asked, tally);
    }
    if state.checks.claim.is_some() {
        return checks::checking(state, now, stop, tally);
    }
    let by_check = std::mem::take(&mut state.checks.advanced) && tally.completed.is_empty();
    if !tally.completed.is_empty() || by_subagent || by_check {
        return advanced(state, stop, tally, by_check);
    }
    not_complete(state, now, stop, tally)
}

/// The run is over; `passed` says what the checks said about the claim.
pub(super) fn ended(
    state: &State,
    reason: ExitReason,
    tally: StopTally,
    passed: Option<&str>,
) -> Outcome {
    let (rule, summary, because, next) = match reason {
        ExitReason::AutoCompleteSignal => {
            let finish = state.setup.pipeline.finish.as_deref().unwrap_or_default();
            let because = match &state.progress.left_out[..] {
                [] => format!("the agent reported {finish}"),
                [phase] => {
                    format!("the agent reported {finish}, and not that phase {phase} is complete")
                }
                phases => format!(
                    "the agent reported {finish}, and not that phases {} are complete",
                    listed(phases, phases.len())
                ),
            };
            let summary = "Let the agent stop: the run is complete".to_owned();
            (Rule::AutoComplete, summary, because, "nothing to do".to_owned())
        }
        ExitReason::CriticalError => {
            let phase = state.closing.failed_in.as_deref().unwrap_or(&state.progress.phase);
            let error = state.closing.last_error.as_ref().map_or("", |error| &error.message);
            (
                Rule::CriticalError,
                format!("Let the agent stop: the run failed in phase {phase}"),
                format!("the agent reported an error from which it cannot recover: {error}"),
                format!("fix the cause, then `aldis auto resume` continues phase {phase}"),
            )
        }
        ExitReason::AllPhasesComplete
        | ExitReason::MaxIterationsReached
        | ExitReason::StaleState
        | ExitReason::UserCancelled => (
            Rule::AllPhasesComplete,
            "Let the agent stop: all phases are complete".to_owned(),
            tally.completed_by(),
            "nothing to do".to_owned(),
        ),
    };
    let because = match passed {
        Some(passed) => format!("{because}, and {passed}"),
        None => because,
    };
    Outcome::allowed(rule, summary).seen(tally.evidence).because(because).next(next)
}

/// Rule 6: the agent needs help and says so.
fn recoverable(state: &State, tally: StopTally) -> Outcome {
    let error = state.closing.last_error.as_ref().map_or("", |error| &error.message);
    let summary =
        format!("Let the agent stop: it reported an error in phase {}", state.progress.phase);
    Outcome::allowed(Rule::RecoverableError, summary)
        .seen(tally.evidence)
        .because(format!("{error}; the agent can recover, so {NOT_COUNTED}"))
        .next("fix the cause and send a prompt: the run is still active")
}

fn allowed_for_now(state: &State, must_allow: &MustAllow, tally: StopTally) -> Outcome {
    let (cause, detail) = match must_allow {
        MustAllow::Aborted => ("the user interrupted it", String::new()),
        MustAllow::Background { what } => {
            ("it waits for background work", format!("still running: {what}; "))
        }
        MustAllow::Failed { what } => {
            ("the host reported an error", format!("the host reported `{what}`; "))
        }
        MustAllow::Late => (
            "it had stopped before the server answered",
            "the stop was delivered later; ".to_owned(),
        ),
        MustAllow::Question => ("it waits for the user's answer", String::new()),
    };
    let mut because = format!("{detail}{NOT_COUNTED}");
    let mut summary = format!("Let the agent stop for now: {cause}");
    if !tally.completed.is_empty() {
        summary = format!("{}. {summary}", complete_phases(&tally.phases()));
        because = format!("{}; {because}", tally.completed_by());
    }
    Outcome::allowed(Rule::AllowedForNow, summary).seen(tally.evidence).because(because).next(
        format!("the run is still active: the next turn continues phase {}", state.progress.phase),
    )
}

/// Rule 4: the agent continues with the next phase.
fn advanced(state: &mut State, stop: &Stop, tally: StopTally, by_check: bool) -> Outcome {
    let (complete, by) = if by_check {
        let complete = "The checks of the previous phase passed".to_owned();
        (complete, "the agent was not told yet".to_owned())
    } else if tally.completed.is_empty() {
        let complete = "A sub-agent completed the previous phase".to_owned();
        (complete, "the main agent was not told yet".to_owned())
    } else {
        (complete_phases(&tally.phases()), tally.completed_by())
    };
    let next = state.progress.phase.clone();
    if state.setup.config.after_transition == AfterTransition::Stop {
        let summary = format!("{complete}. Let the agent stop");
        return Outcome::allowed(Rule::StoppedAfterPhase, summary)
            .seen(tally.evidence)
            .because(format!("{by}; `after_transition` is `stop`"))
            .next(format!("the next prompt starts phase {next}"));
    }
    if !state.block_limit.may_block(stop.cap) {
        return capped(state, stop, tally);
    }
    let reason = prompts::start(state);
    given(state, &reason);
    let summary = format!("{complete}. Kept the agent working on phase {next}");
    Outcome::decided(Rule::PhaseComplete, summary)
        .seen(tally.evidence)
        .because(by)
        .next(format!("the agent gets the prompt of phase {next}; `aldis auto stop` ends the run"))
        .with([Effect::Block { reason }, Effect::WriteView])
}

/// The limit of blocked stops in a row is reached: the agent is let go before the host does it.
fn capped(state: &State, stop: &Stop, tally: StopTally) -> Outcome {
    let host = match (&*stop.host_name, &*stop.host) {
        ("", "") => "the host",
        ("", host) | (host, _) => host,
    };
    let cause = match stop.cap.limit {
        Some(limit) => {
            format!("{host} allows only {} in a row", counted(limit, "blocked stop"))
        }
        None => {
            let limit = super::DEFAULT_BLOCK_LIMIT;
            format!("{limit} stops in a row were blocked without a tool call or a completed phase")
        }
    };
    let summary = format!("Let the agent stop: {cause}. The run is paused, not finished");
    let (because, evidence) = missing(state, tally.evidence);
    Outcome::allowed(Rule::Capped, summary).seen(evidence).because(because).next(format!(
        "send a prompt or run `aldis auto resume` to continue phase {}",
        state.progress.phase
    ))
}

/// Rule 7: the phase is not complete.
fn not_complete(state: &mut State, now: Timestamp, stop: &Stop, tally: StopTally) -> Outcome {
    if state.progress.iteration >= state.setup.max_iterations {
        return used_up(state, now, tally);
    }
    if !state.block_limit.may_block(stop.cap) {
        return capped(state, stop, tally);
    }
    state.progress.iteration += 1;
    let misses: Vec<_> = eligibility::misses(&stop.findings).collect();
    let feedback = feedback(state, &misses, &tally.refused);
    let refused = state.checks.refused.take();
    let reason = match &refused {
        Some(refused) => prompts::refused(state, &refused.feedback),
        None => prompts::continuation(state, &feedback),
    };
    given(state, &reason);
    let mut because = match refused {
        Some(refused) => format!("the last claim was refused: {}", refused.because),
        None => unreported(state),
    };
    for refused in &tally.refused {
        let (named, refusal) = (refused.named(), refused.refusal);
        because = match refusal {
            Refusal::RoleNotAllowed => {
                format!("{because}; ignored {named}: only the main agent may report it")
            }
            _ => format!("{because}; {named} did not count: {}", refusal.as_str()),
        };
    }
    let summary = format!("Blocked the stop: phase {} is not complete", state.progress.phase);
    Outcome::decided(Rule::Blocked, summary)
        .seen(tally.evidence)
        .because(because)
        .next("the agent was told what is missing; `aldis auto stop` ends the run")
        .with([Effect::Block { reason }, Effect::WriteView])
}

fn used_up(state: &mut State, now: Timestamp, tally: StopTally) -> Outcome {
    let (phase, limit) = (state.progress.phase.clone(), state.setup.max_iterations);
    let (because, evidence) = missing(state, tally.evidence);
    state.end(now, ExitReason::MaxIterationsReached);
    let (used, new) = match limit {
        1 => ("the only iteration".to_owned(), "a new iteration".to_owned()),
        limit => (format!("all {limit} iterations"), format!("{limit} new iterations")),
    };
    let verb = if limit == 1 { "is" } else { "are" };
    let summary =
        format!("Let the agent stop: the run failed, {used} of phase {phase} {verb} used up");
    Outcome::allowed(Rule::IterationsUsedUp, summary)
        .seen(evidence)
        .because(because)
        .next(format!("`aldis auto resume` continues phase {phase} with {new}"))
}

/// Says which signal was not reported.
fn unreported(state: &State) -> String {
    format!("no {} since the phase began ({})", state.expected(), state.clock.phase_started_at)
}

/// Says what was missing when the agent was let go: the last claim that did not count and why. That
/// claim comes first in the evidence.
pub(super) fn missing(state: &State, mut evidence: Vec<Evidence>) -> (String, Vec<Evidence>) {
    let unreported = unreported(state);
    let Some(claim) = &state.last_refused else { return (unreported, evidence) };
    evidence.retain(|known| known != claim);
    evidence.insert(0, claim.clone());
    let name = claim.name.as_deref().unwrap_or("a signal");
    let reason = claim.reason.as_deref().unwrap_or("refused");
    (format!("{unreported}; the last claim, {name}, did not count: {reason}"), evidence)
}

/// Records that the agent got a prompt, with the messages that waited for it.
pub(super) fn given(state: &mut State, prompt: &str) {
    state.handover.prompt_pending = false;
    state.handover.human_messages.clear();
    state.block_limit.last_prompt = Some(digest(prompt.trim()));
}

/// What the agent should know beside the form of the signal. The same explanation is given twice.
fn feedback<'s>(
    state: &mut State,
    misses: &[&'s Miss],
    refused: &'s [RefusedSignal],
) -> Feedback<'s> {
    let mut feedback = Feedback { refused, ..Feedback::default() };
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
