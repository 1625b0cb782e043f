//! Waits that end by themselves: for a rate limit, and between a crash and the next attempt. Neither
//! uses up an iteration, and waiting is not stagnation.

use std::time::Duration;

use super::ending::{CONTINUE, ended, evidence, finish};
use super::event::{AgentExit, Effect, Notice};
use super::rule::Rule;
use super::state::{Ending, Outcome, ServiceLimit, State, Status};
use super::verdict::{exhausted, start};
use crate::Evidence;
use crate::words::{counted, duration};
use aldis_signal::time::Timestamp;

/// How long a limit is waited for. The longest that services have is a week.
const LIMIT_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);
/// The longest pause between two attempts after crashes, in seconds.
const CRASH_WAIT_MAX: u64 = 15 * 60;

/// Waits for a limit, then repeats the iteration.
pub(super) fn limited(state: &mut State, now: Timestamp, limit: &ServiceLimit) -> Outcome {
    state.limit_waits += 1;
    let most = state.config.max_limit_waits;
    if state.limit_waits > most {
        let waits = counted(most, "wait");
        let decision = state
            .decision(
                Rule::LimitWaitsUsedUp,
                format!("Timed out: still rate limited after {waits} in a row"),
            )
            .because(message(limit))
            .next(format!("continue when the service works again: {CONTINUE}"));
        return finish(state, Ending::TimedOut, decision, Vec::new());
    }
    let pause = Duration::from_secs(state.config.limit_wait);
    let until = limit.until.filter(|until| *until > now).unwrap_or_else(|| now.after(pause));
    let until = until.min(now.after(LIMIT_MAX));
    state.status = Status::Limited { until };
    state.pause_clocks(now);
    let left = duration(until.since(now).as_secs());
    let iteration = state.iteration;
    let decision = state
        .decision(Rule::LimitWait, format!("Rate limited: retrying at {until} (in {left})"))
        .because(message(limit))
        .next(format!("nothing to do: iteration {iteration} is repeated and not counted twice"));
    let text = format!("Rate limited by the service. Retrying at {until} (in {left}).");
    Outcome::decided([Effect::Notice { notice: Notice::RateLimit, text }], decision)
}

fn message(limit: &ServiceLimit) -> String {
    match limit.what.trim() {
        "" => "the service refuses to work for now".to_owned(),
        what => what.to_owned(),
    }
}

/// The host gave up, and waiting does not help.
pub(super) fn host_failed(state: &mut State, what: String) -> Outcome {
    let decision = state
        .decision(Rule::HostFailed, "Stopped: the agent's host failed")
        .because(what)
        .seen(evidence(&state.signals))
        .next(format!("waiting does not help: check login, account and request, then {CONTINUE}"));
    finish(state, Ending::Crashed, decision, Vec::new())
}

/// The agent crashed, which outranks everything it reported. It is started again after a pause, but
/// not for ever.
pub(super) fn crashed(state: &mut State, now: Timestamp, exit: AgentExit) -> Outcome {
    let clause = exit.clause();
    let because = format!("the agent {clause}; anything it reported is ignored");
    let seen: Vec<Evidence> = match exit.output.trim() {
        "" => evidence(&state.signals),
        output => {
            let (what, quote) = ("output".to_owned(), output.to_owned());
            vec![Evidence { what, quote, ..Evidence::default() }]
        }
    };
    state.crashes = state.crashes.saturating_add(1);
    state.last_crash = Some(exit);
    let crashes = state.crashes;
    if crashes > state.config.max_crashes {
        let summary = match crashes {
            1 => "Crashed".to_owned(),
            _ => format!("Crashed {crashes} times in a row"),
        };
        let decision = state
            .decision(Rule::Crashed, summary)
            .because(because)
            .seen(seen)
            .next(format!("fix the cause, which its output may show, then {CONTINUE}"));
        return finish(state, Ending::Crashed, decision, Vec::new());
    }
    if let Some(ending) = exhausted(state, now) {
        let decision = ended(state, ending);
        return finish(state, ending, decision, Vec::new());
    }
    let wait = crash_wait(state.config.crash_wait, crashes);
    let until = now.after(Duration::from_secs(wait));
    state.status = Status::Backoff { until };
    state.pause_clocks(now);
    let left = state.config.max_crashes - crashes + 1;
    let left = counted(left, "more attempt");
    let decision = state
        .decision(Rule::CrashWait, format!("The agent crashed: restarting in {}", duration(wait)))
        .because(because)
        .seen(seen)
        .next(format!("nothing to do: {left}; the next one gets the output of the crash"));
    Outcome::decided([], decision)
}

/// Exponential back-off.
fn crash_wait(first: u64, crashes: u32) -> u64 {
    let factor = 1_u64.checked_shl(crashes.saturating_sub(1)).unwrap_or(u64::MAX);
    first.saturating_mul(factor).min(CRASH_WAIT_MAX.max(first))
}

/// A wait is over: the iteration is repeated.
pub(super) fn over(state: &mut State, now: Timestamp) -> Outcome {
    let (rule, because) = match state.status {
        Status::Backoff { .. } => (Rule::CrashWaitOver, "the pause after the crash is over"),
        _ => (Rule::LimitOver, "the wait for the rate limit is over"),
    };
    state.resume_clocks(now);
    let mut effects = Vec::new();
    start(state, now, &mut effects);
    let decision = state
        .decision(rule, format!("Repeating iteration {}", state.iteration))
        .because(because)
        .next("nothing to do; `aldis abort` ends the run");
    Outcome::decided(effects, decision)
}
