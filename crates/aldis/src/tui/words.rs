//! What is said about runs, questions and decisions: lines for the view, wrapped where they are read.

use aldis_machine::HumanCommand;
use aldis_machine::stagnation::Level;
use aldis_signal::time::Timestamp;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar as _;

use super::model::{Model, Over};
use super::palette::Palette;
use super::scene::Asks;
use crate::view::display;
use crate::view::run_view::{RunView, left};
use crate::view::show;
use crate::view::time::{ago, clock_time, elapsed, local};
use crate::view::wire::run::DecisionForm;
use crate::view::wire::task::TaskLine;

/// How wide a bar is.
const BAR: usize = 10;
/// Rows that are narrower have none.
const BAR_FROM: u16 = 60;
/// How wide the names of facts are.
const LABEL: usize = 10;
/// How much of a title is shown in a row.
const TITLE_MAX: usize = 80;
/// How much history of a channel is shown.
const HISTORY_SHOWN: usize = 12;
/// How many decisions are shown with a run.
const DECISIONS_SHOWN: usize = 20;
/// What the keys do.
const KEYS: [(&str, &str); 9] = [
    ("↑ ↓ j k", "move or scroll; also PgUp, PgDn, Home and End"),
    ("Tab ← →", "go to the next pane"),
    ("Enter", "open the run, answer the question, or show why it was decided"),
    ("Esc", "close what is open"),
    ("a", "answer the question"),
    ("p", "pause the run"),
    ("r", "resume the run"),
    ("x", "abort the run"),
    ("q", "quit"),
];
/// Tasks by what somebody who watches wants to know first.
const BY_STATE: [&str; 9] = [
    "awaiting-guidance",
    "implementing",
    "awaiting-review",
    "awaiting-audit",
    "expanding",
    "blocked",
    "failed",
    "pending",
    "complete",
];

/// A run in two lines: what it is, and how it is.
pub(super) fn run(
    palette: Palette,
    now: Timestamp,
    view: &RunView,
    width: u16,
) -> Vec<Line<'static>> {
    let mark = if view.live { palette.good("● ") } else { palette.dim("  ") };
    let mut head = vec![mark, palette.strong(view.id.as_str())];
    // The name of a channel is its title.
    if view.title != view.id.as_str() {
        head.extend(after(palette.plain(display::excerpt(&view.title, TITLE_MAX)), palette));
    }
    let mut spans = vec![palette.plain("  ")];
    let bar = view.progress.filter(|_| view.live && width >= BAR_FROM).map(bar);
    spans.extend(bar.map(|bar| palette.good(bar)));
    let (tone, status) = &view.status;
    spans.extend([palette.tone(*tone, status), palette.plain(&view.detail)]);
    if let Some(deadline) = view.deadline {
        let left = left(now, deadline);
        let left = if deadline < now { palette.bad(left) } else { palette.plain(left) };
        spans.extend(after(left, palette));
    }
    if view.stagnation.is_some_and(|level| view.live && level != Level::None) {
        spans.extend(after(palette.warn("stalled"), palette));
    }
    if let Some(at) = view.last_activity.filter(|_| view.live) {
        spans.extend(after(palette.dim(format!("active {}", ago(now, at))), palette));
    }
    vec![Line::from(head), Line::from(spans)]
}

fn after(span: Span<'static>, palette: Palette) -> [Span<'static>; 2] {
    [palette.plain("  "), span]
}

fn bar(percent: u8) -> String {
    let full = (usize::from(percent) * BAR / 100).min(BAR);
    format!("{}{} ", "█".repeat(full), "░".repeat(BAR - full))
}

/// A question in a line.
pub(super) fn question(palette: Palette, now: Timestamp, asks: &Asks) -> Line<'static> {
    Line::from(vec![
        palette.warn("? "),
        palette.strong(asks.run.as_str()),
        palette.plain("  "),
        palette.plain(asks.question.text.trim()),
        palette.dim(format!("  {}", ago(now, asks.question.asked_at))),
    ])
}

/// A decision in a line.
pub(super) fn decision(palette: Palette, form: &DecisionForm) -> Line<'static> {
    let time = clock_time(form.at);
    let task = form.task.as_deref().map(|task| format!(" {task}")).unwrap_or_default();
    Line::from(vec![
        palette.dim(time),
        palette.plain("  "),
        palette.strong(format!("{}{task}", form.run)),
        palette.plain("  "),
        palette.plain(&form.summary),
        palette.dim(format!("  {}", form.rule)),
    ])
}

