//! Time: agents that take too long or show no sign of life, and files that stay taken.

use std::time::Duration;

use super::event::{Effect, Notice, Request, Severity};
use super::judge::{self, AgentFailure};
use super::run::{CheckpointRequest, Work, WorkingAgent};
use super::state::{State, StepOutput, decision};
use super::task::Task;
use super::{locks, prompts};
use crate::stagnation::{self, Change, Monitor, Observation};
use aldis_signal::time::Timestamp;

/// An agent showed a sign of life.
pub(super) fn active(state: &mut State, out: &StepOutput, agent: u64) {
    let requests = state.run.config.requests;
    let Some(agent) = state.run.agents.get_mut(&agent) else { return };
    (agent.last_seen, agent.missed_checkpoints) = (out.now, 0);
    // One that was asked must answer.
    if !requests {
        agent.checkpoint_request = None;
    }
}

/// An agent's work moved.
pub(super) fn worked(state: &mut State, out: &mut StepOutput, agent: u64) {
    active(state, out, agent);
    observe(state, out, agent, &Observation::Awake);
    observe(state, out, agent, &Observation::Evidence);
}

/// An agent said how far its work is.
pub(super) fn reported(state: &mut State, out: &mut StepOutput, agent: u64, words: &str) {
    observe(state, out, agent, &Observation::Awake);
    let (phase, progress, fingerprint) = (words.to_owned(), None, None);
    let said = Observation::State { phase, progress, iteration: 0, fingerprint };
    observe(state, out, agent, &said);
}

/// An agent's host waits for its service by itself.
pub(super) fn waiting(state: &mut State, out: &mut StepOutput, agent: u64) {
    active(state, out, agent);
    observe(state, out, agent, &Observation::Waiting);
}

/// Tells an agent's monitor something, and does what a change of its level means. Nobody suspends one
/// agent of several and asks a human about it: the human is asked about the task, when it has used up
/// its agents.
fn observe(state: &mut State, out: &mut StepOutput, no: u64, observation: &Observation) {
    let monitor = state.run.agents.get_mut(&no).and_then(|agent| agent.monitor.as_mut());
    let change = monitor.and_then(|monitor| monitor.observe(out.now, observation));
    let Some(Change { to, because, .. }) = change else { return };
    match to {
        stagnation::Level::None => {}
        stagnation::Level::Warn => {
            let task = task_of(state, no);
            let notice = (Notice::StagnationWarn, Severity::Warning);
            out.notice(notice, task, because.clone());
            let decision = decision("stagnation", "Warned: the work does not move")
                .because(because)
                .next("the agent is ended if it goes on like this");
            out.decided(task, decision);
        }
        stagnation::Level::Pause | stagnation::Level::Abort => {
            let notice = (Notice::StagnationAbort, Severity::Error);
            out.notice(notice, task_of(state, no), because.clone());
            give_up(state, out, no, AgentFailure::Stagnated(because));
        }
    }
}

fn task_of(state: &State, agent: u64) -> Option<&Task> {
    match state.run.agents.get(&agent)?.work {
        Work::Task { task } => state.tasks.get(task),
        Work::Infrastructure | Work::Request { .. } | Work::Plan => None,
    }
}

/// An agent must wait for its service: that time is not its own.
pub(super) fn limited(state: &mut State, out: &mut StepOutput, no: u64, until: Timestamp) {
    let Some(agent) = state.run.agents.get_mut(&no) else { return };
    let wait = until.since(out.now);
    agent.started_at = agent.started_at.after(wait);
    (agent.last_seen, agent.missed_checkpoints, agent.checkpoint_request) = (until, 0, None);
    // It is started again then, and watched from the beginning.
    let watched = &state.run.config.stagnation;
    agent.monitor = agent.monitor.take().map(|_| Monitor::new(until, watched.clone()));
    let task = task_of(state, no);
    let text = format!("waits until {until}");
    out.notice((Notice::RateLimit, Severity::Info), task, text);
    let decision = decision("limit", format!("Waits until {until}"))
        .because("the service refuses to work for now")
        .next("the same agent is started again by itself; nothing is counted");
    out.decided(task, decision);
}

