//! Registering the hook with the hosts: which file of which host gets what, and whether it works.
//!
//! A host is told to run `aldis hook HOST` in its own configuration. This module knows where that
//! configuration is and what an entry looks like ([`command_hooks`], [`plugins`]), changes files
//! without disturbing them ([`edit`], [`write`]) and examines the result ([`doctor`]).

pub(crate) mod command_hooks;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod hooks_file;
pub(crate) mod invocation;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod plugins;
pub(crate) mod probe;
pub(crate) mod trust;
pub(crate) mod write;

use hooks_file::Layout;

pub(crate) use crate::hosts::Host;

/// For whom the hook is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everybody who works on this project.
    Project,
    /// Me, in this project. Only Claude Code knows the difference.
    Local,
    /// Me, in all projects.
    User,
}

/// What a host's registration consists of.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Entries in a JSON file that others write too.
    Entries(Layout),
    /// Files of our own.
    Files(&'static [plugins::OwnFile]),
}

impl Host {
    /// Returns the name people use.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Copilot => "Copilot CLI",
            Self::Qwen => "Qwen Code",
            Self::Droid => "Droid",
            Self::Goose => "Goose",
            Self::OpenCode => "OpenCode",
            Self::OpenClaw => "OpenClaw",
        }
    }

    /// Returns the programs by which the host is started.
    pub(crate) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["claude"],
            Self::Codex => &["codex"],
            Self::Gemini => &["gemini"],
            Self::Cursor => &["cursor-agent", "cursor"],
            Self::Copilot => &["copilot"],
            Self::Qwen => &["qwen"],
            Self::Droid => &["droid"],
            Self::Goose => &["goose"],
            Self::OpenCode => &["opencode"],
            Self::OpenClaw => &["openclaw"],
        }
    }

    /// Returns how the hook is registered.
    pub(crate) fn form(self) -> Form {
        match self {
            Self::ClaudeCode => Form::Entries(command_hooks::CLAUDE_CODE),
            Self::Codex => Form::Entries(command_hooks::CODEX),
            Self::Gemini => Form::Entries(command_hooks::GEMINI),
            Self::Cursor => Form::Entries(command_hooks::CURSOR),
            Self::Copilot => Form::Entries(command_hooks::COPILOT),
            Self::Qwen => Form::Entries(command_hooks::QWEN),
            Self::Droid => Form::Entries(command_hooks::DROID),
            Self::Goose => Form::Files(plugins::GOOSE),
            Self::OpenCode => Form::Files(plugins::OPENCODE),
            Self::OpenClaw => Form::Files(plugins::OPENCLAW),
        }
    }

    /// Returns the events that are listened to, in the host's spelling.
    pub(crate) fn events(self) -> &'static [&'static str] {
        match self {
            Self::Goose => command_hooks::GOOSE.events,
            Self::OpenCode => &["session.idle", "session.status"],
            Self::OpenClaw => &["before_agent_finalize"],
            _ => match self.form() {
                Form::Entries(layout) => layout.events,
                Form::Files(_) => &[],
            },
        }
    }
}

impl Scope {
    /// Returns the name used in options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Local => "local",
            Self::User => "user",
        }
    }
}
