//! Draws the view: a model in, cells out.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, List, ListItem, ListState, Paragraph};

use super::layout::{self, Areas};
use super::model::{Model, Over, Pane};
use super::words;
use crate::view::run_view::RunView;

/// What the keys do, in short.
const HINTS: [&str; 8] =
    ["? help", "q quit", "Enter open", "o output", "a answer", "p pause", "r resume", "x abort"];

/// Draws everything.
pub(crate) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let Areas { header, body, runs, detail, waiting, journal, footer } = layout::areas(model);
    let runs_now: Vec<RunView> =
        model.scene.runs.iter().map(|run| RunView::new(run, model.now)).collect();
    frame.render_widget(Paragraph::new(head(model, &runs_now)), header);
    if let Some(area) = runs {
        draw_runs(model, frame, area, &runs_now);
    }
    if let Some(area) = detail {
        draw_detail(model, frame, area);
    }
    if let Some(area) = waiting {
        draw_waiting(model, frame, area);
    }
    if let Some(area) = journal {
        draw_journal(model, frame, area);
    }
    if let Some(over) = &model.over {
        draw_over(model, frame, body, over);
    }
    frame.render_widget(Paragraph::new(foot(model, footer.width.into())), footer);
}

/// How it stands altogether.
fn head(model: &Model, runs: &[RunView]) -> Line<'static> {
    let palette = model.palette;
    let gone = runs.iter().filter(|view| view.unsupervised).count();
    let live = runs.iter().filter(|view| view.live).count() - gone;
    let asking = model.inbox.len();
    let mut spans = vec![palette.strong("Aldis"), palette.plain(format!("  {live} running"))];
    let needs = if asking == 1 { "needs you" } else { "need you" };
    for (count, what) in [(gone, "unsupervised"), (asking, needs)] {
        if count > 0 {
            spans.extend([palette.plain(", "), palette.warn(format!("{count} {what}"))]);
        }
    }
    Line::from(spans)
}

/// What there is to say, else what the keys do.
fn foot(model: &Model, width: usize) -> Line<'static> {
    let palette = model.palette;
    match &model.note {
        Some(note) => Line::from(palette.warn(note)),
        None => {
            // What does not fit is in the help.
            let mut keys = String::new();
            for hint in HINTS {
                let space = if keys.is_empty() { "" } else { "  " };
                if keys.len() + space.len() + hint.len() > width {
                    break;
                }
                keys.push_str(space);
                keys.push_str(hint);
            }
            Line::from(palette.dim(keys))
        }
    }
}

fn draw_runs(model: &Model, frame: &mut Frame<'_>, area: Rect, runs: &[RunView]) {
    let block = block(model, "Runs", Pane::Runs);
    if runs.is_empty() {
        let empty =
            model.palette.dim("Nothing is running. Start something: aldis run, aldis deliver");
        frame.render_widget(Paragraph::new(Line::from(empty)).block(block), area);
        return;
    }
    if model.one {
        let width = usize::from(layout::inside(area).width);
        let view = runs.first();
        let lines = view.map(|view| words::told(model, view, width));
        let lines = lines.unwrap_or_default();
        return paragraph(frame, area, block, lines, model.scroll);
    }
    let width = layout::inside(area).width;
    let rows = runs.iter().map(|view| words::run(model.palette, model.now, view, width));
    list(model, frame, area, block, rows.collect(), (Pane::Runs, model.run_at()));
}

fn draw_detail(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(layout::inside(area).width);
    let lines = model
        .run_meant()
        .map(|run| words::about(model.palette, model.now, &RunView::new(&run, model.now), width))
        .unwrap_or_default();
    let block = Block::bordered().border_style(model.palette.frame(false));
    paragraph(frame, area, block, lines, 0);
}

fn draw_waiting(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let block = block(model, "Needs you", Pane::Waiting);
    if model.inbox.is_empty() {
        let empty = model.palette.dim("Nothing needs you.");
        frame.render_widget(Paragraph::new(Line::from(empty)).block(block), area);
        return;
    }
    let rows = model.inbox.iter().map(|item| vec![words::item(model.palette, model.now, item)]);
    list(model, frame, area, block, rows.collect(), (Pane::Waiting, model.item_at()));
}

fn draw_journal(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let block = block(model, "Journal", Pane::Journal);
    let rows = model.scene.journal.iter().map(|form| {
        let run = (!model.one).then(|| model.title_of(&form.run));
        vec![words::decision(model.palette, form, run.as_deref())]
    });
    list(model, frame, area, block, rows.collect(), (Pane::Journal, model.decision_at()));
}

fn draw_over(model: &Model, frame: &mut Frame<'_>, area: Rect, over: &Over) {
    let (title, scroll) = match over {
        Over::Help => ("Keys", 0),
        Over::Run { scroll, .. } => ("Run", *scroll),
        Over::Output { .. } => ("Output", 0),
        Over::Why { scroll, .. } => ("Why", *scroll),
        Over::Answer { .. } => ("Answer", 0),
        Over::Confirm { .. } => ("Sure?", 0),
    };
    let block = Block::bordered()
        .title(Span::styled(format!(" {title} "), model.palette.frame(true)))
        .border_style(model.palette.frame(true));
    let lines = words::over(model, over, layout::inside(area).width);
    frame.render_widget(Clear, area);
    let scroll = match over {
        // What is typed is at the end.
        Over::Answer { .. } => lines.len().saturating_sub(layout::inside(area).height.into()),
        Over::Output { back, .. } => {
            lines.len().saturating_sub(layout::inside(area).height.into()).saturating_sub(*back)
        }
        _ => scroll,
    };
    paragraph(frame, area, block, lines, scroll);
}

fn block(model: &Model, title: &'static str, pane: Pane) -> Block<'static> {
    let style = model.palette.frame(model.focus == pane);
    Block::bordered().title(Span::styled(format!(" {title} "), style)).border_style(style)
}

fn list(
    model: &Model,
    frame: &mut Frame<'_>,
    area: Rect,
    block: Block<'static>,
    rows: Vec<Vec<Line<'static>>>,
    (pane, at): (Pane, usize),
) {
    let rows = rows.into_iter().map(|lines| ListItem::new(all_fitted(lines, area)));
    let mut list = List::new(rows).block(block);
    if model.focus == pane {
        list = list.highlight_style(model.palette.chosen());
    }
    let mut state = ListState::default().with_selected(Some(at));
    frame.render_stateful_widget(list, area, &mut state);
}

/// Lines to read, from one of them on.
fn paragraph(
    frame: &mut Frame<'_>,
    area: Rect,
    block: Block<'static>,
    lines: Vec<Line<'static>>,
    scroll: usize,
) {
    let row = u16::try_from(scroll).unwrap_or(u16::MAX);
    let paragraph = Paragraph::new(all_fitted(lines, area)).block(block).scroll((row, 0));
    frame.render_widget(paragraph, area);
}

fn all_fitted(lines: Vec<Line<'static>>, area: Rect) -> Vec<Line<'static>> {
    let width = layout::inside(area).width.into();
    lines.into_iter().map(|line| words::fitted(line, width)).collect()
}
