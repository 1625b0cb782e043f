//! What keys mean.

use std::sync::Arc;

use aldis_machine::HumanCommand;
use aldis_store::{MemoryStore, RunId, Store};
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use super::super::model::{Order, Over, Pane, ViewInput};
use super::super::perform;
use super::{View, abandon, asking, at, channel, engine, supervised, working};

fn run(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

fn commands(name: &str, command: HumanCommand) -> Option<Order> {
    Some(Order::Command { run: run(name), command })
}

#[test]
fn leaving() {
    let (mut view, _) = View::of_everything();
    assert_eq!(view.type_in("q"), Some(Order::Quit));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    view.type_in("?");
    assert_eq!(view.model.update(ViewInput::Key(interrupt)), Some(Order::Quit));
    assert_eq!(view.type_in("q"), None, "it closes what is open first");
    assert_eq!(view.type_in("q"), Some(Order::Quit));
}

#[test]
fn panes_go_round() {
    let (mut view, _) = View::of_everything();
    let panes = [Pane::Journal, Pane::Waiting, Pane::Runs];
    for pane in panes {
        view.press(KeyCode::Tab);
        assert_eq!(view.model.focus, pane);
    }
    for pane in [Pane::Waiting, Pane::Journal, Pane::Runs] {
        view.press(KeyCode::BackTab);
        assert_eq!(view.model.focus, pane);
    }
}

#[test]
fn choosing_stays_within_the_list() {
    let (mut view, _) = View::of_everything();
    for (keys, place) in [
        (&[KeyCode::Up][..], 0),
        (&[KeyCode::Down], 1),
        (&[KeyCode::Char('j'), KeyCode::Char('j')], 3),
        (&[KeyCode::Down], 3),
        (&[KeyCode::Char('k')], 2),
        (&[KeyCode::Home], 0),
        (&[KeyCode::PageDown], 3),
        (&[KeyCode::PageUp], 0),
        (&[KeyCode::End], 3),
    ] {
        for key in keys {
            view.press(*key);
        }
        assert_eq!(view.model.run_at(), place, "{keys:?}");
    }
}

#[test]
fn the_chosen_run_stays_chosen_when_others_come() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "first", "First", &working());
    let mut view = View::of(Arc::clone(&store));
    view.press(KeyCode::Down);
    supervised(&store, "second", "Second", &working());
    view.look();
    let chosen = view.model.run_meant().unwrap();
    assert_eq!((chosen.id().as_str(), view.model.scene.runs.len()), ("first", 2));
}

#[test]
fn the_journal_is_followed_at_its_top_only() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut open = supervised(&store, "first", "First", &working());
    let mut view = View::of(Arc::clone(&store));
    view.press(KeyCode::Tab);
    let engine = engine(&store);
    let mut pause = || {
        open.advance(&engine, at(70), aldis_machine::run::Event::Pause { by: String::new() })
            .unwrap();
        open.advance(&engine, at(71), aldis_machine::run::Event::Resume { by: String::new() })
            .unwrap();
    };
    pause();
    view.look();
    assert_eq!(view.model.decision_at(), 0, "the latest");
    view.press(KeyCode::Down);
    let chosen = view.model.scene.journal[1].seq;
    pause();
    view.look();
    assert_eq!(view.model.scene.journal[view.model.decision_at()].seq, chosen, "the same");
    assert!(view.model.decision_at() > 1);
    view.press(KeyCode::Home);
    assert_eq!(view.model.decision_at(), 0);
}

#[test]
fn nothing_is_done_to_a_run_unless_it_is_meant() {
    for (key, command) in
        [('p', HumanCommand::Pause), ('r', HumanCommand::Resume), ('x', HumanCommand::Abort)]
    {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        supervised(&store, "first", "First", &working());
        let mut view = View::of(store);
        for no in ['n', 'q', 'x', ' '] {
            assert_eq!(view.press(KeyCode::Char(key)), None);
            assert!(matches!(view.model.over, Some(Over::Confirm { .. })), "{key}");
            assert_eq!(view.press(KeyCode::Char(no)), None, "{key}{no}");
            assert!(view.model.over.is_none());
        }
        view.press(KeyCode::Char(key));
        view.model.update(ViewInput::Paste("y".to_owned()));
        assert_eq!(view.type_in("y"), commands("first", command.clone()));
        // Also from within an opened run.
        view.press(KeyCode::Enter);
        view.press(KeyCode::Char(key));
        assert_eq!(view.type_in("y"), commands("first", command));
    }
}

#[test]
fn answers_are_typed_and_sent() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "first", "First", &asking("keep?"));
    supervised(&store, "second", "Second", &working());
    let mut view = View::of(store);
    // The latest run is chosen, and it asks nothing.
    view.type_in("a");
    assert_eq!(view.model.note.as_deref(), Some("no open question here"));
    view.press(KeyCode::BackTab);
    view.type_in("a");
    assert_eq!(view.press(KeyCode::Enter), None, "nothing is no answer");
    view.type_in("yesq");
    view.press(KeyCode::Backspace);
    view.model.update(ViewInput::Paste(", and\nsoon ".to_owned()));
    let command = HumanCommand::Answer { id: "q1".to_owned(), text: "yes, and\nsoon".to_owned() };
    assert_eq!(view.press(KeyCode::Enter), commands("first", command));
    assert!(view.model.over.is_none());
    view.press(KeyCode::Enter);
    view.type_in("no");
    view.press(KeyCode::Esc);
    assert!(view.model.over.is_none(), "it was left");
    view.model.update(ViewInput::Paste("q".repeat(9)));
    assert!(view.model.over.is_none(), "a paste is no key");
}

