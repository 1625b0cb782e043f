//! The dashboard and the way in.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::describe::{Operation, Output, Routes, Text};
use super::request::Asked;
use crate::server::access;
use crate::server::app::App;
use crate::server::assets;
use crate::server::error::ApiError;

pub(super) fn add(routes: &mut Routes) {
    let page = || async { Text("text/html; charset=utf-8", assets::PAGE) };
    routes.add("get", "/", "The dashboard", page);
    let script = || async { Text("text/javascript; charset=utf-8", assets::SCRIPT) };
    routes.add("get", "/app.js", "The script of the dashboard", script);
    let style = || async { Text("text/css; charset=utf-8", assets::STYLE) };
    routes.add("get", "/app.css", "The look of the dashboard", style);
    routes.add("get", "/login", "Log a browser in by a link that works once", log_in);
}

#[derive(Deserialize, JsonSchema)]
struct LogInQuery {
    /// From the link that `aldis serve` prints.
    #[serde(default)]
    code: String,
}

/// Sends a browser that has logged in to the dashboard.
impl IntoResponse for access::LogIn {
    fn into_response(self) -> Response {
        // What stands behind `#` reaches no server, and the page removes it from its address.
        let place = format!("/#key={}", self.key);
        (StatusCode::SEE_OTHER, [(SET_COOKIE, self.cookie), (LOCATION, place)]).into_response()
    }
}

impl Output for access::LogIn {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer_nothing("303", "logged in: the dashboard is next");
    }
}

async fn log_in(
    State(app): State<Arc<App>>,
    Asked(LogInQuery { code }): Asked<LogInQuery>,
) -> Result<access::LogIn, ApiError> {
    let message = "this link was used before or has expired; start `aldis serve` again for another";
    let refused = || ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    app.access.log_in(&code).ok_or_else(refused)
}
