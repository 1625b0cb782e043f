//! What humans want of runs: every command, every machine, whoever drives.

use aldis_engine::{Engine, EngineError, RequestOutcome};
use aldis_machine::{HumanCommand, NotPossible, delivery, phases, run, turns};
use aldis_store::{Driver, RunId};
use serde_json::Value;

use crate::stepping::working;
use crate::support::{Fate, World, a_channel, a_delivery, at, each_store, id, phases};

const DRIVERS: [Driver; 4] = [Driver::Hook, Driver::Process, Driver::Server, Driver::Worker];

fn tell(to: Option<&str>) -> HumanCommand {
    HumanCommand::Tell { text: "Hurry".to_owned(), to: to.map(str::to_owned) }
}

fn answer(question: &str) -> HumanCommand {
    HumanCommand::Answer { id: question.to_owned(), text: "Drop it.".to_owned() }
}

fn command(
    world: &World,
    run: &RunId,
    command: &HumanCommand,
) -> Result<RequestOutcome, EngineError> {
    world.engine.command(at(50), run, command, "a test", None)
}

/// The command is decided about, and the journal says who sent it.
#[track_caller]
fn does(world: &World, run: &RunId, wish: &HumanCommand) {
    let before = world.engine.store().run(run).unwrap().unwrap().revision;
    let answer = command(world, run, wish).unwrap_or_else(|error| panic!("{wish:?}: {error}"));
    assert_ne!(answer.decisions, [], "{wish:?}");
    assert!(!answer.repeated);
    assert_eq!(answer.run.revision().0, before.0 + 1, "{wish:?}");
    let events = world.engine.store().events(run, 0, usize::MAX).unwrap();
    let last: Value = serde_json::from_str(&events.last().unwrap().body).unwrap();
    assert_eq!(last["by"], "a test", "{wish:?}");
}

/// The command means nothing, and nothing is written.
#[track_caller]
fn refuses(world: &World, run: &RunId, wish: &HumanCommand, why: &NotPossible) {
    let before = world.engine.store().run(run).unwrap();
    match command(world, run, wish) {
        Err(EngineError::NotPossible(found)) => assert_eq!(&found, why, "{wish:?}"),
        other => panic!("{wish:?}: {other:?}"),
    }
    assert_eq!(world.engine.store().run(run).unwrap(), before, "{wish:?}");
}

fn none(question: &str) -> NotPossible {
    NotPossible::NoSuchQuestion(question.to_owned())
}

/// What every machine does with a run that can go on and then ends.
fn lives_and_ends(world: &World, run: &RunId) {
    does(world, run, &tell(None));
    refuses(world, run, &HumanCommand::Resume, &NotPossible::NotPaused);
    does(world, run, &HumanCommand::Pause);
    refuses(world, run, &HumanCommand::Pause, &NotPossible::AlreadyPaused);
    does(world, run, &HumanCommand::Resume);
    refuses(world, run, &answer("q9"), &none("q9"));
    let empty = HumanCommand::Tell { text: " ".to_owned(), to: None };
    refuses(world, run, &empty, &NotPossible::NoText);
    does(world, run, &HumanCommand::Abort);
    world.assert_replays(run);
}

fn has_ended(world: &World, run: &RunId) {
    for wish in [HumanCommand::Abort, HumanCommand::Pause, HumanCommand::Resume, tell(None)] {
        refuses(world, run, &wish, &NotPossible::Ended);
    }
}

#[test]
fn every_command_reaches_every_machine_whoever_drives() {
    each_store(|world| {
        for driver in DRIVERS {
            let name = |machine: &str| format!("{machine}-{}", driver.as_str());
            let handle = working(world, &name("run"), driver);
            lives_and_ends(world, handle.id());
            // Its agent was asked to stop; when it has, the run has ended.
            let mut handle = world.engine.open::<run::State>(handle.id()).unwrap();
            handle.advance(&world.engine, at(51), crate::stepping::exited()).unwrap();
            has_ended(world, handle.id());

            let mut handle =
                world.begin::<delivery::State>(&name("delivery"), driver, a_delivery());
            handle.advance(&world.engine, at(1), delivery::Event::Begin).unwrap();
            does(world, handle.id(), &tell(Some("csv")));
            does(world, handle.id(), &tell(Some("critic")));
            let nobody = NotPossible::NoSuchRecipient("nobody".to_owned());
            refuses(world, handle.id(), &tell(Some("nobody")), &nobody);
            lives_and_ends(world, handle.id());
            has_ended(world, handle.id());

            let handle = world.begin::<phases::State>(&name("phases"), driver, phases());
            refuses(world, handle.id(), &tell(Some("nobody")), &nobody);
            lives_and_ends(world, handle.id());
            has_ended(world, handle.id());

            let handle = world.begin::<turns::State>(&name("turns"), driver, a_channel());
            does(world, handle.id(), &tell(Some("dev")));
            refuses(world, handle.id(), &tell(Some("nobody")), &nobody);
            let told = world.engine.open::<turns::State>(handle.id()).unwrap();
            assert_eq!(told.state().active_agent(), Some("pm"));
            does(world, handle.id(), &HumanCommand::Pause);
            refuses(world, handle.id(), &HumanCommand::Pause, &NotPossible::AlreadyPaused);
            does(world, handle.id(), &HumanCommand::Resume);
            refuses(world, handle.id(), &HumanCommand::Resume, &NotPossible::NotPaused);
            refuses(world, handle.id(), &answer("q1"), &none("q1"));
            does(world, handle.id(), &HumanCommand::Abort);
            has_ended(world, handle.id());
            world.assert_replays(handle.id());
        }
    });
}

