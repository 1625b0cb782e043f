//! A second opinion about a claim whose checks passed: it can refuse, and never accepts alone.

use serde::{Deserialize, Serialize};

use aldis_signal::codes;

/// How much of its reason is kept.
const REASON_MAX: usize = 2_000;

codes! {
    /// What a second opinion says about a claim.
    pub enum OpinionVerdict {
        /// It has nothing against it. That alone proves nothing.
        Accept = "accept",
        /// It is against it.
        Refuse = "refuse",
        /// It failed, took too long, or answered nonsense: it counts for nothing.
        None = "none",
    }
}

/// What the judge said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    /// The command that was asked.
    pub command: String,
    /// What it said.
    pub verdict: OpinionVerdict,
    /// Why; or what went wrong.
    pub reason: String,
    /// What it cost, in millionths of a dollar, by its own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_dollars: Option<u64>,
}

impl Opinion {
    /// An opinion, with at most so much of its reason as is kept.
    pub fn new(command: &str, verdict: OpinionVerdict, reason: &str) -> Self {
        let reason = crate::words::inline(reason, REASON_MAX);
        Self { command: command.to_owned(), verdict, reason, micro_dollars: None }
    }

    /// As people read it: `accept ($0.02): the tests cover quotes`.
    pub fn sentence(&self) -> String {
        let cost = self.micro_dollars.map(|micro| format!(" (${:.4})", micro as f64 / 1e6));
        format!("{}{}: {}", self.verdict.as_str(), cost.unwrap_or_default(), self.reason)
    }

    /// Whether it is against the claim.
    pub fn refuses(&self) -> bool {
        self.verdict == OpinionVerdict::Refuse
    }
}
