//! What people complain about: agents that are ended while they work, and agents that are not ended
//! while they do not.

use super::*;
use Step::{Answers, At, Counts, Ends, Events, Iterates, Lost, Says, Ticks};

/// A moment of a scenario. Times are seconds since the start.
enum Step {
    /// Something happens.
    At(i64, Event),
    /// The agent says something.
    Says(i64, &'static str),
    /// The agent reports the same state in this iteration of its own.
    Counts(i64, i64),
    /// Events of one kind, every so many seconds, until then.
    Events(Event, i64, i64, i64),
    /// Nothing but time, second by second, until then.
    Ticks(i64, i64),
    /// The agent ends and is started again.
    Ends(i64),
    /// So many iterations of five seconds each, in which the agent says this.
    Iterates(i64, i64, &'static str),
    /// A human answers the question.
    Answers(i64),
    /// The supervisor is gone from then to then.
    Lost(i64, i64),
}

fn play(state: &mut State, steps: Vec<Step>) {
    for step in steps {
        match step {
            At(now, event) => drop(state.on_event(at(now), &event)),
            Says(now, text) => drop(state.on_event(at(now), &heard(text))),
            Counts(now, number) => {
                let fence = "```";
                let text = format!(
                    "{fence}pilot-signal\n{{\"phase\":\"IMPL\",\"progress\":40,\"iteration\":{number}}}\n{fence}"
                );
                state.on_event(at(now), &Event::Reported { signals: reports("pilot", &text) });
            }
            Events(event, every, from, until) => {
                for now in (from..until).step_by(usize::try_from(every).unwrap()) {
                    state.on_event(at(now), &event);
                    state.on_event(at(now), &Event::Tick);
                }
            }
            Ticks(from, until) => {
                for now in from..=until {
                    state.on_event(at(now), &Event::Tick);
                }
            }
            Ends(now) => drop(send(state, now, &clean())),
            Iterates(from, count, text) => {
                for number in 0..count {
                    let now = from + number * 5;
                    state.on_event(at(now), &heard(text));
                    send(state, now, &clean());
                }
            }
            Answers(now) => {
                let id = state.question.as_ref().unwrap().id.clone();
                state.on_event(
                    at(now),
                    &Event::Answer { id, text: "Go on.".into(), by: String::new() },
                );
            }
            Lost(from, until) => {
                state.on_event(at(from), &Event::Tick);
                state.on_event(at(until), &Event::Recovered);
            }
        }
    }
}

fn heard(text: &str) -> Event {
    Event::Reported { signals: reports("chorus", text) }
}

fn limited(until: i64) -> Event {
    Event::Limited { what: "limit".into(), until: Some(at(until)) }
}

fn touched(name: &str) -> Event {
    Event::Looked(WorkTree { fingerprint: Some(name.to_owned()), ..WorkTree::default() })
}

const DAY: i64 = 86_400;

/// How each scenario stands at its end, and whether the agent was told on the way.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn stagnation() {
    let scenarios: Vec<(&str, Vec<Step>, &str)> = vec![
        ("silence for nine minutes", vec![Ticks(0, 599)], "working none"),
        ("silence for ten minutes", vec![Ticks(0, 600)], "working warn"),
        ("silence for twenty minutes", vec![Ticks(0, 1_200)], "paused pause"),
        (
            "silence, then a tool",
            vec![Ticks(0, 700), At(701, Event::Activity), Ticks(702, 1_250)],
            "working none",
        ),
        (
            "silence, then a report without progress",
            vec![
                Says(1, "<chorus>PROGRESS: 40</chorus>"),
                Ticks(2, 700),
                Says(701, "<chorus>PROGRESS: 40</chorus>"),
                Ticks(702, 1_201),
            ],
            "paused pause",
        ),
        ("identical states, two", vec![Says(1, P40), Says(2, P40)], "working none"),
        ("identical states, three", vec![Says(1, P40), Says(2, P40), Says(3, P40)], "working warn"),
        ("identical states, five", (1..=5).map(|now| Says(now, P40)).collect(), "paused pause"),
        (
            "identical states, seven: what a suspended agent still said counts",
            (1..=7).map(|now| Says(now, P40)).collect(),
            "ending abort",
        ),
        (
            "suspended for a day, then resumed: everything counts from there",
            (1..=5)
                .map(|now| Says(now, P40))
                .chain([
                    At(DAY, Event::Resume { by: String::new() }),
                    Says(DAY + 1, P40),
                    Says(DAY + 2, P40),
                ])
                .collect(),
            "working none",
        ),
        (
            "suspended, and the supervisor killed and continued a day later",
            (1..=5)
                .map(|now| Says(now, P40))
                .chain([Lost(6, DAY), Ticks(DAY, DAY + 500)])
                .collect(),
            "working none",
        ),
        (
            "an agent that counts its own iterations reports no identical states",
            (1..=7).map(|now| Counts(now, now)).collect(),
            "working none",
        ),
        (
            "progress that goes up and down",
            (0..30).map(|n| Says(n * 60, if n % 2 == 0 { P50 } else { P40 })).collect(),
            "paused pause",
        ),
        (
            "legitimate polling: the same report, and a tool each time",
            (0..40).flat_map(|n| [At(n * 60, Event::Activity), Says(n * 60 + 1, P40)]).collect(),
            "working none",
        ),
        (
            "legitimate polling: the same report, and the tree moves",
            (0..40)
                .flat_map(|n| [At(n * 60, touched(&n.to_string())), Says(n * 60 + 1, P40)])
                .collect(),
            "working none",
        ),
        (
            "a long test run with output of tools",
            vec![Events(Event::Activity, 590, 0, 1_700)],
            "working none",
        ),
        (
            "a long test run in silence, longer than the warning",
            vec![
                At(0, Event::Activity),
                Ticks(1, 1_100),
                At(1_101, Event::Activity),
                Ticks(1_102, 1_200),
            ],
            "working none",
        ),
        (
            "the host tries again by itself for twenty-five minutes",
            vec![At(1, Event::Retrying { what: "529".into() }), Ticks(2, 1_500)],
            "working none",
        ),
        (
            "waiting for a human for ten days",
            vec![
                Says(1, "<chorus>NEEDS_HUMAN: keep?</chorus>"),
                Ends(2),
                Events(Event::Tick, 3_600, 3, 10 * DAY),
                Answers(10 * DAY),
                Ticks(10 * DAY, 10 * DAY + 500),
            ],
            "working none",
        ),
        (
            "waiting for a limit for five days",
            vec![
                At(1, limited(5 * DAY)),
                Ends(2),
                Events(Event::Tick, 3_600, 3, 5 * DAY),
                Ticks(5 * DAY, 5 * DAY + 500),
            ],
            "working none",
        ),
        (
            "suspended by a human for ten days",
            vec![
                At(100, Event::Pause { by: String::new() }),
                Events(Event::Tick, 3_600, 101, 10 * DAY),
                At(10 * DAY, Event::Resume { by: String::new() }),
                Ticks(10 * DAY, 10 * DAY + 500),
            ],
            "working none",
        ),
        (
            "the supervisor was gone for ten days",
            vec![Lost(100, 10 * DAY), Ticks(10 * DAY, 10 * DAY + 400)],
            "working none",
        ),
        ("iterations without evidence, two", vec![Iterates(1, 2, "Hm.")], "working none"),
        ("iterations without evidence, three", vec![Iterates(1, 3, "Hm.")], "working warn"),
        ("iterations without evidence, five", vec![Iterates(1, 5, "Hm.")], "working pause"),
        ("iterations without evidence, six", vec![Iterates(1, 6, "Hm.")], "working pause"),
        ("iterations without evidence, seven", vec![Iterates(1, 7, "Hm.")], "ended abort"),
        ("an agent that counts up and does nothing", vec![Iterates(1, 8, P40)], "ended abort"),
        (
            "six idle iterations, a commit, six more",
            vec![
                Iterates(1, 6, "Hm."),
                At(40, touched("a")),
                At(41, touched("b")),
                Ends(42),
                Iterates(50, 6, "Hm."),
            ],
            "working pause",
        ),
        (
            "six idle iterations, a human's word, six more",
            vec![
                Iterates(1, 6, "Hm."),
                At(40, Event::Pause { by: String::new() }),
                At(41, Event::Resume { by: String::new() }),
                Iterates(50, 6, "Hm."),
            ],
            "working pause",
        ),
    ];
    for (name, steps, wanted) in scenarios {
        let mut state = begun(|config| config.iteration_timeout = 2 * DAY.cast_unsigned());
        state.on_event(at(0), &touched("at first"));
        play(&mut state, steps);
        let got = format!("{} {}", state.status.name(), state.monitor.level().as_str());
        assert_eq!(got, wanted, "{name}");
        if let Some(ending) = state.ending() {
            assert_eq!(ending, Ending::Stagnated, "{name}");
        }
    }
}

/// Whoever waits for somebody loses no time by it.
#[test]
fn waiting_counts_against_no_limit() {
    let waits: Vec<(&str, Vec<Step>)> = vec![
        (
            "a pause",
            vec![
                At(10, Event::Pause { by: String::new() }),
                At(DAY, Event::Resume { by: String::new() }),
            ],
        ),
        ("a question", vec![Says(10, "<chorus>NEEDS_HELP: x</chorus>"), Ends(10), Answers(DAY)]),
        ("a limit", vec![At(10, limited(DAY)), Ends(10), At(DAY, Event::Tick)]),
        ("a crash of ours", vec![Lost(10, DAY)]),
    ];
    for (name, steps) in waits {
        let mut state = begun(|config| (config.timeout, config.iteration_timeout) = (100, 90));
        play(&mut state, steps);
        assert_eq!(state.status, Status::Working, "{name}");
        assert!(state.worked(at(DAY)) <= 10_000, "{name}: {}", state.worked(at(DAY)));
        play(&mut state, vec![Ticks(DAY, DAY + 79)]);
        assert_eq!(state.status, Status::Working, "{name}");
        play(&mut state, vec![Ticks(DAY + 80, DAY + 100)]);
        assert!(matches!(state.status, Status::Ending { .. }), "{name}");
    }
}

/// A human's clock is an hour behind: the answer takes nothing from the agent's time.
#[test]
fn clocks_that_are_set_back_end_nothing_early() {
    let mut state = begun(|config| (config.timeout, config.iteration_timeout) = (4_000, 600));
    play(&mut state, vec![Ticks(0, 3_599), Says(3_600, "<chorus>NEEDS_HELP: x</chorus>")]);
    play(&mut state, vec![Ends(3_600), At(3_700, Event::Tick), Answers(100), Ticks(3_701, 3_999)]);
    assert_eq!(state.status, Status::Working);
    assert!(state.worked(at(3_999)) < 4_000_000);
}

#[test]
fn a_pause_after_a_claim_takes_nothing_from_its_grace() {
    let mut state = begun(|_| {});
    play(
        &mut state,
        vec![Says(1, "<chorus>COMPLETE</chorus>"), At(11, Event::Pause { by: String::new() })],
    );
    play(&mut state, vec![At(DAY, Event::Resume { by: String::new() }), At(DAY + 19, Event::Tick)]);
    assert_eq!(state.status, Status::Working);
    play(&mut state, vec![At(DAY + 20, Event::Tick)]);
    assert_eq!(state.status, Status::Ending { with: None });
}

/// Levels that iterations without work reach are told like all others.
#[test]
fn alerts_between_iterations() {
    let mut state = begun(|_| {});
    let mut told = Vec::new();
    for iteration in 1..=7 {
        let outcome = send(&mut state, iteration, &clean());
        let because =
            outcome.decision().map(|decision| decision.because.clone()).unwrap_or_default();
        for effect in outcome.effects {
            if let Effect::Notice { notice, text } = effect
                && notice != Notice::RunEnded
            {
                assert!(because.contains(&text), "{because}");
                told.push((iteration, notice.as_str()));
            }
        }
    }
    let wanted = [(3, "stagnation_warn"), (5, "stagnation_pause"), (7, "stagnation_abort")];
    assert_eq!(told, wanted);
    assert_eq!(state.ending(), Some(Ending::Stagnated));
}

/// Each level is told once, to whom it concerns.
#[test]
fn alerts_and_the_nudge() {
    let mut state = begun(|_| {});
    let mut told = Vec::new();
    for now in 0..=1_300 {
        let outcome = state.on_event(at(now), &Event::Tick);
        for effect in outcome.effects {
            match effect {
                Effect::Notice { notice, .. } => told.push((now, notice.as_str())),
                Effect::Suspend => told.push((now, "suspend")),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(told, [(600, "stagnation_warn"), (1_200, "suspend"), (1_200, "stagnation_pause")]);
    state.on_event(at(1_400), &Event::Resume { by: String::new() });
    let outcome = send(&mut state, 1_401, &clean());
    let Some(Effect::Start { prompt, .. }) = outcome.effects.last() else { panic!("{outcome:?}") };
    assert!(prompt.contains("no evidence of progress"), "{prompt}");

    let mut state = begun(|config| config.stagnation.abort_timeout = 1_000);
    let outcome = state.on_event(at(1_000), &Event::Tick);
    assert_eq!(outcome.effects[0], Effect::End { grace: 30 });
    assert_eq!(state.status, Status::Ending { with: Some(Ending::Stagnated) });
}

const P40: &str = "<chorus>PROGRESS: 40</chorus>";
const P50: &str = "<chorus>PROGRESS: 50</chorus>";
