//! Time: agents that take too long, stall or stagnate, and files that stay taken.

use std::time::Duration;

use super::event::{AgentRequest, Effect, Notice, Severity};
use super::judge::AgentFailure;
use super::prompts;
use super::rule::Rule;
use super::run::{CheckpointRequest, Stage, WorkingAgent};
use super::state::State;
use crate::stagnation::{Level, LevelChange, Monitor, Observation};
use crate::words::{counted, duration};
use aldis_signal::time::Timestamp;

/// How long the files of new experts are waited for.
const EXPERT_CHECK_WAIT: Duration = Duration::from_secs(60);

impl State {
    /// An agent is alive.
    pub(super) fn active(&mut self, agent: u64) {
        let requests = self.run.config.requests;
        let Some(agent) = self.run.agents.get_mut(&agent) else { return };
        (agent.last_seen, agent.missed_checkpoints) = (self.out.now, 0);
        // One that was asked for a checkpoint must send it.
        if !requests {
            agent.checkpoint_request = None;
        }
    }

    /// An agent's work progressed.
    pub(super) fn worked(&mut self, agent: u64) {
        self.active(agent);
        self.observe(agent, &Observation::Awake);
        self.observe(agent, &Observation::Evidence);
    }

    /// An agent reported how far its work is.
    pub(super) fn observe_report(&mut self, agent: u64, report: &str) {
        self.observe(agent, &Observation::Awake);
        let (phase, progress, fingerprint) = (report.to_owned(), None, None);
        let said = Observation::State { phase, progress, iteration: 0, fingerprint };
        self.observe(agent, &said);
    }

    /// An agent's host waits for its service by itself.
    pub(super) fn waiting(&mut self, agent: u64) {
        self.active(agent);
        self.observe(agent, &Observation::Waiting);
    }

    /// Passes an observation to an agent's monitor, and acts on a change of its level. A single agent of
    /// several is not suspended: it is replaced, and a human is asked about the task when it has used up
    /// its agents.
    fn observe(&mut self, no: u64, observation: &Observation) {
        let monitor = self.run.agents.get_mut(&no).and_then(|agent| agent.monitor.as_mut());
        let change = monitor.and_then(|monitor| monitor.observe(self.out.now, observation));
        let Some(LevelChange { to, because, .. }) = change else { return };
        let (notice, level) = match to {
            Level::None => return,
            Level::Warn => (Notice::StagnationWarn, Severity::Warning),
            Level::Pause | Level::Abort => (Notice::StagnationAbort, Severity::Error),
        };
        let (who, task) = self.who(no);
        self.notice((notice, level), task, format!("{who} makes no progress ({because})"));
        if to > Level::Warn {
            let what = format!("was ended because its work stalled: {because}");
            return self.give_agent_up(no, Rule::AgentStagnated, what);
        }
        let role = self.run.agents.get(&no).map_or("agent", |agent| agent.role.label());
        let summary = format!("Warned: the {role} makes no progress");
        self.decide(task, Rule::StagnationWarning, summary)
            .because(because)
            .next(format!("the {role} is replaced if this continues"));
    }

    /// What sentences call an agent, and its task.
    fn who(&self, agent: u64) -> (String, Option<usize>) {
        let Some(agent) = self.run.agents.get(&agent) else { return ("An agent".to_owned(), None) };
        let (role, task) = (agent.role.label(), agent.work.task());
        match task.map(|no| self.at(no).name()) {
            Some(name) => (format!("The {role} of {name}"), task),
            None => (format!("The {role}"), None),
        }
    }

    /// An agent must wait for its service: that time does not count.
    pub(super) fn rate_limited(&mut self, no: u64, until: Timestamp) {
        let Some(agent) = self.run.agents.get_mut(&no) else { return };
        let (wait, role) = (until.since(self.out.now), agent.role.label());
        agent.started_at = agent.started_at.after(wait);
        (agent.last_seen, agent.missed_checkpoints, agent.checkpoint_request) = (until, 0, None);
        // It is started again then, and watched from the beginning.
        let watched = &self.run.config.stagnation;
        agent.monitor = agent.monitor.take().map(|_| Monitor::new(until, watched.clone()));
        let (who, task) = self.who(no);
        let wait = duration(wait.as_secs());
        let text = format!("{who} is rate limited. It starts again in {wait} (at {until}).");
        self.notice((Notice::RateLimit, Severity::Info), task, text);
        let summary = format!("Rate limited; starting again in {wait} (at {until})");
        self.decide(task, Rule::RateLimited, summary)
            .because("the service refuses to work for now")
            .next(format!("the {role} starts again then; the wait is not counted"));
    }

