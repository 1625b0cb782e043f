//! How a run begins, and how it continues after a crash of ours or after its end.

use super::config::Config;
use super::ending::CONTINUE;
use super::event::Effect;
use super::rule::Rule;
use super::state::{Ending, Outcome, State, Status};
use crate::stagnation::{Monitor, Observation};
use aldis_signal::time::Timestamp;

impl State {
    pub(super) fn begin(&mut self) -> Outcome {
        match self.status {
            Status::Ready if self.start.config.proof.is_active() => self.prepare(),
            Status::Ready => self.next_iteration("the run begins", Vec::new()),
            _ => Outcome::nothing(),
        }
    }

    /// The agent was started. Stored at once: after a crash of ours somebody must find it.
    pub(super) fn on_launch(&mut self, agent: &str) -> Outcome {
        let concluded = self.conclude_without_look();
        self.agent = Some(agent.to_owned());
        let (iteration, most) = (self.iteration, self.start.config.max_iterations);
        let summary = format!("The agent runs (iteration {iteration} of {most})");
        let started = self
            .decided(Rule::AgentStarted, summary)
            .because("its process was started")
            .next("nothing to do; `aldis abort` ends the run");
        concluded.then(started)
    }

    /// The agent could not be started. Trying again does not help.
    pub(super) fn on_failed_launch(&mut self, what: &str) -> Outcome {
        if self.status != Status::Working {
            return Outcome::nothing();
        }
        self.resume_clocks();
        let decided = self
            .decided(Rule::AgentNotStarted, "Stopped: the agent could not be started")
            .because(what)
            .next(format!("install the program or correct the command, then {CONTINUE}"));
        self.finish(Ending::Crashed, decided)
    }

    /// Continues where the run was, with the same iteration: what a lost agent did not report, it never
    /// reported. `before` is when the last event came: nobody worked since.
    pub(super) fn recovered(&mut self, before: Option<Timestamp>) -> Outcome {
        let now = self.now();
        self.pause_clocks(before.unwrap_or(now));
        let waits = matches!(
            self.status,
            Status::Limited { .. } | Status::Backoff { .. } | Status::Asking | Status::Preparing
        );
        if !waits {
            self.resume_clocks();
        }
        // A run that was suspended is taken over by a human.
        if matches!(self.status, Status::Paused { .. }) {
            self.monitor.observe(now, &Observation::Human);
        }
        let counters = self.counters();
        let recovered = |next: &str| {
            Outcome::nothing()
                .decide(Rule::Recovered, "A new supervisor took over", counters.clone())
                .because("the run had no living supervisor")
                .next(next)
        };
        let decided = match &self.status {
            Status::Ending { with } if with.is_some() => *with,
            // What the agent cost may be known although its end was not noticed.
            Status::Working | Status::Ending { .. } | Status::Paused { .. } => {
                self.is_over_budget().then_some(Ending::OverBudget)
            }
            _ => None,
        };
        if let Some(ending) = decided {
            let taken_over = recovered("the run ends, as was decided before");
            return taken_over.then(self.end_with(ending));
        }
        match &self.status {
            Status::Ready => self.begin(),
            Status::Working | Status::Ending { .. } | Status::Paused { .. } => {
                let started = self.start_attempt();
                recovered("the iteration is repeated").with([started])
            }
            Status::Looking => recovered("the work tree is inspected again").with([Effect::Look]),
            Status::Checking | Status::Preparing => self.check_again(recovered),
            // A decision all the same: an event without one is taken again after somebody else's step.
            Status::Limited { .. } | Status::Backoff { .. } | Status::Asking => {
                recovered(&self.waiting().unwrap_or_default())
            }
            Status::Ended { .. } => Outcome::nothing(),
        }
    }

    /// Reopens a run that ended without success: with the same iteration if it ended within one, with
    /// the next otherwise. The cost so far stays.
    pub(super) fn reopen(&mut self, config: &Config) -> Outcome {
        let now = self.now();
        let concluded = self.conclude_without_look();
        match self.status {
            Status::Ended { ending: Ending::Done } => return concluded,
            // A human who reopens a run does not want to wait for the pause after a crash.
            Status::Ended { .. } | Status::Backoff { .. } => {}
            _ => return concluded,
        }
        let other_checks = self.start.config.proof != config.proof;
        self.start.config.clone_from(config);
        let repeats = self.iteration_unfinished || matches!(self.status, Status::Backoff { .. });
        self.monitor = Monitor::new(now, self.start.config.stagnation.clone());
        self.clock.worked_before_ms = self.worked(now);
        self.clock.started_at = now;
        (self.clock.waited_ms, self.clock.waiting_since, self.clock.paused_at) = (0, None, None);
        (self.counts.limit_waits, self.counts.crashes) = (0, 0);
        self.memory.denials.clear();
        let mut outcome = if self.is_accepted() {
            self.finish_accepted()
        } else if self.question.is_some() {
            self.status = Status::Asking;
            self.pause_clocks(now);
            self.decided(Rule::QuestionReopened, "Reopened: still waiting for an answer")
                .because("a human reopened the run")
                .next("answer the question")
        } else if self.start.config.proof.is_active() && (other_checks || self.iteration == 0) {
            self.iteration_unfinished = repeats;
            self.prepare()
        } else {
            self.work_on(repeats)
        };
        // The end that was concluded is taken back in the same step: nothing of it is performed.
        outcome.decisions.splice(0..0, concluded.decisions);
        outcome
    }

    /// Repeats the iteration of a run that was reopened, or starts the next one.
    pub(super) fn work_on(&mut self, repeats: bool) -> Outcome {
        if !repeats {
            return self.next_iteration("a human reopened the run", Vec::new());
        }
        let started = self.start_attempt();
        self.decided(Rule::Reopened, format!("Reopened: repeating iteration {}", self.iteration))
            .because("a human reopened the run")
            .next("nothing to do; `aldis abort` ends the run")
            .with([started])
    }

    /// Returns the limit that a run that ended would reach at once if it continued with `config`.
    pub fn reached(&self, config: &Config) -> Option<Ending> {
        let used = self.cost().reaches(3, config.max_tokens, config.max_micro_dollars);
        let needs_iteration = !self.iteration_unfinished && self.question.is_none();
        if needs_iteration && self.iteration >= config.max_iterations {
            Some(Ending::IterationsUsedUp)
        } else {
            used.contains(&true).then_some(Ending::OverBudget)
        }
    }
}
