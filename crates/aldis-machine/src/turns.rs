//! Turns in a channel: several agents, one floor.
//!
//! The machine is told who said what and how the time passes. It says what is posted, whose turn it
//! is and until when, and who is told so. One [`State`] is one channel; a [`Board`] is all of them,
//! as the state file that people migrate from has them.
//!
//! # What must always hold
//!
//! * At most one agent has the floor. Whether an agent is active, queued or waiting is derived from
//!   the floor and the queue, so the two can never disagree.
//! * A turn has a number and ends once: whatever names an ended turn changes nothing any more, in
//!   whatever order a message and its timeout arrive.
//! * Every turn has a deadline, every queue and list a limit.

mod config;
mod contract;
mod ear;
mod event;
mod floor;
mod human;
mod persona;
mod queue;
mod seed;
mod speak;
mod state;

#[cfg(test)]
mod tests;

pub use config::{AutoDetect, Config, ConfigError, HumanInterrupt, Mode, TurnOrder};
pub use ear::{Ear, Heard};
pub use event::{Effect, Event, Outcome, Position, Reason, Reply, Verdict, Words};
pub use floor::{Floor, Turn};
pub use persona::{Persona, PersonaError, TurnBehavior};
pub use seed::{Board, SeedError};
pub use state::{Agent, AgentState, Entry, Start, StartError, State, Stuck};

/// Returns whether a text can name an agent or a channel: 1 to 64 of `A-Z a-z 0-9 . _ -`, a letter
/// or digit first.
pub fn is_name(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&text.len())
        && text.bytes().all(word)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}
