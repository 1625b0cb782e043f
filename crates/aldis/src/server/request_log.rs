//! A span for every request, so that whatever is logged meanwhile says which request it was.
//!
//! Addresses are logged as routes: the query of a login link is a secret.

use axum::RequestExt as _;
use axum::extract::{MatchedPath, RawPathParams, Request};
use axum::middleware::Next;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument as _, info_span};

use super::access::RequestId;
use crate::settings::clock::Stopwatch;

/// What names a run in the address of a request.
const RUN: [&str; 2] = ["run", "channel"];
/// How much of a name is logged.
const NAME_MAX: usize = 80;

/// Answers a request inside a span of its own.
pub(super) async fn log(mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("-", MatchedPath::as_str);
    let id = request.extensions().get::<RequestId>().map(|id| id.0.as_str());
    let span =
        info_span!("request", method = %request.method(), route, run = Empty, request_id = id);
    let params = request.extract_parts::<RawPathParams>().await;
    for (_, run) in params.iter().flat_map(RawPathParams::iter).filter(|(it, _)| RUN.contains(it)) {
        // Whoever asks may write anything there.
        span.record("run", &*run.chars().take(NAME_MAX).collect::<String>());
    }
    async {
        let began = Stopwatch::start();
        let response = next.run(request).await;
        let (status, took) = (response.status(), began.elapsed());
        if status.is_server_error() {
            tracing::warn!(status = status.as_u16(), ?took, "answered");
        } else {
            tracing::debug!(status = status.as_u16(), ?took, "answered");
        }
        response
    }
    .instrument(span)
    .await
}
