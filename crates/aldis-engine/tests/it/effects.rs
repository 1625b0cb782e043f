//! Effects are found in the outbox in order, each is handed out once, and notes survive.

use std::sync::Arc;

use aldis_engine::{OutboundEffect, Route, RoutedRun};
use aldis_machine::run::{Effect, Event, State};
use aldis_machine::{delivery, phases, turns};
use aldis_store::{Driver, EffectState, NewEffect, PartChange, RunId, Step};
use serde_json::{Value, json};

use crate::stepping::{exited, spent, working};
use crate::support::{Fate, World, a_channel, a_delivery, a_run, a_stop, at, each_store, phases};

fn names(world: &World, run: &RunId) -> Vec<String> {
    let body = |body: &str| serde_json::from_str::<Value>(body).unwrap();
    let name = |body: Value| body["effect"].as_str().unwrap_or("?").to_owned();
    world.pending(run).iter().map(|effect| name(body(&effect.body))).collect()
}

#[test]
fn processes_and_workers_find_effects_in_the_outbox() {
    each_store(|world| {
        for (name, driver) in [("process", Driver::Process), ("worker", Driver::Worker)] {
            let mut handle = world.begin::<State>(name, driver, a_run());
            let stepped = handle.advance(&world.engine, at(1), Event::Begin).unwrap();
            let pending = world.pending(handle.id());
            let keys: Vec<&str> = pending.iter().map(|effect| &*effect.key).collect();
            let wanted: Vec<String> =
                (0..stepped.outcome.effects.len()).map(|no| format!("{name}/2/{no}")).collect();
            assert_eq!(keys, wanted);
            for effect in &pending {
                let start = effect.body.contains(r#""effect":"start""#);
                assert_eq!(effect.kind, if start { "dispatch" } else { "effect" });
            }
            // Agents of a worker's run are claimed: whoever coordinates it does not get them.
            let own = pending.iter().zip(&stepped.outcome.effects);
            let own = own.filter(|(sent, _)| driver == Driver::Process || sent.kind != "dispatch");
            for (key, wanted) in own.map(|(sent, wanted)| (&*sent.key, wanted)) {
                let next = handle.next_effect(&world.engine).unwrap().unwrap();
                assert_eq!((&next.effect, &*next.key), (wanted, key));
            }
            assert_eq!(handle.next_effect(&world.engine).unwrap(), None);
        }
        // A hook and a server perform what they are told at once.
        let mut hook = world.begin::<phases::State>("hook", Driver::Hook, phases());
        assert_ne!(world.engine.step(at(1), &mut hook, a_stop("S1"), None).unwrap().effects, []);
        let channel = world.begin::<turns::State>("server", Driver::Server, a_channel());
        assert_eq!((world.pending(hook.id()), world.pending(channel.id())), (vec![], vec![]));
    });
}

#[test]
fn what_was_performed_is_recorded_with_the_next_step_or_by_flush() {
    each_store(|world| {
        let mut handle = world.begin::<State>("r", Driver::Process, a_run());
        handle.advance(&world.engine, at(1), Event::Begin).unwrap();
        let first = handle.next_effect(&world.engine).unwrap().unwrap();
        handle.performed(first.key.clone());
        assert!(world.pending(handle.id()).iter().any(|effect| effect.key == first.key));
        handle.flush(&world.engine, at(2)).unwrap();
        let stored = world.engine.store().effect(&first.key).unwrap().unwrap();
        assert_eq!(stored.state, EffectState::Done);
        while let Some(next) = handle.next_effect(&world.engine).unwrap() {
            handle.performed(next.key);
        }
        let launched = Event::Launched { agent: "1".to_owned() };
        handle.advance(&world.engine, at(3), launched).unwrap();
        assert_eq!(names(world, handle.id()), [""; 0]);

        // A store that fails to record it is asked again.
        handle.advance(&world.engine, at(4), Event::Pause { by: "us".to_owned() }).unwrap();
        let next = handle.next_effect(&world.engine).unwrap().unwrap();
        assert_eq!(next.effect, Effect::Suspend);
        handle.performed(next.key);
        world.store.plan(Fate::FailsBefore);
        assert!(handle.flush(&world.engine, at(5)).is_err());
        handle.flush(&world.engine, at(6)).unwrap();
        assert_eq!(names(world, handle.id()), [""; 0]);
    });
}

#[test]
fn an_effect_that_somebody_performs_is_not_handed_out_again() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        while let Some(next) = handle.next_effect(&world.engine).unwrap() {
            handle.performed(next.key);
        }
        handle.advance(&world.engine, at(3), Event::Pause { by: "us".to_owned() }).unwrap();
        let suspend = handle.next_effect(&world.engine).unwrap().unwrap();
        // While it is performed, somebody else decides something with effects.
        let mut other = world.engine.open::<State>(handle.id()).unwrap();
        other.advance(&world.engine, at(4), Event::Resume { by: "them".to_owned() }).unwrap();
        handle.refresh(&world.engine, at(5)).unwrap();
        let next = handle.next_effect(&world.engine).unwrap().unwrap();
        assert_eq!(next.effect, Effect::Continue);
        handle.performed(suspend.key);
        handle.performed(next.key);
        assert_eq!(handle.next_effect(&world.engine).unwrap(), None);
        handle.flush(&world.engine, at(6)).unwrap();
        assert_eq!(names(world, handle.id()), [""; 0]);
        // Whoever opens the run after a crash gets what was not performed, in order.
        handle.advance(&world.engine, at(7), exited()).unwrap();
        let mut after = world.engine.open::<State>(handle.id()).unwrap();
        let found = after.next_effect(&world.engine).unwrap();
        assert_eq!(found, handle.next_effect(&world.engine).unwrap());
    });
}

