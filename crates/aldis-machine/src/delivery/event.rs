//! What happens around the agents of a delivery, and what must then be done.

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::run::Ending;
use super::signal::{DIALECT, Role};
use super::task::render_fields;
use crate::Miss;
use crate::evidence::beginning;
use crate::run::{Exit, Usage};
use aldis_signal::message::Origin;
use aldis_signal::redact::{redact, redact_value};
use aldis_signal::scan::{Rules, Token, scan_with};
use aldis_signal::signal::{Fields, Finding, Signal};
use aldis_signal::time::Timestamp;

/// How much of an agent's words is quoted as evidence, and shown in logs.
pub(super) const PREVIEW_MAX: usize = 200;
/// How many signals and near misses of one reply are looked at.
const SAID_MAX: usize = 64;

/// One thing that happened. Exhaustive: the machine has an opinion about each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The work may begin.
    Begin,
    /// The coordinator is back after a crash; the agents it had started are gone.
    Recovered,
    /// An agent is done: its process has ended, or it said its last word by another way.
    Finished {
        /// Which.
        agent: u64,
        /// How its process ended; `None` for agents that are no processes of ours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
        /// What it said in its final message.
        #[serde(flatten)]
        reply: AgentReply,
    },
    /// An agent said something and works on. Only a checkpoint counts before the end.
    #[serde(alias = "heard")]
    Reported {
        /// Which.
        agent: u64,
        /// What it said.
        #[serde(flatten)]
        reply: AgentReply,
    },
    /// An agent showed a sign of life. [`Config::tell_every`] says how often that is worth telling.
    Active {
        /// Which.
        agent: u64,
    },
    /// An agent's work moved: it used a tool, or changed files. A sign of life too.
    Worked {
        /// Which.
        agent: u64,
    },
    /// An agent's host waits for its service by itself. Until it works again, that is no stagnation.
    Waiting {
        /// Which.
        agent: u64,
    },
    /// What an agent has cost since this was last said of it, by its host's own figures. Also counted
    /// when the agent or the whole delivery has ended: it was spent.
    Spent {
        /// Which.
        agent: u64,
        /// How much more.
        #[serde(flatten)]
        usage: Usage,
    },
    /// The service refuses to work for an agent for now; it is started again after that.
    #[serde(alias = "limited")]
    RateLimited {
        /// Which.
        agent: u64,
        /// When it will be started again.
        until: Timestamp,
    },
    /// Time passed.
    Tick,
    /// A human answers a question.
    Answer {
        /// The question.
        id: String,
        /// The answer.
        text: String,
        /// By what means it came, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// The attempt to merge a task's work is over.
    Merged {
        /// The task.
        task: String,
        /// Whether it is merged.
        ok: bool,
        /// What stands in the way if not.
        #[serde(default)]
        detail: String,
    },
    /// Whether the file of an expert that was made is there.
    ExpertChecked {
        /// The expert.
        name: String,
        /// Whether.
        present: bool,
    },
    /// A human wants no further agents to be started.
    Pause {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human wants the work to go on.
    Resume {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human wants agents to know something.
    #[serde(alias = "told")]
    Tell {
        /// What.
        text: String,
        /// The task or the role it is for; all that are not complete where nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human wants the work to end.
    Abort {
        /// By what means, for the journal.
        by: String,
    },
    /// A human wants a delivery to go on that was cut off or [can be
    /// continued](super::Ending::can_be_continued), with these limits.
    Reopen {
        /// The limits; checked.
        config: Box<Config>,
    },
}

impl Event {
    /// Returns whether it means anything when the delivery is over.
    pub(super) fn counts_after_the_end(&self) -> bool {
        matches!(self, Self::Spent { .. } | Self::Reopen { .. })
    }
}

/// What a reply holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReply {
    /// Its signals, in order.
    #[serde(default)]
    pub signals: Vec<ReportedSignal>,
    /// What looked like a signal and was none.
    #[serde(default, alias = "misses", skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<Miss>,
    /// The beginning of the reply, for people who ask.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
}

impl AgentReply {
    /// Reads a reply. `token` is what [`State::expected_token`](super::State::expected_token) says
    /// about the agent.
    pub fn read(rules: &Rules, token: &Token, text: &str) -> Self {
        let preview = beginning(text.trim_start(), PREVIEW_MAX, token);
        let mut reply = Self { preview, ..Self::default() };
        for finding in scan_with(rules, text.as_bytes(), &Origin::assistant(), token.clone()) {
            match finding {
                Finding::Signal(signal) if &*signal.dialect == DIALECT => {
                    reply.signals.push(ReportedSignal::new(&signal, token));
                }
                Finding::NearMiss(miss) if &*miss.dialect == DIALECT => {
                    reply.near_misses.push(Miss::new(&miss, PREVIEW_MAX, token));
                }
                _ => {}
            }
        }
        // What stands last is what the agent meant.
        reply.signals.drain(..reply.signals.len().saturating_sub(SAID_MAX));
        reply.near_misses.drain(..reply.near_misses.len().saturating_sub(SAID_MAX));
        reply
    }
}

/// A signal, as far as the machine needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedSignal {
    /// Its name.
    pub name: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was said below it.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub fields: Fields,
    /// The line in the reply.
    #[serde(default)]
    pub line: u64,
    /// The words, cut to a reasonable length.
    #[serde(default)]
    pub quote: String,
}

impl ReportedSignal {
    /// Takes over what a signal says, without its secrets.
    fn new(signal: &Signal, token: &Token) -> Self {
        let mut fields = signal.fields.clone();
        fields.values_mut().for_each(redact_value);
        Self {
            name: signal.name.to_string(),
            subject: signal.subject.as_deref().map(|subject| redact(subject).into_owned()),
            quote: beginning(&quote(&signal.raw, &fields), PREVIEW_MAX, token),
            fields,
            line: signal.place.line,
        }
    }
}

/// A signal and what stands below it, in one line: whoever asks why wants to read what was said.
fn quote(raw: &str, fields: &Fields) -> String {
    let body = render_fields(fields);
    let mut quote = raw.to_owned();
    for (index, accepted) in body.split_whitespace().enumerate() {
        quote.push_str(if index == 0 { " · " } else { " " });
        quote.push_str(accepted);
    }
    quote
}

/// What must now be done. Exhaustive: whoever performs effects must know all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Start an agent, unless [`State::agent`](super::State::agent) no longer knows it.
    Dispatch(Dispatch),
    /// Ask a living agent something.
    Request {
        /// Which.
        agent: u64,
        /// What.
        request: Request,
        /// The words.
        text: String,
    },
    /// End an agent and everything it started; its words no longer count.
    End {
        /// Which.
        agent: u64,
    },
    /// Ask a human.
    Ask {
        /// The question's name.
        id: String,
        /// The task it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// The question.
        text: String,
        /// Words that are understood as an answer, beside any others.
        options: Vec<String>,
    },
    /// Merge a task's work if the task still [waits](super::Wait::Merge) for that, and say how it went.
    /// What is merged already is merged.
    Merge {
        /// The task.
        task: String,
    },
    /// Look whether an expert's file is there.
    CheckExpert {
        /// The expert.
        name: String,
        /// The file, as the planner wrote it.
        file: String,
    },
    /// Tell whoever wants to know.
    Notice {
        /// What kind of notice.
        notice: Notice,
        /// How bad it is.
        level: Severity,
        /// The task it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// The words.
        text: String,
        /// How many replies in a row held no signal, where that is what it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// The beginning of such a reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_preview: Option<String>,
    },
    /// The delivery is over.
    Finish {
        /// How.
        ending: Ending,
    },
}

