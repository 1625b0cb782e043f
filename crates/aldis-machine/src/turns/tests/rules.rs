//! Messages, turns, timeouts and the queue.

use super::*;
use aldis_signal::signal::Via;

#[test]
fn a_message_is_judged_by_who_has_the_floor() {
    for (name, agent, text, posted, advanced, verdict, rule_name) in [
        ("keyword", "pm", "Yes.\n\nTURN_COMPLETE", true, true, None, "turns/turn-complete"),
        ("keyword alone", "pm", "TURN_COMPLETE", false, true, None, "turns/turn-complete"),
        ("no keyword", "pm", "I am at it.", true, false, None, "turns/posted"),
        ("white space", "pm", " \n\u{200b} ", false, false, None, "turns/posted"),
        ("full stop", "pm", "Yes. TURN_COMPLETE.", true, false, None, "turns/posted"),
        ("bold", "pm", "Yes. **TURN_COMPLETE**", true, false, None, "turns/posted"),
        (
            "another member",
            "dev",
            "Me too. TURN_COMPLETE",
            false,
            false,
            Some("not_active_agent"),
            "turns/not-active",
        ),
        (
            "a stranger",
            "eve",
            "TURN_COMPLETE",
            false,
            false,
            Some("not_active_agent"),
            "turns/not-active",
        ),
    ] {
        let mut state = channel(&["pm", "dev"]);
        let outcome = says(&mut state, 1, agent, text);
        let reply = &outcome.replies()[0];
        assert_eq!((reply.posted, reply.turn_advanced), (posted, advanced), "{name}");
        assert_eq!(reply.reason.map(ReplyReason::as_str), verdict, "{name}");
        assert_eq!(reply.next_agent.as_deref(), advanced.then_some("dev"), "{name}");
        assert_eq!(rule(&outcome), rule_name, "{name}");
        assert_eq!(posts(&outcome).len(), usize::from(posted), "{name}");
        assert_eq!(state.active_agent(), Some(if advanced { "dev" } else { "pm" }), "{name}");
    }
}

#[test]
fn advancing_starts_the_next_turn_and_tells_its_agent() {
    let mut state = channel(&["pm", "dev", "qa"]);
    let outcome = says(&mut state, 5, "pm", "Over to you. TURN_COMPLETE");
    assert_eq!(posts(&outcome), ["pm: Over to you."]);
    assert_eq!(notified(&outcome), [("dev".to_owned(), 2)]);
    let states = ["pm", "dev", "qa"].map(|agent| state.agent_state(agent));
    assert_eq!(states, [AgentState::Queued, AgentState::Active, AgentState::Queued]);
    let turn = state.holder.active().unwrap();
    assert_eq!((turn.started_at, turn.deadline), (at(5), at(65)));
    assert_eq!(events(&state), ["turn_started pm", "turn_completed pm", "turn_started dev"]);
    says(&mut state, 6, "dev", "TURN_COMPLETE");
    says(&mut state, 7, "qa", "TURN_COMPLETE");
    assert_eq!(state.active_agent(), Some("pm"), "after the last comes the first");
}

#[test]
fn speaking_does_not_move_the_deadline() {
    let mut state = channel(&["pm", "dev"]);
    let deadline = state.holder.active().unwrap().deadline;
    says(&mut state, 30, "pm", "Still at it.");
    assert_eq!(state.holder.active().unwrap().deadline, deadline);
    assert_eq!(state.agents["pm"].last_activity, Some(at(30)));
}

/// A refused message is no activity, and a posted one is.
#[test]
fn only_messages_that_are_taken_are_activity() {
    for (name, agent, text, active) in [
        ("refused", "dev", "Me too.", false),
        ("refused with the keyword", "dev", "Me too. TURN_COMPLETE", false),
        ("posted", "pm", "Still at it.", true),
        ("nothing to post", "pm", " ", true),
        ("ends the turn", "pm", "Yes. TURN_COMPLETE", true),
    ] {
        let mut state = channel(&["pm", "dev"]);
        says(&mut state, 30, agent, text);
        assert_eq!(state.agents[agent].last_activity, active.then(|| at(30)), "{name}");
    }
    // What comes late is posted, and its agent is there.
    let mut state = channel(&["pm", "dev"]);
    wait_until(&mut state, 61);
    says(&mut state, 70, "pm", "Sorry.");
    assert_eq!(state.agents["pm"].last_activity, Some(at(70)));
}

