//! One supervised run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::event::{Effect, Event, Exit, Heard, Tree, Usage};
use super::{decide, listen, opening};
use crate::Decision;
use crate::stagnation::{self, Monitor};
use aldis_signal::time::Timestamp;

/// How a run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// What is to be done.
    pub task: String,
    /// The dialect the agent speaks.
    pub dialect: String,
    /// How to speak it, as the agent is told.
    pub instructions: String,
    /// How the agent is started, in the shell's own words.
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
        /// What the run ends with once it has; `None` to go on with the next iteration.
        with: Option<Ending>,
    },
    /// The work tree is looked at before a claim is believed.
    Looking,
    /// A claim is checked.
    Checking,
    /// A limit is waited for.
    Limited {
        /// Until then.
        until: Timestamp,
    },
    /// A human is asked.
    Asking,
    /// The agent is suspended.
    Paused {
        /// Whether because nothing moved.
        stagnated: bool,
    },
    /// It is over.
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
            Self::Asking => "asking",
            Self::Paused { .. } => "paused",
            Self::Ended { .. } => "ended",
        }
    }
}

/// How a run ended. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The work is done, and verified where that was asked for.
    Done,
    /// Something outside is missing.
    Blocked,
    /// A human must answer first.
    NeedsHuman,
    /// The agent crashed.
    Crashed,
    /// The agent gave up.
    Failed,
    /// No iteration is left.
    IterationsUsedUp,
    /// No time is left.
    TimedOut,
    /// Nothing moved any more.
    Stagnated,
    /// No tokens or no money are left.
    OverBudget,
    /// A human ended it.
    Aborted,
}

impl Ending {
    /// Returns the stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::NeedsHuman => "needs_human",
            Self::Crashed => "crashed",
            Self::Failed => "failed",
            Self::IterationsUsedUp => "iterations_used_up",
            Self::TimedOut => "timed_out",
            Self::Stagnated => "stagnated",
            Self::OverBudget => "over_budget",
            Self::Aborted => "aborted",
        }
    }

    /// Returns the exit code of the command.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Crashed | Self::Failed => 1,
            Self::Blocked | Self::NeedsHuman => 3,
            Self::Stagnated | Self::TimedOut => 4,
            Self::IterationsUsedUp | Self::OverBudget => 5,
            Self::Aborted => 130,
        }
    }
}

/// A question to a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its name.
    pub id: String,
    /// The question.
    pub text: String,
    /// When it was asked.
    pub asked_at: Timestamp,
}

/// A refusal of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// When it will work again, where it said so.
    pub until: Option<Timestamp>,
}

