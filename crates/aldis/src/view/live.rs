//! What passes before whoever watches a run or a delivery.

pub(crate) mod delivery;
pub(crate) mod run;

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use indicatif::{ProgressBar, ProgressStyle};

use super::json;
use super::paint::Paint;
use super::time::elapsed;
use super::wire::run::LiveForm;

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

    /// Notes which run it is.
    fn begin(&mut self, run: &RunId, began: Timestamp) {
        run.as_str().clone_into(&mut self.run);
        self.began = began;
    }

    /// Tells programs what happened, without secrets.
    fn event(&mut self, kind: &str, now: Timestamp, text: &str) {
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

    /// Takes the bottom away.
    fn clear(&self) {
        self.bottom.finish_and_clear();
    }
}
