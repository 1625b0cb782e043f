//! What the agents of a delivery report by calls.

use std::path::Path;

use aldis_engine::CallRecord;
use aldis_machine::calls::{Call, Reported};
use aldis_machine::delivery::{AgentReply, Dispatch, Event, State};
use aldis_store::PartChange;
use aldis_transcript::events::ToolAnswer;

use super::{DeliveryConduct, DeliveryPlan};
use crate::coordinate::calls;
use crate::coordinate::conduct::{Conduct, CoreOf};
use crate::coordinate::coordinator::{self, Core, heed_others};
use crate::error::CommandError;
use crate::hosts;

impl DeliveryConduct<'_> {
    /// Tells the machine of checkpoints that agents at work gave by calls: all else counts when they
    /// end.
    pub(super) fn report_called(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let mut answers = Vec::new();
        for at_work in self.agents.values_mut().filter(|at_work| !at_work.given_up) {
            let new = at_work.reported.new_answers().to_vec();
            answers.extend(new.into_iter().map(|answer| (at_work.dispatch.clone(), answer)));
        }
        for (event, note) in progress_called(core, self, answers)? {
            coordinator::advance_together(core, self, vec![event], &[note])?;
        }
        Ok(())
    }
}

/// Returns the checkpoints that agents gave by calls whose answers are these, with the notes that say
/// that they were taken over.
pub(in crate::coordinate) fn progress_called<C: Conduct<Machine = State>>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    answers: Vec<(Dispatch, ToolAnswer)>,
) -> Result<Vec<(Event, PartChange)>, CommandError> {
    if answers.is_empty() {
        return Ok(Vec::new());
    }
    heed_others(core, conduct)?;
    let mut reports = Vec::new();
    for (dispatch, answer) in answers {
        let call = calls::answered(core.run(), &answer);
        if let Some(call) = call.filter(|it| matches!(it.call, Call::Progress { .. })) {
            let mut reply = AgentReply::default();
            add(core.state(), &mut reply, &dispatch, &call);
            let event = Event::Reported { agent: dispatch.agent, reply };
            reports.push((event, call.taken_over()?));
        }
    }
    Ok(reports)
}

/// Adds to an agent's reply what it reported by calls. Returns the notes that say that they were taken
/// over.
pub(super) fn add_calls<C: Conduct<Machine = State>>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    plan: &DeliveryPlan,
    (dispatch, directory, session): (&Dispatch, &Path, Option<&str>),
    answers: &[ToolAnswer],
    reply: &mut AgentReply,
) -> Result<Vec<PartChange>, CommandError> {
    core.collect_spool(directory, session)?;
    for answer in answers.iter().filter(|answer| answer.receipt.is_some()) {
        let own = (Some(dispatch.agent), session);
        if let Some(hint) = calls::receipted(core, answer, own, &plan.state)? {
            conduct.problem(core.now(), &hint);
        }
    }
    heed_others(core, conduct)?;
    let Some(agent) = core.state().agent(dispatch.agent) else { return Ok(Vec::new()) };
    let since = agent.started_at;
    let answered = answers.iter().filter_map(|answer| calls::answered(core.run(), answer));
    let mut taken: Vec<CallRecord> = answered.collect();
    let own = (Some(dispatch.agent), session);
    let (left, void) = calls::left(core.run(), own, since);
    let is_new = |call: &CallRecord| !taken.iter().any(|known| known.id == call.id);
    let (left, void): (Vec<_>, Vec<_>) =
        (left.into_iter().filter(is_new).collect(), void.into_iter().filter(is_new).collect());
    taken.extend(left);
    for call in &taken {
        add(core.state(), reply, dispatch, call);
    }
    let accept = core.state().run().config.accept;
    reply.demand(accept, |name, via| hosts::calls::hint(name, via, accept));
    let notes: Result<_, _> = taken.iter().chain(&void).map(CallRecord::taken_over).collect();
    Ok(notes?)
}

/// Adds the signal that a call of this agent stands for.
fn add(state: &State, reply: &mut AgentReply, dispatch: &Dispatch, call: &CallRecord) {
    let subject = state.subject_of(dispatch.agent);
    if let Ok(Reported::Signal(signal)) =
        call.call.in_delivery((dispatch.role, subject.as_deref()), call.via)
    {
        reply.add_call(&signal);
    }
}
