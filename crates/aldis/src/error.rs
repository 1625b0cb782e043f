//! What can go wrong in a command, in words for people.

use std::io;
use std::path::Path;

use aldis_engine::EngineError;
use aldis_store::{LeaseError, StoreError};

/// Why a command ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// Whoever read our standard output has gone. Not worth a word.
    #[error("standard output was closed")]
    Closed,
    /// Something to tell.
    #[error("{message}")]
    Failed {
        /// What is wrong, naming the thing and the place.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
}

impl CommandError {
    /// Creates an error from what is wrong.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), help: None }
    }

    /// Creates an error about a file that could not be used.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::new(format!("`{}`: {}", path.display(), plain(error)))
    }

    /// Says what to do about it.
    pub(crate) fn with_help(self, text: impl Into<String>) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Failed { message, .. } => Self::Failed { message, help: Some(text.into()) },
        }
    }
}

/// Only writing to standard output uses this conversion; reading names its file.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::new(format!("failed to write standard output: {}", plain(&error))),
        }
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(format!("cannot write as JSON: {error}"))
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<EngineError> for CommandError {
    fn from(error: EngineError) -> Self {
        let failed = Self::new(error.to_string());
        match error {
            EngineError::NoSuchRun(_) => failed.with_help("`aldis status --all` lists the runs"),
            EngineError::Unreadable { .. } => {
                failed.with_help("a newer version may have written it: update this program")
            }
            EngineError::Fenced(_) => {
                failed.with_help("only one process coordinates a run at a time")
            }
            EngineError::NotPossible(_) => failed.with_help("`aldis status` lists the runs"),
            _ => failed,
        }
    }
}

impl From<LeaseError> for CommandError {
    fn from(error: LeaseError) -> Self {
        let held = matches!(error, LeaseError::Held { .. });
        let failed = Self::new(error.to_string());
        if held { failed.with_help("only one process coordinates a run at a time") } else { failed }
    }
}

/// The system's words without the error number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text.to_owned(),
    }
}
