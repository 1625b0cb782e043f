//! Qwen Code: Claude Code's way, with a limit that tools do not reset.

use aldis_transcript::Format;

use super::adapter::Adapter;
use super::{BlockCap, Env};

/// Qwen's way.
#[derive(Debug)]
pub(super) struct Qwen;

/// Qwen does not take a higher limit than this.
const LIMIT_MAX: u32 = 100;

impl Adapter for Qwen {
    fn block_cap(&self, env: &Env) -> BlockCap {
        let cap = BlockCap::from_variable(env.qwen_block_cap.as_deref(), Some(8));
        BlockCap { limit: cap.limit.map(|limit| limit.min(LIMIT_MAX)), ..cap }
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".qwen")
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::ClaudeCode]
    }
}
