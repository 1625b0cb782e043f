//! One task on its way through the loop.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ledger::Ledger;
use super::plan::TaskSpec;
use super::signal::Role;
use crate::proof::{Proof, Stage};
use crate::words::is_zero;
use crate::{Evidence, words};
use aldis_signal::codes;
use aldis_signal::time::Timestamp;

/// How many notes the next prompt holds, and how long one may be.
const NOTES_MAX: usize = 8;
const QUOTE_MAX: usize = 8_000;
/// How many files a task may hold, and how many criteria and files an expansion may bring.
pub(super) const FILES_MAX: usize = 1_000;
pub(super) const CRITERIA_MAX: usize = 200;
/// How much of a title stands in a sentence.
const TITLE_MAX: usize = 80;

codes! {
    /// Where a task is. The names are stable.
    pub enum Status {
        /// Not begun.
        Pending = "pending",
        /// The business analyst works on it.
        Expanding = "expanding",
        /// The developer works on it.
        Implementing = "implementing",
        /// It waits for the critic, or the critic reviews it.
        AwaitingReview = "awaiting-review",
        /// It waits for the auditor, or the auditor checks it.
        AwaitingAudit = "awaiting-audit",
        /// A human is asked.
        AwaitingGuidance = "awaiting-guidance",
        /// It waits for a file, a repair, or something that its developer lacks.
        Blocked = "blocked",
        /// Reviewed and audited.
        Complete = "complete",
        /// Given up by a human.
        Failed = "failed",
    }
}

/// What a task waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Wait {
    /// Other tasks.
    Needs,
    /// A free slot.
    #[default]
    Slot,
    /// The agent at work on it.
    Agent {
        /// Which.
        agent: u64,
    },
    /// A human's answer.
    Human {
        /// The question.
        question: String,
    },
    /// An expert's answer.
    Expert {
        /// The request.
        request: String,
    },
    /// A file that another task holds.
    File {
        /// Which.
        path: String,
        /// Since when.
        since: Timestamp,
    },
    /// The infrastructure, which is being repaired.
    Infrastructure,
    /// Something to change: it is tried again when another task is complete, or nothing else can run.
    Change,
    /// Its work to be merged.
    Merge,
    /// Its checks: before the work files are pinned, after a claim the checks run.
    Checks {
        /// When.
        stage: Stage,
    },
    /// Nothing: it is complete.
    Complete,
    /// Nothing: it was given up.
    Failed,
}

/// What was counted about a task. A human's answer resets all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Agents started since a human was last asked.
    pub dispatches: u32,
    /// Failed reviews.
    pub review_failures: u32,
    /// Failed audits.
    pub audit_failures: u32,
    /// Failed merges.
    pub merge_failures: u32,
    /// Claims that the checks refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub check_failures: u32,
    /// Times a developer gave it back.
    pub incomplete: u32,
    /// Timeouts and crashes.
    pub timeouts: u32,
    /// Refused signals.
    pub refusals: u32,
    /// Replies without a signal in a row.
    pub unknown: u32,
    /// Waits for a file that did not become free in time.
    pub conflicts: u32,
}

