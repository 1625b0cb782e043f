//! What came of the signals of one stop.

use super::config::ExitReason;
use super::event::PhaseSignal;
use crate::{Evidence, Miss, Refusal};

/// How many findings a decision quotes.
pub(super) const EVIDENCE_MAX: usize = 8;
/// How many refused signals are explained; the last ones.
const REFUSED_MAX: usize = 8;

/// What came of the signals of one stop.
#[derive(Default)]
pub(super) struct StopTally {
    /// The phases that were completed, in order.
    pub(super) completed: Vec<CompletedPhase>,
    pub(super) ended: Option<ExitReason>,
    /// Whether the agent reported an error in the current phase.
    pub(super) error: bool,
    pub(super) refused: Vec<RefusedSignal>,
    pub(super) last_refused: Option<Evidence>,
    pub(super) evidence: Vec<Evidence>,
    /// Whether a sub-agent stopped: it ends no run.
    pub(super) of_subagent: bool,
    /// Whether something was claimed that is checked now.
    pub(super) claimed: bool,
}

/// A phase that was completed.
pub(super) struct CompletedPhase {
    pub(super) phase: String,
    /// Who reported it with which signal, as a clause.
    pub(super) by: String,
}

/// A signal that was well formed and changed nothing.
pub(super) struct RefusedSignal {
    pub(super) name: String,
    pub(super) refusal: Refusal,
    /// The sub-agent that reported it.
    pub(super) agent: Option<String>,
    pub(super) of_subagent: bool,
}

impl StopTally {
    pub(super) fn refuse(&mut self, signal: &PhaseSignal, refusal: Refusal) {
        self.quote(signal, Some(refusal));
        self.last_refused = Some(of_signal(signal, Some(refusal)));
        if self.refused.len() == REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push(RefusedSignal {
            name: signal.name.clone(),
            refusal,
            agent: signal.agent.clone(),
            of_subagent: signal.subagent,
        });
    }

    pub(super) fn quote(&mut self, signal: &PhaseSignal, refusal: Option<Refusal>) {
        if self.evidence.len() < EVIDENCE_MAX {
            self.evidence.push(of_signal(signal, refusal));
        }
    }

    pub(super) fn quote_misses<'m>(&mut self, misses: impl Iterator<Item = &'m Miss>) {
        let room = EVIDENCE_MAX.saturating_sub(self.evidence.len());
        self.evidence.extend(misses.take(room).map(Evidence::near_miss));
    }

    /// Returns the names of the completed phases.
    pub(super) fn phases(&self) -> Vec<&str> {
        self.completed.iter().map(|completed| &*completed.phase).collect()
    }

    /// Returns who completed them.
    pub(super) fn completed_by(&self) -> String {
        let by: Vec<&str> = self.completed.iter().map(|completed| &*completed.by).collect();
        by.join("; ")
    }
}

impl RefusedSignal {
    /// Returns the signal and where it came from: `AUTO_COMPLETE from sub-agent a1`.
    pub(super) fn named(&self) -> String {
        match (&self.agent, self.of_subagent) {
            (Some(agent), _) => format!("{} from sub-agent {agent}", self.name),
            (None, true) => format!("{} from a sub-agent", self.name),
            (None, false) => self.name.clone(),
        }
    }
}

/// Evidence of a signal.
fn of_signal(signal: &PhaseSignal, refusal: Option<Refusal>) -> Evidence {
    let PhaseSignal { name, quote, line, via, agent, .. } = signal;
    let seen = Evidence::signal(name, quote, *line, *via).by_agent(agent.clone());
    match refusal {
        Some(refusal) => seen.refused(refusal.as_str()),
        None => seen,
    }
}
