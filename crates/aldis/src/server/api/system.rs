//! Whether the server is well, and what it can do.

use std::collections::HashSet;
use std::time::Duration;

use aldis_engine::{Engine, MACHINES, SINK, Snapshot, State as RunState};
use aldis_machine::{Machine as _, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{EffectFilter, PendingCount, RunFilter, RunId, StoreError, Timer};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;

use super::describe::TextAnswer;
use super::forms::{Answer, Health, Trouble};
use super::table;
use crate::server::app::AppState;
use crate::server::error::ApiError;
use crate::server::metrics::{FORMAT, QueueReading, Readings};

pub(super) async fn openapi() -> Json<Value> {
    Json(table::routes().document())
}

/// What is wrong with channels: a turn that should have ended, because its timer did not fire, or is lost.
/// Only such channels are read, and at most [`TROUBLES_MAX`] of each kind.
fn troubles(engine: &Engine, now: Timestamp) -> Result<Vec<Trouble>, StoreError> {
    let trouble = |channel: &Snapshot| {
        let RunState::Turns(state) = &channel.state else { return None };
        let stuck = state.stuck(now)?;
        let what = format!("the turn of {} should have ended at {}", stuck.agent, stuck.deadline);
        Some(Trouble { run: Some(channel.id().to_string()), what })
    };
    let mut troubles = Vec::new();
    let overdue = overdue(engine, now, TROUBLES_MAX)?.into_iter().map(|timer| timer.run);
    for run in overdue.chain(untimed(engine, now)?) {
        troubles.extend(engine.snapshot(&run)?.as_ref().and_then(trouble));
    }
    Ok(troubles)
}

/// Returns channels without a timer, the quietest first.
fn untimed(engine: &Engine, now: Timestamp) -> Result<Vec<RunId>, StoreError> {
    let machine = Some(turns::State::NAME.to_owned());
    let open = RunFilter { machine, active: Some(true), limit: STUCK_MAX, ..RunFilter::default() };
    let timers = engine.store().due_timers(now.after(TIMED_WITHIN), STUCK_MAX)?;
    let timed: HashSet<RunId> = timers.into_iter().map(|timer| timer.run).collect();
    let mut open = engine.store().list(&open)?;
    open.retain(|row| !timed.contains(&row.id));
    open.sort_by_key(|row| row.updated);
    Ok(open.into_iter().map(|row| row.id).take(TROUBLES_MAX).collect())
}

/// Timers that should have fired a while ago.
fn overdue(engine: &Engine, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
    let late = i64::try_from(STUCK_AFTER.as_millis()).unwrap_or(i64::MAX);
    engine.store().due_timers(Timestamp::from_millis(now.as_millis().saturating_sub(late)), limit)
}

/// Whether to send us requests: a channel that is stuck is no reason not to.
pub(super) async fn ready(State(app): AppState) -> Result<TextAnswer<&'static str>, ApiError> {
    let failures = app.failures().await;
    if failures.is_empty() {
        // Others can be served all the same.
        let sinks_work = app.sinks_fail().await.is_empty();
        return Ok(TextAnswer(
            "text/plain",
            if sinks_work { "ok\n" } else { "ok; a sink takes nothing\n" },
        ));
    }
    Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", failures.join("; ")))
}

pub(super) async fn health(State(app): AppState) -> Result<Answer<Health>, ApiError> {
    let now = app.now();
    let mut troubles = app.with_engine(move |engine| troubles(engine, now)).await?;
    let failures = app.failures().await.into_iter().chain(app.sinks_fail().await);
    troubles.extend(failures.map(|what| Trouble { run: None, what }));
    Ok(Health { ok: troubles.is_empty(), troubles }.into())
}

pub(super) async fn metrics(State(app): AppState) -> Result<TextAnswer<String>, ApiError> {
    let (now, store_writable) = (app.now(), app.is_writable().await);
    let read = app.with_engine(move |engine| readings(engine, now));
    let text = app.metrics.render(&Readings { store_writable, ..read.await? });
    Ok(TextAnswer(FORMAT, text.map_err(|error| ApiError::internal(error.to_string()))?))
}

/// What the store counts: no run is read for it.
fn readings(engine: &Engine, now: Timestamp) -> Result<Readings, StoreError> {
    let store = engine.store();
    let mut runs_active = Vec::new();
    for machine in MACHINES {
        let machine_of = Some(machine.to_owned());
        let active = RunFilter { machine: machine_of, active: Some(true), ..RunFilter::default() };
        runs_active.push((machine, store.count(&active)?));
    }
    let (mut sinks, mut queues) = (Vec::new(), Vec::<QueueReading>::new());
    for PendingCount { kind, lane, count, .. } in store.pending_count()? {
        // The lane of a sink ends in its name.
        let sink = lane.rsplit('/').next().filter(|_| kind == SINK);
        sinks.extend(sink.map(|sink| (sink.to_owned(), count)));
        match queues.last_mut().filter(|last| last.kind == kind) {
            Some(last) => last.pending += count,
            None => queues.push(QueueReading { kind, pending: count, ..QueueReading::default() }),
        }
    }
    for queue in &mut queues {
        let kinds = vec![queue.kind.clone()];
        let due = EffectFilter { kinds, limit: CLAIMS_MAX, ..EffectFilter::due_by(now) };
        let due = store.pending_effects(&due)?;
        queue.age = due.iter().map(|effect| now.since(effect.due)).max().unwrap_or_default();
        queue.claimed = due.iter().filter(|effect| effect.worker.is_some()).count() as u64;
    }
    let turns_stuck = overdue(engine, now, STUCK_MAX)?.len();
    let store_bytes = store.size()?.bytes;
    Ok(Readings {
        now,
        runs_active,
        queues,
        sinks,
        store_bytes,
        turns_stuck,
        store_writable: false,
    })
}

/// How long after its time a timer should have fired.
const STUCK_AFTER: Duration = Duration::from_secs(10);
/// Longer than any turn lasts.
const TIMED_WITHIN: Duration = Duration::from_secs(366 * 86_400);
/// How many runs `/v1/health` names, and how many stuck turns and claims are counted.
const TROUBLES_MAX: usize = 100;
const STUCK_MAX: usize = 10_000;
const CLAIMS_MAX: usize = 1_000;
