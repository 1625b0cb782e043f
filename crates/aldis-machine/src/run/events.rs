//! What happens while an agent works.

use std::fmt::Write as _;

use super::ending::latest;
use super::event::{Effect, Notice, Usage};
use super::progress::{PROGRESS_INTERVAL, ProgressBatch};
use super::rule::Rule;
use super::signal::RunSignal;
use super::state::{Denial, Ending, Outcome, ServiceLimit, State, Status};
use crate::stagnation::Observation;
use crate::trust;
use crate::words::{cut, duration, inline};
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// How many signals of one iteration are remembered.
const SIGNALS_MAX: usize = 64;
/// How many pieces of feedback there may be before near misses are no longer added.
const NEAR_MISSES_MAX: usize = 8;
/// How many denied permissions are remembered. The oldest gives way.
const DENIALS_MAX: usize = 16;
/// What follows a denial.
const SECOND_DENIAL: &str =
    "the agent gets this in its next prompt, and a second denial ends the run";
/// How much of a host's message is kept.
const MESSAGE_MAX: usize = 1_000;

impl State {
    /// The agent reported signals.
    pub(super) fn on_signals(&mut self, signals: &[RunSignal]) -> Outcome {
        self.on_reports(signals, (1, 1))
    }

    /// The agent reported progress, several times as one event.
    pub(super) fn on_progress(&mut self, batch: &ProgressBatch) -> Outcome {
        let latest = std::slice::from_ref(&batch.latest);
        self.on_reports(latest, (batch.count.max(1), batch.repeated.max(1)))
    }

    fn on_reports(&mut self, signals: &[RunSignal], (count, repeated): (u64, u64)) -> Outcome {
        let now = self.now();
        let Some(last) = signals.last().filter(|_| self.has_agent()) else {
            return Outcome::nothing();
        };
        self.host_works_again();
        let mut noteworthy = false;
        for signal in signals {
            noteworthy |= self.is_noteworthy(signal);
            self.take_signal(signal);
        }
        let observation = Observation::State {
            phase: self.reported.phase.clone().unwrap_or_default(),
            progress: self.reported.progress,
            iteration: self.attempt.reported_iteration.unwrap_or(self.iteration),
            fingerprint: self.trees.tree.fingerprint.clone(),
        };
        let times = u32::try_from(repeated).unwrap_or(u32::MAX);
        let change = self.monitor.observe_times(now, &observation, times);
        let mut outcome = Outcome::nothing();
        let recorded = self.reported.progress_recorded_at;
        if noteworthy || recorded.is_none_or(|at| now.since(at) >= PROGRESS_INTERVAL) {
            self.reported.progress_recorded_at = Some(now);
            outcome = self.report_of(last, count).seen(latest(signals));
        }
        match change {
            Some(change) => outcome.then(self.on_level_change(change)),
            None => outcome,
        }
    }

    /// Whether a signal says more than the last ones: not if it only moves a number within its phase,
    /// and not if it is an exact repetition. An agent can print a thousand of those in a second.
    fn is_noteworthy(&self, signal: &RunSignal) -> bool {
        let enters_phase = signal.phase.is_some() && signal.phase != self.reported.phase;
        let moves_number = signal.meaning == Meaning::Progress && !enters_phase;
        !moves_number && !self.attempt.signals.iter().any(|known| known.repeats(signal))
    }

    fn report_of(&self, signal: &RunSignal, count: u64) -> Outcome {
        let mut summary = format!("The agent reported {}", signal.name);
        if let Some(progress) = signal.progress {
            let _ = write!(summary, ": {progress} %");
        }
        if count > 1 {
            let _ = write!(summary, " ({count} reports)");
        }
        let because = trust::how(signal.via);
        let decides = !matches!(signal.meaning, Meaning::Progress | Meaning::Info);
        let next = if decides { "it counts when the agent stops" } else { "nothing to do" };
        self.decided(Rule::SignalReported, summary).because(because).next(next)
    }

    /// Takes over what a signal says.
    fn take_signal(&mut self, signal: &RunSignal) {
        let enters_phase = signal.phase.is_some() && signal.phase != self.reported.phase;
        if let Some(phase) = &signal.phase {
            self.reported.phase = Some(phase.clone());
        }
        self.attempt.reported_iteration = signal.iteration.or(self.attempt.reported_iteration);
        // The bar never goes backwards on an exit.
        let ends = matches!(signal.meaning, Meaning::Done | Meaning::Failed);
        if let Some(progress) = signal.progress {
            let least = self.reported.progress.filter(|_| ends).unwrap_or(0);
            self.reported.progress = Some(progress.max(least));
        }
        let implied = signal.phase_progress.filter(|_| enters_phase);
        if let Some(shown) = signal.progress.or(implied) {
            let least = self.reported.shown_progress.filter(|_| ends).unwrap_or(0);
            self.reported.shown_progress = Some(shown.max(least));
        }
        if signal.meaning == Meaning::Done {
            self.attempt.claimed_at = self.attempt.claimed_at.or_else(|| Some(self.now()));
        }
        remember(&mut self.attempt.signals, signal);
    }
}

