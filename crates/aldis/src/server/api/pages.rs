//! The dashboard's pages, the way in and the way out.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, SET_COOKIE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::describe::{Operation, RequestPart, ResponseBody};
use super::forms::Answer;
use super::request::Sent;
use crate::server::access::Credential;
use crate::server::app::AppState;
use crate::server::assets::{self, ASSETS};
use crate::server::error::ApiError;
use crate::server::sessions;

const HTML: &str = "text/html; charset=utf-8";

/// Pages for browsers that are logged in: where, of what kind, what.
pub(super) const PAGES: [(&str, &str, &str); 4] = [
    ("/", HTML, assets::PAGE),
    ("/inbox", HTML, assets::PAGE),
    ("/fleet", HTML, assets::PAGE),
    ("/runs/{run}", HTML, assets::PAGE),
];

/// Returns the pages and files that are the same for everybody.
pub(super) fn open_pages() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let doors = [("/login", HTML, assets::LOGIN), ("/answer", HTML, assets::ANSWER)];
    let files = ASSETS.iter().map(|asset| (asset.path, asset.kind, asset.text));
    doors.into_iter().chain(files)
}

/// What a browser says of itself.
pub(super) struct Browser(HeaderMap);

impl<S: Send + Sync> FromRequestParts<S> for Browser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self(parts.headers.clone()))
    }
}

impl RequestPart for Browser {}

/// By what a browser logs in: one of both.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogInBody {
    /// The code of a link, which works once.
    code: Option<String>,
    /// The token of the server, or one that may observe.
    token: Option<String>,
}

/// What a page sends with every request.
#[derive(Serialize, JsonSchema)]
pub(super) struct LoggedIn {
    /// The value of `X-Aldis-Key`.
    key: String,
}

/// An answer that also sets the cookie of a browser.
pub(super) struct WithCookie<T> {
    cookie: String,
    body: T,
}

impl<T: Serialize> IntoResponse for WithCookie<T> {
    fn into_response(self) -> Response {
        ([(SET_COOKIE, self.cookie)], Json(Answer::from(self.body))).into_response()
    }
}

impl<T: JsonSchema> ResponseBody for WithCookie<T> {
    fn describe(operation: &mut Operation<'_>) {
        Answer::<T>::describe(operation);
    }
}

pub(super) async fn log_in(
    State(app): AppState,
    Browser(headers): Browser,
    Sent { body: LogInBody { code, token }, .. }: Sent<LogInBody>,
) -> Result<WithCookie<LoggedIn>, ApiError> {
    let (by, wrong) = match (code, token) {
        (Some(code), None) => {
            let wrong =
                "this link was used before or has expired; `aldis serve --link` makes another";
            (Credential::Code(code), wrong)
        }
        (None, Some(token)) => (
            Credential::Token(token),
            "wrong token; `serve.token` in the state directory holds one",
        ),
        _ => return Err(ApiError::bad("name `code` or `token`")),
    };
    let refused = || ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", wrong);
    let begun = app.access.log_in(&app, by).await?.ok_or_else(refused)?;
    let cookie = begun.header(app.access.is_secure(&headers));
    Ok(WithCookie { cookie, body: LoggedIn { key: begun.key } })
}

/// Nothing but an empty object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// That it is done.
#[derive(Serialize, JsonSchema)]
pub(super) struct SignedOut {
    /// Always true.
    signed_out: bool,
}

pub(super) async fn log_out(
    State(app): AppState,
    Browser(headers): Browser,
    Sent { body: Nothing {}, .. }: Sent<Nothing>,
) -> Result<WithCookie<SignedOut>, ApiError> {
    app.access.log_out(&app, &headers).await?;
    Ok(WithCookie { cookie: sessions::forget(), body: SignedOut { signed_out: true } })
}
