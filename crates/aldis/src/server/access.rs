//! Who may ask: the right host, the right origin, the right token.
//!
//! A web page in the user's browser can send requests to loopback. It cannot choose its `Origin`,
//! it cannot know the token, and after rebinding a name it still says that name in `Host`. All
//! three are compared for equality with what is expected, before anything else looks at a request.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CONNECTION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    RETRY_AFTER,
};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use std::sync::Arc;

use super::app::App;
use super::error::ApiError;
use super::mcp;
use crate::error::CommandError;
use crate::settings::clock::{SteadyClock, Stopwatch};
use crate::settings::secret;
use crate::view::display;

/// How long a link to log in can be used.
const LINK_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// How many browsers are logged in at once; the oldest is forgotten first.
const SESSIONS_MAX: usize = 16;
const COOKIE_NAME: &str = "aldis_session";
/// What anybody may ask: whether we are there.
const OPEN: &[&str] = &["/healthz", "/readyz", "/login"];
/// What a browser that is logged in may ask by its cookie alone: nothing that differs between users.
const PAGE: &[&str] = &["/", "/app.css", "/app.js"];
/// The key of the page.
const PAGE_KEY: HeaderName = HeaderName::from_static("x-aldis-key");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that a client may give a request.
const REQUEST_ID_MAX: usize = 64;

/// The id of a request, for whatever is logged about it.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// A digest of something secret: comparing two tells nothing about where they differ.
type Digest = [u8; 32];

/// Who may ask.
#[derive(Debug)]
pub(crate) struct Access {
    token: Digest,
    hosts: Vec<String>,
    origins: Vec<String>,
    clock: SteadyClock,
    keys: Mutex<Keys>,
}

#[derive(Debug, Default)]
struct Keys {
    /// The link that logs a browser in, and until when.
    link: Option<(Digest, Timestamp)>,
    sessions: VecDeque<Session>,
}

/// A browser that is logged in. Browsers send a cookie to every port of this host, and whoever listens
/// there could replay it: so it opens the page, and nothing else without the page's own key.
#[derive(Debug)]
struct Session {
    cookie: Digest,
    key: Digest,
}

/// What a browser gets when it logs in.
pub(super) struct LogIn {
    /// The header that sets the cookie.
    pub(super) cookie: String,
    /// What the page sends with every request. Only the page's own origin can read where it keeps it.
    pub(super) key: String,
}

