//! Requests of programs: for runs of a server only, and each takes effect once.

use std::sync::Barrier;
use std::thread;

use aldis_engine::{Engine, EngineError, Members, NewRun, RequestOutcome};
use aldis_machine::{HumanCommand, phases, run, turns};
use aldis_store::{Driver, Source};
use serde_json::{Value, json};

use crate::stepping::working;
use crate::support::{Builtin, Fate, a_channel, a_run, at, each_store, id, members, named, phases};

fn source(key: &str, digest: &str) -> Source {
    Source { key: key.to_owned(), digest: digest.to_owned() }
}

fn post(
    engine: &Engine,
    second: i64,
    run: &str,
    event: &Value,
    source: Option<&Source>,
) -> Result<RequestOutcome, EngineError> {
    let event: Members = members(event.clone());
    engine.step_json(at(second), &id(run), &event, source, &Builtin)
}

/// Two answers say the same.
#[track_caller]
fn assert_same(first: &RequestOutcome, again: &RequestOutcome) {
    assert!(!first.repeated && again.repeated);
    assert_eq!(again.effects, first.effects);
    assert_eq!(again.decisions, first.decisions);
    assert_eq!(again.run.id(), first.run.id());
}

#[test]
fn only_runs_of_a_server_take_events_from_outside() {
    each_store(|world| {
        let drivers = [Driver::Hook, Driver::Process, Driver::Worker];
        for (name, driver) in ["hook", "process", "worker"].into_iter().zip(drivers) {
            world.begin::<run::State>(name, driver, a_run());
            let refused = post(&world.engine, 1, name, &json!({ "event": "begin" }), None);
            assert!(matches!(refused, Err(EngineError::DrivenElsewhere { .. })), "{name}");
            assert_eq!(world.kinds(&id(name)), ["start"]);
            // Commands of humans are another matter.
            let abort = HumanCommand::Abort;
            world.engine.command(at(2), &id(name), &abort, "me", None).unwrap();
        }
        let bad = world.begin::<run::State>("r", Driver::Server, a_run());
        let refused = post(&world.engine, 1, "r", &json!({ "event": "explode" }), None);
        assert!(matches!(refused, Err(EngineError::Invalid(_))));
        assert_eq!(world.kinds(bad.id()), ["start"]);
    });
}

#[test]
fn programs_begin_and_step_every_machine() {
    each_store(|world| {
        let plan = json!({ "tasks": [{ "id": "a", "acceptance": ["x"] }] });
        let said = "Yes. TURN_COMPLETE";
        for (machine, start, event, rule) in [
            ("run", json!({ "task": "x" }), json!({ "event": "begin" }), "run/iteration-started"),
            ("delivery", json!({ "plan": plan }), json!({ "event": "begin" }), "delivery/started"),
            (
                "phases",
                json!({ "task": "x", "session": "S1" }),
                json!({ "event": "stop", "session": "S1", "text": "Not yet." }),
                "phases/blocked",
            ),
            (
                "turns",
                json!({ "channel": "c", "agents": ["a", "b"] }),
                json!({ "event": "message", "agent": "a", "text": said }),
                "turns/turn-complete",
            ),
        ] {
            let new = named(machine, Driver::Server);
            let begun = world.engine.begin_json(at(0), machine, &new, members(start), &Builtin);
            assert_eq!(begun.unwrap().run.machine(), machine);
            let answer = post(&world.engine, 1, machine, &event, None).unwrap();
            assert_eq!(answer.decisions[0].rule, rule);
            assert_ne!(answer.effects, [""; 0], "{machine}");
            world.assert_replays(&id(machine));
        }
        // The name that 0.1.0 had for messages is still understood.
        let old = json!({ "event": "said", "agent": "b", "text": said });
        let answer = post(&world.engine, 2, "turns", &old, None).unwrap();
        assert_eq!(answer.decisions[0].rule, "turns/turn-complete");
    });
}

