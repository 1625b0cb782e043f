//! One supervised run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::event::{AgentExit, Effect, Event, Usage, WorkTree};
use super::parts::{Attempt, Clock, Counts, Memory, Reported, Spending, Trees};
use super::rule::Rule;
use super::signal::RunSignal;
use crate::Evidence;
use crate::accessors::accessors;
use crate::proof::Proof;
use crate::stagnation::{Monitor, Observation};
use aldis_signal::codes;
use aldis_signal::time::Timestamp;

/// How a run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The task.
    pub task: String,
    /// The dialect in which the agent reports.
    pub dialect: String,
    /// How to report in it, as every prompt ends.
    pub instructions: String,
    /// How the agent is started, in the driver's own form.
    #[serde(default)]
    pub launch: String,
    /// The limits.
    pub config: Config,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// Nothing was started yet.
    Ready,
    /// The agent works.
    Working,
    /// The agent was asked to stop.
    Ending {
        /// How the run ends once the agent has stopped; `None` if the run continues.
        with: Option<Ending>,
    },
    /// The iteration is over, and the work tree is inspected before anything is decided.
    Looking,
    /// The check of a claim runs.
    Checking,
    /// The files of the checks are pinned, and checks run, before the work starts.
    Preparing,
    /// The run waits for a rate limit.
    Limited {
        /// Until then.
        until: Timestamp,
    },
    /// The agent crashed, and the run waits before it starts it again.
    Backoff {
        /// Until then.
        until: Timestamp,
    },
    /// The run waits for an answer.
    Asking,
    /// The agent is suspended.
    Paused {
        /// Whether for missing progress; otherwise a human paused it.
        stagnated: bool,
    },
    /// The run has ended.
    Ended {
        /// How.
        ending: Ending,
    },
}

impl Status {
    /// Returns the stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Working => "working",
            Self::Ending { .. } => "ending",
            Self::Looking => "looking",
            Self::Checking => "checking",
            Self::Preparing => "preparing",
            Self::Limited { .. } => "limited",
            Self::Backoff { .. } => "backoff",
            Self::Asking => "asking",
            Self::Paused { .. } => "paused",
            Self::Ended { .. } => "ended",
        }
    }
}

codes! {
    /// How a run ended. The names are stable.
    pub enum Ending {
        /// The work is done, and verified where a check is configured.
        Done = "done",
        /// Something outside is missing.
        Blocked = "blocked",
        /// A human must answer first.
        NeedsHuman = "needs_human",
        /// The host denied the same permission twice.
        PermissionDenied = "permission_denied",
        /// The agent crashed, or could not be started.
        Crashed = "crashed",
        /// The agent gave up.
        Failed = "failed",
        /// Every iteration is used up.
        IterationsUsedUp = "iterations_used_up",
        /// The time is used up.
        TimedOut = "timed_out",
        /// The work made no progress.
        Stagnated = "stagnated",
        /// The tokens or the money are used up.
        OverBudget = "over_budget",
        /// A human ended it.
        Aborted = "aborted",
    }
}

impl Ending {
    /// Returns the exit code of the command.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Crashed | Self::Failed => 1,
            Self::Blocked | Self::NeedsHuman | Self::PermissionDenied => 3,
            Self::Stagnated | Self::TimedOut => 4,
            Self::IterationsUsedUp | Self::OverBudget => 5,
            Self::Aborted => 130,
        }
    }
}

/// A question to a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// The question.
    pub text: String,
    /// The answers that whoever asks suggests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What whoever asks would do without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// When it was asked.
    pub asked_at: Timestamp,
}

/// A question before it has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionDraft {
    /// The question.
    pub text: String,
    /// The answers that whoever asks suggests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What whoever asks would do without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl QuestionDraft {
    /// A question that suggests no answer.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The question under its name.
    pub(crate) fn named(self, id: &str, asked_at: Timestamp) -> Question {
        let Self { text, options, default } = self;
        Question { id: id.to_owned(), text, options, default, asked_at }
    }

    /// Says in one line which answers are suggested, if any are.
    pub(super) fn suggestion(&self) -> Option<String> {
        suggestion(&self.options, self.default.as_deref())
    }
}

/// Says in one line which answers to a question are suggested, if any are:
/// `options: keep, drop (default: keep)`.
pub fn suggestion(options: &[String], default: Option<&str>) -> Option<String> {
    let default = default.map(|default| format!("default: {default}"));
    match (options.is_empty(), default) {
        (true, default) => default,
        (false, None) => Some(format!("options: {}", options.join(", "))),
        (false, Some(default)) => Some(format!("options: {} ({default})", options.join(", "))),
    }
}

/// A refusal of the service to work for now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceLimit {
    /// When it will work again, where the host knows.
    pub until: Option<Timestamp>,
    /// The host's message.
    #[serde(default)]
    pub what: String,
}

/// A permission that the host denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool that the agent wanted to use.
    pub tool: String,
    /// What it wanted to do with it.
    pub what: String,
    /// How a human allows it, as a clause.
    pub cure: String,
}

