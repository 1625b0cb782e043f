//! What a supervised run shows while it goes on.

use std::io::Write;
use std::sync::Arc;

use aldis_core::machine::run::{Ending, Notice, State, Status};
use aldis_core::machine::stagnation::Level;
use aldis_core::time::Timestamp;
use aldis_core::{Dialect, Origin, Parser, Role};
use aldis_store::RunId;

use crate::display;
use crate::json;
use crate::paint::Paint;

/// Where things are shown, and how much.
pub(crate) struct Live {
    /// The run's own lines, or JSON.
    out: Box<dyn Write>,
    paint: Paint,
    /// Whether the agent's words are shown.
    words: bool,
    json: bool,
    /// Takes signals out of what is shown.
    parser: Parser,
}

/// A line of `run --json`.
#[derive(serde::Serialize)]
struct Line<'a> {
    v: u32,
    kind: &'a str,
    at: Option<String>,
    text: &'a str,
}

impl Live {
    pub(crate) fn new(
        out: Box<dyn Write>,
        color: bool,
        quiet: bool,
        json: bool,
        dialect: &Arc<Dialect>,
    ) -> Self {
        let parser = Parser::new(Arc::clone(dialect));
        Self { out, paint: Paint { on: color }, words: !quiet && !json, json, parser }
    }

    /// Says what changed in the run.
    pub(super) fn changed(&mut self, now: Timestamp, before: &State, after: &State) {
        if before.iteration != after.iteration {
            let text = format!("iteration {}/{}", after.iteration, after.config.max_iterations);
            self.line("iteration", Some(now), &text);
        }
        if before.progress != after.progress || before.phase != after.phase {
            let phase = after.phase.as_deref().unwrap_or_default();
            let percent = after.progress.map(|percent| format!("{percent} %")).unwrap_or_default();
            self.line("progress", Some(now), format!("{phase} {percent}").trim());
        }
        if before.status != after.status {
            let text = match &after.status {
                Status::Paused { stagnated: true } => "suspended: aldis resume or aldis abort",
                Status::Paused { stagnated: false } => "suspended",
                Status::Limited { .. } => "waits for a limit of the service",
                Status::Asking => "waits for an answer",
                Status::Ending { .. } => "asked the agent to stop",
                _ => return,
            };
            self.line("status", Some(now), text);
        }
        if before.monitor.level() != after.monitor.level() && after.monitor.level() != Level::None {
            let text = format!("the work does not move: {}", after.monitor.level().as_str());
            self.line("stagnation", Some(now), &text);
        }
    }

    /// Shows what was said: the agent's own words plainly, everybody else's dimmed.
    pub(super) fn said(&mut self, origin: &Origin, text: &str) {
        if !self.words {
            return;
        }
        let stripped = if origin.may_signal() { self.parser.strip(text) } else { text.into() };
        for line in stripped.lines().filter(|line| !line.trim().is_empty()) {
            let line = display::line(line);
            // Nobody is left to show it to when this fails.
            let _shown = match origin.role {
                Role::Assistant if !origin.sidechain => writeln!(self.out, "  {line}"),
                _ => writeln!(self.out, "  {}", self.paint.dim(line)),
            };
        }
    }

    /// Shows what was written to standard error.
    pub(super) fn aside(&mut self, bytes: &[u8]) {
        self.said(&Origin::new(Role::Host), &String::from_utf8_lossy(bytes));
    }

    pub(super) fn checking(&mut self, verify: &str) {
        self.line("check", None, &format!("done is claimed; checking: {verify}"));
    }

    pub(super) fn question(&mut self, id: &str, text: &str) {
        self.line("question", None, &format!("{text}\n  aldis answer {id} TEXT"));
    }

    pub(super) fn notice(&mut self, notice: Notice, text: &str) {
        self.line(notice.as_str(), None, text);
    }

    pub(super) fn kept(&mut self, branch: &str) {
        self.line("kept", None, &format!("uncommitted work is on branch {branch}"));
    }

    pub(super) fn problem(&mut self, text: &str) {
        self.line("problem", None, text);
    }

    pub(super) fn ended(&mut self, run: &RunId, ending: Ending) {
        self.line("ended", None, &format!("{}  (aldis why {run})", ending.as_str()));
    }

    fn line(&mut self, kind: &str, at: Option<Timestamp>, text: &str) {
        let _shown = if self.json {
            let at = at.map(|at| at.to_string());
            json::write_line(&mut self.out, &Line { v: 1, kind, at, text })
        } else {
            let text = display::lines(text);
            writeln!(self.out, "{} {text}", self.paint.strong(format!("{kind:<11}")))
        };
        let _flushed = self.out.flush();
    }
}
