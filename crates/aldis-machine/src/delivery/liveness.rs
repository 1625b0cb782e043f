//! Time: agents that take too long, stall or stagnate, and files that stay taken.

use std::time::Duration;

use super::event::{AgentRequest, Effect, Notice, Severity};
use super::judge::{self, AgentFailure};
use super::rule::Rule;
use super::run::{CheckpointRequest, Stage, Work, WorkingAgent};
use super::sentences::span;
use super::state::{State, StepOutput, decision};
use super::task::Task;
use super::{expert, locks, prompts};
use crate::stagnation::{self, Change, Monitor, Observation};
use aldis_signal::time::Timestamp;

/// How long the files of new experts are waited for.
const EXPERT_CHECK_WAIT: Duration = Duration::from_secs(60);

/// An agent is alive.
pub(super) fn active(state: &mut State, out: &StepOutput, agent: u64) {
    let requests = state.run.config.requests;
    let Some(agent) = state.run.agents.get_mut(&agent) else { return };
    (agent.last_seen, agent.missed_checkpoints) = (out.now, 0);
    // One that was asked for a checkpoint must send it.
    if !requests {
        agent.checkpoint_request = None;
    }
}

/// An agent's work progressed.
pub(super) fn worked(state: &mut State, out: &mut StepOutput, agent: u64) {
    active(state, out, agent);
    observe(state, out, agent, &Observation::Awake);
    observe(state, out, agent, &Observation::Evidence);
}

/// An agent reported how far its work is.
pub(super) fn reported(state: &mut State, out: &mut StepOutput, agent: u64, report: &str) {
    observe(state, out, agent, &Observation::Awake);
    let (phase, progress, fingerprint) = (report.to_owned(), None, None);
    let said = Observation::State { phase, progress, iteration: 0, fingerprint };
    observe(state, out, agent, &said);
}

/// An agent's host waits for its service by itself.
pub(super) fn waiting(state: &mut State, out: &mut StepOutput, agent: u64) {
    active(state, out, agent);
    observe(state, out, agent, &Observation::Waiting);
}

/// Passes an observation to an agent's monitor, and acts on a change of its level. A single agent of
/// several is not suspended: it is replaced, and a human is asked about the task when it has used up
/// its agents.
fn observe(state: &mut State, out: &mut StepOutput, no: u64, observation: &Observation) {
    let monitor = state.run.agents.get_mut(&no).and_then(|agent| agent.monitor.as_mut());
    let change = monitor.and_then(|monitor| monitor.observe(out.now, observation));
    let Some(Change { to, because, .. }) = change else { return };
    match to {
        stagnation::Level::None => {}
        stagnation::Level::Warn => {
            let task = task_of(state, no);
            let role = state.run.agents.get(&no).map_or("agent", |agent| agent.role.label());
            let notice = (Notice::StagnationWarn, Severity::Warning);
            out.notice(notice, task, notice_text(task, role, &because));
            let summary = format!("Warned: the {role} makes no progress");
            let decision = decision(Rule::StagnationWarning, summary)
                .because(because)
                .next(format!("the {role} is replaced if this continues"));
            out.decided(task, decision);
        }
        stagnation::Level::Pause | stagnation::Level::Abort => {
            let role = state.run.agents.get(&no).map_or("agent", |agent| agent.role.label());
            let (notice, task) = ((Notice::StagnationAbort, Severity::Error), task_of(state, no));
            out.notice(notice, task, notice_text(task, role, &because));
            give_up(state, out, no, AgentFailure::Stagnated(because));
        }
    }
}

fn notice_text(task: Option<&Task>, role: &str, because: &str) -> String {
    match task {
        Some(task) => format!("{}: the {role} makes no progress ({because})", task.name()),
        None => format!("The {role} makes no progress ({because})"),
    }
}

fn task_of(state: &State, agent: u64) -> Option<&Task> {
    match state.run.agents.get(&agent)?.work {
        Work::Task { task } => state.tasks.get(task),
        Work::Infrastructure | Work::Request { .. } | Work::Plan => None,
    }
}

