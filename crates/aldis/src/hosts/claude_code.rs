//! Claude Code: the form that others copied.

use std::path::PathBuf;

use aldis_transcript::Format;

use super::adapter::Adapter;
use super::{BlockCap, Env};

/// Claude Code's way.
#[derive(Debug)]
pub(super) struct ClaudeCode;

impl Adapter for ClaudeCode {
    fn project_dir(&self, env: &Env) -> Option<PathBuf> {
        env.claude_project_dir.clone()
    }

    fn block_cap(&self, env: &Env) -> BlockCap {
        let cap = BlockCap::from_variable(env.claude_block_cap.as_deref(), Some(8));
        BlockCap { resets_on_tool_use: true, ..cap }
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".claude")
    }

    fn config_dir(&self, env: &Env) -> Option<PathBuf> {
        env.claude_config_dir.clone()
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::ClaudeCode]
    }
}
