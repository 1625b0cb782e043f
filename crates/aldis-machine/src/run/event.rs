//! What happens around a supervised agent, and what must then be done.

use serde::{Deserialize, Serialize};

use crate::proof::{CheckResult, Inspection, Opinion, Stage};
use aldis_signal::codes;
use aldis_signal::time::Timestamp;

use super::config::Config;
use super::progress::ProgressBatch;
use super::signal::RunSignal;
use super::state::Ending;

/// One thing that happened. Exhaustive: the machine has an opinion about each.
///
/// The aliases are the names that 0.1.0 stored; drivers may still send them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The supervisor is ready to start the agent.
    Begin,
    /// The supervisor is back after a crash; the old agent is gone.
    Recovered,
    /// The agent was started.
    Launched {
        /// Its identity, in the driver's own form, for finding it again.
        agent: String,
    },
    /// The agent could not be started.
    LaunchFailed {
        /// Why: no such program, no permission to run it.
        what: String,
    },
    /// A human wants a run that ended without success to continue.
    Reopen {
        /// The limits from now on.
        config: Box<Config>,
    },
    /// The agent reported signals.
    #[serde(alias = "heard")]
    Reported {
        /// The signals, in the order in which it wrote them.
        #[serde(alias = "said")]
        signals: Vec<RunSignal>,
    },
    /// The agent reported progress that only repeats or moves a number, so often that a driver joined
    /// the reports; see [`super::ProgressCoalescer`].
    Progress(ProgressBatch),
    /// The agent wrote something that looked like a signal and was not one.
    #[serde(alias = "missed")]
    NearMiss {
        /// What to write instead, as a sentence for the agent.
        hint: String,
    },
    /// The agent used a tool or changed something.
    #[serde(alias = "worked")]
    Activity,
    /// The cost of the iteration so far.
    Spent(Usage),
    /// The host met an error of its service and retries by itself.
    Retrying {
        /// The host's message.
        what: String,
    },
    /// The service refuses to work for now.
    Limited {
        /// The host's message.
        what: String,
        /// When the service will work again, where the message says so.
        until: Option<Timestamp>,
    },
    /// The host gave up because of an error that waiting does not fix: a refused login, a model that
    /// does not exist.
    #[serde(alias = "refused")]
    HostFailed {
        /// The host's message.
        what: String,
    },
    /// The host denied the agent a permission.
    PermissionDenied {
        /// The tool that the agent wanted to use.
        tool: String,
        /// What it wanted to do with it: a command, a path.
        #[serde(default)]
        what: String,
        /// How a human allows it, as a clause: `allow it: aldis run --continue ...`.
        #[serde(default)]
        cure: String,
    },
    /// The agent's process has ended.
    Exited(AgentExit),
    /// The work tree was inspected.
    Looked(WorkTree),
    /// The check of a claim has ended. Sent by drivers before checks had names.
    Checked {
        /// Whether it passed.
        passed: bool,
        /// The end of its output.
        output: String,
    },
    /// The files of the checks were pinned, or compared with their pins.
    Inspected(Box<Inspection>),
    /// A check has ended.
    CheckEnded(Box<CheckResult>),
    /// A second opinion was given.
    OpinionGiven(Opinion),
    /// Time passed.
    Tick,
    /// A human pauses the run.
    Pause {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human resumes the run.
    Resume {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human has a message for the agent.
    #[serde(alias = "told")]
    Tell {
        /// The message.
        text: String,
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human ends the run.
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
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
}

/// The cost of an iteration so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens, in and out.
    #[serde(default)]
    pub tokens: u64,
    /// Millionths of a dollar.
    #[serde(default)]
    pub micro_dollars: u64,
}

impl Usage {
    /// Both together.
    pub(crate) fn plus(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            micro_dollars: self.micro_dollars.saturating_add(more.micro_dollars),
        }
    }

    /// Whether so many thirds of the tokens, and of the money, are used that may be.
    pub(crate) fn reaches(self, thirds: u64, tokens: Option<u64>, money: Option<u64>) -> [bool; 2] {
        [(self.tokens, tokens), (self.micro_dollars, money)].map(|(used, most)| {
            most.is_some_and(|most| used.saturating_mul(3) >= most.saturating_mul(thirds))
        })
    }
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

/// How the agent's process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentExit {
    /// Its exit code, if it had one.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The last lines that it wrote to standard error, or to standard output where it wrote none
    /// there. Needed after a crash only: the next attempt gets them in its prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl From<Exit> for AgentExit {
    fn from(Exit { code, signal }: Exit) -> Self {
        Self { code, signal, output: String::new() }
    }
}

