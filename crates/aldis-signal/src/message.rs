//! Messages and who said them.
//!
//! The same words mean different things from different mouths: a completion marker in a file the
//! agent read, in the prompt that asks for it, or in a branch of the conversation that was taken
//! back is a fact about that text and not a claim by the agent. Every message therefore carries its
//! [`Origin`], and the scanner asks the origin before it believes anything.

use crate::codes;
use crate::time::Timestamp;

codes! {
    /// Who produced the bytes of a message. The names are stable.
    ///
    /// Exhaustive on purpose: a new role must be judged at every match.
    pub enum Role {
        /// The agent itself.
        Assistant = "assistant",
        /// The program that runs the agent: error texts, hook records, status lines.
        Host = "host",
        /// The final message of a sub-agent: its task result or its own stop event.
        Subagent = "subagent",
        /// System prompts, developer messages, summaries of compacted history.
        System = "system",
        /// The result of a tool call, the arguments of one, hidden reasoning.
        Tool = "tool",
        /// A human, or text injected on a human's behalf.
        User = "user",
    }
}

/// Where a message comes from, as far as its transcript tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Origin {
    /// Who spoke.
    pub role: Role,
    /// Whether this was said inside a sub-agent's own conversation.
    pub sidechain: bool,
    /// The sub-agent or agent id, where the host names one.
    pub agent: Option<String>,
    /// Whether the message is part of the conversation as it stands: not rewound, not aborted, not
    /// of another session.
    pub live: bool,
    /// What people should know about this origin ("result of Read docs/signals.md").
    pub detail: Option<String>,
}

impl Origin {
    /// Creates a live origin of the main conversation.
    pub fn new(role: Role) -> Self {
        Self { role, sidechain: false, agent: None, live: true, detail: None }
    }

    /// Returns the origin of an agent's own text.
    pub fn assistant() -> Self {
        Self::new(Role::Assistant)
    }

    /// Says in words what this origin is.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Names the agent.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Marks a message that no longer belongs to the conversation, and says why.
    #[must_use]
    pub fn dead(mut self, why: impl Into<String>) -> Self {
        self.live = false;
        self.detail = Some(why.into());
        self
    }

    /// Marks a message of a sub-agent's own conversation.
    #[must_use]
    pub fn in_sidechain(mut self) -> Self {
        self.sidechain = true;
        self
    }

    /// Returns whether a signal from here counts: the agent's own live text, or the final message
    /// of a sub-agent.
    ///
    /// ```
    /// use aldis_signal::{Origin, Role};
    ///
    /// assert!(Origin::assistant().may_signal());
    /// assert!(!Origin::new(Role::Tool).may_signal());
    /// assert!(!Origin::assistant().dead("rewound").may_signal());
    /// assert!(!Origin::assistant().in_sidechain().may_signal());
    /// ```
    pub fn may_signal(&self) -> bool {
        self.live
            && match self.role {
                // What sub-agents say to each other is heard in their own final message.
                Role::Assistant | Role::Subagent => !self.sidechain,
                Role::Host | Role::System | Role::Tool | Role::User => false,
            }
    }
}

/// One utterance with one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Counts the utterances of its transcript from 0.
    pub index: u64,
    /// The line of the transcript file it starts on, from 1; `None` for plain text.
    pub entry: Option<u64>,
    /// Who said it.
    pub origin: Origin,
    /// The host's own id for it, for de-duplication across reads.
    pub id: Option<String>,
    /// When it was said, where the host tells.
    pub at: Option<Timestamp>,
    /// What was said.
    pub text: String,
}

impl Message {
    /// Makes a message of which no more is known.
    ///
    /// ```
    /// use aldis_signal::{Message, Origin};
    ///
    /// let mut message = Message::new(0, Origin::assistant(), "Done.");
    /// message.entry = Some(1);
    /// assert!(message.origin.may_signal());
    /// ```
    pub fn new(index: u64, origin: Origin, text: impl Into<String>) -> Self {
        Self { index, entry: None, origin, id: None, at: None, text: text.into() }
    }
}
