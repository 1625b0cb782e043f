//! The right to coordinate a run: one process has it, and a dead one is not waited for.

use std::time::Duration;

use aldis_process::{LeaseHolder, Liveness};
use aldis_signal::time::Timestamp;
use aldis_store::{Lease, LeaseError, RunId, Store};

/// How long a lease lasts.
pub(crate) const TTL: Duration = Duration::from_secs(30);

/// Becomes the one that coordinates a run.
///
/// # Errors
///
/// Fails if a living process does already.
pub(crate) fn acquire(store: &dyn Store, run: &RunId, now: Timestamp) -> Result<Lease, LeaseError> {
    let me = LeaseHolder::me().to_string();
    match store.acquire_lease(run, &me, now, TTL) {
        Err(LeaseError::Held { holder, fence, .. }) if liveness(&holder) == Liveness::Gone => {
            store.break_lease(run, fence)?;
            store.acquire_lease(run, &me, now, TTL)
        }
        acquired => acquired,
    }
}

/// Says whether the holder of a lease still lives. Of one on another machine that is not known.
pub(crate) fn liveness(holder: &str) -> Liveness {
    holder.parse::<LeaseHolder>().map_or(Liveness::Unknown, |holder| holder.liveness())
}