    /// Time passed.
    pub(super) fn tick(&mut self) {
        let started = self.run.agents.iter().filter(|(_, agent)| !agent.queued);
        let agents: Vec<u64> = started.map(|(no, _)| *no).collect();
        for no in agents {
            self.look_at(no);
            self.observe(no, &Observation::Tick);
        }
        let overdue = |since: Timestamp| self.out.now >= since.after(EXPERT_CHECK_WAIT);
        if self.run.stage == Stage::CheckingExperts
            && self.run.experts.checking_since.is_some_and(overdue)
        {
            self.expert_checks_overdue();
        }
        let patience = Duration::from_secs(self.run.config.conflict_wait);
        while let Some((since, no)) = self.index.oldest_wait() {
            if self.out.now < since.after(patience) {
                break;
            }
            self.file_wait_over(no);
        }
    }

    /// Looks at one agent.
    fn look_at(&mut self, no: u64) {
        let config = &self.run.config;
        let (requests, most) = (config.requests, config.checkpoint_misses);
        let Some(agent) = self.run.agents.get_mut(&no) else { return };
        if self.out.now >= agent.started_at.after(config.timeout(agent.role)) {
            let limit = duration(config.timeout(agent.role).as_secs());
            let what = format!("took longer than {limit}");
            return self.give_agent_up(no, Rule::AgentTimedOut, what);
        }
        if self.out.now < due(config, agent) {
            return;
        }
        match agent.checkpoint_request.take() {
            // A checkpoint is due.
            None => {
                agent.checkpoint_request =
                    Some(CheckpointRequest { at: self.out.now, after_unknown_reply: false });
                if requests {
                    self.ask_for_checkpoint(no);
                }
            }
            // It was asked for, and did not come.
            Some(asked) => {
                agent.missed_checkpoints += 1;
                agent.last_seen = self.out.now;
                let misses = agent.missed_checkpoints;
                if asked.after_unknown_reply {
                    let limit = duration(self.run.config.checkpoint_answer);
                    let what = format!("did not answer within {limit}");
                    self.give_agent_up(no, Rule::AgentTimedOut, what);
                } else if misses >= most {
                    let what = format!("missed {} in a row", counted(misses, "checkpoint"));
                    self.give_agent_up(no, Rule::AgentStalled, what);
                }
            }
        }
    }

    fn ask_for_checkpoint(&mut self, no: u64) {
        let Some(agent) = self.run.agents.get(&no) else { return };
        let (role, task, config) = (agent.role.label(), agent.work.task(), &self.run.config);
        let (every, within) =
            (duration(config.checkpoint_every), duration(config.checkpoint_answer));
        let (request, text) = (AgentRequest::Checkpoint, prompts::checkpoint(self, no));
        self.out.effects.push(Effect::Request { agent: no, request, text });
        let summary = format!("Asked the {role} how far it is");
        self.decide(task, Rule::CheckpointRequested, summary)
            .because(format!("agent {no} reported nothing for {every}"))
            .next(format!("an answer that does not come within {within} counts as missed"));
    }

    pub(super) fn give_agent_up(&mut self, no: u64, rule: Rule, what: String) {
        let Some(agent) = self.run.agents.get(&no).cloned() else { return };
        self.retire(no);
        self.out.effects.push(Effect::End { agent: no });
        self.agent_failed((no, &agent), AgentFailure::Lost(rule, what));
    }
}

/// When the next checkpoint is due, or the answer to a request for one.
fn due(config: &super::config::Config, agent: &WorkingAgent) -> Timestamp {
    match agent.checkpoint_request {
        Some(asked) => asked.at.after(Duration::from_secs(config.checkpoint_answer)),
        None => agent.last_seen.after(Duration::from_secs(config.checkpoint_every)),
    }
}

impl State {
    /// Arms the wake-up for the next moment at which something must be looked at.
    pub(super) fn arm_wake(&mut self) {
        let config = &self.run.config;
        let started = || self.run.agents.values().filter(|agent| !agent.queued);
        let agents = started().map(|agent| {
            due(config, agent).min(agent.started_at.after(config.timeout(agent.role)))
        });
        let monitors = started().filter_map(|agent| agent.monitor.as_ref());
        let silences = monitors.filter_map(|monitor| monitor.next_change(self.out.now));
        let time_is_up = config.max_time.and_then(|most| {
            let left = most.saturating_mul(1_000).saturating_sub(self.out.worked);
            Some(self.out.now.max(self.run.earliest_activity()?).after(Duration::from_millis(left)))
        });
        let patience = Duration::from_secs(config.conflict_wait);
        let file = self.index.oldest_wait().map(|(since, _)| since.after(patience));
        let checks = self.run.experts.checking_since.map(|since| since.after(EXPERT_CHECK_WAIT));
        let next = agents.chain(silences).chain(time_is_up).chain(file).chain(checks).min();
        // One that is set too early only looks and asks again.
        let set = self.run.wake.filter(|wake| *wake > self.out.now);
        let early = set.is_some_and(|set| next.is_none_or(|next| set <= next));
        if !early {
            self.run.wake = next;
        }
    }
}
