//! A stop of the main agent or of a sub-agent: whose it is, whether it is judged, and when.

use std::time::Duration;

use super::apply::apply;
use super::checks;
use super::config::ExitReason;
use super::decide::{decide, missing};
use super::eligibility;
use super::event::{PhaseFinding, Stop};
use super::rule::Rule;
use super::state::{Outcome, State};
use super::tally::StopTally;
use crate::words::{duration, listed};
use crate::{Evidence, Refusal};
use aldis_signal::time::Timestamp;

/// How many findings wait for a paused run to be resumed; the last ones.
const HELD_MAX: usize = 32;

/// What a sub-agent's stop brings.
pub(super) struct Subagent<'e> {
    pub(super) agent: Option<&'e str>,
    pub(super) findings: &'e [PhaseFinding],
    pub(super) fresh_token: &'e Option<String>,
}

impl Subagent<'_> {
    fn named(&self) -> String {
        self.agent.map_or_else(|| "A sub-agent".to_owned(), |agent| format!("Sub-agent {agent}"))
    }
}

/// Judges a stop of the main agent.
pub(super) fn on_stop(state: &mut State, now: Timestamp, stop: &Stop) -> Outcome {
    // Rules 1 and 2: nobody else's session is touched.
    if !state.is_live() || !may_bind(state, stop) {
        return Outcome::untouched();
    }
    if state.paused {
        return paused(state, now, stop);
    }
    state.session.clone_from(&stop.session);
    // Rule 3.
    if state.setup.pipeline.phase(&state.progress.phase).is_none() {
        return unknown_phase(state, now);
    }
    if is_stale(state, now, stop) {
        return stale(state, now);
    }
    state.block_limit.observe(stop);
    let stop = with_response(state, stop);
    let stop = &with_held(state, stop);
    let fresh_token = stop.fresh_token.as_deref();
    let tally = apply(state, now, &stop.findings, fresh_token, StopTally::default());
    state.touch(now);
    state.clock.last_checked = Some(now);
    state.reading.read_until = Some(now);
    if stop.read_cursor.is_some() {
        state.reading.read_cursor.clone_from(&stop.read_cursor);
    }
    if stop.token_leaked && tally.completed.is_empty() && tally.ended.is_none() {
        state.rotate_token(fresh_token);
    }
    remember_refused(state, stop, &tally);
    decide(state, now, stop, tally)
}

/// Keeps the last claim that did not count, for whoever asks why the run never got further.
fn remember_refused(state: &mut State, stop: &Stop, tally: &StopTally) {
    let miss = eligibility::misses(&stop.findings).last();
    let last = miss.map(Evidence::near_miss).or_else(|| tally.last_refused.clone());
    if state.is_live() && last.is_some() {
        state.last_refused = last;
    }
}

/// A paused run lets its agent stop. What the agent reports is judged at the first stop after the
/// run is resumed: `read_cursor` stays where it is, so the transcript is then read from there.
/// Signals that no transcript repeats are held.
fn paused(state: &mut State, now: Timestamp, stop: &Stop) -> Outcome {
    // A paused run takes no session.
    if state.session.is_none() {
        return Outcome::untouched();
    }
    state.touch(now);
    let stop = with_response(state, stop);
    if stop.read_cursor.is_none() {
        hold(state, stop.findings.iter().filter(|it| it.signal().is_some()).cloned().collect());
    }
    let closing = Evidence::new("said", stop.closing_text);
    let summary = "Let the agent stop: the run is paused";
    Outcome::allowed(Rule::AllowedWhilePaused, summary)
        .seen([closing])
        .because(
            "a human paused the run; what the agent reports is judged at its first stop after the \
             run is resumed",
        )
        .next(format!("`aldis resume` continues phase {}", state.progress.phase))
}

/// Keeps findings until the run is resumed.
fn hold(state: &mut State, findings: Vec<PhaseFinding>) {
    append(&mut state.reading.held_findings, findings);
    let surplus = state.reading.held_findings.len().saturating_sub(HELD_MAX);
    state.reading.held_findings.drain(..surplus);
}

/// Appends findings of later messages. Each event counts its messages from 0.
fn append(earlier: &mut Vec<PhaseFinding>, later: Vec<PhaseFinding>) {
    let messages = earlier.iter().filter_map(|finding| Some(finding.signal()?.message));
    let offset = messages.max().map_or(0, |last| last.saturating_add(1));
    earlier.extend(later.into_iter().map(|mut finding| {
        if let PhaseFinding::Signal(signal) = &mut finding {
            signal.message = signal.message.saturating_add(offset);
        }
        finding
    }));
}

/// Puts what was held while the run was paused in front.
fn with_held(state: &mut State, mut stop: Stop) -> Stop {
    let mut findings = std::mem::take(&mut state.reading.held_findings);
    append(&mut findings, stop.findings);
    stop.findings = findings;
    stop
}

/// Adds what the host reported apart from the stop, where the stop itself has no text.
fn with_response(state: &mut State, stop: &Stop) -> Stop {
    let mut stop = stop.clone();
    if let Some(response) = state.reading.pending_response.take()
        && Some(&response.session) == stop.session.as_ref()
        && stop.closing_text.is_empty()
    {
        stop.findings.extend(response.findings);
        stop.closing_text = response.closing_text;
    }
    stop
}

