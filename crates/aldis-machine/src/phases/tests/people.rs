//! Pause, resume and tell: what each command does to a run, and what it leaves alone.

use super::*;
use crate::{HumanCommand, Machine as _, NotPossible};

fn pause(state: &mut State, minutes: i64) -> Outcome {
    state.on_event(at(minutes), &Event::Pause { by: "`aldis pause`".into() })
}

fn resume(state: &mut State, minutes: i64) -> Outcome {
    state.on_event(at(minutes), &Event::Resume { by: "`aldis resume`".into(), fresh_token: None })
}

fn tell(state: &mut State, minutes: i64, text: &str) -> Outcome {
    state.on_event(at(minutes), &Event::Tell { text: text.into(), by: "ada".into() })
}

fn prompt(state: &mut State, minutes: i64, session: &str) -> Outcome {
    let session = Some(session.to_owned());
    state.on_event(at(minutes), &Event::Prompt { session, turn: None, own: false })
}

/// A stop on a host with a transcript, which has been read this far.
fn stop_with_transcript(state: &mut State, minutes: i64, text: &str) -> Outcome {
    let read_cursor = Some(format!("read at {minutes}"));
    let stop = Stop { read_cursor, ..stop(state, text) };
    state.on_event(at(minutes), &Event::Stop(stop))
}

fn wake(state: &mut State, minutes: i64, cap: Option<u32>) -> String {
    let cap = cap.map(|limit| BlockCap { limit: Some(limit), resets_on_tool_use: true });
    let outcome = state.on_event(at(minutes), &Event::Woken { session: "S1".to_owned(), cap });
    answer(&outcome)
}

/// Only what a human sent wakes a session, only one that waits, and only once.
#[test]
fn a_human_wakes_a_session_that_waits() {
    let mut state = run_in("qa");
    says(&mut state, 1, "Not yet.");
    assert_eq!(state.parked, None, "a blocked agent works");
    tell(&mut state, 2, "Use tabs.");
    assert_eq!(wake(&mut state, 3, None), "allow -");

    let mut state = run_in("qa");
    says(&mut state, 1, &error_block("qa", true));
    let question = state.question().unwrap().clone();
    assert_eq!((&*question.id, question.asked_at), ("q1", at(1)));
    assert_eq!(wake(&mut state, 2, None), "allow -", "nobody sent anything");
    let wrong = HumanCommand::Answer { id: "q2".to_owned(), text: "yes".to_owned() };
    assert_eq!(state.command(&wrong, "ada"), Err(NotPossible::NoSuchQuestion("q2".to_owned())));
    let right = HumanCommand::Answer { id: "q1".to_owned(), text: "yes".to_owned() };
    let event = state.command(&right, "ada").unwrap();
    state.on_event(at(3), &event);
    assert_eq!(state.question(), None, "it has its answer");
    let mut counted = state.clone();
    assert!(wake(&mut state, 4, None).starts_with("context phases/woken"));
    assert_eq!((state.block_limit.blocks, state.handover.human_messages.len()), (0, 0));
    assert_eq!(wake(&mut state, 5, None), "allow -", "it was given");

    // A host that counts it as a blocked stop gives up one stop later: then the words stay.
    counted.block_limit.blocks = 7;
    let mut full = counted.clone();
    full.block_limit.blocks = 8;
    assert!(wake(&mut counted, 4, Some(8)).starts_with("context phases/woken"));
    assert_eq!(counted.block_limit.blocks, 8);
    assert_eq!(wake(&mut full, 4, Some(8)), "allow -");
    assert_eq!(full.handover.human_messages.len(), 1);

    // Who has a user, or is woken by something else, does not wait.
    for must_allow in [MustAllow::Aborted, MustAllow::Background { what: "make".to_owned() }] {
        let mut state = run_in("qa");
        let stop = Stop { must_allow: Some(must_allow), ..stop(&state, "Not yet.") };
        state.on_event(at(1), &Event::Stop(stop));
        assert_eq!(state.parked, None);
    }
}