/// The last claim to be done that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRefusal {
    /// The iteration that claimed it.
    pub iteration: u32,
    /// What was wrong with it, as a clause.
    pub because: String,
    /// What the agent reported, and the output of the check.
    pub evidence: Vec<Evidence>,
    /// What the agent was told about it. Prompts hold it until the agent claims to be done again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
}

/// A run: everything that decides what happens next. The aliases are the names that 0.1.0 stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    #[serde(flatten)]
    pub(super) start: Start,
    pub(super) status: Status,
    /// The current iteration, from 1.
    pub(super) iteration: u32,
    #[serde(flatten)]
    pub(super) clock: Clock,
    #[serde(flatten)]
    pub(super) reported: Reported,
    #[serde(flatten)]
    pub(super) attempt: Attempt,
    #[serde(flatten)]
    pub(super) memory: Memory,
    #[serde(flatten)]
    pub(super) counts: Counts,
    #[serde(flatten)]
    pub(super) spending: Spending,
    #[serde(flatten)]
    pub(super) trees: Trees,
    /// What is known about the checks.
    #[serde(default, skip_serializing_if = "Proof::is_empty")]
    pub(super) proof: Box<Proof>,
    /// The open question.
    pub(super) question: Option<Question>,
    /// The agent's process, in the driver's own form, while there is one.
    pub(super) agent: Option<String>,
    pub(super) last_exit: Option<AgentExit>,
    /// Whether the run ended within its iteration, which is then repeated when the run is reopened.
    #[serde(default, alias = "cut_off")]
    pub(super) iteration_unfinished: bool,
    pub(super) monitor: Monitor,
}

accessors! { State {
    /// Returns how the run began: its task, its dialect and its limits.
    setup: &Start = |it| &it.start;
    /// Returns where the run is.
    status: &Status = |it| &it.status;
    /// Returns the current iteration, from 1.
    iteration: u32 = |it| it.iteration;
    /// Returns when the run began.
    started_at: Timestamp = |it| it.clock.started_at;
    /// Returns when the iteration began.
    iteration_started_at: Timestamp = |it| it.clock.iteration_started_at;
    /// Returns the phase that the agent reported.
    phase: Option<&str> = |it| it.reported.phase.as_deref();
    /// Returns the percentage that the agent reported.
    progress: Option<u8> = |it| it.reported.progress;
    /// Returns the percentage to show: the reported one, or what its dialect gives to the phase.
    shown_progress: Option<u8> = |it| it.reported.shown_progress.or(it.reported.progress);
    /// Returns the signals of this attempt, the last of each meaning for certain.
    signals: &[RunSignal] = |it| &it.attempt.signals;
    /// Returns what prompts hold beside the task, until an iteration that got it is completed.
    feedback: &[String] = |it| &it.memory.feedback;
    /// Returns the open question.
    question: Option<&Question> = |it| it.question.as_ref();
    /// Returns the agent's process, in the driver's own form, while there is one.
    agent: Option<&str> = |it| it.agent.as_deref();
    /// Returns how the last process ended.
    last_exit: Option<&AgentExit> = |it| it.last_exit.as_ref();
    /// Returns the host's message, if the host gave up in this attempt.
    host_error: Option<&str> = |it| it.attempt.host_error.as_deref();
    /// Returns the last claim to be done that did not hold.
    last_refusal: Option<&ClaimRefusal> = |it| it.memory.last_refusal.as_ref();
    /// Returns the permissions that the host denied since the last iteration that made up for them.
    denials: &[Denial] = |it| &it.memory.denials;
    /// Returns the last hint about something that looked like a signal.
    last_near_miss: Option<&str> = |it| it.memory.last_near_miss.as_deref();
    /// Returns why the agent was asked to stop, as a clause.
    asked_to_stop_because: Option<&str> = |it| it.attempt.stop_because.as_deref();
    /// Returns the commit at the start.
    base: Option<&str> = |it| it.trees.base.as_deref();
    /// Returns how the work tree was when it was last inspected: at the end, the one that was judged.
    tree: &WorkTree = |it| &it.trees.tree;
    /// Returns what is known about the checks.
    proof: &Proof = |it| &it.proof;
    /// Returns whether the work makes progress.
    monitor: &Monitor = |it| &it.monitor;
}}

/// What one event led to.
pub type Outcome = crate::Outcome<Effect>;

impl State {
    /// Begins a run.
    pub fn start(now: Timestamp, start: Start) -> Self {
        Self {
            monitor: Monitor::new(now, start.config.stagnation.clone()),
            start,
            status: Status::Ready,
            iteration: 0,
            clock: Clock {
                started_at: now,
                seen_at: Some(now),
                iteration_started_at: now,
                ..Clock::default()
            },
            reported: Reported::default(),
            attempt: Attempt::default(),
            memory: Memory::default(),
            counts: Counts::default(),
            spending: Spending::default(),
            trees: Trees::default(),
            proof: Box::default(),
            question: None,
            agent: None,
            last_exit: None,
            iteration_unfinished: false,
        }
    }

