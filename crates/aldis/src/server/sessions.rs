//! Browsers that are logged in. They stay so when a server starts again, and with every server of the
//! store, until they sign out or their time is over. Only hashes are kept.

use std::fs;
use std::path::Path;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{Store, StoreError, Ticket};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::ApiError;
use crate::settings::secret;
use crate::settings::tokens::{self, Grant, Token, hash};

/// The kind of their tickets.
const KIND: &str = "session";
/// How many browsers are logged in at once; the oldest is forgotten first.
const SESSIONS_MAX: usize = 256;
const COOKIE_NAME: &str = "aldis_session";
/// Where an older version kept them.
const FILE: &str = "serve.sessions.json";

/// A browser that is logged in, besides its cookie. Browsers send a cookie to every port of this host, and
/// whoever listens there could replay it: so it opens pages, and nothing else without the page's own key.
#[derive(Serialize, Deserialize)]
struct BrowserSession {
    key: String,
    /// The hash of the token by which it logged in: it may do what that token may, as long as that is
    /// valid. Else it is the owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// What a browser gets when it logs in.
#[derive(Debug)]
pub(super) struct LogIn {
    /// The value of the cookie.
    cookie: String,
    lifetime: Duration,
    /// What the page sends with every request. Only the page's own origin can read where it keeps it.
    pub(super) key: String,
}

/// Logs a browser in.
pub(super) fn begin(
    store: &dyn Store,
    now: Timestamp,
    lifetime: Duration,
    token: Option<&Token>,
) -> Result<Option<LogIn>, ApiError> {
    let random = |error: getrandom::Error| ApiError::internal(error.to_string());
    let [cookie, key] = [secret::key().map_err(random)?, secret::key().map_err(random)?];
    let latest = now.after(lifetime);
    let until = token.map_or(latest, |token| token.expires.min(latest));
    let token = token.map(|token| token.hash().to_owned());
    put(store, hash(&cookie), &BrowserSession { key: hash(&key), token }, now, until)?;
    for surplus in store.tickets(KIND, SESSIONS_MAX * 2)?.iter().skip(SESSIONS_MAX) {
        store.take_ticket(KIND, &surplus.key)?;
    }
    Ok(Some(LogIn { cookie, key, lifetime }))
}

fn put(
    store: &dyn Store,
    key: String,
    session: &BrowserSession,
    created: Timestamp,
    until: Timestamp,
) -> Result<(), StoreError> {
    let body = json!({ "key": session.key, "token": session.token }).to_string();
    store.put_ticket(&Ticket { kind: KIND.to_owned(), key, created, until, body }).map(drop)
}

/// Returns what a browser with this cookie may do, if it is logged in and, where one is needed, sent its
/// key.
pub(super) fn find(
    store: &dyn Store,
    cookie: &str,
    key: Option<Option<&str>>,
    now: Timestamp,
) -> Result<Option<Grant>, StoreError> {
    let ticket = store.ticket(KIND, &hash(cookie))?.filter(|ticket| ticket.until > now);
    let session = ticket.and_then(|it| serde_json::from_str::<BrowserSession>(&it.body).ok());
    let Some(session) = session else { return Ok(None) };
    if key.is_some_and(|key| key.map(hash).as_ref() != Some(&session.key)) {
        return Ok(None);
    }
    match session.token {
        None => Ok(Some(Grant::ADMIN)),
        Some(token) => Ok(tokens::by_hash(store, &token, now)?.map(|token| token.grant)),
    }
}

/// Signs a browser out.
pub(super) fn end(store: &dyn Store, cookie: &str) -> Result<(), StoreError> {
    store.take_ticket(KIND, &hash(cookie)).map(drop)
}

/// A session as it was kept in a file.
#[derive(Deserialize)]
struct OldSession {
    cookie: String,
    key: String,
    until: Timestamp,
}

/// Takes over what an older version kept in a file, once. Browsers that are lost by that log in again.
pub(super) fn take_over(state: &Path, store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
    let path = state.join(FILE);
    let Ok(text) = fs::read(&path) else { return Ok(()) };
    let known: Vec<OldSession> = serde_json::from_slice(&text).unwrap_or_default();
    for OldSession { cookie, key, until } in known.into_iter().filter(|it| it.until > now) {
        put(store, cookie, &BrowserSession { key, token: None }, now, until)?;
    }
    if let Err(error) = fs::remove_file(&path) {
        tracing::warn!(%error, "a file of an older version cannot be deleted");
    }
    Ok(())
}

impl LogIn {
    /// The header that sets the cookie; `secure` where the browser came over TLS.
    pub(super) fn header(&self, secure: bool) -> String {
        set(&self.cookie, self.lifetime.as_secs(), secure)
    }
}

/// The header that takes the cookie away.
pub(super) fn forget() -> String {
    set("", 0, false)
}

fn set(value: &str, age: u64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}")
}