/// Why something was decided.
pub(super) fn why(palette: Palette, form: &DecisionForm, width: usize) -> Vec<Line<'static>> {
    let mut lines = wrapped(&form.summary, width, |text| palette.strong(text));
    lines.push(Line::default());
    lines.extend(fact(palette, "run", &form.run, width));
    lines.extend(fact(palette, "at", &local(form.at), width));
    for (label, text) in show::reasons(form, None) {
        lines.extend(fact(palette, label, &text, width));
    }
    lines
}

/// What lies over the panes.
pub(super) fn over(model: &Model, over: &Over, width: u16) -> Vec<Line<'static>> {
    let (palette, width) = (model.palette, usize::from(width));
    match over {
        Over::Help => help(palette, width),
        Over::Why { form, .. } => why(palette, form, width),
        Over::Run { run, .. } => match model.scene.run(run) {
            Some(known) => {
                let mut lines = about(palette, model.now, &RunView::new(known, model.now), width);
                lines.push(Line::default());
                let journal = model.scene.journal.iter();
                let own = journal.filter(|form| form.run == run.as_str()).take(DECISIONS_SHOWN);
                lines.extend(own.map(|form| decision(palette, form)));
                lines
            }
            None => vec![Line::from(palette.dim("this run is no longer listed"))],
        },
        Over::Answer { asks, text } => {
            let mut lines = wrapped(&asks.question.text, width, |text| palette.plain(text));
            lines.push(Line::default());
            let typed = wrapped(&format!("> {text}█"), width, |text| palette.strong(text));
            lines.extend(typed);
            lines.push(Line::default());
            lines.push(Line::from(palette.dim("Enter to send, Esc to cancel")));
            lines
        }
        Over::Confirm { run, title, command } => {
            let verb = match command {
                HumanCommand::Pause => "Pause",
                HumanCommand::Resume => "Resume",
                HumanCommand::Abort => "Abort",
                HumanCommand::Answer { .. } => "Answer",
                HumanCommand::Tell { .. } => "Tell",
            };
            let title = display::excerpt(title, TITLE_MAX);
            let ask = format!("{verb} {run}: {title}?");
            let mut lines = wrapped(&ask, width, |text| palette.warn(text));
            lines.push(Line::default());
            lines.push(Line::from(palette.dim("y to confirm, any other key to cancel")));
            lines
        }
    }
}

fn help(palette: Palette, width: usize) -> Vec<Line<'static>> {
    KEYS.iter().flat_map(|(keys, what)| fact(palette, keys, what, width)).collect()
}

/// Everything about a run.
pub(super) fn about(
    palette: Palette,
    now: Timestamp,
    view: &RunView,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = wrapped(&view.title, width, |text| palette.strong(text));
    lines.extend(fact(palette, "run", view.id.as_str(), width));
    let (tone, _) = view.status;
    for (at, line) in wrap(&view.summary(), width.saturating_sub(LABEL)).into_iter().enumerate() {
        let name = label(palette, if at == 0 { "status" } else { "" });
        lines.push(Line::from(vec![name, palette.tone(tone, line)]));
    }
    if let Some(percent) = view.progress {
        let text = format!("{}{percent} %", bar(percent));
        lines.push(Line::from(vec![label(palette, "progress"), palette.good(text)]));
    }
    for (name, text) in view.all_facts(now) {
        lines.extend(fact(palette, name, &text, width));
    }
    if !view.tasks.is_empty() {
        lines.push(Line::default());
    }
    let mut tasks: Vec<&TaskLine> = view.tasks.iter().collect();
    tasks.sort_by_key(|task| BY_STATE.iter().position(|status| *status == task.status));
    lines.extend(tasks.into_iter().map(|task| self::task(palette, now, task)));
    if !view.history.is_empty() {
        lines.push(Line::default());
    }
    for (at, text) in view.history.iter().take(HISTORY_SHOWN) {
        let when = format!("{:>14}  ", ago(now, *at));
        lines.push(Line::from(vec![palette.dim(when), palette.plain(text)]));
    }
    for question in &view.questions {
        lines.push(Line::default());
        lines.push(Line::from(palette.warn(format!("question {}", question.id))));
        lines.extend(wrapped(&question.text, width, |text| palette.plain(text)));
    }
    lines
}

