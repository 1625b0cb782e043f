//! Codex CLI. It throws away an answer with a member it does not know, or with a blank reason.

use std::path::PathBuf;

use aldis_transcript::Format;

use super::Env;
use super::adapter::Adapter;

/// Codex's way.
#[derive(Debug)]
pub(super) struct Codex;

impl Adapter for Codex {
    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".codex")
    }

    fn config_dir(&self, env: &Env) -> Option<PathBuf> {
        env.codex_home.clone()
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::CodexRollout]
    }
}
