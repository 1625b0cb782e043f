//! What a delivery may cost and how long it may take, and how it goes on after that.

use super::*;
use crate::run::Usage;

impl Scene {
    fn spends(&mut self, tokens: u64, micro_dollars: u64) {
        let usage = Usage { tokens, micro_dollars };
        self.happens(&Event::Spent { agent: 1, usage });
    }

    fn reopens(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = Box::new(self.state.run.config.clone());
        change(&mut config);
        self.happens(&Event::Reopen { config });
    }
}

#[test]
fn the_limit_itself_is_too_much() {
    let over = Some(Ending::OverBudget);
    for (most, spent, ending) in [
        ((Some(100), None), (99, 5_000_000), None),
        ((Some(100), None), (100, 0), over),
        ((None, Some(1_000_000)), (7_000, 999_999), None),
        ((None, Some(1_000_000)), (0, 1_000_000), over),
        ((None, None), (u64::MAX, u64::MAX), None),
    ] {
        let mut scene = Scene::one(|config| (config.max_tokens, config.max_micro_dollars) = most);
        let agent = scene.only_agent().0;
        scene.spends(spent.0, spent.1);
        assert_eq!(scene.state.ending(), ending, "{most:?} {spent:?}");
        if ending.is_some() {
            assert!(scene.outcome.effects.contains(&Effect::End { agent }));
            assert_eq!(scene.rules().last(), Some(&Rule::BudgetUsedUp));
            assert_eq!(ending.map(Ending::exit_code), Some(5));
        }
    }
}

#[test]
fn costs_add_up_and_two_thirds_are_said_once() {
    let mut scene = Scene::one(|config| config.max_tokens = Some(300));
    for (tokens, notices) in [(100, 0), (99, 0), (1, 1), (50, 0)] {
        scene.spends(tokens, 0);
        let warned = (Notice::BudgetSoon, Severity::Warning);
        assert_eq!(scene.notices(), vec![warned; notices], "{tokens}");
    }
    assert_eq!(scene.state.run.spending.spent.tokens, 250);
    assert!(scene.happens(&Event::Spent { agent: 9, usage: Usage::default() }).is_nothing());
}

#[test]
fn a_verdict_counts_before_its_price() {
    let mut scene = Scene::with(Role::Auditor, |config| config.max_tokens = Some(10));
    scene.says("AUDIT_PASSED: task-1");
    scene.spends(50, 0);
    assert_eq!(scene.state.ending(), Some(Ending::Complete));
    assert_eq!(
        scene.state.run.spending.spent.tokens, 50,
        "what was spent after the end counts too"
    );
}

#[test]
fn only_time_in_which_agents_work_is_counted() {
    // The clock of a scene goes on by a second with each event.
    let mut scene = Scene::one(|config| config.max_time = Some(100));
    assert_eq!(scene.woken(), Some(at(101)));
    scene.waits(49);
    scene.says("SEEKING_DIVINE_CLARIFICATION\nTask: task-1\nQuestion: a or b?");
    assert_eq!(scene.state.run.spending.worked_millis, 50_000);
    scene.waits(10_000);
    scene.answers("b");
    assert_eq!(scene.state.run.spending.worked_millis, 50_000, "waiting for a human is no work");
    scene.waits(10);
    let agent = scene.only_agent().0;
    scene.happens(&Event::Active { agent });
    scene.seconds += 10_000;
    scene.happens(&Event::Recovered);
    assert_eq!(
        scene.state.run.spending.worked_millis, 61_000,
        "nobody worked while nobody coordinated"
    );
    let agent = scene.only_agent().0;
    let until = at(scene.seconds + 501);
    scene.happens(&Event::RateLimited { agent, until });
    assert_eq!(scene.state.run.spending.worked_millis, 62_000);
    scene.waits(520);
    assert_eq!(scene.state.ending(), None, "the service was waited for until {until}");
    scene.happens(&Event::Active { agent });
    assert_eq!(scene.state.run.spending.worked_millis, 62_000 + 21_000);
    scene.waits(16);
    assert_eq!(scene.state.ending(), None);
    scene.waits(1);
    assert_eq!(scene.state.ending(), Some(Ending::TimedOut));
    assert_eq!(Ending::TimedOut.exit_code(), 4);
}