/// An agent to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Its number, never used before.
    pub agent: u64,
    /// What it is for.
    pub role: Role,
    /// The task it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The expert it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<String>,
    /// The earlier agent whose host session goes on with this prompt, where that is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<u64>,
    /// What it is told.
    pub prompt: String,
}

/// What a living agent is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// A sign of life.
    Checkpoint,
    /// Its last word again, this time as a signal.
    Resend,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Info,
    /// Worth a look.
    Warning,
    /// Wrong.
    Error,
}

/// What a notice is about. The names are stable: they switch notices on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// An agent was replaced because it said nothing that can be understood.
    AgentSignalFailure,
    /// Two thirds of a budget are used.
    BudgetSoon,
    /// Somebody needs a file that somebody else has.
    FileConflict,
    /// An expert was left out because its file is missing.
    ExpertLeftOut,
    /// A signal came from an agent that is no longer at work.
    LateSignalIgnored,
    /// A human is asked.
    Question,
    /// The service refuses to work for an agent for now.
    RateLimit,
    /// The limit of attempts to repair what all tasks need is reached.
    RemediationExhausted,
    /// What all tasks need is broken.
    RemediationStarted,
    /// It is repaired.
    RemediationEnded,
    /// The delivery is over.
    RunEnded,
    /// An agent was ended because its work did not move.
    StagnationAbort,
    /// The work of an agent does not move.
    StagnationWarn,
    /// A task was set aside because its developer lacks something.
    TaskBlocked,
    /// A task is complete.
    TaskComplete,
    /// A task was given up.
    TaskFailed,
    /// A reply held no signal.
    UnknownSignalRecovery,
}

/// The beginning of a text, as far as logs show it.
pub(super) fn preview(text: &str) -> String {
    text.trim_start().chars().take(PREVIEW_MAX).collect()
}
