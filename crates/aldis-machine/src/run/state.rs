//! One supervised run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::event::{AgentExit, Effect, Event, Usage, WorkTree};
use super::rule::Rule;
use super::signal::RunSignal;
use super::{events, humans, lifecycle, verdict};
use crate::rules::codes;
use crate::stagnation::{Monitor, Observation};
use crate::{Decision, Evidence};
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
    /// When it was asked.
    pub asked_at: Timestamp,
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
    /// How a human allows it.
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
}

/// A run: everything that decides what happens next. The aliases are the names that 0.1.0 stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The task.
    pub task: String,
    /// The dialect in which the agent reports.
    pub dialect: String,
    /// How to report in it.
    pub instructions: String,
    /// How the agent is started, in the driver's own form.
    pub launch: String,
    /// The limits.
    pub config: Config,
    /// Where the run is.
    pub status: Status,
    /// The current iteration, from 1.
    pub iteration: u32,
    /// How often the agent was started for this iteration.
    #[serde(default)]
    pub starts: u32,
    /// When the run began.
    pub started_at: Timestamp,
    /// When the last event came. Time without a supervisor is not counted as work.
    #[serde(default)]
    pub seen_at: Option<Timestamp>,
    /// When the iteration began.
    pub iteration_started_at: Timestamp,
    /// How many milliseconds were spent waiting.
    #[serde(alias = "waited")]
    pub waited_ms: u64,
    /// Since when the run waits, if it does.
    pub waiting_since: Option<Timestamp>,
    /// Since when the agent is suspended for missing progress.
    #[serde(default)]
    pub paused_at: Option<Timestamp>,
    /// The phase that the agent reported.
    pub phase: Option<String>,
    /// The percentage that the agent reported.
    pub progress: Option<u8>,
    /// The percentage to show: the reported one, or what its dialect gives to the phase.
    #[serde(default, alias = "bar")]
    pub shown_progress: Option<u8>,
    /// The agent's own count of iterations, where it reports one.
    #[serde(default, alias = "own_iteration")]
    pub reported_iteration: Option<u32>,
    /// The signals of this iteration, the last of each meaning for certain.
    #[serde(alias = "said")]
    pub signals: Vec<RunSignal>,
    /// When the agent first claimed to be done in this iteration.
    pub claimed_at: Option<Timestamp>,
    /// When progress that only moves a number was last recorded.
    #[serde(default)]
    pub progress_recorded_at: Option<Timestamp>,
    /// What prompts hold beside the task: first what stands in the current one, then what is new. It
    /// stays until an iteration that got it was completed by the agent itself.
    pub feedback: Vec<String>,
    /// How much of the feedback stands in the current prompt.
    #[serde(default)]
    pub feedback_given: usize,
    /// The last hint about something that looked like a signal.
    #[serde(default)]
    pub last_near_miss: Option<String>,
    /// The last claim to be done that did not hold.
    #[serde(default)]
    pub last_refusal: Option<ClaimRefusal>,
    /// The limit that was met in this iteration.
    #[serde(alias = "limited")]
    pub limit: Option<ServiceLimit>,
    /// The host's message when it gave up in this iteration.
    #[serde(default, alias = "refused")]
    pub host_error: Option<String>,
    /// Whether the host retries by itself.
    #[serde(default)]
    pub retrying: bool,
    /// Waits for a limit, in a row.
    pub limit_waits: u32,
    /// Crashes of the agent, in a row.
    #[serde(default)]
    pub crashes: u32,
    /// How the agent last crashed, until an attempt ends without a crash.
    #[serde(default)]
    pub last_crash: Option<AgentExit>,
    /// Permissions that the host denied once.
    #[serde(default)]
    pub denials: Vec<Denial>,
    /// Refused claims that a merge is resolved, in a row.
    #[serde(default, alias = "attempts")]
    pub refused_resolutions: u32,
    /// The open question.
    pub question: Option<Question>,
    /// How many questions were asked so far.
    #[serde(alias = "questions")]
    pub questions_asked: u32,
    /// The cost of earlier attempts.
    #[serde(alias = "spent")]
    pub spent_before: Usage,
    /// The cost of this one so far.
    #[serde(alias = "spending")]
    pub spent_now: Usage,
    /// Whether people were warned that a budget runs out.
    #[serde(alias = "warned_of_budget")]
    pub budget_warned: bool,
    /// The agent's process, in the driver's own form, while there is one.
    pub agent: Option<String>,
    /// How the last process ended.
    pub last_exit: Option<AgentExit>,
    /// Why the agent was asked to stop, as a clause.
    #[serde(default)]
    pub stop_because: Option<String>,
    /// Whether the run ended within its iteration, which is then repeated when the run is reopened.
    #[serde(default, alias = "cut_off")]
    pub iteration_unfinished: bool,
    /// The commit at the start.
    pub base: Option<String>,
    /// Whether the work tree was inspected at the start: there may have been no commit.
    #[serde(default, alias = "based")]
    pub base_known: bool,
    /// The fingerprint of the work tree at the start.
    #[serde(default)]
    pub base_fingerprint: Option<String>,
    /// The work tree when it was last inspected.
    pub tree: WorkTree,
    /// Whether the work makes progress.
    pub monitor: Monitor,
}

