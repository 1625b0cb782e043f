//! Calls of the agents that we started: which their transcripts vouch for, and which are left.

use std::path::Path;

use aldis_engine::{CallAnswer, CallRecord, Handle};
use aldis_machine::Machine;
use aldis_signal::signal::Via;
use aldis_signal::time::Timestamp;
use aldis_transcript::events::ToolAnswer;

use super::coordinator::Core;
use crate::error::CommandError;
use crate::hosts::receipt::{self, Owner};

/// Finds the call whose answer a host's stream shows. The stream may be ahead of what is known of the
/// store: take that over first.
pub(super) fn answered<M: Machine>(run: &Handle<M>, answer: &ToolAnswer) -> Option<CallRecord> {
    let answer = CallAnswer { call_id: &answer.call_id, ids: &answer.ids };
    run.waiting_calls().into_iter().find(|call| call.is_answered_by(answer))
}

/// Returns the calls that an agent made since it was started and that its stream did not show, and those
/// that mean nothing any more. A call that nothing vouches for counts as words of the agent, one of
/// another session not at all.
pub(super) fn left<M: Machine>(
    run: &Handle<M>,
    (agent, session): (Option<u64>, Option<&str>),
    since: Timestamp,
) -> (Vec<CallRecord>, Vec<CallRecord>) {
    let foreign = |call: &CallRecord| {
        call.session.as_deref().zip(session).is_some_and(|(call, own)| call != own)
    };
    let own = run.waiting_calls().into_iter().filter(|call| call.agent == agent);
    let (mut left, void): (Vec<_>, Vec<_>) =
        own.partition(|call| call.at >= since && !foreign(call) && !call.subagent);
    for call in &mut left {
        call.via = match call.via {
            Via::Call => Via::Said,
            via => via,
        };
    }
    (left, void)
}

/// Keeps what a receipt in the output of an agent reports. Returns why it does not count, if it does
/// not. The store is then ahead of what is known of it.
pub(super) fn receipted<M: Machine>(
    core: &mut Core<'_, M>,
    answer: &ToolAnswer,
    (agent, session): (Option<u64>, Option<&str>),
    state_dir: &Path,
) -> Result<Option<String>, CommandError> {
    let Some(line) = &answer.receipt else { return Ok(None) };
    let (run, now) = (core.id().clone(), core.now());
    let owner = Owner { run: &run, agent, session };
    match receipt::read(answer, line, now, owner, state_dir) {
        Ok(record) => core.record_call(&record).map(|()| None),
        Err(why) => Ok(Some(format!("a receipt of `aldis signal` does not count: {why}"))),
    }
}
