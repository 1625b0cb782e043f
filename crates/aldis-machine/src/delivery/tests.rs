//! The delivery machine against its specification.

mod budgets;
mod cases;
mod experts;
mod files;
mod identity;
mod ledger;
mod limits;
mod order;
mod pairs;
mod plans;
mod prompts;
mod properties;
mod questions;
mod repair;
mod rules;
mod sentences;
mod stagnation;
mod stored;
mod stored_0_1_0;
mod way;
mod workers;

use super::*;
use crate::run::Exit;
use aldis_signal::scan::Rules;
use aldis_signal::time::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
}

fn spec(id: &str, needs: &[&str]) -> TaskSpec {
    TaskSpec {
        id: id.to_owned(),
        title: format!("Title of {id}"),
        description: "What is to be done.".to_owned(),
        acceptance: vec!["the tests pass".to_owned()],
        needs: needs.iter().map(|&need| need.to_owned()).collect(),
        ..TaskSpec::default()
    }
}

/// A delivery under way, and what happened in it.
struct Scene {
    state: State,
    seconds: i64,
    outcome: Outcome,
}

impl Scene {
    fn of(tasks: Vec<TaskSpec>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        let plan = Plan { title: "Plan".to_owned(), tasks };
        let state = State::start(at(0), Start { plan, config, token: None });
        let mut scene = Self { state, seconds: 0, outcome: Outcome::default() };
        scene.happens(&Event::Begin);
        scene
    }

    /// One task, `task-1`, whose developer is at work.
    fn one(change: impl FnOnce(&mut Config)) -> Self {
        Self::of(vec![spec("task-1", &[])], change)
    }

    /// One task that is with this role.
    fn with(role: Role, change: impl FnOnce(&mut Config)) -> Self {
        let mut scene = match role {
            Role::BusinessAnalyst => {
                let task = TaskSpec { acceptance: Vec::new(), ..spec("task-1", &[]) };
                Self::of(vec![task], |config| {
                    config.business_analyst = true;
                    change(config);
                })
            }
            _ => Self::one(change),
        };
        let way: &[&str] = match role {
            Role::Critic => &["READY_FOR_REVIEW: task-1"],
            Role::Auditor => &["READY_FOR_REVIEW: task-1", "REVIEW_PASSED: task-1"],
            Role::Remediation => &["INFRA_BLOCKED: task-1"],
            Role::HealthAuditor => &["INFRA_BLOCKED: task-1", "REMEDIATION_COMPLETE"],
            Role::Expert => &[REQUEST],
            _ => &[],
        };
        if role == Role::Expert {
            scene.state.run.experts.known.insert("crypto".to_owned(), "keys".to_owned());
        }
        way.iter().for_each(|text| scene.says(text));
        assert_eq!(scene.only_agent().1, role);
        scene
    }

    fn happens(&mut self, event: &Event) -> &Outcome {
        self.seconds += 1;
        self.outcome = self.state.on_event(at(self.seconds), event);
        self.check();
        &self.outcome
    }

    /// The only agent at work.
    fn only_agent(&self) -> (u64, Role) {
        let agents: Vec<_> = self.state.run.agents.iter().collect();
        let [(agent, live)] = agents[..] else { panic!("{agents:?}") };
        (*agent, live.role)
    }

    /// The agent at work on a task.
    fn agent_of(&self, id: &str) -> u64 {
        self.task(id).agent().unwrap_or_else(|| panic!("{:?}", self.task(id)))
    }

    /// The only agent at work ends with these words.
    fn says(&mut self, text: &str) {
        let agent = self.only_agent().0;
        self.says_as(agent, text);
    }

    fn says_as(&mut self, agent: u64, text: &str) {
        let reply = AgentReply::read(Rules::builtin(), &self.state.expected_token(agent), text);
        let exit = Some(Exit { code: Some(0), signal: None });
        self.happens(&Event::Finished { agent, exit, reply });
    }

    /// The agent of a task ends with a signal about it.
    fn task_says(&mut self, id: &str, name: &str) {
        self.says_as(self.agent_of(id), &format!("{name}: {id}"));
    }

    fn crashes(&mut self, agent: u64) {
        let exit = Some(Exit { code: Some(1), signal: None });
        self.happens(&Event::Finished { agent, exit, reply: AgentReply::default() });
    }

