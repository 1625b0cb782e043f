//! What an agent reports by calling a tool, and which signal that stands for.
//!
//! One table says it for every machine, role and argument; `docs/mcp.md` shows the table. A call
//! becomes the signal that the agent would have written, so machines know nothing of calls but how
//! the signal came.

mod prompt;
mod table;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use self::prompt::preference;
pub(crate) use self::table::has_tool;
pub use self::table::{Becomes, CallRow, TABLE};
pub(crate) use self::table::{DELIVERY, PHASES, RUN};
use crate::delivery::{DIALECT, Role};
use crate::run::QuestionDraft;
use crate::turns::IncomingMessage;
use crate::{Evidence, Refusal, phases};
use aldis_signal::dialect::Dialect;
use aldis_signal::signal::{Meaning, Signal, Via};

/// The dialect whose names a supervised run shows for calls. Only their meanings count there.
const RUN_DIALECT: &str = "chorus";
/// The `phase` of a completion that ends the whole run.
pub const ALL_PHASES: &str = "all";

/// Why a signal does not count that came in a way that is not enough. The code is stable.
pub const UNATTESTED: &str = "unattested";

/// A call of one of the tools, with its arguments. Exhaustive: the table has every one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", rename_all = "snake_case")]
pub enum Call {
    /// The work, the phase or the task is done.
    Complete {
        /// What was done.
        summary: String,
        /// The phase, or [`ALL_PHASES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What shows it: commands with their results, files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evidence: Vec<String>,
    },
    /// How far the work has come.
    Progress {
        /// What was done last.
        summary: String,
        /// How much of it, in percent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<u8>,
        /// What is left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining: Option<String>,
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// The agent cannot go on.
    Blocked {
        /// Why.
        reason: String,
        /// What is missing.
        needs: Need,
        /// What was tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tried: Option<String>,
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// A human must decide something.
    AskHuman {
        /// The question.
        question: String,
        /// Answers to choose from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// What the agent would do without an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<String>,
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// A reviewer accepts or rejects the work.
    Verdict {
        /// Which.
        verdict: Judgement,
        /// Why.
        #[serde(default)]
        summary: String,
        /// What is wrong.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<CallFinding>,
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// The agent gives the turn in a channel to the next one.
    EndTurn {
        /// The channel.
        channel: String,
        /// The number of the turn, as its notification named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
    },
}

/// What is missing to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Somebody must decide something.
    Decision,
    /// A permission, an account, a key.
    Access,
    /// Something only others know.
    Information,
    /// The environment is broken: builds, services, failures that were there before.
    Environment,
}

/// What a reviewer thinks of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It is good.
    Approve,
    /// It is not.
    Reject,
}

/// One thing that a reviewer found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFinding {
    /// What is wrong.
    pub what: String,
    /// The file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// What a call stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Reported {
    /// A signal.
    Signal(Box<Signal>),
    /// The agent may stop: a human is asked in the session, or answers from elsewhere.
    Asks(QuestionDraft),
    /// Nothing that the machine keeps.
    Nothing,
}

/// A call that nobody in this role may make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreportable {
    /// Which rule refuses it.
    pub refusal: Refusal,
    /// Why.
    pub reason: String,
    /// What to do instead.
    pub remedy: String,
}