/// A limit wakes it when it is over, not before, not while the run is paused, and not for ever.
#[test]
fn the_end_of_a_limit_wakes_a_session() {
    let limited = |state: &mut State, minutes: i64| {
        let (session, error) = (Some("S1".to_owned()), "rate_limit".to_owned());
        let until = Some(at(minutes + 10));
        state.on_event(at(minutes), &Event::StopFailed { session, error, until });
    };
    let mut state = run_in("qa");
    limited(&mut state, 1);
    assert_eq!(wake(&mut state, 10, None), "allow -", "it is not over");
    let mut paused = State { paused: true, ..state.clone() };
    assert_eq!(wake(&mut paused, 20, None), "allow -");
    let mut told = state.clone();
    tell(&mut told, 2, "Use tabs.");
    assert!(wake(&mut told, 3, None).starts_with("context phases/woken"), "whoever says so knows");
    assert_eq!(told.limit_wakes, 0);
    assert!(wake(&mut state, 11, None).starts_with("context phases/woken"));
    assert_eq!(wake(&mut state, 12, None), "allow -", "once");
    for minutes in (20..).step_by(20).take(LIMIT_WAKES_MAX as usize - 1) {
        limited(&mut state, minutes);
        assert!(wake(&mut state, minutes + 10, None).starts_with("context"), "{minutes}");
    }
    // It lasted longer than a run may be idle.
    let mut late = run_in("qa");
    limited(&mut late, 1);
    assert!(wake(&mut late, 600, None).starts_with("context phases/woken"));
    assert!(answer(&says(&mut late, 601, "Not yet.")).starts_with("block"));

    // Its very first turn: the session that got the prompt, and no other.
    for (asked, wakes) in [("S1", true), ("S2", false)] {
        let mut first = State { session: None, ..run_in("qa") };
        first.handover.prompt_pending = true;
        let session = Some(asked.to_owned());
        first.on_event(at(0), &Event::Prompt { session, turn: None, own: false });
        limited(&mut first, 1);
        assert_eq!(wake(&mut first, 11, None).starts_with("context phases/woken"), wakes);
        assert_eq!(first.session.is_some(), wakes);
    }

    limited(&mut state, 2_000);
    assert_eq!((wake(&mut state, 2_010, None).as_str(), &state.parked), ("allow -", &None));
    says(&mut state, 2_020, "Not yet.");
    limited(&mut state, 2_030);
    assert!(state.parked.is_some(), "a stop of its own starts the count again");
}

#[test]
fn a_paused_run_lets_its_agent_stop_and_counts_nothing() {
    for said in ["Not yet.", "I will print SIGNAL: QA_COMPLETE later.", ""] {
        let mut state = run_in("qa");
        says(&mut state, 1, "Not yet.");
        let (iteration, blocks) = (state.progress.iteration, state.block_limit.blocks);
        assert_eq!(answer(&pause(&mut state, 2)), "nothing phases/paused");
        for minutes in [3, 4] {
            let answered = answer(&says(&mut state, minutes, said));
            assert_eq!(answered, "allow phases/allowed-while-paused", "{said}");
        }
        assert_eq!(
            (state.progress.iteration, state.block_limit.blocks),
            (iteration, blocks),
            "{said}"
        );
        assert_eq!(answer(&resume(&mut state, 5)), "nothing phases/resumed-after-pause");
        assert_eq!(
            (state.progress.iteration, state.block_limit.blocks),
            (iteration, blocks),
            "{said}"
        );
        assert_eq!(state.session.as_deref(), Some("S1"), "{said}");
        assert_eq!(answer(&says(&mut state, 6, said)), "block phases/blocked", "{said}");
        assert_eq!(state.progress.iteration, iteration + 1, "{said}");
    }
}

