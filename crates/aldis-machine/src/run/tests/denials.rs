//! Permissions that the host denies.

use super::*;

fn denied(tool: &str, what: &str) -> Event {
    let [tool, what] = [tool, what].map(str::to_owned);
    Event::PermissionDenied { tool, what, cure: "allow it: `aldis run --allow X`".to_owned() }
}

#[test]
fn a_permission_denied_once_is_told_to_the_agent() {
    let mut state = begun(|_| {});
    let outcome = state.on_event(at(1), &denied("Write", "src/a.rs"));
    assert_eq!(outcome.effects, []);
    let decision = outcome.decision().unwrap();
    assert_eq!(decision.rule, "run/permission-denied");
    assert_eq!(decision.because, "Write \"src/a.rs\"");
    assert!(decision.remedy.ends_with("; then allow it: `aldis run --allow X`"), "{decision:?}");
    state.on_event(at(2), &denied("Bash", "npm test"));
    let outcome = iteration(&mut state, 3, "I wrote the file.", None);
    let Some(Effect::Start { iteration: 2, prompt }) = outcome.effects.last() else { panic!() };
    for part in ["Write \"src/a.rs\"", "Bash \"npm test\"", "find another way"] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
}

#[test]
fn the_same_permission_denied_twice_ends_the_run() {
    // In one iteration, and in two.
    for between in [false, true] {
        let mut state = begun(|_| {});
        state.on_event(at(1), &denied("Write", "src/a.rs"));
        state.on_event(at(1), &denied("Write", "src/b.rs"));
        if between {
            iteration(&mut state, 2, "Still at it.", None);
        }
        let outcome = state.on_event(at(3), &denied("Write", "src/a.rs"));
        assert_eq!(outcome.effects, [Effect::End { grace: 30 }]);
        // Whatever it claims now.
        let signals = reports("chorus", "<chorus>COMPLETE</chorus>");
        state.on_event(at(4), &Event::Reported { signals });
        let outcome = state.on_event(at(5), &exited(None, Some(15)));
        assert_eq!(state.ending(), Some(Ending::PermissionDenied));
        assert_eq!(state.ending().map(Ending::exit_code), Some(3));
        let decision = outcome.decision().unwrap();
        assert_eq!(decision.because, "Write \"src/a.rs\"");
        assert_eq!(decision.remedy, "allow it: `aldis run --allow X`");
        // A human allowed it, and reopens the run: from here on they count anew.
        state.on_event(at(6), &Event::Reopen { config: Box::default() });
        let outcome = state.on_event(at(7), &denied("Write", "src/a.rs"));
        assert_eq!(outcome.effects, []);
    }
}

#[test]
fn denials_are_bounded() {
    let mut state = begun(|_| {});
    for number in 0..100 {
        state.on_event(at(1), &denied("Bash", &format!("command {number}")));
    }
    assert_eq!((state.status.clone(), state.memory.denials.len()), (Status::Working, 16));
    let outcome = state.on_event(at(2), &denied("Bash", "command 99"));
    assert_eq!(outcome.effects, [Effect::End { grace: 30 }]);
}
