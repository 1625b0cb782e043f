//! Crashes of the agent: started again after a growing pause, but not for ever.

use super::*;
use crate::Machine as _;

fn crash(output: &str) -> Event {
    Event::Exited(AgentExit { code: Some(42), signal: None, output: output.to_owned() })
}

#[track_caller]
fn waits_until(state: &State) -> Timestamp {
    match state.status {
        Status::Backoff { until } => until,
        _ => panic!("{:?}", state.status),
    }
}

#[test]
fn a_crashed_agent_is_started_again_after_a_growing_pause() {
    let mut state = begun(|_| {});
    for (now, wait) in [(100, 10), (200, 20)] {
        let outcome = state.on_event(at(now), &crash("panic at line 7"));
        assert_eq!(outcome.effects, [], "nobody is called for the first crashes");
        assert_eq!(waits_until(&state), at(now + wait));
        assert_eq!(state.next_wake(), Some(at(now + wait)));
        assert_eq!(state.on_event(at(now + wait - 1), &Event::Tick), Outcome::nothing());
        let outcome = state.on_event(at(now + wait), &Event::Tick);
        let [Effect::Start { iteration: 1, prompt }] = &outcome.effects[..] else {
            panic!("{outcome:?}")
        };
        for part in ["exited with code 42", "> panic at line 7", "iteration 1 of 50"] {
            assert!(prompt.contains(part), "{part} in {prompt}");
        }
    }
    let outcome = state.on_event(at(300), &crash("panic at line 8"));
    assert_eq!(state.ending(), Some(Ending::Crashed));
    let decision = outcome.decision().unwrap();
    assert_eq!(decision.summary, "Crashed 3 times in a row");
    assert_eq!(decision.evidence[0].quote, "panic at line 8");
}

/// Whoever writes has seen the crash: nobody waits for the end of the pause.
#[test]
fn a_message_ends_the_pause() {
    let mut state = begun(|_| {});
    state.on_event(at(100), &crash("no space left"));
    let message = Event::Tell { text: "There is space again.".to_owned(), by: String::new() };
    let outcome = state.on_event(at(101), &message);
    let [Effect::Start { iteration: 1, prompt }] = &outcome.effects[..] else {
        panic!("{outcome:?}")
    };
    for part in ["> There is space again.", "> no space left"] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    assert_eq!(outcome.decision().unwrap().because, "a human sent a message");
}

#[test]
fn only_crashes_in_a_row_count() {
    let mut state = begun(|_| {});
    for round in 0..20 {
        let now = round * 1_000;
        for crashes in 0..2 {
            state.on_event(at(now + crashes * 100), &crash("x"));
            state.on_event(at(now + crashes * 100 + 50), &Event::Tick);
        }
        state.on_event(at(now + 500), &Event::Activity);
        let outcome = iteration(&mut state, now + 500, "Still at it.", None);
        assert_eq!(state.ending(), None, "{round}");
        let Some(Effect::Start { prompt, .. }) = outcome.effects.last() else { panic!() };
        assert!(!prompt.contains("crashed"), "the attempt before did not: {prompt}");
    }
}

#[test]
fn without_any_allowed_the_first_crash_ends_the_run() {
    let mut state = begun(|config| config.max_crashes = 0);
    state.on_event(at(1), &crash(""));
    assert_eq!(state.ending(), Some(Ending::Crashed));
}

/// A run that crashed is reopened with the same iteration and a new count.
#[test]
fn a_run_that_crashed_is_reopened() {
    let mut state = begun(|config| config.max_crashes = 0);
    state.on_event(at(1), &crash("disk full"));
    let config = Box::new(Config { max_crashes: 1, ..Config::default() });
    let outcome = state.on_event(at(2), &Event::Reopen { config });
    let Some(Effect::Start { iteration: 1, prompt }) = outcome.effects.last() else { panic!() };
    assert!(prompt.contains("> disk full"), "{prompt}");
    state.on_event(at(3), &crash(""));
    assert_eq!(waits_until(&state), at(13));
}