/// What the agent reports while the run is paused, and what the first stop after it leads to.
#[test]
fn what_is_reported_while_paused_counts_at_the_first_stop_after() {
    let all = block("QA_COMPLETE") + &block("REVIEW_COMPLETE");
    for (name, said, later, answered, phase) in [
        ("the signal", block("QA_COMPLETE"), "Ready.", "block phases/phase-complete", "review"),
        ("two of them", all, "Ready.", "block phases/phase-complete", "fix"),
        ("nothing", "Hm.".to_owned(), "Ready.", "block phases/blocked", "qa"),
        ("the end", block("AUTO_COMPLETE"), "Ready.", "allow phases/auto-complete", "complete"),
        ("an error", error_block("qa", true), "Ready.", "allow phases/recoverable-error", "qa"),
    ] {
        let mut state = run_in("qa");
        pause(&mut state, 1);
        says(&mut state, 2, &said);
        assert_eq!(state.progress.phase, "qa", "{name}: nothing is judged while the run is paused");
        resume(&mut state, 3);
        assert_eq!(state.progress.phase, "qa", "{name}: the stop is judged, not the resume");
        let outcome = says(&mut state, 4, later);
        assert_eq!((&*answer(&outcome), &*state.progress.phase), (answered, phase), "{name}");
        assert_eq!(state.reading.held_findings, [], "{name}");
    }
}

/// The shell reads the transcript from the position that the machine keeps.
#[test]
fn a_paused_run_keeps_its_place_in_the_transcript() {
    let mut state = run_in("qa");
    stop_with_transcript(&mut state, 1, "Not yet.");
    let before = (state.reading.read_cursor.clone(), state.reading.read_until);
    pause(&mut state, 2);
    stop_with_transcript(&mut state, 3, &block("QA_COMPLETE"));
    assert_eq!((state.reading.read_cursor.clone(), state.reading.read_until), before);
    assert_eq!(state.reading.held_findings, [], "the transcript has it");
    resume(&mut state, 4);
    // The same message is read again, once.
    let outcome = stop_with_transcript(&mut state, 5, &block("QA_COMPLETE"));
    let got = (&*answer(&outcome), &*state.progress.phase);
    assert_eq!(got, ("block phases/phase-complete", "review"));
    assert_eq!(state.reading.read_cursor.as_deref(), Some("read at 5"));
}

#[test]
fn messages_of_several_paused_stops_stay_apart() {
    let mut state = run_in("qa");
    pause(&mut state, 1);
    // Success after failure in one message is a contradiction; in two messages it is progress.
    says(&mut state, 2, &error_block("qa", true));
    says(&mut state, 3, &block("QA_COMPLETE"));
    resume(&mut state, 4);
    assert_eq!(answer(&says(&mut state, 5, "Ready.")), "block phases/phase-complete");
    assert_eq!(state.progress.phase, "review");
}

#[test]
fn what_is_held_is_bounded() {
    let mut state = run_in("qa");
    pause(&mut state, 1);
    for minutes in 2..60 {
        says(&mut state, minutes, &block("TRANSITION_TO_QA"));
    }
    assert_eq!(state.reading.held_findings.len(), 32);
}

#[test]
fn responses_that_come_apart_from_the_stop_are_held_too() {
    let mut state = run_in("qa");
    pause(&mut state, 1);
    let findings = found(&state, &block("QA_COMPLETE"), Origin::assistant());
    let (session, closing_text) = (Some("S1".to_owned()), "Done.".to_owned());
    state.on_event(at(2), &Event::Responded { session, findings, closing_text });
    says(&mut state, 3, "");
    resume(&mut state, 4);
    says(&mut state, 5, "Ready.");
    assert_eq!(state.progress.phase, "review");
}

#[test]
fn subagents_of_a_paused_run_count_later_and_once() {
    let mut state = run_in("qa");
    pause(&mut state, 1);
    let outcome = subagent_says(&mut state, 2, "a1", &block("QA_COMPLETE"));
    assert_eq!(
        (&*answer(&outcome), &*state.progress.phase),
        ("allow phases/subagent-stopped", "qa")
    );
    resume(&mut state, 3);
    // The transcript brings it again, as the result of the task.
    let mut result = stop(&state, "");
    result.findings =
        found(&state, &block("QA_COMPLETE"), Origin::new(Role::Subagent).with_agent("a1"));
    let outcome = state.on_event(at(4), &Event::Stop(result));
    assert_eq!(
        (&*answer(&outcome), &*state.progress.phase),
        ("block phases/phase-complete", "review")
    );
}