#[test]
fn the_history_of_a_turn_names_the_next_agent() {
    type Ends = fn(&mut State);
    let timeout: Ends = |state| {
        wait_until(state, 61);
    };
    let keyword: Ends = |state| {
        says(state, 1, "pm", "TURN_COMPLETE");
    };
    let recovery: Ends = |state| {
        state.on_event(at(100), &Event::Recovered);
    };
    for (name, ends) in [("timeout", timeout), ("keyword", keyword), ("recovery", recovery)] {
        let mut state = channel(&["pm", "dev"]);
        ends(&mut state);
        let ended = state.history.iter().find(|entry| entry.reason.is_some()).unwrap();
        assert_eq!(ended.next_agent.as_deref(), Some("dev"), "{name}");
    }
    // Whom nobody has named yet, nobody knows.
    let mut state =
        channel_with(&["pm", "dev"], |start| start.config.turn_order = TurnOrder::Manual);
    state.on_event(at(1), &Event::Next { agent: "pm".to_owned(), turn: None });
    wait_until(&mut state, 62);
    assert_eq!(state.history.back().unwrap().next_agent, None);
}

#[test]
fn what_follows_the_ending_message_of_a_batch_is_ignored() {
    let mut state = channel(&["pm", "dev"]);
    let batch = ["One.", "Two. TURN_COMPLETE", "Three.", "Four. TURN_COMPLETE"];
    let event = sent(&state, "pm", None, &batch);
    let outcome = state.on_event(at(1), &event);
    assert_eq!(posts(&outcome), ["pm: One.", "pm: Two."]);
    let verdicts: Vec<_> = outcome.replies().iter().map(|reply| reply.reason).collect();
    let after = Some(ReplyReason::AfterTurnEnd);
    assert_eq!(verdicts, [None, None, after, after]);
    assert_eq!((state.active_agent(), state.turn), (Some("dev"), 2));
    // Alone in its queue, too: the floor comes back, the rest of the batch does not count.
    let mut state = channel(&["pm"]);
    let event = sent(&state, "pm", None, &batch);
    assert_eq!(posts(&state.on_event(at(1), &event)).len(), 2);
    assert_eq!(state.turn, 2);
}

#[test]
fn timeouts_come_strictly_after_the_deadline() {
    let mut state = channel(&["pm", "dev"]);
    assert_eq!(state.on_event(at(60), &Event::Wake { turn: None }), Outcome::default());
    assert_eq!(state.next_wake(), Some(Timestamp::from_millis(at(60).as_millis() + 1)));
    let outcome = &wait_until(&mut state, 61)[0];
    assert_eq!(posts(outcome), ["system: ⏱️ pm turn timed out after 60s"]);
    assert_eq!(notified(outcome), [("dev".to_owned(), 2)]);
    assert_eq!(rule(outcome), "turns/timeout");
    assert_eq!(events(&state), ["turn_started pm", "turn_timeout pm", "turn_started dev"]);
}

#[test]
fn timeouts_are_announced_as_configured() {
    for (name, announce, message, late_ms, want) in [
        ("off", false, "{agent}", 1_000, None),
        (
            "own words",
            true,
            "{agent} is {duration}s late {x}",
            1,
            Some("system: pm is 60s late {x}"),
        ),
        ("rounded up", true, "{duration}", 1_500, Some("system: 62")),
        ("rounded down", true, "{duration}", 1_499, Some("system: 61")),
    ] {
        let mut state = channel_with(&["pm", "dev"], |start| {
            start.config.announce_timeouts = announce;
            start.config.timeout_message = message.to_owned();
        });
        let late = Timestamp::from_millis(at(60).as_millis() + late_ms);
        let outcome = state.on_event(late, &Event::Wake { turn: None });
        assert_eq!(posts(&outcome), want.into_iter().collect::<Vec<_>>(), "{name}");
        assert_eq!(state.active_agent(), Some("dev"), "{name}");
    }
}

