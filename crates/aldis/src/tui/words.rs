//! What is said about runs, questions and decisions: lines for the view, wrapped where they are read.

use aldis_machine::HumanCommand;
use aldis_machine::stagnation::Level;
use aldis_signal::time::Timestamp;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar as _;

use super::model::{Model, Over};
use super::palette::Palette;
use super::scene::Asks;
use super::timeline;
use crate::view::display;
use crate::view::run_view::{RunView, left};
use crate::view::show;
use crate::view::time::{ago, clock_time, elapsed, local};
use crate::view::wire::card::{InboxItem, Need};
use crate::view::wire::run::DecisionForm;
use crate::view::wire::task::TaskLine;

/// How wide a bar is.
const BAR: usize = 10;
/// Rows that are narrower have none.
const BAR_FROM: u16 = 60;
/// How wide the names of facts are.
const LABEL: usize = 10;
/// How much of a title is shown in a row, and in front of what was decided.
const TITLE_MAX: usize = 80;
const NAME_MAX: usize = 24;
/// How much history of a channel is shown.
const HISTORY_SHOWN: usize = 12;
/// How many claims are shown with a run.
const CLAIMS_SHOWN: usize = 5;
/// How many decisions are shown with a run.
const DECISIONS_SHOWN: usize = 20;
/// What the keys do.
const KEYS: [(&str, &str); 12] = [
    ("↑ ↓ j k", "move or scroll; also PgUp, PgDn, Home and End"),
    ("Tab ← →", "go to the next pane"),
    ("Enter", "open the run, answer the question, or show why it was decided"),
    ("o", "show what the agents of the run write, and back"),
    ("d", "dismiss what needs nobody any more"),
    ("Esc", "close what is open"),
    ("a", "answer the question"),
    ("p", "pause the run"),
    ("r", "resume the run"),
    ("x", "abort the run"),
    ("m", "use the mouse here, or leave it to the terminal"),
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
    // The name of a channel is its title.
    let is_named = !view.title.is_empty() && view.title != view.id.as_str();
    let title = if is_named { &view.title } else { view.id.as_str() };
    let mut head = vec![mark, palette.strong(display::excerpt(title, TITLE_MAX))];
    if is_named {
        head.extend(after(palette.dim(view.id.as_str()), palette));
    }
    head.extend(view.host.iter().flat_map(|host| after(palette.dim(host), palette)));
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

/// Something that needs a person in a line.
pub(super) fn item(palette: Palette, now: Timestamp, item: &InboxItem) -> Line<'static> {
    let mark = if item.need == Need::Question { "? " } else { "! " };
    let task = item.task.as_deref().map(|task| format!(" {task}")).unwrap_or_default();
    Line::from(vec![
        palette.warn(mark),
        palette.strong(format!("{}{task}", item.title)),
        palette.dim(format!("  {}  ", item.need.label())),
        palette.plain(item.text.lines().next().unwrap_or_default()),
        palette.dim(format!("  {}", ago(now, item.at))),
    ])
}

