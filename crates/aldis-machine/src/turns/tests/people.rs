//! Modes, orders, humans and rests.

use super::*;

fn delivered(outcome: &Outcome) -> Vec<String> {
    let effects = outcome.effects.iter();
    effects
        .filter_map(|effect| match effect {
            Effect::Deliver { to, message } => {
                Some(format!("{} -> {}: {}", message.from, to.join("+"), message.text))
            }
            _ => None,
        })
        .collect()
}

fn interrupted_by(kind: HumanInterrupt) -> State {
    channel_with(&["pm", "dev"], |start| start.config.human_interrupt = kind)
}

#[test]
fn modes_without_turns_let_messages_pass() {
    for (mode, heard) in [(Mode::Direct, &[][..]), (Mode::Broadcast, &["dev -> pm+qa: Hello."][..])]
    {
        let mut state = channel_with(&["pm", "dev", "qa"], |start| start.config.mode = Some(mode));
        let outcome = says(&mut state, 1, "dev", "Hello. TURN_COMPLETE");
        assert_eq!(posts(&outcome), ["dev: Hello."]);
        assert_eq!(delivered(&outcome), heard);
        assert!(!outcome.replies()[0].turn_advanced);
        assert_eq!((state.active_agent(), state.next_wake()), (None, None));
        assert_eq!(state.agent_state("dev"), AgentState::Idle);
        let outcome = state.on_event(at(2), &human("hi"));
        assert_eq!(delivered(&outcome), ["ada -> pm+dev+qa: hi"]);
        let stranger = says(&mut state, 3, "eve", "Hello.");
        assert_eq!(stranger.replies(), [&Reply::ignored(ReplyReason::NotActiveAgent)]);
    }
}

#[test]
fn a_single_agent_stays_alone() {
    let mut state = channel_with(&["pm"], |start| start.config.mode = Some(Mode::Single));
    let agent = "dev".to_owned();
    let add = Event::Add { agent, position: QueuePosition::End, persona: None };
    assert_eq!(state.on_event(at(1), &add).warnings().len(), 1);
    let outcome = says(&mut state, 2, "pm", "TURN_COMPLETE");
    assert_eq!(outcome.replies()[0].next_agent.as_deref(), Some("pm"));
    assert_eq!((state.turn, state.holder.active().unwrap().started_at), (2, at(2)));
}

#[test]
fn in_manual_order_somebody_names_the_next() {
    let mut state =
        channel_with(&["pm", "dev"], |start| start.config.turn_order = TurnOrder::Manual);
    let next = |agent: &str, turn| Event::Next { agent: agent.to_owned(), turn };
    assert_eq!(state.active_agent(), None);
    let outcome = state.on_event(at(1), &next("dev", Some(0)));
    assert_eq!(notified(&outcome), [("dev".to_owned(), 1)]);
    assert_eq!(state.on_event(at(2), &next("pm", Some(0))).warnings().len(), 1, "an old turn");
    let outcome = says(&mut state, 3, "dev", "TURN_COMPLETE");
    assert!(outcome.replies()[0].turn_advanced);
    assert_eq!((outcome.replies()[0].next_agent.as_deref(), state.active_agent()), (None, None));
    assert_eq!(state.on_event(at(4), &next("eve", None)).warnings().len(), 1);
    state.on_event(at(5), &next("dev", None));
    state.on_event(at(6), &next("pm", Some(2)));
    assert_eq!((state.active_agent(), state.turn), (Some("pm"), 3));
    assert_eq!(state.agents["dev"].last_ended, Some(TurnEndReason::Manual));
}

#[test]
fn by_priority_newcomers_take_their_place() {
    let mut state = channel_with(&["low", "high"], |start| {
        start.config.turn_order = TurnOrder::Priority;
        for (agent, priority) in [("low", 1), ("mid", 2), ("high", 3)] {
            start.personas.insert(agent.to_owned(), persona(priority, None));
        }
    });
    let agent = "mid".to_owned();
    state.on_event(at(1), &Event::Add { agent, position: QueuePosition::End, persona: None });
    assert_eq!(state.queue, ["high", "mid", "low"]);
    assert_eq!(state.active_agent(), Some("high"));
}

#[test]
fn a_humans_words_are_injected() {
    let mut state = interrupted_by(HumanInterrupt::Inject);
    let deadline = state.holder.active().unwrap().deadline;
    let outcome = state.on_event(at(1), &human("hurry"));
    assert_eq!(delivered(&outcome), ["ada -> pm: hurry"]);
    assert_eq!(state.holder.active().unwrap().deadline, deadline);
}

#[test]
fn a_humans_words_wait_for_the_next_turn() {
    let mut state = interrupted_by(HumanInterrupt::Queue);
    assert_eq!(delivered(&state.on_event(at(1), &human("later"))), [""; 0]);
    let outcome = says(&mut state, 2, "pm", "TURN_COMPLETE");
    let held = outcome.effects.iter().find_map(|effect| match effect {
        Effect::Notify { agent, held, .. } => Some((agent.as_str(), held.clone())),
        _ => None,
    });
    let words = ChannelMessage { from: "ada".to_owned(), text: "later".to_owned() };
    assert_eq!(held, Some(("dev", vec![words])));
    for number in 0..40 {
        let outcome = state.on_event(at(3), &human("more"));
        assert_eq!(outcome.warnings().is_empty(), number < 32, "{number}");
    }
}

