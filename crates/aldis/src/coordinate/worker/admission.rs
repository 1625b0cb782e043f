//! Whether a claimed agent is to be started here and now, and how its claim is left.

use std::time::Duration;

use aldis_engine::{Engine, Handle};
use aldis_machine::delivery::{Dispatch, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Claim, Store, StoreError, WorkerRecord};

use super::run_of;
use crate::coordinate::delivery::start::session_worker;
use crate::error::CommandError;

/// How long a session is waited for that another worker has. Then the agent starts without it.
const SESSION_WAIT: Duration = Duration::from_secs(60);
/// How long others leave an agent alone that cannot start yet.
const LATER: Duration = Duration::from_secs(3);

/// How a slot leaves its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotEnd {
    /// The agent has finished, and its verdict is committed; or there is nothing to do for it any more.
    Done,
    /// Somebody else may take it then.
    GivenBack(Timestamp, String),
    /// Somebody else has it.
    Lost,
}

/// What is to become of an agent that was claimed.
pub(crate) enum Admission {
    /// It is started.
    Start(Dispatch, Box<Handle<State>>),
    /// It is not, at least not now.
    End(SlotEnd),
}

/// Finds out whether a claimed agent is to be started here and now.
pub(crate) fn admit(
    engine: &Engine,
    worker: &str,
    claim: &Claim,
    now: Timestamp,
) -> Result<Admission, CommandError> {
    let dispatch: Dispatch = serde_json::from_str(&claim.effect.body)
        .map_err(|error| CommandError::new(format!("the dispatch: {error}")))?;
    let run: Handle<State> = engine.open(run_of(claim))?;
    let state = run.state();
    let Some(agent) = state.agent(dispatch.agent).filter(|_| state.ending().is_none()) else {
        return Ok(Admission::End(SlotEnd::Done));
    };
    let later =
        |why: &str| Ok(Admission::End(SlotEnd::GivenBack(now.after(LATER), why.to_owned())));
    if state.run().paused {
        return later("the delivery is paused");
    }
    let known = session_worker(&run, &dispatch)?.filter(|it| it != worker);
    if let Some(known) = known.filter(|_| now.since(agent.started_at) < SESSION_WAIT) {
        let lives = |it: &WorkerRecord| it.name == known && it.until > now;
        if engine.store().workers()?.iter().any(lives) {
            return later(&format!("worker {known} has the session that it continues"));
        }
    }
    Ok(Admission::Start(dispatch, Box::new(run)))
}

/// Settles a claim as its slot left it.
pub(crate) fn settle(store: &dyn Store, claim: &Claim, end: &SlotEnd) -> Result<(), StoreError> {
    match end {
        SlotEnd::Done => store.done(claim).map(drop),
        SlotEnd::GivenBack(at, why) => store.failed(claim, Some(*at), why).map(drop),
        SlotEnd::Lost => Ok(()),
    }
}
