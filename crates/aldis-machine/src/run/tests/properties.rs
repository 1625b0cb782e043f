//! What always holds, whatever happens to a run in whatever order.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Machine as _;

fn signal() -> impl Strategy<Value = RunSignal> {
    let texts = [
        "<chorus>COMPLETE</chorus>",
        "<chorus>BLOCKED: no key</chorus>",
        "<chorus>NEEDS_HUMAN: keep?</chorus>",
        "<chorus>PROGRESS: 40</chorus>",
        "<chorus>PROGRESS: 41</chorus>",
        "<chorus>RESOLVED</chorus>",
    ];
    (0..texts.len(), 0..3_u64).prop_map(move |(at, message)| {
        let mut signal = reports("chorus", texts[at]).remove(0);
        signal.message = message;
        signal
    })
}

fn tree() -> impl Strategy<Value = WorkTree> {
    let name = || proptest::option::of("[ab]");
    (name(), name(), any::<bool>(), any::<bool>(), proptest::option::of("git failed")).prop_map(
        |(fingerprint, head, dirty, conflicts, error)| WorkTree {
            fingerprint,
            head,
            dirty,
            conflicts,
            error,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let exit = (prop_oneof![Just(Some(0)), Just(Some(1)), Just(None)], any::<bool>()).prop_map(
        |(code, loud)| {
            let output = if loud { "disk full".to_owned() } else { String::new() };
            Event::Exited(AgentExit { code, signal: None, output })
        },
    );
    let text = || "[a-c]{0,3}";
    let denied = (text(), text()).prop_map(|(tool, what)| {
        let cure = String::new();
        Event::PermissionDenied { tool, what, cure }
    });
    let batch = (signal(), 1..9_u64, 1..9_u64)
        .prop_map(|(latest, count, repeated)| ProgressBatch { latest, count, repeated });
    prop_oneof![
        1 => Just(Event::Begin),
        1 => Just(Event::Recovered),
        1 => text().prop_map(|agent| Event::Launched { agent }),
        1 => text().prop_map(|what| Event::LaunchFailed { what }),
        1 => Just(Event::Reopen { config: Box::default() }),
        4 => vec(signal(), 0..3).prop_map(|signals| Event::Reported { signals }),
        1 => batch.prop_map(Event::Progress),
        1 => text().prop_map(|hint| Event::NearMiss { hint }),
        1 => Just(Event::Activity),
        1 => (0..200_u64).prop_map(|tokens| Event::Spent(Usage { tokens, micro_dollars: tokens })),
        1 => text().prop_map(|what| Event::Retrying { what }),
        1 => text().prop_map(|what| Event::Limited { what, until: None }),
        1 => text().prop_map(|what| Event::HostFailed { what }),
        1 => denied,
        5 => exit,
        5 => tree().prop_map(Event::Looked),
        2 => (any::<bool>(), text()).prop_map(|(passed, output)| Event::Checked { passed, output }),
        4 => Just(Event::Tick),
        1 => text().prop_map(|by| Event::Pause { by }),
        1 => text().prop_map(|by| Event::Resume { by }),
        1 => (text(), text()).prop_map(|(text, by)| Event::Tell { text, by }),
        1 => text().prop_map(|by| Event::Abort { by }),
        1 => (1..4_u32, text()).prop_map(|(number, text)| {
            Event::Answer { id: format!("q{number}"), text, by: String::new() }
        }),
    ]
}

fn limits() -> impl Strategy<Value = Config> {
    (any::<[bool; 5]>(), 1..6_u32, 0..3_u32, proptest::option::of(1..5_000_u64)).prop_map(
        |([verify, commit, clean, no_wait, limited], iterations, crashes, pause_limit)| {
            let mut config = Config {
                verify,
                require_commit: commit,
                require_clean: clean,
                no_wait,
                max_iterations: iterations,
                max_crashes: crashes,
                max_tokens: limited.then_some(300),
                ..Config::default()
            };
            config.stagnation.pause_limit = pause_limit;
            config
        },
    )
}

/// What holds between two states and what was decided in between.
fn assert_lawful(before: &State, now: Timestamp, event: &Event, after: &State, outcome: &Outcome) {
    let seen = (event, &before.status, &after.status);
    assert!(!outcome.decisions.is_empty() || outcome.effects.is_empty(), "{seen:?}: {outcome:?}");
    for decision in &outcome.decisions {
        let known = Rule::ALL.iter().any(|rule| rule.as_str() == decision.rule);
        assert!(known && !decision.summary.is_empty(), "{decision:?}");
    }
    let starts = outcome.effects.iter().filter(|it| matches!(it, Effect::Start { .. })).count();
    assert!(starts <= 1, "one agent at a time: {outcome:?}");
    assert!(starts == 0 || after.status == Status::Working, "{seen:?}");
    let finishes = outcome.effects.iter().any(|it| matches!(it, Effect::Finish { .. }));
    assert_eq!(finishes, before.ending() != after.ending() && after.ending().is_some(), "{seen:?}");
    // An ending changes only because a human reopens the run, and success never.
    if let Some(ending) = before.ending() {
        let reopened = matches!(event, Event::Reopen { .. }) && ending != Ending::Done;
        assert!(reopened || after.ending() == Some(ending), "{seen:?}");
    }
    if after.ending() == Some(Ending::Done) && before.ending().is_none() {
        let claimed = before.attempt.signals.iter().any(|signal| signal.meaning == Meaning::Done);
        let passed = matches!(event, Event::Checked { passed: true, .. });
        assert!(claimed && (passed || !before.start.config.verify), "{seen:?}");
    }
    let bounded = [
        (after.attempt.signals.len(), 64),
        (after.memory.feedback.len(), 32),
        (after.memory.denials.len(), 16),
    ];
    assert!(bounded.iter().all(|(length, most)| length <= most), "{bounded:?}");
    assert!(after.memory.feedback_given <= after.memory.feedback.len(), "{seen:?}");
    assert!(after.iteration <= before.iteration + 1, "{seen:?}");
    // A run that only time can change says when.
    let waits =
        matches!(after.status, Status::Working | Status::Limited { .. } | Status::Backoff { .. });
    assert!(!waits || after.next_wake().is_some(), "{seen:?}");
    assert!(after.clock.seen_at.is_some_and(|at| at >= now), "time goes forward");
}

proptest! {
    #[test]
    fn nothing_unlawful_happens(
        config in limits(),
        events in vec((-10..2_000_i64, event()), 0..60),
    ) {
        let start = Start {
            task: "Add CSV export".to_owned(),
            dialect: "chorus".to_owned(),
            instructions: String::new(),
            launch: String::new(),
            config,
        };
        let mut state = State::start(at(0), start);
        state.on_event(at(0), &Event::Begin);
        let mut seconds = 0;
        for (later, event) in events {
            seconds += later;
            let before = state.clone();
            let outcome = state.on_event(at(seconds), &event);
            assert_lawful(&before, at(seconds), &event, &state, &outcome);
            // Stored and read again, it is the same; and the same event leads to the same.
            let stored = before.to_stored().unwrap();
            let mut again = State::from_stored(&stored, &[]).unwrap();
            prop_assert_eq!(&again, &before);
            prop_assert_eq!(again.on_event(at(seconds), &event), outcome);
            prop_assert_eq!(&again, &state);
        }
    }

    /// Time alone ends every run that nobody looks after, unless it waits for a human on purpose.
    #[test]
    fn no_run_hangs(config in limits(), events in vec((0..500_i64, event()), 0..30)) {
        let start = Start {
            task: "Add CSV export".to_owned(),
            dialect: "chorus".to_owned(),
            instructions: String::new(),
            launch: String::new(),
            config,
        };
        let mut state = State::start(at(0), start);
        state.on_event(at(0), &Event::Begin);
        let mut now = at(0);
        for (later, event) in events {
            now = now.after(std::time::Duration::from_secs(later.unsigned_abs()));
            state.on_event(now, &event);
        }
        // A driver that does what it is asked, with an agent that never does anything by itself.
        for _ in 0..1_000 {
            let event = match state.status {
                Status::Ended { .. } | Status::Asking | Status::Paused { stagnated: false } => return Ok(()),
                Status::Ready => Event::Begin,
                Status::Ending { .. } => exited(None, Some(15)),
                Status::Looking => Event::Looked(WorkTree::default()),
                Status::Checking => Event::Checked { passed: false, output: String::new() },
                _ => Event::Tick,
            };
            if event == Event::Tick {
                let Some(wake) = state.next_wake() else {
                    panic!("nobody wakes {:?}", state.status)
                };
                now = now.max(wake);
            }
            state.on_event(now, &event);
        }
        let endless = state.start.config.stagnation.pause_limit.is_none();
        prop_assert!(endless, "still {:?} at {}", state.status, now);
    }
}
