//! Identity tokens of CI and clusters, exchanged for tokens of ours.
//!
//! A job or a pod proves who it is by a token that its platform signs (OpenID Connect). Which issuers are
//! believed, for which audience, and what whoever has which claims may do stands in `serve.toml`. Each
//! identity token is taken once: what was used is noted in the store that all servers share.

mod crypto;
mod keys;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{Store, Ticket};
use axum::http::StatusCode;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use self::keys::{KeySource, Keys};
use super::error::ApiError;
use crate::error::CommandError;
use crate::settings::config::Seconds;
use crate::settings::tokens::{self, Grant, Scope, Token, hash};
use crate::settings::web_address::check_url;

/// The longest identity token.
const TOKEN_MAX: usize = 16 << 10;
/// By how much clocks may differ.
const LEEWAY: Duration = Duration::from_secs(60);
/// How long a token of ours holds where nothing else is said.
const LIFETIME: u64 = 60 * 60;
/// The kind of the tickets of identity tokens that were used.
const KIND: &str = "identity";

/// An issuer that is believed, as people write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IssuerConfig {
    /// What its tokens say in `iss`.
    issuer: String,
    /// What they must say in `aud`: for whom they were made.
    audience: String,
    /// Where its keys are, if not where it says.
    jwks_file: Option<PathBuf>,
    /// How long tokens of ours hold.
    #[serde(default = "usual")]
    lifetime: Seconds<60>,
    /// Who may do what: the first that fits counts.
    #[serde(default)]
    grants: Vec<GrantConfig>,
}

fn usual() -> Seconds<60> {
    Seconds(LIFETIME)
}

/// What whoever has these claims may do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantConfig {
    scope: Scope,
    agent: Option<String>,
    project: Option<String>,
    #[serde(default)]
    all_projects: bool,
    /// All must fit; a value that ends in `*` fits whatever begins so.
    claims: BTreeMap<String, String>,
}

/// The issuers that are believed.
#[derive(Debug, Default)]
pub(crate) struct Issuers {
    known: Vec<IssuerConfig>,
    keys: Keys,
}

impl Issuers {
    /// Checks what was written; files are seen from `directory`.
    ///
    /// # Errors
    ///
    /// Says what would let in whom nobody meant.
    pub(crate) fn new(
        mut known: Vec<IssuerConfig>,
        directory: &Path,
    ) -> Result<Self, CommandError> {
        for it in &mut known {
            let wrong =
                |what: &str| CommandError::new(format!("the issuer `{}`: {what}", it.issuer));
            check_url(&it.issuer, true).map_err(|error| wrong(&error))?;
            if it.audience.trim().is_empty() {
                return Err(wrong("it needs an audience of this server's own"));
            }
            for grant in &it.grants {
                if !grant.claims.values().any(|wanted| wanted != "*") {
                    return Err(wrong("a grant without claims would be for everybody there")
                        .with_help("name a claim, as claims = { repository = \"acme/shop\" }"));
                }
                if grant.scope == Scope::Signal && grant.agent.is_none() {
                    return Err(wrong("a grant of the scope `signal` needs an agent"));
                }
                if grant.project.is_some() == grant.all_projects {
                    return Err(wrong("a grant needs a project, or all_projects = true"));
                }
            }
            it.jwks_file = it.jwks_file.take().map(|file| directory.join(file));
        }
        Ok(Self { known, keys: Keys::default() })
    }

    /// Exchanges an identity token for one of ours. Waits for the network, and for the store.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it.
    pub(super) fn exchange(
        &self,
        store: &dyn Store,
        token: &str,
        now: Timestamp,
    ) -> Result<(String, Token), ApiError> {
        let (issuer, claims) = self.verified(token, now).map_err(refused)?;
        let grant = issuer.grant(&claims).ok_or_else(|| {
            refused("no grant of this server fits the claims of the identity token".to_owned())
        })?;
        // One without an id is known by itself.
        let id = claims.get("jti").and_then(Value::as_str).unwrap_or(token);
        let expires = claims.get("exp").and_then(Value::as_f64).unwrap_or_default() * 1_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a time beyond the range is the last one"
        )]
        let until = Timestamp::from_millis(expires as i64).after(LEEWAY + LEEWAY);
        let used = Ticket {
            kind: KIND.to_owned(),
            key: hash(&format!("{}\n{id}", issuer.issuer)),
            created: now,
            until,
            body: String::new(),
        };
        if !store.put_ticket(&used)? {
            return Err(refused(
                "the identity token was used before; ask for a new one".to_owned(),
            ));
        }
        let expires = now.after(Duration::from_secs(issuer.lifetime.0));
        tokens::create(store, grant, now, expires)
            .map_err(|error| ApiError::internal(error.to_string()))
    }

    /// Checks who issued a token, for whom, and whether it is valid now. Returns what it says.
    fn verified(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<(&IssuerConfig, Map<String, Value>), String> {
        crypto::install();
        let broken = "it is no signed identity token";
        if token.len() > TOKEN_MAX {
            return Err(broken.to_owned());
        }
        let header = decode_header(token).map_err(|_| broken.to_owned())?;
        if !crypto::ALGORITHMS.contains(&header.alg) {
            return Err("it is signed in a way that is not taken; RS256 and ES256 are".to_owned());
        }
        // Not believed yet: it only says whose keys to check it by.
        let claimed: Map<String, Value> =
            insecure_decode_claims(token).map_err(|_| broken.to_owned())?;
        let issuer = claimed.get("iss").and_then(Value::as_str).unwrap_or_default();
        let issuer = self.known.iter().find(|known| known.issuer == issuer);
        let issuer = issuer.ok_or("its issuer is not believed here")?;
        let source = match &issuer.jwks_file {
            Some(file) => KeySource::File(file.clone()),
            None => KeySource::Discovered,
        };
        let from = (&*issuer.issuer, &source);
        let key = self.keys.find(from, header.kid.as_deref(), now)?;
        let key = DecodingKey::from_jwk(&key).map_err(|_| "its key cannot be used".to_owned())?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY.as_secs();
        validation.validate_nbf = true;
        validation.set_issuer(&[&issuer.issuer]);
        validation.set_audience(&[&issuer.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let claims = decode::<Map<String, Value>>(token, &key, &validation);
        let claims = claims.map_err(|error| format!("it is not valid: {error}"))?.claims;
        Ok((issuer, claims))
    }
}

impl IssuerConfig {
    /// Returns what whoever has these claims may do, if anything.
    fn grant(&self, claims: &Map<String, Value>) -> Option<Grant> {
        let fits = |grant: &&GrantConfig| {
            grant
                .claims
                .iter()
                .all(|(name, wanted)| claims.get(name).is_some_and(|found| fits(found, wanted)))
        };
        let found = self.grants.iter().find(fits)?;
        let (agent, project) = (found.agent.clone(), found.project.clone());
        Some(Grant { scope: found.scope, agent, run: None, project })
    }
}

/// Whether a claim is what is wanted.
fn fits(found: &Value, wanted: &str) -> bool {
    let found = match found {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => found.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return false,
    };
    match wanted.strip_suffix('*') {
        Some(begin) => found.starts_with(begin),
        None => found == wanted,
    }
}

fn refused(why: String) -> ApiError {
    let message = format!("the identity token is refused: {why}");
    ApiError::new(StatusCode::UNAUTHORIZED, "identity_refused", message)
}

#[cfg(test)]
mod tests;
