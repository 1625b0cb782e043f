//! Who sent a request: this server's own token, a token of the store, or a browser that is logged in;
//! and what they may do.

use std::sync::Arc;

use aldis_engine::EngineError;
use aldis_store::{RunId, StoreError};
use axum::RequestExt as _;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::StatusCode;
use axum::http::header::{COOKIE, HeaderMap};
use axum::http::request::Parts;

use super::need::insufficient;
use super::{Access, PAGE_KEY, bearer, text};
use crate::server::app::App;
use crate::server::error::ApiError;
use crate::server::sessions::{self, LogIn};
use crate::server::tickets;
use crate::settings::tokens::{self, Grant, Scope};

/// What names a run in an address.
const NAMES: [&str; 2] = ["run", "channel"];

/// Whoever sent a request.
#[derive(Clone, Debug)]
pub(in crate::server) struct Asker {
    /// What it may do.
    pub(in crate::server) grant: Grant,
    /// Who it is, for the journal.
    pub(in crate::server) name: String,
}

/// By what a browser logs in.
#[derive(Debug)]
pub(in crate::server) enum Credential {
    /// The code of a link that works once.
    Code(String),
    /// A token.
    Token(String),
}

impl Asker {
    fn new(grant: Grant, name: impl Into<String>) -> Self {
        Self { grant, name: name.into() }
    }

    /// Refuses what is about a run that the grant does not reach. Whoever may not see a run is not told
    /// whether it is there.
    pub(in crate::server) async fn check_run(
        &self,
        app: &App,
        run: &RunId,
    ) -> Result<(), ApiError> {
        if self.grant.is_everywhere() {
            return Ok(());
        }
        let (id, grant) = (run.clone(), self.grant.clone());
        let found = app.with_engine(move |engine| {
            let run = engine.store().run(&id)?;
            Ok::<_, StoreError>(
                run.is_some_and(|it| grant.reaches(id.as_str(), &it.record.project)),
            )
        });
        if found.await? { Ok(()) } else { Err(EngineError::NoSuchRun(run.clone()).into()) }
    }

    /// Refuses a request whose address names a run that the grant does not reach.
    pub(super) async fn check_named(
        &self,
        app: &App,
        request: &mut Request,
    ) -> Result<(), ApiError> {
        if self.grant.is_everywhere() {
            return Ok(());
        }
        let params = request.extract_parts::<RawPathParams>().await;
        let params = params.map_err(|_| ApiError::not_found("no such endpoint"))?;
        let named = params.iter().find(|(name, _)| NAMES.contains(name)).map(|(_, run)| run);
        let run = RunId::new(named.unwrap_or_default())
            .map_err(|error| ApiError::not_found(error.to_string()))?;
        self.check_run(app, &run).await
    }

    /// Refuses to speak as another agent than the grant says.
    pub(in crate::server) fn check_agent(&self, agent: &str) -> Result<(), ApiError> {
        match &self.grant.agent {
            Some(own) if own != agent => {
                let message = format!("this token is for the agent `{own}` alone");
                Err(insufficient(message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the projects whose runs may be listed; none if there is no limit.
    pub(in crate::server) fn projects(&self) -> Vec<String> {
        self.grant.project.iter().cloned().collect()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get().cloned().ok_or_else(unauthorized)
    }
}

/// Finds out who sent a request. A browser's cookie alone opens pages.
pub(super) async fn of_request(
    app: &Arc<App>,
    is_page: bool,
    headers: &HeaderMap,
) -> Result<Asker, ApiError> {
    let bearer = bearer(headers);
    if bearer.is_some_and(|token| app.access.is_own(token)) {
        return Ok(Asker::new(Grant::ADMIN, "the API"));
    }
    let cookie = text(headers, COOKIE).and_then(sessions::cookie);
    let key = (!is_page).then(|| text(headers, PAGE_KEY).map(str::to_owned));
    let [token, cookie] = [bearer, cookie].map(|it| it.map(str::to_owned));
    if token.is_none() && cookie.is_none() {
        return Err(unauthorized());
    }
    let now = app.now();
    let found = app.with_engine(move |engine| {
        let store = engine.store();
        if let Some(token) = token
            && let Some(token) = tokens::find(store, &token, now)?
        {
            let name = format!("token {}", token.id());
            return Ok(Some(Asker::new(token.grant, name)));
        }
        let Some(cookie) = cookie else { return Ok(None) };
        let key = key.as_ref().map(Option::as_deref);
        let grant = sessions::find(store, &cookie, key, now)?;
        Ok::<_, StoreError>(grant.map(|grant| Asker::new(grant, "the dashboard")))
    });
    found.await?.ok_or_else(unauthorized)
}

impl Access {
    /// Takes the code of a link, or a token, and logs the browser in that sent it.
    pub(in crate::server) async fn log_in(
        &self,
        app: &App,
        by: Credential,
    ) -> Result<Option<LogIn>, ApiError> {
        let is_own = matches!(&by, Credential::Token(token) if self.is_own(token));
        let (now, lifetime) = (app.now(), self.keep_login);
        let begun = app.with_engine(move |engine| {
            let store = engine.store();
            let token = match by {
                Credential::Code(code) => {
                    if !tickets::LOGINS.take(store, &code, now)? {
                        return Ok(None);
                    }
                    None
                }
                Credential::Token(_) if is_own => None,
                Credential::Token(secret) => {
                    let found = tokens::find(store, &secret, now)?;
                    match found.filter(|token| token.grant.scope.covers(Scope::Observe)) {
                        None => return Ok(None),
                        found => found,
                    }
                }
            };
            sessions::begin(store, now, lifetime, token.as_ref())
        });
        begun.await
    }

    /// Signs the browser out that sent a request.
    pub(in crate::server) async fn log_out(
        &self,
        app: &App,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        let cookie = text(headers, COOKIE).and_then(sessions::cookie).map(str::to_owned);
        let Some(cookie) = cookie else { return Ok(()) };
        app.with_engine(move |engine| sessions::end(engine.store(), &cookie)).await
    }
}

fn unauthorized() -> ApiError {
    let message = "the token is missing, wrong or expired: programs send one of `aldis token new`, or \
                   the one in `serve.token` of the state directory; browsers log in at /login, or with \
                   the link of `aldis serve --link`";
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}