/// Takes what a sub-agent reported. Never blocks, counts, binds or goes stale.
pub(super) fn on_subagent_stop(
    state: &mut State,
    now: Timestamp,
    session: Option<&str>,
    stopped: &Subagent<'_>,
) -> Outcome {
    if !state.is_live()
        || !state.is_ours(session)
        || state.setup.pipeline.phase(&state.progress.phase).is_none()
    {
        return Outcome::untouched();
    }
    state.touch(now);
    if state.paused {
        return paused_subagent(state, stopped);
    }
    let (tally, started) =
        (StopTally { of_subagent: true, ..StopTally::default() }, state.checks.started);
    let tally = apply(state, now, stopped.findings, stopped.fresh_token.as_deref(), tally);
    let ignored = ignored(&tally);
    if let Some(claim) = state.checks.claim.as_ref().filter(|it| it.check > started) {
        return checks::claimed_by_subagent(claim, &stopped.named(), tally);
    }
    if let Some(names) = &ignored
        && tally.completed.is_empty()
    {
        Outcome::allowed(Rule::SubagentSignalIgnored, format!("Ignored {names}"))
            .seen(tally.evidence)
            .because("a sub-agent may complete its phase; only the main agent may report this")
            .next("nothing to do")
    } else if tally.completed.is_empty() {
        let summary = format!("{} stopped without completing a phase", stopped.named());
        Outcome::allowed(Rule::SubagentStopped, summary)
            .seen(tally.evidence)
            .because("it reported no signal that completes the phase")
            .next("nothing to do")
    } else {
        state.handover.advanced_by_subagent = true;
        let mut because = tally.completed_by();
        if let Some(names) = ignored {
            because = format!("{because}; ignored {names}: only the main agent may report it");
        }
        let summary = complete_phases(&tally.phases());
        Outcome::allowed(Rule::SubagentCompletedPhase, summary)
            .seen(tally.evidence)
            .because(because)
            .next("the main agent is told at its next stop")
    }
}

/// Holds what a sub-agent reported. One without an id is left to the transcript: its signal could
/// not be recognised there, and would count twice.
fn paused_subagent(state: &mut State, stopped: &Subagent<'_>) -> Outcome {
    let known = |it: &&PhaseFinding| it.signal().is_some_and(|signal| signal.agent.is_some());
    hold(state, stopped.findings.iter().filter(known).cloned().collect());
    let summary = format!("{} stopped while the run is paused", stopped.named());
    Outcome::allowed(Rule::SubagentStopped, summary)
        .because("its signals are judged at the first stop after the run is resumed")
        .next(format!("`aldis resume` continues phase {}", state.progress.phase))
}

/// Returns the signals that only the main agent may report, if there are any.
fn ignored(tally: &StopTally) -> Option<String> {
    let refused = tally.refused.iter().filter(|it| it.refusal == Refusal::RoleNotAllowed);
    let names: Vec<String> = refused.map(|refused| refused.named()).collect();
    (!names.is_empty()).then(|| listed(&names, names.len()))
}

/// Returns `Phase qa is complete`, or the same of several.
pub(super) fn complete_phases(phases: &[&str]) -> String {
    match phases {
        [phase] => format!("Phase {phase} is complete"),
        phases => format!("Phases {} are complete", listed(phases, phases.len())),
    }
}

/// Whether the run belongs to this session, or may from now on.
fn may_bind(state: &State, stop: &Stop) -> bool {
    let Some(session) = &stop.session else { return false };
    if let Some(bound) = &state.session {
        return bound == session;
    }
    // A turn that began before the run did is about something else. The machine's own note of the
    // turn counts only for the bound session.
    match (stop.turn_began, state.clock.open_since) {
        (Some(began), Some(open)) => began >= open,
        _ => true,
    }
}

fn is_stale(state: &State, now: Timestamp, stop: &Stop) -> bool {
    let limit = Duration::from_secs(state.setup.config.stale_after);
    let (Some(_), Some(active)) = (state.clock.started_at, state.clock.last_activity) else {
        return true;
    };
    // A turn that continues began before the last activity.
    let same_turn = stop.turn.is_some() && stop.turn == state.block_limit.turn;
    if same_turn || stop.continued == Some(true) {
        return false;
    }
    // What was noted when the prompt arrived knows the inactivity before it, unless the host reports
    // a later turn whose prompt was never reported.
    let later = |began: Timestamp| state.clock.turn.as_ref().is_some_and(|turn| began > turn.began);
    if let Some(turn) = state.clock.turn.as_ref().filter(|_| !stop.turn_began.is_some_and(later)) {
        return turn.active_before.is_some_and(|before| turn.began.since(before) > limit);
    }
    let signalled = stop.findings.iter().any(|finding| finding.signal().is_some());
    match stop.turn_began {
        Some(began) => began.since(active) > limit,
        None => !signalled && now.since(active) > limit,
    }
}

fn unknown_phase(state: &mut State, now: Timestamp) -> Outcome {
    let message =
        format!("pipeline `{}` has no phase `{}`", state.setup.pipeline.name, state.progress.phase);
    state.note_error(now, Some("phase"), message.clone());
    state.clock.last_checked = Some(now);
    let summary = "Let the agent stop: the run is in an unknown phase";
    Outcome::allowed(Rule::UnknownPhase, summary)
        .because(message)
        .next("`aldis auto stop` ends the run; or add the phase to the pipeline")
}

fn stale(state: &mut State, now: Timestamp) -> Outcome {
    let idle = match state.clock.last_activity.filter(|_| state.clock.started_at.is_some()) {
        Some(active) => {
            let limit = duration(state.setup.config.stale_after);
            format!("no activity for more than {limit} before this turn (last: {active})")
        }
        None => "the run's times are not readable".to_owned(),
    };
    let (because, evidence) = missing(state, Vec::new());
    state.end(now, ExitReason::StaleState);
    let summary = "Let the agent stop and ended the run: it is stale";
    Outcome::allowed(Rule::Stale, summary)
        .seen(evidence)
        .because(format!("{idle}; {because}"))
        .next(format!("`aldis auto resume` continues phase {}", state.progress.phase))
}
