//! A durable home for runs: one atomic write per step, and nothing acknowledged before it is safe.
//!
//! A machine decides, [`Store::commit`] makes the decision durable, and only then does anybody act.
//! There is no other way to write events, state, effects or timers, so nobody can crash between
//! two of them. Start reading at [`Store`]; [`SqliteStore`] is the embedded database, [`GroupStore`]
//! the same for a server with many writers, `PostgresStore` (feature `postgres`) the one that many
//! machines share, [`MemoryStore`] the one for simulators, and [`conformance`] is what all must do.
//!
//! Absent on purpose: a clock (times are arguments, only waits are measured), async (a hook process has no runtime), and any
//! meaning of what is stored (bodies and states are text to this crate).

mod claim;
pub mod conformance;
mod cursor;
mod error;
mod gate;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod sqlite;
mod step;
mod store;
mod ticket;
mod transfer;
mod worker;

pub use claim::{Claim, ClaimRequest, PendingCount};
pub use cursor::{BadCursor, ChangeStamp, Continuity, Cursor, PageCursor};
pub use error::{CommitError, LeaseError, StoreError};
pub use memory::{Fault, FaultKind, MemoryStore, When};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresAddress, PostgresStore};
pub use record::{
    Decision, DecisionFilter, Effect, EffectFilter, EffectState, Event, Lease, Loaded, Part, Prune,
    Run, RunFilter, RunSummary, StoreSize, Timer,
};
pub use sqlite::SqliteStore;
pub use sqlite::group::GroupStore;
pub use step::{
    BadRunId, Committed, Driver, NewDecision, NewEffect, NewEvent, PartChange, Revision, RunId,
    RunRecord, Source, Step, TimerChange,
};
pub use store::{OnCommit, Store, Turn};
pub use ticket::{Ticket, Tickets};
pub use transfer::{CopiedEffect, RunCopy, Transfer};
pub use worker::WorkerRecord;
