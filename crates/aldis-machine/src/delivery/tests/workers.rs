//! Agents that workers claim: whose time counts from when, and what counts of whose reports.

use super::*;
use crate::run::Usage;

/// One task whose developer waits for a worker.
fn queued() -> Scene {
    let scene = Scene::one(|config| config.workers = true);
    assert!(scene.state.agent(1).unwrap().queued);
    scene
}

impl Scene {
    fn claimed(&mut self, worker: &str, fence: u64) {
        let agent = self.only_agent().0;
        self.happens(&Event::Claimed { agent, worker: worker.to_owned(), fence });
    }

    /// A worker reports that the only agent has ended with these words.
    fn worker_says(&mut self, fence: u64, text: &str) {
        let agent = self.only_agent().0;
        let reply = AgentReply::read(Rules::builtin(), &self.state.expected_token(agent), text);
        let exit = Some(Exit { code: Some(0), signal: None });
        let report = Box::new(Event::Finished { agent, exit, reply });
        self.happens(&Event::Worker { agent, fence, report });
    }

    fn worker(&self) -> Option<&str> {
        let agent = self.state.agent(self.only_agent().0)?;
        agent.worker.as_ref().filter(|_| !agent.queued).map(|worker| &*worker.name)
    }
}

#[test]
fn time_counts_from_the_claim_on() {
    let mut scene = queued();
    assert_eq!(scene.woken(), None, "nothing is due while it waits");
    scene.waits(100_000);
    assert_eq!((scene.worker(), scene.status()), (None, Status::Implementing));
    assert_eq!(scene.rules(), []);
    scene.claimed("one", 1);
    assert_eq!((scene.worker(), scene.rules()), (Some("one"), vec![Rule::AgentClaimed]));
    let limit = i64::try_from(scene.state.run.config.timeouts.developer).unwrap();
    scene.worker_says(1, "READY_FOR_REVIEW: task-1");
    assert!(
        scene.state.run.spending.worked_millis < 10_000,
        "{}",
        scene.state.run.spending.worked_millis
    );
    scene.claimed("one", 1);
    scene.waits(limit);
    assert!(
        scene.rules().contains(&Rule::AgentTimedOut) || scene.rules().contains(&Rule::AgentStalled)
    );
}

#[test]
fn only_the_newest_claim_counts() {
    let mut scene = queued();
    scene.claimed("one", 1);
    scene.claimed("two", 2);
    assert_eq!((scene.worker(), scene.rules()), (Some("two"), vec![Rule::WorkerLost]));
    // Whoever comes late with an older claim takes nothing.
    scene.claimed("one", 1);
    assert_eq!((scene.worker(), scene.rules()), (Some("two"), Vec::new()));
    scene.worker_says(1, "READY_FOR_REVIEW: task-1");
    assert_eq!(scene.rules(), [Rule::LateSignal]);
    assert_eq!(scene.notices(), [(Notice::LateSignalIgnored, Severity::Info)]);
    let because = &scene.outcome.decisions[0].because;
    assert_eq!(because, "the claim of its worker is void: two has the agent");
    assert_eq!(scene.only_agent(), (1, Role::Developer));
    scene.worker_says(2, "READY_FOR_REVIEW: task-1");
    assert_eq!(scene.only_agent().1, Role::Critic);
    // Before anybody claimed it, nobody can report anything.
    scene.worker_says(1, "REVIEW_PASSED: task-1");
    assert_eq!((scene.rules(), scene.only_agent().1), (vec![Rule::LateSignal], Role::Critic));
}

#[test]
fn what_was_spent_counts_under_any_claim() {
    let mut scene = queued();
    scene.claimed("one", 1);
    scene.claimed("two", 2);
    let usage = Usage { tokens: 7, micro_dollars: 3 };
    let spent = |agent| Box::new(Event::Spent { agent, usage });
    scene.happens(&Event::Worker { agent: 1, fence: 1, report: spent(1) });
    assert_eq!(scene.state.run.spending.spent, usage);
    // About another agent, or about the delivery, a worker has nothing to say.
    scene.happens(&Event::Worker { agent: 1, fence: 2, report: spent(9) });
    let abort = Box::new(Event::Abort { by: "a worker".to_owned() });
    scene.happens(&Event::Worker { agent: 1, fence: 2, report: abort });
    assert_eq!((scene.state.run.spending.spent, scene.state.ending()), (usage, None));
}

#[test]
fn a_service_that_refuses_gives_the_agent_back() {
    let mut scene = queued();
    scene.claimed("one", 1);
    let report = Box::new(Event::RateLimited { agent: 1, until: at(1_000) });
    scene.happens(&Event::Worker { agent: 1, fence: 1, report });
    assert_eq!((scene.worker(), scene.rules()), (None, vec![Rule::RateLimited]));
    scene.claimed("two", 2);
    assert_eq!((scene.worker(), scene.rules()), (Some("two"), vec![Rule::AgentClaimed]));
    assert_eq!(scene.state.agent(1).unwrap().worker.as_ref().unwrap().lost, 0);
}

#[test]
fn an_agent_that_loses_all_its_workers_has_failed() {
    let mut scene = queued();
    for fence in 1..=3 {
        scene.claimed("w", fence);
        assert_eq!(scene.only_agent().0, 1);
    }
    scene.claimed("w", 4);
    assert!(scene.rules().contains(&Rule::WorkerLost), "{:?}", scene.rules());
    assert!(scene.outcome.effects.contains(&Effect::End { agent: 1 }));
    assert_eq!((scene.only_agent(), scene.worker()), ((2, Role::Developer), None));
    assert_eq!(scene.task("task-1").counters.timeouts, 1);
}

#[test]
fn a_coordinator_that_is_back_leaves_agents_at_workers_alone() {
    let mut scene = queued();
    scene.claimed("one", 1);
    scene.happens(&Event::Recovered);
    assert_eq!((scene.only_agent(), scene.worker()), ((1, Role::Developer), Some("one")));
    assert_eq!(scene.dispatches(), [] as [&Dispatch; 0]);
    scene.happens(&Event::Abort { by: String::new() });
    let config = Box::new(scene.state.run.config.clone());
    scene.happens(&Event::Reopen { config });
    assert_eq!(scene.only_agent(), (2, Role::Developer), "those of a delivery that ended are gone");
    assert_eq!(scene.worker(), None);
}
