//! Phases under a Stop hook: an agent may stop when its phase is truly complete.
//!
//! The machine keeps one [`State`] per run. [`State::on_event`] takes what a host's hooks report and
//! says whether the agent may stop, what it is told if not, and why. Phases, the signals that end
//! them and the flags that skip them are data (a [`Pipeline`]); caw's is built in.
//!
//! ```
//! use aldis_machine::phases::{SkipFlags, expected_signal, next_phase};
//!
//! assert_eq!(expected_signal("qa"), Some("QA_COMPLETE"));
//! let flags = SkipFlags { qa: true, review: true, ..SkipFlags::default() };
//! assert_eq!(next_phase("execution", flags), Some("reflect"));
//! ```

mod block_limit;
mod contract;
mod event;
mod ingest;
mod listen;
mod pipeline;
mod prompts;
mod rule;
mod said;
mod state;
mod stop;
mod tally;
mod view;

#[cfg(test)]
mod tests;

pub use block_limit::{BlockLimit, DEFAULT_BLOCK_LIMIT};
pub use contract::started;
pub use event::{BlockCap, Event, MustAllow, PhaseFinding, PhaseSignal, Stop};
pub use ingest::{AgentMessage, closing_text, scan_messages};
pub use pipeline::{COMPLETE, FAILED, Phase, Pipeline, PipelineError, SkipFlags};
pub use pipeline::{expected_signal, next_phase};
pub use rule::{Rule, rule_of_0_1_0};
pub use state::{
    AfterTransition, Config, Detected, Effect, ExitReason, LastError, MAX_ITERATIONS, NotResumable,
    Outcome, PendingResponse, SessionTurn, Start, State, TokenPolicy, clamp_iterations, digest,
};
pub use view::{View, ViewError};
