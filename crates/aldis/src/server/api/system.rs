//! Whether the server is well, and what it can do.

use std::sync::Arc;

use aldis_engine::{Engine, Snapshot, State as RunState};
use aldis_machine::{Machine as _, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{RunFilter, StoreError};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use super::{Route, document};
use crate::server::app::App;
use crate::server::error::ApiError;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "get",
        path: "/healthz",
        summary: "Say whether the process answers; needs no token",
        body: &[],
        query: &[],
        handler: || get(|| async { "ok\n" }),
    },
    Route {
        method: "get",
        path: "/readyz",
        summary: "Say whether the store can be written; needs no token",
        body: &[],
        query: &[],
        handler: || get(ready),
    },
    Route {
        method: "get",
        path: "/metrics",
        summary: "Counters for Prometheus",
        body: &[],
        query: &[],
        handler: || get(metrics),
    },
    Route {
        method: "get",
        path: "/v1/health",
        summary: "Say what is wrong, run by run",
        body: &[],
        query: &[],
        handler: || get(health),
    },
    Route {
        method: "get",
        path: "/openapi.json",
        summary: "This description",
        body: &[],
        query: &[],
        handler: || get(|| async { Json(document()) }),
    },
];

type Shared = State<Arc<App>>;

/// What is wrong with active runs.
fn troubles(engine: &Engine, now: Timestamp) -> Result<Vec<Value>, StoreError> {
    let machine = Some(turns::State::NAME.to_owned());
    let channels = RunFilter { machine, active: Some(true), ..RunFilter::default() };
    let trouble = |channel: &Snapshot| {
        let RunState::Turns(state) = &channel.state else { return None };
        let stuck = state.stuck(now)?;
        let what = format!("the turn of {} should have ended at {}", stuck.agent, stuck.deadline);
        Some(json!({ "run": channel.id().as_str(), "what": what }))
    };
    Ok(engine.snapshots(&channels)?.iter().filter_map(trouble).collect())
}

/// Whether to send us requests: a channel that is stuck is no reason not to.
async fn ready(State(app): Shared) -> Response {
    match app.is_writable().await {
        // Others can be served all the same.
        true if !app.sinks_fail().await.is_empty() => "ok; a sink takes nothing\n".into_response(),
        true => "ok\n".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store cannot be written\n").into_response(),
    }
}

async fn health(State(app): Shared) -> Result<Json<Value>, ApiError> {
    let now = app.now();
    let mut troubles = app.with_engine(move |engine| troubles(engine, now)).await?;
    if !app.is_writable().await {
        troubles.push(json!({ "run": null, "what": "the store cannot be written" }));
    }
    let sinks = app.sinks_fail().await.into_iter();
    troubles.extend(sinks.map(|what| json!({ "run": null, "what": what })));
    Ok(Json(json!({ "v": 1, "ok": troubles.is_empty(), "troubles": troubles })))
}

async fn metrics(State(app): Shared) -> Result<Response, ApiError> {
    let now = app.now();
    let (runs, effects, stuck) = app
        .with_engine(move |engine| {
            let active = RunFilter { active: Some(true), ..RunFilter::default() };
            let store = engine.store();
            let effects = store.pending_count()?.iter().map(|it| it.count).sum();
            Ok::<_, StoreError>((store.count(&active)?, effects, troubles(engine, now)?.len()))
        })
        .await?;
    let text = app.metrics.render(runs, effects, stuck);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
