//! What happens around the agents of a delivery, and what must then be done.

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::reply::AgentReply;
use super::run::Ending;
use super::signal::Role;
use crate::proof::{CheckResult, Inspection, Opinion, Stage};
use crate::run::{Exit, Usage};
use aldis_signal::time::Timestamp;

/// One thing that happened. Exhaustive: the machine decides about each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The work may begin.
    Begin,
    /// The coordinator is back after a crash; the agents it had started are gone.
    Recovered,
    /// An agent is done: its process has ended, or its driver says so.
    Finished {
        /// Which.
        agent: u64,
        /// How its process ended; `None` for agents that are no processes of ours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
        /// Its final message.
        #[serde(flatten)]
        reply: AgentReply,
    },
    /// An agent wrote something and works on. Only a checkpoint counts before the end.
    #[serde(alias = "heard")]
    Reported {
        /// Which.
        agent: u64,
        /// What it wrote.
        #[serde(flatten)]
        reply: AgentReply,
    },
    /// An agent is alive. [`Config::report_interval`] says how often to report that.
    Active {
        /// Which.
        agent: u64,
    },
    /// An agent's work progressed: it used a tool, or changed files. It is alive, too.
    Worked {
        /// Which.
        agent: u64,
    },
    /// An agent's host waits for its service by itself. Until it works again, that is no stagnation.
    Waiting {
        /// Which.
        agent: u64,
    },
    /// What an agent has cost since the last event of this kind, by its host's own figures. Counts
    /// after the end of the agent or of the delivery, too: it was spent.
    Spent {
        /// Which.
        agent: u64,
        /// How much more.
        #[serde(flatten)]
        usage: Usage,
    },
    /// The service refuses to work for an agent for now; its driver starts it again after that.
    #[serde(alias = "limited")]
    RateLimited {
        /// Which.
        agent: u64,
        /// When it will be started again.
        until: Timestamp,
    },
    /// A worker has claimed an agent and is about to start it. Without this, where workers run agents,
    /// an agent waits and its time does not count.
    Claimed {
        /// Which.
        agent: u64,
        /// The worker's name.
        worker: String,
        /// The fencing number of its claim: it grows each time the agent is claimed.
        fence: u64,
    },
    /// What a worker reports of an agent that it claimed. It counts only while its claim is in force.
    Worker {
        /// Which.
        agent: u64,
        /// The fencing number of its claim.
        fence: u64,
        /// What it reports about this agent; anything else is left out.
        report: Box<Self>,
    },
    /// Time passed.
    Tick,
    /// A human answers a question. Also kept when the delivery has ended and can be continued.
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
        /// What prevents it if not.
        #[serde(default)]
        detail: String,
    },
    /// The files of a task's checks were pinned, or compared with their pins.
    Inspected {
        /// The task.
        task: String,
        /// The current commit of its work tree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// Whether there are changes that are not committed.
        #[serde(default)]
        dirty: bool,
        /// What was seen.
        seen: Box<Inspection>,
    },
    /// A check of a task has ended.
    CheckEnded {
        /// The task.
        task: String,
        /// How.
        result: Box<CheckResult>,
    },
    /// A second opinion about the work of a task was given.
    OpinionGiven {
        /// The task.
        task: String,
        /// What it says.
        opinion: Opinion,
    },
    /// Whether the file of an expert that the planner created is there.
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
    /// A human wants the work to continue.
    Resume {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human has a message for agents.
    #[serde(alias = "told")]
    Tell {
        /// The message.
        text: String,
        /// The task or the role it is for; every task that is not over where nothing is given.
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
    /// A human wants to continue a delivery that was cut off or [can be
    /// continued](super::Ending::can_be_continued), with these limits.
    Reopen {
        /// The limits; checked.
        config: Box<Config>,
    },
}

/// What must now be done. Exhaustive: whoever performs effects must know all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Start an agent, unless [`State::agent`](super::State::agent) no longer knows it.
    Dispatch(Dispatch),
    /// Ask an agent that is at work something.
    Request {
        /// Which.
        agent: u64,
        /// What.
        request: AgentRequest,
        /// The text for the agent.
        text: String,
    },
    /// End an agent and everything it started; what it writes no longer counts.
    End {
        /// Which.
        agent: u64,
    },
    /// Ask a human. Comes again when a delivery is continued, for every question that is still open.
    Ask {
        /// The question's id.
        id: String,
        /// The task it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What people call that task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The question in one line.
        #[serde(default)]
        question: String,
        /// The whole request: the question, its context, the options and what would help.
        text: String,
        /// Answers with a meaning of their own, besides any text.
        options: Vec<String>,
    },
    /// Merge a task's work if the task still [waits](super::Wait::Merge) for that, and report how it
    /// went. Work that is merged already counts as merged. Only where tasks have work trees.
    Merge {
        /// The task.
        task: String,
    },
    /// Pin the files of a task's checks in its work tree, or compare them with their pins, and report
    /// it. Only if the task still [waits](super::Wait::Checks) for that.
    Inspect {
        /// The task.
        task: String,
        /// Before the work files are pinned, after a claim they are compared.
        stage: Stage,
    },
    /// Run a check of a task where its files were inspected, and report how it ended.
    RunCheck {
        /// The task.
        task: String,
        /// The name of the check.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        check: String,
        /// The how manieth time in this round, from 1.
        attempt: u32,
    },
    /// Ask for a second opinion about the work of a task where its checks ran, and report it.
    AskJudge {
        /// The task.
        task: String,
    },
    /// Look whether an expert's file is there, and report it. The work waits for that.
    CheckExpert {
        /// The expert.
        name: String,
        /// The file, as the planner wrote it.
        file: String,
    },
    /// Notify whoever wants to know.
    Notice {
        /// What kind of notice.
        notice: Notice,
        /// How bad it is.
        level: Severity,
        /// The task it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// The text. It names the task.
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

/// An agent to be started. Together with a command, a repository, a commit and limits that the
/// coordinator adds, any machine can do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Its number, never used before.
    pub agent: u64,
    /// What it is for.
    pub role: Role,
    /// The task it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What people call that task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The expert it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<String>,
    /// The earlier agent whose host session continues with this prompt, where that is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<u64>,
    /// Seconds after which the machine ends it; 0 in dispatches of 0.1.0, which did not have it.
    #[serde(default)]
    pub timeout: u64,
    /// What it gets to read.
    pub prompt: String,
}

/// What an agent at work is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRequest {
    /// How far it is.
    Checkpoint,
    /// Its result again, this time as a signal.
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
    /// An agent was replaced because its replies held no signal.
    AgentSignalFailure,
    /// Two thirds of a budget are used.
    BudgetSoon,
    /// A task needs a file that another one holds.
    FileConflict,
    /// An expert was left out because its file is missing.
    ExpertLeftOut,
    /// A signal came from an agent that is no longer at work.
    LateSignalIgnored,
    /// A human is asked.
    Question,
    /// The service refuses to work for an agent for now.
    RateLimit,
    /// The attempts to repair the infrastructure are used up.
    RemediationExhausted,
    /// The infrastructure is broken.
    RemediationStarted,
    /// It is repaired.
    RemediationEnded,
    /// The delivery is over.
    RunEnded,
    /// An agent was ended because its work did not progress.
    StagnationAbort,
    /// The work of an agent does not progress.
    StagnationWarn,
    /// A task is on hold because its developer lacks something.
    TaskBlocked,
    /// A task is complete.
    TaskComplete,
    /// A task was given up.
    TaskFailed,
    /// A reply held no signal.
    UnknownSignalRecovery,
}
