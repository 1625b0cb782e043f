//! What passes before whoever watches a run or a delivery.

pub(crate) mod attached;
pub(crate) mod delivery;
pub(crate) mod run;
mod status_line;
pub(crate) mod tools;

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use aldis_signal::redact::{Redactor, redact};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use indicatif::{ProgressBar, ProgressStyle};

use self::tools::{ToolCall, ToolRow};
use super::paint::{Paint, Tone};
use super::time::clock_time;
use super::wire::live::{About, LiveEvent, LiveForm};
use super::wrap::wrap;
use super::{display, json};

/// How much of a refused claim is shown at the end.
const REFUSED_MAX: usize = 200;
/// How wide a row of tools is where nobody knows how much room there is.
const COLUMNS: usize = 100;
/// How many lines of one message are shown unless more is asked for.
const WORDS_MAX: usize = 20;

/// How wide the time in front of a line is, and the least that is left for the line.
const TIME: usize = 9;
const ROOM_MIN: usize = 20;

/// How much is shown, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputOptions {
    /// Whether colours are.
    pub(crate) color: bool,
    /// How much people see.
    pub(crate) detail: Detail,
    /// Whether programs read it.
    pub(crate) json: bool,
    /// Whether a person looks at a terminal.
    pub(crate) terminal: bool,
}

/// How much people see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Neither what agents say nor their tools.
    Quiet,
    /// What matters.
    Normal,
    /// Everything, with the time.
    Verbose,
}

impl Detail {
    /// Returns what `-q` and `-v` ask for.
    pub(crate) fn of(quiet: bool, verbose: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Verbose,
            (false, false) => Self::Normal,
        }
    }
}

/// Where a run is shown: lines that stay and, on a terminal, some at the bottom that are drawn anew.
struct RunOutput {
    out: Box<dyn Write>,
    options: OutputOptions,
    paint: Paint,
    /// What is drawn at the bottom.
    bottom: ProgressBar,
    run: String,
    /// When the run began.
    began: Timestamp,
    /// What stands in front of the next line, and of those after it.
    gutter: Option<String>,
    indent: usize,
    tools: ToolRow,
    /// When an agent last did anything, and which one was shown last where there are several.
    active: Option<Timestamp>,
    speaker: Option<u64>,
    /// Takes secrets out of what agents say.
    redactor: Redactor,
}

/// What is drawn at the bottom of the terminal of this process.
static BOTTOM: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Writes to the terminal above what is drawn at its bottom, as for log lines.
pub(crate) fn above_bottom<T>(write: impl FnOnce() -> T) -> T {
    let bottom = BOTTOM.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bottom {
        Some(bottom) => bottom.suspend(write),
        None => write(),
    }
}

/// How a run ended, for its last lines.
struct End<'e> {
    good: bool,
    /// What happened, in a word or two, and the rest of the line.
    title: &'e str,
    detail: String,
    refused: Option<String>,
    /// What continues it.
    next: Option<String>,
    /// The commands that say more.
    more: String,
}

impl RunOutput {
    fn new(out: Box<dyn Write>, options: OutputOptions, indent: usize) -> Self {
        let bottom = if options.terminal && !options.json {
            let style = ProgressStyle::with_template("{msg}");
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        } else {
            ProgressBar::hidden()
        };
        *BOTTOM.lock().unwrap_or_else(PoisonError::into_inner) = Some(bottom.clone());
        Self {
            out,
            options,
            paint: Paint { on: options.color },
            bottom,
            run: String::new(),
            began: Timestamp::from_millis(0),
            gutter: None,
            indent,
            tools: ToolRow::default(),
            active: None,
            speaker: None,
            redactor: Redactor::default(),
        }
    }

