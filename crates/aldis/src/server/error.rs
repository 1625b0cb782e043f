//! Failures as clients see them: a status, a code, words.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use aldis_store::StoreError;

use crate::engine::keeper::KeeperError;
use crate::error::CommandError;

/// Why a request led to nothing.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub(super) fn other_method() -> Self {
        let message = "this is asked in another way; `/openapi.json` says how";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<KeeperError> for ApiError {
    fn from(error: KeeperError) -> Self {
        let (status, code) = match &error {
            KeeperError::Bad(_) => (StatusCode::BAD_REQUEST, "bad_request"),
            KeeperError::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            KeeperError::NoSuchRun(_) => (StatusCode::NOT_FOUND, "not_found"),
            KeeperError::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
            KeeperError::Store(StoreError::Busy { .. } | StoreError::Full { .. }) => {
                (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
            }
            KeeperError::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "store_failed"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        Self::new(error.message)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        KeeperError::Store(error).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, code, message } = self;
        (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response()
    }
}
