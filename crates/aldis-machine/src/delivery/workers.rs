//! Agents that workers run: who has which, and what still counts of what a worker reports.
//!
//! A claim carries a fencing number that grows each time an agent is claimed. What is reported under
//! an older one is refused here, at the revision at which it would have counted.

use super::event::Event;
use super::rule::Rule;
use super::run::WorkerClaim;
use super::state::State;
use crate::stagnation::Monitor;
use crate::words::{counted, cut};

/// How long the name of a worker may be.
const NAME_MAX: usize = 64;

impl State {
    /// A worker has claimed an agent: its time counts from now on. An agent whose worker was lost is
    /// started again, but not for ever: what it does may be what ends its workers.
    pub(super) fn claimed(&mut self, no: u64, worker: &str, fence: u64) {
        let (now, limit) = (self.out.now, self.run.config.timeout_limit);
        let watched = self.run.config.stagnation.clone();
        let Some(agent) = self.run.agents.get_mut(&no) else { return };
        if agent.worker.as_ref().is_some_and(|before| before.fence >= fence) {
            return;
        }
        let name = cut(worker, NAME_MAX).to_owned();
        let before = agent.worker.take();
        let gone = before.as_ref().filter(|_| !agent.queued).map(|before| before.name.clone());
        let lost = before.map_or(0, |before| before.lost) + u32::from(gone.is_some());
        agent.worker = Some(WorkerClaim { name: name.clone(), fence, lost });
        (agent.queued, agent.started_at, agent.last_seen) = (false, now, now);
        (agent.missed_checkpoints, agent.checkpoint_request) = (0, None);
        agent.monitor = agent.monitor.take().map(|_| Monitor::new(now, watched));
        let (role, task) = (agent.role.label(), agent.work.task());
        if lost >= limit {
            let what = format!("lost its worker {} in a row", counted(lost, "time"));
            return self.give_agent_up(no, Rule::WorkerLost, what);
        }
        match gone {
            None => self
                .decide(task, Rule::AgentClaimed, format!("Worker {name} runs the {role}"))
                .because("it has a free slot and what the agent needs")
                .next(format!("the {role}'s reply decides")),
            Some(gone) => self
                .decide(task, Rule::WorkerLost, format!("Worker {name} starts the {role} again"))
                .because(format!("worker {gone} no longer has agent {no}"))
                .next(format!("nothing that worker {gone} still reports of this agent counts")),
        };
    }

    /// A worker reports something of an agent that it claimed.
    pub(super) fn worker_reports(&mut self, no: u64, fence: u64, report: &Event) {
        if about(report) != Some(no) {
            return;
        }
        let agent = self.run.agents.get(&no);
        let void =
            agent.filter(|agent| !agent.is_claimed_by(fence)).map(|agent| match &agent.worker {
                Some(claim) => {
                    format!("the claim of its worker is void: {} has the agent", claim.name)
                }
                None => "the claim of its worker is void".to_owned(),
            });
        match (report, void) {
            // It was spent, whoever has the agent now.
            (Event::Spent { .. }, _) | (_, None) => self.take(report),
            (Event::Finished { reply, .. } | Event::Reported { reply, .. }, Some(because)) => {
                self.late(no, reply, because);
            }
            (_, Some(_)) => return,
        }
        // The worker gives it back, and any worker may start it again then.
        if matches!(report, Event::RateLimited { .. })
            && let Some(agent) = self.run.agents.get_mut(&no)
        {
            agent.queued = true;
        }
    }
}

/// The agent that a report of a worker is about.
fn about(report: &Event) -> Option<u64> {
    match report {
        Event::Finished { agent, .. }
        | Event::Reported { agent, .. }
        | Event::Active { agent }
        | Event::Worked { agent }
        | Event::Waiting { agent }
        | Event::Spent { agent, .. }
        | Event::RateLimited { agent, .. } => Some(*agent),
        _ => None,
    }
}
