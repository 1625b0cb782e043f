//! Taking a run over: one process coordinates it, and a dead one is not waited for.

use std::time::Duration;

use aldis_machine::run::Effect;
use aldis_signal::time::Timestamp;
use aldis_store::{ClaimRequest, EffectFilter, Lease, LeaseError, RunId, Store, StoreError};

use crate::engine::driver::DriverError;
use crate::error::CommandError;
use aldis_process::{Found, Identity, LeaseHolder, Liveness, Mark, find, find_marked};

/// How long a lease lasts.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// How long an agent that was left behind has to stop.
const ORPHAN_GRACE: Duration = Duration::from_secs(5);

/// Becomes the one that coordinates a run.
///
/// # Errors
///
/// Fails if a living process does already.
pub(crate) fn lease(store: &dyn Store, run: &RunId, now: Timestamp) -> Result<Lease, CommandError> {
    let me = LeaseHolder::me().to_string();
    let acquired = match store.acquire_lease(run, &me, now, LEASE) {
        Err(LeaseError::Held { holder, fence, .. }) if is_gone(&holder) => {
            store.break_lease(run, fence)?;
            store.acquire_lease(run, &me, now, LEASE)
        }
        acquired => acquired,
    };
    Ok(acquired?)
}

fn is_gone(holder: &str) -> bool {
    // Of a process that cannot be seen from here only the time of its lease tells.
    holder.parse::<LeaseHolder>().is_ok_and(|holder| holder.liveness() == Liveness::Gone)
}

/// Ends what a supervisor that has gone left of its agent, given the agent's stored identity. Only
/// for who holds the lease.
pub(crate) fn end_orphan(identity: &str) {
    if let Ok(identity) = serde_json::from_str::<Identity>(identity)
        && let Found::Alive(orphan) = find(&identity)
    {
        orphan.end(ORPHAN_GRACE);
    }
}

/// Returns what marks every agent and check of a run.
pub(crate) fn mark(run: &RunId) -> Mark {
    Mark::derive(&format!("run {run}"))
}

/// Ends agents of a run whose identity was not stored: their supervisor was killed after it had
/// started them. Only for who holds the lease and has started none yet.
pub(crate) fn end_unknown(run: &RunId) {
    if let Found::Alive(orphan) = find_marked(&mark(run)) {
        orphan.end(ORPHAN_GRACE);
    }
}

/// Forgets what a supervisor that has gone was about to do with its agent. The machine says anew
/// what is to be done, and twice would be two agents. What is for people is still done.
pub(crate) fn forget_hands(
    store: &dyn Store,
    run: &RunId,
    fence: Option<u64>,
) -> Result<(), DriverError> {
    // Whatever the clock says now: it may have been set back since.
    let due_by = Timestamp::from_millis(i64::MAX);
    let filter = EffectFilter { run: Some(run.clone()), ..EffectFilter::due_by(due_by) };
    let mut forgotten = Vec::new();
    for effect in store.pending_effects(&filter)? {
        let for_people = matches!(
            serde_json::from_str(&effect.body),
            Ok(Effect::Ask { .. }
                | Effect::KeepWork { .. }
                | Effect::Notice { .. }
                | Effect::Finish { .. })
        );
        if !for_people {
            forgotten.push(effect.key);
        }
    }
    store.effects_done(run, fence, &forgotten).map_err(DriverError::from_commit)?;
    Ok(())
}

/// Gives an effect of a run up that cannot be understood. Those that are claimed with it are free
/// again at once.
pub(crate) fn give_up(
    store: &dyn Store,
    lease: &Lease,
    key: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let run = Some(lease.run.clone());
    let request =
        ClaimRequest { run, ..ClaimRequest::new(&[], &lease.holder, now, Duration::ZERO) };
    for claim in store.claim(&request)? {
        if claim.effect.key == key {
            store.failed(&claim, None, "not understood")?;
        }
    }
    Ok(())
}
