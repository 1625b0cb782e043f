//! The dashboard and the way in.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::Route;
use super::request::Asked;
use crate::server::app::App;
use crate::server::assets;
use crate::server::error::ApiError;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "get",
        path: "/",
        summary: "The dashboard",
        body: &[],
        query: &[],
        handler: || get(|| async { asset("text/html; charset=utf-8", assets::PAGE) }),
    },
    Route {
        method: "get",
        path: "/app.js",
        summary: "The script of the dashboard",
        body: &[],
        query: &[],
        handler: || get(|| async { asset("text/javascript; charset=utf-8", assets::SCRIPT) }),
    },
    Route {
        method: "get",
        path: "/app.css",
        summary: "The look of the dashboard",
        body: &[],
        query: &[],
        handler: || get(|| async { asset("text/css; charset=utf-8", assets::STYLE) }),
    },
    Route {
        method: "get",
        path: "/login",
        summary: "Log a browser in by a link that works once",
        body: &[],
        query: &[("code", "from the link that `aldis serve` prints")],
        handler: || get(log_in),
    },
];

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

#[derive(Deserialize)]
struct LogIn {
    #[serde(default)]
    code: String,
}

async fn log_in(
    State(app): State<Arc<App>>,
    Asked(LogIn { code }): Asked<LogIn>,
) -> Result<Response, ApiError> {
    let Some(cookie) = app.access.log_in(&code) else {
        let message =
            "this link was used before or is too old; start `aldis serve` again for another";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message));
    };
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie.as_str()), (LOCATION, "/")]).into_response())
}