/// What one event led to.
pub type Outcome = crate::Outcome<Effect>;

impl State {
    /// Begins a run.
    pub fn start(now: Timestamp, start: Start) -> Self {
        let Start { task, dialect, instructions, launch, config } = start;
        Self {
            task,
            dialect,
            instructions,
            launch,
            monitor: Monitor::new(now, config.stagnation.clone()),
            config,
            status: Status::Ready,
            iteration: 0,
            starts: 0,
            started_at: now,
            seen_at: Some(now),
            iteration_started_at: now,
            waited_ms: 0,
            waiting_since: None,
            paused_at: None,
            phase: None,
            progress: None,
            shown_progress: None,
            reported_iteration: None,
            signals: Vec::new(),
            claimed_at: None,
            progress_recorded_at: None,
            feedback: Vec::new(),
            feedback_given: 0,
            last_near_miss: None,
            last_refusal: None,
            limit: None,
            host_error: None,
            retrying: false,
            limit_waits: 0,
            crashes: 0,
            last_crash: None,
            denials: Vec::new(),
            refused_resolutions: 0,
            question: None,
            questions_asked: 0,
            spent_before: Usage::default(),
            spent_now: Usage::default(),
            budget_warned: false,
            agent: None,
            last_exit: None,
            stop_because: None,
            iteration_unfinished: false,
            base: None,
            base_known: false,
            base_fingerprint: None,
            tree: WorkTree::default(),
        }
    }