#[test]
fn a_turn_ends_once_whoever_comes_first() {
    for message_first in [true, false] {
        let mut state = channel(&["pm", "dev"]);
        let number = state.turn;
        let message = sent(&state, "pm", Some(number), &["Done. TURN_COMPLETE"]);
        let wake = Event::Wake { turn: Some(number) };
        let (one, other) = if message_first { (message, wake) } else { (wake, message) };
        state.on_event(at(61), &one);
        let second = state.on_event(at(61), &other);
        assert_eq!((state.turn, state.active_agent()), (2, Some("dev")));
        if !message_first {
            assert_eq!(posts(&second), ["pm: Done."]);
            assert_eq!(second.replies()[0].reason, Some(ReplyReason::LateSignal));
        }
    }
}

#[test]
fn a_late_message_is_posted_and_passes_nothing_on() {
    let mut state = channel(&["pm", "dev"]);
    wait_until(&mut state, 61);
    let outcome = says(&mut state, 62, "pm", "Sorry. TURN_COMPLETE");
    assert_eq!(posts(&outcome), ["pm: Sorry."]);
    assert_eq!((rule(&outcome), state.active_agent()), ("turns/late-message", Some("dev")));
    // After a turn that it ended itself, an agent has nothing more to say.
    says(&mut state, 63, "dev", "TURN_COMPLETE");
    let outcome = says(&mut state, 64, "dev", "One more thing. TURN_COMPLETE");
    assert_eq!(outcome.replies(), [&Reply::ignored(ReplyReason::NotActiveAgent)]);
}

#[test]
fn a_message_of_an_ended_turn_is_late_even_when_its_agent_has_the_floor_again() {
    let mut state = channel(&["pm", "dev"]);
    wait_until(&mut state, 61);
    says(&mut state, 62, "dev", "TURN_COMPLETE");
    assert_eq!((state.active_agent(), state.turn), (Some("pm"), 3));
    let old = sent(&state, "pm", Some(1), &["From before. TURN_COMPLETE"]);
    let outcome = state.on_event(at(63), &old);
    assert_eq!(outcome.replies()[0].reason, Some(ReplyReason::LateSignal));
    assert_eq!((state.active_agent(), state.turn), (Some("pm"), 3));
    // A number from the future says nothing.
    let odd = sent(&state, "pm", Some(99), &["Now. TURN_COMPLETE"]);
    assert!(state.on_event(at(64), &odd).replies()[0].turn_advanced);
}

#[test]
fn grace_warns_first() {
    let mut state = channel_with(&["pm", "dev"], |start| start.config.grace = true);
    let outcomes = wait_until(&mut state, 61);
    assert_eq!(outcomes.iter().map(rule).collect::<Vec<_>>(), ["turns/grace"]);
    assert!(matches!(&outcomes[0].effects[0], Effect::Warn { agent, turn: 1, until }
        if agent == "pm" && *until == at(65)));
    let mut in_time = state.clone();
    assert!(says(&mut in_time, 64, "pm", "TURN_COMPLETE").replies()[0].turn_advanced);
    let outcomes = wait_until(&mut state, 66);
    assert_eq!(outcomes.iter().map(rule).collect::<Vec<_>>(), ["turns/timeout"]);
    // Woken too late for a warning, nobody gets a second chance.
    let mut state = channel_with(&["pm", "dev"], |start| start.config.grace = true);
    assert_eq!(rule(&state.on_event(at(70), &Event::Wake { turn: None })), "turns/timeout");
}

#[test]
fn each_agent_has_its_own_time() {
    for (name, own, default, want) in [
        ("persona", Some(90), 60, 90),
        ("default", None, 60, 60),
        ("zero says nothing", Some(0), 60, 60),
        ("other default", None, 30, 30),
        ("a day is the most", Some(u64::MAX), 60, 86_400),
    ] {
        let state = channel_with(&["pm"], |start| {
            start.config.default_timeout_seconds = default;
            start.personas.insert("pm".to_owned(), persona(0, own));
        });
        assert_eq!(state.holder.active().unwrap().deadline, at(want), "{name}");
    }
}

