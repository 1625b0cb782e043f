//! Several processes with views of one project, in every order that matters.

use std::fs;
use std::sync::Arc;

use aldis_engine::NewRun;
use aldis_machine::HumanCommand;
use aldis_machine::phases::{Config, Pipeline, Start};
use aldis_store::{NewEffect, SqliteStore, Step};
use serde_json::Value;

use super::*;

struct Scene {
    root: tempfile::TempDir,
    engine: Engine,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("project")).unwrap();
        let store = SqliteStore::open(&root.path().join("state")).unwrap();
        Self { engine: Engine::new(Arc::new(store)), root }
    }

    fn project(&self) -> String {
        self.root.path().join("project").to_str().unwrap().to_owned()
    }

    fn start(&self, task: &str, driver: Driver) -> PhasesRun {
        let pipeline = Pipeline::caw();
        let start = Start {
            task: task.to_owned(),
            phase: "expansion".to_owned(),
            pipeline,
            config: Config::default(),
            max_iterations: 10,
            session: None,
            token: None,
            proof: aldis_machine::proof::Proof::default(),
        };
        let new = NewRun::of(self.project(), driver);
        self.engine.begin(at(0), &new, start).unwrap().0
    }

    /// The same run, as another process opens it.
    fn open(&self, run: &PhasesRun) -> PhasesRun {
        self.engine.open(run.id()).unwrap()
    }

    fn command(&self, run: &mut PhasesRun, command: &HumanCommand) {
        use aldis_machine::Machine as _;
        let event = run.state().command(command, "a test").unwrap();
        self.engine.step(at(1), run, event, None).unwrap();
    }

    fn refresh(&self, run: &mut PhasesRun) {
        refresh(&self.engine, at(2), run).unwrap();
    }

    fn file(&self) -> Option<Value> {
        match read(Path::new(&self.project())) {
            ReadOutcome::Text(text) => Some(serde_json::from_str(&text).unwrap()),
            ReadOutcome::Absent => None,
            ReadOutcome::Refused(why) => panic!("{why}"),
        }
    }

    fn shown(&self) -> (String, bool) {
        let file = self.file().unwrap();
        let task = file["task_description"].as_str().unwrap().to_owned();
        (task, file["active"].as_bool().unwrap())
    }

    fn delete(&self) {
        fs::remove_file(self.root.path().join("project").join(SHOWN_NAME)).unwrap();
    }

    fn check(&self, run: &PhasesRun) -> StateFileCheck {
        inspect(&self.engine, &self.open(run)).unwrap()
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
}

fn is_unchanged(check: &StateFileCheck) -> bool {
    matches!(check, StateFileCheck::Unchanged)
}

#[test]
fn an_older_view_never_replaces_a_newer_one() {
    let scene = Scene::new();
    let mut slow = scene.start("one", Driver::Hook);
    let mut quick = scene.open(&slow);
    scene.command(&mut quick, &HumanCommand::Abort);
    scene.refresh(&mut quick);
    assert_eq!(scene.shown(), ("one".to_owned(), false));
    scene.refresh(&mut slow);
    assert_eq!(scene.shown(), ("one".to_owned(), false));
}

/// Until the newer view is there, the older one asks for nothing, and it is no obstacle.
#[test]
fn a_view_that_is_late_is_no_edit() {
    let scene = Scene::new();
    let mut run = scene.start("one", Driver::Hook);
    scene.refresh(&mut run);
    scene.command(&mut run, &HumanCommand::Pause);
    assert!(is_unchanged(&scene.check(&run)));
    scene.refresh(&mut run);
    assert!(is_unchanged(&scene.check(&run)));
}

/// Steps that change nothing in the file are followed by nobody who writes it.
#[test]
fn a_step_that_does_not_show_does_not_keep_a_view_back() {
    let scene = Scene::new();
    let mut run = scene.start("one", Driver::Hook);
    let mut other = scene.open(&run);
    let tell = HumanCommand::Tell { text: "Use tabs.".to_owned(), to: None };
    scene.command(&mut other, &tell);
    assert_ne!(other.revision(), run.revision());
    scene.refresh(&mut run);
    assert_eq!(scene.shown(), ("one".to_owned(), true));
}

#[test]
fn the_file_is_the_live_runs_else_the_latest_ones() {
    let scene = Scene::new();
    let mut first = scene.start("one", Driver::Hook);
    scene.command(&mut first, &HumanCommand::Abort);
    let mut second = scene.start("two", Driver::Hook);
    scene.refresh(&mut second);
    scene.refresh(&mut first);
    assert_eq!(scene.shown(), ("two".to_owned(), true));
    scene.command(&mut second, &HumanCommand::Abort);
    scene.refresh(&mut second);
    scene.refresh(&mut first);
    assert_eq!(scene.shown(), ("two".to_owned(), false));
}

#[test]
fn only_a_file_that_was_there_can_be_deleted() {
    let scene = Scene::new();
    let mut run = scene.start("one", Driver::Hook);
    assert!(is_unchanged(&scene.check(&run)), "it was never written");
    scene.refresh(&mut run);
    let revision = run.revision();
    scene.command(&mut run, &HumanCommand::Pause);
    scene.refresh(&mut run);
    assert_eq!(run.revision().0, revision.0 + 1, "that it was written is noted once");
    scene.delete();
    let StateFileCheck::Changed(event) = scene.check(&run) else { panic!("not noticed") };
    assert!(matches!(*event, Event::Cancel { .. }), "{event:?}");
}

/// 0.1.0 had each view in its outbox; the first one was done when the file was written.
#[test]
fn files_of_0_1_0_can_be_deleted_too() {
    for written in [false, true] {
        let scene = Scene::new();
        let store = scene.engine.shared_store();
        let run = scene.start("one", Driver::Hook);
        let stored = store.run(run.id()).unwrap().unwrap();
        let mut step = Step::new(stored.id, stored.revision, stored.record, at(1));
        let first = format!("{}/view/1", run.id());
        for key in [first.clone(), format!("{}/view/2", run.id())] {
            let (kind, body) = ("view".to_owned(), r#"{"project":"p"}"#.to_owned());
            let (lane, requires) = (String::new(), Vec::new());
            step.effects.push(NewEffect { key, kind, body, due: at(1), lane, requires });
        }
        store.commit(&step).unwrap();
        if written {
            store.effects_done(run.id(), None, &[first]).unwrap();
        }
        assert_eq!(is_unchanged(&scene.check(&run)), !written);
        let mut run = scene.open(&run);
        scene.refresh(&mut run);
        assert_eq!(store.pending_count().unwrap(), [], "nobody performs old views");
        scene.delete();
        assert!(!is_unchanged(&scene.check(&run)));
    }
}

#[test]
fn a_servers_run_has_no_file() {
    let scene = Scene::new();
    let mut run = scene.start("one", Driver::Server);
    scene.refresh(&mut run);
    assert_eq!(scene.file(), None);
    assert!(is_unchanged(&scene.check(&run)));
}
