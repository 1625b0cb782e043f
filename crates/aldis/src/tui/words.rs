//! What is said about runs, questions and decisions: lines for the view, wrapped where they are read.

use std::time::Duration;

use aldis_machine::delivery::{self, Status, Task};
use aldis_machine::stagnation::Level;
use aldis_machine::{HumanCommand, run, turns};
use aldis_signal::time::Timestamp;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar as _;

use super::model::{Model, Over};
use super::palette::Palette;
use super::scene::Asks;
use crate::view::display;
use crate::view::known::Known;
use crate::view::live::delivery::tally;
use crate::view::paint::Paint;
use crate::view::show::{self, dollars, elapsed, reasons, rough};
use crate::view::wire::run::DecisionForm;

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
    ("↑ ↓ j k", "choose, or scroll; PgUp, PgDn, Home and End go further"),
    ("Tab ← →", "the other panes"),
    ("Enter", "open the run, answer the question, or say why it was decided"),
    ("Esc", "close what is open"),
    ("a", "answer the question"),
    ("p", "pause the run"),
    ("r", "resume the run"),
    ("x", "abort the run"),
    ("q", "leave"),
];
/// Tasks by what somebody who watches wants to know first.
const BY_STATE: [Status; 9] = [
    Status::AwaitingGuidance,
    Status::Implementing,
    Status::AwaitingReview,
    Status::AwaitingAudit,
    Status::Expanding,
    Status::Blocked,
    Status::Failed,
    Status::Pending,
    Status::Complete,
];

/// A run in two lines: what it is, and how it stands.
pub(super) fn run(
    palette: Palette,
    now: Timestamp,
    known: &Known,
    width: u16,
) -> Vec<Line<'static>> {
    let stored = known.run();
    let live = known.is_live();
    let mark = if live { palette.good("● ") } else { palette.dim("  ") };
    let mut head = vec![mark, palette.strong(stored.id.as_str())];
    // The name of a channel is its title.
    if stored.record.title != stored.id.as_str() {
        let title = display::excerpt(&stored.record.title, TITLE_MAX);
        head.extend(after(palette.plain(title), palette));
    }
    let mut spans = vec![palette.plain("  ")];
    let bar = known.progress().filter(|_| live && width >= BAR_FROM).map(bar);
    spans.extend(bar.map(|bar| palette.good(bar)));
    if let Some(level) = known.worry().filter(|level| live && *level != Level::None) {
        spans.extend([worry(palette, level), palette.plain("  ")]);
    }
    spans.push(palette.plain(known.standing(Paint { on: false })));
    if let Known::Channel(_, state) = known
        && let Some(left) = deadline(palette, now, state)
    {
        spans.extend(after(left, palette));
    }
    if let Some(at) = known.evidence().filter(|_| live) {
        let text = format!("evidence {} ago", rough(now.since(at)));
        spans.extend(after(palette.dim(text), palette));
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

fn worry(palette: Palette, level: Level) -> Span<'static> {
    let text = format!("stagnation: {}", level.as_str());
    match level {
        Level::None => palette.plain(text),
        Level::Warn => palette.warn(text),
        Level::Pause | Level::Abort => palette.bad(text),
    }
}

/// How long the turn still has.
fn deadline(palette: Palette, now: Timestamp, state: &turns::State) -> Option<Span<'static>> {
    let deadline = state.holder.active()?.deadline;
    // Rounded up: whoever reads 0 sees the turn end.
    let left = deadline.since(now).as_millis().div_ceil(1_000);
    let left = Duration::from_secs(u64::try_from(left).unwrap_or(u64::MAX));
    Some(if deadline >= now {
        palette.plain(format!("{} left", elapsed(left)))
    } else {
        palette.bad(format!("{} over", elapsed(now.since(deadline))))
    })
}

/// A question in a line.
pub(super) fn question(palette: Palette, now: Timestamp, asks: &Asks) -> Line<'static> {
    Line::from(vec![
        palette.warn("? "),
        palette.strong(asks.run.as_str()),
        palette.plain("  "),
        palette.plain(asks.text.trim()),
        palette.dim(format!("  {} ago", rough(now.since(asks.at)))),
    ])
}

