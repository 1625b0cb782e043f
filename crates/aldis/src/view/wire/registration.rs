//! What `install`, `uninstall` and `doctor` say to programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The line of `install --json` and `uninstall --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstallLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// `install` or `uninstall`.
    pub kind: String,
    /// The host.
    pub host: String,
    /// `project`, `local` or `user`.
    pub scope: String,
    /// Whether anything changes.
    pub changed: bool,
    /// Whether nothing was written because only the plan was asked for.
    pub dry_run: bool,
    /// What the host is told to run: program and arguments.
    pub command: Vec<String>,
    /// What the host is told to start as an MCP server; null without one, and for `uninstall`.
    pub server: Option<Vec<String>>,
    /// The events the hook listens to, in the host's spelling.
    pub events: Vec<String>,
    /// The files, also those that stay as they are.
    pub files: Vec<FileForm>,
    /// What is left to do by hand.
    pub notes: Vec<String>,
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileForm {
    /// Where the host looks for it.
    pub path: String,
    /// The file that is really written, where that is another one.
    pub target: Option<String>,
    /// `created`, `changed`, `deleted` or `unchanged`.
    pub action: String,
    /// Where the file was copied to before it was changed.
    pub backup: Option<String>,
    /// The change as a unified diff. Only with `--dry-run`.
    pub diff: Option<String>,
}

/// A line of `doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `check`.
    pub kind: String,
    /// The host, or null for what concerns all.
    pub host: Option<String>,
    /// `registered`, `single`, `command`, `trusted`, `answers` or `state`.
    pub check: String,
    /// `ok`, `note`, `failed` or `skipped`.
    pub status: String,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}
