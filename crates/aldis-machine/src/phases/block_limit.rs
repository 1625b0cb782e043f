//! How many stops in a row may be blocked, whatever the phase needs.
//!
//! Hosts give up after some blocked stops in a row, without telling the hook. The machine counts for
//! itself, lets the agent stop before the host does, and records that: an end that was forced is
//! never mistaken for a completion. Where a host has no limit, the machine has one.

use serde::{Deserialize, Serialize};

use super::event::{BlockCap, Stop};

/// Blocked stops in a row without a tool call or a completed phase, on hosts without a limit.
pub const DEFAULT_BLOCK_LIMIT: u32 = 20;
/// How often the same near miss is explained before only the full form is shown.
const SAME_HINT_MAX: u32 = 2;

/// How many stops of one run were blocked in a row, and what the agent was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLimit {
    /// The turn that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Blocked stops in a row.
    #[serde(default)]
    pub blocks: u32,
    /// Whether the last end was forced by the limit.
    #[serde(default)]
    pub capped: bool,
    /// The near miss that was explained last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How often in a row.
    #[serde(default)]
    pub hint_times: u32,
    /// A digest of the last prompt of ours, to recognise it when it comes back as a prompt.
    #[serde(default, alias = "told", skip_serializing_if = "Option::is_none")]
    pub last_prompt: Option<String>,
}

impl BlockLimit {
    /// Starts the count again where the host does: with a new turn, or after a tool call where the
    /// host does so. On a host without a limit any tool call does.
    pub(super) fn observe(&mut self, stop: &Stop) {
        let other_turn = stop.turn.is_some() && stop.turn != self.turn;
        let first_of_turn = stop.continued == Some(false);
        let worked = stop.tools_ran && (stop.cap.resets_on_tool_use || stop.cap.limit.is_none());
        if other_turn || first_of_turn || worked {
            self.blocks = 0;
        }
        if stop.turn.is_some() {
            self.turn.clone_from(&stop.turn);
        }
    }

    /// Starts the count again: a human sent a prompt.
    pub(super) fn new_turn(&mut self, turn: Option<&str>) {
        self.turn = turn.map(str::to_owned);
        self.blocks = 0;
        self.capped = false;
    }

    /// Notes that a phase was completed, which starts the count again on a host without a limit.
    pub(super) fn advanced(&mut self, cap: BlockCap) {
        if cap.limit.is_none() {
            self.blocks = 0;
        }
        (self.hint, self.hint_times) = (None, 0);
    }

    /// Counts one more blocked stop, or returns that there may be none.
    pub(super) fn may_block(&mut self, cap: BlockCap) -> bool {
        if self.blocks >= limit(cap) {
            self.capped = true;
            return false;
        }
        self.blocks += 1;
        self.capped = false;
        true
    }

    /// Returns whether this near miss should be explained once more.
    pub(super) fn may_explain(&mut self, key: &str) -> bool {
        if self.hint.as_deref() != Some(key) {
            (self.hint, self.hint_times) = (Some(key.to_owned()), 0);
        }
        self.hint_times = self.hint_times.saturating_add(1);
        self.hint_times <= SAME_HINT_MAX
    }
}

/// The blocked stops in a row after which the agent may stop.
pub(super) fn limit(cap: BlockCap) -> u32 {
    cap.limit.unwrap_or(DEFAULT_BLOCK_LIMIT)
}
