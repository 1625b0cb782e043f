//! Tokens with scopes: what programs, agents and machines elsewhere send to a server.
//!
//! They are in the store, so that every server of it knows them and one that is revoked is void at once;
//! of the secret only the hash.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aldis_signal::time::Timestamp;
use aldis_store::{Store, StoreError, Ticket};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::secret;
use crate::error::CommandError;
use crate::view::wire::call::TokenLine;

/// How many there may be.
pub(crate) const TOKENS_MAX: usize = 10_000;
/// How much of the hash names a token.
const ID_LENGTH: usize = 12;
/// What every token begins with, so that scanners for secrets know one when they see it.
const PREFIX: &str = "aldis_";
/// The kind of their tickets.
const KIND: &str = "token";
/// Where tokens were kept before they were in the store.
const FILE: &str = "tokens.json";

/// What somebody may do. Exhaustive: whoever takes tokens judges each.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// Read runs, channels, decisions, output and the dashboard.
    Observe,
    /// Report as one agent, and nothing else.
    Signal,
    /// Observe, report as any agent, and drive runs: hooks, events, dispatches.
    Work,
    /// Work, begin runs and open channels, and everything that a human may say to a run.
    Coordinate,
    /// Everything.
    Admin,
}

impl Scope {
    /// Each of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] =
        [Self::Observe, Self::Signal, Self::Work, Self::Coordinate, Self::Admin];

    /// Returns its name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Signal => "signal",
            Self::Work => "work",
            Self::Coordinate => "coordinate",
            Self::Admin => "admin",
        }
    }

    /// Whether whoever has this may do what `needed` allows.
    pub(crate) fn covers(self, needed: Self) -> bool {
        match needed {
            Self::Observe => self != Self::Signal,
            Self::Signal => self != Self::Observe,
            Self::Work => matches!(self, Self::Work | Self::Coordinate | Self::Admin),
            Self::Coordinate => matches!(self, Self::Coordinate | Self::Admin),
            Self::Admin => self == Self::Admin,
        }
    }
}

/// What somebody may do, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) scope: Scope,
    /// As which agent. Whoever may only signal has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// In which run, if in one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// In which project; in every one where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
}

impl Grant {
    /// May do everything everywhere.
    pub(crate) const ADMIN: Self =
        Self { scope: Scope::Admin, agent: None, run: None, project: None };

    /// Whether it is for everything in the store.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.run.is_none() && self.project.is_none()
    }

    /// Whether it is for this run of this project.
    pub(crate) fn reaches(&self, run: &str, project: &str) -> bool {
        match (&self.run, &self.project) {
            (Some(own), _) => own == run,
            (None, Some(own)) => own == project,
            (None, None) => true,
        }
    }
}

/// A token, without the secret.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    hash: String,
    pub(crate) grant: Grant,
    pub(crate) expires: Timestamp,
}

impl Token {
    /// Returns what it is called in lists.
    pub(crate) fn id(&self) -> &str {
        self.hash.get(..ID_LENGTH).unwrap_or(&self.hash)
    }

    /// Returns by what a session remembers it.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns what programs read of it, without its secret.
    pub(crate) fn line(&self, now: Timestamp) -> TokenLine {
        let Grant { scope, agent, run, project } = self.grant.clone();
        TokenLine {
            v: 1,
            id: self.id().to_owned(),
            scope: scope.as_str().to_owned(),
            agent,
            run,
            project,
            expires: self.expires.to_string(),
            valid: self.expires > now,
            token: None,
        }
    }

    fn of(ticket: Ticket) -> Option<Self> {
        let grant = serde_json::from_str(&ticket.body).ok()?;
        Some(Self { hash: ticket.key, grant, expires: ticket.until })
    }
}

/// Makes a token. Returns the secret, which is kept nowhere, and what is kept.
///
/// # Errors
///
/// Fails if there are too many, the store fails, or the system gives no random numbers.
pub(crate) fn create(
    store: &dyn Store,
    grant: Grant,
    now: Timestamp,
    expires: Timestamp,
) -> Result<(String, Token), CommandError> {
    let random = |error| CommandError::new(format!("the system gives no random numbers: {error}"));
    let secret = format!("{PREFIX}{}", secret::key().map_err(random)?);
    let known = store.tickets(KIND, TOKENS_MAX)?;
    if known.iter().filter(|ticket| ticket.until > now).count() >= TOKENS_MAX {
        return Err(CommandError::new(format!("there are {TOKENS_MAX} tokens already"))
            .with_help("revoke some: aldis token list, aldis token revoke ID"));
    }
    let ticket = Ticket {
        kind: KIND.to_owned(),
        key: hash(&secret),
        created: now,
        until: expires,
        body: serde_json::to_string(&grant)?,
    };
    store.put_ticket(&ticket)?;
    Ok((secret, Token { hash: ticket.key, grant, expires }))
}

/// Returns the tokens, those that have expired too, the latest first.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn list(store: &dyn Store) -> Result<Vec<Token>, StoreError> {
    Ok(store.tickets(KIND, TOKENS_MAX)?.into_iter().filter_map(Token::of).collect())
}

