//! What passes before whoever watches a run or a delivery.

pub(crate) mod delivery;
pub(crate) mod run;

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use indicatif::{ProgressBar, ProgressStyle};

use super::paint::Paint;
use super::time::elapsed;
use super::wire::run::LiveForm;
use super::{display, json};

/// How much of a refused claim is shown at the end.
const REFUSED_MAX: usize = 200;

/// How much is shown, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputOptions {
    /// Whether colours are.
    pub(crate) color: bool,
    /// Whether the agent's words are not.
    pub(crate) quiet: bool,
    /// Whether programs read it.
    pub(crate) json: bool,
    /// Whether a person looks at a terminal.
    pub(crate) terminal: bool,
}

/// Where a run is shown: lines that stay and, on a terminal, some at the bottom that are drawn anew.
struct Output {
    out: Box<dyn Write>,
    options: OutputOptions,
    paint: Paint,
    /// What is drawn at the bottom.
    bottom: ProgressBar,
    run: String,
    /// When the run began; times are shown since then.
    began: Timestamp,
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
    /// The stable code.
    code: &'e str,
    good: bool,
    /// What happened, in a word or two, and the rest of the line.
    title: &'e str,
    detail: String,
    refused: Option<String>,
    /// What continues it.
    next: Option<String>,
    /// The command that says why, and where the output is.
    why: String,
    output: String,
}

impl Output {
    fn new(out: Box<dyn Write>, options: OutputOptions) -> Self {
        let bottom = if options.terminal && !options.json {
            let style = ProgressStyle::with_template("{msg}");
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        } else {
            ProgressBar::hidden()
        };
        *BOTTOM.lock().unwrap_or_else(PoisonError::into_inner) = Some(bottom.clone());
        let (run, began) = (String::new(), Timestamp::from_millis(0));
        Self { out, options, paint: Paint { on: options.color }, bottom, run, began }
    }

    /// Says which run begins, and how it is done.
    fn begin(&mut self, run: &RunId, began: Timestamp, title: &str, how: &str) {
        run.as_str().clone_into(&mut self.run);
        self.began = began;
        if self.options.json {
            return self.tell("begin", began, title);
        }
        let (mark, run, title) =
            (self.paint.good("●"), self.paint.strong(run), self.paint.strong(title));
        let head = format!("{mark} {run}  {title}   {}", self.paint.dim(how));
        self.print(&head);
    }

    /// Shows what happened, without secrets.
    fn event(&mut self, kind: &str, now: Timestamp, text: &str) {
        if self.options.json {
            return self.tell(kind, now, text);
        }
        let (paint, text) = (self.paint, display::lines(&redact(text)));
        let text = match kind {
            "problem" => paint.bad(text).to_string(),
            "host" => paint.dim(text).to_string(),
            "stagnation_warn" | "stagnation_pause" | "stagnation_abort" | "question"
            | "refused" => paint.warn(text).to_string(),
            _ => text,
        };
        self.print_at(now, &text);
    }

    /// Shows a question and how to answer it.
    fn question(&mut self, now: Timestamp, id: &str, text: &str) {
        if self.options.json {
            return self.tell("question", now, text);
        }
        let text = text.replace('\n', "\n         ");
        self.event("question", now, &format!("{text}\n         aldis answer {id} TEXT"));
    }

    /// Says how it ended: what happened, the last claim that was refused, and what to do.
    fn ended(&mut self, now: Timestamp, end: &End<'_>) {
        self.bottom.finish_and_clear();
        if self.options.json {
            return self.tell("ended", now, end.code);
        }
        let (paint, run) = (self.paint, &self.run);
        let mark = if end.good { paint.good("✔") } else { paint.bad("✘") };
        let what = if end.good { end.title.to_owned() } else { end.title.replace('_', " ") };
        let mut lines = vec![format!("{mark} {}{}", paint.strong(what), end.detail)];
        if let Some(refused) = &end.refused {
            let refused = display::excerpt(&redact(refused), REFUSED_MAX);
            lines.push(format!("  last claim refused: {refused}"));
        }
        lines.extend(end.next.as_ref().map(|next| format!("  {next}")));
        lines.push(format!("  {} · aldis log {run}{}", end.why, end.output));
        self.print(&lines.join("\n"));
    }

    /// Tells programs what happened, without secrets.
    fn tell(&mut self, kind: &str, now: Timestamp, text: &str) {
        let form = LiveForm::new(kind, &self.run, now, &redact(text));
        let _shown = json::write_line(&mut self.out, &form);
        let _flushed = self.out.flush();
    }

    /// Prints above the bottom. Nobody is left to show it to when that fails.
    fn print(&mut self, text: &str) {
        let out = &mut self.out;
        self.bottom.suspend(|| {
            let _shown = writeln!(out, "{text}");
            let _flushed = out.flush();
        });
    }

    /// Prints when something happened, and what.
    fn print_at(&mut self, now: Timestamp, text: &str) {
        let line = format!("  {}  {text}", elapsed(now.since(self.began)));
        self.print(&line);
    }

    /// Draws the bottom anew, where there is one.
    fn draw(&self, text: impl FnOnce() -> String) {
        if !self.bottom.is_hidden() {
            self.bottom.set_message(text());
            self.bottom.tick();
        }
    }
}
