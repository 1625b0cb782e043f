//! Phases under a Stop hook: an agent may stop when its phase is truly complete.
//!
//! The machine keeps one [`State`] per run. [`State::on_event`] takes what a host's hooks report and
//! decides whether the agent may stop, with which prompt it continues if not, and why. Phases, the
//! signals that end them and the flags that skip them are data (a [`Pipeline`]); caw's is built in.
//!
//! # Pausing
//!
//! While a run is paused its agent may stop whenever it likes, prompts bring nothing of ours, and
//! nothing is counted or goes stale. What the agent reports meanwhile is not lost: the position in
//! the transcript stays where it was, so the first stop after the run is resumed judges everything
//! written since, as long as the host still has it. Signals that no transcript repeats are held in
//! the state. Resuming keeps the session, the counters and the run token.
//!
//! ```
//! use aldis_machine::phases::Pipeline;
//!
//! let caw = Pipeline::caw();
//! assert_eq!(caw.ended_by("QA_COMPLETE").map(|phase| &*phase.name), Some("qa"));
//! let skipped = ["skip_qa".to_owned(), "skip_review".to_owned()].into();
//! assert_eq!(caw.next("execution", &skipped), Some("reflect"));
//! ```

mod apply;
mod block_limit;
mod checks;
mod config;
mod contract;
mod counted;
mod decide;
mod eligibility;
mod event;
mod human;
mod ingest;
mod parts;
mod pipeline;
mod prompts;
mod rule;
mod session;
mod state;
mod stop;
mod tally;
mod wake;

#[cfg(test)]
mod tests;

pub use apply::DETECTED_MAX;
pub use block_limit::{BlockLimit, DEFAULT_BLOCK_LIMIT};
pub use checks::{AskedClaim, CHECK_STARTS_MAX, CheckedClaim, Checks, RefusedClaim};
pub use config::{
    AfterTransition, Config, ExitReason, MAX_ITERATIONS, TokenPolicy, clamp_iterations,
};
pub use counted::CountedSignals;
pub use event::{BlockCap, Event, MustAllow, PhaseFinding, PhaseSignal, Stop};
pub use human::NotResumable;
pub use ingest::{AgentMessage, call_finding, closing_text, scan_messages};
pub use pipeline::{COMPLETE, FAILED, Phase, Pipeline, PipelineError};
pub use rule::{Rule, rule_of_0_1_0};
pub use state::{
    Adoption, Detected, Effect, LastError, Outcome, PendingResponse, SessionTurn, Start, State,
    digest,
};
pub use wake::{LIMIT_WAKES_MAX, Parked};
