//! The right under which steps of a run are taken: the lease of its coordinator, or the claim of a
//! worker on one of its agents. Both end by themselves, are renewed in time, and are given back.

use std::time::Duration;

use aldis_engine::EngineError;
use aldis_signal::time::Timestamp;
use aldis_store::{Claim, Lease, LeaseError, RunId, Store, StoreError};

use super::lease;
use super::world::World;
use crate::error::CommandError;

/// How long a claim lasts. As long as a lease: a worker that is gone is replaced after that.
pub(crate) const CLAIM_TTL: Duration = lease::TTL;
/// How much earlier than others the holder of a claim takes it to be over: its clock is another one.
const MARGIN: Duration = Duration::from_secs(1);
/// How long to wait before a store that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// The right to take steps.
pub(crate) enum Hold {
    /// Of whoever coordinates the run.
    Run(Lease),
    /// Of whoever runs one agent of it, and until when it is certainly in force.
    Agent {
        /// The claim.
        claim: Claim,
        /// By our own clock.
        until: Timestamp,
    },
}

/// What became of a right that was to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// It is in force.
    Kept,
    /// Somebody else may have it: nothing may be done under it any more.
    Lost,
}

impl Hold {
    /// A claim that was handed out at `asked` by our clock, or later.
    pub(crate) fn claimed(claim: Claim, asked: Timestamp) -> Self {
        Self::Agent { claim, until: certainly(asked) }
    }

    /// Until when it is certainly in force, if it ends with that.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Run(_) => None,
            Self::Agent { until, .. } => Some(*until),
        }
    }

    /// Renews it in time. Whoever was suspended for longer than it lasts may have been replaced: that is
    /// found out here, before anything is done.
    ///
    /// # Errors
    ///
    /// Fails if a lease is lost, or the store fails for good.
    pub(crate) fn renew(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<Renewal, CommandError> {
        let renewed = match self {
            Self::Run(lease) => store.renew_lease(lease, now, lease::TTL).map(|renewed| {
                *lease = renewed;
                Renewal::Kept
            }),
            Self::Agent { claim, until } => {
                let kept = store.keep(std::slice::from_ref(claim), now, CLAIM_TTL);
                let kept = kept.map_err(LeaseError::from).map(|kept| kept == [true]);
                kept.map(|kept| match kept {
                    true => {
                        *until = certainly(now);
                        Renewal::Kept
                    }
                    false => Renewal::Lost,
                })
            }
        };
        match renewed {
            Ok(renewal) => Ok(renewal),
            // Until it has run out there is time to try again.
            Err(LeaseError::Store(error)) if error.may_pass() => {
                tracing::warn!(%error, "cannot renew the lease yet");
                let over = self.deadline().is_some_and(|until| now >= until);
                Ok(if over { Renewal::Lost } else { Renewal::Kept })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a lease back: whoever comes next need not wait for it to run out. What becomes of a claim
    /// is its worker's business.
    pub(crate) fn release(&self, store: &dyn Store) {
        if let Self::Run(lease) = self {
            let _released = store.release_lease(lease);
        }
    }
}

fn certainly(asked: Timestamp) -> Timestamp {
    asked.after(CLAIM_TTL.saturating_sub(MARGIN))
}

/// Does something with the store until it works. A full disk, a store that is locked or gone for a
/// moment: the run waits, its agents wait when their pipes are full, and nothing is lost. Under a claim
/// nobody waits for longer than that lasts.
pub(super) fn patiently<T>(
    world: &mut dyn World,
    (run, deadline): (&RunId, Option<Timestamp>),
    mut act: impl FnMut(Timestamp) -> Result<T, EngineError>,
) -> Result<T, CommandError> {
    let mut asked_before = None;
    loop {
        let error = match act(world.now()) {
            Err(EngineError::Store(error)) if error.may_pass() => error,
            done => return Ok(done?),
        };
        let now = world.now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Err(gone(&error));
        }
        let before = *asked_before.get_or_insert_with(|| {
            world.warn(&format!("run {run} waits: {error}"));
            world.pause(now)
        });
        // Output is left in its pipe: the agent waits.
        if world.pause(now.after(RETRY)) > before {
            return Err(error.into());
        }
    }
}

fn gone(error: &StoreError) -> CommandError {
    CommandError::new(format!("the store was gone for longer than a claim lasts: {error}"))
        .with_help("another worker runs the agent again")
}
