//! The state of the view. Keys, news and the time go in; what is to be done comes out. Nothing here
//! touches the world, so that every key is a row of a test.

mod answer;
mod mouse;

use std::rc::Rc;

use aldis_engine::Snapshot;
use aldis_machine::HumanCommand;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent};
use ratatui::layout::{Rect, Size};

use super::palette::Palette;
use super::scene::{Asks, Scene};
use super::{layout, words};
use crate::app::story::StoryForm;
use crate::view::inbox;
use crate::view::run_view::RunView;
use crate::view::wire::card::{InboxAction, InboxItem};
use crate::view::wire::run::DecisionForm;

/// How much of what agents wrote is kept.
const LINES_MAX: usize = 2_000;
/// How far a page goes.
const PAGE: usize = 10;

/// What happens to the view.
#[derive(Clone, Debug)]
pub(crate) enum ViewInput {
    /// A key was pressed.
    Key(KeyEvent),
    /// Something was pasted.
    Paste(String),
    /// The mouse was used.
    Mouse(MouseEvent),
    /// There is something new to see.
    Seen(Scene),
    /// Time has passed.
    Now(Timestamp),
    /// The terminal has this size.
    Size(Size),
    /// What came of an order, or what went wrong.
    Told(String),
    /// What happened in the run that is open.
    Story(RunId, Box<StoryForm>),
    /// What its agents wrote since.
    Output(RunId, Vec<String>),
}

/// What the view wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// To leave.
    Quit,
    /// To do what a human wants of a run.
    Command { run: RunId, command: HumanCommand },
    /// To take something off the list of what needs a person.
    Dismiss { run: RunId, id: String, at: Timestamp },
    /// To get the clicks of the mouse, or to leave them to the terminal.
    Mouse(bool),
}