impl Counters {
    /// Returns those that are not 0, by name.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let Ok(Value::Object(all)) = serde_json::to_value(self) else { return BTreeMap::new() };
        let counts = all.into_iter().filter_map(|(name, count)| Some((name, count.as_u64()?)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// Something for the next agent's prompt: a sentence of ours, and text of a human or an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptNote {
    /// Our sentence.
    #[serde(alias = "about")]
    pub heading: String,
    /// The text, shown as a quotation.
    #[serde(default, alias = "words", skip_serializing_if = "String::is_empty")]
    pub quote: String,
}

impl PromptNote {
    pub(super) fn new(heading: impl Into<String>, quote: &str) -> Self {
        Self { heading: heading.into(), quote: words::cut(quote, QUOTE_MAX).to_owned() }
    }
}

/// Adds a note; the oldest give way.
pub(super) fn remember(notes: &mut Vec<PromptNote>, note: PromptNote) {
    if notes.contains(&note) {
        return;
    }
    if notes.len() == NOTES_MAX {
        notes.remove(0);
    }
    notes.push(note);
}

/// Through which agents' hands the work of a task went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Hands {
    /// The agent whose session continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resume: Option<u64>,
    /// The developer that handed the work over last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) developer: Option<u64>,
    /// The critic that passed the work as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reviewed_by: Option<u64>,
    /// The auditor that passed the work as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) audited_by: Option<u64>,
}

/// A task: what is to be done, and how far it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What is to be done.
    pub spec: TaskSpec,
    /// Whose turn it is.
    pub role: Role,
    /// What it waits for.
    pub wait: Wait,
    /// Agents started for it, ever.
    #[serde(default)]
    pub dispatched: u32,
    /// How often a developer handed it over.
    #[serde(default)]
    pub round: u32,
    /// What was counted.
    #[serde(default)]
    pub counters: Counters,
    /// What the next prompt holds besides the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<PromptNote>,
    /// What the developer reported when handing it over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub report: String,
    /// The files it holds.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub holds: BTreeSet<String>,
    /// What reviewers found.
    #[serde(default, skip_serializing_if = "Ledger::is_empty")]
    pub ledger: Ledger,
    /// Whose work it is.
    #[serde(flatten)]
    pub(super) hands: Hands,
    /// Why the last agent achieved nothing, until one reports something that counts.
    #[serde(default, alias = "setback", skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// The last signal that did not count, or that refused the work, until another one counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refused: Option<Evidence>,
    /// How far the work has come, as its agent reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What is known about its checks.
    #[serde(default, skip_serializing_if = "Proof::is_empty")]
    pub proof: Proof,
    /// An expansion that a human must accept first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Expansion>,
}

/// What a business analyst made of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    /// What is to be done.
    pub description: String,
    /// When it is done.
    pub acceptance: Vec<String>,
    /// The files it will change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl Task {
    pub(super) fn new(spec: TaskSpec, business_analyst: bool) -> Self {
        let expand = business_analyst && spec.acceptance.is_empty();
        let wait = match (spec.done, spec.needs.is_empty()) {
            (true, _) => Wait::Complete,
            (false, true) => Wait::Slot,
            (false, false) => Wait::Needs,
        };
        let role = if expand { Role::BusinessAnalyst } else { Role::Developer };
        Self { spec, role, wait, ..Self::default() }
    }

    /// Returns where it is.
    pub fn status(&self) -> Status {
        match self.wait {
            Wait::Complete => Status::Complete,
            Wait::Failed => Status::Failed,
            Wait::Human { .. } => Status::AwaitingGuidance,
            Wait::Infrastructure | Wait::Change | Wait::File { .. } => Status::Blocked,
            Wait::Needs => Status::Pending,
            Wait::Slot | Wait::Checks { .. } if self.dispatched == 0 => Status::Pending,
            Wait::Slot
            | Wait::Agent { .. }
            | Wait::Expert { .. }
            | Wait::Merge
            | Wait::Checks { .. } => match self.role {
                Role::BusinessAnalyst => Status::Expanding,
                Role::Critic => Status::AwaitingReview,
                Role::Auditor => Status::AwaitingAudit,
                _ => Status::Implementing,
            },
        }
    }

    /// Returns the agent at work on it.
    pub fn agent(&self) -> Option<u64> {
        match self.wait {
            Wait::Agent { agent } => Some(agent),
            _ => None,
        }
    }

    /// Returns how sentences call it: its title and its id.
    pub fn name(&self) -> String {
        match self.spec.title.trim() {
            "" => self.spec.id.clone(),
            title => format!("{} ({})", words::inline(title, TITLE_MAX), self.spec.id),
        }
    }

    /// Returns what people call it, if it has a title.
    pub(super) fn title(&self) -> Option<String> {
        Some(self.spec.title.trim()).filter(|title| !title.is_empty()).map(str::to_owned)
    }

    pub(super) fn note(&mut self, heading: impl Into<String>, quote: &str) {
        remember(&mut self.notes, PromptNote::new(heading, quote));
    }
}
