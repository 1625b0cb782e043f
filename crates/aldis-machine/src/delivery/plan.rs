//! Plans: the tasks of a delivery. How people write them down is not known here.

mod check;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is to be delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What people call it.
    #[serde(default)]
    pub title: String,
    /// The tasks, in the order they were written down.
    pub tasks: Vec<TaskSpec>,
}

/// One task, as it was written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Its name in signals: letters, digits, `.`, `_` and `-`, a letter or digit first.
    pub id: String,
    /// What people call it.
    #[serde(default)]
    pub title: String,
    /// What is to be done.
    #[serde(default)]
    pub description: String,
    /// When it is done: what the auditor judges.
    #[serde(default)]
    pub acceptance: Vec<String>,
    /// The tasks that must be complete first.
    #[serde(default)]
    pub needs: Vec<String>,
    /// How important it is among those that could be next.
    #[serde(default)]
    pub priority: Priority,
    /// The files it changes, which no other task gets meanwhile.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether it is complete already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

/// How important a task is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase", try_from = "WrittenPriority")]
pub enum Priority {
    /// Before the others.
    High,
    /// As usual.
    #[default]
    Medium,
    /// After the others.
    Low,
}

impl FromStr for Priority {
    type Err = String;

    /// Reads a word in any case, or a number: 1 is the most important.
    fn from_str(text: &str) -> Result<Self, String> {
        match &*text.trim().to_ascii_lowercase() {
            "high" | "0" | "1" => Ok(Self::High),
            "medium" | "2" => Ok(Self::Medium),
            "low" => Ok(Self::Low),
            number if number.parse::<u32>().is_ok() => Ok(Self::Low),
            other => Err(format!("`{other}` is no priority; use high, medium or low")),
        }
    }
}

/// A priority as people write it.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a priority is high, medium, low or a number")]
enum WrittenPriority {
    Word(String),
    Number(i64),
}

impl TryFrom<WrittenPriority> for Priority {
    type Error = String;

    fn try_from(written: WrittenPriority) -> Result<Self, String> {
        match written {
            WrittenPriority::Word(word) => word.parse(),
            WrittenPriority::Number(number) => number.to_string().parse(),
        }
    }
}

/// Something about a plan that its author should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProblem {
    /// The line, from 1; 0 for the plan as a whole.
    pub line: usize,
    /// Whether the plan cannot be used like this.
    pub fatal: bool,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for PlanProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}
