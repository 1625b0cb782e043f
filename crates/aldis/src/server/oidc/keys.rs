//! The public keys of an issuer: fetched when they are needed, kept for a while, or read from a file.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::notify::web;

/// How long keys are kept, and how soon they may be fetched again for a key that is not known.
const KEPT: Duration = Duration::from_secs(60 * 60);
const PAUSE: Duration = Duration::from_secs(30);
/// The longest document with keys, and how many keys it may hold.
const LENGTH_MAX: u64 = 256 << 10;
const KEYS_MAX: usize = 100;
/// Where issuers say where their keys are.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Where the keys of an issuer are.
#[derive(Clone, Debug)]
pub(super) enum KeySource {
    /// Where the issuer says.
    Discovered,
    /// In a file: of a cluster whose issuer nobody outside can reach.
    File(PathBuf),
}

/// What issuers publish about themselves.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// The keys of all issuers, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Keys(Mutex<HashMap<String, Fetched>>);

#[derive(Clone, Debug, Default)]
struct Fetched {
    keys: Vec<Jwk>,
    at: Option<Timestamp>,
    /// When it was tried last.
    tried: Option<Timestamp>,
}

impl Keys {
    /// Finds the key of this name; the only one where none is named.
    ///
    /// # Errors
    ///
    /// Says why there is none.
    pub(super) fn find(
        &self,
        (issuer, source): (&str, &KeySource),
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Jwk, String> {
        let known = self.known(issuer);
        let is_fresh = known.at.is_some_and(|at| now.since(at) < KEPT);
        if is_fresh && let Some(key) = choose(&known.keys, name) {
            return Ok(key);
        }
        let may_try = known.tried.is_none_or(|tried| now.since(tried) >= PAUSE);
        if !is_fresh || may_try {
            if !may_try {
                return Err(format!("the keys of {issuer} cannot be fetched; try again later"));
            }
            self.note(issuer, |entry| entry.tried = Some(now));
            let keys = fetch(issuer, source)?;
            self.note(issuer, |entry| (entry.keys, entry.at) = (keys, Some(now)));
        }
        let unknown = || format!("{issuer} has no such key");
        choose(&self.known(issuer).keys, name).ok_or_else(unknown)
    }

    fn known(&self, issuer: &str) -> Fetched {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(issuer).cloned().unwrap_or_default()
    }

    fn note(&self, issuer: &str, change: impl FnOnce(&mut Fetched)) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(known.entry(issuer.to_owned()).or_default());
    }
}

fn choose(keys: &[Jwk], name: Option<&str>) -> Option<Jwk> {
    match (name, keys) {
        (Some(name), keys) => {
            keys.iter().find(|key| key.common.key_id.as_deref() == Some(name)).cloned()
        }
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
    }
}

fn fetch(issuer: &str, source: &KeySource) -> Result<Vec<Jwk>, String> {
    let set: JwkSet = match source {
        KeySource::File(path) => {
            let failed = |error: &dyn std::fmt::Display| format!("`{}`: {error}", path.display());
            let length = fs::metadata(path).map_err(|error| failed(&error))?.len();
            if length > LENGTH_MAX {
                return Err(failed(&format!("longer than {LENGTH_MAX} bytes")));
            }
            let text = fs::read(path).map_err(|error| failed(&error))?;
            serde_json::from_slice(&text).map_err(|error| failed(&error))?
        }
        KeySource::Discovered => {
            let found: Discovery = get(&format!("{}{DISCOVERY}", issuer.trim_end_matches('/')))?;
            if found.issuer != issuer {
                return Err(format!("{issuer} says that it is another one"));
            }
            get(&found.jwks_uri)?
        }
    };
    Ok(set.keys.into_iter().take(KEYS_MAX).collect())
}

/// Fetches a document, from where the token of nobody is sent and within a time.
fn get<T: DeserializeOwned>(url: &str) -> Result<T, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{url}: {error}");
    let mut response = web::agent(true).get(url).call().map_err(|error| failed(&error))?;
    if !response.status().is_success() {
        return Err(failed(&response.status()));
    }
    let text = response.body_mut().with_config().limit(LENGTH_MAX).read_to_vec();
    serde_json::from_slice(&text.map_err(|error| failed(&error))?).map_err(|error| failed(&error))
}
