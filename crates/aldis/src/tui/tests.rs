//! The view: a store in, keys in, cells out.

mod keys;
mod looks;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, Handle, NewRun};
use aldis_machine::{delivery, run, turns};
use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use aldis_store::{MemoryStore, RunId, Store};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Size;
use serde_json::{Value, json};

use super::draw::draw;
use super::model::{Model, Order, ViewInput};
use super::palette::Palette;
use super::scene::SceneReader;
use crate::app::formats::plan::{PlanFormat, read_plan};

/// When tests happen.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
}

fn engine(store: &Arc<dyn Store>) -> Engine {
    Engine::new(Arc::clone(store))
}

/// A channel in which one agent has the floor since the beginning.
fn channel(store: &Arc<dyn Store>, name: &str) {
    let config = json!({ "default_timeout_seconds": 90 });
    let start = json!({ "channel": name, "agents": ["pm", "dev"], "config": config });
    let start: turns::Start = serde_json::from_value(start).unwrap();
    let id = Some(RunId::new(name).unwrap());
    let new = NewRun { id, ..NewRun::of("", aldis_store::Driver::Server) };
    engine(store).begin::<turns::State>(at(0), &new, start).unwrap();
}

/// A supervised run under this name that has taken these events, one a second.
fn supervised(
    store: &Arc<dyn Store>,
    name: &str,
    task: &str,
    events: &[Value],
) -> Handle<run::State> {
    let start = run::Start {
        task: task.to_owned(),
        dialect: "chorus".to_owned(),
        instructions: String::new(),
        launch: String::new(),
        config: run::Config::default(),
    };
    let (engine, id) = (engine(store), Some(RunId::new(name).unwrap()));
    let new = NewRun { id, ..NewRun::of("/home/me/shop", aldis_store::Driver::Process) };
    let (mut run, _) = engine.begin::<run::State>(at(0), &new, start).unwrap();
    for (second, event) in (0..).zip(events) {
        let event = serde_json::from_value(event.clone()).unwrap();
        run.advance(&engine, at(second), event).unwrap();
    }
    supervise(store, run.id());
    run
}

/// Coordinates a run from this process, as `aldis run` would.
fn supervise(store: &Arc<dyn Store>, run: &RunId) {
    let me = aldis_process::LeaseHolder::me().to_string();
    store.acquire_lease(run, &me, at(0), Duration::from_secs(3_600)).unwrap();
}

fn heard(meaning: &str, name: &str, text: &str) -> Value {
    let said = json!({ "name": name, "meaning": meaning, "text": text, "quote": text });
    json!({ "event": "heard", "said": [said] })
}

/// Leaves a run as a coordinator does that goes without ending it.
fn abandon(store: &Arc<dyn Store>, run: &RunId) {
    let lease = store.run(run).unwrap().unwrap().lease.unwrap();
    store.break_lease(run, lease.fence).unwrap();
}

/// The events of a run that has come some way.
fn working() -> Vec<Value> {
    let progress = json!({ "name": "PROGRESS", "meaning": "progress", "progress": 60 });
    vec![
        json!({ "event": "begin" }),
        json!({ "event": "launched", "agent": "{}" }),
        json!({ "event": "heard", "said": [progress] }),
    ]
}

/// The events of a run that asks something.
fn asking(question: &str) -> Vec<Value> {
    let mut events = working();
    events.push(heard("needs_human", "NEEDS_HUMAN", question));
    events.push(json!({ "event": "exited", "code": 0, "signal": null }));
    events
}

/// A delivery whose first task is being reviewed. Returns its name.
fn delivery(store: &Arc<dyn Store>, plan: &str) -> RunId {
    let format = PlanFormat::of_name("plan.md").unwrap();
    let read = read_plan(format, plan);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.problems));
    let start = delivery::Start { plan, config: delivery::Config::default(), token: None };
    let engine = engine(store);
    let new = NewRun::of("/home/me/shop", aldis_store::Driver::Process);
    let (mut run, _) = engine.begin::<delivery::State>(at(0), &new, start).unwrap();
    run.advance(&engine, at(1), delivery::Event::Begin).unwrap();
    let agent = *run.state().run().agents.keys().next().unwrap();
    let token = run.state().expected_token(agent);
    let reply = "Done.\n\nREADY_FOR_REVIEW: writer\nSummary: quotes are escaped\n";
    let reply = delivery::AgentReply::read(Rules::builtin(), &token, reply);
    let finished = delivery::Event::Finished { agent, exit: None, reply };
    run.advance(&engine, at(2), finished).unwrap();
    supervise(store, run.id());
    run.id().clone()
}

const PLAN: &str = "# Billing export\n\n- [ ] writer: CSV writer\n  - [ ] quotes are escaped\n- [ ] docs: Docs\n  \
                    needs: writer\n  - [ ] the format is described\n";

/// The view of a store.
struct View {
    store: Arc<dyn Store>,
    model: Model,
}

impl View {
    fn of(store: Arc<dyn Store>) -> Self {
        let model = Model::new(at(60), false, Palette { color: false });
        let mut view = Self { store, model };
        view.model.update(ViewInput::Size(Size::new(80, 24)));
        view.look();
        view
    }

    /// A view of one of each.
    fn of_everything() -> (Self, RunId) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        channel(&store, "c1");
        let delivery = delivery(&store, PLAN);
        supervised(&store, "7f3kq2bn", "Add CSV export", &working());
        supervised(&store, "9hh2m4xw", "Drop the old endpoint", &asking("keep or drop it?"));
        (Self::of(store), delivery)
    }

    fn look(&mut self) {
        let store = Arc::clone(&self.store);
        let scene = SceneReader::new(&*store, None).look(at(60)).unwrap().unwrap();
        self.model.update(ViewInput::Seen(scene));
    }

    fn press(&mut self, code: KeyCode) -> Option<Order> {
        self.model.update(ViewInput::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    /// Chooses a run among the others.
    fn choose(&mut self, run: &str) {
        self.press(KeyCode::Home);
        let runs = &self.model.scene.runs;
        let place = runs.iter().position(|known| known.id().as_str() == run).unwrap();
        (0..place).for_each(|_| drop(self.press(KeyCode::Down)));
    }

    /// Presses the keys of a word.
    fn type_in(&mut self, keys: &str) -> Option<Order> {
        keys.chars().map(|key| self.press(KeyCode::Char(key))).last().flatten()
    }

    /// What is on the screen, at this size.
    fn drawn(&mut self, width: u16, height: u16) -> String {
        self.model.update(ViewInput::Size(Size::new(width, height)));
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&self.model, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for y in 0..height {
            let cells = (0..width).map(|x| buffer[(x, y)].symbol());
            text.push_str(cells.collect::<String>().trim_end());
            text.push('\n');
        }
        text
    }
}