#[test]
fn a_humans_words_reach_everybody() {
    let mut state = interrupted_by(HumanInterrupt::Parallel);
    let before = state.holder.clone();
    let outcome = state.on_event(at(1), &human("lunch"));
    assert_eq!(delivered(&outcome), ["ada -> pm+dev: lunch"]);
    assert_eq!(state.holder, before);
}

#[test]
fn a_turn_waits_for_the_answer_and_keeps_its_time() {
    for (name, asked, answers, advanced) in [
        ("the active one answers", None, ("pm", "Because."), false),
        ("it answers and is done", None, ("pm", "Because. TURN_COMPLETE"), true),
        ("another one answers", Some("dev"), ("dev", "Because. TURN_COMPLETE"), false),
    ] {
        let mut state = interrupted_by(HumanInterrupt::Interrupt);
        let to = asked.map(str::to_owned);
        let question = Event::Human { text: "why?".to_owned(), from: None, to, by: String::new() };
        let outcome = state.on_event(at(20), &question);
        let whom = asked.unwrap_or("pm");
        assert_eq!(delivered(&outcome), [format!("human -> {whom}: why?")], "{name}");
        assert_eq!(state.agent_state("pm"), AgentState::Waiting, "{name}");
        let (agent, text) = answers;
        let outcome = says(&mut state, 50, agent, text);
        assert_eq!(posts(&outcome), [format!("{agent}: Because.")], "{name}");
        assert_eq!(outcome.replies()[0].turn_advanced, advanced, "{name}");
        if !advanced {
            assert_eq!(state.agent_state("pm"), AgentState::Active, "{name}");
            assert_eq!(state.holder.active().unwrap().deadline, at(90), "{name}: 40 s were left");
        }
    }
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    let mut state = interrupted_by(HumanInterrupt::Interrupt);
    state.on_event(at(20), &human("why?"));
    let outcomes = wait_until(&mut state, 81);
    assert_eq!(outcomes.iter().map(rule).collect::<Vec<_>>(), ["turns/unanswered"]);
    assert_eq!(state.active_agent(), Some("pm"));
    state.on_event(at(85), &human("why?"));
    assert_eq!(rule(&state.on_event(at(86), &by(|by| Event::Resume { by }))), "turns/resumed");
    assert_eq!(state.active_agent(), Some("pm"));
}

#[test]
fn a_rest_keeps_the_time_that_was_left() {
    let mut state = channel(&["pm", "dev"]);
    state.on_event(at(20), &by(|by| Event::Pause { by }));
    assert_eq!((state.next_wake(), state.agent_state("pm")), (None, AgentState::Waiting));
    assert_eq!(state.on_event(at(21), &by(|by| Event::Pause { by })).warnings().len(), 1);
    let mut went_on = state.clone();
    let outcome = went_on.on_event(at(1_000), &by(|by| Event::Resume { by }));
    assert_eq!(notified(&outcome), [("pm".to_owned(), 1)]);
    assert_eq!(went_on.holder.active().unwrap().deadline, at(1_040));
    // What ends the turn meanwhile ends it; the next one begins when the channel goes on.
    let outcome = says(&mut state, 30, "pm", "Done. TURN_COMPLETE");
    assert_eq!((posts(&outcome).len(), state.active_agent()), (1, None));
    let outcome = state.on_event(at(40), &by(|by| Event::Resume { by }));
    assert_eq!(notified(&outcome), [("dev".to_owned(), 2)]);
    assert_eq!(state.on_event(at(41), &by(|by| Event::Resume { by })).warnings().len(), 1);
}

#[test]
fn whoever_leaves_a_channel_that_rests_is_not_given_the_floor() {
    let mut state = channel(&["pm", "dev"]);
    state.on_event(at(1), &by(|by| Event::Pause { by }));
    state.on_event(at(2), &Event::Remove { agent: "pm".to_owned() });
    assert_eq!(state.active_agent(), None);
    state.on_event(at(3), &by(|by| Event::Resume { by }));
    assert_eq!(state.active_agent(), Some("dev"));
}

#[test]
fn a_closed_channel_takes_nothing() {
    let mut state = channel(&["pm", "dev"]);
    state.on_event(at(1), &by(|by| Event::Close { by }));
    assert_eq!((state.active_agent(), state.next_wake()), (None, None));
    let outcome = says(&mut state, 2, "pm", "Hello. TURN_COMPLETE");
    assert_eq!(outcome.replies(), [&Reply::ignored(ReplyReason::ChannelClosed)]);
    assert_eq!(state.on_event(at(3), &Event::Recovered).warnings().len(), 1);
}

#[test]
fn a_new_configuration_is_checked_and_followed() {
    let mut state = channel(&["pm", "dev"]);
    let configure = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        Event::Configure { config: Box::new(config) }
    };
    let bad = configure(|config| config.grace_seconds = 0);
    assert_eq!(state.on_event(at(1), &bad).warnings().len(), 1);
    let single = configure(|config| config.mode = Some(Mode::Single));
    assert_eq!(state.on_event(at(1), &single).warnings().len(), 1);
    state.on_event(at(2), &configure(|config| config.mode = Some(Mode::Direct)));
    assert_eq!((state.active_agent(), state.next_wake()), (None, None));
    state.on_event(at(3), &configure(|_| {}));
    assert_eq!(state.active_agent(), Some("pm"));
    state.on_event(at(4), &configure(|config| config.turn_order = TurnOrder::Manual));
    says(&mut state, 5, "pm", "TURN_COMPLETE");
    assert_eq!(state.active_agent(), None);
    state.on_event(at(6), &configure(|_| {}));
    assert!(state.active_agent().is_some(), "nobody names the next any more");
}