#[test]
fn a_pause_is_no_inactivity() {
    for prompted in [false, true] {
        let mut state = run_in("qa");
        prompt(&mut state, 1, "S1");
        pause(&mut state, 2);
        if prompted {
            prompt(&mut state, 600, "S1");
        }
        let answered = answer(&says(&mut state, 601, "About something else."));
        assert_eq!(answered, "allow phases/allowed-while-paused", "prompted: {prompted}");
        resume(&mut state, 900);
        let answered = answer(&says(&mut state, 901, "Back."));
        assert_eq!(answered, "block phases/blocked", "prompted: {prompted}");
    }
}

#[test]
fn prompts_to_a_paused_run_bring_nothing_of_ours() {
    let mut state = run_in("qa");
    tell(&mut state, 1, "Use tabs.");
    pause(&mut state, 1);
    assert_eq!(answer(&prompt(&mut state, 2, "S1")), "nothing phases/prompt-received");
    resume(&mut state, 3);
    let outcome = prompt(&mut state, 4, "S1");
    assert_eq!(answer(&outcome), "context phases/start-prompt-delivered");
    assert!(prompt_of(&outcome).contains("> Use tabs."), "{}", prompt_of(&outcome));
}

#[test]
fn a_paused_run_takes_no_session() {
    let mut state = run_in("qa");
    state.session = None;
    state.handover.prompt_pending = true;
    pause(&mut state, 1);
    let before = state.clone();
    assert_eq!(prompt(&mut state, 2, "S1").decisions, []);
    assert_eq!(says(&mut state, 3, &block("QA_COMPLETE")).decisions, []);
    assert_eq!(state, before);
    resume(&mut state, 4);
    assert_eq!(answer(&says(&mut state, 5, "Not yet.")), "block phases/blocked");
    assert_eq!(state.session.as_deref(), Some("S1"));
}

#[test]
fn the_token_of_a_paused_run_stays() {
    let mut state = run_in("qa");
    (state.setup.config.token, state.token) = (TokenPolicy::Require, Some("k7Qd".to_owned()));
    pause(&mut state, 1);
    says(&mut state, 2, &block("QA_COMPLETE").replace("STATUS", "TOKEN: k7Qd\nSTATUS"));
    let fresh_token = Some("m2Xp".to_owned());
    state.on_event(at(3), &Event::Resume { by: String::new(), fresh_token });
    assert_eq!(state.token.as_deref(), Some("k7Qd"));
    says(&mut state, 4, "Ready.");
    assert_eq!(state.progress.phase, "review");
}

#[test]
fn messages_reach_the_agent_once() {
    type Gets = fn(&mut State) -> Outcome;
    let at_a_stop: Gets = |state| says(state, 2, "Not yet.");
    let with_a_prompt: Gets = |state| prompt(state, 2, "S1");
    let with_the_next_phase: Gets = |state| says(state, 2, &block("QA_COMPLETE"));
    for (name, gets) in
        [("stop", at_a_stop), ("prompt", with_a_prompt), ("phase", with_the_next_phase)]
    {
        let mut state = run_in("qa");
        tell(&mut state, 1, "Use \"tabs\".");
        let outcome = tell(&mut state, 1, "And\n  no blanks.");
        assert_eq!(answer(&outcome), "nothing phases/message-queued");
        let text = prompt_of(&gets(&mut state)).to_owned();
        for line in ["> Use \"tabs\".", "> And", ">   no blanks."] {
            assert!(text.lines().any(|shown| shown == line), "{name}: {text}");
        }
        let again = gets(&mut state);
        let again = again.effects.first().map_or("", |_| prompt_of(&again)).to_owned();
        assert!(!again.contains("tabs"), "{name}: {again}");
    }
}

#[test]
fn messages_wait_where_the_agent_gets_no_prompt() {
    let mut state = run_in("qa");
    tell(&mut state, 1, "Use tabs.");
    let hold = Stop { must_allow: Some(MustAllow::Question), ..stop(&state, "Which?") };
    state.on_event(at(2), &Event::Stop(hold));
    state.progress.iteration = state.setup.max_iterations;
    says(&mut state, 3, "Not yet.");
    assert!(!state.progress.active);
    resume(&mut state, 4);
    assert!(prompt_of(&prompt(&mut state, 5, "S2")).contains("Use tabs."));
}

