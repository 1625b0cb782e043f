//! Steps of runs that are remembered, without a thread that waits until they are durable.
//!
//! Handing a request to a thread of its own and waking that thread again costs more than deciding. What
//! is decided here is what [`Keeper::advance_by`](super::Keeper) would decide; whatever is not as usual
//! is left to it.

use aldis_signal::redact::redact_value;
use aldis_signal::time::Timestamp;
use aldis_store::{CommitError, Run, RunId, Step, Timer};
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Answer, Keeper, KeeperError, after, answer, machine_of};
use crate::engine::machines::Members;

/// The longest text that is read by a thread that others wait for.
const SHORT: usize = 16 << 10;

impl Keeper {
    /// Does what [`advance_only`](Self::advance_only) does, or returns nothing and has changed
    /// nothing.
    pub(crate) async fn advance_soon(
        &self,
        machine: &str,
        now: Timestamp,
        id: &RunId,
        event: &Members,
        source: Option<&str>,
    ) -> Option<Result<Answer, KeeperError>> {
        if event.values().map(length).sum::<usize>() > SHORT {
            return None;
        }
        let mine = |run: &Run| (run.record.machine == machine).then(|| event.clone());
        self.take_soon(now, id, mine, source).await
    }

    /// Does what [`ring`](Self::ring) does, or returns nothing and has changed nothing.
    pub(crate) async fn ring_soon(
        &self,
        now: Timestamp,
        timer: &Timer,
        missed: bool,
    ) -> Option<Result<(), KeeperError>> {
        let alarm = |run: &Run| match machine_of(run).ok()?.alarm(missed) {
            Some(Value::Object(event)) => Some(event),
            _ => None,
        };
        let taken = self.take_soon(now, &timer.run, alarm, None).await?;
        Some(taken.map(drop))
    }

    /// Lets a run take the event that there is for it, if the run is remembered, something is decided
    /// and nobody else was first.
    async fn take_soon(
        &self,
        now: Timestamp,
        id: &RunId,
        event: impl FnOnce(&Run) -> Option<Members>,
        source: Option<&str>,
    ) -> Option<Result<Answer, KeeperError>> {
        let mut mine = self.places.of(id).lock_owned().await;
        let run = mine.take()?;
        let mut event = event(&run)?;
        event.values_mut().for_each(redact_value);
        let machine = machine_of(&run).ok()?;
        let mut stepped = machine.step(now, &run.record.state, event).ok()?;
        stepped.decision.as_ref()?;
        let Run { revision, created, fence, record, .. } = run;
        let (step, why) = self.step(
            now,
            id,
            revision,
            (&record.project, record.driver),
            machine,
            &mut stepped,
            source,
        );
        let (tell, told) = oneshot::channel();
        let nudge = self.nudge.clone();
        // Also when nobody waits any more: what is stored has to be remembered and carried out. Without
        // the keeper: it holds the store, which must not end in a thread of its own.
        let then = move |step: Box<Step>, result| {
            let taken = match result {
                Ok(committed) => {
                    let run = after(*step, committed, created, fence);
                    mine.keep(&run);
                    Some(Ok(answer(&nudge, run, stepped, why)))
                }
                // Whether it is written is unknown.
                Err(CommitError::Store(error)) => Some(Err(error.into())),
                // What is stored now decides.
                Err(_) => None,
            };
            drop(mine);
            tell.send(taken).ok();
        };
        self.store.commit_then(Box::new(step), Box::new(then));
        let gone = || KeeperError::Failed("the store has stopped".to_owned());
        told.await.unwrap_or_else(|_| Some(Err(gone())))
    }
}

/// How much text there is in a value.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(length).sum(),
        Value::Object(members) => members.values().map(length).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
