//! A host, by its name.

use std::fmt;
use std::str::FromStr;

use clap::builder::PossibleValue;

use super::spec::HostSpec;
use super::{ALL, Env};

/// A program that runs agents and calls us when one of them stops.
#[derive(Clone, Copy)]
pub struct Host(pub(super) &'static HostSpec);

/// A name that no host has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no host is named `{0}`")]
pub struct UnknownHost(String);

/// A host's own limit on what its hooks may do.
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
}

impl Host {
    /// Returns all hosts, by name.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Returns the stable name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the name people use.
    pub fn title(self) -> &'static str {
        self.0.title
    }

    /// Returns how often the host lets a hook block, under its own registration.
    pub fn block_cap(self, env: &Env) -> BlockCap {
        let rule = &self.0.block_cap;
        let set = rule.variable.and_then(|name| env.text(name));
        // What is no number is not there, and 0 is no limit.
        let set = set.and_then(|value| value.trim().parse::<u32>().ok());
        let limit = set.map(|limit| limit.min(rule.highest)).or(rule.limit);
        BlockCap {
            limit: limit.filter(|limit| *limit != 0),
            resets_on_tool_use: rule.resets_on_tool_use,
        }
    }

    /// Returns everything that is known about it.
    pub(crate) fn spec(self) -> &'static HostSpec {
        self.0
    }

    /// Returns the host whose form the others copied and whose settings some of them read.
    pub(crate) fn original() -> Self {
        let [first, ..] = ALL;
        ALL.into_iter().find(|host| host.0.is_original).unwrap_or(first)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Host {}

impl FromStr for Host {
    type Err = UnknownHost;

    fn from_str(name: &str) -> Result<Self, UnknownHost> {
        let is_it = |host: &Self| host.0.name == name || host.0.alias == Some(name);
        ALL.into_iter().find(is_it).ok_or_else(|| UnknownHost(name.to_owned()))
    }
}

impl clap::ValueEnum for Host {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).aliases(self.0.alias))
    }
}
