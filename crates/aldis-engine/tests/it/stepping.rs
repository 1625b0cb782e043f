//! Decisions are written at once, quiet events with the next decision.

use aldis_engine::Handle;
use aldis_machine::run::{AgentExit, Event, Usage, WorkTree};
use aldis_machine::{delivery, phases, run, turns};
use aldis_store::Driver;

use crate::support::{World, a_channel, a_delivery, a_run, a_stop, at, each_store, phases};

/// A run whose agent works since second 2.
pub(crate) fn working(world: &World, name: &str, driver: Driver) -> Handle<run::State> {
    let mut handle = world.begin::<run::State>(name, driver, a_run());
    for (second, event) in [
        (0, Event::Begin),
        (1, Event::Looked(WorkTree::default())),
        (2, Event::Launched { agent: "1".to_owned() }),
    ] {
        handle.advance(&world.engine, at(second), event).unwrap();
    }
    handle
}

/// What an agent has spent so far.
pub(crate) fn spent(tokens: u64) -> Event {
    Event::Spent(Usage { tokens, micro_dollars: 0 })
}

pub(crate) fn exited() -> Event {
    Event::Exited(AgentExit { code: Some(0), ..AgentExit::default() })
}

#[test]
fn a_decision_is_written_and_quiet_events_wait_for_it() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let before = world.kinds(handle.id());
        let revision = handle.revision();
        for (second, event) in [(3, Event::Activity), (4, spent(10)), (5, Event::Tick)] {
            let stepped = handle.advance(&world.engine, at(second), event).unwrap();
            assert!(!stepped.written && stepped.outcome.is_nothing());
        }
        assert_eq!(world.kinds(handle.id()), before);
        assert_eq!(world.engine.open::<run::State>(handle.id()).unwrap().revision(), revision);
        let stepped = handle.advance(&world.engine, at(6), exited()).unwrap();
        assert!(stepped.written);
        let after = world.kinds(handle.id());
        assert_eq!(after[before.len()..], ["activity", "spent", "tick", "exited"]);
        assert_eq!(handle.revision().0, revision.0 + 1);
        let stored = world.engine.open::<run::State>(handle.id()).unwrap();
        assert_eq!(stored.state(), handle.state());
        world.assert_replays(handle.id());
    });
}

#[test]
fn many_of_a_kind_are_their_first_and_their_last() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let before = world.kinds(handle.id()).len();
        for second in 3..60 {
            let event = match second % 3 {
                0 => Event::Tick,
                1 => Event::Activity,
                _ => spent(u64::try_from(second).unwrap()),
            };
            assert!(!handle.advance(&world.engine, at(second), event).unwrap().written);
        }
        handle.advance(&world.engine, at(61), exited()).unwrap();
        let kinds = world.kinds(handle.id());
        let of = |kind: &str| kinds[before..].iter().filter(|it| *it == kind).count();
        assert_eq!((of("tick"), of("activity"), of("spent"), of("exited")), (2, 2, 2, 1));
        assert_eq!(handle.state().cost().tokens, 59);
        world.assert_replays(handle.id());
    });
}

/// What a clock that went back dates before it, or what is less, does not stand for an earlier event.
#[test]
fn an_event_that_says_less_supersedes_nothing() {
    let world = World::memory();
    let mut handle = working(&world, "r", Driver::Process);
    let quiet = [
        (3, Event::Activity),
        (9, Event::Activity),
        (5, Event::Activity),
        (9, spent(1)),
        (9, spent(9)),
        (9, spent(2)),
    ];
    let before = world.kinds(handle.id()).len();
    for (second, event) in quiet {
        assert!(!handle.advance(&world.engine, at(second), event).unwrap().written);
    }
    handle.flush(&world.engine, at(9)).unwrap();
    assert_eq!(world.kinds(handle.id()).len() - before, 6);
    assert_eq!(handle.state().cost().tokens, 9);
    world.assert_replays(handle.id());
}

/// An agent that waited between two signs of work waited no longer than that.
#[test]
fn what_stands_between_two_of_a_kind_keeps_its_place() {
    let world = World::memory();
    let mut handle = world.begin::<delivery::State>("d", Driver::Process, a_delivery());
    handle.advance(&world.engine, at(1), delivery::Event::Begin).unwrap();
    let before = world.kinds(handle.id()).len();
    let (worked, waits) =
        (delivery::Event::Worked { agent: 1 }, delivery::Event::Waiting { agent: 1 });
    for (second, event) in [(2, &worked), (3, &waits), (4, &worked), (90, &worked), (95, &worked)] {
        handle.advance(&world.engine, at(second), event.clone()).unwrap();
    }
    handle.flush(&world.engine, at(99)).unwrap();
    assert_eq!(world.kinds(handle.id()).len() - before, 4, "only the one at 90 s is left out");
    world.assert_replays(handle.id());
}

