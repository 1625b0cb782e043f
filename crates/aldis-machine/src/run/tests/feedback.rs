//! What a human and a check said reaches the agent, whatever happens in between.

use super::*;

const ANSWER: &str = "Take the left one.";
const MESSAGE: &str = "Mind the encoding.";
const OUTPUT: &str = "2 of 118 tests failed";
const HINT: &str = "write the tag as plain text";

#[track_caller]
fn prompt(outcome: &Outcome) -> &str {
    match outcome.effects.last() {
        Some(Effect::Start { prompt, .. }) => prompt,
        _ => panic!("not started: {outcome:?}"),
    }
}

fn by_somebody() -> String {
    "somebody".to_owned()
}

/// A run whose agent is started with this feedback, and that feedback.
fn with_feedback(what: &str) -> (State, &'static str) {
    let mut state = begun(|config| config.verify = true);
    let (outcome, words) = match what {
        "answer" => {
            iteration(&mut state, 1, "<chorus>NEEDS_HELP: which?</chorus>", None);
            let (id, text) = ("q1".to_owned(), ANSWER.to_owned());
            (state.on_event(at(2), &Event::Answer { id, text, by: by_somebody() }), ANSWER)
        }
        "check" => (iteration(&mut state, 1, "<chorus>COMPLETE</chorus>", Some(false)), OUTPUT),
        "message" => {
            let text = MESSAGE.to_owned();
            state.on_event(at(1), &Event::Tell { text, by: by_somebody() });
            (iteration(&mut state, 1, "Still at it.", None), MESSAGE)
        }
        "near miss" => {
            state.on_event(at(1), &Event::NearMiss { hint: HINT.to_owned() });
            (iteration(&mut state, 1, "Still at it.", None), HINT)
        }
        other => panic!("{other}"),
    };
    assert!(prompt(&outcome).contains(words), "{what}: {outcome:?}");
    (state, words)
}

const WHATS: [&str; 4] = ["answer", "check", "message", "near miss"];

/// Ends an attempt before the agent could stop by itself. Returns how it starts again.
fn disturb(state: &mut State, how: &str, seconds: i64) -> Outcome {
    match how {
        "rate limit" => {
            let what = "limit".to_owned();
            state.on_event(at(seconds), &Event::Limited { what, until: None });
            state.on_event(at(seconds), &exited(Some(1), None));
            state.on_event(at(seconds + 1_000), &Event::Tick)
        }
        "crash" => {
            state.on_event(at(seconds), &exited(Some(1), None));
            state.on_event(at(seconds + 1_000), &Event::Tick)
        }
        "lost supervisor" => state.on_event(at(seconds), &Event::Recovered),
        "abort" => {
            state.on_event(at(seconds), &Event::Abort { by: by_somebody() });
            state.on_event(at(seconds), &exited(None, Some(15)));
            state.on_event(at(seconds + 1), &Event::Reopen { config: Box::default() })
        }
        "question" => {
            let signals = reports("chorus", "<chorus>NEEDS_HUMAN: really?</chorus>");
            state.on_event(at(seconds), &Event::Reported { signals });
            state.on_event(at(seconds), &clean());
            let id = state.question.as_ref().unwrap().id.clone();
            let answer = Event::Answer { id, text: "Yes.".to_owned(), by: by_somebody() };
            state.on_event(at(seconds), &answer)
        }
        other => panic!("{other}"),
    }
}

const HOWS: [&str; 5] = ["rate limit", "crash", "lost supervisor", "abort", "question"];

#[test]
fn a_repeated_iteration_gets_the_same_feedback() {
    for what in WHATS {
        for (first, second) in HOWS.iter().flat_map(|first| HOWS.map(|second| (first, second))) {
            let (mut state, words) = with_feedback(what);
            let iteration = state.iteration;
            for (how, seconds) in [(*first, 10_000), (second, 20_000)] {
                let outcome = disturb(&mut state, how, seconds);
                let name = format!("{what}, {first}, {second}");
                assert_eq!(prompt(&outcome).matches(words).count(), 1, "{name}: {outcome:?}");
                assert_eq!(state.iteration, iteration, "{name}");
                // Who asked a question had come to an end.
                let position = if how == "question" { "continued" } else { "started again" };
                assert!(prompt(&outcome).contains(position), "{name}: {outcome:?}");
            }
        }
    }
}

