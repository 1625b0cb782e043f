//! What the agent reported by calls, taken over at the stop at which its transcript shows the answers.

use aldis_engine::{CallAnswer, CallRecord, EngineError};
use aldis_machine::Miss;
use aldis_machine::calls::{ALL_PHASES, Call, Reported, UNATTESTED};
use aldis_machine::phases::{MustAllow, PhaseFinding, State, Stop, call_finding};
use aldis_signal::message::{Origin, Role};
use aldis_signal::signal::Via;
use aldis_store::PartChange;
use aldis_transcript::events::ToolAnswer;

use super::Hook;
use super::live::PhasesRun;
use crate::hosts::receipt::{self, Owner};

/// The calls that a stop takes over.
#[derive(Debug, Default)]
pub(super) struct Called {
    calls: Vec<CallRecord>,
    /// Whether they are those of a sub-agent.
    subagent: Option<Origin>,
    /// The notes that say that they were taken over.
    pub(super) notes: Vec<PartChange>,
}

impl Called {
    /// Takes over what the main agent called: what its transcript shows, and what nothing vouches for as
    /// words of the agent.
    pub(super) fn of_stop(
        hook: &Hook<'_>,
        run: &PhasesRun,
        answers: &[ToolAnswer],
    ) -> Result<Self, EngineError> {
        let mut called = Self::default();
        for mut call in run.waiting_calls() {
            let is_own = match (&call.session, &hook.call.session) {
                (Some(session), Some(own)) => session == own,
                _ => true,
            };
            if !is_own || call.subagent {
                continue;
            }
            if call.via == Via::Call && !is_answered(&call, answers) {
                // A sub-agent may have called, and may not end the run.
                if ends_the_run(&call) {
                    called.notes.push(call.taken_over()?);
                    continue;
                }
                call.via = Via::Said;
            }
            called.notes.push(call.taken_over()?);
            called.calls.push(call);
        }
        called.add_receipts(hook, run, answers)?;
        Ok(called)
    }

    /// Takes over what the main agent's shell could write nowhere, each once.
    fn add_receipts(
        &mut self,
        hook: &Hook<'_>,
        run: &PhasesRun,
        answers: &[ToolAnswer],
    ) -> Result<(), EngineError> {
        let known: Vec<String> = run.calls().into_iter().map(|call| call.id).collect();
        let session = hook.call.session.as_deref();
        let owner = Owner { run: run.id(), agent: None, session };
        for answer in answers {
            let Some(line) = &answer.receipt else { continue };
            match receipt::read(answer, line, hook.now, owner, &hook.state_dir) {
                Ok(call) if known.contains(&call.id) => {}
                Ok(call) => {
                    self.notes.push(call.taken_over()?);
                    self.calls.push(call);
                }
                Err(why) => hook.record_failure(&format!("receipt: {why}")),
            }
        }
        Ok(())
    }

    /// Takes over what a sub-agent called, as its own transcript shows.
    pub(super) fn of_subagent(
        hook: &Hook<'_>,
        run: &PhasesRun,
        answers: &[ToolAnswer],
    ) -> Result<Self, EngineError> {
        let mut origin = Origin::new(Role::Subagent);
        if let Some(agent) = &hook.call.agent_id {
            origin = origin.with_agent(agent);
        }
        let mut calls = run.waiting_calls();
        calls.retain(|call| is_answered(call, answers));
        let notes: Result<_, _> = calls.iter().map(CallRecord::taken_over).collect();
        Ok(Self { calls, subagent: Some(origin), notes: notes? })
    }

    /// Returns whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Adds the signals that they stand for to what was found in the text.
    pub(super) fn add_to(&self, state: &State, findings: &mut Vec<PhaseFinding>) {
        for call in &self.calls {
            if let Ok(Reported::Signal(mut signal)) = call.call.in_phases(state, call.via) {
                if let Some(origin) = &self.subagent {
                    signal.origin = origin.clone();
                }
                findings.push(call_finding(&signal, findings, call.at));
            }
        }
    }

    /// Adds to a stop what they stand for: signals, or that a human is asked.
    pub(super) fn add_to_stop(&self, state: &State, stop: &mut Stop) {
        self.add_to(state, &mut stop.findings);
        let asks = |call: &CallRecord| match call.call.in_phases(state, call.via) {
            Ok(Reported::Asks(question)) => Some(Box::new(question)),
            _ => None,
        };
        // The last one counts: an agent asks one thing at a time.
        stop.asks = self.calls.iter().rev().find_map(asks);
        if stop.asks.is_some() {
            stop.must_allow = stop.must_allow.take().or(Some(MustAllow::Question));
        }
    }
}

/// Turns signals that came in a way that is not enough into near misses.
pub(super) fn demand(state: &State, findings: &mut [PhaseFinding]) {
    let accept = state.config().accept;
    for finding in findings {
        if let PhaseFinding::Signal(signal) = finding
            && signal.meaning.is_decisive()
            && signal.via < accept
        {
            *finding = PhaseFinding::NearMiss(Miss {
                name: signal.name.clone(),
                reason: UNATTESTED.to_owned(),
                hint: crate::hosts::calls::hint(&signal.name, signal.via, accept),
                line: signal.line,
                quote: signal.quote.clone(),
            });
        }
    }
}

/// Returns whether the transcript still lacks an answer to a call of this session.
pub(super) fn lacks_answer(waiting: &[CallRecord], answers: &[ToolAnswer]) -> bool {
    waiting.iter().any(|call| call.via == Via::Call && !is_answered(call, answers))
}

fn is_answered(call: &CallRecord, answers: &[ToolAnswer]) -> bool {
    answers.iter().any(|answer| {
        call.is_answered_by(CallAnswer { call_id: &answer.call_id, ids: &answer.ids })
    })
}

fn ends_the_run(call: &CallRecord) -> bool {
    matches!(&call.call, Call::Complete { phase: Some(phase), .. } if phase == ALL_PHASES)
}
