//! A server's runs are woken when they are due, and no timer is due for ever.

use aldis_machine::run::{Event, State};
use aldis_machine::{Machine, phases, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, Step, Store as _, Timer, TimerChange};

use crate::stepping::working;
use crate::support::{Fate, World, a_channel, a_run, at, each_store, id, phases};

fn due(world: &World, now: Timestamp) -> Vec<Timer> {
    world.engine.due(now, 10).unwrap()
}

/// Sets a timer behind the machine's back.
fn arm(world: &World, name: &str, key: &str, second: i64) {
    let run = world.store.run(&id(name)).unwrap().unwrap();
    let mut step = Step::new(run.id, run.revision, run.record, at(0));
    step.timers.push(TimerChange::Set { key: key.to_owned(), due: at(second) });
    world.store.commit(&step).unwrap();
}

#[test]
fn a_timer_wakes_its_machine_and_is_set_anew() {
    each_store(|world| {
        let handle = world.begin::<turns::State>("t", Driver::Server, a_channel());
        let deadline = Machine::next_wake(handle.state()).unwrap();
        assert_eq!(due(world, at(0)), []);
        let timers = due(world, deadline);
        assert_eq!(timers.len(), 1);
        assert_eq!((&timers[0].run, &*timers[0].key, timers[0].due), (&id("t"), "wake", deadline));
        world.engine.fire(deadline, &timers[0], false).unwrap();
        assert_eq!(world.kinds(&id("t")), ["start", "wake"]);
        let woken = world.engine.open::<turns::State>(&id("t")).unwrap();
        let next = Machine::next_wake(woken.state()).unwrap();
        assert!(next > deadline);
        assert_eq!(due(world, deadline), []);
        assert_eq!(due(world, next).len(), 1);
        // Firing it again wakes a machine that has nothing to do: harmless.
        world.engine.fire(deadline, &timers[0], false).unwrap();
        assert_eq!(due(world, next).len(), 1);
        world.assert_replays(&id("t"));
    });
}

#[test]
fn a_timer_that_was_missed_says_so() {
    each_store(|world| {
        let handle = world.begin::<turns::State>("t", Driver::Server, a_channel());
        let late = Machine::next_wake(handle.state()).unwrap();
        let timer = due(world, late).remove(0);
        world.engine.fire(late, &timer, true).unwrap();
        assert_eq!(world.kinds(&id("t")), ["start", "recovered"]);
        // A supervised run has no other event for it.
        working(world, "r", Driver::Server);
        let late = world.engine.open::<State>(&id("r")).unwrap().state().next_wake().unwrap();
        let timer = due(world, late).into_iter().find(|timer| timer.run == id("r")).unwrap();
        world.engine.fire(late, &timer, true).unwrap();
        assert_eq!(world.kinds(&id("r")).last().unwrap(), "tick");
        world.assert_replays(&id("r"));
    });
}

#[test]
fn only_a_servers_runs_have_timers_and_an_end_clears_them() {
    each_store(|world| {
        working(world, "process", Driver::Process);
        assert_eq!(world.store.next_timer().unwrap(), None);
        let mut handle = working(world, "server", Driver::Server);
        assert_eq!(world.store.next_timer().unwrap(), handle.state().next_wake());
        handle.advance(&world.engine, at(3), Event::Pause { by: "me".to_owned() }).unwrap();
        assert_eq!(handle.state().next_wake(), None);
        assert_eq!(world.store.next_timer().unwrap(), None);
    });
}

#[test]
fn a_timer_that_wakes_nobody_is_cleared() {
    each_store(|world| {
        // This machine has no timers.
        let run = world.begin::<phases::State>("p", Driver::Server, phases());
        arm(world, "p", "wake", 5);
        // This one has, but not this.
        world.begin::<State>("r", Driver::Server, a_run());
        arm(world, "r", "snooze", 6);
        // Nobody knows this machine, and nobody understands that state.
        for (name, machine, state) in [("m", "chess", ""), ("s", "run", "nonsense")] {
            let mut record = world.store.run(run.id()).unwrap().unwrap().record;
            (record.machine, record.state) = (machine.to_owned(), state.to_owned());
            let step = Step::new(id(name), aldis_store::Revision(0), record, at(0));
            world.store.commit(&step).unwrap();
            arm(world, name, "wake", 7);
        }
        let timers = due(world, at(10));
        assert_eq!(timers.len(), 4);
        for timer in &timers {
            world.engine.fire(at(10), timer, false).unwrap();
        }
        assert_eq!(due(world, at(10)), []);
        assert_eq!(world.kinds(&id("p")), ["start"]);
        // One of a run that has gone is nobody's business.
        let gone = Timer { run: id("gone"), ..timers[0].clone() };
        world.engine.fire(at(10), &gone, false).unwrap();
    });
}

/// A timer that was set anew while it was found to wake nobody stays.
#[test]
fn a_timer_that_was_set_anew_is_not_cleared() {
    each_store(|world| {
        world.begin::<State>("r", Driver::Server, a_run());
        arm(world, "r", "snooze", 5);
        let timer = due(world, at(10)).remove(0);
        arm(world, "r", "snooze", 60);
        world.engine.fire(at(10), &timer, false).unwrap();
        assert_eq!(due(world, at(60)).len(), 1);
        // And one that is set anew in the last moment.
        let timer = due(world, at(60)).remove(0);
        let (store, name) = (std::sync::Arc::clone(&world.store), id("r"));
        world.store.plan(Fate::After(Box::new(move || {
            let run = store.run(&name).unwrap().unwrap();
            let mut step = Step::new(run.id, run.revision, run.record, at(0));
            step.timers.push(TimerChange::Set { key: "snooze".to_owned(), due: at(90) });
            store.commit(&step).unwrap();
        })));
        world.engine.fire(at(60), &timer, false).unwrap();
        assert_eq!(due(world, at(90)).len(), 1);
    });
}

#[test]
fn a_store_that_fails_leaves_the_timer_due() {
    each_store(|world| {
        world.begin::<turns::State>("t", Driver::Server, a_channel());
        let late = world.store.next_timer().unwrap().unwrap();
        let timer = due(world, late).remove(0);
        world.store.plan(Fate::FailsBefore);
        assert!(world.engine.fire(late, &timer, false).is_err());
        assert_eq!(due(world, late), std::slice::from_ref(&timer));
        world.store.plan(Fate::FailsAfter);
        assert!(world.engine.fire(late, &timer, false).is_err());
        assert_eq!(due(world, late), []);
        world.assert_replays(&id("t"));
    });
}
