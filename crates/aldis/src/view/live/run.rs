//! What a supervised run shows while it goes on: what happened, the agent's words, and on a
//! terminal one line at the bottom that says how it stands.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aldis_machine::run::{AgentExit, Ending, Notice, State, Status};
use aldis_machine::stagnation::Level;
use aldis_signal::redact::{Redactor, redact};
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Meaning, Origin, Parser, Role};
use aldis_store::RunId;

use super::{Manner, Output};
use crate::view::display;
use crate::view::paint::Paint;
use crate::view::show::{elapsed, spent};

/// How wide the bar is.
const BAR: usize = 20;
/// How much of a title is shown.
const TITLE_MAX: usize = 60;
/// How much of a reason is shown at the end.
const REASON_MAX: usize = 200;

/// Where things are shown.
pub(crate) struct Live {
    output: Output,
    /// Takes signals out of what is shown.
    parser: Parser,
    /// Takes secrets out of it.
    redactor: Redactor,
}

impl Live {
    pub(crate) fn new(out: Box<dyn Write>, manner: Manner, dialect: &Arc<Dialect>) -> Self {
        let parser = Parser::new(Arc::clone(dialect));
        Self { output: Output::new(out, manner), parser, redactor: Redactor::default() }
    }

    /// Says what begins.
    pub(crate) fn begin(
        &mut self,
        run: &RunId,
        state: &State,
        program: &str,
        verify: Option<&str>,
    ) {
        self.output.begin(run, state.started_at());
        let title = display::excerpt(state.setup().task.trim(), TITLE_MAX);
        let check = verify.map(|verify| format!(", verify: {}", display::line(verify)));
        let how = format!(
            "{}, {}{}",
            display::line(program),
            display::line(&state.setup().dialect),
            check.unwrap_or_default()
        );
        if self.output.manner.json {
            self.event("begin", state.started_at(), &title);
        } else {
            let head = format!(
                "{} {}  {}   {}",
                self.output.paint.good("●"),
                self.output.paint.strong(run),
                self.output.paint.strong(title),
                self.output.paint.dim(how)
            );
            self.output.print(&head);
        }
    }

    /// Says what changed in the run.
    pub(crate) fn changed(&mut self, now: Timestamp, before: &Standing, after: &State) {
        if before.iteration != after.iteration() {
            let most = after.setup().config.max_iterations;
            let text = format!("iteration {}/{most}", after.iteration());
            self.event("iteration", now, &text);
        }
        if before.progress != after.progress() || before.phase.as_deref() != after.phase() {
            let phase = after.phase().unwrap_or_default();
            let percent =
                after.progress().map(|percent| format!("{percent} %")).unwrap_or_default();
            self.event("progress", now, format!("progress {percent} {phase}").trim());
        }
        if before.status != *after.status()
            && let Some(text) = standing(after.status())
        {
            self.event("status", now, &text);
        }
        let is = after.monitor().level();
        if before.level != is && is == Level::None {
            self.event("stagnation", now, "the work moves again");
        }
    }

    /// Returns whether anybody sees what the agent says.
    pub(crate) fn shows_words(&self) -> bool {
        !self.output.manner.quiet && !self.output.manner.json
    }

    /// Draws the line at the bottom.
    pub(crate) fn draw(&self, now: Timestamp, state: &State) {
        // Where a person is asked, the line they type on is the last one.
        let asks = matches!(state.status(), Status::Asking | Status::Paused { stagnated: true });
        let paint = self.output.paint;
        self.output.draw(|| if asks { String::new() } else { bottom(paint, now, state) });
    }

    /// Shows what an agent said: the main agent plainly, its sub-agents dimmed. Prompts, tools and what
    /// a host says about itself belong into the log.
    pub(crate) fn said(&mut self, origin: &Origin, text: &str) {
        if matches!(origin.role, Role::Assistant | Role::Subagent) {
            let own = origin.role == Role::Assistant && !origin.sidechain;
            let stripped = self.parser.strip(text);
            self.words(&stripped, own);
        }
    }

    /// Shows what was written to standard error.
    pub(crate) fn aside(&mut self, bytes: &[u8]) {
        self.words(&String::from_utf8_lossy(bytes), false);
    }