    fn answers(&mut self, text: &str) {
        let id = self.state.run.questions.keys().next().expect("a question").clone();
        self.happens(&Event::Answer { id, text: text.to_owned(), by: String::new() });
    }

    fn waits(&mut self, seconds: i64) -> &Outcome {
        self.seconds += seconds - 1;
        self.happens(&Event::Tick)
    }

    fn task(&self, id: &str) -> &Task {
        self.state.task(id).expect("a task")
    }

    fn status(&self) -> Status {
        self.state.tasks[0].status()
    }

    fn dispatches(&self) -> Vec<&Dispatch> {
        let effects = self.outcome.effects.iter();
        effects
            .filter_map(|effect| match effect {
                Effect::Dispatch(dispatch) => Some(dispatch),
                _ => None,
            })
            .collect()
    }

    /// The only agent that was started by the last event.
    fn started(&self) -> &Dispatch {
        let started = self.dispatches();
        let [dispatch] = started[..] else { panic!("{:#?}", self.outcome) };
        dispatch
    }

    /// When the next tick is wanted.
    fn woken(&self) -> Option<Timestamp> {
        crate::Machine::next_wake(&self.state)
    }

    fn rules(&self) -> Vec<Rule> {
        self.outcome.decisions.iter().map(|decision| rule(&decision.rule)).collect()
    }

    /// The only question that is open.
    fn question(&self) -> &Question {
        let questions: Vec<_> = self.state.run.questions.values().collect();
        let [question] = questions[..] else { panic!("{questions:?}") };
        question
    }

    fn notices(&self) -> Vec<(Notice, Severity)> {
        let notice = |effect: &Effect| match effect {
            Effect::Notice { notice, level, .. } => Some((*notice, *level)),
            _ => None,
        };
        self.outcome.effects.iter().filter_map(notice).collect()
    }

    /// What must hold after every event, whatever it was.
    fn check(&self) {
        invariants(&self.state);
        for noted in &self.outcome.decisions {
            let decision = noted;
            rule(&decision.rule);
            for part in [&decision.summary, &decision.because, &decision.remedy] {
                assert!(!part.is_empty(), "{decision:?}");
            }
        }
    }
}

/// The rule of this id.
fn rule(id: &str) -> Rule {
    let known = Rule::ALL.iter().find(|rule| rule.as_str() == id);
    *known.unwrap_or_else(|| panic!("{id} is no rule"))
}

/// What must hold of every state.
fn invariants(state: &State) {
    let State { run, tasks, .. } = state;
    let slots = usize::try_from(run.config.slots).unwrap();
    assert!(run.agents.len() <= slots, "{} agents for {slots} slots", run.agents.len());
    for (no, agent) in &run.agents {
        assert!(*no <= run.agents_started);
        match &agent.work {
            Work::Task { task } => assert_eq!(tasks[*task].agent(), Some(*no)),
            Work::Request { request } => assert!(run.experts.consultations.contains_key(request)),
            Work::Infrastructure => assert!(run.remediation.is_some()),
            Work::Plan => assert_eq!(run.stage, Stage::Planning),
        }
    }
    for task in tasks {
        let complete = task.status() == Status::Complete;
        assert!(
            !complete || task.spec.done || task.hands.audited_by > task.hands.reviewed_by,
            "{task:?}"
        );
        assert!(!complete || task.spec.done || task.hands.reviewed_by.is_some(), "{task:?}");
        assert!(!complete || task.holds.is_empty(), "{task:?}");
        match &task.wait {
            Wait::Agent { agent } => {
                let ended = run.ending.is_some();
                assert!(ended || run.agents.contains_key(agent), "{task:?}");
            }
            Wait::Human { question } => assert!(run.questions.contains_key(question)),
            Wait::Expert { request } => assert!(run.experts.consultations.contains_key(request)),
            Wait::Infrastructure => assert!(run.remediation.is_some()),
            _ => {}
        }
        for need in task.spec.needs.iter().filter(|_| task.dispatched > 0) {
            assert_eq!(state.task(need).map(Task::status), Some(Status::Complete));
        }
    }
}

const REQUEST: &str = "EXPERT_REQUEST\nTarget Agent: crypto\nRequest Type: decision\n\
    Context Snapshot: notes/kdf.md\n\n---DELEGATION PROMPT START---\nWhich KDF?\n\
    ---DELEGATION PROMPT END---";
