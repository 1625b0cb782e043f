//! Tokens that may report and nothing else: what `/mcp` of a server takes beside its own token.
//!
//! Only hashes are kept, in a file of the state directory that only its owner may read.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::secret;
use crate::error::CommandError;

const FILE: &str = "tokens.json";
/// How many there may be.
const TOKENS_MAX: usize = 1_000;
/// How much of the hash names a token.
const ID_LENGTH: usize = 12;

/// What a token may do. Exhaustive: whoever takes tokens judges each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// Report for agents.
    Signal,
}

/// A token, without the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Token {
    /// Its hash.
    hash: String,
    pub(crate) scope: Scope,
    /// For which agent.
    pub(crate) agent: String,
    /// For which run, if for one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// In which project it was made: its runs are meant where none is named.
    pub(crate) project: PathBuf,
    pub(crate) created: Timestamp,
    pub(crate) expires: Timestamp,
}

impl Token {
    /// Returns what it is called in lists.
    pub(crate) fn id(&self) -> &str {
        self.hash.get(..ID_LENGTH).unwrap_or(&self.hash)
    }
}

/// What a new token is for.
#[derive(Clone, Debug)]
pub(crate) struct NewToken {
    pub(crate) scope: Scope,
    pub(crate) agent: String,
    pub(crate) run: Option<String>,
    pub(crate) project: PathBuf,
    pub(crate) created: Timestamp,
    pub(crate) expires: Timestamp,
}

/// Makes a token. Returns the secret, which is kept nowhere, and what is kept.
pub(crate) fn create(state: &Path, new: NewToken) -> Result<(String, Token), CommandError> {
    let random = |error| CommandError::new(format!("the system gives no random numbers: {error}"));
    let secret = secret::key().map_err(random)?;
    let NewToken { scope, agent, run, project, created, expires } = new;
    let token = Token { hash: hash(&secret), scope, agent, run, project, created, expires };
    let mut tokens = list(state)?;
    tokens.retain(|known| known.expires > created);
    if tokens.len() >= TOKENS_MAX {
        return Err(CommandError::new(format!("there are {TOKENS_MAX} tokens already"))
            .with_help("revoke some: aldis token list, aldis token revoke ID"));
    }
    tokens.push(token.clone());
    write(state, &tokens)?;
    Ok((secret, token))
}

/// Returns the tokens, those that have expired too.
pub(crate) fn list(state: &Path) -> Result<Vec<Token>, CommandError> {
    let path = state.join(FILE);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|error| CommandError::new(format!("`{}`: {error}", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(CommandError::file(&path, &error)),
    }
}

/// Revokes the token of this id. Returns whether there was one.
pub(crate) fn revoke(state: &Path, id: &str) -> Result<bool, CommandError> {
    let mut tokens = list(state)?;
    let count = tokens.len();
    tokens.retain(|token| token.id() != id);
    let revoked = tokens.len() < count;
    if revoked {
        write(state, &tokens)?;
    }
    Ok(revoked)
}

/// Returns the token with this secret, if it is still valid.
pub(crate) fn find(state: &Path, secret: &str, now: Timestamp) -> Option<Token> {
    let wanted = hash(secret);
    let tokens = list(state).ok()?;
    tokens.into_iter().find(|token| token.hash == wanted && token.expires > now)
}

fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(state: &Path, tokens: &[Token]) -> Result<(), CommandError> {
    let path = state.join(FILE);
    let failed = |error: io::Error| CommandError::file(&path, &error);
    fs::create_dir_all(state).map_err(failed)?;
    // A file of its own for its owner alone, put in place as a whole.
    let mut file = tempfile::NamedTempFile::new_in(state).map_err(failed)?;
    let text = serde_json::to_vec_pretty(tokens)?;
    file.write_all(&text).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(&path).map_err(|error| CommandError::file(&path, &error.error))?;
    Ok(())
}
