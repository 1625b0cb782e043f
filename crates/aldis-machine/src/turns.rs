//! Turns in a channel: several agents, one of which has the turn.
//!
//! The machine takes messages and the passing of time. It decides what is posted, whose turn it is
//! and until when, and who is notified. One [`State`] is one channel.
//!
//! # What must always hold
//!
//! * At most one agent has the turn. Whether an agent is active, queued or waiting is derived from
//!   the holder of the turn and the queue, so the two can never disagree.
//! * A turn has a number and ends once: whatever names an ended turn changes nothing any more, in
//!   whatever order a message and its timeout arrive.
//! * Every turn has a deadline, every queue and list a limit.

mod config;
mod contract;
mod event;
mod holder;
mod human;
mod message;
mod persona;
mod queue;
mod reader;
mod rule;
mod state;

#[cfg(test)]
mod tests;

pub use config::{AutoDetect, Config, ConfigError, HumanInterrupt, Mode, TurnOrder};
pub use event::{
    ChannelMessage, Effect, Event, Outcome, QueuePosition, Reply, ReplyReason, TurnEndReason,
};
pub use holder::{Turn, TurnHolder};
pub use persona::{Persona, TurnBehavior};
pub use queue::QUEUE_MAX;
pub use reader::{IncomingMessage, MessageReader};
pub use rule::{Rule, rule_of_0_1_0};
pub use state::{
    Adoption, AgentRecord, AgentState, ChannelStartError, HISTORY_MAX, HistoryEntry, Start, State,
    StuckTurn,
};

/// Returns whether a text can name an agent or a channel: 1 to 64 of `A-Z a-z 0-9 . _ -`, a letter
/// or digit first.
pub fn is_name(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&text.len())
        && text.bytes().all(word)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}
