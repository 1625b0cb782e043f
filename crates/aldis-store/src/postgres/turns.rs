//! The turn of a run between machines: an advisory lock, held by a transaction that does nothing else.
//!
//! A lock of a transaction passes through a pooler; a lock of a session would not. The transaction has
//! no number and no snapshot, so it holds up neither readers of decisions nor the vacuum.

use deadpool_postgres::Pool;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;

use super::error::CallError;
use super::link::Link;
use crate::error::StoreError;
use crate::gate::{Inside, Turns};
use crate::step::RunId;
use crate::store::Turn;

/// A holder that does nothing for so long has lost its turn: its machine may be gone.
const HELD_MAX: &str = "120s";
const DOING: &str = "wait for the turn of a run";

/// The turn of a run, here and between machines.
#[derive(Debug)]
pub(super) struct PostgresTurn<'a> {
    /// Given back first. None for a thread that holds the turn already.
    _held: Option<oneshot::Sender<()>>,
    _inside: Inside<'a>,
}

impl Turn for PostgresTurn<'_> {}

/// Waits for the turn of a run.
pub(super) fn enter<'a>(
    link: &Link,
    turns: &'a Turns,
    run: &RunId,
) -> Result<PostgresTurn<'a>, StoreError> {
    let inside = turns.enter(run)?;
    if !inside.is_first() {
        return Ok(PostgresTurn { _held: None, _inside: inside });
    }
    let (pool, schema, gate) =
        (link.turns.clone(), link.address.schema.clone(), Turns::number(run));
    let held = link.wait(async move {
        let (release, released) = oneshot::channel();
        let (taken, answer) = oneshot::channel();
        drop(tokio::spawn(hold(pool, schema, gate, taken, released)));
        answer.await.unwrap_or(Err(CallError::Closed)).map(|()| release)
    });
    let held = held.map_err(|error| error.sort(link.location(), DOING))?;
    Ok(PostgresTurn { _held: Some(held), _inside: inside })
}

/// Takes the lock, says so, and gives it back when asked to.
async fn hold(
    pool: Pool,
    schema: String,
    gate: i32,
    taken: oneshot::Sender<Result<(), CallError>>,
    released: oneshot::Receiver<()>,
) {
    let client = match pool.get().await {
        Ok(client) => client,
        Err(error) => return drop(taken.send(Err(CallError::Pool(error)))),
    };
    let begin = format!("BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{HELD_MAX}'");
    // A number of 32 bits each: lanes are locked by numbers of 64 bits, which are others.
    let lock = "SELECT pg_advisory_xact_lock(hashtext($1), $2)";
    let result = match client.batch_execute(&begin).await {
        Ok(()) => client.query_typed(lock, &[(&schema, Type::TEXT), (&gate, Type::INT4)]).await,
        Err(error) => Err(error),
    };
    let took = result.is_ok();
    let unheard = taken.send(result.map(drop).map_err(CallError::Database)).is_err();
    if took && !unheard {
        // Dropping the sender is the signal.
        released.await.ok();
    }
    // Whatever happened: a connection that cannot end its transaction is not used again.
    if client.batch_execute("COMMIT").await.is_err() {
        drop(deadpool_postgres::Object::take(client));
    }
}
