//! Whatever happens in whatever order: one floor, one end per turn, the same again on replay.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const AGENTS: [&str; 4] = ["a", "b", "c", "d"];

/// What may happen, with turn numbers near the current one.
#[derive(Clone, Debug)]
enum Happening {
    Said { agent: usize, turn: Option<i64>, texts: Vec<usize> },
    Wake { turn: Option<i64> },
    Other(Event),
    Configure(u8),
}

fn agent() -> impl Strategy<Value = String> {
    (0..AGENTS.len()).prop_map(|at| AGENTS[at].to_owned())
}

fn happening() -> impl Strategy<Value = Happening> {
    let turn = || proptest::option::of(-2_i64..2);
    let position = prop_oneof![
        Just(QueuePosition::Start),
        Just(QueuePosition::End),
        (0_usize..5).prop_map(QueuePosition::At)
    ];
    let name = || "ada".to_owned();
    let other = prop_oneof![
        3 => (agent(), position).prop_map(|(agent, position)| Event::Add { agent, position, persona: None }),
        2 => agent().prop_map(|agent| Event::Remove { agent }),
        1 => agent().prop_map(|agent| Event::Crashed { agent }),
        2 => agent().prop_map(|agent| Event::Next { agent, turn: None }),
        2 => proptest::option::of(agent()).prop_map(|to| Event::Human { text: "?".to_owned(), from: None, to, by: String::new() }),
        1 => Just(Event::Pause { by: name() }),
        2 => Just(Event::Resume { by: name() }),
        1 => Just(Event::Recovered),
    ];
    prop_oneof![
        8 => (0..AGENTS.len(), turn(), vec(0_usize..4, 1..3))
            .prop_map(|(agent, turn, texts)| Happening::Said { agent, turn, texts }),
        6 => turn().prop_map(|turn| Happening::Wake { turn }),
        6 => other.prop_map(Happening::Other),
        1 => any::<u8>().prop_map(Happening::Configure),
    ]
}

fn event(state: &State, happening: &Happening) -> Event {
    let texts = ["Yes. TURN_COMPLETE", "I am at it.", "Done.", "half a"];
    let number =
        |offset: &Option<i64>| offset.map(|offset| state.turn.saturating_add_signed(offset));
    match happening {
        Happening::Said { agent, turn, texts: chosen } => {
            let chosen: Vec<&str> = chosen.iter().map(|text| texts[*text]).collect();
            sent(state, AGENTS[*agent], number(turn), &chosen)
        }
        Happening::Wake { turn } => Event::Wake { turn: number(turn) },
        Happening::Other(event) => event.clone(),
        Happening::Configure(bits) => {
            let mut config = Config { grace: bits & 1 > 0, ..Config::default() };
            config.auto_detect.enabled = bits & 2 > 0;
            config.turn_order =
                if bits & 4 > 0 { TurnOrder::Manual } else { TurnOrder::RoundRobin };
            config.human_interrupt = match bits >> 3 & 3 {
                0 => HumanInterrupt::Inject,
                1 => HumanInterrupt::Interrupt,
                2 => HumanInterrupt::Parallel,
                _ => HumanInterrupt::Queue,
            };
            config.mode = (bits >> 5 == 7).then_some(Mode::Broadcast);
            Event::Configure { config: Box::new(config) }
        }
    }
}

/// What must hold after every step.
fn check(before: &State, state: &State, outcome: &Outcome) -> Result<(), TestCaseError> {
    let active: Vec<&str> =
        AGENTS.into_iter().filter(|agent| state.agent_state(agent) == AgentState::Active).collect();
    prop_assert_eq!(state.active_agent().into_iter().collect::<Vec<_>>(), active);
    if let Some(turn) = state.holder.turn() {
        prop_assert_eq!(
            state.queue.get(state.index),
            Some(&turn.agent),
            "the index is the holder's"
        );
    }
    prop_assert!(state.index < state.queue.len().max(1));
    let ended = outcome.replies().iter().filter(|reply| reply.turn_advanced).count();
    prop_assert!(ended <= 1, "one event ends at most one turn");
    prop_assert!(state.turn - before.turn <= 1, "one event begins at most one turn");
    prop_assert_eq!(notified(outcome).len() as u64 >= state.turn - before.turn, true);
    prop_assert!(state.history.len() <= 100 && state.held.len() <= 32);
    if state.holder.active().is_some() {
        prop_assert!(state.next_wake().is_some(), "every turn has an end");
    }
    // Whoever drives the machine keeps its alarm with the step, and there is none without a decision.
    let moved = state.next_wake() != before.next_wake();
    prop_assert!(!moved || !outcome.decisions.is_empty(), "the alarm moves with a decision");
    Ok(())
}

proptest! {
    #[test]
    fn the_floor_is_never_lost(steps in vec((happening(), 0_i64..50), 1..60)) {
        let mut state = channel(&["a", "b", "c"]);
        let start = state.clone();
        let mut journal = Vec::new();
        let mut seconds = 0;
        for (happening, passed) in &steps {
            seconds += passed;
            let event = event(&state, happening);
            let before = state.clone();
            let outcome = state.on_event(at(seconds), &event);
            check(&before, &state, &outcome)?;
            // As stored: text in, the same out.
            let text = serde_json::to_string(&event).unwrap();
            journal.push((at(seconds), serde_json::from_str::<Event>(&text).unwrap(), outcome));
        }
        let mut again = start;
        for (at, event, outcome) in &journal {
            prop_assert_eq!(&again.on_event(*at, event), outcome);
        }
        prop_assert_eq!(&again, &state);
        let text = serde_json::to_string(&state).unwrap();
        prop_assert_eq!(&serde_json::from_str::<State>(&text).unwrap(), &state);
    }

    #[test]
    fn a_turn_number_ends_once(
        order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
        late in 1_i64..5,
        repeats in 1_usize..3,
    ) {
        let mut state = channel(&["a", "b"]);
        let events = [
            sent(&state, "a", Some(1), &["Yes. TURN_COMPLETE"]),
            Event::Wake { turn: Some(1) },
            sent(&state, "a", Some(1), &["Again. TURN_COMPLETE"]),
            Event::Next { agent: "b".to_owned(), turn: Some(1) },
        ];
        for _ in 0..repeats {
            for which in order {
                state.on_event(at(60 + late), &events[which]);
            }
        }
        prop_assert_eq!((state.turn, state.active_agent()), (2, Some("b")));
        let ends = state.history.iter().filter(|entry| entry.reason.is_some()).count();
        prop_assert_eq!(ends, 1);
    }

    #[test]
    fn any_text_is_heard_in_any_channel(text in "(?s).{0,80}(TURN_COMPLETE)?.{0,3}") {
        let mut state = channel(&["a", "b"]);
        let outcome = says(&mut state, 1, "a", &text);
        let reply = &outcome.replies()[0];
        let display = reply.display.as_deref().unwrap();
        prop_assert!(text.starts_with(display), "stripping only cuts the end");
        prop_assert_eq!(reply.posted, posts(&outcome).len() == 1);
        prop_assert_eq!(reply.turn_advanced, state.turn == 2);
    }
}