#[test]
fn effects_that_are_stale_are_given_up_for_good() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let all = world.pending(handle.id()).len();
        let stale = |effect: &Effect| matches!(effect, Effect::Start { .. });
        world.store.plan(Fate::FailsBefore);
        assert!(handle.give_up_effects(&world.engine, stale).is_err());
        // The driver is told once; the store is asked again.
        assert_eq!(handle.give_up_effects(&world.engine, stale).unwrap(), 0);
        assert_eq!(world.pending(handle.id()).len(), all - 1);
        let mut after = world.engine.open::<State>(handle.id()).unwrap();
        assert_eq!(after.give_up_effects(&world.engine, stale).unwrap(), 0);
        while let Some(next) = after.next_effect(&world.engine).unwrap() {
            assert!(!stale(&next.effect));
        }
    });
}

#[test]
fn an_effect_that_cannot_be_understood_is_given_up() {
    each_store(|world| {
        let handle = working(world, "r", Driver::Process);
        let run = world.engine.store().run(handle.id()).unwrap().unwrap();
        let mut step = Step::new(run.id, run.revision, run.record, at(3));
        for (key, kind, body) in [
            ("r/old/0", "run", json!({ "effect": "wake", "at": "2026-11-18T06:20:00Z" })),
            ("r/old/1", "run", json!({ "effect": "look" })),
            ("r/old/2", "sink", json!({ "url": "http://localhost/" })),
        ] {
            let (lane, requires) = (String::new(), Vec::new());
            let (key, kind, body) = (key.to_owned(), kind.to_owned(), body.to_string());
            step.effects.push(NewEffect { key, kind, body, due: at(0), lane, requires });
        }
        world.engine.store().commit(&step).unwrap();
        let mut handle = world.engine.open::<State>(handle.id()).unwrap();
        let mut last = None;
        while let Some(next) = handle.next_effect(&world.engine).unwrap() {
            handle.performed(next.key.clone());
            last = Some((next.key, next.effect));
        }
        assert_eq!(last, Some(("r/old/1".to_owned(), Effect::Look)));
        handle.flush(&world.engine, at(4)).unwrap();
        let left: Vec<String> = world.pending(handle.id()).into_iter().map(|it| it.key).collect();
        assert_eq!(left, ["r/old/2"], "a server posts that");
    });
}

#[test]
fn a_dispatch_says_how_the_agent_is_started() {
    each_store(|world| {
        let launch = json!({ "command": ["agent", "--yes"] });
        let note = aldis_engine::note("launch", &launch).unwrap();
        let mut new = crate::support::named("d", Driver::Process);
        new.notes.push(note);
        let begun = world.engine.begin::<delivery::State>(at(0), &new, a_delivery());
        let mut handle = begun.unwrap().0;
        let begin = delivery::Event::Begin;
        let stepped = handle.advance(&world.engine, at(1), begin).unwrap();
        let pending = world.pending(handle.id());
        let bodies = pending.iter().map(|it| serde_json::from_str::<Value>(&it.body).unwrap());
        let mut dispatches = 0;
        for body in bodies {
            let is_dispatch = body["effect"] == "dispatch";
            dispatches += usize::from(is_dispatch);
            assert_eq!(body["launch"], if is_dispatch { launch.clone() } else { Value::Null });
        }
        assert_eq!(dispatches, 2);
        // Read again, the effect is the one that was decided.
        let mut again = world.engine.open::<delivery::State>(handle.id()).unwrap();
        let read = again.next_effect(&world.engine).unwrap().unwrap().effect;
        assert_eq!(read, stepped.outcome.effects[0]);
    });
}

/// Posts every effect to a sink, and gives those that start an agent to whoever has a label.
#[derive(Debug)]
struct Twice;