    fn words(&mut self, text: &str, own: bool) {
        if !self.shows_words() {
            return;
        }
        let mut shown = String::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line = display::line(&self.redactor.line(line));
            if !shown.is_empty() {
                shown.push('\n');
            }
            shown.push_str("         ");
            shown.push_str(&if own { line } else { self.output.paint.dim(line).to_string() });
        }
        if !shown.is_empty() {
            self.output.print(&shown);
        }
    }

    pub(crate) fn checking(&mut self, now: Timestamp, verify: &str) {
        self.event("check", now, &format!("done claimed; checking: {verify}"));
    }

    pub(crate) fn checked(&mut self, now: Timestamp, passed: bool) {
        let text =
            if passed { "the check passed" } else { "the check failed: going on with its output" };
        self.event("check", now, text);
    }

    pub(crate) fn question(&mut self, now: Timestamp, id: &str, text: &str) {
        self.event("question", now, &format!("{text}\n         aldis answer {id} TEXT"));
    }

    pub(crate) fn notice(&mut self, now: Timestamp, notice: Notice, text: &str) {
        // The end has a line of its own, and a question too.
        if self.output.manner.json || !matches!(notice, Notice::RunEnded | Notice::Question) {
            self.event(notice.as_str(), now, text);
        }
    }

    pub(crate) fn host(&mut self, now: Timestamp, text: &str) {
        self.event("host", now, text);
    }

    pub(crate) fn kept(&mut self, now: Timestamp, branch: &str) {
        self.event("kept", now, &format!("uncommitted work is on branch {branch}"));
    }

    pub(crate) fn problem(&mut self, now: Timestamp, text: &str) {
        self.event("problem", now, text);
    }

    /// Says how it ended, and where to read more.
    pub(crate) fn ended(
        &mut self,
        now: Timestamp,
        state: &State,
        ending: Ending,
        log: Option<&Path>,
    ) {
        self.output.clear();
        if self.output.manner.json {
            self.event("ended", now, ending.as_str());
            return;
        }
        let checked = if state.setup().config.verify { "done and verified" } else { "done" };
        let (mark, what) = match ending {
            Ending::Done => (self.output.paint.good("✔"), checked.to_owned()),
            _ => (self.output.paint.bad("✘"), ending.as_str().replace('_', " ")),
        };
        let count = state.iteration();
        let plural = if count == 1 { "" } else { "s" };
        let took = elapsed(Duration::from_millis(state.worked(now)));
        let cost = spent(state.cost()).map(|cost| format!(", {cost}")).unwrap_or_default();
        let what = self.output.paint.strong(what);
        let log = log.map(|log| format!(" · output in {}", display::line(&log.to_string_lossy())));
        let log = log.unwrap_or_default();
        let why = reason(state, ending).map(|why| format!(": {why}")).unwrap_or_default();
        let next = match state.question() {
            Some(question) => {
                let id = &question.id;
                format!("\n  aldis answer {id} TEXT, then aldis run --continue")
            }
            None => String::new(),
        };
        let line = format!(
            "{mark} {what} after {count} iteration{plural}, {took}{cost}{why}{next}\n  aldis why {run} · aldis log {run}{log}",
            run = self.output.run
        );
        self.output.print(&line);
    }

    fn event(&mut self, kind: &str, now: Timestamp, text: &str) {
        if self.output.manner.json {
            return self.output.event(kind, now, text);
        }
        let (paint, text) = (self.output.paint, display::lines(&redact(text)));
        let text = match kind {
            "problem" => paint.bad(text).to_string(),
            "host" => paint.dim(text).to_string(),
            "stagnation_warn" | "stagnation_pause" | "stagnation_abort" | "question" => {
                paint.warn(text).to_string()
            }
            _ => text,
        };
        self.output.print_at(now, &text);
    }
}

/// What of a run is shown when it changes. A whole state would be too much to keep for each event.
pub(crate) struct Standing {
    iteration: u32,
    progress: Option<u8>,
    phase: Option<String>,
    status: Status,
    level: Level,
}

impl Standing {
    pub(crate) fn of(state: &State) -> Self {
        Self {
            iteration: state.iteration(),
            progress: state.progress(),
            phase: state.phase().map(str::to_owned),
            status: state.status().clone(),
            level: state.monitor().level(),
        }
    }
}

/// What a state means for who watches; nothing for those that go by in a moment.
fn standing(status: &Status) -> Option<String> {
    Some(match status {
        Status::Paused { stagnated: true } => {
            "suspended until `aldis resume` or `aldis abort`".to_owned()
        }
        Status::Paused { stagnated: false } => "suspended".to_owned(),
        Status::Limited { until } => format!("waits for the service until {until}"),
        Status::Backoff { until } => format!("the agent crashed; restarting at {until}"),
        Status::Asking => "waits for an answer".to_owned(),
        Status::Ending { .. } => "asked the agent to stop".to_owned(),
        _ => return None,
    })
}

/// Why it ended, in the agent's own words where there are any.
fn reason(state: &State, ending: Ending) -> Option<String> {
    let said = |meaning: Meaning| {
        let last = state.signals().iter().rfind(|signal| signal.meaning == meaning)?;
        last.text.as_deref()
    };
    let text = match (ending, state.last_exit()) {
        (Ending::NeedsHuman, _) => state.question().map(|question| &*question.text),
        (Ending::Blocked, _) => said(Meaning::Blocked),
        (Ending::Failed, _) => said(Meaning::Failed),
        (Ending::Crashed, Some(AgentExit { code: Some(code), .. })) if *code != 0 => {
            return Some(format!("it exited with {code}"));
        }
        (Ending::Crashed, Some(AgentExit { signal: Some(signal), .. })) => {
            return Some(format!("signal {signal} ended it"));
        }
        _ => None,
    };
    text.map(|text| display::excerpt(&redact(text), REASON_MAX))
}

/// The line at the bottom: iteration, phase, bar, percent, time, cost.
fn bottom(paint: Paint, now: Timestamp, state: &State) -> String {
    let bar = |percent: u8| {
        let full = (usize::from(percent) * BAR / 100).min(BAR);
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR - full));
        format!("{} {percent:>3} %", paint.good(bar))
    };
    let status = (*state.status() != Status::Working).then(|| paint.warn(state.status().name()));
    let level = Some(state.monitor().level()).filter(|level| *level != Level::None);
    let parts = [
        Some(format!("  iteration {}/{}", state.iteration(), state.setup().config.max_iterations)),
        state.phase().map(|phase| display::excerpt(phase, BAR)),
        state.shown_progress().map(bar),
        Some(elapsed(Duration::from_millis(state.worked(now)))),
        spent(state.cost()),
        status.map(|status| status.to_string()),
        level.map(|level| paint.warn(format!("stagnation: {}", level.as_str())).to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}
