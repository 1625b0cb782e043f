//! Claims: the right of one worker to perform an effect for a while.

use std::time::Duration;

use aldis_signal::time::Timestamp;

use crate::record::{Effect, EffectState};
use crate::step::RunId;

/// Which effects a worker wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Of any of these kinds; of all kinds when empty.
    pub kinds: Vec<String>,
    /// Of this lane only; `""` is the effects that are in none.
    pub lane: Option<String>,
    /// Of this run only.
    pub run: Option<RunId>,
    /// What the worker offers: an effect that requires more is not handed out.
    pub labels: Vec<String>,
    /// Who asks.
    pub worker: String,
    /// At most this many.
    pub limit: usize,
    /// The current time: effects that are due later are not handed out.
    pub now: Timestamp,
    /// How long others leave them alone.
    pub ttl: Duration,
}

impl ClaimRequest {
    /// Asks for every effect of these kinds, for a worker without labels.
    pub fn new(kinds: &[&str], worker: &str, now: Timestamp, ttl: Duration) -> Self {
        Self {
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            lane: None,
            run: None,
            labels: Vec::new(),
            worker: worker.to_owned(),
            limit: usize::MAX,
            now,
            ttl,
        }
    }

    /// Returns whether the effect is one of those, and can be performed now.
    pub(crate) fn wants(&self, effect: &Effect) -> bool {
        effect.state == EffectState::Pending
            && effect.due <= self.now
            && (self.kinds.is_empty() || self.kinds.contains(&effect.kind))
            && self.lane.as_ref().is_none_or(|lane| effect.lane == *lane)
            && self.run.as_ref().is_none_or(|run| effect.run == *run)
            && self.offers(&effect.requires)
    }

    /// Returns whether the worker has all these labels.
    pub(crate) fn offers(&self, requires: &[String]) -> bool {
        requires.iter().all(|label| self.labels.contains(label))
    }
}

/// An effect that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What to perform.
    pub effect: Effect,
    /// Grows each time the effect is claimed, so that a worker that slept through its claim closes
    /// nothing.
    pub fence: u64,
    /// When others may claim it.
    pub until: Timestamp,
}

/// How many effects of one kind are pending in one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCount {
    /// The kind.
    pub kind: String,
    /// The lane; empty for effects that are in none.
    pub lane: String,
    /// How many.
    pub count: u64,
    /// What went wrong with the first of the lane the last time, if it was tried.
    pub error: Option<String>,
}