impl AgentExit {
    /// Returns whether it ended as it should.
    pub fn is_clean(&self) -> bool {
        self.code == Some(0)
    }

    /// Returns how it ended, as a clause without its subject: `exited with code 1`.
    pub(super) fn clause(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended in an unknown way".to_owned(),
        }
    }
}

/// The state of the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkTree {
    /// A digest that changes whenever a file changes. With git: of the current commit, the index and
    /// every changed file with its size and time. Without git: of every file below the project, as
    /// far as the driver can look. `None` where it could not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The current commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Whether there are changes that are not committed.
    #[serde(default)]
    pub dirty: bool,
    /// Whether conflict markers are left. The driver looks for them in three places: staged changes,
    /// commits since the run began ([`super::State::base`]), and the work tree. A file that is merely
    /// not staged has none.
    #[serde(default)]
    pub conflicts: bool,
    /// Why the work tree could not be inspected. The other members then tell nothing, and a claim
    /// that depends on them is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What must now be done. Exhaustive: whoever performs effects must know all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Start the agent with this prompt. Answered by [`Event::Launched`] or [`Event::LaunchFailed`].
    Start {
        /// The iteration, from 1.
        iteration: u32,
        /// The whole prompt.
        prompt: String,
    },
    /// Ask the agent to stop, and end it after so many seconds.
    End {
        /// How long it has.
        grace: u64,
    },
    /// Suspend the agent.
    Suspend,
    /// Resume the suspended agent.
    Continue,
    /// Run the check. Answered by [`Event::Checked`]. Only for runs that began before checks had
    /// names.
    Check,
    /// Pin the files of the checks, or compare them with their pins. With a commit, in a clean
    /// checkout of it. Answered by [`Event::Inspected`]; nothing goes on before that.
    Inspect {
        /// At the start files are pinned, at a claim they are compared.
        stage: Stage,
        /// The commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// Whether what was pinned before stays pinned as it was then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep: bool,
    },
    /// Run a check, where the files were inspected. Answered by [`Event::CheckEnded`].
    RunCheck {
        /// Its name.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        check: String,
        /// The how manieth time in this round, from 1.
        attempt: u32,
    },
    /// Ask for a second opinion. Answered by [`Event::OpinionGiven`].
    AskJudge,
    /// Inspect the work tree. Answered by [`Event::Looked`]; nothing goes on before that.
    Look,
    /// Ask a human.
    Ask {
        /// The question's id.
        id: String,
        /// The question.
        text: String,
        /// The answers that whoever asks suggests.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// What whoever asks would do without an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<String>,
    },
    /// Keep uncommitted work on a branch of its own.
    KeepWork {
        /// The fingerprint of the work tree when the run began: if it is still the same, the run
        /// changed nothing and there is nothing to keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<String>,
    },
    /// Notify people.
    Notice {
        /// What kind of notice.
        notice: Notice,
        /// The sentence.
        text: String,
    },
    /// The run has ended.
    Finish {
        /// How.
        ending: Ending,
    },
}

impl Effect {
    pub(super) fn notice(notice: Notice, text: impl Into<String>) -> Self {
        Self::Notice { notice, text: text.into() }
    }
}

codes! {
    /// The kinds of notices. The names are stable: they switch notices on and off.
    pub enum Notice {
        /// A human is asked.
        Question = "question",
        /// The service refuses to work for now.
        RateLimit = "rate_limit",
        /// The run has ended.
        RunEnded = "run_ended",
        /// The agent is stopped because the work makes no progress.
        StagnationAbort = "stagnation_abort",
        /// The agent is suspended because the work makes no progress.
        StagnationPause = "stagnation_pause",
        /// The work makes no progress.
        StagnationWarn = "stagnation_warn",
        /// Two thirds of a budget are used.
        BudgetSoon = "budget_soon",
    }
}
