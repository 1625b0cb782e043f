//! Failures as clients see them: a status, a code, words, and which request it was.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use aldis_engine::EngineError;
use aldis_store::{CommitError, StoreError};

use crate::app::control::ControlError;
use crate::error::CommandError;

/// The answer to every request that failed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(super) struct ErrorForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// What is wrong.
    error: ErrorBody,
}

/// What is wrong with a request.
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorBody {
    /// A stable code.
    code: &'static str,
    /// What happened and what to do, in words for people.
    message: String,
    /// The request, as in the header `X-Request-Id` of the answer.
    request_id: String,
}

/// Why a request led to nothing.
#[derive(Clone, Debug)]
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

    /// The whole answer.
    pub(super) fn render(self, request_id: String) -> Response {
        let Self { status, code, message } = self;
        let error = ErrorBody { code, message, request_id };
        (status, Json(ErrorForm { v: 1, error })).into_response()
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(super) fn is_unauthorized(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let (status, code) = match &error {
            EngineError::Invalid(_) | EngineError::NoSuchMachine(_) => {
                (StatusCode::BAD_REQUEST, "bad_request")
            }
            EngineError::NoSuchRun(_) => (StatusCode::NOT_FOUND, "not_found"),
            EngineError::NotPossible(_)
            | EngineError::Exists(_)
            | EngineError::DrivenElsewhere { .. }
            | EngineError::Fenced(_)
            | EngineError::Contended(_) => (StatusCode::CONFLICT, "conflict"),
            EngineError::KeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "key_reused"),
            EngineError::Store(StoreError::Busy { .. } | StoreError::Full { .. }) => {
                (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
            }
            EngineError::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "store_failed"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<ControlError> for ApiError {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Engine(error) => error.into(),
            ControlError::Unsupervised { .. } => {
                Self::new(StatusCode::CONFLICT, "conflict", error.to_string())
            }
        }
    }
}

impl From<CommitError> for ApiError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => error.into(),
            CommitError::NoSuchRun { run } => EngineError::NoSuchRun(run).into(),
            other => Self::new(StatusCode::CONFLICT, "conflict", other.to_string()),
        }
    }
}

impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        Self::new(error.message)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        EngineError::Store(error).into()
    }
}

impl IntoResponse for ApiError {
    /// Only marks the answer: whoever knows the request [renders](Self::render) it.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