#[test]
fn a_request_that_comes_again_gets_its_first_answer() {
    each_store(|world| {
        world.begin::<turns::State>("t", Driver::Server, a_channel());
        let said = json!({ "event": "message", "agent": "pm", "text": "Hi. TURN_COMPLETE" });
        let first = post(&world.engine, 1, "t", &said, Some(&source("k", "d"))).unwrap();
        assert_ne!(first.effects, [""; 0]);
        // However much was decided since.
        for number in 0..1_200 {
            let text = json!({ "event": "human", "text": format!("{number}"), "from": "ada" });
            post(&world.engine, 2, "t", &text, None).unwrap();
        }
        let again = post(&world.engine, 3, "t", &said, Some(&source("k", "d"))).unwrap();
        assert_same(&first, &again);
        let kinds = world.kinds(&id("t"));
        assert_eq!(kinds.iter().filter(|kind| *kind == "message").count(), 1);
        let other = post(&world.engine, 4, "t", &said, Some(&source("k", "other")));
        assert!(matches!(other, Err(EngineError::KeyReused)));
        let command = HumanCommand::Abort;
        let other = world.engine.command(at(4), &id("t"), &command, "me", Some(&source("k", "x")));
        assert!(matches!(other, Err(EngineError::KeyReused)));
    });
}

/// What nothing was decided about, or what only the outbox shows, is answered the same again.
#[test]
fn answers_without_a_decision_are_kept_too() {
    each_store(|world| {
        world.begin::<turns::State>("t", Driver::Server, a_channel());
        let remove = json!({ "event": "remove", "agent": "nobody" });
        let first = post(&world.engine, 1, "t", &remove, Some(&source("k", "d"))).unwrap();
        assert_eq!(first.decisions, []);
        assert_eq!(first.effects[0]["effect"], "warning");
        // By now it would mean something.
        post(&world.engine, 2, "t", &json!({ "event": "add", "agent": "nobody" }), None).unwrap();
        let again = post(&world.engine, 3, "t", &remove, Some(&source("k", "d"))).unwrap();
        assert_same(&first, &again);
        let run = world.engine.open::<turns::State>(&id("t")).unwrap();
        assert!(run.state().queue().contains(&"nobody".to_owned()));
        drop(run);
        assert_eq!(world.pending(&id("t")), [], "nobody has to perform an answer");
        world.assert_replays(&id("t"));

        world.begin::<phases::State>("p", Driver::Server, phases());
        let stop = json!({ "event": "stop", "session": "another", "text": "" });
        let first = post(&world.engine, 1, "p", &stop, Some(&source("k", "d"))).unwrap();
        assert_eq!((first.effects.len(), first.decisions.len()), (1, 0));
        let again = post(&world.engine, 2, "p", &stop, Some(&source("k", "d"))).unwrap();
        assert_same(&first, &again);
        world.assert_replays(&id("p"));

        // Commands of humans, whoever drives.
        for (name, driver) in [("process", Driver::Process), ("hook", Driver::Hook)] {
            working(world, name, driver);
            let key = source("k", "d");
            let pause = |second| {
                let pause = HumanCommand::Pause;
                world.engine.command(at(second), &id(name), &pause, "me", Some(&key)).unwrap()
            };
            let first = pause(3);
            assert_eq!(first.effects, [json!({ "effect": "suspend" })]);
            assert_same(&first, &pause(4));
            world.assert_replays(&id(name));
        }
    });
}

/// The first answer and its repetition agree in what is added to effects.
#[test]
fn a_repeated_dispatch_says_how_the_agent_is_started() {
    each_store(|world| {
        let note = aldis_engine::note("launch", &json!({ "command": ["x"] })).unwrap();
        let new = NewRun { notes: vec![note], ..named("r", Driver::Server) };
        world.engine.begin::<run::State>(at(0), &new, a_run()).unwrap();
        let begin = json!({ "event": "begin" });
        let first = post(&world.engine, 1, "r", &begin, Some(&source("k", ""))).unwrap();
        let start = first.effects.iter().find(|effect| effect["effect"] == "start").unwrap();
        assert_eq!(start["launch"], json!({ "command": ["x"] }));
        let again = post(&world.engine, 2, "r", &begin, Some(&source("k", ""))).unwrap();
        assert_same(&first, &again);
    });
}