#[test]
fn messages_are_few_and_short_and_what_is_dropped_is_named() {
    let mut state = run_in("qa");
    let because = |outcome: &Outcome| outcome.decision().unwrap().because.clone();
    for number in 0..8 {
        assert_eq!(because(&tell(&mut state, 1, &format!("m{number}"))), "sent by ada");
    }
    let full = because(&tell(&mut state, 2, "m8"));
    assert_eq!(full, "sent by ada; the oldest of 8 waiting messages was dropped");
    assert_eq!(
        (state.handover.human_messages.len(), &*state.handover.human_messages[0]),
        (8, "m1")
    );
    let long = because(&tell(&mut state, 3, &"\u{e9}".repeat(5_000)));
    assert!(long.ends_with("only its first 4000 characters are kept"), "{long}");
    assert_eq!(state.handover.human_messages[7].chars().count(), 4_000);
    let before = state.clone();
    assert_eq!(tell(&mut state, 4, " \n").decisions, []);
    assert_eq!(state, before);
}

#[test]
fn commands_are_possible_where_they_mean_something() {
    let [abort, pausing, resuming] =
        [HumanCommand::Abort, HumanCommand::Pause, HumanCommand::Resume];
    let telling = |to: Option<&str>| {
        let (text, to) = ("Use tabs.".to_owned(), to.map(str::to_owned));
        HumanCommand::Tell { text, to }
    };
    let answering = HumanCommand::Answer { id: "q1".to_owned(), text: "yes".to_owned() };
    let empty = HumanCommand::Tell { text: " ".to_owned(), to: None };
    let works: fn(&mut State) = |_| {};
    let rests: fn(&mut State) = |state| state.paused = true;
    let is_capped: fn(&mut State) = |state| state.block_limit.capped = true;
    let failed: fn(&mut State) = |state| state.end(at(1), ExitReason::MaxIterationsReached);
    let complete: fn(&mut State) = |state| state.end(at(1), ExitReason::AllPhasesComplete);
    for (name, given, command, want) in [
        ("abort", works, &abort, Ok("cancel")),
        ("abort paused", rests, &abort, Ok("cancel")),
        ("abort ended", failed, &abort, Err(NotPossible::Ended)),
        ("pause", works, &pausing, Ok("pause")),
        ("pause twice", rests, &pausing, Err(NotPossible::AlreadyPaused)),
        ("pause ended", failed, &pausing, Err(NotPossible::Ended)),
        ("resume", works, &resuming, Err(NotPossible::NotPaused)),
        ("resume paused", rests, &resuming, Ok("resume")),
        ("resume capped", is_capped, &resuming, Ok("resume")),
        ("resume failed", failed, &resuming, Ok("resume")),
        ("resume complete", complete, &resuming, Err(NotPossible::Ended)),
        ("tell", works, &telling(None), Ok("tell")),
        ("tell paused", rests, &telling(None), Ok("tell")),
        ("tell ended", failed, &telling(None), Err(NotPossible::Ended)),
        ("tell somebody", works, &telling(Some("dev")), {
            Err(NotPossible::NoSuchRecipient("dev".to_owned()))
        }),
        ("tell nothing", works, &empty, Err(NotPossible::NoText)),
        ("answer", works, &answering, Err(NotPossible::NoSuchQuestion("q1".to_owned()))),
    ] {
        let mut state = run_in("qa");
        given(&mut state);
        let event = state.command(command, "a test").map(|event| {
            let form = serde_json::to_value(&event).unwrap();
            // What the machine offers it also takes.
            assert_ne!(state.on_event(at(2), &event).decisions, [], "{name}");
            form["event"].as_str().unwrap().to_owned()
        });
        assert_eq!(event.as_deref(), want.as_ref().copied(), "{name}");
    }
}

#[test]
fn a_cancelled_run_is_not_paused_any_more() {
    let mut state = run_in("qa");
    pause(&mut state, 1);
    state.on_event(at(2), &Event::Cancel { by: "ada".into() });
    assert!(!state.progress.active && !state.paused);
}
