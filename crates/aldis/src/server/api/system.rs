//! Whether the server is well, and what it can do.

use std::sync::Arc;

use aldis_engine::{Engine, SINK, Snapshot, State as RunState};
use aldis_machine::{Machine as _, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{PendingCount, RunFilter, StoreError};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;

use super::describe::{Routes, Text};
use super::forms::{Answer, Health, Trouble};
use super::routes;
use crate::server::app::App;
use crate::server::error::ApiError;
use crate::server::metrics::{FORMAT, Readings};

pub(super) fn add(routes: &mut Routes) {
    let summary = "Say whether the process answers; needs no token";
    routes.add("get", "/healthz", summary, || async { Text("text/plain", "ok\n") });
    let summary = "Say whether the server can do its work; needs no token";
    routes.add("get", "/readyz", summary, ready);
    routes.add("get", "/metrics", "Metrics for Prometheus", metrics);
    routes.add("get", "/v1/health", "Say what is wrong, with runs and with the server", health);
    routes.add("get", "/openapi.json", "This description", openapi);
}

async fn openapi() -> Json<Value> {
    Json(routes().document())
}

/// What is wrong with active runs.
fn troubles(engine: &Engine, now: Timestamp) -> Result<Vec<Trouble>, StoreError> {
    let machine = Some(turns::State::NAME.to_owned());
    let channels = RunFilter { machine, active: Some(true), ..RunFilter::default() };
    let trouble = |channel: &Snapshot| {
        let RunState::Turns(state) = &channel.state else { return None };
        let stuck = state.stuck(now)?;
        let what = format!("the turn of {} should have ended at {}", stuck.agent, stuck.deadline);
        Some(Trouble { run: Some(channel.id().to_string()), what })
    };
    Ok(engine.snapshots(&channels)?.iter().filter_map(trouble).collect())
}

/// Whether to send us requests: a channel that is stuck is no reason not to.
async fn ready(State(app): State<Arc<App>>) -> Result<Text<&'static str>, ApiError> {
    let failures = app.failures().await;
    if failures.is_empty() {
        // Others can be served all the same.
        let sinks_work = app.sinks_fail().await.is_empty();
        return Ok(Text(
            "text/plain",
            if sinks_work { "ok\n" } else { "ok; a sink takes nothing\n" },
        ));
    }
    Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", failures.join("; ")))
}

async fn health(State(app): State<Arc<App>>) -> Result<Answer<Health>, ApiError> {
    let now = app.now();
    let mut troubles = app.with_engine(move |engine| troubles(engine, now)).await?;
    let failures = app.failures().await.into_iter().chain(app.sinks_fail().await);
    troubles.extend(failures.map(|what| Trouble { run: None, what }));
    Ok(Health { ok: troubles.is_empty(), troubles }.into())
}

async fn metrics(State(app): State<Arc<App>>) -> Result<Text<String>, ApiError> {
    let (now, store_writable) = (app.now(), app.is_writable().await);
    let read = app.with_engine(move |engine| {
        let active = RunFilter { active: Some(true), ..RunFilter::default() };
        let pending = engine.store().pending_count()?.into_iter().map(
            |PendingCount { kind, lane, count, .. }| {
                // The lane of a sink ends in its name.
                let sink = lane.rsplit('/').next().filter(|_| kind == SINK).unwrap_or_default();
                (sink.to_owned(), count)
            },
        );
        Ok::<_, StoreError>(Readings {
            runs_active: engine.store().count(&active)?,
            pending: pending.collect(),
            turns_stuck: troubles(engine, now)?.len(),
            store_writable,
        })
    });
    let text = app.metrics.render(&read.await?);
    Ok(Text(FORMAT, text.map_err(|error| ApiError::internal(error.to_string()))?))
}
