//! What happens in a run or a delivery while it is supervised, as programs read it.

use aldis_machine::Decision;
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VERSION;
use crate::view::live::tools::ToolCall;

/// A line of `run --json` and `deliver --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// The run.
    pub run: String,
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The task of a delivery that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The role of the agent of a delivery that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The number of that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<u64>,
    /// The same in words: without layout, without secrets.
    pub text: String,
    /// What happened.
    #[serde(flatten)]
    pub event: LiveEvent,
}

/// What happened. Later versions have more kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LiveEvent {
    /// This process supervises the run from now on; `text` is its title.
    Begin {
        /// `run` or `delivery`.
        machine: String,
    },
    /// An iteration begins.
    Iteration {
        /// Its number, from 1.
        iteration: u32,
        /// How many there may be.
        max_iterations: u32,
    },
    /// An agent says something.
    Words {
        /// Whether one of its sub-agents does, or it comes from standard error.
        aside: bool,
    },
    /// An agent calls a tool.
    Tool {
        /// The host's name for the call; empty where it has none.
        call: String,
        /// The tool, as the host calls it.
        tool: String,
        /// A command, a path, a pattern; empty where the host does not say.
        about: String,
        /// How many lines the call adds, where it says so itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines_added: Option<u64>,
        /// How many it removes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines_removed: Option<u64>,
    },
    /// A call of a tool is over.
    ToolEnded {
        /// The host's name for the call.
        call: String,
        /// Whether it failed, as far as the host says.
        failed: bool,
        /// The exit code of a command, where the host names it.
        exit_code: Option<i64>,
    },
    /// The host denied the agent a permission.
    Denied {
        /// The tool that the agent wanted to use, as the host calls it.
        tool: String,
        /// What it wanted to do with it.
        about: String,
    },
    /// The agent reported progress.
    Progress {
        /// The percentage, where it named one.
        progress: Option<u8>,
        /// The phase, where it named one.
        phase: Option<String>,
    },
    /// What the agents have cost so far.
    Spent {
        /// Tokens in and out.
        tokens: u64,
        /// Millionths of a dollar; 0 where the host names no price.
        micro_dollars: u64,
    },
    /// The run waits, is paused, or is asked to stop.
    Status {
        /// `paused`, `limited`, `backoff` (before a crashed agent is started again) or `ending`.
        status: String,
        /// Until when, where that is known.
        #[schemars(with = "Option<String>")]
        until: Option<Timestamp>,
    },
    /// A check of a done claim begins or has ended.
    Check {
        /// The name of the check, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The command.
        command: String,
        /// Whether it passed; `null` when it begins.
        passed: Option<bool>,
        /// Its exit code, once it has ended with one.
        exit_code: Option<i32>,
    },
    /// Something was decided; `aldis why` shows it, too.
    Decision {
        /// The rule that fired: a stable code.
        rule: String,
        /// What was decided.
        summary: String,
        /// Why the rule applied.
        because: String,
        /// What happens next, or what to do.
        remedy: String,
    },
    /// A human is asked; `text` is the question.
    Question {
        /// Its id: `aldis answer ID TEXT`.
        question: String,
    },
    /// A host met an error of its service and tries again by itself.
    Retrying,
    /// Uncommitted work was saved.
    Kept {
        /// On this branch.
        branch: String,
    },
    /// People are told something that has no other line.
    Notice {
        /// The kind of notice, as in `[notify.events]`.
        notice: String,
    },
    /// Something beside the work went wrong.
    Problem,
    /// This process leaves the run, which waits for a human.
    Waits {
        /// The open questions.
        questions: Vec<String>,
    },
    /// The run has ended.
    Ended {
        /// How: a stable code.
        ending: String,
        /// How many iterations a supervised run took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iterations: Option<u32>,
        /// What it has cost in tokens.
        tokens: u64,
        /// What it has cost, in millionths of a dollar.
        micro_dollars: u64,
        /// The last claim that did not count, and why, unless it ended well.
        refused: Option<String>,
        /// What continues it, where something does.
        next: Option<String>,
    },
}

/// Which agent of a delivery something is about, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About<'a> {
    pub(crate) task: Option<&'a str>,
    pub(crate) role: Option<&'a str>,
    pub(crate) agent: Option<u64>,
}

impl LiveForm {
    pub(crate) fn new(
        run: &str,
        at: Timestamp,
        about: About<'_>,
        text: String,
        event: LiveEvent,
    ) -> Self {
        Self {
            v: VERSION,
            run: run.to_owned(),
            at,
            task: about.task.map(str::to_owned),
            role: about.role.map(str::to_owned),
            agent: about.agent,
            text,
            event,
        }
    }
}

impl LiveEvent {
    pub(crate) fn of_call(call: &ToolCall<'_>) -> Self {
        Self::Tool {
            call: call.call.to_owned(),
            tool: call.name.to_owned(),
            about: redact(call.about).into_owned(),
            lines_added: call.lines.map(|(added, _)| added),
            lines_removed: call.lines.map(|(_, removed)| removed),
        }
    }

    pub(crate) fn of_decision(decision: &Decision) -> Self {
        let Decision { rule, summary, because, remedy, .. } = decision;
        Self::Decision {
            rule: rule.clone(),
            summary: summary.clone(),
            because: redact(because).into_owned(),
            remedy: remedy.clone(),
        }
    }
}
