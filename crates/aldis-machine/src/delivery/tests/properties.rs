//! What holds whatever agents say and whenever: replay, parts, completeness, an end.

use proptest::prelude::*;

use super::pairs::well_formed;
use super::*;
use crate::proof::{CheckResult, CheckStatus, Inspection};
use crate::run::Usage;
use crate::{proof, stagnation};

/// One thing that could happen, chosen by number.
fn event(state: &State, choice: (u8, u8, u8)) -> Event {
    let (what, who, which) = (choice.0 % 42, usize::from(choice.1), usize::from(choice.2));
    let agents: Vec<u64> = state.run.agents.keys().copied().collect();
    let agent = match agents.get(who % agents.len().max(1)) {
        Some(agent) if what != 23 => *agent,
        _ => u64::from(choice.1),
    };
    let kind = SignalKind::ALL[which % SignalKind::ALL.len()];
    let id = state.agent(agent).and_then(|live| match &live.work {
        Work::Task { task } => Some(state.tasks[*task].spec.id.clone()),
        _ => None,
    });
    let request = state.run.experts.consultations.keys().next().cloned().unwrap_or_default();
    let text = well_formed(kind)
        .replace("task-1", id.as_deref().unwrap_or("a"))
        .replace("req-1", if request.is_empty() { "req-1" } else { &request });
    let reply = |text: &str| AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, text);
    let exit = |code| Some(Exit { code: Some(code), signal: None });
    match what {
        0..=11 => Event::Finished { agent, exit: exit(0), reply: reply(&text) },
        12 => Event::Finished { agent, exit: exit(1), reply: reply(&text) },
        13 => Event::Finished { agent, exit: exit(0), reply: reply("Almost.") },
        14 => Event::Reported { agent, reply: reply(&text) },
        15 => Event::Tick,
        16 => Event::Recovered,
        17 => {
            let words = ["fail", "go on", "retry", "override", "accept"];
            let id = state.run.questions.keys().next().cloned().unwrap_or_default();
            Event::Answer { id, text: words[which % words.len()].to_owned(), by: String::new() }
        }
        18 => {
            if which % 2 == 0 {
                Event::Pause { by: String::new() }
            } else {
                Event::Resume { by: String::new() }
            }
        }
        19 => Event::Worked { agent },
        20 => Event::Waiting { agent },
        21 => {
            let usage = Usage { tokens: u64::from(choice.2), micro_dollars: 0 };
            Event::Spent { agent, usage }
        }
        24..=26 => {
            state.tasks.iter().find_map(|task| checks_end(task, which)).unwrap_or(Event::Tick)
        }
        27..=41 => duty(state, agent),
        22 if which % 4 == 0 => Event::Abort { by: "x".to_owned() },
        22 => Event::Reopen { config: Box::new(roomy(&state.run)) },
        _ => Event::Merged { task: "a".into(), ok: which % 2 == 0, detail: String::new() },
    }
}

/// The next thing that happens to the checks of a task, if they run.
fn checks_end(task: &Task, which: usize) -> Option<Event> {
    let Wait::Checks { .. } = task.wait else { return None };
    let id = task.spec.id.clone();
    if task.proof.current().is_none_or(|round| round.inspection.is_none()) {
        let problem = which.is_multiple_of(8).then(|| "the disk is full".to_owned());
        let seen = Box::new(Inspection { problem, ..Inspection::default() });
        return Some(Event::Inspected { task: id, head: None, dirty: false, seen });
    }
    let status = if which.is_multiple_of(4) { CheckStatus::Failed } else { CheckStatus::Passed };
    let result = Box::new(CheckResult::new("", "make test", status));
    Some(Event::CheckEnded { task: id, result })
}

/// The limits of a run, none of which is reached.
fn roomy(run: &DeliveryRun) -> Config {
    let max_tokens = run.config.max_tokens.map(|_| run.spending.spent.tokens + 2_000);
    Config { max_tokens, max_time: None, ..run.config.clone() }
}