/// Returns the value of our cookie among all of a request.
pub(super) fn cookie(cookies: &str) -> Option<&str> {
    let mut cookies = cookies.split("; ").filter_map(|cookie| cookie.split_once('='));
    cookies.find_map(|(name, value)| (name == COOKIE_NAME).then_some(value))
}

#[cfg(test)]
mod tests {
    use aldis_store::{MemoryStore, Tickets as _};

    use super::*;
    use crate::settings::tokens::Scope;

    const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    fn at(days: i64) -> Timestamp {
        Timestamp::from_millis(1_772_445_600_000 + days * 86_400_000)
    }

    fn log_in(store: &MemoryStore, token: Option<&Token>) -> LogIn {
        begin(store, at(0), MONTH, token).unwrap().unwrap()
    }

    #[test]
    fn sessions_are_known_until_they_end() {
        let store = MemoryStore::new();
        let (browser, other) = (log_in(&store, None), log_in(&store, None));
        let text = format!("{:?}", store.tickets(KIND, 9).unwrap());
        assert!(!text.contains(&browser.cookie) && !text.contains(&browser.key), "only hashes");
        let key = Some(Some(&*browser.key));
        for (cookie, key, day, want) in [
            (&browser.cookie, key, 29, true),
            (&browser.cookie, key, 30, false),
            (&browser.cookie, None, 1, true),
            (&browser.cookie, Some(None), 1, false),
            (&browser.cookie, Some(Some(&*other.key)), 1, false),
            (&other.cookie, key, 1, false),
            (&browser.key, None, 1, false),
        ] {
            let found = find(&store, cookie, key, at(day)).unwrap();
            assert_eq!(found.is_some(), want, "{day} {key:?}");
        }
        end(&store, &browser.cookie).unwrap();
        assert_eq!(find(&store, &browser.cookie, None, at(1)).unwrap(), None);
        assert_eq!(find(&store, &other.cookie, None, at(1)).unwrap(), Some(Grant::ADMIN));
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let store = MemoryStore::new();
        let after = |minute: usize| at(0).after(Duration::from_secs(60 * minute as u64));
        let all: Vec<LogIn> = (0..=SESSIONS_MAX)
            .map(|minute| begin(&store, after(minute), MONTH, None).unwrap().unwrap())
            .collect();
        let known = |it: &LogIn| find(&store, &it.cookie, None, at(1)).unwrap().is_some();
        assert!(!known(&all[0]) && known(&all[1]) && known(&all[SESSIONS_MAX]));
    }

    #[test]
    fn whoever_logged_in_by_a_token_may_do_what_it_may() {
        let store = MemoryStore::new();
        let grant = Grant { scope: Scope::Observe, ..Grant::ADMIN };
        let (_, token) = tokens::create(&store, grant.clone(), at(0), at(2)).unwrap();
        let browser = log_in(&store, Some(&token));
        let found = |day| find(&store, &browser.cookie, None, at(day)).unwrap();
        assert_eq!((found(1), found(2)), (Some(grant), None));
        tokens::revoke(&store, token.id()).unwrap();
        assert_eq!(found(1), None, "a token that is revoked signs out");
    }

    #[test]
    fn the_file_of_an_older_version_is_taken_over_once() {
        let (state, store) = (tempfile::tempdir().unwrap(), MemoryStore::new());
        let [cookie, key] = ["c", "k"].map(hash);
        let until = at(30);
        let old = format!(r#"[{{"cookie":"{cookie}","key":"{key}","until":"{until}"}}]"#);
        fs::write(state.path().join(FILE), old).unwrap();
        for _ in 0..2 {
            take_over(state.path(), &store, at(0)).unwrap();
        }
        assert!(find(&store, "c", Some(Some("k")), at(29)).unwrap().is_some());
        assert!(!state.path().join(FILE).exists());
    }
}
