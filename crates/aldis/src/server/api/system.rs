//! Whether the server is well, and what it can do.

use std::sync::Arc;

use aldis_signal::time::Timestamp;
use aldis_store::{Loaded, RunFilter};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use super::{Route, document};
use crate::engine::keeper::{Keeper, KeeperError};
use crate::engine::machines;
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
        summary: "Say whether the store answers and no turn is stuck; needs no token",
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
fn troubles(keeper: &Keeper, now: Timestamp) -> Result<Vec<Value>, KeeperError> {
    let active = RunFilter { active: Some(true), ..RunFilter::default() };
    let runs = keeper.store().loaded(&active)?;
    let trouble = |Loaded { run, .. }: &Loaded| {
        let what = machines::named(&run.record.machine)?.trouble(run, now)?;
        Some(json!({ "run": run.id.as_str(), "what": what }))
    };
    Ok(runs.iter().filter_map(trouble).collect())
}

async fn ready(State(app): Shared) -> Response {
    let now = app.now();
    match app.keep(move |keeper| troubles(keeper, now)).await {
        Ok(troubles) if troubles.is_empty() => "ok\n".into_response(),
        // Details are for those who have the token.
        Ok(_) => (StatusCode::SERVICE_UNAVAILABLE, "a turn is stuck\n").into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
}

async fn health(State(app): Shared) -> Result<Json<Value>, ApiError> {
    let now = app.now();
    let troubles = app.keep(move |keeper| troubles(keeper, now)).await?;
    Ok(Json(json!({ "v": 1, "ok": troubles.is_empty(), "troubles": troubles })))
}

async fn metrics(State(app): Shared) -> Result<Response, ApiError> {
    let now = app.now();
    let (runs, effects, stuck) = app
        .keep(move |keeper| {
            let active = RunFilter { active: Some(true), ..RunFilter::default() };
            let effects = keeper.store().pending_count()?.iter().map(|it| it.count).sum();
            Ok((keeper.store().count(&active)?, effects, troubles(keeper, now)?.len()))
        })
        .await?;
    let text = app.metrics.render(runs, effects, stuck);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