/// Copies the tokens that are valid. Returns how many.
///
/// # Errors
///
/// Fails if a store does.
pub(crate) fn copy(from: &dyn Store, to: &dyn Store, now: Timestamp) -> Result<u64, StoreError> {
    let mut copied = 0;
    for ticket in from.tickets(KIND, TOKENS_MAX)?.iter().filter(|ticket| ticket.until > now) {
        copied += u64::from(to.put_ticket(ticket)?);
    }
    Ok(copied)
}

/// Revokes the token of this id. Returns it, if there was one.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn revoke(store: &dyn Store, id: &str) -> Result<Option<Token>, StoreError> {
    let Some(token) = list(store)?.into_iter().find(|token| token.id() == id) else {
        return Ok(None);
    };
    Ok(store.take_ticket(KIND, &token.hash)?.and_then(Token::of))
}

/// Returns the token with this secret, if it is still valid.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn find(
    store: &dyn Store,
    secret: &str,
    now: Timestamp,
) -> Result<Option<Token>, StoreError> {
    by_hash(store, &hash(secret), now)
}

/// Returns the token with this hash, if it is still valid.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn by_hash(
    store: &dyn Store,
    hash: &str,
    now: Timestamp,
) -> Result<Option<Token>, StoreError> {
    let found = store.ticket(KIND, hash)?.filter(|ticket| ticket.until > now);
    Ok(found.and_then(Token::of))
}

/// Returns what is kept of a secret.
pub(crate) fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A token as it was kept in a file.
#[derive(Deserialize)]
struct OldToken {
    hash: String,
    agent: String,
    #[serde(default)]
    run: Option<String>,
    project: PathBuf,
    created: Timestamp,
    expires: Timestamp,
}

/// Takes over what an older version kept in a file, once: the file is gone then.
///
/// # Errors
///
/// Fails if the store does, or the file cannot be read or deleted.
pub(crate) fn take_over(state: &Path, store: &dyn Store) -> Result<(), CommandError> {
    let path = state.join(FILE);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(|error| CommandError::file(&path, &error))?,
    };
    let old: Vec<OldToken> = serde_json::from_slice(&text)
        .map_err(|error| CommandError::new(format!("`{}`: {error}", path.display())))?;
    for OldToken { hash: key, agent, run, project, created, expires: until } in old {
        let project = Some(super::project::name(&project));
        let grant = Grant { scope: Scope::Signal, agent: Some(agent), run, project };
        let body = serde_json::to_string(&grant)?;
        store.put_ticket(&Ticket { kind: KIND.to_owned(), key, created, until, body })?;
    }
    fs::remove_file(&path).map_err(|error| CommandError::file(&path, &error))
}

#[cfg(test)]
mod tests {
    use aldis_store::MemoryStore;

    use super::*;

    #[test]
    fn scopes_cover_what_they_say() {
        // Whoever may do what stands on the left may do all that stands on the right.
        for (scope, covered) in [
            (Scope::Observe, vec![Scope::Observe]),
            (Scope::Signal, vec![Scope::Signal]),
            (Scope::Work, vec![Scope::Observe, Scope::Signal, Scope::Work]),
            (
                Scope::Coordinate,
                vec![Scope::Observe, Scope::Signal, Scope::Work, Scope::Coordinate],
            ),
            (Scope::Admin, Scope::ALL.to_vec()),
        ] {
            let found: Vec<Scope> =
                Scope::ALL.into_iter().filter(|needed| scope.covers(*needed)).collect();
            assert_eq!(found, covered, "{scope:?}");
        }
    }

    #[test]
    fn a_grant_reaches_its_run_or_its_project() {
        let grant = |run: Option<&str>, project: Option<&str>| Grant {
            run: run.map(str::to_owned),
            project: project.map(str::to_owned),
            ..Grant::ADMIN
        };
        for (run, project, want) in [
            (None, None, true),
            (Some("r"), None, true),
            (Some("other"), None, false),
            (None, Some("/p"), true),
            (None, Some("/p/q"), false),
            (Some("r"), Some("/elsewhere"), true),
            (Some("other"), Some("/p"), false),
        ] {
            assert_eq!(grant(run, project).reaches("r", "/p"), want, "{run:?} {project:?}");
        }
        assert!(!grant(None, Some("/p")).reaches("r", ""), "a run of no project");
    }

    #[test]
    fn the_file_of_an_older_version_is_taken_over_once() {
        let state = tempfile::tempdir().unwrap();
        let store = MemoryStore::new();
        let at = Timestamp::from_millis;
        let old = format!(
            r#"[{{"hash":"{}","scope":"signal","agent":"helper","project":"/p",
                "created":"2026-03-02T10:00:00Z","expires":"2026-04-01T10:00:00Z"}}]"#,
            hash("old secret")
        );
        fs::write(state.path().join(FILE), old).unwrap();
        for _ in 0..2 {
            take_over(state.path(), &store).unwrap();
        }
        assert!(!state.path().join(FILE).exists());
        let now = at(1_772_445_660_000);
        let found = find(&store, "old secret", now).unwrap().unwrap();
        assert_eq!(
            (found.grant.agent.as_deref(), found.grant.scope),
            (Some("helper"), Scope::Signal)
        );
        assert_eq!(found.grant.project.as_deref(), Some("/p"));
        assert!(revoke(&store, found.id()).unwrap().is_some());
        take_over(state.path(), &store).unwrap();
        assert!(find(&store, "old secret", now).unwrap().is_none(), "it does not come back");
    }
}
