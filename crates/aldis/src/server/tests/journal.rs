//! What is counted of runs that the server does not step.

use aldis_engine::{Engine, NewRun};
use aldis_machine::HumanCommand;
use aldis_machine::run::{Config, Effect, Event, Start, State, Usage};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, MemoryStore, Store};
use std::sync::Arc;

use crate::server::journal::Journal;
use crate::server::metrics::{Metrics, Readings};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
}

/// A run of somebody else, until its agent is at work.
fn begun(engine: &Engine) -> aldis_engine::Handle<State> {
    let start = Start {
        task: "Add CSV export".to_owned(),
        dialect: "chorus".to_owned(),
        instructions: String::new(),
        launch: String::new(),
        config: Config::default(),
    };
    let new = NewRun::of("/home/ada/project", Driver::Process);
    let (mut run, _) = engine.begin::<State>(at(0), &new, start).unwrap();
    run.advance(engine, at(1), Event::Begin).unwrap();
    while let Some(next) = run.next_effect(engine).unwrap() {
        if matches!(next.effect, Effect::Look) {
            let looked = Event::Looked(aldis_machine::run::WorkTree::default());
            run.advance(engine, at(1), looked).unwrap();
        }
        run.performed(next.key);
    }
    run.advance(engine, at(2), Event::Launched { agent: "7".to_owned() }).unwrap();
    run
}

fn value(metrics: &Metrics, line: &str) -> Option<String> {
    let readings = Readings {
        now: at(100),
        runs_active: Vec::new(),
        queues: Vec::new(),
        sinks: Vec::new(),
        store_bytes: 0,
        turns_stuck: 0,
        store_writable: true,
    };
    let text = metrics.render(&readings).unwrap();
    text.lines().find_map(|found| found.strip_prefix(line)).map(|it| it.trim().to_owned())
}

#[test]
fn what_others_do_is_counted_once() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = Engine::new(store);
    let (metrics, mut journal) = (Metrics::new(), Journal::default());
    // What ended before anybody counted is not counted.
    let before = begun(&engine);
    engine.command(at(3), before.id(), &HumanCommand::Abort, "`aldis abort`", None).unwrap();
    journal.look(&engine, &metrics.journal).unwrap();
    let mut run = begun(&engine);
    journal.look(&engine, &metrics.journal).unwrap();
    let spend = |run: &mut aldis_engine::Handle<State>, seconds, tokens| {
        let usage = Usage { tokens, micro_dollars: tokens * 1_000 };
        run.advance(&engine, at(seconds), Event::Spent(usage)).unwrap();
        run.flush(&engine, at(seconds)).unwrap();
    };
    // A host says what the iteration has cost so far.
    spend(&mut run, 4, 100);
    spend(&mut run, 5, 250);
    engine.command(at(6), run.id(), &HumanCommand::Abort, "`aldis abort`", None).unwrap();
    run.refresh(&engine, at(6)).unwrap();
    for _ in 0..3 {
        journal.look(&engine, &metrics.journal).unwrap();
    }
    assert_eq!(value(&metrics, "aldis_tokens_total ").as_deref(), Some("250"));
    assert_eq!(value(&metrics, "aldis_cost_dollars_total ").as_deref(), Some("0.25"));
    let exited = Event::Exited(aldis_machine::run::AgentExit::default());
    run.advance(&engine, at(7), exited).unwrap();
    for _ in 0..3 {
        journal.look(&engine, &metrics.journal).unwrap();
    }
    let ended = "aldis_runs_ended_total{machine=\"run\",ending=\"aborted\"}";
    assert_eq!(value(&metrics, ended).as_deref(), Some("1"));
}
