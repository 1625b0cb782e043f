//! What happens around a supervised agent, and what must then be done.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::evidence::beginning;
use aldis_signal::dialect::{Dialect, Syntax};
use aldis_signal::redact::redact;
use aldis_signal::scan::Token;
use aldis_signal::signal::{Meaning, Signal};
use aldis_signal::time::Timestamp;

use super::config::Config;
use super::state::Ending;

/// How much of a signal is quoted as evidence.
const QUOTE_MAX: usize = 300;

/// One thing that happened. Exhaustive: the machine has an opinion about each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The supervisor is ready to start the agent.
    Begin,
    /// The supervisor is back after a crash; the old agent is gone.
    Recovered,
    /// The agent was started.
    Launched {
        /// Who it is, in the shell's own words, for finding it again.
        agent: String,
    },
    /// A human wants a run that ended without success to go on.
    Reopen {
        /// The limits from now on.
        config: Box<Config>,
    },
    /// The agent said something in its dialect.
    Heard {
        /// What.
        said: Vec<Heard>,
    },
    /// The agent said something that looked like a signal and was not one.
    Missed {
        /// What to write instead, in words for the agent.
        hint: String,
    },
    /// The agent used a tool or changed something.
    Worked,
    /// What the iteration has cost so far.
    Spent(Usage),
    /// The host met an error of the service and tries again by itself.
    Retrying {
        /// What it said.
        what: String,
    },
    /// The service refuses to work for now.
    Limited {
        /// What it said.
        what: String,
        /// When it will work again, where it said so.
        until: Option<Timestamp>,
    },
    /// The host gave up because of an error that waiting does not cure.
    Refused {
        /// What it said.
        what: String,
    },
    /// The agent's process has ended.
    Exited(Exit),
    /// How the work tree stands.
    Looked(Tree),
    /// The check of a claim is over.
    Checked {
        /// Whether it passed.
        passed: bool,
        /// The end of what it printed.
        output: String,
    },
    /// Time passed.
    Tick,
    /// A human wants the agent to rest.
    Pause {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human wants the run to go on.
    Resume {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human wants the agent to know something.
    Told {
        /// What.
        text: String,
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human wants the run to end.
    Abort {
        /// By what means, for the journal.
        by: String,
    },
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
}

/// A signal, as far as the machine needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Its name in its dialect.
    pub name: String,
    /// What it says.
    pub meaning: Meaning,
    /// The words said with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
    /// The phase it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How far the phase usually is, where the dialect says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implied: Option<u8>,
    /// The agent's own count of iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Whether it says that there was nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_op: bool,
    /// Which message it stands in.
    #[serde(default)]
    pub message: u64,
    /// The words, cut to a reasonable length.
    #[serde(default)]
    pub quote: String,
    /// The line in the message.
    #[serde(default)]
    pub line: u64,
}

impl Heard {
    /// Takes over what a signal says, without its secrets; `message` tells messages apart.
    pub fn new(signal: &Signal, message: u64) -> Self {
        let field = |name: &str| signal.fields.get(name)?.as_str().map(str::to_owned);
        let text = signal.payload.clone().or_else(|| field("reason")).or_else(|| field("message"));
        Self {
            name: signal.name.to_string(),
            meaning: signal.meaning,
            text: text.map(|text| redact(&text).into_owned()),
            progress: signal.progress,
            implied: field("phase").and_then(|phase| implied(&signal.dialect, &phase)),
            phase: field("phase"),
            iteration: signal.fields.get("iteration").and_then(count),
            no_op: signal.fields.get("no_op").is_some_and(|value| *value == Value::Bool(true)),
            message,
            quote: beginning(&signal.raw, QUOTE_MAX, &Token::Off),
            line: signal.place.line,
        }
    }
}

/// How far a phase usually is, in a built-in dialect.
fn implied(dialect: &str, phase: &str) -> Option<u8> {
    let Syntax::Fence(fence) = &Dialect::builtin(dialect)?.syntax else { return None };
    fence.implied_progress.get(phase).or_else(|| fence.implied_progress.get("*")).copied()
}

fn count(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

/// What an iteration has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens, in and out.
    #[serde(default)]
    pub tokens: u64,
    /// Millionths of a dollar.
    #[serde(default)]
    pub micro_dollars: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code, if it had one.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

impl Exit {
    /// Returns whether it ended as it should.
    pub fn is_clean(self) -> bool {
        self.code == Some(0)
    }
}

/// How the work tree stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// What it looks like, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The current commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Whether there are changes that are not committed.
    #[serde(default)]
    pub dirty: bool,
    /// Whether there are conflict markers.
    #[serde(default)]
    pub conflicts: bool,
}

/// What must now be done. Exhaustive: whoever performs effects must know all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Start the agent with this prompt.
    Start {
        /// The iteration, from 1.
        iteration: u32,
        /// What it is told.
        prompt: String,
    },
    /// Ask the agent to stop, and end it after so many seconds.
    End {
        /// How long it has.
        grace: u64,
    },
    /// Suspend the agent.
    Suspend,
    /// Let it go on.
    Continue,
    /// Run the check.
    Check,
    /// Look at the work tree.
    Look,
    /// Ask a human.
    Ask {
        /// The question's name.
        id: String,
        /// The question.
        text: String,
    },
    /// Keep uncommitted work on a branch of its own.
    KeepWork,
    /// Tell whoever wants to know.
    Notice {
        /// What kind of notice.
        notice: Notice,
        /// The words.
        text: String,
    },
    /// The run is over.
    Finish {
        /// How.
        ending: Ending,
    },
}

/// What a notice is about. The names are stable: they switch notices on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// A human is asked.
    Question,
    /// The service refuses to work for now.
    RateLimit,
    /// The run is over.
    RunEnded,
    /// The run is ended because nothing moves.
    StagnationAbort,
    /// The agent is suspended because nothing moves.
    StagnationPause,
    /// The agent is told that nothing moves.
    StagnationWarn,
    /// Two thirds of a budget are used.
    BudgetSoon,
}

impl Notice {
    /// Returns the stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::RateLimit => "rate_limit",
            Self::RunEnded => "run_ended",
            Self::StagnationAbort => "stagnation_abort",
            Self::StagnationPause => "stagnation_pause",
            Self::StagnationWarn => "stagnation_warn",
            Self::BudgetSoon => "budget_soon",
        }
    }
}