impl Access {
    /// Expects this token, on this address.
    pub(super) fn new(token: String, address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string(), format!("localhost:{port}")];
        if port == 80 {
            hosts.extend([address.ip().to_string(), "localhost".to_owned()]);
        }
        let origins = hosts.iter().map(|host| format!("http://{host}")).collect();
        let (clock, keys) = (SteadyClock::start(), Mutex::default());
        Self { token: digest(&token), hosts, origins, clock, keys }
    }

    /// Makes a link that logs one browser in, once.
    pub(super) fn login_link(&self, address: SocketAddr) -> Result<String, CommandError> {
        let random =
            |error| CommandError::new(format!("the system gives no random numbers: {error}"));
        let code = secret::key().map_err(random)?;
        self.keys().link = Some((digest(&code), self.clock.now().after(LINK_LIFETIME)));
        Ok(format!("http://{address}/login?code={code}"))
    }

    /// Takes the code of a link and logs the browser that used it in.
    pub(super) fn log_in(&self, code: &str) -> Option<LogIn> {
        let (now, code) = (self.clock.now(), digest(code));
        let mut keys = self.keys();
        keys.link.take_if(|(known, until)| *known == code && *until > now)?;
        let [cookie, key] = [secret::key().ok()?, secret::key().ok()?];
        keys.sessions.push_back(Session { cookie: digest(&cookie), key: digest(&key) });
        if keys.sessions.len() > SESSIONS_MAX {
            keys.sessions.pop_front();
        }
        let cookie = format!("{COOKIE_NAME}={cookie}; HttpOnly; SameSite=Strict; Path=/");
        Some(LogIn { cookie, key })
    }

    /// Checks where a request was sent and where it comes from.
    fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
        let one = |name: &HeaderName| headers.get_all(name).iter().count() <= 1;
        let host = text(HOST).unwrap_or("");
        if !one(&HOST) {
            return Err(ApiError::bad("more than one Host header"));
        }
        // A request may also name a host in its first line, which then counts for more.
        let named = uri.authority().map_or(host, |authority| authority.as_str());
        if [host, named].iter().any(|host| !self.hosts.iter().any(|known| known == host)) {
            let (found, known) = (display::excerpt(named, 100), self.hosts.join(" and "));
            let message = format!("unknown Host header `{found}`; this server answers to {known}");
            return Err(ApiError::forbidden(message));
        }
        if let Some(origin) = text(ORIGIN)
            && (!one(&ORIGIN) || !self.origins.iter().any(|known| known == origin))
        {
            return Err(ApiError::forbidden("requests of other sites are refused"));
        }
        match text(FETCH_SITE) {
            None | Some("none" | "same-origin") => Ok(()),
            Some(_) => Err(ApiError::forbidden("requests of other sites are refused")),
        }
    }

    /// Returns the hosts and the origins of this server.
    pub(super) fn places(&self) -> (Vec<String>, Vec<String>) {
        (self.hosts.clone(), self.origins.clone())
    }

    /// Checks who sent a request.
    fn check_token(&self, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        if bearer(headers).is_some_and(|token| digest(token) == self.token) {
            return Ok(());
        }
        let cookies = text(COOKIE).into_iter().flat_map(|cookies| cookies.split("; "));
        let cookie = cookies
            .filter_map(|cookie| cookie.split_once('='))
            .find_map(|(name, value)| (name == COOKIE_NAME).then(|| digest(value)));
        let key = text(PAGE_KEY).map(digest);
        let is_page = PAGE.contains(&path);
        let known = |session: &Session| {
            Some(session.cookie) == cookie && (is_page || Some(session.key) == key)
        };
        if self.keys().sessions.iter().any(known) {
            return Ok(());
        }
        let message = "the token is missing or wrong: programs send the one in `serve.token` of the \
                       state directory, browsers use the link that `aldis serve` prints";
        Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message))
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Stands before every request.
pub(super) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let checked = app.access.check_origin(request.uri(), request.headers()).and_then(|()| {
        match request.uri().path() {
            path if OPEN.contains(&path) => Ok(()),
            mcp::PATH => match app.reporter(bearer(request.headers())) {
                Some(reporter) => {
                    request.extensions_mut().insert(reporter);
                    Ok(())
                }
                None => app.access.check_token(mcp::PATH, request.headers()),
            },
            path => app.access.check_token(path, request.headers()),
        }
    });
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Stands around everything: gives the request an id, failures their form and answers their headers.
pub(super) async fn frame(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = request_id(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    let (watch, method) = (Stopwatch::start(), request.method().clone());
    // Whatever is asked where nothing is makes one series.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        let headers = std::mem::take(response.headers_mut());
        response = error.render(id.clone());
        let kept = [ALLOW, CONNECTION, RETRY_AFTER].map(|name| (headers.get(&name).cloned(), name));
        let kept = kept.into_iter().filter_map(|(value, name)| Some((name, value?)));
        response.headers_mut().extend(kept);
    }
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    app.metrics.answered(known(&method), route, response.status().as_u16(), watch.elapsed());
    for (name, value) in SECURITY {
        let (name, value) = (HeaderName::from_static(name), HeaderValue::from_static(value));
        response.headers_mut().entry(name).or_insert(value);
    }
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The name of a method that is used here; others, which clients make up, make one series.
fn known(method: &Method) -> &str {
    let is_known = [Method::DELETE, Method::GET, Method::POST, Method::PUT].contains(method);
    if is_known { method.as_str() } else { "other" }
}

/// The id that the client gave a request, if it can be printed anywhere; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_sane = |id: &&str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=REQUEST_ID_MAX).contains(&id.len()) && id.bytes().all(allowed)
    };
    match given.filter(is_sane) {
        Some(id) => id.to_owned(),
        None => aldis_engine::token().unwrap_or_default(),
    }
}

/// What every answer says to browsers.
const SECURITY: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'",
    ),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}