/// Time passed.
pub(super) fn tick(state: &mut State, out: &mut StepOutput) {
    let agents: Vec<u64> = state.run.agents.keys().copied().collect();
    for no in agents {
        look(state, out, no);
        observe(state, out, no, &Observation::Tick);
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
fn look(state: &mut State, out: &mut StepOutput, no: u64) {
    let config = &state.run.config;
    let (requests, most) = (config.requests, config.checkpoint_misses);
    let Some(agent) = state.run.agents.get_mut(&no) else { return };
    if out.now >= agent.started_at.after(config.timeout(agent.role)) {
        return give_up(state, out, no, AgentFailure::TimedOut);
    }
    if out.now < due(config, agent) {
        return;
    }
    match agent.checkpoint_request.take() {
        // A sign of life is due.
        None => {
            agent.checkpoint_request =
                Some(CheckpointRequest { at: out.now, after_unknown_reply: false });
            if requests {
                ask_for_checkpoint(state, out, no);
            }
        }
        // It was asked for, and did not come.
        Some(asked) => {
            agent.missed_checkpoints += 1;
            agent.last_seen = out.now;
            if asked.after_unknown_reply {
                give_up(state, out, no, AgentFailure::TimedOut);
            } else if agent.missed_checkpoints >= most {
                give_up(state, out, no, AgentFailure::Stalled);
            }
        }
    }
}

fn ask_for_checkpoint(state: &State, out: &mut StepOutput, no: u64) {
    let (request, text) = (Request::Checkpoint, prompts::checkpoint());
    out.effects.push(Effect::Request { agent: no, request, text });
    let decision = decision("checkpoint", "Asked for a sign of life")
        .because(format!("nothing was heard of agent {no} for a while"))
        .next("without an answer it counts as missed");
    out.decided(task_of(state, no), decision);
}

fn give_up(state: &mut State, out: &mut StepOutput, no: u64, failure: AgentFailure) {
    let Some(agent) = state.run.agents.get(&no).cloned() else { return };
    state.retire(no);
    out.effects.push(Effect::End { agent: no });
    judge::failed(state, out, (no, &agent), failure);
}

/// When the next sign of life is due, or the answer to the question for one.
fn due(config: &super::config::Config, agent: &WorkingAgent) -> Timestamp {
    match agent.checkpoint_request {
        Some(asked) => asked.at.after(Duration::from_secs(config.checkpoint_answer)),
        None => agent.last_seen.after(Duration::from_secs(config.checkpoint_every)),
    }
}

/// Asks for a tick at the next moment at which something must be looked at.
pub(super) fn arm(state: &mut State, out: &StepOutput) {
    let config = &state.run.config;
    let agents =
        state.run.agents.values().map(|agent| {
            due(config, agent).min(agent.started_at.after(config.timeout(agent.role)))
        });
    let monitors = state.run.agents.values().filter_map(|agent| agent.monitor.as_ref());
    let silences = monitors.filter_map(|monitor| monitor.next_change(out.now));
    let time_is_up = config.max_time.and_then(|most| {
        let left = most.saturating_mul(1_000).saturating_sub(out.worked);
        Some(out.now.max(state.run.earliest_activity()?).after(Duration::from_millis(left)))
    });
    let patience = Duration::from_secs(config.conflict_wait);
    let file = state.index.oldest_wait().map(|(since, _)| since.after(patience));
    let next = agents.chain(silences).chain(time_is_up).chain(file).min();
    // One that is set too early only looks and asks again.
    let set = state.run.wake.filter(|wake| *wake > out.now);
    let early = set.is_some_and(|set| next.is_none_or(|next| set <= next));
    if let Some(at) = next.filter(|_| !early) {
        state.run.wake = Some(at);
    }
}
