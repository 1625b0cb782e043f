//! What the agent of a supervised run reports by calls, taken over where its stream shows the answer.

use aldis_engine::CallRecord;
use aldis_machine::calls::Reported;
use aldis_machine::run::{Event, RunSignal, State};
use aldis_signal::Signal;
use aldis_transcript::events::ToolAnswer;

use super::RunConduct;
use crate::coordinate::calls;
use crate::coordinate::conduct::Conduct as _;
use crate::coordinate::coordinator::{self, Core, heed_others};
use crate::error::CommandError;
use crate::hosts;

/// The first number of a message that is a call: signals of one message can contradict each other.
const FIRST_CALL: u64 = 1 << 40;

/// How many near misses are told apart from those that come again.
const HINTS_MAX: usize = 64;

impl RunConduct<'_> {
    /// A call was answered: takes it over.
    pub(super) fn answered(
        &mut self,
        core: &mut Core<'_, State>,
        answer: &ToolAnswer,
    ) -> Result<(), CommandError> {
        if answer.receipt.is_some() {
            return self.receipted(core, answer);
        }
        heed_others(core, self)?;
        let Some(call) = calls::answered(core.run(), answer) else { return Ok(()) };
        if answer.sidechain || call.subagent {
            let tool = call.call.tool();
            let hint = format!("`{tool}` was called by a sub-agent: only you report for the run");
            core.set_notes(&[call.taken_over()?])?;
            return self.near_miss(core, hint);
        }
        self.take_call(core, &call)
    }

    /// The agent's shell printed a report that it could write nowhere.
    fn receipted(
        &mut self,
        core: &mut Core<'_, State>,
        answer: &ToolAnswer,
    ) -> Result<(), CommandError> {
        let own = (None, self.session.name());
        let refused = calls::receipted(core, answer, own, &self.plan.state)?;
        heed_others(core, self)?;
        match refused {
            // It is taken over when the agent ends, as all that no tool call vouches for.
            None => Ok(()),
            Some(hint) => self.near_miss(core, hint),
        }
    }

    /// The agent has ended: takes over what no answer was seen of.
    pub(super) fn take_left_calls(
        &mut self,
        core: &mut Core<'_, State>,
    ) -> Result<(), CommandError> {
        core.collect_spool(&self.plan.directory, self.session.name())?;
        heed_others(core, self)?;
        let since = core.state().iteration_started_at();
        let (left, void) = calls::left(core.run(), (None, self.session.name()), since);
        let void: Result<Vec<_>, _> = void.iter().map(CallRecord::taken_over).collect();
        let void = void?;
        if !void.is_empty() {
            core.set_notes(&void)?;
        }
        left.iter().try_for_each(|call| self.take_call(core, call))
    }

    /// Gives the machine the signal that a call stands for, and keeps with it that it was taken over.
    fn take_call(
        &mut self,
        core: &mut Core<'_, State>,
        call: &CallRecord,
    ) -> Result<(), CommandError> {
        let notes = [call.taken_over()?];
        let signal = match call.call.in_run(call.via) {
            Ok(Reported::Signal(signal)) => signal,
            Ok(Reported::Asks(_) | Reported::Nothing) | Err(_) => return core.set_notes(&notes),
        };
        if let Some(hint) = self.unaccepted(core, &signal) {
            core.set_notes(&notes)?;
            return self.near_miss(core, hint);
        }
        self.calls += 1;
        let signal = RunSignal::new(&signal, FIRST_CALL + self.calls);
        let events = self.progress.push(core.now(), vec![signal]);
        coordinator::advance_together(core, self, events, &notes)
    }

    /// Tells the machine of a near miss: once of each, however often an agent repeats it.
    pub(super) fn near_miss(
        &mut self,
        core: &mut Core<'_, State>,
        hint: String,
    ) -> Result<(), CommandError> {
        if self.hints.contains(&hint) {
            return Ok(());
        }
        if self.hints.len() < HINTS_MAX {
            self.hints.insert(hint.clone());
        }
        self.advance(core, Event::NearMiss { hint })
    }

    /// Returns why a signal does not count that came in a way that is not enough here.
    pub(super) fn unaccepted(&self, core: &Core<'_, State>, signal: &Signal) -> Option<String> {
        let accept = core.state().setup().config.accept;
        let refused = signal.meaning.is_decisive() && signal.via < accept;
        refused.then(|| hosts::calls::hint(&signal.name, signal.via, accept))
    }
}
