//! The small part of a delivery's state: everything but the tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::signal::Role;
use super::task::PromptNote;
use crate::run::Usage;
use crate::stagnation::Monitor;
use aldis_signal::codes;
use aldis_signal::time::Timestamp;

codes! {
    /// How a delivery ended. The names are stable.
    pub enum Ending {
        /// Every task is complete.
        Complete = "complete",
        /// Some tasks were given up, and nothing else can be done.
        Failed = "failed",
        /// A human decided not to repair the infrastructure.
        Halted = "halted",
        /// No tokens or no money are left.
        OverBudget = "over_budget",
        /// No time is left.
        TimedOut = "timed_out",
        /// A human ended it.
        Aborted = "aborted",
    }
}

impl Ending {
    /// Returns whether a delivery that ended so can be continued. Where tasks or the repair were given
    /// up, a human has decided against that.
    pub fn can_be_continued(self) -> bool {
        match self {
            Self::OverBudget | Self::TimedOut | Self::Aborted => true,
            Self::Complete | Self::Failed | Self::Halted => false,
        }
    }

    /// Returns the exit code of the command.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failed => 1,
            Self::Halted => 3,
            Self::TimedOut => 4,
            Self::OverBudget => 5,
            Self::Aborted => 130,
        }
    }
}

/// What an agent works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Work {
    /// A task, by its place in the plan.
    Task {
        /// Its place, from 0.
        task: usize,
    },
    /// The infrastructure: repairing it, or judging it.
    Infrastructure,
    /// A question of another agent.
    Request {
        /// The request.
        request: String,
    },
    /// The plan.
    Plan,
}

impl Work {
    /// Returns the task, if it is one.
    pub fn task(&self) -> Option<usize> {
        match self {
            Self::Task { task } => Some(*task),
            Self::Infrastructure | Self::Request { .. } | Self::Plan => None,
        }
    }
}

/// An agent at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingAgent {
    /// What it was started for.
    pub role: Role,
    /// What it works on.
    pub work: Work,
    /// When it was started.
    #[serde(alias = "started")]
    pub started_at: Timestamp,
    /// When it was last active, or last asked for a checkpoint.
    #[serde(alias = "seen")]
    pub last_seen: Timestamp,
    /// Checkpoints that it missed in a row.
    #[serde(default, alias = "misses")]
    pub missed_checkpoints: u32,
    /// The checkpoint it was asked for and has not sent.
    #[serde(default, alias = "asked", skip_serializing_if = "Option::is_none")]
    pub checkpoint_request: Option<CheckpointRequest>,
    /// Whether its work progresses, where that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Monitor>,
    /// Whether it waits for a worker. Nobody has started it then, and its time does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// The worker that claimed it last, where workers run agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerClaim>,
}

impl WorkingAgent {
    /// Returns whether the claim with this fencing number is in force.
    pub fn is_claimed_by(&self, fence: u64) -> bool {
        !self.queued && self.worker.as_ref().is_some_and(|worker| worker.fence == fence)
    }
}

/// The right of a worker to run an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerClaim {
    /// The worker's name.
    pub name: String,
    /// The fencing number of the claim.
    pub fence: u64,
    /// How many workers lost this agent before.
    #[serde(default)]
    pub lost: u32,
}

/// A checkpoint that an agent was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRequest {
    /// When.
    pub at: Timestamp,
    /// Whether because its reply held no signal.
    #[serde(alias = "unknown")]
    pub after_unknown_reply: bool,
}

/// A question to a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What it is about.
    pub about: QuestionSubject,
    /// The question in one line; empty in questions of 0.1.0.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// The whole request: the question, its context, the options and what would help.
    pub text: String,
    /// Answers with a meaning of their own, besides any text.
    pub options: Vec<String>,
    /// When it was asked.
    pub asked_at: Timestamp,
}

impl Question {
    /// Returns the question in one line.
    pub fn in_one_line(&self) -> &str {
        let first = || self.text.lines().find(|line| !line.trim().is_empty());
        if self.question.is_empty() { first().unwrap_or_default() } else { &self.question }
    }
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum QuestionSubject {
    /// How a task continues.
    Task {
        /// Its place in the plan.
        task: usize,
    },
    /// Whether an expansion is right.
    Expansion {
        /// The task's place in the plan.
        task: usize,
    },
    /// Whether work is taken although files of its checks changed.
    Acceptance {
        /// The task's place in the plan.
        task: usize,
    },
    /// How the repair of the infrastructure continues.
    Infrastructure {
        /// Who asks.
        role: Role,
    },
    /// Whether to continue although the attempts to repair the infrastructure are used up.
    #[serde(alias = "exhausted")]
    RemediationExhausted,
}

impl QuestionSubject {
    /// Returns the place of the task that it is about, if it is about one.
    pub fn task(self) -> Option<usize> {
        match self {
            Self::Task { task } | Self::Expansion { task } | Self::Acceptance { task } => {
                Some(task)
            }
            Self::Infrastructure { .. } | Self::RemediationExhausted => None,
        }
    }
}

/// A question to an expert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consultation {
    /// Who is asked.
    pub expert: String,
    /// The task of the agent that asks; `None` for the repair of the infrastructure.
    pub task: Option<usize>,
    /// The role of the agent that asks.
    pub role: Role,
    /// What kind of answer is wanted.
    #[serde(default)]
    pub kind: String,
    /// The file in which the asking agent wrote down what it knows.
    #[serde(default)]
    pub snapshot: String,
    /// The question.
    pub prompt: String,
    /// How often the expert was started.
    pub tries: u32,
    /// What the expert's prompt holds besides the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<PromptNote>,
}