    /// Takes one event. A run's time never goes back, whoever's clock was set.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        let before = self.clock.seen_at;
        self.clock.seen_at = Some(before.map_or(now, |before| before.max(now)));
        match event {
            Event::Reopen { config } => self.reopen(config),
            // An answer may come when nobody waits for it any more: the next start has it.
            Event::Answer { id, text, by } if self.ending().is_some() => {
                self.on_late_answer(id, text, by)
            }
            _ if self.ending().is_some() => Outcome::nothing(),
            Event::Begin => self.begin(),
            Event::Recovered => self.recovered(before),
            Event::Launched { agent } => self.on_launch(agent),
            Event::LaunchFailed { what } => self.on_failed_launch(what),
            Event::Reported { signals } => self.on_signals(signals),
            Event::Progress(batch) => self.on_progress(batch),
            Event::NearMiss { hint } => self.on_near_miss(hint),
            Event::Activity => self.on_activity(),
            Event::Spent(usage) => self.on_usage(*usage),
            Event::Retrying { what } => self.on_retry(what),
            Event::HostFailed { what } => self.on_host_failure(what),
            Event::PermissionDenied { tool, what, cure } => self.on_denial(tool, what, cure),
            Event::Limited { what, until } => self.on_limit(what, *until),
            Event::Exited(exit) => self.on_exit(exit),
            Event::Looked(tree) => self.on_look(tree),
            Event::Checked { passed, output } => self.on_check(*passed, output),
            Event::Inspected(seen) => self.on_inspected(seen),
            Event::CheckEnded(result) => self.on_check_ended(result),
            Event::OpinionGiven(opinion) => self.on_opinion(opinion),
            Event::Tick => self.on_tick(),
            Event::Pause { by } => self.on_pause(by),
            Event::Resume { by } => self.on_resume(by),
            Event::Tell { text, by } => self.on_message(text, by),
            Event::Abort { by } => self.on_abort(by),
            Event::Answer { id, text, by } => self.on_answer(id, text, by),
        }
    }

    /// Returns whether the agent claims that a merge is resolved: then conflict markers are looked for.
    pub fn claims_resolution(&self) -> bool {
        self.attempt.signals.iter().any(RunSignal::resolves_merge)
    }

    /// Returns how the run ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match self.status {
            Status::Ended { ending } => Some(ending),
            _ => None,
        }
    }

    /// Returns the cost of the run.
    pub fn cost(&self) -> Usage {
        self.spending.spent_before.plus(self.spending.spent_now)
    }

    /// Returns how many milliseconds the run has worked in all, waiting not counted.
    pub fn worked(&self, now: Timestamp) -> u64 {
        self.clock.worked_before_ms.saturating_add(self.worked_since_opened(now))
    }

    /// Returns how many milliseconds the run has worked since it began or was reopened: its time limit
    /// begins anew then.
    pub fn worked_since_opened(&self, now: Timestamp) -> u64 {
        let waiting = self.clock.waiting_since.map_or(0, |since| millis(now, since));
        millis(now, self.clock.started_at)
            .saturating_sub(self.clock.waited_ms)
            .saturating_sub(waiting)
    }

    /// Whether an agent's process is there.
    pub(super) fn has_agent(&self) -> bool {
        matches!(self.status, Status::Working | Status::Ending { .. } | Status::Paused { .. })
    }

    /// Stops every clock: somebody else is waited for.
    pub(super) fn pause_clocks(&mut self, now: Timestamp) {
        self.clock.waiting_since = self.clock.waiting_since.or(Some(now));
        self.monitor.observe(now, &Observation::Waiting);
    }

    /// Lets the clocks run again. A pause for missing progress stopped those of the iteration only.
    pub(super) fn resume_clocks(&mut self) {
        let now = self.now();
        let waited = self.clock.waiting_since.take().map(|since| millis(now, since));
        self.clock.waited_ms = self.clock.waited_ms.saturating_add(waited.unwrap_or(0));
        let paused = self.clock.paused_at.take().map(|since| millis(now, since));
        if let Some(rested) = waited.max(paused) {
            let rested = Duration::from_millis(rested);
            self.clock.iteration_started_at = self.clock.iteration_started_at.after(rested);
            self.attempt.claimed_at = self.attempt.claimed_at.map(|at| at.after(rested));
        }
        self.monitor.observe(now, &Observation::Awake);
    }

    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let cost = self.cost();
        let mut counters = BTreeMap::from([
            ("iteration".to_owned(), u64::from(self.iteration)),
            ("max_iterations".to_owned(), u64::from(self.start.config.max_iterations)),
        ]);
        let others = [
            ("crashes", u64::from(self.counts.crashes)),
            ("micro_dollars", cost.micro_dollars),
            ("tokens", cost.tokens),
        ];
        for (name, count) in others.into_iter().filter(|(_, count)| *count > 0) {
            counters.insert(name.to_owned(), count);
        }
        counters
    }

    /// Decides something by a rule. Its reasons follow.
    pub(super) fn decided(&self, rule: Rule, summary: impl Into<String>) -> Outcome {
        Outcome::nothing().decide(rule, summary, self.counters())
    }

    /// The time of the event that is taken.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.seen_at.unwrap_or(self.clock.started_at)
    }
}

fn millis(now: Timestamp, since: Timestamp) -> u64 {
    u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX)
}
