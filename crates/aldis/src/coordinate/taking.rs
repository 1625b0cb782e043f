//! Taking a run over: one process coordinates it, and a dead one is not waited for.

use std::time::Duration;

use aldis_machine::run::Effect;
use aldis_signal::time::Timestamp;
use aldis_store::{EffectFilter, Lease, LeaseError, RunId, Store, StoreError};

use crate::error::CommandError;
use aldis_process::{Found, Holder, Identity, find};

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
    let me = Holder::me().to_string();
    let acquired = match store.acquire_lease(run, &me, now, LEASE) {
        Err(LeaseError::Held { holder, .. }) if is_gone(&holder) => {
            // In its name it can be ended at once; from here on its fencing number is void.
            let inherited = store.acquire_lease(run, &holder, now, LEASE)?;
            store.release_lease(&inherited)?;
            store.acquire_lease(run, &me, now, LEASE)
        }
        acquired => acquired,
    };
    Ok(acquired?)
}

fn is_gone(holder: &str) -> bool {
    holder.parse::<Holder>().is_ok_and(|holder| holder.is_gone())
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

/// Forgets what a supervisor that has gone was about to do with its agent. The machine says anew
/// what is to be done, and twice would be two agents. What is for people is still done.
pub(crate) fn forget_hands(store: &dyn Store, run: &RunId) -> Result<(), StoreError> {
    // Whatever the clock says now: it may have been set back since.
    let due_by = Timestamp::from_millis(i64::MAX);
    let filter = EffectFilter { run: Some(run.clone()), due_by, limit: usize::MAX };
    for effect in store.pending_effects(&filter)? {
        let for_people = matches!(
            serde_json::from_str(&effect.body),
            Ok(Effect::Ask { .. }
                | Effect::KeepWork { .. }
                | Effect::Notice { .. }
                | Effect::Finish { .. })
        );
        if !for_people {
            store.effect_done(&effect.key)?;
        }
    }
    Ok(())
}
