//! The state of the view. Keys, news and the time go in; what is to be done comes out. Nothing here
//! touches the world, so that every key is a row of a test.

use std::rc::Rc;

use aldis_engine::Snapshot;
use aldis_machine::HumanCommand;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Rect, Size};

use super::palette::Palette;
use super::scene::{Asks, Scene};
use super::{layout, words};
use crate::view::run_view::RunView;
use crate::view::wire::run::DecisionForm;

/// The longest answer that can be typed.
const ANSWER_MAX: usize = 4_000;
/// How far a page goes.
const PAGE: usize = 10;

/// What happens to the view.
#[derive(Clone, Debug)]
pub(crate) enum ViewInput {
    /// A key was pressed.
    Key(KeyEvent),
    /// Something was pasted.
    Paste(String),
    /// There is something new to see.
    Seen(Scene),
    /// Time has passed.
    Now(Timestamp),
    /// The terminal has this size.
    Size(Size),
    /// What came of an order, or what went wrong.
    Told(String),
}

/// What the view wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// To leave.
    Quit,
    /// To do what a human wants of a run.
    Command { run: RunId, command: HumanCommand },
}

/// A part of the view that can have the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Runs,
    Waiting,
    Journal,
}

/// What lies over the panes and has the keys.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    Help,
    /// All about a run.
    Run {
        run: RunId,
        scroll: usize,
    },
    /// Why something was decided.
    Why {
        form: Rc<DecisionForm>,
        scroll: usize,
    },
    /// An answer is typed.
    Answer {
        asks: Asks,
        text: String,
    },
    /// A human is asked whether they mean it.
    Confirm {
        run: RunId,
        title: String,
        command: HumanCommand,
    },
}

/// The view.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(super) scene: Scene,
    pub(super) now: Timestamp,
    pub(super) palette: Palette,
    pub(super) size: Size,
    /// Whether it is about one run.
    pub(super) one: bool,
    pub(super) focus: Pane,
    pub(super) over: Option<Over>,
    /// What there is to say, until the next key.
    pub(super) note: Option<String>,
    /// How far the only run is scrolled.
    pub(super) scroll: usize,
    run: Option<RunId>,
    question: Option<(RunId, String)>,
    /// The decision that is chosen; the latest one, whichever that is, if none.
    decision: Option<u64>,
}

impl Model {
    /// A view in which nothing was seen yet, of everything or of one run.
    pub(crate) fn new(now: Timestamp, one: bool, palette: Palette) -> Self {
        Self {
            scene: Scene::default(),
            now,
            palette,
            size: Size::default(),
            one,
            focus: Pane::Runs,
            over: None,
            note: None,
            scroll: 0,
            run: None,
            question: None,
            decision: None,
        }
    }

    /// Takes what happened.
    pub(crate) fn update(&mut self, input: ViewInput) -> Option<Order> {
        match input {
            ViewInput::Now(now) => self.now = now,
            ViewInput::Size(size) => self.size = size,
            ViewInput::Seen(scene) => self.scene = scene,
            ViewInput::Told(text) => self.note = Some(text),
            ViewInput::Paste(pasted) => {
                if let Some(Over::Answer { text, .. }) = &mut self.over {
                    let room = ANSWER_MAX.saturating_sub(text.chars().count());
                    text.extend(pasted.chars().take(room));
                }
            }
            ViewInput::Key(key) => {
                self.note = None;
                return self.key(key);
            }
        }
        None
    }