/// An expert that the planner created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertCandidate {
    /// Its file.
    pub file: String,
    /// What it is good at.
    #[serde(alias = "knows")]
    pub expertise: String,
}

/// Whom agents can ask, and what they ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Experts {
    /// The experts, and the expertise of each.
    #[serde(rename = "experts")]
    pub known: BTreeMap<String, String>,
    /// Experts whose file is being looked for.
    pub candidates: BTreeMap<String, ExpertCandidate>,
    /// Since when these files are looked for.
    pub checking_since: Option<Timestamp>,
    /// Questions to experts that wait for an answer.
    pub consultations: BTreeMap<String, Consultation>,
    /// Questions to experts, ever.
    #[serde(alias = "consultations_ever")]
    pub consultations_started: u64,
}

/// The repair of the infrastructure: what every task needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remediation {
    /// Attempts, the current one included.
    pub attempts: u32,
    /// The tasks that reported it.
    pub tasks: Vec<usize>,
    /// What they reported, and what was reported since.
    pub notes: Vec<PromptNote>,
}

/// Where the look at the plan before the work stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nothing was begun.
    #[default]
    Ready,
    /// The planner looks at the plan.
    Planning,
    /// The files of the experts that the planner created are looked for.
    CheckingExperts,
    /// Tasks are worked on.
    Working,
}

/// What a delivery has cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliverySpending {
    /// What all agents have cost.
    pub spent: Usage,
    /// Whether there was a warning that a budget is nearly used.
    #[serde(alias = "warned_of_budget")]
    pub budget_warned: bool,
    /// Milliseconds that agents worked, as they were last counted.
    #[serde(alias = "worked")]
    pub worked_millis: u64,
    /// When they were counted: whenever the set of agents changed. In between, time only adds up.
    #[serde(alias = "counted_at", skip_serializing_if = "Option::is_none")]
    pub worked_counted_at: Option<Timestamp>,
}

/// The small part of the state: everything but the tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRun {
    /// What people call it.
    pub title: String,
    /// The limits.
    pub config: Config,
    /// What agents' run tokens are made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// How far it is.
    #[serde(default)]
    pub stage: Stage,
    /// Whether a human wants no further agents to be started.
    #[serde(default)]
    pub paused: bool,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The agents at work, by number.
    #[serde(default)]
    pub agents: BTreeMap<u64, WorkingAgent>,
    /// Agents ever started.
    #[serde(default, alias = "agents_ever")]
    pub agents_started: u64,
    /// Questions to humans that wait for an answer.
    #[serde(default)]
    pub questions: BTreeMap<String, Question>,
    /// Questions ever asked.
    #[serde(default, alias = "questions_ever")]
    pub questions_asked: u64,
    /// The experts, and who asks them.
    #[serde(flatten)]
    pub experts: Experts,
    /// The repair of the infrastructure, while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
    /// When the next tick is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Timestamp>,
    /// What all agents have cost, and how long they worked.
    #[serde(flatten)]
    pub spending: DeliverySpending,
    /// The agents that were at work when it ended, for when it is continued.
    #[serde(default, alias = "left", skip_serializing_if = "BTreeMap::is_empty")]
    pub interrupted: BTreeMap<u64, WorkingAgent>,
}

impl DeliveryRun {
    /// Returns how many milliseconds agents have worked by now. Time in which all of them wait for
    /// their service does not count.
    pub(super) fn worked_by(&self, now: Timestamp) -> u64 {
        let (Some(earliest), Some(counted_at)) =
            (self.earliest_activity(), self.spending.worked_counted_at)
        else {
            return self.spending.worked_millis;
        };
        let more = now.since(earliest.max(counted_at)).as_millis();
        self.spending.worked_millis.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// Returns the earliest time at which an agent was active. It lies ahead where all wait for their
    /// service.
    pub(super) fn earliest_activity(&self) -> Option<Timestamp> {
        let started = self.agents.values().filter(|agent| !agent.queued);
        started.map(|agent| agent.last_seen).min()
    }
}