impl Call {
    /// Returns the name of the tool.
    pub fn tool(&self) -> &'static str {
        match self {
            Self::AskHuman { .. } => "ask_human",
            Self::Blocked { .. } => "blocked",
            Self::Complete { .. } => "complete",
            Self::EndTurn { .. } => "end_turn",
            Self::Progress { .. } => "progress",
            Self::Verdict { .. } => "verdict",
        }
    }

    /// Returns the task it names.
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::AskHuman { task, .. }
            | Self::Blocked { task, .. }
            | Self::Complete { task, .. }
            | Self::Progress { task, .. }
            | Self::Verdict { task, .. } => task.as_deref(),
            Self::EndTurn { .. } => None,
        }
    }

    /// Returns its words.
    pub fn words(&self) -> &str {
        match self {
            Self::AskHuman { question, .. } => question,
            Self::Blocked { reason, .. } => reason,
            Self::Complete { summary, .. }
            | Self::Progress { summary, .. }
            | Self::Verdict { summary, .. } => summary,
            Self::EndTurn { .. } => "",
        }
    }

    /// Returns it in one line, as evidence.
    pub fn quote(&self) -> String {
        let mut quote = self.tool().to_owned();
        if let Some(condition) = self.condition() {
            let _ = write!(quote, " ({condition})");
        }
        match self.words() {
            "" => quote,
            words => format!("{quote}: {words}"),
        }
    }

    /// Returns what it stands for in a supervised run.
    ///
    /// # Errors
    ///
    /// [`Unreportable`] for tools that mean nothing there.
    pub fn in_run(&self, via: Via) -> Result<Reported, Unreportable> {
        self.reported(RUN, None, |row| {
            let Becomes::Named(name) = row.becomes else { return Reported::Nothing };
            let known = (RUN_DIALECT, name, meaning(RUN_DIALECT, name));
            Reported::Signal(Box::new(self.signal(known, via, row.field)))
        })
    }

    /// Returns what it stands for in a run through phases.
    ///
    /// # Errors
    ///
    /// [`Unreportable`] for tools that mean nothing there.
    pub fn in_phases(&self, state: &phases::State, via: Via) -> Result<Reported, Unreportable> {
        self.reported(PHASES, None, |row| {
            let pipeline = state.pipeline();
            let dialect = Dialect::builtin(&pipeline.dialect);
            let meaning_of = |wanted: Meaning| {
                let all = dialect.into_iter().flat_map(|dialect| &dialect.signals);
                all.into_iter().find(|it| it.meaning == wanted).map(|it| it.name.to_string())
            };
            let (name, meaning) = match row.becomes {
                Becomes::Question => return Reported::Asks(self.question()),
                Becomes::PhaseEnd => {
                    let phase = self.phase().unwrap_or_else(|| state.phase());
                    let ends = pipeline.phase(phase).and_then(|phase| phase.signal.clone());
                    (ends.or_else(|| meaning_of(Meaning::Done)), Meaning::Done)
                }
                Becomes::RunEnd => (pipeline.finish.clone(), Meaning::Done),
                Becomes::PhaseError => {
                    let error =
                        meaning_of(Meaning::Failed).or_else(|| meaning_of(Meaning::Blocked));
                    (error, Meaning::Failed)
                }
                Becomes::Named(_) | Becomes::Verdict(..) | Becomes::Nothing => {
                    return Reported::Nothing;
                }
            };
            let name = name.unwrap_or_else(|| self.tool().to_owned());
            let mut signal = self.signal((&pipeline.dialect, &name, meaning), via, row.field);
            let phase = self.phase().filter(|phase| *phase != ALL_PHASES);
            signal.fields.insert("phase".to_owned(), phase.unwrap_or_else(|| state.phase()).into());
            if meaning == Meaning::Failed {
                // What the agent lacks it cannot get by trying again.
                signal.fields.insert("recoverable".to_owned(), "false".into());
            }
            Reported::Signal(Box::new(signal))
        })
    }

    /// Returns what it stands for from an agent of this role, whose work this subject names.
    ///
    /// # Errors
    ///
    /// [`Unreportable`] if the role may not report it by a call.
    pub fn in_delivery(
        &self,
        (role, subject): (Role, Option<&str>),
        via: Via,
    ) -> Result<Reported, Unreportable> {
        self.reported(DELIVERY, Some(role), |row| {
            let (name, verdict) = match row.becomes {
                Becomes::Named(name) => (name, None),
                Becomes::Verdict(name, verdict) => (name, Some(verdict)),
                _ => return Reported::Nothing,
            };
            let mut signal = self.signal((DIALECT, name, meaning(DIALECT, name)), via, row.field);
            signal.subject = verdict.or_else(|| self.task()).or(subject).map(str::to_owned);
            Reported::Signal(Box::new(signal))
        })
    }

    /// Returns the message that an agent of a channel would have sent instead.
    pub fn ends_turn(&self, via: Via) -> IncomingMessage {
        let signal = Evidence::signal("TURN_COMPLETE", &self.quote(), 1, via);
        IncomingMessage { signal: Some(signal), ..IncomingMessage::default() }
    }

    /// What it asks a human.
    fn question(&self) -> QuestionDraft {
        let (options, default) = match self {
            Self::AskHuman { options, default, .. } => (options.clone(), default.clone()),
            _ => (Vec::new(), None),
        };
        QuestionDraft { text: self.words().to_owned(), options, default }
    }

    fn phase(&self) -> Option<&str> {
        match self {
            Self::Complete { phase, .. } => phase.as_deref(),
            _ => None,
        }
    }

    /// The argument on which its meaning depends.
    fn condition(&self) -> Option<String> {
        let word = |value: Value| value.as_str().map(str::to_owned);
        Some(match self {
            Self::Complete { phase: Some(phase), .. } => format!("phase = {phase}"),
            Self::Blocked { needs, .. } => format!("needs = {}", word(json!(needs))?),
            Self::Verdict { verdict, .. } => format!("verdict = {}", word(json!(verdict))?),
            _ => return None,
        })
    }

    fn reported(
        &self,
        machine: &str,
        role: Option<Role>,
        become_: impl FnOnce(&CallRow) -> Reported,
    ) -> Result<Reported, Unreportable> {
        let (tool, condition) = (self.tool(), self.condition().unwrap_or_default());
        let may = |row: &&CallRow| {
            row.machine == machine
                && (row.roles.is_empty() || role.is_some_and(|role| row.roles.contains(&role)))
        };
        let fits =
            |row: &&CallRow| row.tool == tool && (row.when.is_empty() || row.when == condition);
        let rows = || TABLE.iter().filter(may);
        if let Some(row) = rows().find(fits) {
            return Ok(become_(row));
        }
        let who = role.map_or("this run", Role::label);
        let mut tools: Vec<&str> = rows().map(|row| row.tool).collect();
        tools.dedup();
        tools.sort_unstable();
        tools.dedup();
        let remedy = match &*tools {
            [] => "report in your final message, in the form that your prompt shows".to_owned(),
            tools => format!("call {}, or report as your prompt shows", tools.join(" or ")),
        };
        let reason = match role {
            Some(role) => format!("{} does not report by `{tool}`", role.with_article()),
            None => format!("`{tool}` means nothing in {who}"),
        };
        Err(Unreportable { refusal: Refusal::RoleNotAllowed, reason, remedy })
    }

    /// The signal, with the arguments as its fields.
    fn signal(
        &self,
        (dialect, name, meaning): (&str, &str, Meaning),
        via: Via,
        field: &str,
    ) -> Signal {
        let mut signal = Signal::by_call(dialect, name, meaning, via, self.quote());
        let mut set = |key: &str, value: Value| {
            let is_empty = value.is_null() || value.as_str() == Some("") || value == json!([]);
            if !is_empty {
                signal.fields.insert(key.to_owned(), value);
            }
        };
        set(field, self.words().into());
        match self {
            Self::Complete { evidence, .. } => set("verification_results", json!(evidence)),
            Self::Progress { remaining, percent, .. } => {
                set("progress", json!(percent.map(|percent| format!("{percent}%"))));
                set("remaining", json!(remaining));
            }
            Self::Blocked { needs, tried, .. } => {
                set("needed", json!(needs));
                set("attempted", json!(tried));
            }
            Self::AskHuman { options, default, .. } => {
                set("options", json!(options));
                set("default", json!(default));
            }
            Self::Verdict { findings, .. } => {
                let issue =
                    |it: &CallFinding| json!({"file": it.path, "line": it.line, "text": it.what});
                set("issues_found", findings.iter().map(issue).collect());
            }
            Self::EndTurn { .. } => {}
        }
        if let Self::Progress { percent, .. } = self {
            signal.progress = percent.map(|percent| percent.min(100));
        }
        signal.payload = Some(self.words().to_owned()).filter(|words| !words.is_empty());
        signal
    }
}

/// What a signal of a built-in dialect means.
fn meaning(dialect: &str, name: &str) -> Meaning {
    let signal = Dialect::builtin(dialect).and_then(|dialect| dialect.signal(name));
    signal.map_or(Meaning::Info, |signal| signal.meaning)
}

#[cfg(test)]
mod tests;