/// A decision in a line.
pub(super) fn decision(palette: Palette, form: &DecisionForm) -> Line<'static> {
    let time = form.at.get(11..19).unwrap_or(&form.at);
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
    lines.extend(fact(palette, "at", &form.at, width));
    for (label, text) in reasons(form) {
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
                let mut lines = about(palette, model.now, known, width);
                lines.push(Line::default());
                let journal = model.scene.journal.iter();
                let own = journal.filter(|form| form.run == run.as_str()).take(DECISIONS_SHOWN);
                lines.extend(own.map(|form| decision(palette, form)));
                lines
            }
            None => vec![Line::from(palette.dim("it is not among the runs any more"))],
        },
        Over::Answer { asks, text } => {
            let mut lines = wrapped(&asks.text, width, |text| palette.plain(text));
            lines.push(Line::default());
            let typed = wrapped(&format!("> {text}█"), width, |text| palette.strong(text));
            lines.extend(typed);
            lines.push(Line::default());
            lines.push(Line::from(palette.dim("Enter sends it, Esc leaves it")));
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
            lines.push(Line::from(palette.dim("y does it, any other key does not")));
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
    known: &Known,
    width: usize,
) -> Vec<Line<'static>> {
    let stored = known.run();
    let mut lines = wrapped(stored.record.title.trim(), width, |text| palette.strong(text));
    lines.extend(fact(palette, "run", stored.id.as_str(), width));
    lines.extend(fact(palette, "stands", &known.standing(Paint { on: false }), width));
    if let Some(percent) = known.progress() {
        let text = format!("{}{percent} %", bar(percent));
        lines.push(Line::from(vec![label(palette, "progress"), palette.good(text)]));
    }
    if let Some(level) = known.worry() {
        lines.push(Line::from(vec![label(palette, "worry"), worry(palette, level)]));
    }
    if let Some(at) = known.evidence() {
        let text = format!("{} ago", rough(now.since(at)));
        lines.extend(fact(palette, "evidence", &text, width));
    }
    lines.extend(fact(palette, "project", &show::project(stored), width));
    match known {
        Known::Channel(_, state) => lines.extend(channel(palette, now, state, width)),
        Known::Phases(_, state) => {
            if let Some(session) = &state.session {
                lines.extend(fact(palette, "session", session, width));
            }
            if let Some(error) = &state.last_error {
                lines.extend(fact(palette, "error", &error.message, width));
            }
        }
        Known::Supervised(_, state) => lines.extend(supervised(palette, now, state, width)),
        Known::Delivery(_, state) => lines.extend(tasks(palette, now, state)),
    }
    for (id, text, _) in known.questions() {
        lines.push(Line::default());
        lines.push(Line::from(palette.warn(format!("asks {id}"))));
        lines.extend(wrapped(&text, width, |text| palette.plain(text)));
    }
    lines
}

fn supervised(
    palette: Palette,
    now: Timestamp,
    state: &run::State,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(phase) = state.phase() {
        lines.extend(fact(palette, "phase", phase, width));
    }
    let worked = elapsed(Duration::from_millis(state.worked(now)));
    lines.extend(fact(palette, "worked", &worked, width));
    if let run::Status::Limited { until } = state.status() {
        lines.extend(fact(palette, "limited", &format!("until {until}"), width));
    }
    let cost = state.cost();
    if cost.tokens > 0 || cost.micro_dollars > 0 {
        let text = format!("{}, {} tokens", dollars(cost), cost.tokens);
        lines.extend(fact(palette, "cost", &text, width));
    }
    lines
}

fn channel(
    palette: Palette,
    now: Timestamp,
    state: &turns::State,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(left) = deadline(palette, now, state) {
        lines.push(Line::from(vec![label(palette, "deadline"), left]));
    }
    let holder = state.holder.turn().map(|turn| &*turn.agent);
    let queue: Vec<String> = state
        .queue
        .iter()
        .map(|agent| if holder == Some(agent) { format!("[{agent}]") } else { agent.clone() })
        .collect();
    lines.extend(fact(palette, "queue", &queue.join(", "), width));
    lines.push(Line::default());
    for entry in state.history.iter().rev().take(HISTORY_SHOWN) {
        let reason = entry.reason.map(|reason| format!(" ({})", reason.as_str()));
        lines.push(Line::from(vec![
            palette.dim(format!("{:>14}  ", format!("{} ago", rough(now.since(entry.at))))),
            palette.plain(entry.event.replace('_', " ")),
            palette.plain(format!(" {}{}", entry.agent, reason.unwrap_or_default())),
        ]));
    }
    lines
}

/// The tasks of a delivery, by state.
fn tasks(palette: Palette, now: Timestamp, state: &delivery::State) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default(), Line::from(palette.strong(tally(state)))];
    for status in BY_STATE {
        for task in state.tasks().iter().filter(|task| task.status() == status) {
            lines.push(self::task(palette, now, state, task));
        }
    }
    lines
}

fn task(palette: Palette, now: Timestamp, state: &delivery::State, task: &Task) -> Line<'static> {
    let status = task.status();
    let name = format!("{:<17} ", status.as_str());
    let name = match status {
        Status::Complete => palette.good(name),
        Status::Failed | Status::AwaitingGuidance => palette.warn(name),
        Status::Pending => palette.dim(name),
        _ => palette.strong(name),
    };
    let agent = task.agent().and_then(|agent| state.agent(agent));
    let agent = agent
        .map(|agent| format!("  {} {}", agent.role.as_str(), elapsed(now.since(agent.started_at))));
    let said = task.progress.as_deref().map(|said| format!("  {said}")).unwrap_or_default();
    Line::from(vec![
        name,
        palette.plain(format!("round {}  ", task.round)),
        palette.strong(format!("{:<12} ", task.spec.id)),
        palette.plain(display::excerpt(&task.spec.title, TITLE_MAX)),
        palette.dim(agent.unwrap_or_default()),
        palette.dim(said),
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
