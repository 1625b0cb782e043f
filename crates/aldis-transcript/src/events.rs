//! What a host's live output reports beside the agent's words: costs, limits, errors, tool use, the
//! end.
//!
//! A supervisor must know that a service refuses to work, and must not be told so by anybody but
//! the host: a document about rate limits, an agent that quotes one, a tool that prints one are no
//! limits. So every event comes from a member that the host writes itself, never from a text by the
//! agent, a tool or a user. Plain text has no such members, so only the exact lines are known in
//! which hosts report at the very end of their output.
//!
//! What a host overcomes by itself is no limit either: [`HostEvent::Limited`] and
//! [`HostEvent::Failed`] come when the host ends (its last line, or the end of the output) and only
//! if the agent did not go on after the error. Until then a host that tries again reports
//! [`HostEvent::Retrying`].
//!
//! Only live output is read. The forms of transcript files give no events.

mod fold;
mod resets;
mod text;
pub(crate) mod trouble;

use aldis_signal::time::Timestamp;
pub(crate) use fold::{Events, Ledger, Recent, clip};
pub use resets::{Zone, resets_at};

/// One thing that a host reports about itself. Exhaustive: a supervisor has a use for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The session's name, by which the host can go on with it. Comes again if it changes.
    Session(String),
    /// The agent or a sub-agent used a tool: evidence of work. Once per call.
    Tool {
        /// The host's name for this call; empty where it has none.
        call: String,
        /// Which one, as the host calls it.
        name: String,
        /// What it works on, in one line: a command, a path, a pattern; empty where the host does not say.
        about: String,
        /// Whether that is a command of a shell.
        is_command: bool,
        /// How many lines it adds and how many it removes, where the call itself says so.
        lines: Option<(u64, u64)>,
    },
    /// A call of a tool is over. Once per call that has a name.
    ToolEnded {
        /// The host's name for the call.
        call: String,
        /// Whether it failed, as far as the host says.
        failed: bool,
        /// The exit code of a command, where the host names it.
        exit_code: Option<i64>,
    },
    /// A call of one of Aldis' own tools, or of `aldis signal`, was answered.
    Answered(ToolAnswer),
    /// The host denied the agent a permission. Once per call, where the host says so at all.
    Denied {
        /// The tool that the agent wanted to use, as the host calls it.
        tool: String,
        /// What it wanted to do with it: a command, a path; empty where the host does not say.
        what: String,
    },
    /// What this process has cost so far: totals that never fall.
    Spent {
        /// Tokens in and out, those read from a cache too, as far as the host tells.
        tokens: u64,
        /// Millionths of a dollar; zero where the host names no price.
        micro_dollars: u64,
    },
    /// The host met an error and tries again by itself: a sign of life, no end.
    Retrying {
        /// What it says.
        what: String,
        /// When it tries again, where it says so.
        until: Option<Timestamp>,
    },
    /// The host ended because the service refuses to work for now: rate or usage limit, quota,
    /// overload. Before [`HostEvent::Ended`], if there is one.
    Limited {
        /// What it says.
        what: String,
        /// When it will work again, where it says so; may be past.
        until: Option<Timestamp>,
    },
    /// The host ended because of an error that waiting does not cure: API, login, account, request.
    /// Before [`HostEvent::Ended`], if there is one.
    Failed {
        /// What it says.
        what: String,
    },
    /// The host's own end. Missing when it was interrupted; one per turn where it takes
    /// several, so the last counts.
    Ended {
        /// Whether it ended well in its own view. It knows nothing about the work.
        ok: bool,
        /// Why not, or what was unusual.
        what: Option<String>,
    },
}

/// The answer to a call of one of Aldis' own tools, or to a shell's call of `aldis signal`: what shows
/// that the agent made the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The host's id of the call; empty where it has none.
    pub call_id: String,
    /// The line of a receipt: then it is the answer to a shell's call.
    pub receipt: Option<String>,
    /// The ids in the answer that begin with [`CALL_ID`](aldis_signal::signal::CALL_ID).
    pub ids: Vec<String>,
    /// Whether a sub-agent made the call.
    pub sidechain: bool,
}

/// Returns whether a tool is one of ours, however the host spells the name of its server.
pub fn is_own_tool(name: &str) -> bool {
    name.contains("aldis")
}

/// Host events of plain text, such as a host's standard error: its last line may say why it ended.
///
/// ```
/// use aldis_signal::time::Timestamp;
/// use aldis_transcript::events::{HostEvent, TextEvents, Zone};
///
/// let mut events = TextEvents::new(Zone::utc());
/// events.push(b"Working.\nClaude AI usage limit reached|1794787200\n");
/// let now = Timestamp::from_millis(1_794_780_000_000);
/// assert!(matches!(events.finish(now), Some(HostEvent::Limited { until: Some(_), .. })));
/// ```
#[derive(Debug)]
pub struct TextEvents(Events);

impl TextEvents {
    /// Starts a reader. `local` is the zone of clock times that name none: the host's, so usually
    /// this machine's.
    pub fn new(local: Zone) -> Self {
        Self(Events::new(local))
    }

    /// Reads the next chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        self.0.text(chunk);
    }

    /// Ends the text and returns what its last line reports. `now` is when it came.
    pub fn finish(self, now: Timestamp) -> Option<HostEvent> {
        let mut found = None;
        self.0.finish(now, &mut |event| found = Some(event));
        found
    }
}

#[cfg(test)]
mod tests;
