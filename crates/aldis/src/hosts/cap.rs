//! How often hosts let a hook keep an agent going before they stop listening. They do so silently.

use super::{Env, Host};

/// A host's own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockCap {
    /// How many times in a row a hook may block; `None` if the host does not count or is not known
    /// to.
    pub limit: Option<u32>,
    /// Whether the host starts counting again when the agent used a tool.
    pub resets_on_tool_use: bool,
}

impl BlockCap {
    /// No limit.
    pub const NONE: Self = Self { limit: None, resets_on_tool_use: false };

    /// Returns the limit of a host under its own registration.
    pub fn of(host: Host, env: &Env) -> Self {
        host.adapter().block_cap(env)
    }

    /// A limit over blocks in a row, whatever happens between them.
    pub(super) fn strict(limit: u32) -> Self {
        Self { limit: Some(limit), resets_on_tool_use: false }
    }

    /// Reads the value of a variable: 0 is no limit, and what is no number is not there.
    pub(super) fn from_variable(value: Option<&str>, default: Option<u32>) -> Self {
        let set = value.and_then(|value| value.trim().parse::<u32>().ok());
        let limit = set.or(default).filter(|limit| *limit != 0);
        Self { limit, resets_on_tool_use: false }
    }
}
