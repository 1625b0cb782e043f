//! What happened in a session, for whoever looks at it afterwards: prompts, tools and how they ended,
//! errors, costs, interruptions, each with its line and the time that the host wrote beside it.
//!
//! [Host events](super::events) serve a supervisor, who must act on live output and be told each
//! thing once. Activities serve a report: files and streams alike, also what was overcome, and calls
//! paired with their results. Like events they are believed only from members that a host writes
//! itself; what a tool printed is passed on as such.

mod fold;

use std::time::Duration;

pub(crate) use fold::Activities;

use aldis_signal::time::Timestamp;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// Where it is written.
    pub place: EntryPlace,
    /// Whether it is part of a sub-agent's conversation.
    pub sidechain: bool,
    /// What it is.
    pub fact: Fact,
}

/// A line of a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryPlace {
    /// Its number, from 1.
    pub line: u64,
    /// When the host wrote it, where it says so.
    pub at: Option<Timestamp>,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// The session's name. Comes again if it changes.
    Session(String),
    /// Where the agent works. Comes again if it changes.
    Directory(String),
    /// A person, or a program in a person's place, says something to the agent.
    Prompted {
        /// The first words.
        words: String,
    },
    /// The agent says something.
    Said {
        /// The first words.
        words: String,
    },
    /// The agent used a tool; its place is that of the result.
    Tool(Box<ToolUse>),
    /// The host denied the agent a permission, and says so apart from the call.
    Denied {
        /// The tool, as the host calls it.
        tool: String,
        /// What the agent wanted to do with it.
        what: String,
    },
    /// What the session has cost so far: totals that never fall.
    Spent {
        /// Tokens in and out, those read from a cache too, as far as the host tells.
        tokens: u64,
        /// Millionths of a dollar; zero where the host names no price.
        micro_dollars: u64,
    },
    /// The host met an error and tries again by itself.
    Retried {
        /// What it says.
        what: String,
    },
    /// The host met an error; whether it was overcome, the next activities tell.
    Failed {
        /// Whether it is a limit: rate or usage limit, quota, overload.
        limit: bool,
        /// What it says.
        what: String,
        /// When the service works again, where the host says so.
        until: Option<Timestamp>,
    },
    /// The host's own word that a turn or the session ended.
    Ended {
        /// Whether it ended well in its view. It knows nothing about the work.
        ok: bool,
        /// Why not, or what was unusual.
        what: Option<String>,
    },
    /// Somebody interrupted the agent.
    Interrupted,
    /// The host replaced the conversation by a summary.
    Compacted,
}

/// A call of a tool and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolUse {
    /// The tool, as the host calls it.
    pub name: String,
    /// What kind of tool it is.
    pub kind: ToolKind,
    /// The command, path, question or address that it was about.
    pub what: String,
    /// Where it was called.
    pub called: EntryPlace,
    /// How it ended.
    pub end: ToolEnd,
    /// The exit code of a command, where the host tells.
    pub exit: Option<i64>,
    /// How long it ran, where the host tells: the rest of the time between call and result went to
    /// something else, such as a permission prompt.
    pub took: Option<Duration>,
    /// The end of what a command printed.
    pub output: String,
}

/// What a tool does, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolKind {
    /// Asks a person something and waits for the answer.
    Ask,
    /// Says that the work is done.
    Claim,
    /// Runs a shell command.
    Command,
    /// Anything else: reading, searching, other services.
    Other,
    /// Writes files.
    Write,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolEnd {
    /// The host reports no error. A command without an exit code ended with 0 then.
    Done,
    /// The host reports an error, or the command an exit code that is not 0.
    Failed,
    /// It was not run: a person or the host refused.
    Refused,
    /// The transcript ends before it was answered.
    Unanswered,
    /// The host does not write down how calls end, or the command was left running.
    Unknown,
}

#[cfg(test)]
mod tests;
