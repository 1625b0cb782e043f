//! What happens in a channel, and what must then be done.

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::persona::Persona;
use super::reader::IncomingMessage;
use aldis_signal::codes;
use aldis_signal::time::Timestamp;

/// One thing that happened. Exhaustive: the machine has an opinion about each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// An agent joins the queue.
    Add {
        /// Who.
        agent: String,
        /// Where in the queue.
        #[serde(default)]
        position: QueuePosition,
        /// What is known about it, where that is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        persona: Option<Persona>,
    },
    /// A human or a program closes the channel for good.
    Close {
        /// Who, for the journal.
        by: String,
    },
    /// A human or a program changes the configuration of the channel.
    Configure {
        /// The whole new configuration.
        config: Box<Config>,
    },
    /// An agent's process or connection is gone.
    Crashed {
        /// Who.
        agent: String,
    },
    /// A human sends a message.
    Human {
        /// Its text.
        text: String,
        /// Who, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Who is asked; the active agent where nobody is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// By what means it came, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A human or a program names the next agent.
    Next {
        /// Who.
        agent: String,
        /// The turn this ends. One that has ended already makes this void.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
    },
    /// A human or a program pauses the channel.
    Pause {
        /// Who, for the journal.
        by: String,
    },
    /// The machine is back after a restart.
    Recovered,
    /// An agent leaves the queue.
    Remove {
        /// Who.
        agent: String,
    },
    /// A human or a program resumes the channel.
    Resume {
        /// Who, for the journal.
        by: String,
    },
    /// An agent sends a message, or several at once.
    #[serde(alias = "said")]
    Message {
        /// Who.
        agent: String,
        /// The turn it belongs to, as its notification named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
        /// The messages, in order.
        messages: Vec<IncomingMessage>,
    },
    /// The moment of [`State::next_wake`](super::State::next_wake) has come. Waking early is harmless.
    Wake {
        /// The turn the alarm was set in. One that has ended makes this void.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
    },
}

/// A place in the queue: `start`, `end` or a number from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "a position is `start`, `end` or a number from 0")]
pub enum QueuePosition {
    /// After all others.
    #[default]
    End,
    /// Before all others.
    Start,
    /// Before this place, counted from 0; the end if there are not so many.
    #[serde(untagged)]
    At(usize),
}

/// What must now be done. Exhaustive: whoever performs effects must know all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Give a message to agents.
    Deliver {
        /// To whom.
        to: Vec<String>,
        /// The message.
        #[serde(flatten)]
        message: ChannelMessage,
    },
    /// Notify an agent that it has the turn.
    Notify {
        /// Whom.
        agent: String,
        /// The number of its turn, to be named in its messages.
        turn: u64,
        /// When the turn is over.
        deadline: Timestamp,
        /// Messages from humans that waited for this turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held: Vec<ChannelMessage>,
    },
    /// Show something in the channel.
    Post {
        /// Who posts it; [`Effect::SYSTEM`] for a notice.
        agent: String,
        /// What it is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Where its picture is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        avatar: Option<String>,
        /// The text, without keywords.
        text: String,
    },
    /// Answer whoever sent a message. One for each message, in order.
    Reply(Reply),
    /// Tell whoever asked that something was not done, and why.
    Warning {
        /// Why.
        text: String,
    },
    /// Warn an agent that its time is over, and when its turn ends.
    Warn {
        /// Whom.
        agent: String,
        /// The number of its turn.
        turn: u64,
        /// When the turn ends.
        until: Timestamp,
    },
}

impl Effect {
    /// Who posts notices.
    pub const SYSTEM: &str = "system";

    pub(super) fn notice(text: impl Into<String>) -> Self {
        let (agent, text) = (Self::SYSTEM.to_owned(), text.into());
        Self::Post { agent, name: None, avatar: None, text }
    }
}

/// A message and who sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelMessage {
    /// Who sent it.
    pub from: String,
    /// Its text.
    pub text: String,
}

codes! {
    /// Why a turn ended.
    pub enum TurnEndReason {
        /// A completion phrase or silence ended it.
        AutoDetect = "AUTO_DETECT",
        /// A human or a program gave the turn to another agent, or closed the channel.
        Manual = "MANUAL",
        /// Its deadline passed before a restart.
        Recovery = "RECOVERY",
        /// The agent left.
        Removed = "REMOVED",
        /// Its time was over.
        Timeout = "TIMEOUT",
        /// The agent ended it with the keyword.
        TurnComplete = "TURN_COMPLETE",
    }
}

impl TurnEndReason {
    /// Returns whether the turn was cut off: its agent may still send what belongs to it.
    pub(super) fn cut_off(self) -> bool {
        matches!(self, Self::Recovery | Self::Timeout)
    }
}

codes! {
    /// Why a message did not count as one of the active agent. The codes are stable.
    pub enum ReplyReason {
        /// Its turn had just been ended by a message before it.
        AfterTurnEnd = "after_turn_end",
        /// It answered a human, in another agent's turn.
        Answer = "answer",
        /// The channel is closed.
        ChannelClosed = "channel_closed",
        /// Its turn was over.
        LateSignal = "late_signal",
        /// Another agent has the turn.
        NotActiveAgent = "not_active_agent",
        /// The channel is not one of ours.
        UnknownChannel = "unknown_channel",
    }
}

/// What became of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// Whether it is shown in the channel.
    pub posted: bool,
    /// Whether it ended the turn.
    pub turn_advanced: bool,
    /// Who has the turn then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_agent: Option<String>,
    /// Why it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReplyReason>,
    /// What is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
}

impl Reply {
    /// Makes the reply to a message that leads to nothing.
    pub fn ignored(reason: ReplyReason) -> Self {
        Self { reason: Some(reason), ..Self::default() }
    }
}

/// What one event led to.
pub type Outcome = crate::Outcome<Effect>;

impl Outcome {
    /// Returns what became of each message of an [`Event::Message`], in order.
    pub fn replies<'o>(&'o self) -> Vec<&'o Reply> {
        let reply = |effect: &'o Effect| match effect {
            Effect::Reply(reply) => Some(reply),
            _ => None,
        };
        self.effects.iter().filter_map(reply).collect()
    }

    /// Returns what was not done and why, for whoever asked.
    pub fn warnings<'o>(&'o self) -> Vec<&'o str> {
        let warning = |effect: &'o Effect| match effect {
            Effect::Warning { text } => Some(&**text),
            _ => None,
        };
        self.effects.iter().filter_map(warning).collect()
    }
}
