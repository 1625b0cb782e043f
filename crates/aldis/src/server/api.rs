//! The requests: the rows of one table make the router, the guard and the OpenAPI document.

mod channels;
mod dashboard;
mod describe;
mod forms;
mod items;
mod pages;
mod remote;
mod request;
mod runs;
mod signals;
mod system;
mod table;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::middleware::{from_fn, from_fn_with_state};

use self::describe::Routes;
use super::access;
use super::app::App;
use super::error::ApiError;
use super::mcp;
use super::request_log;

#[cfg(test)]
pub(super) use self::forms::EffectParts;

/// The longest body of a request.
const BODY_MAX: usize = 1 << 20;

/// Builds the whole application, with no socket: tests call it as a function.
pub(super) fn router(app: Arc<App>) -> Router {
    let other_method = || async {
        let message = "method not allowed; see `/openapi.json`";
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    };
    let Routes { router, needs, .. } = table::routes();
    let guarded: access::Guard = (app.clone(), Arc::new(needs));
    router
        .merge(mcp::route(&app))
        .fallback(|| async { ApiError::not_found("no such endpoint; see `/openapi.json`") })
        .method_not_allowed_fallback(other_method)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(guarded, access::guard))
        .layer(from_fn(request_log::log))
        .layer(from_fn_with_state(app.clone(), access::frame))
        .with_state(app)
}

/// Answers whatever comes over a connection that there is no room for.
pub(super) fn refusing(app: &Arc<App>) -> Router {
    let refuse = || async {
        let message = "too many connections; close some, or try again later";
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", message);
        ([(CONNECTION, "close"), (RETRY_AFTER, "1")], error)
    };
    Router::new().fallback(refuse).layer(from_fn_with_state(app.clone(), access::frame))
}

/// What all routes need.
#[cfg(test)]
pub(super) fn needs() -> access::need::Needs {
    table::routes().needs
}
