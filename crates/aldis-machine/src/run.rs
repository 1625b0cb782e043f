//! A supervised run: one agent, started again and again until its work is verifiably done.
//!
//! The machine takes what the agent reported and how its process ended, and decides what happens
//! next: start the next iteration, check the claim, wait for a limit or a human, end. It never
//! accepts a claim that a check contradicts, never waits without a limit, and an ending says what it
//! is: nothing that was cut off is ever reported as success.
//!
//! What a driver has to know beside the events and effects themselves:
//!
//! * Every iteration ends with [`Effect::Look`]: how the work tree changed decides whether the
//!   iteration counts as work, however short it was. Nothing goes on before [`Event::Looked`].
//! * Progress reports go through a [`ProgressCoalescer`], so that a journal stays small.
//! * [`Event::Exited`] carries the last lines of output after a crash; the next attempt gets them.
//! * Time comes in by [`Event::Tick`]; `next_wake` says when one is due.

mod checks;
mod config;
mod contract;
mod ending;
mod event;
mod events;
mod humans;
mod levels;
mod lifecycle;
mod parts;
mod progress;
mod prompt;
mod rule;
mod signal;
mod state;
mod verdict;
mod waits;

#[cfg(test)]
mod tests;

pub use super::limits::ConfigError;
pub use config::Config;
pub use event::{AgentExit, Effect, Event, Exit, Notice, Usage, WorkTree};
pub use progress::{PROGRESS_INTERVAL, ProgressBatch, ProgressCoalescer};
pub use rule::{Rule, rule_of_0_1_0};
pub use signal::RunSignal;
pub use state::{
    ClaimRefusal, Denial, Ending, Outcome, Question, QuestionDraft, ServiceLimit, Start, State,
    Status, suggestion,
};