    /// Takes one event. A run's time never goes back, whoever's clock was set.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        let before = self.seen_at;
        let now = before.map_or(now, |before| before.max(now));
        self.seen_at = Some(now);
        match event {
            Event::Reopen { config } => lifecycle::reopen(self, now, config),
            // An answer may come when nobody waits for it any more: the next start has it.
            Event::Answer { id, text, .. } if self.ending().is_some() => {
                humans::on_late_answer(self, id, text)
            }
            _ if self.ending().is_some() => Outcome::nothing(),
            Event::Begin => lifecycle::begin(self, now),
            Event::Recovered => lifecycle::recovered(self, now, before),
            Event::Launched { agent } => lifecycle::on_launch(self, now, agent),
            Event::LaunchFailed { what } => lifecycle::on_failed_launch(self, now, what),
            Event::Reported { signals } => events::on_signals(self, now, signals),
            Event::Progress(batch) => events::on_progress(self, now, batch),
            Event::NearMiss { hint } => events::on_near_miss(self, hint),
            Event::Activity => events::on_activity(self, now),
            Event::Spent(usage) => events::on_usage(self, *usage),
            Event::Retrying { what } => events::on_retry(self, now, what),
            Event::HostFailed { what } => events::on_host_failure(self, what),
            Event::PermissionDenied { tool, what, cure } => {
                events::on_denial(self, tool, what, cure)
            }
            Event::Limited { what, until } => events::on_limit(self, what, *until),
            Event::Exited(exit) => verdict::on_exit(self, now, exit),
            Event::Looked(tree) => verdict::on_look(self, now, tree),
            Event::Checked { passed, output } => verdict::on_check(self, now, *passed, output),
            Event::Tick => events::on_tick(self, now),
            Event::Pause { by } => humans::on_pause(self, now, by),
            Event::Resume { by } => humans::on_resume(self, now, by),
            Event::Tell { text, by } => humans::on_message(self, now, text, by),
            Event::Abort { by } => humans::on_abort(self, now, by),
            Event::Answer { id, text, by } => humans::on_answer(self, now, id, text, by),
        }
    }

    /// Returns whether the agent claims that a merge is resolved: then conflict markers are looked for.
    pub fn claims_resolution(&self) -> bool {
        self.signals.iter().any(RunSignal::resolves_merge)
    }

    /// Returns how the run ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match self.status {
            Status::Ended { ending } => Some(ending),
            _ => None,
        }
    }

    /// Returns the limit that a run that ended would reach at once if it continued with `config`.
    pub fn reached(&self, config: &Config) -> Option<Ending> {
        lifecycle::reached(self, config)
    }

    /// Returns the cost of the run.
    pub fn cost(&self) -> Usage {
        let (before, now) = (self.spent_before, self.spent_now);
        Usage {
            tokens: before.tokens.saturating_add(now.tokens),
            micro_dollars: before.micro_dollars.saturating_add(now.micro_dollars),
        }
    }

    /// Returns how many milliseconds the run has worked, waiting not counted.
    pub fn worked(&self, now: Timestamp) -> u64 {
        let waiting = self.waiting_since.map_or(0, |since| millis(now, since));
        millis(now, self.started_at).saturating_sub(self.waited_ms).saturating_sub(waiting)
    }

    /// Whether an agent's process is there.
    pub(super) fn has_agent(&self) -> bool {
        matches!(self.status, Status::Working | Status::Ending { .. } | Status::Paused { .. })
    }

    /// Stops every clock: somebody else is waited for.
    pub(super) fn pause_clocks(&mut self, now: Timestamp) {
        self.waiting_since = self.waiting_since.or(Some(now));
        self.monitor.observe(now, &Observation::Waiting);
    }

    /// Lets the clocks run again. A pause for missing progress stopped those of the iteration only.
    pub(super) fn resume_clocks(&mut self, now: Timestamp) {
        let waited = self.waiting_since.take().map(|since| millis(now, since));
        self.waited_ms = self.waited_ms.saturating_add(waited.unwrap_or(0));
        let paused = self.paused_at.take().map(|since| millis(now, since));
        if let Some(rested) = waited.max(paused) {
            let rested = Duration::from_millis(rested);
            self.iteration_started_at = self.iteration_started_at.after(rested);
            self.claimed_at = self.claimed_at.map(|at| at.after(rested));
        }
        self.monitor.observe(now, &Observation::Awake);
    }

    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let cost = self.cost();
        let mut counters = BTreeMap::from([
            ("iteration".to_owned(), u64::from(self.iteration)),
            ("max_iterations".to_owned(), u64::from(self.config.max_iterations)),
        ]);
        let others = [
            ("crashes", u64::from(self.crashes)),
            ("micro_dollars", cost.micro_dollars),
            ("tokens", cost.tokens),
        ];
        for (name, count) in others.into_iter().filter(|(_, count)| *count > 0) {
            counters.insert(name.to_owned(), count);
        }
        counters
    }

    pub(super) fn decision(&self, rule: Rule, summary: impl Into<String>) -> Decision {
        Decision::new(rule, summary).counted(self.counters())
    }
}

fn millis(now: Timestamp, since: Timestamp) -> u64 {
    u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX)
}
