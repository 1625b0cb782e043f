//! Waits that end by themselves: for a rate limit, and between a crash and the next attempt. Neither
//! uses up an iteration, and waiting is not stagnation.

use std::time::Duration;

use super::ending::CONTINUE;
use super::event::{AgentExit, Effect, Notice};
use super::rule::Rule;
use super::state::{Ending, Outcome, ServiceLimit, State, Status};
use crate::Evidence;
use crate::words::{counted, duration};

/// How long a limit is waited for. The longest that services have is a week.
const LIMIT_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);
/// The longest pause between two attempts after crashes, in seconds.
const CRASH_WAIT_MAX: u64 = 15 * 60;

impl State {
    /// Waits for a limit, then repeats the iteration.
    pub(super) fn wait_for_limit(&mut self, limit: &ServiceLimit) -> Outcome {
        let now = self.now();
        self.counts.limit_waits += 1;
        let most = self.start.config.max_limit_waits;
        if self.counts.limit_waits > most {
            let waits = counted(most, "wait");
            let decided = self
                .decided(
                    Rule::LimitWaitsUsedUp,
                    format!("Timed out: the service still refuses after {waits} in a row"),
                )
                .because(message(limit))
                .next(format!("continue when the service works again: {CONTINUE}"));
            return self.finish(Ending::TimedOut, decided);
        }
        let pause = Duration::from_secs(self.start.config.limit_wait);
        let until = limit.until.filter(|until| *until > now).unwrap_or_else(|| now.after(pause));
        let until = until.min(now.after(LIMIT_MAX));
        self.status = Status::Limited { until };
        self.pause_clocks(now);
        let left = duration(until.since(now).as_secs());
        let iteration = self.iteration;
        let text = format!("The service refuses to work for now. Retrying at {until} (in {left}).");
        let summary = format!("Waiting for the service: retrying at {until} (in {left})");
        self.decided(Rule::LimitWait, summary)
            .because(message(limit))
            .next(format!("nothing to do: iteration {iteration} is repeated and not counted twice"))
            .with([Effect::notice(Notice::RateLimit, text)])
    }
}

fn message(limit: &ServiceLimit) -> String {
    match limit.what.trim() {
        "" => "the service refuses to work for now".to_owned(),
        what => what.to_owned(),
    }
}

impl State {
    /// The host gave up, and waiting does not help.
    pub(super) fn end_host_failed(&mut self, what: String) -> Outcome {
        let decided = self
            .decided(Rule::HostFailed, "Stopped: the agent's host failed")
            .because(what)
            .seen(self.evidence())
            .next(format!(
                "waiting does not help: check login, account and request, then {CONTINUE}"
            ));
        self.finish(Ending::Crashed, decided)
    }

    /// The agent crashed, which outranks everything it reported. It is started again after a pause, but
    /// not for ever.
    pub(super) fn wait_after_crash(&mut self, exit: AgentExit) -> Outcome {
        let now = self.now();
        let clause = exit.clause();
        let because = format!("the agent {clause}; anything it reported is ignored");
        let seen: Vec<Evidence> = match exit.output.trim() {
            "" => self.evidence(),
            output => vec![Evidence::new("output", output)],
        };
        self.counts.crashes = self.counts.crashes.saturating_add(1);
        self.memory.last_crash = Some(exit);
        let crashes = self.counts.crashes;
        if crashes > self.start.config.max_crashes {
            let summary = match crashes {
                1 => "Crashed".to_owned(),
                _ => format!("Crashed {crashes} times in a row"),
            };
            let decided = self
                .decided(Rule::Crashed, summary)
                .because(because)
                .seen(seen)
                .next(format!("fix the cause, which its output may show, then {CONTINUE}"));
            return self.finish(Ending::Crashed, decided);
        }
        if let Some(ending) = self.exhausted() {
            return self.end_with(ending);
        }
        let wait = crash_wait(self.start.config.crash_wait, crashes);
        let until = now.after(Duration::from_secs(wait));
        self.status = Status::Backoff { until };
        self.pause_clocks(now);
        let left = self.start.config.max_crashes - crashes + 1;
        let left = counted(left, "more attempt");
        self.decided(
            Rule::CrashWait,
            format!("The agent crashed: restarting in {}", duration(wait)),
        )
        .because(because)
        .seen(seen)
        .next(format!("nothing to do: {left}; the next one gets the output of the crash"))
    }
}

/// Exponential back-off.
fn crash_wait(first: u64, crashes: u32) -> u64 {
    let factor = 1_u64.checked_shl(crashes.saturating_sub(1)).unwrap_or(u64::MAX);
    first.saturating_mul(factor).min(CRASH_WAIT_MAX.max(first))
}

impl State {
    /// Whether the run waits for something that passes.
    pub(super) fn waits_by_itself(&self) -> bool {
        matches!(self.status, Status::Limited { .. } | Status::Backoff { .. })
    }

    /// What the run waits for, as a clause.
    pub(super) fn waiting(&self) -> Option<String> {
        match (&self.status, &self.question) {
            (Status::Limited { until }, _) => Some(format!(
                "the run waits for the service until {until}; `aldis resume` tries at once"
            )),
            (Status::Backoff { until }, _) => {
                Some(format!("the agent starts again at {until}; `aldis resume` starts it at once"))
            }
            (Status::Asking, Some(question)) => {
                Some(format!("the run waits for an answer: `aldis answer {} TEXT`", question.id))
            }
            _ => None,
        }
    }

    /// A wait is over: the iteration is repeated.
    pub(super) fn end_wait(&mut self, because: &str) -> Outcome {
        let rule = match self.status {
            Status::Backoff { .. } => Rule::CrashWaitOver,
            _ => Rule::LimitOver,
        };
        self.resume_clocks();
        let started = self.start_attempt();
        self.decided(rule, format!("Repeating iteration {}", self.iteration))
            .because(because)
            .next("nothing to do; `aldis abort` ends the run")
            .with([started])
    }
}