#[test]
fn waiting_after_a_crash_is_no_stagnation_and_takes_no_time() {
    let mut state = begun(|config| {
        (config.crash_wait, config.timeout, config.max_crashes) = (10_000, 5_000, 1);
    });
    state.on_event(at(10), &crash(""));
    for now in (10..10_010).step_by(100) {
        assert_eq!(state.on_event(at(now), &Event::Tick), Outcome::nothing(), "{now}");
    }
    state.on_event(at(10_010), &Event::Tick);
    assert_eq!(state.status, Status::Working);
    assert_eq!(state.monitor.level(), stagnation::Level::None);
    assert!(state.worked(at(10_010)) <= 10_000, "{}", state.worked(at(10_010)));
}

#[test]
fn a_crash_that_used_up_the_budget_ends_the_run() {
    let mut state = begun(|config| config.max_tokens = Some(100));
    state.on_event(at(1), &Event::Pause { by: String::new() });
    state.on_event(at(1), &Event::Spent(Usage { tokens: 100, micro_dollars: 0 }));
    state.on_event(at(2), &crash(""));
    assert_eq!(state.ending(), Some(Ending::OverBudget));
    assert!(state.iteration_unfinished, "its iteration is repeated with a higher budget");
}

#[test]
fn humans_need_not_wait_for_the_pause_after_a_crash() {
    let waiting = || {
        let mut state = begun(|_| {});
        state.on_event(at(1), &crash(""));
        state
    };
    let mut state = waiting();
    let outcome = state.on_event(at(2), &Event::Abort { by: "x".to_owned() });
    assert_eq!(state.ending(), Some(Ending::Aborted));
    assert!(outcome.effects.contains(&Effect::Finish { ending: Ending::Aborted }));

    let mut state = waiting();
    let outcome = state.on_event(at(2), &Event::Reopen { config: Box::default() });
    assert!(matches!(outcome.effects[..], [Effect::Start { iteration: 1, .. }]), "{outcome:?}");

    let mut state = waiting();
    assert_eq!(state.on_event(at(900), &Event::Recovered).effects, []);
    assert_eq!(waits_until(&state), at(11), "it waits as before");
    assert!(matches!(
        state.on_event(at(901), &Event::Tick).effects[..],
        [Effect::Start { iteration: 1, .. }]
    ));
}

#[test]
fn the_pause_after_a_crash_has_a_limit() {
    let mut state = begun(|config| config.max_crashes = 100);
    let mut now = 0;
    for _ in 0..100 {
        state.on_event(at(now), &crash(""));
        let until = waits_until(&state);
        assert!(until <= at(now + 15 * 60), "{now}: {until}");
        now += 15 * 60;
        state.on_event(at(now), &Event::Tick);
    }
    state.on_event(at(now), &crash(""));
    assert_eq!(state.ending(), Some(Ending::Crashed));
}

/// What will not pass by itself is not tried again, and nobody's work is kept for an agent that
/// never ran.
#[test]
fn an_agent_that_cannot_be_started_ends_the_run_at_once() {
    let mut state = begun(|_| {});
    let fingerprint = Some("a".to_owned());
    state.on_event(
        at(0),
        &Event::Looked(WorkTree { fingerprint, dirty: true, ..WorkTree::default() }),
    );
    let what = "no program `claude` on the PATH".to_owned();
    let outcome = state.on_event(at(1), &Event::LaunchFailed { what: what.clone() });
    assert_eq!(state.ending(), Some(Ending::Crashed));
    let decision = outcome.decision().unwrap();
    assert_eq!((&*decision.rule, &decision.because), ("run/agent-not-started", &what));
    assert!(!keeps_work(&outcome), "{outcome:?}");
}

/// Found by the simulator: the agent was started again, and spent more.
#[test]
fn a_new_supervisor_starts_no_agent_that_is_over_budget() {
    let mut state = begun(|config| {
        (config.max_tokens, config.iteration_timeout) = (Some(100), 60);
    });
    state.on_event(at(61), &Event::Tick);
    assert_eq!(state.status, Status::Ending { with: None });
    state.on_event(at(62), &Event::Spent(Usage { tokens: 140, micro_dollars: 0 }));
    let outcome = state.on_event(at(70), &Event::Recovered);
    assert_eq!(state.ending(), Some(Ending::OverBudget));
    assert!(!outcome.effects.iter().any(|it| matches!(it, Effect::Start { .. })), "{outcome:?}");
}
