//! What came of the signals that were heard at one stop.

use super::event::PhaseSignal;
use super::state::ExitReason;
use crate::{Evidence, Refusal};

/// How many findings a decision quotes.
pub(super) const EVIDENCE_MAX: usize = 8;

/// What came of the signals.
#[derive(Default)]
pub(super) struct StopTally {
    /// The phases that were completed, in order.
    pub(super) completed: Vec<String>,
    pub(super) ended: Option<ExitReason>,
    /// An error, and whether the agent can recover from it.
    pub(super) error: Option<bool>,
    pub(super) refused: Vec<(String, Refusal)>,
    pub(super) evidence: Vec<Evidence>,
    /// Whether only a sub-agent is heard, who ends no run.
    pub(super) listening: bool,
}

impl StopTally {
    pub(super) fn refuse(&mut self, signal: &PhaseSignal, refusal: Refusal) {
        self.quote("refused", signal, Some(refusal));
        self.refused.push((signal.name.clone(), refusal));
    }

    pub(super) fn quote(&mut self, what: &str, signal: &PhaseSignal, refusal: Option<Refusal>) {
        if self.evidence.len() < EVIDENCE_MAX {
            self.evidence.push(Evidence {
                what: what.to_owned(),
                name: Some(signal.name.clone()),
                reason: refusal.map(|refusal| refusal.as_str().to_owned()),
                quote: signal.quote.clone(),
                line: Some(signal.line),
                agent: signal.agent.clone(),
            });
        }
    }
}
