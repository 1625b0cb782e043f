//! Where things are. On a wide terminal everything side by side, on a usual one the panes above each
//! other, on a small one only the pane that has the keys.

use ratatui::layout::{Constraint, Layout, Rect};

use super::model::{Model, Pane};

/// From this width on the chosen run is shown beside the others.
const WIDE: u16 = 110;
/// From this size on all panes are shown.
const PANES_WIDTH: u16 = 60;
const PANES_HEIGHT: u16 = 16;
/// How much of what needs a person is shown at once, beside other panes.
const ITEMS_SHOWN: u16 = 5;

/// How many lines a run has among the others.
pub(super) const RUN_LINES: u16 = 2;

/// Where each part is, if it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) header: Rect,
    /// What is between header and footer.
    pub(super) body: Rect,
    pub(super) runs: Option<Rect>,
    pub(super) detail: Option<Rect>,
    pub(super) waiting: Option<Rect>,
    pub(super) journal: Option<Rect>,
    pub(super) footer: Rect,
}

/// Divides the terminal.
pub(super) fn areas(model: &Model) -> Areas {
    let whole = Rect::from(((0, 0).into(), model.size));
    let line = Constraint::Length(1);
    let [header, body, footer] = Layout::vertical([line, Constraint::Fill(1), line]).areas(whole);
    let mut areas = Areas { header, body, footer, ..Areas::default() };
    if body.width < PANES_WIDTH || body.height < PANES_HEIGHT {
        match model.focus {
            Pane::Waiting => areas.waiting = Some(body),
            Pane::Runs => areas.runs = Some(body),
            Pane::Journal => areas.journal = Some(body),
        }
        return areas;
    }
    let items = u16::try_from(model.inbox.len()).unwrap_or(u16::MAX);
    let waiting = Constraint::Length(items.clamp(1, ITEMS_SHOWN) + 2);
    let parts = [waiting, Constraint::Fill(3), Constraint::Fill(2)];
    let [waiting, runs, journal] = Layout::vertical(parts).areas(body);
    (areas.waiting, areas.journal) = (Some(waiting), Some(journal));
    if body.width >= WIDE && !model.one {
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(runs);
        (areas.runs, areas.detail) = (Some(left), Some(right));
    } else {
        areas.runs = Some(runs);
    }
    areas
}

/// The room within a frame.
pub(super) fn inside(area: Rect) -> Rect {
    area.inner(ratatui::layout::Margin::new(1, 1))
}