impl Route for Twice {
    fn route(&self, run: &RoutedRun<'_>, effect: &Value) -> Vec<OutboundEffect> {
        let lane = format!("lane-{}", run.id);
        let sink = OutboundEffect {
            kind: "sink",
            lane: lane.clone(),
            requires: Vec::new(),
            body: json!({ "post": effect }),
        };
        let requires = vec!["gpu".to_owned()];
        let body = effect.clone();
        vec![sink, OutboundEffect { kind: "effect", lane, requires, body }]
    }
}

#[test]
fn a_route_sends_effects_where_it_says() {
    each_store(|world| {
        let engine = world.engine.clone().with_route(Arc::new(Twice));
        let mut handle = world.begin::<State>("r", Driver::Process, a_run());
        let stepped = handle.advance(&engine, at(1), Event::Begin).unwrap();
        let pending = world.pending(handle.id());
        assert_eq!(pending.len(), 2 * stepped.outcome.effects.len());
        assert_eq!((&*pending[0].key, &*pending[0].kind), ("r/2/0", "sink"));
        assert_eq!((&*pending[1].key, &*pending[1].kind), ("r/2/0/1", "effect"));
        assert_eq!((&*pending[1].lane, &*pending[1].requires), ("lane-r", &["gpu".to_owned()][..]));
        // In memory and from the store: only what is to be performed here.
        let mut stored = engine.open::<State>(handle.id()).unwrap();
        for effect in &stepped.outcome.effects {
            let next = handle.next_effect(&engine).unwrap().unwrap();
            assert_eq!(&next.effect, effect);
            assert_eq!(stored.next_effect(&engine).unwrap(), Some(next));
        }
        assert_eq!(handle.next_effect(&engine).unwrap(), None);
        assert_eq!(stored.next_effect(&engine).unwrap(), None);
    });
}

#[test]
fn notes_are_kept_and_forgotten() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        handle.advance(&world.engine, at(3), spent(5)).unwrap();
        let note = |key: &str, value: u32| aldis_engine::note(key, &value).unwrap();
        let notes = vec![note("agent/2", 2), note("agent/1", 1), note("beside", 3)];
        handle.set_notes(&world.engine, at(4), notes).unwrap();
        // A human does something in between: the notes stay.
        let mut other = world.engine.open::<State>(handle.id()).unwrap();
        other.advance(&world.engine, at(5), Event::Pause { by: "them".to_owned() }).unwrap();
        let forget = PartChange::Clear { key: "agent/2".to_owned() };
        handle.set_notes(&world.engine, at(6), vec![forget, note("agent/3", 9)]).unwrap();
        let again = world.engine.open::<State>(handle.id()).unwrap();
        for handle in [&handle, &again] {
            let keys: Vec<&str> = handle.notes_under("agent/").collect();
            assert_eq!(keys, ["agent/1", "agent/3"]);
            assert_eq!(handle.note::<u32>("agent/3").unwrap(), Some(9));
            assert_eq!(handle.note::<u32>("agent/2").unwrap(), None);
            assert!(handle.note::<Vec<u32>>("beside").is_err());
        }
        assert_eq!(again.state().cost().tokens, 5, "events are written along");
        world.assert_replays(handle.id());
        // A failing store keeps what it had; whoever tries again gets it in.
        world.store.plan(Fate::FailsAfter);
        assert!(handle.set_notes(&world.engine, at(7), vec![note("agent/4", 4)]).is_err());
        handle.set_notes(&world.engine, at(8), vec![note("agent/4", 5)]).unwrap();
        let again = world.engine.open::<State>(handle.id()).unwrap();
        assert_eq!(again.note::<u32>("agent/4").unwrap(), Some(5));
    });
}

#[test]
fn events_that_belong_together_are_one_step_with_their_notes() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let note = |value: u32| [aldis_engine::note("beside", &value).unwrap()];
        let before = handle.revision();
        let events = vec![spent(5), Event::Pause { by: "them".to_owned() }];
        let stepped = handle.advance_together(&world.engine, at(3), events, &note(1)).unwrap();
        assert!(stepped.written && !stepped.outcome.decisions.is_empty());
        assert_eq!(handle.revision().0, before.0 + 1);
        // A step that was written although the store failed is not taken twice.
        world.store.plan(Fate::FailsAfter);
        let more = handle.advance_together(&world.engine, at(4), vec![spent(7)], &note(2));
        assert!(more.is_err());
        handle.recover(&world.engine, at(5)).unwrap();
        let again = world.engine.open::<State>(handle.id()).unwrap();
        assert_eq!(again.state().cost().tokens, handle.state().cost().tokens);
        assert_eq!(again.note::<u32>("beside").unwrap(), Some(2));
        world.assert_replays(handle.id());
    });
}