#[test]
fn feedback_is_given_until_an_iteration_is_completed() {
    for what in WHATS {
        let (mut state, words) = with_feedback(what);
        // What comes in while the agent works is for the next one.
        let later = Event::Tell { text: "And the tests.".to_owned(), by: by_somebody() };
        state.on_event(at(30), &later);
        let outcome = iteration(&mut state, 31, "Still at it.", None);
        // What is wrong with the work stays wrong until the agent claims that it is mended.
        let stays = what == "check";
        assert_eq!(prompt(&outcome).contains(words), stays, "{what}: {outcome:?}");
        let open = "Still open since iteration 1:";
        assert_eq!(prompt(&outcome).contains(open), stays, "{what}: {outcome:?}");
        assert!(prompt(&outcome).contains("And the tests."), "{what}: {outcome:?}");
        let outcome = iteration(&mut state, 32, "Still at it.", None);
        assert_eq!(prompt(&outcome).contains(words), stays, "{what}: {outcome:?}");
        assert!(!prompt(&outcome).contains("And the tests."), "{what}: {outcome:?}");
    }
}

/// The next claim is judged anew: what was wrong with the last one is said once more only.
#[test]
fn a_new_claim_takes_the_place_of_the_last_one() {
    let (mut state, _) = with_feedback("check");
    iteration(&mut state, 31, "Still at it.", None);
    let outcome = iteration(&mut state, 32, "<chorus>COMPLETE</chorus>", Some(false));
    let prompt = prompt(&outcome);
    assert_eq!(prompt.matches("You reported done").count(), 1, "{prompt}");
    assert!(!prompt.contains("Still open"), "{prompt}");
}

/// An iteration that took too long was not completed by its agent.
#[test]
fn an_iteration_that_is_stopped_has_not_had_its_feedback() {
    for what in WHATS {
        let (mut state, words) = with_feedback(what);
        state.on_event(at(10_000), &Event::Tick);
        assert_eq!(state.status, Status::Ending { with: None });
        let outcome = send(&mut state, 10_001, &exited(None, Some(15)));
        assert_eq!(prompt(&outcome).matches(words).count(), 1, "{what}: {outcome:?}");
        assert!(prompt(&outcome).contains("stopped after 30 min"), "{what}: {outcome:?}");
    }
}

/// The same hint in the iteration after it was given: it is true again.
#[test]
fn feedback_that_comes_again_is_given_again() {
    let (mut state, words) = with_feedback("near miss");
    state.on_event(at(30), &Event::NearMiss { hint: HINT.to_owned() });
    let outcome = iteration(&mut state, 31, "Still at it.", None);
    assert_eq!(prompt(&outcome).matches(words).count(), 1, "{outcome:?}");
}

#[test]
fn feedback_is_bounded() {
    let mut state = begun(|_| {});
    for number in 0..200 {
        let text = format!("message {number} {}", "x".repeat(20_000));
        state.on_event(at(1), &Event::Tell { text, by: by_somebody() });
        state.on_event(at(1), &Event::NearMiss { hint: format!("hint {number}") });
    }
    let outcome = iteration(&mut state, 2, "Still at it.", None);
    let prompt = prompt(&outcome);
    assert!(prompt.len() < 32 * 17_000, "{}", prompt.len());
    assert!(prompt.contains("message 199") && !prompt.contains("message 0 "));
}

/// However much an agent does wrong in attempts that are repeated again and again.
#[test]
fn remarks_on_the_agent_do_not_push_out_what_a_human_said() {
    for what in ["answer", "check", "message"] {
        let (mut state, words) = with_feedback(what);
        let mut seconds = 10;
        for attempt in 0..5 {
            for number in 0..12 {
                let hint = format!("hint {attempt} {number}");
                state.on_event(at(seconds), &Event::NearMiss { hint });
                let (tool, cure) = ("Bash".to_owned(), String::new());
                let denied = format!("command {attempt} {number}");
                let event = Event::PermissionDenied { tool, what: denied, cure };
                state.on_event(at(seconds), &event);
            }
            seconds += 2_000;
            let outcome = disturb(&mut state, "lost supervisor", seconds);
            assert!(prompt(&outcome).contains(words), "{what}, attempt {attempt}");
            let latest = format!("command {attempt} 11");
            assert!(prompt(&outcome).contains(&latest), "{what}, attempt {attempt}");
        }
    }
}