#[test]
fn three_rounds_of_nothing_but_timeouts_pause_the_channel() {
    let mut state = channel(&["pm", "dev"]);
    let outcomes = wait_until(&mut state, 10_000);
    assert_eq!(outcomes.len(), 6);
    let rules: Vec<&str> = outcomes.iter().map(rule).collect();
    assert_eq!(rules[4..], ["turns/timeout", "turns/paused-after-silence"]);
    let notices = outcomes.iter().flat_map(posts).filter(|post| post.contains("is paused"));
    assert_eq!(notices.count(), 1);
    assert!(matches!(state.holder, TurnHolder::Paused { turn: None, .. }));
    assert_eq!(state.next_wake(), None);
    // A word in between, and the count starts anew.
    let mut state = channel(&["pm", "dev"]);
    wait_until(&mut state, 301);
    assert_eq!(state.silent_turns, 5);
    assert!(says(&mut state, 302, "dev", "Here.").replies()[0].posted);
    wait_until(&mut state, 400);
    assert_eq!((state.silent_turns, state.active_agent()), (0, Some("pm")));
    // A human's word wakes it, and reaches whoever is next.
    wait_until(&mut state, 10_000);
    let outcome = state.on_event(at(20_000), &human("anybody there?"));
    assert!(matches!(&outcome.effects[0], Effect::Notify { held, .. } if held.len() == 1));
    assert!(state.active_agent().is_some());
}

/// Found by the simulator: such an alarm was taken as one that nobody wants, and never set again.
#[test]
fn after_a_restart_silence_and_unanswered_questions_are_over_too() {
    let mut state = channel_with(&["pm", "dev"], |start| {
        start.config.auto_detect.enabled = true;
        start.config.auto_detect.detect_punctuation = false;
    });
    says(&mut state, 1, "pm", "thinking");
    let outcome = state.on_event(at(40), &Event::Recovered);
    assert_eq!((rule(&outcome), state.active_agent()), ("turns/silence", Some("dev")));
    let mut state = channel_with(&["pm", "dev"], |start| {
        start.config.human_interrupt = HumanInterrupt::Interrupt;
    });
    state.on_event(at(10), &human("why?"));
    let outcome = state.on_event(at(200), &Event::Recovered);
    assert_eq!((rule(&outcome), state.active_agent()), ("turns/unanswered", Some("pm")));
}

#[test]
fn after_a_restart_what_was_due_is_recovered() {
    let mut state = channel(&["pm", "dev"]);
    let outcome = state.on_event(at(30), &Event::Recovered);
    assert_eq!(outcome.decisions, []);
    assert_eq!(outcome.effects, []);
    let outcome = state.on_event(at(3_600), &Event::Recovered);
    assert_eq!((rule(&outcome), state.active_agent()), ("turns/recovered", Some("dev")));
    assert_eq!(state.agents["pm"].last_ended, Some(TurnEndReason::Recovery));
    assert_eq!(posts(&outcome), [""; 0], "the agent was not at fault");
    let late = says(&mut state, 3_601, "pm", "I had said that. TURN_COMPLETE");
    assert_eq!(late.replies()[0].reason, Some(ReplyReason::LateSignal));
}

#[test]
fn a_restart_does_not_take_the_grace_that_an_agent_was_promised() {
    let mut state = channel_with(&["pm", "dev"], |start| start.config.grace = true);
    wait_until(&mut state, 61);
    let outcome = state.on_event(at(64), &Event::Recovered);
    assert_eq!((outcome.decisions.len(), state.active_agent()), (0, Some("pm")));
    let outcome = state.on_event(at(66), &Event::Recovered);
    assert_eq!((rule(&outcome), state.active_agent()), ("turns/recovered", Some("dev")));
}

#[test]
fn turns_that_should_have_ended_are_stuck() {
    let state = channel(&["pm", "dev"]);
    assert_eq!(state.stuck(at(70)), None);
    let stuck = StuckTurn { agent: "pm".to_owned(), turn: 1, deadline: at(60) };
    assert_eq!(state.stuck(at(71)), Some(stuck));
}