/// Keeps a signal. Where there are too many, the oldest whose meaning came again in no weaker way gives
/// way: the last one of each meaning always stays.
fn remember(signals: &mut Vec<RunSignal>, signal: &RunSignal) {
    signals.push(signal.clone());
    if signals.len() > SIGNALS_MAX {
        let again = |at: usize| {
            let RunSignal { meaning, via, .. } = &signals[at];
            signals[at + 1..].iter().any(|later| later.meaning == *meaning && later.via >= *via)
        };
        if let Some(oldest) = (0..signals.len()).find(|at| again(*at)) {
            signals.remove(oldest);
        }
    }
}

impl State {
    /// A near miss is explained in the next prompt.
    pub(super) fn on_near_miss(&mut self, hint: &str) -> Outcome {
        if self.has_agent() {
            self.memory.last_near_miss = Some(cut(hint, MESSAGE_MAX).to_owned());
            let new = self.memory.feedback.len().saturating_sub(self.memory.feedback_given);
            if new < NEAR_MISSES_MAX {
                let lead = "Something in your output looked like a signal and does not count: ";
                self.add_remark(lead, hint);
            }
        }
        Outcome::nothing()
    }

    /// Work is evidence, whatever the agent reports.
    pub(super) fn on_activity(&mut self) -> Outcome {
        self.host_works_again();
        self.observe(&Observation::Evidence)
    }

    /// The host's own figures. They are totals of the attempt.
    pub(super) fn on_usage(&mut self, usage: Usage) -> Outcome {
        self.spending.spent_now = Usage {
            tokens: self.spending.spent_now.tokens.max(usage.tokens),
            micro_dollars: self.spending.spent_now.micro_dollars.max(usage.micro_dollars),
        };
        if self.is_over_budget() && self.status == Status::Working {
            let decided = self
                .decided(Rule::BudgetUsedUp, "Stopping the agent: the budget is used up")
                .because(self.budget_used())
                .next("the run ends when the agent has stopped");
            return self.stop_agent(Some(Ending::OverBudget), decided);
        }
        if self.uses_of_budget(2) && !std::mem::replace(&mut self.spending.budget_warned, true) {
            let text = format!("Two thirds of the budget are used: {}.", self.budget_used());
            return self
                .decided(Rule::BudgetWarning, "Warning: two thirds of the budget are used")
                .because(self.budget_used())
                .next("nothing to do yet")
                .with([Effect::notice(Notice::BudgetSoon, text)]);
        }
        Outcome::nothing()
    }

    /// The service refuses to work. What that means is decided when the process has ended.
    pub(super) fn on_limit(&mut self, what: &str, until: Option<Timestamp>) -> Outcome {
        if !self.has_agent() {
            return Outcome::nothing();
        }
        let until = until.or_else(|| self.attempt.limit.as_ref()?.until);
        self.attempt.limit = Some(ServiceLimit { until, what: cut(what, MESSAGE_MAX).to_owned() });
        self.decided(Rule::LimitReported, "The service refuses to work for now")
            .because(what)
            .next("when the agent has stopped, the run waits and repeats the iteration")
    }

    /// The host retries by itself: until its service works again, that is no stagnation. The limits of
    /// time run on.
    pub(super) fn on_retry(&mut self, what: &str) -> Outcome {
        if !self.has_agent() || std::mem::replace(&mut self.attempt.retrying, true) {
            return Outcome::nothing();
        }
        self.monitor.observe(self.now(), &Observation::Waiting);
        self.decided(Rule::HostRetrying, "The host retries after an error")
            .because(what)
            .next("nothing to do: the time until it works again does not count as missing progress")
    }

    fn host_works_again(&mut self) {
        if std::mem::take(&mut self.attempt.retrying) {
            self.monitor.observe(self.now(), &Observation::Awake);
        }
    }

    /// The host gave up. What that means is decided when the process has ended.
    pub(super) fn on_host_failure(&mut self, what: &str) -> Outcome {
        if !self.has_agent() {
            return Outcome::nothing();
        }
        self.attempt.host_error = Some(cut(what, MESSAGE_MAX).to_owned());
        self.decided(
            Rule::HostErrorReported,
            "The host reported an error that waiting does not fix",
        )
        .because(what)
        .next("the run ends when the agent has stopped")
    }

