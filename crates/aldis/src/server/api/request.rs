//! What a request brings along, checked.

use std::str::FromStr;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use aldis_engine::Members;
use aldis_store::{RunId, Source};

use tokio::time;

use super::BODY_MAX;
use crate::server::error::ApiError;
use crate::view::display;

/// How deep JSON may nest.
const DEPTH_MAX: usize = 32;
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(8);
const KEY: &str = "idempotency-key";
/// The longest idempotency key.
pub(super) const KEY_MAX: usize = 200;

/// A JSON body, and what makes the request recognisable when it comes again.
pub(super) struct Sent<T> {
    pub(super) body: T,
    pub(super) source: Option<Source>,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Sent<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            let message = "the body must be `application/json`";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(ApiError::new(status, "unsupported_media_type", message));
        }
        let too_long = "the body is longer than a mebibyte";
        if announced(request.headers()) > BODY_MAX {
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "bad_body", too_long));
        }
        let key = IdempotencyKey::read(request.headers())?;
        let about = key.map(|key| (key, request.method().clone(), request.uri().clone()));
        let bytes = time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await;
        let bytes = bytes.map_err(|_| {
            let message = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
        })?;
        let bytes = bytes.map_err(|rejection| {
            let words = match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => too_long.to_owned(),
                _ => rejection.body_text(),
            };
            ApiError::new(rejection.status(), "bad_body", words)
        })?;
        if depth(&bytes) > DEPTH_MAX {
            return Err(ApiError::bad(format!("the body nests deeper than {DEPTH_MAX}")));
        }
        let body = serde_json::from_slice(&bytes);
        let body = body.map_err(|error| ApiError::bad(format!("the body: {error}")))?;
        let source = about.map(|(key, method, uri)| key.source(&method, uri.path(), &bytes));
        Ok(Self { body, source })
    }
}

/// How long the body is going to be, where that is said.
fn announced(headers: &HeaderMap) -> usize {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// How deep the brackets outside of strings nest.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The `Idempotency-Key` of a request.
struct IdempotencyKey(String);

impl IdempotencyKey {
    fn read(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let Some(key) = headers.get(KEY) else { return Ok(None) };
        let key = key.to_str().unwrap_or_default();
        if !(1..=KEY_MAX).contains(&key.len()) {
            return Err(ApiError::bad(format!(
                "`Idempotency-Key` must have 1 to {KEY_MAX} visible characters"
            )));
        }
        Ok(Some(Self(key.to_owned())))
    }

    /// The key with a digest of the whole request: another request with the same key is told apart.
    fn source(self, method: &Method, path: &str, body: &[u8]) -> Source {
        let mut digest = Sha256::new();
        for part in [method.as_str().as_bytes(), path.as_bytes(), body] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        let digest = digest.finalize();
        let digest = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        // Apart from the sources of hooks.
        Source { key: format!("api:{}", self.0), digest }
    }
}

/// What makes a request without a body recognisable when it comes again.
pub(super) struct SentNothing(pub(super) Option<Source>);

impl<S: Send + Sync> FromRequestParts<S> for SentNothing {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let key = IdempotencyKey::read(&parts.headers)?;
        Ok(Self(key.map(|key| key.source(&parts.method, parts.uri.path(), b""))))
    }
}

/// The parameters of the address.
pub(super) struct Asked<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let bad = |wrong: QueryRejection| ApiError::bad(format!("the address: {wrong}"));
        Ok(Self(query.map_err(bad)?.0))
    }
}

/// The run or channel that the address names.
pub(super) struct Named(pub(super) RunId);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<Vec<String>>::from_request_parts(parts, state).await;
        let names = path.map_err(|_| ApiError::not_found("no such endpoint"))?;
        let name = names.0.into_iter().next().unwrap_or_default();
        let id = RunId::new(name).map_err(|error| ApiError::not_found(error.to_string()))?;
        Ok(Self(id))
    }
}

/// Which page of a list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Where the page begins: `next` of the page before.
    pub(super) after: Option<String>,
    /// How many at most: 1 to 1000 (default: 100).
    pub(super) limit: Option<usize>,
}

impl Page {
    pub(super) const LIMIT_MAX: usize = 1_000;
    const LIMIT_USUAL: usize = 100;

    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        match self.limit.unwrap_or(Self::LIMIT_USUAL) {
            0 => Err(ApiError::bad("`limit` must be at least 1")),
            limit => Ok(limit.min(Self::LIMIT_MAX)),
        }
    }

    pub(super) fn after<C: FromStr>(&self) -> Result<Option<C>, ApiError> {
        self.after.as_deref().map(cursor).transpose()
    }

    /// Cuts what was read, one more than the limit, to the page; also says where the next begins.
    pub(super) fn cut<T>(
        mut items: Vec<T>,
        limit: usize,
        cursor: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(cursor);
        (items, next)
    }
}

/// Reads the position in a list.
pub(super) fn cursor<C: FromStr>(text: &str) -> Result<C, ApiError> {
    let bad =
        |_| ApiError::bad(format!("`{}` is no position of this list", display::excerpt(text, 40)));
    // `parse` alone would take a sign.
    let text = text.strip_prefix('+').map_or(text, |_| "");
    text.parse().map_err(bad)
}

/// The members of a body, without those that are left out.
pub(super) fn members(body: &impl Serialize) -> Result<Members, ApiError> {
    match serde_json::to_value(body) {
        Ok(Value::Object(mut members)) => {
            members.retain(|_, member| !member.is_null());
            Ok(members)
        }
        _ => Err(ApiError::internal("the body cannot be passed on")),
    }
}

#[cfg(test)]
mod tests {
    //! How deep is deep.

    use super::*;

    #[test]
    fn brackets_in_strings_do_not_nest() {
        for (text, want) in [
            ("", 0),
            ("{}", 1),
            ("[[[]]]", 3),
            (r#"{"a":"[[[["}"#, 1),
            (r#"{"a":"\"[[[["}"#, 1),
            (r#"{"a\\":[1,[2]]}"#, 3),
            ("]]][", 1),
        ] {
            assert_eq!(depth(text.as_bytes()), want, "{text}");
        }
    }
}