#[test]
fn a_run_that_is_begun_again_is_the_same() {
    each_store(|world| {
        let begin = |digest: &str| {
            let new = NewRun { source: Some(source("k", digest)), ..named("c", Driver::Server) };
            let start = members(json!({ "channel": "c", "agents": ["a", "b"] }));
            world.engine.begin_json(at(0), "turns", &new, start, &Builtin)
        };
        let first = begin("d").unwrap();
        assert_ne!(first.effects, [""; 0]);
        assert_same(&first, &begin("d").unwrap());
        assert!(matches!(begin("other"), Err(EngineError::KeyReused)));
        assert_eq!(world.kinds(&id("c")), ["start"]);
    });
}

/// One request, delivered by several threads at the same moment.
#[test]
fn deliveries_at_once_take_effect_once() {
    each_store(|world| {
        let start = json!({ "channel": "c", "agents": ["a", "b"] });
        let said = json!({ "event": "message", "agent": "a", "text": "Hi. TURN_COMPLETE" });
        let refused = json!({ "event": "remove", "agent": "nobody" });
        let (key, threads) = (source("k", "d"), 4);
        let barrier = Barrier::new(threads);
        let deliver = |act: &(dyn Fn() -> RequestOutcome + Sync)| -> Vec<RequestOutcome> {
            thread::scope(|scope| {
                let one = || {
                    barrier.wait();
                    act()
                };
                let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        };
        let assert_once = |answers: &[RequestOutcome]| {
            let first: Vec<_> = answers.iter().filter(|answer| !answer.repeated).collect();
            assert_eq!(first.len(), 1);
            for again in answers.iter().filter(|answer| answer.repeated) {
                assert_same(first[0], again);
            }
        };
        assert_once(&deliver(&|| {
            let new = NewRun { source: Some(key.clone()), ..named("c", Driver::Server) };
            let start = members(start.clone());
            world.engine.begin_json(at(0), "turns", &new, start, &Builtin).unwrap()
        }));
        for (number, event) in [said, refused].iter().enumerate() {
            let key = source(&format!("k{number}"), "d");
            assert_once(&deliver(&|| post(&world.engine, 1, "c", event, Some(&key)).unwrap()));
        }
        assert_eq!(world.kinds(&id("c")), ["start", "message", "remove"]);
        world.assert_replays(&id("c"));
    });
}

/// The store failed, and nobody knows whether it wrote the step: the request is sent again.
#[test]
fn a_request_that_may_have_been_taken_is_taken_once() {
    each_store(|world| {
        for (name, fate) in [("before", Fate::FailsBefore), ("after", Fate::FailsAfter)] {
            world.begin::<turns::State>(name, Driver::Server, a_channel());
            let said = json!({ "event": "message", "agent": "pm", "text": "Hi. TURN_COMPLETE" });
            let key = source("k", "d");
            world.store.plan(fate);
            let failed = post(&world.engine, 1, name, &said, Some(&key));
            assert!(matches!(failed, Err(EngineError::Store(_))));
            let answer = post(&world.engine, 2, name, &said, Some(&key)).unwrap();
            assert_eq!(answer.repeated, name == "after");
            assert_eq!(answer.decisions.len(), 1);
            assert_ne!(answer.effects, [""; 0]);
            assert_eq!(world.kinds(&id(name)), ["start", "message"]);
            world.assert_replays(&id(name));
        }
    });
}

/// Whoever holds a handle learns that a request was taken, and can go on.
#[test]
fn a_handle_recognises_a_second_delivery() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let tell = || run::Event::Tell { text: "Hi".to_owned(), by: "me".to_owned() };
        let key = source("k", "d");
        world.engine.step(at(3), &mut handle, tell(), Some(&key)).unwrap();
        let again = world.engine.step(at(4), &mut handle, tell(), Some(&key));
        assert!(matches!(again, Err(EngineError::Repeated(_))));
        let other = world.engine.step(at(4), &mut handle, tell(), Some(&source("k", "other")));
        assert!(matches!(other, Err(EngineError::KeyReused)));
        let other = run::Event::Tell { text: "Hurry".to_owned(), by: "me".to_owned() };
        handle.advance(&world.engine, at(5), other).unwrap();
        assert_eq!(handle.state().feedback().len(), 2);
        let kinds = world.kinds(handle.id());
        assert_eq!(kinds.iter().filter(|kind| *kind == "tell").count(), 2);
        world.assert_replays(handle.id());
    });
}
