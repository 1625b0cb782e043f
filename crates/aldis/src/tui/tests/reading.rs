//! Following the store.

use std::sync::Arc;

use aldis_machine::run::Event;
use aldis_store::{MemoryStore, RunId, Step, Store};

use super::super::scene::SceneReader;
use super::{asking, at, channel, engine, supervised, working};
use crate::view::run_view::RunView;

#[test]
fn only_changes_are_read() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut open = supervised(&store, "first", "First", &working());
    let mut reader = SceneReader::new(&*store, None);
    let scene = reader.look(at(60)).unwrap().unwrap();
    assert_eq!((scene.runs.len(), scene.journal.len()), (1, 3));
    assert!(reader.look(at(60)).unwrap().is_none(), "nothing has happened");
    assert!(reader.look(at(90)).unwrap().is_none(), "and still nothing");
    open.advance(&engine(&store), at(90), Event::Pause { by: String::new() }).unwrap();
    let scene = reader.look(at(90)).unwrap().unwrap();
    assert_eq!(scene.journal.len(), 4);
    assert!(scene.journal[0].seq > scene.journal[1].seq, "the latest first");
    assert_eq!(RunView::new(&scene.runs[0], at(90)).status.1, "paused");
}

#[test]
fn a_step_without_a_decision_is_seen_a_little_later() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "first", "First", &working());
    let mut reader = SceneReader::new(&*store, None);
    reader.look(at(60)).unwrap();
    let run = store.run(&RunId::new("first").unwrap()).unwrap().unwrap();
    let mut record = run.record;
    record.title = "Changed".to_owned();
    store.commit(&Step::new(run.id, run.revision, record, at(60))).unwrap();
    assert!(reader.look(at(61)).unwrap().is_none());
    let scene = reader.look(at(63)).unwrap().unwrap();
    assert_eq!(scene.runs[0].run.record.title, "Changed");
}

#[test]
fn whoever_is_far_behind_gets_the_end() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut open = supervised(&store, "first", "First", &working());
    let mut reader = SceneReader::new(&*store, None);
    reader.look(at(60)).unwrap();
    for second in 0..300 {
        open.advance(&engine(&store), at(60 + second), Event::Pause { by: String::new() }).unwrap();
        open.advance(&engine(&store), at(60 + second), Event::Resume { by: String::new() })
            .unwrap();
    }
    let newest = store.decisions(&aldis_store::DecisionFilter::default()).unwrap()[0].cursor;
    let scene = reader.look(at(400)).unwrap().unwrap();
    assert_eq!(scene.journal[0].seq.to_string(), newest.to_string());
    assert_eq!(scene.journal.len(), 200);
    assert!(reader.look(at(400)).unwrap().is_none());
}

#[test]
fn one_run_is_read_alone() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "first", "First", &working());
    channel(&store, "c1");
    let mut reader = SceneReader::new(&*store, Some(RunId::new("c1").unwrap()));
    let scene = reader.look(at(60)).unwrap().unwrap();
    assert_eq!((scene.runs.len(), scene.journal.len()), (1, 1));
    assert_eq!(scene.journal[0].run, "c1");
}

#[test]
fn what_cannot_be_read_is_named() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "first", "First", &working());
    let id = RunId::new("first").unwrap();
    let run = store.run(&id).unwrap().unwrap();
    let mut record = run.record;
    record.state = "{}".to_owned();
    store.commit(&Step::new(id, run.revision, record, at(60))).unwrap();
    let scene = SceneReader::new(&*store, None).look(at(60)).unwrap().unwrap();
    let view = RunView::new(&scene.runs[0], at(60));
    assert_eq!((view.id.as_str(), &*view.status.1), ("first", "unreadable"));
    assert!(view.detail.len() > 2, "{view:?}");
}

#[test]
fn questions_of_runs_that_ended_wait_for_nobody() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut open = supervised(&store, "first", "First", &asking("keep?"));
    let mut reader = SceneReader::new(&*store, None);
    assert_eq!(reader.look(at(60)).unwrap().unwrap().questions()[0].question.text, "keep?");
    open.advance(&engine(&store), at(61), Event::Abort { by: "a human".to_owned() }).unwrap();
    assert!(reader.look(at(61)).unwrap().unwrap().questions().is_empty());
}

#[test]
fn activity_is_seen_before_anything_is_decided() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut open = supervised(&store, "first", "First", &working());
    let mut reader = SceneReader::new(&*store, None);
    reader.look(at(60)).unwrap();
    open.advance(&engine(&store), at(70), Event::Tick).unwrap();
    assert!(!open.flush(&engine(&store), at(70)).unwrap().written, "time alone is no news");
    open.advance(&engine(&store), at(75), Event::Activity).unwrap();
    assert!(reader.look(at(75)).unwrap().is_none());
    assert!(open.flush(&engine(&store), at(76)).unwrap().written);
    assert!(!open.flush(&engine(&store), at(77)).unwrap().written, "it is written");
    let scene = reader.look(at(78)).unwrap().unwrap();
    assert_eq!(RunView::new(&scene.runs[0], at(78)).last_activity, Some(at(75)));
}
