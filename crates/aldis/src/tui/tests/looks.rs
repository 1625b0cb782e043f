//! What is on the screen, large and small, and that nothing on it is obeyed by a terminal.

use std::sync::Arc;

use aldis_store::{MemoryStore, Store};
use proptest::prelude::*;
use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::super::model::{Model, ViewInput};
use super::super::palette::Palette;
use super::super::scene::SceneReader;
use super::{View, abandon, asking, at, channel, supervised, working};
use crate::view::display::{Showing, showing};

/// What is on the screen, without the name that a delivery gets by chance.
#[track_caller]
fn assert_looks(name: &str, view: &mut View, delivery: &str, (width, height): (u16, u16)) {
    let text = view.drawn(width, height).replace(delivery, "dddddddd");
    insta::assert_snapshot!(name, text);
}

#[test]
fn everything_is_seen_at_every_size() {
    let (mut view, delivery) = View::of_everything();
    let delivery = delivery.as_str();
    assert_looks("wide", &mut view, delivery, (130, 36));
    assert_looks("usual", &mut view, delivery, (80, 24));
    assert_looks("small-runs", &mut view, delivery, (40, 10));
    view.press(KeyCode::Tab);
    assert_looks("small-journal", &mut view, delivery, (40, 10));
    view.press(KeyCode::Tab);
    assert_looks("small-waiting", &mut view, delivery, (40, 10));
}

#[test]
fn what_is_opened_says_everything() {
    let (mut view, delivery) = View::of_everything();
    let delivery = delivery.as_str();
    view.choose(delivery);
    view.press(KeyCode::Enter);
    assert_looks("open-delivery", &mut view, delivery, (80, 24));
    view.press(KeyCode::Esc);
    view.choose("c1");
    view.press(KeyCode::Enter);
    assert_looks("open-channel", &mut view, delivery, (80, 24));
    view.press(KeyCode::Esc);
    view.press(KeyCode::Tab);
    view.press(KeyCode::Enter);
    assert_looks("open-why", &mut view, delivery, (80, 24));
    view.press(KeyCode::Esc);
    view.press(KeyCode::Tab);
    view.type_in("akeep");
    assert_looks("answer", &mut view, delivery, (80, 24));
    view.press(KeyCode::Esc);
    view.type_in("x");
    assert_looks("confirm", &mut view, delivery, (40, 10));
    view.type_in("n?");
    assert_looks("help", &mut view, delivery, (80, 24));
}

#[test]
fn one_run_has_the_place_of_all() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    supervised(&store, "7f3kq2bn", "Add CSV export", &working());
    channel(&store, "c1");
    let mut view = View::of(Arc::clone(&store));
    view.model = Model::new(at(60), true, Palette { color: false });
    let only = aldis_store::RunId::new("7f3kq2bn").unwrap();
    let scene = SceneReader::new(&*store, Some(only)).look(at(60)).unwrap().unwrap();
    view.model.update(ViewInput::Seen(scene));
    assert_looks("one", &mut view, "\0", (80, 24));
}

#[test]
fn nothing_at_all_is_said_too() {
    let mut view = View::of(Arc::new(MemoryStore::new()));
    let text = view.drawn(80, 24);
    assert!(text.contains("Nothing is running") && text.contains("Nothing needs you"), "{text}");
    for key in ["a", "p", "x", "\n"] {
        view.type_in(key);
        view.drawn(80, 24);
    }
}

#[test]
fn a_run_whose_process_is_gone_is_shown_as_gone_with_the_remedy() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = supervised(&store, "7f3kq2bn", "Add CSV export", &working()).id().clone();
    abandon(&store, &id);
    let mut view = View::of(store);
    view.press(KeyCode::Enter);
    let text = view.drawn(100, 24);
    for words in
        ["0 running, 1 unsupervised", "its process is gone", "aldis run --continue 7f3kq2bn"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("working"), "{text}");
}

#[test]
fn colour_is_only_where_it_is_wanted() {
    for color in [false, true] {
        let (view, _) = View::of_everything();
        let mut model = Model::new(at(60), false, Palette { color });
        model.update(ViewInput::Size(ratatui::layout::Size::new(130, 36)));
        model.update(ViewInput::Seen(view.model.scene));
        let backend = ratatui::backend::TestBackend::new(130, 36);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        terminal.draw(|frame| super::draw(&model, frame)).unwrap();
        let mut cells = terminal.backend().buffer().content().iter();
        assert_eq!(cells.any(|cell| cell.fg != ratatui::style::Color::Reset), color);
    }
}

/// A view in which agents say this wherever they can say anything.
fn hostile(words: &str) -> View {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let phase = json!({ "name": words, "meaning": "progress", "phase": words, "quote": words });
    let mut events = working();
    events.push(json!({ "event": "heard", "said": [phase] }));
    supervised(&store, "7f3kq2bn", words, &events);
    supervised(&store, "9hh2m4xw", words, &asking(words));
    View::of(store)
}

/// Goes everywhere; every cell must be harmless.
fn assert_harmless(words: &str, (width, height): (u16, u16)) {
    let mut view = hostile(words);
    let everywhere = [
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Down,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::Enter,
        KeyCode::Char('k'),
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::Enter,
        KeyCode::PageDown,
        KeyCode::Esc,
        KeyCode::Char('p'),
        KeyCode::Esc,
    ];
    for key in everywhere {
        view.press(key);
        for c in view.drawn(width, height).chars() {
            assert!(c == '\n' || showing(c) != Showing::Symbol, "{c:?} of {words:?}");
        }
    }
}

#[test]
fn hostile_words_are_harmless() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hostile");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("display_") {
            let words = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
            assert_harmless(&words, (80, 24));
            assert_harmless(&words, (40, 10));
            seen += 1;
        }
    }
    assert!(seen >= 12, "{seen} texts");
}

#[test]
fn hostile_words_look_like_this() {
    let words = "\x1b]0;owned\x07\x1b[2J a\u{202e}b\nsecond line\ttab 漢字";
    let mut view = hostile(words);
    assert_looks("hostile", &mut view, "\0", (80, 24));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_words_fit_any_terminal(words in "\\PC{0,40}|[\\s\\S]{0,40}", width in 0_u16..150, height in 0_u16..50) {
        assert_harmless(&words, (width, height));
    }
}
