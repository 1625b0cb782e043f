//! What the mouse means, where somebody wants it: it chooses, opens and scrolls, and commands nothing.

use ratatui::crossterm::event::{KeyCode, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Model, Order, Pane};
use crate::tui::layout::{self, RUN_LINES};

/// How many lines a turn of the wheel scrolls what is read.
const TURN: usize = 3;

impl Model {
    /// Takes the mouse from the terminal, or gives it back.
    pub(super) fn switch_mouse(&mut self) -> Order {
        self.mouse = !self.mouse;
        let note = match self.mouse {
            true => "Mouse on: click to choose, again to open; `m` gives it back to the terminal",
            false => "Mouse off: the terminal selects text",
        };
        self.note = Some(note.to_owned());
        Order::Mouse(self.mouse)
    }

    /// Does what a click or a turn of the wheel means.
    pub(super) fn pointed(&mut self, mouse: MouseEvent) -> Option<Order> {
        let key = match mouse.kind {
            MouseEventKind::ScrollUp => KeyCode::Up,
            MouseEventKind::ScrollDown => KeyCode::Down,
            MouseEventKind::Down(MouseButton::Left) if self.over.is_none() => {
                self.clicked(Position::new(mouse.column, mouse.row));
                return None;
            }
            _ => return None,
        };
        if let Some(over) = &self.over {
            // What asks for something is not scrolled.
            for _ in 0..if over.is_read() { TURN } else { 0 } {
                let over = self.over.take()?;
                self.read(key, over);
            }
            return None;
        }
        if let Some(pane) = self.pane_at(Position::new(mouse.column, mouse.row)) {
            self.focus = pane;
            self.choose(key);
        }
        None
    }

    fn pane_at(&self, at: Position) -> Option<Pane> {
        let areas = layout::areas(self);
        let panes = [
            (areas.waiting, Pane::Waiting),
            (areas.runs, Pane::Runs),
            (areas.journal, Pane::Journal),
        ];
        let found = panes.into_iter().find(|(area, _)| area.is_some_and(|area| area.contains(at)));
        found.map(|(_, pane)| pane)
    }

    /// Chooses what was clicked on; what is chosen already is opened.
    fn clicked(&mut self, at: Position) {
        let Some(pane) = self.pane_at(at) else { return };
        let was_focused = self.focus == pane;
        self.focus = pane;
        let areas = layout::areas(self);
        let area = match pane {
            Pane::Waiting => areas.waiting,
            Pane::Runs => areas.runs,
            Pane::Journal => areas.journal,
        };
        let inside = area.map(layout::inside).unwrap_or_default();
        if !inside.contains(at) || (self.one && pane == Pane::Runs) {
            return;
        }
        let lines = if pane == Pane::Runs { RUN_LINES } else { 1 };
        let (chosen, count) = self.place();
        // The list is scrolled just so far that what is chosen is seen.
        let first = (chosen + 1).saturating_sub(usize::from(inside.height / lines).max(1));
        let place = first + usize::from((at.y - inside.y) / lines);
        if place >= count {
            return;
        }
        if was_focused && place == chosen {
            self.open();
        } else {
            self.select(place);
        }
    }
}