/// A run whose agent asks something.
fn asking(world: &World, name: &str, driver: Driver) -> RunId {
    let mut handle = working(world, name, driver);
    let text = "<chorus>NEEDS_HUMAN: Which separator?</chorus>";
    let rules = aldis_signal::Rules::builtin();
    let found = aldis_signal::scan(rules, text.as_bytes(), &aldis_signal::Origin::assistant());
    let signals = found.iter().filter_map(aldis_signal::Finding::signal);
    let signals = signals.map(|signal| run::RunSignal::new(signal, 1)).collect();
    for (second, event) in [
        (3, run::Event::Reported { signals }),
        (4, crate::stepping::exited()),
        (5, run::Event::Looked(run::WorkTree::default())),
    ] {
        handle.advance(&world.engine, at(second), event).unwrap();
    }
    assert_eq!(handle.state().question().map(|it| &*it.id), Some("q1"), "{text}");
    handle.id().clone()
}

#[test]
fn questions_are_answered_whoever_drives() {
    each_store(|world| {
        for driver in DRIVERS {
            let run = asking(world, &format!("run-{}", driver.as_str()), driver);
            refuses(world, &run, &HumanCommand::Pause, &NotPossible::NothingToPause);
            refuses(world, &run, &answer("q2"), &none("q2"));
            let empty = HumanCommand::Answer { id: "q1".to_owned(), text: String::new() };
            refuses(world, &run, &empty, &NotPossible::NoText);
            does(world, &run, &answer("q1"));
            refuses(world, &run, &answer("q1"), &none("q1"));
            world.assert_replays(&run);

            let name = format!("delivery-{}", driver.as_str());
            let mut handle = world.begin::<delivery::State>(&name, driver, a_delivery());
            let reply = delivery::AgentReply::read(
                aldis_signal::Rules::builtin(),
                &handle.state().expected_token(1),
                "SEEKING_DIVINE_CLARIFICATION: csv\n\nQuestion: Which separator?\n",
            );
            handle.advance(&world.engine, at(1), delivery::Event::Begin).unwrap();
            let finished = delivery::Event::Finished { agent: 1, exit: None, reply };
            handle.advance(&world.engine, at(2), finished).unwrap();
            does(world, handle.id(), &answer("q1"));
            refuses(world, handle.id(), &answer("q1"), &none("q1"));
            world.assert_replays(handle.id());
        }
    });
}

/// What a process performs after a command, it finds in its outbox.
#[test]
fn the_effects_of_a_command_reach_the_driver() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        while let Some(next) = handle.next_effect(&world.engine).unwrap() {
            handle.performed(next.key);
        }
        command(world, handle.id(), &HumanCommand::Pause).unwrap();
        handle.refresh(&world.engine, at(51)).unwrap().unwrap();
        let next = handle.next_effect(&world.engine).unwrap().unwrap();
        assert_eq!(next.effect, run::Effect::Suspend);
    });
}

/// A command means what it means to the run as it is stored, not as it was read.
#[test]
fn a_command_that_comes_second_is_judged_again() {
    each_store(|world| {
        let handle = working(world, "r", Driver::Process);
        let (engine, run): (Engine, RunId) = (world.engine.clone(), handle.id().clone());
        let other = move || {
            engine.command(at(49), &run, &HumanCommand::Pause, "them", None).unwrap();
        };
        world.store.plan(Fate::After(Box::new(other)));
        let second = command(world, handle.id(), &HumanCommand::Pause);
        let why = NotPossible::AlreadyPaused;
        assert!(matches!(second, Err(EngineError::NotPossible(it)) if it == why));
        let kinds = world.kinds(handle.id());
        assert_eq!(kinds.iter().filter(|kind| *kind == "pause").count(), 1);
        let missing = world.engine.command(at(0), &id("x"), &HumanCommand::Abort, "me", None);
        assert!(matches!(missing, Err(EngineError::NoSuchRun(_))));
    });
}