    /// Says which run begins, and how it is done.
    fn begin(&mut self, run: &RunId, began: Timestamp, (machine, title): (&str, &str), how: &str) {
        run.as_str().clone_into(&mut self.run);
        self.began = began;
        if self.options.json {
            let event = LiveEvent::Begin { machine: machine.to_owned() };
            return self.tell(began, About::default(), title, event);
        }
        let length = super::wrap::width(&format!("● {run}  {title}   {how}"));
        let (mark, run, title) =
            (self.paint.good("●"), self.paint.strong(run), self.paint.strong(display::line(title)));
        let break_off = if length > self.columns() { "\n  " } else { "   " };
        let head =
            format!("{mark} {run}  {title}{break_off}{}", self.paint.dim(display::line(how)));
        self.print(&head);
    }

    /// Returns whether anybody sees what agents say and do.
    fn shows_work(&self) -> bool {
        self.options.detail > Detail::Quiet
    }

    fn is_verbose(&self) -> bool {
        self.options.detail == Detail::Verbose
    }

    /// Tells programs what happened, without secrets.
    fn tell(&mut self, now: Timestamp, about: About<'_>, text: &str, event: LiveEvent) {
        if self.options.json {
            let form = LiveForm::new(&self.run, now, about, redact(text).into_owned(), event);
            let _shown = json::write_line(&mut self.out, &form);
            let _flushed = self.out.flush();
        }
    }

