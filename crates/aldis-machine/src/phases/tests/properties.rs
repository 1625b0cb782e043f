//! Whatever a host reports in whatever order: activity never goes back, every list is bounded, and
//! the journal replays to the same state.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const TEXTS: [&str; 8] = [
    "Not yet.",
    "QA_COMPLETE",
    "REVIEW_COMPLETE",
    "AUTO_COMPLETE",
    "PHASE_ERROR",
    "TRANSITION_TO_FIX",
    "I will print SIGNAL: QA_COMPLETE later.",
    "",
];

#[derive(Clone, Debug)]
enum Happening {
    Stop { session: bool, text: usize, hold: bool, transcript: bool },
    Subagent { agent: Option<u8>, text: usize },
    Response { text: usize },
    Other(Box<Event>),
}

fn happening() -> impl Strategy<Value = Happening> {
    let session = || Some("S1".to_owned());
    let other = prop_oneof![
        3 => any::<bool>().prop_map(move |own| Event::Prompt { session: session(), turn: None, own }),
        1 => Just(Event::SessionStart { session: session() }),
        1 => Just(Event::SessionEnd { session: session() }),
        1 => Just(Event::Interrupted { session: session() }),
        1 => Just(Event::StopFailed { session: session(), error: "rate_limit".into(), until: None }),
        2 => Just(Event::Pause { by: "ada".into() }),
        3 => Just(Event::Resume { by: "ada".into(), fresh_token: Some("m2Xp".into()) }),
        3 => "[a-z\n]{0,9}".prop_map(|text| Event::Tell { text, by: "ada".into() }),
        1 => Just(Event::Cancel { by: "ada".into() }),
        1 => Just(Event::Edited { members: vec!["phase".into()] }),
    ];
    let text = || 0..TEXTS.len();
    prop_oneof![
        8 => (prop::bool::weighted(0.9), text(), prop::bool::weighted(0.1), any::<bool>())
            .prop_map(|(session, text, hold, transcript)| Happening::Stop { session, text, hold, transcript }),
        3 => (proptest::option::of(0_u8..3), text()).prop_map(|(agent, text)| Happening::Subagent { agent, text }),
        1 => text().prop_map(|text| Happening::Response { text }),
        6 => other.prop_map(|event| Happening::Other(Box::new(event))),
    ]
}

fn text(number: usize) -> String {
    match TEXTS[number] {
        "PHASE_ERROR" => error_block("qa", true),
        name if name.ends_with("COMPLETE") || name.starts_with("TRANSITION") => block(name),
        words => words.to_owned(),
    }
}

fn event(state: &State, happening: &Happening) -> Event {
    match happening {
        Happening::Stop { session, text: number, hold, transcript } => {
            let mut stop = stop(state, &text(*number));
            stop.session = Some(if *session { "S1" } else { "S2" }.to_owned());
            stop.must_allow = hold.then_some(MustAllow::Question);
            stop.read_cursor = transcript.then(|| "12".to_owned());
            Event::Stop(stop)
        }
        Happening::Subagent { agent, text: number } => {
            let agent = agent.map(|agent| format!("a{agent}"));
            let mut origin = Origin::new(Role::Subagent);
            if let Some(agent) = &agent {
                origin = origin.with_agent(agent);
            }
            let findings = found(state, &text(*number), origin);
            Event::SubagentStop { session: Some("S1".into()), agent, findings, fresh_token: None }
        }
        Happening::Response { text: number } => Event::Responded {
            session: Some("S1".into()),
            findings: found(state, &text(*number), Origin::assistant()),
            closing_text: String::new(),
        },
        Happening::Other(event) => Event::clone(event),
    }
}

fn check(before: &State, state: &State, outcome: &Outcome) -> Result<(), TestCaseError> {
    prop_assert!(state.clock.last_activity >= before.clock.last_activity, "activity goes back");
    prop_assert!(state.progress.iteration <= state.setup.max_iterations);
    prop_assert!(
        state.handover.human_messages.len() <= 8 && state.reading.held_findings.len() <= 32
    );
    prop_assert!(state.progress.detected.len() <= 64 && state.progress.left_out.len() <= 9);
    prop_assert!(!state.paused || state.progress.active, "what ended is not paused");
    let blocked = outcome.effects.iter().any(|effect| matches!(effect, Effect::Block { .. }));
    prop_assert!(!(blocked && before.paused), "a paused run blocks nothing");
    if before.paused && state.paused {
        prop_assert_eq!(
            (&before.progress.phase, before.progress.iteration),
            (&state.progress.phase, state.progress.iteration)
        );
        prop_assert_eq!(&before.reading.read_cursor, &state.reading.read_cursor);
    }
    if outcome.decisions.is_empty() {
        prop_assert_eq!(before, state, "what changes is decided");
    }
    for decision in &outcome.decisions {
        prop_assert!(Rule::of_stored(&decision.rule, "").is_some(), "{}", decision.rule);
        prop_assert!(!decision.because.is_empty() && !decision.remedy.is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_order_of_events_is_taken(steps in vec((happening(), -90_i64..90), 1..60)) {
        let mut state = run_in("execution");
        let start = state.clone();
        let mut journal = Vec::new();
        let mut minutes = 0;
        for (happening, passed) in &steps {
            // The clock steps back now and then.
            minutes += passed;
            let event = event(&state, happening);
            let before = state.clone();
            let outcome = state.on_event(at(minutes), &event);
            check(&before, &state, &outcome)?;
            let text = serde_json::to_string(&event).unwrap();
            journal.push((at(minutes), serde_json::from_str::<Event>(&text).unwrap(), outcome));
        }
        let mut again = start;
        for (at, event, outcome) in &journal {
            prop_assert_eq!(&again.on_event(*at, event), outcome);
        }
        prop_assert_eq!(&again, &state);
        let text = serde_json::to_string(&state).unwrap();
        prop_assert_eq!(&serde_json::from_str::<State>(&text).unwrap(), &state);
    }
}