#[test]
fn too_many_quiet_events_are_a_step_of_their_own() {
    let world = World::memory();
    let mut handle = world.begin::<delivery::State>("d", Driver::Process, a_delivery());
    handle.advance(&world.engine, at(1), delivery::Event::Begin).unwrap();
    let before = world.kinds(handle.id()).len();
    // What was spent is a difference each time: none may be left out.
    let usage = Usage { tokens: 1, micro_dollars: 0 };
    let written: Vec<bool> = (0..600)
        .map(|_| {
            let event = delivery::Event::Spent { agent: 1, usage };
            handle.advance(&world.engine, at(2), event).unwrap().written
        })
        .collect();
    let steps: Vec<usize> = (0..600).filter(|at| written[*at]).collect();
    assert_eq!(steps, [255, 511]);
    assert_eq!(world.kinds(handle.id()).len() - before, 512);
    handle.flush(&world.engine, at(3)).unwrap();
    let stored = world.engine.open::<delivery::State>(handle.id()).unwrap();
    assert_eq!(stored.state().run().spending.spent.tokens, 600);
    world.assert_replays(handle.id());
}

#[test]
fn flush_writes_all_but_the_passing_of_time() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let revision = handle.revision();
        assert!(!handle.flush(&world.engine, at(3)).unwrap().written);
        handle.advance(&world.engine, at(3), Event::Tick).unwrap();
        assert!(!handle.flush(&world.engine, at(4)).unwrap().written);
        assert_eq!(handle.revision(), revision);
        handle.advance(&world.engine, at(5), spent(7)).unwrap();
        assert!(handle.flush(&world.engine, at(6)).unwrap().written);
        let stored = world.engine.open::<run::State>(handle.id()).unwrap();
        assert_eq!(stored.state().cost().tokens, 7);
        assert!(!handle.flush(&world.engine, at(7)).unwrap().written);
        world.assert_replays(handle.id());
    });
}

#[test]
fn what_is_none_of_a_machines_business_leaves_no_trace() {
    each_store(|world| {
        let mut run = world.begin::<phases::State>("p", Driver::Hook, phases());
        let before = run.state().clone();
        let answer = world.engine.step(at(5), &mut run, a_stop("another"), None).unwrap();
        assert_eq!((answer.effects, answer.decisions.len()), (vec![phases::Effect::Allow], 0));
        assert_eq!((run.revision().0, run.state()), (1, &before));
        let stepped = run.advance(&world.engine, at(6), a_stop("another")).unwrap();
        assert!(!stepped.written);
        let stopped = world.engine.step(at(7), &mut run, a_stop("S1"), None).unwrap();
        assert_eq!(stopped.decisions.len(), 1);
        assert_eq!(world.kinds(run.id()), ["start", "stop"]);
        world.assert_replays(run.id());

        // Not even the time at which it was refused is kept.
        let mut channel = world.begin::<turns::State>("t", Driver::Server, a_channel());
        let refused = turns::Event::Remove { agent: "nobody".to_owned() };
        let answer = world.engine.step(at(100), &mut channel, refused, None).unwrap();
        assert_eq!((answer.warnings().len(), answer.decisions.len()), (1, 0));
        let pause = turns::Event::Pause { by: "a test".to_owned() };
        world.engine.step(at(1), &mut channel, pause, None).unwrap();
        assert_eq!(channel.state().now(), at(1));
        world.assert_replays(channel.id());
    });
}

#[test]
fn refresh_takes_over_what_somebody_else_decided() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        assert!(handle.refresh(&world.engine, at(3)).unwrap().is_none());
        handle.advance(&world.engine, at(3), spent(5)).unwrap();
        let mut other = world.engine.open::<run::State>(handle.id()).unwrap();
        let pause = Event::Pause { by: "them".to_owned() };
        other.advance(&world.engine, at(4), pause).unwrap();
        let stepped = handle.refresh(&world.engine, at(5)).unwrap().unwrap();
        assert!(stepped.outcome.is_nothing() && !stepped.written);
        assert_eq!(handle.revision(), other.revision());
        assert_eq!(handle.state().status().name(), "paused");
        assert_eq!(handle.state().cost().tokens, 5, "our own event counts on");
        let resume = Event::Resume { by: "us".to_owned() };
        handle.advance(&world.engine, at(6), resume).unwrap();
        let kinds = world.kinds(handle.id());
        assert_eq!(kinds[kinds.len() - 3..], ["pause", "spent", "resume"]);
        world.assert_replays(handle.id());
    });
}