    /// The host denied a permission. An agent that is denied the same one again will not get any further
    /// without a human.
    pub(super) fn on_denial(&mut self, tool: &str, what: &str, cure: &str) -> Outcome {
        if !self.has_agent() {
            return Outcome::nothing();
        }
        let [tool, what, cure] =
            [tool, what, cure].map(|text| cut(text.trim(), MESSAGE_MAX).to_owned());
        let denied = match &*what {
            "" => tool.clone(),
            what => format!("{tool} {}", inline(what, MESSAGE_MAX)),
        };
        let known = self.memory.denials.iter().position(|it| it.tool == tool && it.what == what);
        let again = known.map(|at| self.memory.denials.remove(at)).is_some();
        if self.memory.denials.len() >= DENIALS_MAX {
            self.memory.denials.remove(0);
        }
        self.memory.denials.push(Denial { tool, what, cure: cure.clone() });
        let rest = format!(
            "{denied}. Do not try it again: find another way, or report that you are blocked."
        );
        self.add_remark("The host denied the permission to use ", &rest);
        if again && self.status == Status::Working {
            let decided = self
                .decided(
                    Rule::PermissionDeniedTwice,
                    "Stopping the agent: the host denied the same permission twice",
                )
                .because(denied)
                .next(self.how_to_allow());
            return self.stop_agent(Some(Ending::PermissionDenied), decided);
        }
        self.decided(Rule::PermissionDenied, "The host denied the agent a permission")
            .because(denied)
            .next(match &*cure {
                "" => SECOND_DENIAL.to_owned(),
                cure => format!("{SECOND_DENIAL}; then {cure}"),
            })
    }

    /// Time passed: limits, waits that are over, silence.
    pub(super) fn on_tick(&mut self) -> Outcome {
        match self.status {
            Status::Limited { until } if self.now() >= until => {
                self.end_wait("the wait for the service is over")
            }
            Status::Backoff { until } if self.now() >= until => {
                self.end_wait("the pause after the crash is over")
            }
            Status::Working => self.while_working(),
            Status::Paused { stagnated: true } => self.while_suspended(),
            _ => Outcome::nothing(),
        }
    }

    fn while_working(&mut self) -> Outcome {
        let over = |since: Timestamp, most: u64| self.now().since(since).as_secs() >= most;
        let grace = self.start.config.stagnation.grace_period;
        if self.is_out_of_time() {
            return self.stop_out_of_time();
        }
        if self.attempt.claimed_at.is_some_and(|claimed| over(claimed, grace)) {
            let decided = self
                .decided(
                    Rule::StillRunning,
                    "Stopping the agent: it claimed to be done and still runs",
                )
                .because(format!("it claimed to be done more than {} ago", duration(grace)))
                .next("its claim is checked when it has stopped");
            return self.stop_agent(None, decided);
        }
        let most = self.start.config.iteration_timeout;
        if over(self.clock.iteration_started_at, most) {
            let limit = duration(most);
            self.add_feedback(format!(
                "Your last iteration was stopped after {limit}. Work in smaller steps, and report \
                 your progress before you stop."
            ));
            let iteration = self.iteration;
            let decided = self
                .decided(
                    Rule::IterationTimeout,
                    format!("Stopping the agent: iteration {iteration} took too long"),
                )
                .because(format!("an iteration may take {limit}"))
                .next("the next iteration starts when it has stopped");
            return self.stop_agent(None, decided);
        }
        self.observe(&Observation::Tick)
    }

    /// An agent that is suspended for missing progress: the time of the run and the levels go on, so
    /// that a run that nobody looks after ends.
    fn while_suspended(&mut self) -> Outcome {
        if self.is_out_of_time() {
            return self.stop_out_of_time();
        }
        // 0.1.0 kept only since when it waited.
        let since = self.clock.paused_at.or(self.clock.waiting_since);
        if let (Some(since), Some(limit)) = (since, self.start.config.stagnation.pause_limit)
            && self.now().since(since).as_secs() >= limit
        {
            return self.on_expired_pause(limit);
        }
        self.observe(&Observation::Tick)
    }

    fn stop_out_of_time(&mut self) -> Outcome {
        let limit = duration(self.start.config.timeout);
        let decided = self
            .decided(Rule::TimedOut, "Stopping the agent: the time of the run is used up")
            .because(format!("the run may take {limit} in all"))
            .next("the run ends when the agent has stopped");
        self.stop_agent(Some(Ending::TimedOut), decided)
    }

    /// Asks the agent to stop.
    pub(super) fn stop_agent(&mut self, with: Option<Ending>, decided: Outcome) -> Outcome {
        let suspended = matches!(self.status, Status::Paused { .. });
        self.status = Status::Ending { with };
        self.attempt.stop_because = decided.decision().map(|decision| decision.because.clone());
        let grace = self.start.config.stagnation.grace_period;
        // A suspended process cannot act on the request.
        let first = suspended.then_some(Effect::Continue);
        decided.with(first).with([Effect::End { grace }])
    }
}