fn task(palette: Palette, now: Timestamp, task: &TaskLine) -> Line<'static> {
    let agent = task.role.as_ref().zip(task.since);
    let agent = agent.map(|(role, since)| format!("  {role} {}", elapsed(now.since(since))));
    let progress = task.progress.as_deref().map(|text| format!("  {text}")).unwrap_or_default();
    Line::from(vec![
        palette.tone(show::task_tone(&task.status), format!("{:<17} ", task.status)),
        palette.plain(format!("round {}  ", task.round)),
        palette.strong(format!("{:<12} ", task.task)),
        palette.plain(display::excerpt(&task.title, TITLE_MAX)),
        palette.dim(agent.unwrap_or_default()),
        palette.dim(progress),
    ])
}

fn label(palette: Palette, name: &str) -> Span<'static> {
    palette.dim(format!("{name:<LABEL$}"))
}

/// A fact with its name; further lines stand below the first.
fn fact(palette: Palette, name: &str, text: &str, width: usize) -> Vec<Line<'static>> {
    let room = width.saturating_sub(LABEL);
    let mut name = label(palette, name);
    let mut lines = Vec::new();
    for line in wrap(text, room) {
        let name = std::mem::replace(&mut name, label(palette, ""));
        lines.push(Line::from(vec![name, palette.plain(line)]));
    }
    lines
}

pub(super) fn wrapped(
    text: &str,
    width: usize,
    style: impl Fn(String) -> Span<'static>,
) -> Vec<Line<'static>> {
    wrap(text, width).into_iter().map(|line| Line::from(style(line))).collect()
}

/// Cuts a line that is too long, and shows that it was cut.
pub(super) fn fitted(line: Line<'static>, width: usize) -> Line<'static> {
    if line.width() <= width {
        return line;
    }
    let mut left = width.saturating_sub(1);
    let mut spans = Vec::new();
    for span in line.spans {
        let mut text = String::new();
        for c in span.content.chars() {
            let wide = c.width().unwrap_or(0);
            if wide > left {
                spans.extend([Span::styled(text, span.style), Span::raw("…")]);
                return Line::from(spans);
            }
            left -= wide;
            text.push(c);
        }
        spans.push(Span::styled(text, span.style));
    }
    Line::from(spans)
}

/// Cuts text into harmless lines that fit, at spaces where there are some.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut rest = &*display::line(line);
        while let Some(cut) = fitting(rest, width) {
            let (now, later) = rest.split_at(cut);
            lines.push(now.trim_end().to_owned());
            rest = later.trim_start();
        }
        lines.push(rest.to_owned());
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Where a line that is too long is cut; nothing if it fits.
fn fitting(line: &str, width: usize) -> Option<usize> {
    let mut used = 0;
    let mut space = None;
    for (at, c) in line.char_indices() {
        if c == ' ' && at > 0 {
            space = Some(at);
        }
        used += c.width().unwrap_or(0);
        if used > width {
            // One character always fits, or this would never end.
            let least = line.chars().next().map_or(0, char::len_utf8);
            return Some(space.unwrap_or(at).max(least)).filter(|cut| *cut < line.len());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    //! Wrapping.

    use super::*;

    #[test]
    fn lines_are_cut_at_spaces() {
        for (text, width, want) in [
            ("", 5, &[""][..]),
            ("one two three", 7, &["one two", "three"]),
            ("one two three", 6, &["one", "two", "three"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a\n\nb", 5, &["a", "", "b"]),
            ("漢字漢字", 4, &["漢字", "漢字"]),
            ("漢字", 1, &["漢", "字"]),
            ("a\u{202e}b", 40, &["a<U+202E>b"]),
        ] {
            assert_eq!(wrap(text, width), want, "{text:?} in {width}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_everything_fits(text in "[a-z \u{301}漢]{0,80}", width in 2_usize..20) {
            let letters = |text: String| text.replace(' ', "");
            let lines = wrap(&text, width);
            assert_eq!(letters(display::line(&text)), letters(lines.concat()));
            for line in lines {
                let wide: usize = line.chars().map(|c| c.width().unwrap_or(0)).sum();
                assert!(wide <= width, "{line:?} in {width}");
            }
        }
    }
}