#[test]
fn what_was_cut_short_goes_on_where_it_was() {
    let plan = || vec![spec("task-1", &[]), spec("task-2", &["task-1"])];
    type Way = (&'static str, fn(&mut Scene), fn(&mut Config));
    let ways: [Way; 3] = [
        ("budget", |scene| scene.spends(10, 0), |config| config.max_tokens = Some(20)),
        ("time", |scene| drop(scene.waits(800).clone()), |config| config.max_time = None),
        ("abort", |scene| drop(scene.happens(&Event::Abort { by: "x".into() }).clone()), |_| {}),
    ];
    for (name, end, raise) in ways {
        let mut scene = Scene::of(plan(), |config| {
            (config.max_tokens, config.max_time) = (Some(10), Some(800));
        });
        scene.task_says("task-1", "READY_FOR_REVIEW");
        let critic = scene.agent_of("task-1");
        end(&mut scene);
        let ending = scene.state.ending().expect(name);
        assert!(ending.can_be_continued(), "{name}");
        assert!(scene.outcome.effects.contains(&Effect::End { agent: critic }), "{name}");
        scene.reopens(raise);
        assert_eq!(scene.state.ending(), None, "{name}");
        // The critic is started again under a new number; the developer is done.
        let started = scene.started();
        assert_eq!((started.role, started.agent), (Role::Critic, critic + 1), "{name}");
        scene.says_as(critic, "REVIEW_PASSED: task-1");
        assert_eq!(scene.rules(), [Rule::LateSignal], "{name}");
        for (task, way) in [
            ("task-1", &["REVIEW_PASSED", "AUDIT_PASSED"][..]),
            ("task-2", &["READY_FOR_REVIEW", "REVIEW_PASSED", "AUDIT_PASSED"][..]),
        ] {
            way.iter().for_each(|name| scene.task_says(task, name));
        }
        assert_eq!(scene.state.ending(), Some(Ending::Complete), "{name}");
    }
}

#[test]
fn the_agents_of_nobodys_task_go_on_too() {
    for role in [Role::Remediation, Role::HealthAuditor, Role::Expert] {
        let mut scene = Scene::with(role, |_| {});
        scene.happens(&Event::Pause { by: String::new() });
        scene.happens(&Event::Abort { by: "x".to_owned() });
        scene.reopens(|_| {});
        assert_eq!(scene.started().role, role);
        assert!(!scene.state.run.paused, "who continues wants agents");
    }
    let mut scene = Scene::one(|config| config.planner = true);
    scene.happens(&Event::Abort { by: "x".to_owned() });
    scene.reopens(|_| {});
    assert_eq!(scene.started().role, Role::Planner);
}

#[test]
fn a_question_outlives_the_end() {
    let mut scene = Scene::one(|_| {});
    scene.says("SEEKING_DIVINE_CLARIFICATION\nTask: task-1\nQuestion: a or b?");
    scene.happens(&Event::Abort { by: "x".to_owned() });
    scene.reopens(|_| {});
    assert!(scene.state.waits_for_human());
    scene.answers("b");
    assert_eq!(scene.started().role, Role::Developer);
}

#[test]
fn a_limit_that_was_not_raised_ends_it_again() {
    let mut scene = Scene::one(|config| config.max_tokens = Some(10));
    scene.spends(12, 0);
    let config = |tokens| Config { max_tokens: Some(tokens), ..Config::default() };
    assert_eq!(scene.state.reached(&config(12)), Some(BudgetLimit::Tokens));
    assert_eq!(scene.state.reached(&config(13)), None);
    scene.reopens(|_| {});
    assert_eq!(scene.state.ending(), Some(Ending::OverBudget));
    scene.reopens(|config| config.max_tokens = Some(13));
    assert_eq!(scene.state.ending(), None);
    scene.spends(1, 0);
    assert_eq!(scene.state.ending(), Some(Ending::OverBudget));
}

#[test]
fn what_is_over_for_good_stays_over() {
    let mut complete = Scene::with(Role::Auditor, |_| {});
    complete.says("AUDIT_PASSED: task-1");
    let mut failed = Scene::one(|_| {});
    failed.says("SEEKING_DIVINE_CLARIFICATION\nTask: task-1\nQuestion: why?");
    failed.answers("fail");
    let mut halted = Scene::with(Role::Remediation, |config| config.remediation_attempts = 1);
    halted.says("nothing");
    halted.answers("halt");
    for mut scene in [complete, failed, halted] {
        let ending = scene.state.ending().expect("an end");
        assert!(!ending.can_be_continued());
        scene.reopens(|config| config.max_tokens = Some(9));
        assert!(scene.outcome.is_nothing(), "{ending:?}");
        assert_eq!(scene.state.ending(), Some(ending));
    }
}

#[test]
fn limits_can_be_changed_after_a_crash() {
    let mut scene = Scene::one(|_| {});
    let lost = scene.only_agent().0;
    scene.reopens(|config| config.max_tokens = Some(5));
    assert_eq!(scene.rules(), [Rule::Continued]);
    assert_eq!(scene.started().agent, lost + 1);
    scene.spends(5, 0);
    assert_eq!(scene.state.ending(), Some(Ending::OverBudget));
}
