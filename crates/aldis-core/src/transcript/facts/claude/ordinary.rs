//! A message that nothing is the matter with, read without a tree of values: agents write many.
//!
//! Whatever is not exactly as the host usually writes it is left to the careful way.

use serde::de::{Deserializer, IgnoredAny, Visitor};
use serde::{Deserialize, de};

use super::super::out::Cost;
use crate::transcript::json::Str;

/// One line of an agent.
#[derive(Debug, Deserialize)]
pub(super) struct Ordinary<'a> {
    #[serde(borrow)]
    pub(super) session_id: Option<Str<'a>>,
    /// Set for sub-agents.
    pub(super) parent_tool_use_id: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) message: Said<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) content: Vec<Block<'a>>,
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Str<'a>,
}

/// The members of [`CLAUDE_TOKENS`](super::super::out::CLAUDE_TOKENS) that Claude Code writes here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    #[serde(rename = "inputTokens")]
    input: Count,
    #[serde(rename = "outputTokens")]
    output: Count,
    #[serde(rename = "cacheReadInputTokens")]
    cache_read: Count,
    #[serde(rename = "cacheCreationInputTokens")]
    cache_creation: Count,
}

/// A number that counts something, as [`count`](super::super::out::count) takes it.
#[derive(Clone, Copy, Debug, Default)]
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Count, E> {
                Ok(Count(0))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl<'a> Ordinary<'a> {
    /// Reads a line; `None` if it may be anything else.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let line = line.starts_with(br#"{"type":"assistant","#).then_some(line)?;
        let line: Self = serde_json::from_slice(line).ok()?;
        let by_host = line.message.model.as_deref() == Some("<synthetic>");
        (line.error.is_none() && !by_host).then_some(line)
    }

    /// Returns what the message costs.
    pub(super) fn cost(&self) -> Option<Cost> {
        let usage = self.message.usage.as_ref()?;
        let counts = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_creation,
        ];
        let tokens = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(count.0));
        Some(Cost { tokens, micro_dollars: 0 })
    }
}