/// The options of a question come one after the other.
#[test]
fn an_option_is_taken_with_tab() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "first", "First", &asking("keep?"));
    let mut view = View::of(store);
    view.type_in("a");
    view.press(KeyCode::Tab);
    assert_eq!(view.press(KeyCode::Enter), None, "there is none");
    let Some(Over::Answer { asks, .. }) = &mut view.model.over else { panic!() };
    asks.question.options = vec!["keep".to_owned(), "drop".to_owned()];
    for want in ["keep", "drop", "keep", "drop"] {
        view.press(KeyCode::Tab);
        let Some(Over::Answer { text, .. }) = &view.model.over else { panic!() };
        assert_eq!(text, want);
    }
    let text = view.drawn(80, 24);
    assert!(text.contains("options   keep") && text.contains("Tab for an option"), "{text}");
    let answer = HumanCommand::Answer { id: "q1".to_owned(), text: "drop".to_owned() };
    assert_eq!(view.press(KeyCode::Enter), commands("first", answer));
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> ViewInput {
    ViewInput::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

/// The mouse is the terminal's until it is wanted, and then chooses and opens, and commands nothing.
#[test]
fn the_mouse_chooses_opens_and_scrolls() {
    let (mut view, _) = View::of_everything();
    assert_eq!(view.type_in("m"), Some(Order::Mouse(true)));
    let text = view.drawn(80, 24);
    let row_of = |words: &str| text.lines().position(|line| line.contains(words)).unwrap() as u16;
    let click = |view: &mut View, row: u16| {
        let left = MouseEventKind::Down(MouseButton::Left);
        assert_eq!(view.model.update(mouse(left, 10, row)), None);
    };
    for (title, place) in [("Add CSV export", 1), ("Billing export", 2), ("c1", 3)] {
        click(&mut view, row_of(title));
        assert_eq!((view.model.focus, view.model.run_at()), (Pane::Runs, place), "{title}");
        assert!(view.model.over.is_none());
    }
    let row = row_of("Add CSV export");
    click(&mut view, row);
    click(&mut view, row + 1);
    assert!(matches!(&view.model.over, Some(Over::Run { run, .. }) if run.as_str() == "7f3kq2bn"));
    // What is open is scrolled, and a click changes nothing there.
    view.drawn(80, 10);
    view.model.update(mouse(MouseEventKind::ScrollDown, 10, 5));
    assert!(matches!(&view.model.over, Some(Over::Run { scroll: 3, .. })), "{:?}", view.model.over);
    click(&mut view, row);
    assert!(matches!(&view.model.over, Some(Over::Run { .. })));
    view.press(KeyCode::Esc);
    view.drawn(80, 24);
    // The wheel moves in the pane under it.
    view.model.update(mouse(MouseEventKind::ScrollDown, 10, row_of("10:00:02")));
    assert_eq!((view.model.focus, view.model.decision_at()), (Pane::Journal, 1));
    click(&mut view, row_of("keep or drop it?"));
    assert_eq!(view.model.focus, Pane::Waiting);
    click(&mut view, row_of("keep or drop it?"));
    assert!(matches!(view.model.over, Some(Over::Answer { .. })));
    view.model.update(mouse(MouseEventKind::ScrollDown, 10, 5));
    assert!(matches!(view.model.over, Some(Over::Answer { .. })), "it asks for something");
    view.press(KeyCode::Esc);
    // Frames, and what is below a list, are nothing.
    for row in [0, 1, 23] {
        click(&mut view, row);
        assert!(view.model.over.is_none());
    }
    assert_eq!(view.type_in("m"), Some(Order::Mouse(false)));
}

#[test]
fn runs_are_commanded_as_by_the_commands() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "first", "First", &asking("keep?"));
    supervised(&store, "left", "Left", &working());
    channel(&store, "c1");
    abandon(&store, &run("left"));
    let answer = |id: &str| HumanCommand::Answer { id: id.to_owned(), text: "yes".to_owned() };
    let left = "no process supervises run `left`, so there is nothing to pause; continue it with \
                `aldis run --continue left`, or end it with `aldis abort left`";
    for (name, command, words) in [
        ("first", answer("q9"), "no open question `q9`"),
        ("first", answer("q1"), "Answered q1; run first (First) continues"),
        ("first", HumanCommand::Resume, "the run is not paused"),
        ("first", HumanCommand::Abort, "Run first (First): stopping the agent"),
        ("left", HumanCommand::Pause, left),
        ("left", HumanCommand::Abort, "Run left (Left): aborted"),
        ("left", HumanCommand::Abort, "the run has ended"),
        ("c1", HumanCommand::Pause, "Run c1: paused"),
        ("c1", HumanCommand::Resume, "Run c1: pm's turn"),
        ("c1", HumanCommand::Abort, "Run c1: closed"),
        ("none", HumanCommand::Pause, "there is no run `none`"),
    ] {
        let said = perform(&engine(&store), at(90), &run(name), &command);
        assert!(said.starts_with(words), "{name} {command:?}: {said}");
    }
}

#[test]
fn scrolling_ends_where_the_text_does() {
    let (mut view, _) = View::of_everything();
    view.drawn(40, 10);
    view.press(KeyCode::Enter);
    for _ in 0..200 {
        view.press(KeyCode::Down);
    }
    let last = view.drawn(40, 10);
    view.press(KeyCode::Up);
    assert_ne!(view.drawn(40, 10), last, "one key back is seen at once");
}
