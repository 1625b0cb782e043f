//! The work tree at the end of an iteration: what counts as work, and what contradicts a claim.

use super::*;

fn tree(fingerprint: Option<&str>, head: Option<&str>) -> Event {
    let [fingerprint, head] = [fingerprint, head].map(|text| text.map(str::to_owned));
    Event::Looked(WorkTree { fingerprint, head, ..WorkTree::default() })
}

/// Twenty iterations of a second each, and how the work tree is after each.
fn iterations(tree: impl Fn(i64) -> Event) -> State {
    let mut state = begun(|_| {});
    state.on_event(at(0), &tree(0));
    for number in 1..=20 {
        if state.ending().is_none() {
            state.on_event(at(number), &clean());
            state.on_event(at(number), &tree(number));
        }
    }
    state
}

#[test]
fn whatever_changes_in_an_iteration_is_evidence_however_short_it_is() {
    let name = |number: i64| format!("tree {number}");
    for (what, state) in [
        ("a commit", iterations(|n| tree(Some("same"), Some(&name(n))))),
        ("a file in git", iterations(|n| tree(Some(&name(n)), Some("head")))),
        ("a file without git", iterations(|n| tree(Some(&name(n)), None))),
    ] {
        assert_eq!((state.ending(), state.iteration), (None, 21), "{what}");
        assert_eq!(state.monitor.level(), stagnation::Level::None, "{what}");
    }
    for (what, state) in [
        ("the same tree", iterations(|_| tree(Some("same"), Some("head")))),
        ("nobody can tell", iterations(|_| tree(None, None))),
    ] {
        assert_eq!((state.ending(), state.iteration), (Some(Ending::Stagnated), 7), "{what}");
    }
}

#[test]
fn nothing_goes_on_before_the_work_tree_was_inspected() {
    for text in ["Still at it.", "<chorus>COMPLETE</chorus>"] {
        let mut state = begun(|_| {});
        state.on_event(at(1), &Event::Reported { signals: reports("chorus", text) });
        let outcome = state.on_event(at(2), &clean());
        assert_eq!((&*outcome.effects, &state.status), (&[Effect::Look][..], &Status::Looking));
        assert_eq!(state.on_event(at(3), &Event::Tick), Outcome::nothing());
        // A new supervisor inspects it again.
        assert_eq!(state.on_event(at(4), &Event::Recovered).effects, [Effect::Look]);
        state.on_event(at(5), &tree(None, None));
        assert_ne!(state.status, Status::Looking, "{text}");
    }
}

/// Journals of 0.1.0 have no inspection after an iteration without a claim.
#[test]
fn a_driver_that_does_not_look_is_followed() {
    let mut state = begun(|_| {});
    state.on_event(at(1), &clean());
    let outcome = state.on_event(at(2), &Event::Launched { agent: "2".to_owned() });
    let rules: Vec<&str> = outcome.decisions.iter().map(|decision| &*decision.rule).collect();
    assert_eq!(rules, ["run/iteration-started", "run/agent-started"]);
    assert_eq!((state.iteration, &state.status), (2, &Status::Working));

    let mut state = begun(|config| config.max_iterations = 1);
    state.on_event(at(1), &clean());
    let config = Box::new(Config { max_iterations: 5, ..Config::default() });
    state.on_event(at(2), &Event::Reopen { config });
    assert_eq!((state.iteration, &state.status), (2, &Status::Working));
}

#[test]
fn a_claim_about_a_tree_that_cannot_be_inspected_is_refused() {
    let error = Some("git status: timed out".to_owned());
    let unknown = Event::Looked(WorkTree { error, ..WorkTree::default() });
    type Edit = fn(&mut Config);
    for (name, change, text, done) in [
        ("plain", (|_| {}) as Edit, "<chorus>COMPLETE</chorus>", true),
        ("clean", |config| config.require_clean = true, "<chorus>COMPLETE</chorus>", false),
        ("commit", |config| config.require_commit = true, "<chorus>COMPLETE</chorus>", false),
        ("merge", |_| {}, "<chorus>RESOLVED</chorus>", false),
    ] {
        let mut state = begun(change);
        state.on_event(at(0), &tree(Some("a"), Some("a")));
        state.on_event(at(1), &Event::Reported { signals: reports("chorus", text) });
        state.on_event(at(1), &clean());
        state.on_event(at(1), &unknown);
        assert_eq!(state.ending().is_some(), done, "{name}");
        assert_eq!(
            state.trees.tree.fingerprint.as_deref(),
            Some("a"),
            "{name}: what was known stays"
        );
        if !done {
            let because = &state.memory.last_refusal.as_ref().unwrap().because;
            assert!(because.contains("timed out"), "{name}: {because}");
        }
    }
}

#[test]
fn work_that_an_interrupted_run_may_have_left_is_compared_by_whoever_keeps_it() {
    let mut state = begun(|_| {});
    state.on_event(at(0), &tree(Some("before"), Some("head")));
    state.on_event(at(1), &Event::Abort { by: "x".to_owned() });
    let outcome = state.on_event(at(2), &clean());
    let base = Some("before".to_owned());
    assert!(outcome.effects.contains(&Effect::KeepWork { base }), "{outcome:?}");
}
