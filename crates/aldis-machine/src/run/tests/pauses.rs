//! Suspended for missing progress: not for ever.

use super::*;
use crate::{HumanCommand, Machine as _};

/// A run that is suspended after twenty minutes of silence.
fn suspended(change: impl FnOnce(&mut Config)) -> State {
    let mut state = begun(|config| {
        config.iteration_timeout = 100_000;
        change(config);
    });
    state.on_event(at(600), &Event::Tick);
    let outcome = state.on_event(at(1_200), &Event::Tick);
    assert_eq!(outcome.effects[0], Effect::Suspend);
    state
}

#[track_caller]
fn ends_at(state: &mut State, second: i64, rule: &str, ending: Ending) {
    assert_eq!(state.next_wake(), Some(at(second)), "the driver is told when to look");
    assert_eq!(state.on_event(at(second - 1), &Event::Tick), Outcome::nothing());
    let outcome = state.on_event(at(second), &Event::Tick);
    assert_eq!(outcome.effects[..2], [Effect::Continue, Effect::End { grace: 30 }]);
    assert_eq!(outcome.decisions[0].rule, rule);
    state.on_event(at(second + 1), &exited(None, Some(15)));
    assert_eq!(state.ending(), Some(ending));
}

#[test]
fn nobody_resumes_it_and_the_run_ends() {
    let mut state = suspended(|_| {});
    ends_at(&mut state, 1_200 + 3_600, "run/pause-expired", Ending::Stagnated);
}

#[test]
fn the_absolute_cap_and_the_time_of_the_run_go_on() {
    let mut state = suspended(|config| config.stagnation.abort_timeout = 1_800);
    ends_at(&mut state, 1_800, "run/stagnation-abort", Ending::Stagnated);
    let mut state = suspended(|config| config.timeout = 3_000);
    ends_at(&mut state, 3_000, "run/timed-out", Ending::TimedOut);
}

#[test]
fn it_waits_without_end_where_that_is_wanted() {
    let mut state = suspended(|config| config.stagnation.pause_limit = None);
    assert_eq!(state.next_wake(), Some(at(86_400)), "only the time of the run is left");
    assert_eq!(state.on_event(at(86_399), &Event::Tick), Outcome::nothing());
    state.on_event(at(86_399), &Event::Resume { by: String::new() });
    assert_eq!(state.status, Status::Working);
}

/// The time of one iteration is the agent's: it could not use it while it was suspended.
#[test]
fn a_resumed_agent_has_the_rest_of_its_iteration() {
    let mut state = suspended(|config| config.iteration_timeout = 1_300);
    state.on_event(at(4_000), &Event::Resume { by: String::new() });
    assert_eq!(state.on_event(at(4_099), &Event::Tick).effects, []);
    assert_eq!(state.on_event(at(4_100), &Event::Tick).effects, [Effect::End { grace: 30 }]);
    assert_eq!(state.worked(at(4_100)), 4_100_000, "and the run was not waiting");
}

#[test]
fn a_pause_of_a_human_has_no_limit() {
    let mut state = begun(|config| config.timeout = 3_000);
    state.on_event(at(10), &Event::Pause { by: "somebody".to_owned() });
    assert_eq!(state.next_wake(), None);
    assert_eq!(state.on_event(at(500_000), &Event::Tick), Outcome::nothing());
    state.on_event(at(500_000), &Event::Resume { by: String::new() });
    assert_eq!(state.worked(at(500_000)), 10_000);
}

/// 0.1.0 stopped the clock of a suspended run and did not store since when it was suspended.
#[test]
fn a_run_that_0_1_0_suspended_ends_too() {
    let mut state = suspended(|_| {});
    state.clock.waiting_since = state.clock.paused_at.take();
    assert_eq!(state.on_event(at(4_799), &Event::Tick), Outcome::nothing());
    let outcome = state.on_event(at(4_800), &Event::Tick);
    assert_eq!(outcome.effects[..2], [Effect::Continue, Effect::End { grace: 30 }]);
}

/// A human who knows better ends a wait at once; nothing else is waited for.
#[test]
fn a_wait_is_ended_by_a_human() {
    let limited = Event::Limited { what: "limit".to_owned(), until: None };
    for (name, before) in [("limit", Some(limited)), ("crash", None)] {
        let mut state = begun(|_| {});
        before.iter().for_each(|event| drop(state.on_event(at(1), event)));
        state.on_event(at(2), &exited(Some(1), None));
        assert!(state.next_wake().is_some_and(|until| until > at(3)), "{name}");
        let resume = state.event_of(&HumanCommand::Resume, "a test".to_owned()).unwrap();
        let outcome = state.on_event(at(3), &resume);
        assert!(matches!(&outcome.effects[..], [Effect::Start { iteration: 1, .. }]), "{name}");
        assert_eq!(state.status, Status::Working, "{name}");
        assert!(state.event_of(&HumanCommand::Resume, "a test".to_owned()).is_err(), "{name}");
    }
}

/// What ended works no longer, and what was worked before it was reopened still counts.
#[test]
fn time_is_counted_while_the_run_works() {
    let mut state = begun(|config| config.max_iterations = 1);
    iteration(&mut state, 10, "Still at it.", None);
    assert_eq!(state.ending(), Some(Ending::IterationsUsedUp));
    assert_eq!((state.worked(at(10)), state.worked(at(9_000))), (10_000, 10_000));
    let config = Config { max_iterations: 2, ..state.setup().config.clone() };
    state.on_event(at(20_000), &Event::Reopen { config: Box::new(config) });
    assert_eq!(state.worked(at(20_005)), 15_000);
    assert_eq!(state.worked_since_opened(at(20_005)), 5_000, "its time limit begins anew");
}
