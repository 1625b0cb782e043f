//! The requests: one table says which there are, the router and the OpenAPI document follow it.

mod answer;
mod channels;
mod describe;
mod pages;
mod request;
mod runs;
mod signals;
mod system;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{self, MethodRouter};

use super::access;
use super::app::App;
use super::error::ApiError;
use super::request_log;

#[cfg(test)]
pub(super) use answer::Parts;
pub(super) use describe::document;

/// The longest body of a request.
const BODY_MAX: usize = 1 << 20;

/// Something that can be asked.
struct Route {
    /// `get`, `post`, `put` or `delete`.
    method: &'static str,
    path: &'static str,
    /// What it does, in one line.
    summary: &'static str,
    /// The members of the body, as `name: what it is`; an optional one ends in `?`.
    body: &'static [(&'static str, &'static str)],
    /// The parameters of the address, likewise.
    query: &'static [(&'static str, &'static str)],
    handler: fn() -> MethodRouter<Arc<App>>,
}

/// Everything that can be asked.
const TABLES: &[&[Route]] =
    &[signals::ROUTES, channels::ROUTES, runs::ROUTES, system::ROUTES, pages::ROUTES];

fn routes() -> impl Iterator<Item = &'static Route> {
    TABLES.iter().copied().flatten()
}

/// Builds the whole application, with no socket: tests call it as a function.
pub(super) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    for route in routes() {
        router = router.route(route.path, (route.handler)());
        // Programs that were written for others of our kind ask there.
        if let Some(rest) = route.path.strip_prefix("/v1/") {
            router = router.route(&format!("/api/{rest}"), (route.handler)());
        }
    }
    router
        .fallback(routing::any(|| async { ApiError::not_found("there is no such thing") }))
        .method_not_allowed_fallback(|| async { ApiError::other_method() })
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(app.clone(), access::guard))
        .layer(from_fn(request_log::log))
        .with_state(app)
}