    fn key(&mut self, key: KeyEvent) -> Option<Order> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return (key.code == KeyCode::Char('c')).then_some(Order::Quit);
        }
        match self.over.take() {
            None => self.browse(key.code),
            Some(Over::Answer { asks, text }) => self.typed(key.code, asks, text),
            Some(Over::Confirm { run, command, .. }) => {
                let agreed = matches!(key.code, KeyCode::Char('y' | 'Y'));
                agreed.then_some(Order::Command { run, command })
            }
            Some(over) => self.read(key.code, over),
        }
    }

    /// A key while an answer is typed.
    fn typed(&mut self, key: KeyCode, asks: Asks, mut text: String) -> Option<Order> {
        match key {
            KeyCode::Esc => return None,
            KeyCode::Enter if !text.trim().is_empty() => {
                let command =
                    HumanCommand::Answer { id: asks.question.id, text: text.trim().to_owned() };
                return Some(Order::Command { run: asks.run, command });
            }
            KeyCode::Char(letter) if text.chars().count() < ANSWER_MAX => text.push(letter),
            KeyCode::Backspace => drop(text.pop()),
            _ => {}
        }
        self.over = Some(Over::Answer { asks, text });
        None
    }

    /// A key while something is read.
    fn read(&mut self, key: KeyCode, mut over: Over) -> Option<Order> {
        if matches!(key, KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?')) {
            return None;
        }
        if let (Over::Run { run, .. }, KeyCode::Char(letter)) = (&over, key)
            && let Some(known) = self.scene.run(run).cloned()
            && let Some(asked) = self.asked(letter, &known)
        {
            self.over = Some(asked);
            return None;
        }
        let room = layout::inside(layout::areas(self).body);
        let places = places(words::over(self, &over, room.width).len(), room);
        if let Over::Run { scroll, .. } | Over::Why { scroll, .. } = &mut over {
            *scroll = moved(*scroll, key, places);
        }
        self.over = Some(over);
        None
    }

    /// A key among the panes.
    fn browse(&mut self, key: KeyCode) -> Option<Order> {
        match key {
            KeyCode::Char('q') => return Some(Order::Quit),
            KeyCode::Char('?') => self.over = Some(Over::Help),
            KeyCode::Tab | KeyCode::Right => self.focus = self.focus.next(),
            KeyCode::BackTab | KeyCode::Left => self.focus = self.focus.next().next(),
            KeyCode::Enter => self.open(),
            KeyCode::Char('a') => match self.question_meant() {
                Some(asks) => self.over = Some(Over::Answer { asks, text: String::new() }),
                None => self.note = Some("no open question here".to_owned()),
            },
            KeyCode::Char(letter @ ('p' | 'r' | 'x')) => match self.run_meant() {
                Some(known) => self.over = self.asked(letter, &known),
                None => self.note = Some("no run is selected".to_owned()),
            },
            other => self.choose(other),
        }
        None
    }

    /// What a letter asks of a run.
    fn asked(&self, letter: char, run: &Snapshot) -> Option<Over> {
        let id = run.id().clone();
        let command = match letter {
            'a' => {
                let asks = self.scene.questions().into_iter().find(|asks| asks.run == id)?;
                return Some(Over::Answer { asks, text: String::new() });
            }
            'p' => HumanCommand::Pause,
            'r' => HumanCommand::Resume,
            'x' => HumanCommand::Abort,
            _ => return None,
        };
        let title = run.run.record.title.clone();
        Some(Over::Confirm { run: id, title, command })
    }

    /// Opens what is chosen.
    fn open(&mut self) {
        self.over = match self.focus {
            Pane::Runs => {
                let run = self.run_meant().map(|run| run.id().clone());
                run.map(|run| Over::Run { run, scroll: 0 })
            }
            Pane::Waiting => {
                let asks = self.question_meant();
                asks.map(|asks| Over::Answer { asks, text: String::new() })
            }
            Pane::Journal => {
                let form = self.scene.journal.get(self.decision_at()).cloned();
                form.map(|form| Over::Why { form, scroll: 0 })
            }
        };
    }

    /// Moves within the pane that has the keys.
    fn choose(&mut self, key: KeyCode) {
        match self.focus {
            Pane::Runs if self.one => {
                let room = layout::areas(self).runs.map(layout::inside).unwrap_or_default();
                let lines = self.run_meant().map_or(0, |run| {
                    let view = RunView::new(&run, self.now);
                    words::about(self.palette, self.now, &view, room.width.into()).len()
                });
                self.scroll = moved(self.scroll, key, places(lines, room));
            }
            Pane::Runs => {
                let at = moved(self.run_at(), key, self.scene.runs.len());
                self.run = self.scene.runs.get(at).map(|run| run.id().clone());
            }
            Pane::Waiting => {
                let questions = self.scene.questions();
                let at = moved(self.question_at(), key, questions.len());
                self.question =
                    questions.get(at).map(|asks| (asks.run.clone(), asks.question.id.clone()));
            }
            Pane::Journal => {
                let at = moved(self.decision_at(), key, self.scene.journal.len());
                // At the top one follows what happens.
                let chosen = self.scene.journal.get(at).filter(|_| at > 0);
                self.decision = chosen.map(|form| form.seq);
            }
        }
    }

    /// The place of the chosen run.
    pub(super) fn run_at(&self) -> usize {
        let at = self.scene.runs.iter().position(|run| Some(run.id()) == self.run.as_ref());
        at.unwrap_or(0)
    }

    /// The place of the chosen question.
    pub(super) fn question_at(&self) -> usize {
        let Some((run, id)) = &self.question else { return 0 };
        let questions = self.scene.questions();
        questions.iter().position(|asks| asks.run == *run && asks.question.id == *id).unwrap_or(0)
    }

    /// The place of the chosen decision.
    pub(super) fn decision_at(&self) -> usize {
        let at = self.scene.journal.iter().position(|form| Some(form.seq) == self.decision);
        at.unwrap_or(0)
    }

    /// The run that a key means: the chosen one, or the one that is looked at through something else.
    pub(super) fn run_meant(&self) -> Option<Rc<Snapshot>> {
        match self.focus {
            Pane::Runs => self.scene.runs.get(self.run_at()).cloned(),
            Pane::Waiting => self.scene.run(&self.question_meant()?.run).cloned(),
            Pane::Journal => {
                let form = self.scene.journal.get(self.decision_at())?;
                self.scene.run(&RunId::new(&*form.run).ok()?).cloned()
            }
        }
    }

    /// The question that a key means.
    fn question_meant(&self) -> Option<Asks> {
        let mut questions = self.scene.questions().into_iter();
        match self.focus {
            Pane::Waiting => questions.nth(self.question_at()),
            Pane::Runs | Pane::Journal => {
                let run = self.run_meant()?.id().clone();
                questions.find(|asks| asks.run == run)
            }
        }
    }
}

impl Pane {
    fn next(self) -> Self {
        match self {
            Self::Runs => Self::Waiting,
            Self::Waiting => Self::Journal,
            Self::Journal => Self::Runs,
        }
    }
}

/// How many places there are to scroll to.
fn places(lines: usize, room: Rect) -> usize {
    lines.saturating_sub(room.height.into()) + 1
}

/// Where a key leads among `count` places.
fn moved(at: usize, key: KeyCode, count: usize) -> usize {
    let last = count.saturating_sub(1);
    match key {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => at.saturating_add(1).min(last),
        KeyCode::PageUp => at.saturating_sub(PAGE),
        KeyCode::PageDown => at.saturating_add(PAGE).min(last),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        _ => at,
    }
}