#[test]
fn the_queue_changes_without_moving_the_floor() {
    let add = |agent: &str, position| {
        let (agent, persona) = (agent.to_owned(), None);
        Event::Add { agent, position, persona }
    };
    let remove = |agent: &str| Event::Remove { agent: agent.to_owned() };
    for (name, event, queue, index, active) in [
        ("end", add("x", QueuePosition::End), "a b c x", 1, "b"),
        ("start", add("x", QueuePosition::Start), "x a b c", 2, "b"),
        ("at the active place", add("x", QueuePosition::At(1)), "a x b c", 2, "b"),
        ("behind it", add("x", QueuePosition::At(2)), "a b x c", 1, "b"),
        ("far behind", add("x", QueuePosition::At(99)), "a b c x", 1, "b"),
        ("known already", add("c", QueuePosition::Start), "a b c", 1, "b"),
        ("remove before", remove("a"), "b c", 0, "b"),
        ("remove behind", remove("c"), "a b", 1, "b"),
        ("remove the active one", remove("b"), "a c", 1, "c"),
        ("remove a stranger", remove("x"), "a b c", 1, "b"),
    ] {
        let mut state = channel(&["a", "b", "c"]);
        says(&mut state, 1, "a", "TURN_COMPLETE");
        let outcome = state.on_event(at(2), &event);
        assert_eq!(state.queue.join(" "), queue, "{name}");
        assert_eq!((state.index, state.active_agent()), (index, Some(active)), "{name}");
        let refused = name.contains("known") || name.contains("stranger");
        assert_eq!(outcome.warnings().len(), usize::from(refused), "{name}");
        assert_eq!(outcome.decisions.is_empty(), refused, "{name}");
    }
}

#[test]
fn the_last_of_the_queue_is_followed_by_the_first() {
    let mut state = channel(&["a", "b"]);
    says(&mut state, 1, "a", "TURN_COMPLETE");
    let outcome = state.on_event(at(2), &Event::Remove { agent: "b".to_owned() });
    assert_eq!((state.index, state.active_agent()), (0, Some("a")));
    assert_eq!(notified(&outcome), [("a".to_owned(), 3)]);
    assert_eq!(state.agent_state("b"), AgentState::Idle);
    let outcome = state.on_event(at(3), &Event::Remove { agent: "a".to_owned() });
    assert_eq!((&state.holder, state.next_wake()), (&TurnHolder::Nobody, None));
    assert_eq!(outcome.decisions.len(), 1);
    // Whoever comes next has the floor at once.
    let agent = "c".to_owned();
    state.on_event(at(4), &Event::Add { agent, position: QueuePosition::End, persona: None });
    assert_eq!(state.active_agent(), Some("c"));
}

#[test]
fn a_crash_takes_the_agent_out_and_tells_the_channel() {
    let mut state = channel(&["pm", "dev"]);
    let crash = Event::Crashed { agent: "pm".to_owned() };
    let outcome = state.on_event(at(1), &crash);
    assert_eq!(posts(&outcome), ["system: ⚠️ pm is offline"]);
    assert_eq!((state.agent_state("pm"), state.active_agent()), (AgentState::Offline, Some("dev")));
    assert_eq!(state.on_event(at(2), &crash), Outcome::default(), "once is enough");
    let agent = "pm".to_owned();
    state.on_event(at(3), &Event::Add { agent, position: QueuePosition::End, persona: None });
    assert_eq!(state.agent_state("pm"), AgentState::Queued);
}

