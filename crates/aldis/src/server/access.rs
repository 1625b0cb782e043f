//! Who may ask: the right host, the right origin, a token or a login that allows it.
//!
//! A web page in the user's browser can send requests to loopback. It cannot choose its `Origin`,
//! it cannot know the token, and after rebinding a name it still says that name in `Host`. All
//! three are compared for equality with what is expected, before anything else looks at a request.
//!
//! What a route needs stands in the table that the router is built from ([`need`]).

mod grant;
pub(super) mod need;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::Store;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, ORIGIN,
    RETRY_AFTER,
};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

pub(super) use self::grant::{Asker, Credential};
use self::need::{Need, Needs};
use super::app::App;
use super::error::ApiError;
use super::oidc::Issuers;
use super::tickets;
use crate::error::CommandError;
use crate::settings::clock::Stopwatch;
use crate::settings::config::Serve;
use crate::settings::public_url::PublicUrl;
use crate::settings::secret;
use crate::view::display;

/// How long a link to log in can be used.
const LINK_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Files that are the same for everybody, and what is none of them.
const FILES: &str = "/assets/";
/// Where the pages of runs are.
const RUN_PAGES: &str = "/runs/";
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
    is_tls: bool,
    /// Where browsers elsewhere find the server, if they do.
    public: Option<PublicUrl>,
    /// How long a browser stays logged in.
    keep_login: Duration,
    /// Whose identity tokens are believed.
    pub(super) issuers: Arc<Issuers>,
}

/// By what a server is known.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// Whether it ends TLS itself.
    pub(super) is_tls: bool,
    /// Names that whoever runs it allows, with or without a port.
    pub(super) allowed: Vec<String>,
}

impl Names {
    /// Returns the hosts that it answers to, and the origins of its own pages.
    fn hosts(&self, public: Option<&PublicUrl>) -> (Vec<String>, Vec<String>) {
        let (address, scheme) = (self.address, if self.is_tls { "https" } else { "http" });
        let (port, usual) = (address.port(), if self.is_tls { 443 } else { 80 });
        let mut hosts = vec![address.to_string(), format!("localhost:{port}")];
        if port == usual {
            hosts.extend([address.ip().to_string(), "localhost".to_owned()]);
        }
        let mut origins: Vec<String> =
            hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        for name in self.allowed.iter().map(|name| name.to_ascii_lowercase()) {
            for host in [format!("{name}:{port}"), name] {
                // A proxy in front may end TLS.
                origins.extend([format!("https://{host}"), format!("{scheme}://{host}")]);
                hosts.push(host);
            }
        }
        if let Some(public) = public {
            hosts.push(public.host().to_owned());
            origins.push(public.to_string());
        }
        (hosts, origins)
    }
}

impl Access {
    /// Expects this token, under these names, and under the address that a tunnel leads here from.
    pub(super) fn new(token: &str, names: Names, serve: Serve) -> Self {
        let Serve { public_url: public, keep_login, .. } = serve;
        let (hosts, origins) = names.hosts(public.as_ref());
        let keep_login = Duration::from_secs(keep_login.0);
        let is_tls = names.is_tls;
        let issuers = Arc::default();
        Self { token: digest(token), hosts, origins, is_tls, public, keep_login, issuers }
    }

    /// The same, which believes these issuers.
    pub(super) fn believing(self, issuers: Issuers) -> Self {
        Self { issuers: Arc::new(issuers), ..self }
    }

    /// Whether a request came over TLS, which ends here or before us.
    pub(super) fn is_secure(&self, headers: &HeaderMap) -> bool {
        if self.is_tls {
            return true;
        }
        let public = self.public.as_ref().filter(|public| public.is_https());
        public.is_some_and(|public| text(headers, HOST) == Some(public.host()))
    }

    /// Checks where a request was sent and where it comes from.
    fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let value = |name: HeaderName| headers.get(name).map(|it| it.to_str().unwrap_or(""));
        let one = |name: &HeaderName| headers.get_all(name).iter().count() <= 1;
        let host = value(HOST).unwrap_or("");
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
        if let Some(origin) = value(ORIGIN)
            && (!one(&ORIGIN) || !self.origins.iter().any(|known| known == origin))
        {
            return Err(ApiError::forbidden("requests of other sites are refused"));
        }
        match value(FETCH_SITE) {
            None | Some("none" | "same-origin") => Ok(()),
            Some(_) => Err(ApiError::forbidden("requests of other sites are refused")),
        }
    }

    /// Returns the hosts and the origins of this server.
    pub(super) fn places(&self) -> (Vec<String>, Vec<String>) {
        (self.hosts.clone(), self.origins.clone())
    }

    /// Whether this is the token of this very server.
    fn is_own(&self, token: &str) -> bool {
        digest(token) == self.token
    }
}

/// Makes a link that logs one browser in, once, and puts it where every server of this store finds it.
pub(crate) fn login_code(store: &dyn Store, now: Timestamp) -> Result<String, CommandError> {
    let random = |error| CommandError::new(format!("the system gives no random numbers: {error}"));
    let code = secret::key().map_err(random)?;
    tickets::LOGINS.put(store, &code, now.after(LINK_LIFETIME), now)?;
    Ok(code)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// What stands before every request.
pub(super) type Guard = (Arc<App>, Arc<Needs>);

/// Stands before every request.
pub(super) async fn guard(
    State((app, needs)): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let need = route.and_then(|route| needs.of(route.as_str(), request.method()));
    match admit(&app, need, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(error) if error.is_unauthorized() && is_page(need, request.uri().path()) => {
            to_login(request.uri().path())
        }
        Err(error) => error.into_response(),
    }
}

/// Checks a request, and notes what whoever sent it may do.
async fn admit(app: &Arc<App>, need: Option<Need>, request: &mut Request) -> Result<(), ApiError> {
    app.access.check_origin(request.uri(), request.headers())?;
    let is_file = need.is_none() && request.uri().path().starts_with(FILES);
    if need == Some(Need::Nothing) || is_file {
        return Ok(());
    }
    let asker = grant::of_request(app, need == Some(Need::Page), request.headers()).await?;
    if let Some(Need::Grant(scope, reach)) = need {
        need::check(&asker.grant, scope, reach)?;
        if reach == need::Reach::Run {
            asker.check_named(app, request).await?;
        }
    }
    // The tools of `/mcp` know grants, and nothing of requests.
    request.extensions_mut().insert(asker.grant.clone());
    request.extensions_mut().insert(asker);
    Ok(())
}

/// Whether a browser asks for a page, also for one that is not there.
fn is_page(need: Option<Need>, path: &str) -> bool {
    need == Some(Need::Page) || path.starts_with(RUN_PAGES)
}

/// Sends a browser to where it can log in, and back from there.
fn to_login(path: &str) -> Response {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let escaped: String = path
        .bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let place = if path == "/" { "/login".to_owned() } else { format!("/login?next={escaped}") };
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
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