fn started(flags: u16) -> Start {
    let mut tasks = vec![
        spec("a", &[]),
        spec("b", &["a"]),
        spec("c", &[]),
        spec("d", &["b", "c"]),
        spec("e", &["a"]),
        spec("f", &["a"]),
        spec("g", &["a"]),
    ];
    let files = [(0, &["x"][..]), (2, &["./x", "y"]), (4, &["x"]), (5, &["y", "./x"]), (6, &["x"])];
    for (no, files) in files {
        tasks[no].files = files.iter().map(|&file| file.to_owned()).collect();
    }
    if flags & 1 != 0 {
        tasks[1].acceptance.clear();
    }
    let mut config = Config {
        slots: u32::from(flags >> 1 & 3) + 1,
        business_analyst: flags & 1 != 0,
        planner: flags & 8 != 0,
        worktrees: flags & 16 != 0,
        requests: flags & 32 != 0,
        dispatch_limit: 12,
        max_tokens: (flags & 64 != 0).then_some(2_000),
        stagnation: stagnation::Config {
            enabled: flags & 128 != 0,
            ..stagnation::Config::supervised()
        },
        ..Config::default()
    };
    if flags & 256 != 0 {
        config.proof = proof::Config::unnamed("make test");
    }
    config.experts.insert("crypto".to_owned(), String::new());
    Start { plan: Plan { title: "P".to_owned(), tasks }, config, token: None }
}

/// An agent does what its role is for.
fn duty(state: &State, agent: u64) -> Event {
    let Some(live) = state.agent(agent) else { return Event::Tick };
    let id = state.subject_of(agent).unwrap_or_default();
    let text = match live.role {
        Role::BusinessAnalyst => format!(
            "EXPANDED_TASK_SPECIFICATION: {id}\nConfidence: HIGH\nAcceptance Criteria:\n- x\n"
        ),
        Role::Developer => format!("READY_FOR_REVIEW: {id}"),
        Role::Critic => format!("REVIEW_PASSED: {id}"),
        Role::Auditor => format!("AUDIT_PASSED: {id}"),
        Role::Remediation => "REMEDIATION_COMPLETE".to_owned(),
        Role::HealthAuditor => "HEALTH_AUDIT: HEALTHY".to_owned(),
        Role::Expert => format!("EXPERT_ADVICE: {id}"),
        Role::Planner => "None.".to_owned(),
    };
    let reply = AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, &text);
    Event::Finished { agent, exit: None, reply }
}

/// Answers every question and lets every agent do its duty; the run must end.
fn calm(state: &mut State, mut seconds: i64) {
    for _ in 0..500 {
        if state.ending().is_some_and(|ending| !ending.can_be_continued()) {
            return;
        }
        seconds += 1;
        let event = if state.ending().is_some() {
            Event::Reopen { config: Box::new(roomy(&state.run)) }
        } else if let Some(id) = state.run.questions.keys().next() {
            Event::Answer { id: id.clone(), text: "go on".to_owned(), by: String::new() }
        } else if let Some(agent) = state.run.agents.keys().next() {
            duty(state, *agent)
        } else if let Some(event) = state.tasks.iter().find_map(|task| checks_end(task, 1)) {
            event
        } else if let Some(task) = state.tasks.iter().find(|task| task.wait == Wait::Merge) {
            Event::Merged { task: task.spec.id.clone(), ok: true, detail: String::new() }
        } else if state.run.paused {
            Event::Resume { by: String::new() }
        } else {
            seconds += 1_800;
            Event::Tick
        };
        state.on_event(at(seconds), &event);
        invariants(state);
    }
    panic!("no end: {state:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens(
        flags in any::<u16>(),
        choices in proptest::collection::vec((any::<(u8, u8, u8)>(), 0_i64..400), 1..120),
    ) {
        let start = started(flags);
        let mut state = State::start(at(0), start.clone());
        let mut journal = vec![(at(0), Event::Begin)];
        state.on_event(at(0), &Event::Begin);
        let mut seconds = 0;
        for (choice, later) in choices {
            seconds += later;
            let event = event(&state, choice);
            let before = state.clone();
            let outcome = state.on_event(at(seconds), &event);
            let changed = state.take_changed();
            invariants(&state);
            // What changed is said, and nothing changes in silence.
            for (no, (was, is)) in before.tasks.iter().zip(&state.tasks).enumerate() {
                prop_assert!(was == is || changed.contains(&no), "{event:?}");
            }
            // Lookups that are kept and lookups that are made anew lead to the same steps.
            let mut again = State::from_parts(before.run, before.tasks).unwrap();
            prop_assert_eq!(&again.on_event(at(seconds), &event), &outcome);
            prop_assert_eq!(&again, &state);
            journal.push((at(seconds), event));
        }
        let mut replayed = State::start(at(0), start);
        for (at, event) in &journal {
            replayed.on_event(*at, event);
        }
        prop_assert_eq!(&replayed, &state);
        calm(&mut state, seconds);
    }
}
