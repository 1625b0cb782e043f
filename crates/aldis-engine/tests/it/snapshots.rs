//! A run, read once: of every machine, also when it cannot be understood.

use aldis_engine::{Snapshot, State};
use aldis_machine::{delivery, phases, run, turns};
use aldis_store::{Driver, Revision, RunFilter, Step};

use crate::support::{World, a_channel, a_delivery, a_run, at, each_store, id, phases, plan};

/// Lets a developer ask something.
fn ask(world: &World, run: &str, agent: u64, task: &str, second: i64) {
    let mut handle = world.engine.open::<delivery::State>(&id(run)).unwrap();
    let text = format!("SEEKING_DIVINE_CLARIFICATION: {task}\n\nQuestion: What about {task}?\n");
    let token = handle.state().expected_token(agent);
    let reply = delivery::AgentReply::read(aldis_signal::Rules::builtin(), &token, &text);
    let finished = delivery::Event::Finished { agent, exit: None, reply };
    handle.advance(&world.engine, at(second), finished).unwrap();
}

fn kind(snapshot: &Snapshot) -> &'static str {
    match snapshot.state {
        State::Delivery(_) => "delivery",
        State::Phases(_) => "phases",
        State::Run(_) => "run",
        State::Turns(_) => "turns",
        State::Unreadable(_) => "unreadable",
    }
}

#[test]
fn every_machine_has_its_state_and_what_is_unreadable_says_why() {
    each_store(|world| {
        world.begin::<run::State>("r", Driver::Process, a_run());
        world.begin::<delivery::State>("d", Driver::Process, a_delivery());
        world.begin::<phases::State>("p", Driver::Hook, phases());
        world.begin::<turns::State>("t", Driver::Server, a_channel());
        for (name, machine, state) in [
            ("u1", "run", r#"{"v":99,"state":{}}"#),
            ("u2", "run", "nonsense"),
            ("u3", "chess", r#"{"v":2,"state":{}}"#),
            ("u4", "delivery", r#"{"v":2,"state":{}}"#),
        ] {
            let mut record = world.engine.store().run(&id("r")).unwrap().unwrap().record;
            (record.machine, record.state) = (machine.to_owned(), state.to_owned());
            let step = Step::new(id(name), Revision(0), record, at(0));
            world.engine.store().commit(&step).unwrap();
        }
        let all = world.engine.snapshots(&RunFilter::default()).unwrap();
        let mut kinds: Vec<(&str, &str)> =
            all.iter().map(|snapshot| (snapshot.id().as_str(), kind(snapshot))).collect();
        kinds.sort_unstable();
        let bad = "unreadable";
        let wanted = [("d", "delivery"), ("p", "phases"), ("r", "run"), ("t", "turns")];
        assert_eq!(kinds[..4], wanted);
        assert_eq!(kinds[4..], [("u1", bad), ("u2", bad), ("u3", bad), ("u4", bad)]);
        let newer = world.engine.snapshot(&id("u1")).unwrap().unwrap();
        let State::Unreadable(why) = &newer.state else { panic!("{newer:?}") };
        assert!(why.contains("version 99"), "{why}");
        assert_eq!(newer.run.record.title, "Add CSV export", "what can be shown is shown");
        assert!(newer.questions().is_empty());
        let one = RunFilter { machine: Some("turns".to_owned()), ..RunFilter::default() };
        assert_eq!(world.engine.snapshots(&one).unwrap().len(), 1);
        assert!(world.engine.snapshot(&id("nobody")).unwrap().is_none());
    });
}

#[test]
fn questions_come_oldest_first() {
    each_store(|world| {
        let mut handle = world.begin::<delivery::State>("d", Driver::Process, a_delivery());
        handle.advance(&world.engine, at(1), delivery::Event::Begin).unwrap();
        ask(world, "d", 2, "pdf", 2);
        ask(world, "d", 1, "csv", 3);
        let snapshot = world.engine.snapshot(&id("d")).unwrap().unwrap();
        let questions = snapshot.questions();
        let asked: Vec<_> = questions.iter().map(|it| (&*it.id, it.task.as_deref())).collect();
        assert_eq!(asked, [("q1", Some("pdf")), ("q2", Some("csv"))]);
        assert!(questions[0].text.contains("What about pdf?"));
        assert_eq!(questions[0].asked_at, at(2));
        assert!(snapshot.run.record.state.is_empty(), "it is there in a better form");
    });
}

/// Ten questions at one moment: their names are counted, not spelled.
#[test]
fn questions_of_one_moment_come_in_the_order_of_their_names() {
    let world = World::memory();
    let ids: Vec<String> = (1..=12).map(|no| format!("t{no}")).collect();
    let tasks: Vec<(&str, &str)> = ids.iter().map(|id| (&**id, "Task")).collect();
    let mut start = a_delivery();
    start.plan = plan(&tasks);
    start.config.slots = 12;
    let mut handle = world.begin::<delivery::State>("d", Driver::Process, start);
    handle.advance(&world.engine, at(1), delivery::Event::Begin).unwrap();
    for agent in 1..=12 {
        ask(&world, "d", agent, &format!("t{agent}"), 2);
    }
    let snapshot = world.engine.snapshot(&id("d")).unwrap().unwrap();
    let asked: Vec<String> = snapshot.questions().into_iter().map(|it| it.id).collect();
    let wanted: Vec<String> = (1..=12).map(|no| format!("q{no}")).collect();
    assert_eq!(asked, wanted);
}
