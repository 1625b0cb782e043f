//! Takes steps: a machine decides, one transaction keeps the decision, then somebody acts.
//!
//! This is the only way to change a run. Whoever drives one (a hook, a process, a server, a worker)
//! goes through [`Engine`]: it reads the run, lets its machine take an event, and writes the event,
//! the new state, the decisions and the effects in one commit. Others may write to the same run at
//! the same time: a step that was computed from an old revision is computed again from the new one.
//!
//! * [`Engine`] begins, opens, steps and commands runs of any machine.
//! * [`Handle`] is an open run whose machine is known by type: what a long-lived driver holds.
//! * [`AnyHandle`] is one whose machine is known by name: what a server holds.
//! * [`Snapshot`] is a run as it was read once: the model of every view.
//! * [`Replay`] takes a journal through today's machine and compares.
//!
//! ```
//! use std::sync::Arc;
//!
//! use aldis_engine::{Engine, NewRun};
//! use aldis_machine::HumanCommand;
//! use aldis_machine::run::{Config, Effect, Event, Start, State};
//! use aldis_signal::time::Timestamp;
//! use aldis_store::{Driver, MemoryStore};
//!
//! let engine = Engine::new(Arc::new(MemoryStore::new()));
//! let now = Timestamp::from_millis(0);
//! let start = Start {
//!     task: "Add CSV export".to_owned(),
//!     dialect: "chorus".to_owned(),
//!     instructions: String::new(),
//!     launch: String::new(),
//!     config: Config::default(),
//! };
//! let new = NewRun::of("/home/ada/project", Driver::Process);
//! let (mut run, _) = engine.begin::<State>(now, &new, start)?;
//!
//! // Decide and store; then perform what is in the outbox.
//! run.advance(&engine, now, Event::Begin)?;
//! while let Some(next) = run.next_effect(&engine)? {
//!     if let Effect::Start { iteration, .. } = next.effect {
//!         assert_eq!(iteration, 1);
//!     }
//!     run.performed(next.key);
//! }
//! run.flush(&engine, now)?;
//!
//! // Somebody else wants something of it; its driver finds out.
//! let answer = engine.command(now, run.id(), &HumanCommand::Abort, "`aldis abort`", None)?;
//! assert_eq!(answer.decisions[0].rule, "run/abort");
//! assert!(run.refresh(&engine, now)?.is_some());
//!
//! // The journal leads to what is stored.
//! assert_eq!(engine.replay(run.id())?.differences, []);
//! # Ok::<(), aldis_engine::EngineError>(())
//! ```
//!
//! What is deliberately absent: a clock (times are arguments), processes, and any word for people.

mod any;
mod call_queue;
mod calls;
mod effects;
mod engine;
mod error;
mod handle;
mod ids;
mod json;
mod record;
mod replay;
mod snapshot;
mod upcast;

pub use any::{AnyHandle, MACHINES, Preparation, Prepared};
pub use calls::{CallAnswer, CallRecord, CheckOutcome, ClaimCheck};
pub use effects::{
    DISPATCH, Direct, ENVIRONMENT_LABEL, NOTICE, NOTIFY, OutboundEffect, RECEIPT, ROLE_LABEL,
    Route, RoutedRun, SINK,
};
pub use engine::{Engine, NewRun, RequestOutcome};
pub use error::EngineError;
pub use handle::{Handle, Performable, Stepped, note};
pub use ids::{RandomError, run_id, token};
pub use json::{Dialects, JsonEdge, Members};
pub use replay::{Difference, Replay, Retrace};
pub use snapshot::{LAUNCH, OpenQuestion, Snapshot, State};
