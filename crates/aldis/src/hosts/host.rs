//! The hosts by name.

use std::fmt;
use std::str::FromStr;

use clap::builder::PossibleValue;

use super::adapter::Adapter;
use super::{claude_code, codex, copilot, cursor, droid, gemini, goose, openclaw, opencode, qwen};

/// A program that runs agents and calls us when one of them stops.
///
/// Exhaustive on purpose: a new host must be judged wherever hosts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// Copilot CLI.
    Copilot,
    /// Cursor and its `agent` command.
    Cursor,
    /// Factory's Droid.
    Droid,
    /// Gemini CLI.
    Gemini,
    /// Goose.
    Goose,
    /// OpenClaw, by way of a plugin that hands us its events.
    OpenClaw,
    /// OpenCode, by way of a plugin that hands us its events.
    OpenCode,
    /// Qwen Code.
    Qwen,
}

/// A name that no host has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no host is named `{0}`")]
pub struct UnknownHost(String);

impl Host {
    /// All hosts.
    pub const ALL: [Self; 10] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Copilot,
        Self::Cursor,
        Self::Droid,
        Self::Gemini,
        Self::Goose,
        Self::OpenClaw,
        Self::OpenCode,
        Self::Qwen,
    ];

    /// Returns the stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Cursor => "cursor",
            Self::Droid => "droid",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::OpenClaw => "openclaw",
            Self::OpenCode => "opencode",
            Self::Qwen => "qwen",
        }
    }

    /// Returns how this host talks to its hooks.
    pub(super) fn adapter(self) -> &'static dyn Adapter {
        match self {
            Self::ClaudeCode => &claude_code::ClaudeCode,
            Self::Codex => &codex::Codex,
            Self::Copilot => &copilot::Copilot,
            Self::Cursor => &cursor::Cursor,
            Self::Droid => &droid::Droid,
            Self::Gemini => &gemini::Gemini,
            Self::Goose => &goose::Goose,
            Self::OpenClaw => &openclaw::OpenClaw,
            Self::OpenCode => &opencode::OpenCode,
            Self::Qwen => &qwen::Qwen,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Host {
    type Err = UnknownHost;

    fn from_str(name: &str) -> Result<Self, UnknownHost> {
        if name == "claude" {
            return Ok(Self::ClaudeCode);
        }
        let found = Self::ALL.into_iter().find(|host| host.name() == name);
        found.ok_or_else(|| UnknownHost(name.to_owned()))
    }
}

impl clap::ValueEnum for Host {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name());
        Some(if *self == Self::ClaudeCode { value.alias("claude") } else { value })
    }
}
