//! What the end of an agent means to the machine, whoever ran it: its verdict, what it has cost, and
//! what must be known of it later.

use aldis_engine::note;
use aldis_machine::delivery::{AgentReply, Dispatch, Event, State};
use aldis_machine::run::{Exit, Usage};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::PartChange;

use super::DeliveryPlan;
use super::agent::{Ended, Last};
use super::called::add_calls;
use super::start::{HostSession, session_key};
use crate::coordinate::conduct::{Conduct, CoreOf};
use crate::error::CommandError;

/// How an agent counts as having ended whose host gave up.
const CRASHED: Exit = Exit { code: Some(1), signal: None };

/// What the machine is told of the end of an agent.
pub(in crate::coordinate) struct LastWords {
    /// Its verdict first: what is done is done, whatever it has cost. In one step with it: what it has
    /// cost is not lost, whatever happens next.
    pub(in crate::coordinate) events: Vec<Event>,
    pub(in crate::coordinate) notes: Vec<PartChange>,
    /// Until when its service refuses to work, if it does.
    pub(in crate::coordinate) limited: Option<Timestamp>,
}

/// Finds out what the end of an agent means. `worker` ran it, if one did.
pub(in crate::coordinate) fn last_words<C: Conduct<Machine = State>>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    (plan, worker): (&DeliveryPlan, Option<&str>),
    dispatch: &Dispatch,
    last: Last,
) -> Result<LastWords, CommandError> {
    let (now, agent) = (core.now(), dispatch.agent);
    let (mut notes, mut limited) = (Vec::new(), None);
    let ended = match last.ended {
        Ended::Finished { exit, text, host_failed } => {
            let (mut reply, exit) = match host_failed {
                // Its host gave up: whatever it wrote before was not its result.
                Some(what) => {
                    let preview = redact(&what).into_owned();
                    (AgentReply { preview, ..AgentReply::default() }, CRASHED)
                }
                None => {
                    let token = core.state().expected_token(agent);
                    (AgentReply::read(&plan.rules, &token, &text), exit)
                }
            };
            let own = (dispatch, &*last.directory, last.session.as_deref());
            notes = add_calls(core, conduct, plan, own, &last.answers, &mut reply)?;
            Event::Finished { agent, exit: Some(exit), reply }
        }
        Ended::Limited { what, until } => {
            let until = until.filter(|until| *until > now);
            let until = until.unwrap_or_else(|| now.after(plan.limit_wait));
            conduct.problem(now, &format!("{what}; waits until {until}"));
            limited = Some(until);
            Event::RateLimited { agent, until }
        }
    };
    let events = [ended].into_iter().chain(spent(agent, last.unreported)).collect();
    if let Some(name) = last.session
        && plan.of_role(dispatch.role).0.resume.is_some()
    {
        let worker = worker.map(str::to_owned);
        let session = HostSession { agent, name, spent: last.spent, worker };
        notes.push(note(&session_key(dispatch), &session)?);
    }
    Ok(LastWords { events, notes, limited })
}

/// What an agent has cost, unless it is nothing.
pub(in crate::coordinate) fn spent(agent: u64, usage: Usage) -> Option<Event> {
    (usage != Usage::default()).then_some(Event::Spent { agent, usage })
}