#[test]
fn channels_begin_with_whom_they_can() {
    let start = |agents: &[&str], change: fn(&mut Start)| {
        let agents = agents.iter().map(|agent| (*agent).to_owned()).collect();
        let mut start = Start { channel: "c1".to_owned(), agents, ..Start::default() };
        start.personas.insert("pm".to_owned(), persona(0, None));
        start.personas.insert("dev".to_owned(), persona(5, None));
        change(&mut start);
        State::start(at(0), start).map(|(state, outcome)| {
            let warnings = outcome.warnings().len();
            format!(
                "{} ({warnings}) {}",
                state.queue.join(" "),
                state.active_agent().unwrap_or("-")
            )
        })
    };
    for (name, agents, change, want) in [
        ("known", &["pm", "dev"][..], (|_| {}) as fn(&mut Start), "pm dev (0) pm"),
        ("unknown", &["pm", "eve"], |_| {}, "pm (1) pm"),
        ("twice", &["pm", "pm"], |_| {}, "pm (1) pm"),
        ("bad name", &["pm", "../x", "system"], |_| {}, "pm (2) pm"),
        (
            "by priority",
            &["pm", "dev"],
            |s| s.config.turn_order = TurnOrder::Priority,
            "dev pm (0) dev",
        ),
        ("manual", &["pm", "dev"], |s| s.config.turn_order = TurnOrder::Manual, "pm dev (0) -"),
        ("direct", &["pm", "dev"], |s| s.config.mode = Some(Mode::Direct), "pm dev (0) -"),
    ] {
        assert_eq!(start(agents, change).as_deref(), Ok(want), "{name}");
    }
    for (name, agents, change, want) in [
        ("none", &[][..], (|_| {}) as fn(&mut Start), "at least one agent"),
        ("nobody", &["eve"], |_| {}, "no agent can take part: no persona is named `eve`"),
        ("single of two", &["pm", "dev"], |s| s.config.mode = Some(Mode::Single), "exactly one"),
        ("turns of one", &["pm"], |s| s.config.mode = Some(Mode::TurnBased), "two agents"),
        ("bad channel", &["pm"], |s| s.channel = "a/b".to_owned(), "cannot name a channel"),
        ("no time", &["pm"], |s| s.config.default_timeout_seconds = 0, "between 1 and"),
        ("keyword", &["pm"], |s| s.config.keyword = "a b".to_owned(), "cannot be a keyword"),
        (
            "personas",
            &["pm"],
            |s| {
                let many = (0..1_023).map(|number| (format!("p{number}"), persona(0, None)));
                s.personas.extend(many);
            },
            "at most 1024 personas",
        ),
    ] {
        let error = start(agents, change).unwrap_err().to_string();
        assert!(error.contains(want), "{name}: {error}");
    }
}

#[test]
fn personas_are_few() {
    let mut state = channel_with(&["a"], |start| {
        let many = (0..1_023).map(|number| (format!("p{number}"), persona(0, None)));
        start.personas = many.chain([("a".to_owned(), persona(0, None))]).collect();
    });
    for (agent, refused) in [("new", 1), ("p7", 0)] {
        let (agent, persona) = (agent.to_owned(), Some(persona(1, None)));
        let outcome =
            state.on_event(at(1), &Event::Add { agent, position: QueuePosition::End, persona });
        assert_eq!(outcome.warnings().len(), refused);
    }
    assert_eq!(state.personas.len(), 1_024);
}

#[test]
fn history_keeps_the_last_hundred() {
    let mut state = channel(&["pm", "dev"]);
    for turn in 0..80 {
        let agent = state.active_agent().unwrap().to_owned();
        says(&mut state, turn, &agent, "TURN_COMPLETE");
    }
    assert_eq!(state.history.len(), 100);
    assert_eq!(state.history.back().map(|entry| entry.turn), Some(81));
}

/// A turn that ends in two ways ends once: the weaker report of the same is recorded, and ends nobody
/// else's turn.
#[test]
fn a_turn_that_ends_in_two_ways_ends_once() {
    let ended_by_call = |state: &mut State, seconds: i64| {
        let call = crate::calls::Call::EndTurn { channel: "c1".to_owned(), turn: None };
        let messages = vec![call.ends_turn(Via::Call)];
        let event = Event::Message { agent: "pm".to_owned(), turn: None, messages };
        state.on_event(at(seconds), &event)
    };
    let mut state = channel(&["pm", "dev"]);
    let outcome = ended_by_call(&mut state, 1);
    let decided = outcome.decision().unwrap();
    assert_eq!(decided.because, "it reported TURN_COMPLETE by tool call");
    assert_eq!(decided.evidence[0].via, Via::Call);
    let outcome = says(&mut state, 2, "pm", "Over to you. TURN_COMPLETE");
    assert_eq!(rule(&outcome), "turns/not-active");
    assert_eq!(outcome.decision().unwrap().evidence[0].name.as_deref(), Some("TURN_COMPLETE"));
    assert_eq!(state.active_agent(), Some("dev"));
    // The other way round, the call is the one that comes late.
    let mut state = channel(&["pm", "dev"]);
    says(&mut state, 1, "pm", "Over to you. TURN_COMPLETE");
    assert_eq!(rule(&ended_by_call(&mut state, 2)), "turns/not-active");
    assert_eq!(state.active_agent(), Some("dev"));
}