/// A decision in a line. `run` is what people call its run, where that has to be said.
pub(super) fn decision(palette: Palette, form: &DecisionForm, run: Option<&str>) -> Line<'static> {
    let mut spans = vec![palette.dim(clock_time(form.at))];
    let run = run.map(|run| display::excerpt(run, NAME_MAX));
    for name in run.into_iter().chain(form.task.clone()) {
        spans.extend(after(palette.strong(name), palette));
    }
    spans.extend(after(palette.plain(&form.summary), palette));
    spans.extend(after(palette.dim(&form.rule), palette));
    Line::from(spans)
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
                let mut lines = told(model, &RunView::new(known, model.now), width);
                lines.push(Line::default());
                let journal = model.scene.journal.iter();
                let own = journal.filter(|form| form.run == run.as_str()).take(DECISIONS_SHOWN);
                lines.extend(own.map(|form| decision(palette, form, None)));
                lines
            }
            None => vec![Line::from(palette.dim("this run is no longer listed"))],
        },
        Over::Output { run, .. } => {
            let written = model.output.as_ref().filter(|(written, _)| written == run);
            let lines = written.map(|(_, lines)| lines.as_slice()).unwrap_or_default();
            if lines.is_empty() {
                return vec![Line::from(palette.dim("Its agents wrote nothing yet that is kept."))];
            }
            lines.iter().flat_map(|line| wrapped(line, width, |text| palette.plain(text))).collect()
        }
        Over::Answer { asks, text } => {
            let mut lines = asked(model, asks, width);
            lines.push(Line::default());
            let typed = wrapped(&format!("> {text}█"), width, |text| palette.strong(text));
            lines.extend(typed);
            lines.push(Line::default());
            let options = if asks.question.options.is_empty() { "" } else { "Tab for an option, " };
            lines.push(Line::from(palette.dim(format!("{options}Enter to send, Esc to cancel"))));
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
            let ask = match title.is_empty() || title == run.as_str() {
                true => format!("{verb} {run}?"),
                false => format!("{verb} \"{title}\" ({run})?"),
            };
            let mut lines = wrapped(&ask, width, |text| palette.warn(text));
            lines.push(Line::default());
            lines.push(Line::from(palette.dim("y to confirm, any other key to cancel")));
            lines
        }
    }
}

/// A question with what one should know to answer it.
fn asked(model: &Model, asks: &Asks, width: usize) -> Vec<Line<'static>> {
    let palette = model.palette;
    let mut lines = wrapped(&model.title_of(asks.run.as_str()), width, |it| palette.strong(it));
    lines.extend(wrapped(&asks.question.text, width, |text| palette.plain(text)));
    lines.push(Line::default());
    let item = model.inbox.iter().find(|item| item.is_question(&asks.run, &asks.question.id));
    // What to type elsewhere is of no use here.
    let context = item.into_iter().flat_map(|item| &item.context).filter(|it| it.label != "next");
    lines.extend(context.flat_map(|it| fact(palette, &it.label, &it.text, width)));
    for (at, option) in asks.question.options.iter().enumerate() {
        let label = if at == 0 { "options" } else { "" };
        lines.extend(fact(palette, label, option, width));
    }
    lines
}

/// Everything about a run, and what happened in it as far as that was read.
pub(super) fn told(model: &Model, view: &RunView, width: usize) -> Vec<Line<'static>> {
    let palette = model.palette;
    let mut lines = about(palette, model.now, view, width);
    if let Some((_, story)) = model.story.as_ref().filter(|(told, _)| *told == view.id) {
        lines.extend(timeline::lines(palette, &story.timeline, width));
        let claims = story.claims.iter().rev().take(CLAIMS_SHOWN);
        lines.extend(claims.flat_map(|claim| timeline::claim(palette, claim, width)));
    }
    lines
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
        let suggestion = question.suggestion();
        let suggestion =
            suggestion.iter().flat_map(|text| wrapped(text, width, |it| palette.dim(it)));
        lines.extend(suggestion);
    }
    lines
}

fn task(palette: Palette, now: Timestamp, task: &TaskLine) -> Line<'static> {
    let at = match &task.worker {
        _ if task.queued => " waits for a worker".to_owned(),
        Some(worker) => format!(" on {worker}"),
        None => String::new(),
    };
    let agent = task.role.as_ref().zip(task.since);
    let agent = agent.map(|(role, since)| format!("  {role}{at} {}", elapsed(now.since(since))));
    let is_named = !task.title.is_empty() && task.title != task.task;
    let title = if is_named { &task.title } else { &task.task };
    let round = if task.round > 0 { format!("  round {}", task.round) } else { String::new() };
    let progress = task.progress.as_deref().map(|text| format!("  {text}")).unwrap_or_default();
    Line::from(vec![
        palette.tone(
            show::task_tone(&task.status),
            format!("{:<11} ", show::task_words(&task.status)),
        ),
        palette.strong(display::excerpt(title, TITLE_MAX)),
        palette.dim(if is_named { format!("  {}", task.task) } else { String::new() }),
        palette.plain(round),
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
