//! A supervised run: one agent, started again and again until its work is verifiably done.
//!
//! The machine is told what the agent said and how it ended, and says what to do next: start the
//! next iteration, check the claim, wait for a limit or a human, end. It never believes a claim
//! that a check contradicts, never waits without a limit, and an ending says what it is: nothing
//! that was cut off is ever reported as success.

mod config;
mod contract;
mod decide;
mod event;
mod listen;
mod opening;
mod prompt;
mod state;

#[cfg(test)]
mod tests;

pub use super::limits::ConfigError;
pub use config::Config;
pub use event::{Effect, Event, Exit, Heard, Notice, Tree, Usage};
pub use state::{Ending, Limit, Outcome, Question, Start, State, Status};