/// A part of the view that can have the keys, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Waiting,
    Runs,
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
    /// What the agents of a run write; `back` says how far from its end.
    Output {
        run: RunId,
        back: usize,
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

impl Over {
    /// Whether it is something to read, and asks for nothing.
    fn is_read(&self) -> bool {
        !matches!(self, Self::Answer { .. } | Self::Confirm { .. })
    }
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
    /// What needs a person, the most urgent first.
    pub(super) inbox: Vec<InboxItem>,
    /// What happened in the run that is open.
    pub(super) story: Option<(RunId, Box<StoryForm>)>,
    /// What its agents wrote.
    pub(super) output: Option<(RunId, Vec<String>)>,
    /// Whether we get the clicks of the mouse.
    mouse: bool,
    run: Option<RunId>,
    /// What is chosen of what needs a person: its run and its name.
    item: Option<(String, String)>,
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
            inbox: Vec::new(),
            story: None,
            output: None,
            mouse: false,
            run: None,
            item: None,
            decision: None,
        }
    }

    /// Takes what happened.
    pub(crate) fn update(&mut self, input: ViewInput) -> Option<Order> {
        match input {
            ViewInput::Now(now) => {
                self.now = now;
                self.sort_inbox();
            }
            ViewInput::Size(size) => self.size = size,
            ViewInput::Seen(scene) => {
                self.scene = scene;
                self.sort_inbox();
            }
            ViewInput::Story(run, story) => self.story = Some((run, story)),
            ViewInput::Output(run, lines) => self.written(run, lines),
            ViewInput::Told(text) => self.note = Some(text),
            ViewInput::Paste(pasted) => {
                if let Some(Over::Answer { text, .. }) = &mut self.over {
                    let room = answer::ANSWER_MAX.saturating_sub(text.chars().count());
                    text.extend(pasted.chars().take(room));
                }
            }
            ViewInput::Key(key) => {
                self.note = None;
                return self.key(key);
            }
            ViewInput::Mouse(mouse) => return self.pointed(mouse),
        }
        None
    }

    /// Finds what needs a person.
    fn sort_inbox(&mut self) {
        let items = self.scene.runs.iter().flat_map(|run| {
            let view = RunView::new(run, self.now);
            inbox::items(run, &view, self.now)
        });
        self.inbox = items.filter(|item| !self.scene.dismissed.has(item)).collect();
        self.inbox.sort_by_key(|item| (item.need, item.at));
    }

    /// Adds what was written. Another run begins anew.
    fn written(&mut self, run: RunId, lines: Vec<String>) {
        let known = self.output.take().filter(|(known, _)| *known == run);
        let mut all = known.map(|(_, known)| known).unwrap_or_default();
        all.extend(lines);
        all.drain(..all.len().saturating_sub(LINES_MAX));
        self.output = Some((run, all));
    }

    /// Returns the run that is looked at, and whether at its output.
    pub(super) fn looked_at(&self) -> Option<(RunId, bool)> {
        match &self.over {
            Some(Over::Run { run, .. }) => Some((run.clone(), false)),
            Some(Over::Output { run, .. }) => Some((run.clone(), true)),
            _ if self.one => Some((self.scene.runs.first()?.id().clone(), false)),
            _ => None,
        }
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

    /// A key while something is read.
    fn read(&mut self, key: KeyCode, mut over: Over) -> Option<Order> {
        if matches!(key, KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?')) {
            return None;
        }
        if let (Over::Run { run, .. }, KeyCode::Char('o')) = (&over, key) {
            self.over = Some(Over::Output { run: run.clone(), back: 0 });
            return None;
        }
        if let (Over::Output { run, .. }, KeyCode::Char('o')) = (&over, key) {
            self.over = Some(Over::Run { run: run.clone(), scroll: 0 });
            return None;
        }
        if let (Over::Run { run, .. } | Over::Output { run, .. }, KeyCode::Char(letter)) =
            (&over, key)
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
        if let Over::Output { back, .. } = &mut over {
            // Counted from the end, which is what one follows.
            let last = places.saturating_sub(1);
            *back = last - moved(last.saturating_sub(*back), key, places).min(last);
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
            KeyCode::Char('d') => return self.dismiss(),
            KeyCode::Char('m') => return Some(self.switch_mouse()),
            KeyCode::Char('o') => {
                let run = self.run_meant().map(|run| run.id().clone());
                self.over = run.map(|run| Over::Output { run, back: 0 });
            }
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
            Pane::Waiting => match self.question_meant() {
                Some(asks) => Some(Over::Answer { asks, text: String::new() }),
                None => {
                    let run = self.run_meant().map(|run| run.id().clone());
                    run.map(|run| Over::Run { run, scroll: 0 })
                }
            },
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
                    words::told(self, &view, room.width.into()).len()
                });
                self.scroll = moved(self.scroll, key, places(lines, room));
            }
            Pane::Runs | Pane::Waiting | Pane::Journal => {
                let (at, count) = self.place();
                self.select(moved(at, key, count));
            }
        }
    }

    /// The chosen place of the pane that has the keys, and how many there are.
    fn place(&self) -> (usize, usize) {
        match self.focus {
            Pane::Runs => (self.run_at(), self.scene.runs.len()),
            Pane::Waiting => (self.item_at(), self.inbox.len()),
            Pane::Journal => (self.decision_at(), self.scene.journal.len()),
        }
    }

    /// Chooses a place of the pane that has the keys.
    fn select(&mut self, at: usize) {
        match self.focus {
            Pane::Runs => self.run = self.scene.runs.get(at).map(|run| run.id().clone()),
            Pane::Waiting => {
                self.item = self.inbox.get(at).map(|item| (item.run.clone(), item.id.clone()));
            }
            Pane::Journal => {
                // At the top one follows what happens.
                let chosen = self.scene.journal.get(at).filter(|_| at > 0);
                self.decision = chosen.map(|form| form.seq);
            }
        }
    }

    /// What people call a run.
    pub(super) fn title_of(&self, run: &str) -> String {
        let known = self.scene.runs.iter().find(|known| known.id().as_str() == run);
        let title = known.map(|known| known.run.record.title.trim());
        title.filter(|title| !title.is_empty()).unwrap_or(run).to_owned()
    }

    /// The place of the chosen run.
    pub(super) fn run_at(&self) -> usize {
        let at = self.scene.runs.iter().position(|run| Some(run.id()) == self.run.as_ref());
        at.unwrap_or(0)
    }

    /// The place of what is chosen of what needs a person.
    pub(super) fn item_at(&self) -> usize {
        let Some((run, id)) = &self.item else { return 0 };
        self.inbox.iter().position(|item| item.run == *run && item.id == *id).unwrap_or(0)
    }

    /// Takes what is chosen off the list, if it can be.
    fn dismiss(&mut self) -> Option<Order> {
        let item = self.inbox.get(self.item_at()).filter(|_| self.focus == Pane::Waiting);
        let item = item.filter(|item| item.actions.contains(&InboxAction::Dismiss));
        let order = item.and_then(|item| {
            let (id, at) = (item.id.clone(), item.at);
            Some(Order::Dismiss { run: RunId::new(&*item.run).ok()?, id, at })
        });
        if order.is_none() {
            self.note = Some("nothing to dismiss here".to_owned());
        }
        order
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
            Pane::Waiting => {
                let item = self.inbox.get(self.item_at())?;
                self.scene.run(&RunId::new(&*item.run).ok()?).cloned()
            }
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
            Pane::Waiting => {
                let item = self.inbox.get(self.item_at())?;
                questions.find(|asks| item.is_question(&asks.run, &asks.question.id))
            }
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
            Self::Waiting => Self::Runs,
            Self::Runs => Self::Journal,
            Self::Journal => Self::Waiting,
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