/// An agent must wait for its service: that time does not count.
pub(super) fn limited(state: &mut State, out: &mut StepOutput, no: u64, until: Timestamp) {
    let Some(agent) = state.run.agents.get_mut(&no) else { return };
    let (wait, role) = (until.since(out.now), agent.role.label());
    agent.started_at = agent.started_at.after(wait);
    (agent.last_seen, agent.missed_checkpoints, agent.checkpoint_request) = (until, 0, None);
    // It is started again then, and watched from the beginning.
    let watched = &state.run.config.stagnation;
    agent.monitor = agent.monitor.take().map(|_| Monitor::new(until, watched.clone()));
    let task = task_of(state, no);
    let who = task.map_or_else(|| format!("The {role}"), Task::name);
    let wait = span(wait.as_secs());
    let text = format!("{who} is rate limited. It starts again in {wait} (at {until}).");
    out.notice((Notice::RateLimit, Severity::Info), task, text);
    let summary = format!("Rate limited; starting again in {wait} (at {until})");
    let decision = decision(Rule::RateLimited, summary)
        .because("the service refuses to work for now")
        .next(format!("the {role} starts again then; the wait is not counted"));
    out.decided(task, decision);
}

/// Time passed.
pub(super) fn tick(state: &mut State, out: &mut StepOutput) {
    let agents: Vec<u64> = state.run.agents.keys().copied().collect();
    for no in agents {
        look(state, out, no);
        observe(state, out, no, &Observation::Tick);
    }
    let overdue = |since: Timestamp| out.now >= since.after(EXPERT_CHECK_WAIT);
    if state.run.stage == Stage::CheckingExperts && state.run.checking_since.is_some_and(overdue) {
        expert::checks_are_overdue(state, out);
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
        let seconds = config.timeout(agent.role).as_secs();
        return give_up(state, out, no, AgentFailure::TimedOut(seconds));
    }
    if out.now < due(config, agent) {
        return;
    }
    match agent.checkpoint_request.take() {
        // A checkpoint is due.
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
            let misses = agent.missed_checkpoints;
            if asked.after_unknown_reply {
                let seconds = state.run.config.checkpoint_answer;
                give_up(state, out, no, AgentFailure::NoAnswer(seconds));
            } else if misses >= most {
                give_up(state, out, no, AgentFailure::Stalled(misses));
            }
        }
    }
}

fn ask_for_checkpoint(state: &State, out: &mut StepOutput, no: u64) {
    let Some(agent) = state.run.agents.get(&no) else { return };
    let (request, text) = (AgentRequest::Checkpoint, prompts::checkpoint(state, no));
    out.effects.push(Effect::Request { agent: no, request, text });
    let (role, config) = (agent.role.label(), &state.run.config);
    let decision = decision(Rule::CheckpointRequested, format!("Asked the {role} how far it is"))
        .because(format!("agent {no} reported nothing for {}", span(config.checkpoint_every)))
        .next(format!(
            "an answer that does not come within {} counts as missed",
            span(config.checkpoint_answer)
        ));
    out.decided(task_of(state, no), decision);
}

fn give_up(state: &mut State, out: &mut StepOutput, no: u64, failure: AgentFailure) {
    let Some(agent) = state.run.agents.get(&no).cloned() else { return };
    state.retire(no);
    out.effects.push(Effect::End { agent: no });
    judge::failed(state, out, (no, &agent), failure);
}

/// When the next checkpoint is due, or the answer to a request for one.
fn due(config: &super::config::Config, agent: &WorkingAgent) -> Timestamp {
    match agent.checkpoint_request {
        Some(asked) => asked.at.after(Duration::from_secs(config.checkpoint_answer)),
        None => agent.last_seen.after(Duration::from_secs(config.checkpoint_every)),
    }
}

/// Arms the wake-up for the next moment at which something must be looked at.
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
    let checks = state.run.checking_since.map(|since| since.after(EXPERT_CHECK_WAIT));
    let next = agents.chain(silences).chain(time_is_up).chain(file).chain(checks).min();
    // One that is set too early only looks and asks again.
    let set = state.run.wake.filter(|wake| *wake > out.now);
    let early = set.is_some_and(|set| next.is_none_or(|next| set <= next));
    if !early {
        state.run.wake = next;
    }
}