/// A run: everything that decides what happens next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What is to be done.
    pub task: String,
    /// The dialect the agent speaks.
    pub dialect: String,
    /// How to speak it.
    pub instructions: String,
    /// How the agent is started, in the shell's own words.
    pub launch: String,
    /// The limits.
    pub config: Config,
    /// Where the run is.
    pub status: Status,
    /// The current iteration, from 1.
    pub iteration: u32,
    /// When the run began.
    pub started_at: Timestamp,
    /// When anything happened last. What passes until a supervisor is back is no work.
    #[serde(default)]
    pub seen_at: Option<Timestamp>,
    /// When the iteration began.
    pub iteration_started_at: Timestamp,
    /// How many milliseconds were spent waiting for somebody else.
    pub waited: u64,
    /// Since when somebody else is waited for.
    pub waiting_since: Option<Timestamp>,
    /// The phase the agent says it is in.
    pub phase: Option<String>,
    /// The percentage the agent says.
    pub progress: Option<u8>,
    /// The percentage to show: what the agent says, or how far its phase usually is.
    #[serde(default)]
    pub bar: Option<u8>,
    /// The agent's own count of iterations, where it says one.
    #[serde(default)]
    pub own_iteration: Option<u32>,
    /// What was said in this iteration, the last word of each meaning.
    pub said: Vec<Heard>,
    /// When the work was claimed to be done in this iteration.
    pub claimed_at: Option<Timestamp>,
    /// What the next prompt says beside the task.
    pub feedback: Vec<String>,
    /// A limit that was met in this iteration.
    pub limited: Option<Limit>,
    /// Why the host gave up in this iteration, where waiting does not help.
    #[serde(default)]
    pub refused: Option<String>,
    /// Whether the host waits for the service by itself.
    #[serde(default)]
    pub retrying: bool,
    /// Limits in a row.
    pub limit_waits: u32,
    /// How often a merge was claimed to be resolved in vain.
    #[serde(default)]
    pub attempts: u32,
    /// The question that waits for an answer.
    pub question: Option<Question>,
    /// Questions asked so far.
    pub questions: u32,
    /// What earlier iterations cost.
    pub spent: Usage,
    /// What this one has cost so far.
    pub spending: Usage,
    /// Whether somebody was told that a budget runs out.
    pub warned_of_budget: bool,
    /// The agent's process, in the shell's own words, while there is one.
    pub agent: Option<String>,
    /// How the last process ended.
    pub last_exit: Option<Exit>,
    /// Whether the run ended within its iteration, which is then not over.
    #[serde(default)]
    pub cut_off: bool,
    /// The commit at the start.
    pub base: Option<String>,
    /// Whether that was looked for: there may have been none.
    #[serde(default)]
    pub based: bool,
    /// How the work tree stood last.
    pub tree: Tree,
    /// Whether the work moves.
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
            started_at: now,
            seen_at: Some(now),
            iteration_started_at: now,
            waited: 0,
            waiting_since: None,
            phase: None,
            progress: None,
            bar: None,
            own_iteration: None,
            said: Vec::new(),
            claimed_at: None,
            feedback: Vec::new(),
            limited: None,
            refused: None,
            retrying: false,
            limit_waits: 0,
            attempts: 0,
            question: None,
            questions: 0,
            spent: Usage::default(),
            spending: Usage::default(),
            warned_of_budget: false,
            agent: None,
            last_exit: None,
            cut_off: false,
            base: None,
            based: false,
            tree: Tree::default(),
        }
    }

    /// Takes one event. A run's time never goes back, whoever's clock was set.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        let before = self.seen_at;
        let now = before.map_or(now, |before| before.max(now));
        self.seen_at = Some(now);
        match event {
            Event::Reopen { config } => opening::reopen(self, now, config),
            // An answer may come when nobody waits for it any more: the next start has it.
            Event::Answer { id, text, .. } if self.ending().is_some() => {
                listen::on_late_answer(self, id, text)
            }
            _ if self.ending().is_some() => Outcome::nothing(),
            Event::Begin => opening::begin(self, now),
            Event::Recovered => opening::recovered(self, now, before),
            Event::Launched { agent } => listen::on_launch(self, agent),
            Event::Heard { said } => listen::on_signals(self, now, said),
            Event::Missed { hint } => listen::on_near_miss(self, hint),
            Event::Worked => listen::on_work(self, now),
            Event::Spent(usage) => listen::on_usage(self, *usage),
            Event::Retrying { what } => listen::on_retry(self, now, what),
            Event::Refused { what } => listen::on_refusal(self, what),
            Event::Limited { what, until } => listen::on_limit(self, what, *until),
            Event::Exited(exit) => decide::on_exit(self, now, *exit),
            Event::Looked(tree) => decide::on_look(self, now, tree),
            Event::Checked { passed, output } => decide::on_check(self, now, *passed, output),
            Event::Tick => listen::on_tick(self, now),
            Event::Pause { by } => listen::on_pause(self, now, by),
            Event::Resume { by } => listen::on_resume(self, now, by),
            Event::Told { text, by } => listen::on_told(self, now, text, by),
            Event::Abort { by } => listen::on_abort(self, now, by),
            Event::Answer { id, text, by } => listen::on_answer(self, now, id, text, by),
        }
    }

    /// Returns how the run ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match self.status {
            Status::Ended { ending } => Some(ending),
            _ => None,
        }
    }

    /// Returns the limit of these that a run that ended would reach at once if it went on with them.
    pub fn reached(&self, config: &Config) -> Option<Ending> {
        opening::reached(self, config)
    }

    /// Returns what the run has cost.
    pub fn cost(&self) -> Usage {
        Usage {
            tokens: self.spent.tokens.saturating_add(self.spending.tokens),
            micro_dollars: self.spent.micro_dollars.saturating_add(self.spending.micro_dollars),
        }
    }

    /// Returns how many milliseconds the run has worked, waiting not counted.
    pub fn worked(&self, now: Timestamp) -> u64 {
        let waiting = self.waiting_since.map_or(0, |since| millis(now, since));
        millis(now, self.started_at).saturating_sub(self.waited).saturating_sub(waiting)
    }

    /// Whether an agent's process is there.
    pub(super) fn has_agent(&self) -> bool {
        matches!(self.status, Status::Working | Status::Ending { .. } | Status::Paused { .. })
    }

    /// Lets the run's clocks rest.
    pub(super) fn rest(&mut self, now: Timestamp) {
        self.waiting_since = self.waiting_since.or(Some(now));
    }

    pub(super) fn wait(&mut self, now: Timestamp) {
        self.rest(now);
        self.monitor.observe(now, &stagnation::Observation::Waiting);
    }

    pub(super) fn wake(&mut self, now: Timestamp) {
        if let Some(since) = self.waiting_since.take() {
            let waited = millis(now, since);
            self.waited = self.waited.saturating_add(waited);
            let waited = std::time::Duration::from_millis(waited);
            self.iteration_started_at = self.iteration_started_at.after(waited);
            self.claimed_at = self.claimed_at.map(|at| at.after(waited));
        }
        self.monitor.observe(now, &stagnation::Observation::Awake);
    }

    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let cost = self.cost();
        let mut counters = BTreeMap::from([
            ("iteration".to_owned(), u64::from(self.iteration)),
            ("max_iterations".to_owned(), u64::from(self.config.max_iterations)),
        ]);
        if cost.tokens > 0 {
            counters.insert("tokens".to_owned(), cost.tokens);
        }
        if cost.micro_dollars > 0 {
            counters.insert("micro_dollars".to_owned(), cost.micro_dollars);
        }
        counters
    }

    pub(super) fn decision(&self, rule: &str, summary: impl Into<String>) -> Decision {
        Decision::new(format!("run/{rule}"), summary).counted(self.counters())
    }
}

fn millis(now: Timestamp, since: Timestamp) -> u64 {
    u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX)
}
