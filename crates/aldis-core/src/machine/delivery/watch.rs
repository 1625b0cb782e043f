//! Time: agents that take too long or show no sign of life, and files that stay taken.

use std::time::Duration;

use super::event::{Effect, Request};
use super::judge::{self, Failure};
use super::run::{Agent, Asked, Work};
use super::state::{Out, State, decision};
use super::{locks, prompts};
use crate::time::Timestamp;

/// An agent showed a sign of life.
pub(super) fn active(state: &mut State, out: &mut Out, agent: u64) {
    let requests = state.run.config.requests;
    let Some(agent) = state.run.agents.get_mut(&agent) else { return };
    (agent.seen, agent.misses) = (out.now, 0);
    // One that was asked must answer.
    if !requests {
        agent.asked = None;
    }
    out.run_changed = true;
}

/// An agent must wait for its service: that time is not its own.
pub(super) fn limited(state: &mut State, out: &mut Out, no: u64, until: Timestamp) {
    let Some(agent) = state.run.agents.get_mut(&no) else { return };
    let wait = until.since(out.now);
    agent.started = agent.started.after(wait);
    (agent.seen, agent.misses, agent.asked) = (until, 0, None);
    let task = match agent.work {
        Work::Task { task } => state.tasks.get(task),
        Work::Infrastructure | Work::Request { .. } | Work::Plan => None,
    };
    let decision = decision("limit", format!("Waits until {until}"))
        .because("the service refuses to work for now")
        .next("the same agent is started again by itself; nothing is counted");
    out.decided(task, decision);
}

/// Time passed.
pub(super) fn tick(state: &mut State, out: &mut Out) {
    let agents: Vec<u64> = state.run.agents.keys().copied().collect();
    for no in agents {
        look(state, out, no);
    }
    let patience = Duration::from_secs(state.run.config.conflict_wait);
    while let Some((since, no)) = state.index.oldest_wait() {
        if out.now < since.after(patience) {
            break;
        }
        locks::waited(state, out, no);
    }
}

/// Looks at one agent.
fn look(state: &mut State, out: &mut Out, no: u64) {
    let config = &state.run.config;
    let (requests, most) = (config.requests, config.checkpoint_misses);
    let Some(agent) = state.run.agents.get_mut(&no) else { return };
    if out.now >= agent.started.after(config.timeout(agent.role)) {
        return give_up(state, out, no, Failure::TimedOut);
    }
    if out.now < due(config, agent) {
        return;
    }
    out.run_changed = true;
    match agent.asked.take() {
        // A sign of life is due.
        None => {
            agent.asked = Some(Asked { at: out.now, unknown: false });
            if requests {
                let text = prompts::checkpoint();
                let request = Request::Checkpoint;
                out.effects.push(Effect::Request { agent: no, request, text });
            }
        }
        // It was asked for, and did not come.
        Some(asked) => {
            agent.misses += 1;
            agent.seen = out.now;
            if asked.unknown {
                give_up(state, out, no, Failure::TimedOut);
            } else if agent.misses >= most {
                give_up(state, out, no, Failure::Stalled);
            }
        }
    }
}

fn give_up(state: &mut State, out: &mut Out, no: u64, failure: Failure) {
    let Some(agent) = state.run.agents.get(&no).cloned() else { return };
    state.retire(out, no);
    out.effects.push(Effect::End { agent: no });
    judge::failed(state, out, (no, &agent), failure);
}

/// When the next sign of life is due, or the answer to the question for one.
fn due(config: &super::config::Config, agent: &Agent) -> Timestamp {
    match agent.asked {
        Some(asked) => asked.at.after(Duration::from_secs(config.checkpoint_answer)),
        None => agent.seen.after(Duration::from_secs(config.checkpoint_every)),
    }
}

/// Asks for a tick at the next moment at which something must be looked at.
pub(super) fn arm(state: &mut State, out: &mut Out) {
    let config = &state.run.config;
    let agents = state
        .run
        .agents
        .values()
        .map(|agent| due(config, agent).min(agent.started.after(config.timeout(agent.role))));
    let patience = Duration::from_secs(config.conflict_wait);
    let file = state.index.oldest_wait().map(|(since, _)| since.after(patience));
    let next = agents.chain(file).min();
    // One that is set too early only looks and asks again.
    let set = state.run.wake.filter(|wake| *wake > out.now);
    let early = set.is_some_and(|set| next.is_none_or(|next| set <= next));
    if let Some(at) = next.filter(|_| !early) {
        state.run.wake = Some(at);
        out.effects.push(Effect::Wake { at });
        out.run_changed = true;
    }
}