    /// Shows people a line, without secrets, in as many as it takes.
    fn show(&mut self, now: Timestamp, tone: Option<Tone>, text: &str) {
        if self.options.json {
            return;
        }
        self.end_row(now);
        let text = redact(text).into_owned();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.lines(now, tone, &display::line(line));
        }
    }

    /// Shows what an agent said: each message whole, or as far as it is not too long.
    fn words(&mut self, now: Timestamp, own: bool, text: &str) {
        self.active = Some(now);
        if self.options.json || !self.shows_work() {
            return;
        }
        let said: Vec<String> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| display::line(&self.redactor.line(line)))
            .collect();
        if said.is_empty() {
            return;
        }
        if let Some(row) = self.tools.take_over(self.paint) {
            self.row(now, &row);
        }
        let most = if self.is_verbose() { usize::MAX } else { WORDS_MAX };
        for line in said.iter().take(most) {
            self.lines(now, if own { None } else { Some(Tone::Dim) }, line);
        }
        if said.len() > most {
            let more = format!("… {} more lines: aldis output {}", said.len() - most, self.run);
            self.lines(now, Some(Tone::Dim), &more);
        }
    }

    /// Shows that an agent calls a tool.
    fn tool(&mut self, now: Timestamp, call: &ToolCall<'_>) {
        self.active = Some(now);
        if !self.options.json && self.shows_work() {
            let room = self.room();
            if let Some(row) = self.tools.push(now, call, (self.paint, room)) {
                self.row(now, &row);
            }
        }
    }

    /// Shows how a call ended.
    fn tool_ended(&mut self, now: Timestamp, end: (&str, bool, Option<i64>)) {
        self.active = Some(now);
        if let Some(row) = self.tools.ended(now, end, self.paint) {
            self.row(now, &row);
        }
    }

    /// Shows the calls of tools that wait for more of their kind.
    fn end_row(&mut self, now: Timestamp) {
        if let Some(row) = self.tools.take(self.paint) {
            self.row(now, &row);
        }
    }

    fn row(&mut self, now: Timestamp, row: &str) {
        let gutter = self.next_gutter(now);
        self.print(&format!("{gutter}{row}"));
    }

    fn lines(&mut self, now: Timestamp, tone: Option<Tone>, line: &str) {
        let room = self.room();
        let lines = if self.options.terminal { wrap(line, room) } else { vec![line.to_owned()] };
        let paint = self.paint;
        let shown = lines.into_iter().map(|line| {
            let gutter = self.next_gutter(now);
            match tone {
                None => format!("{gutter}{line}"),
                Some(tone) => format!("{gutter}{}", paint.tone(tone, line)),
            }
        });
        let shown: Vec<String> = shown.collect();
        self.print(&shown.join("\n"));
    }

    /// Returns what stands in front of the next line: what was announced for it, else nothing but room,
    /// and the time where everything is shown.
    fn next_gutter(&mut self, now: Timestamp) -> String {
        let gutter = self.gutter.take().unwrap_or_default();
        let room = self.indent.saturating_sub(super::wrap::width(&gutter));
        let gutter = format!("{}{}", self.paint.strong(gutter), " ".repeat(room));
        match self.is_verbose() {
            true => format!("{} {gutter}", self.paint.dim(clock_time(now))),
            false => gutter,
        }
    }

    /// Shows a question and how to answer it.
    fn question(&mut self, now: Timestamp, id: &str, text: &str) {
        self.show(now, Some(Tone::Warn), &format!("? {text}"));
        let here = if self.options.terminal { "type your answer here, or: " } else { "" };
        self.show(now, None, &format!("  {here}aldis answer {id} TEXT"));
    }

    /// Shows that something beside the work went wrong.
    fn problem(&mut self, now: Timestamp, text: &str) {
        self.tell(now, About::default(), text, LiveEvent::Problem);
        self.show(now, Some(Tone::Bad), text);
    }

    /// Tells programs what people are told.
    fn notice(&mut self, now: Timestamp, about: About<'_>, kind: &str, text: &str) {
        self.tell(now, about, text, LiveEvent::Notice { notice: kind.to_owned() });
    }

    /// Says how it ended: what happened, the last claim that was refused, and what to do.
    fn ended(&mut self, now: Timestamp, end: &End<'_>) {
        if self.options.json {
            return;
        }
        self.end_row(now);
        self.bottom.finish_and_clear();
        let paint = self.paint;
        let mark = if end.good { paint.good("✔") } else { paint.bad("✘") };
        let title = capital(end.title);
        let mut lines = vec![format!("{mark} {}{}", paint.strong(title), end.detail)];
        if let Some(refused) = &end.refused {
            let refused = display::excerpt(&redact(refused), REFUSED_MAX);
            lines.push(format!("  last claim refused: {refused}"));
        }
        lines.extend(end.next.as_ref().map(|next| format!("  {next}")));
        lines.push(format!("  {}", end.more));
        self.print(&lines.join("\n"));
    }

    /// Prints above the bottom. Nobody is left to show it to when that fails.
    fn print(&mut self, text: &str) {
        let out = &mut self.out;
        self.bottom.suspend(|| {
            let _shown = writeln!(out, "{text}");
            let _flushed = out.flush();
        });
    }

    /// Draws the bottom anew, where there is one: calls that are not over, and these lines.
    fn draw(&mut self, now: Timestamp, lines: impl FnOnce(usize) -> Vec<String>) {
        let drawn = !self.bottom.is_hidden();
        if let Some(row) = self.tools.take_ripe(now, self.paint, drawn) {
            self.row(now, &row);
        }
        if drawn {
            let columns = self.columns();
            let row = self.tools.row(self.paint).map(|row| format!("{:1$}{row}", "", self.indent));
            let lines: Vec<String> = row.into_iter().chain(lines(columns)).collect();
            let fit = |line: String| console::truncate_str(&line, columns, "…").into_owned();
            let lines: Vec<String> = lines.into_iter().map(fit).collect();
            self.bottom.set_message(lines.join("\n"));
            self.bottom.tick();
        }
    }

    /// How many columns are left for a line behind its gutter.
    fn room(&self) -> usize {
        let time = if self.is_verbose() { TIME } else { 0 };
        self.columns().saturating_sub(self.indent + time).max(ROOM_MIN)
    }

    /// How many columns there are.
    fn columns(&self) -> usize {
        let size = self.options.terminal.then(|| console::Term::stdout().size_checked()).flatten();
        size.map_or(COLUMNS, |(_, columns)| usize::from(columns))
    }
}

/// As the beginning of a sentence.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
