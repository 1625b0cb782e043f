//! What `config` and `trust` say to programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of `config show --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `setting`.
    pub kind: String,
    /// The key with its tables: `run.timeout`.
    pub key: String,
    /// The value, or null if nothing is set.
    pub value: Value,
    /// Where it comes from.
    pub origin: SettingOrigin,
    /// Whether it has no effect before the user trusts the file.
    pub needs_trust: bool,
}

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingOrigin {
    /// `default`, `user_file`, `project_file`, `environment` or `command_line`.
    pub source: String,
    /// The file, for a file.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<usize>,
    /// The variable or the option, for those.
    pub name: Option<String>,
}

/// A line of `trust --list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `trust`.
    pub kind: String,
    /// The file.
    pub path: String,
    /// The digest of its place and content.
    pub digest: String,
    /// When it was trusted.
    pub at: String,
    /// `current`, `changed` or `missing`.
    pub status: String,
}
