//! What a supervised run shows while it is active: what happened, the agent's words, and on a
//! terminal one line at the bottom that says how it is.

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

use super::{End, Output, OutputOptions};
use crate::view::display;
use crate::view::paint::Paint;
use crate::view::run_view::{run_refusal, run_status};
use crate::view::show::spent;
use crate::view::time::{counted, elapsed};

/// How wide the bar is.
const BAR: usize = 20;
/// How much of a title is shown.
const TITLE_MAX: usize = 60;
/// How much of a reason is shown at the end.
const REASON_MAX: usize = 200;

/// Where things are shown.
pub(crate) struct RunReporter {
    output: Output,
    /// Takes signals out of what is shown.
    parser: Parser,
    /// Takes secrets out of it.
    redactor: Redactor,
}

impl RunReporter {
    pub(crate) fn new(out: Box<dyn Write>, options: OutputOptions, dialect: &Arc<Dialect>) -> Self {
        let parser = Parser::new(Arc::clone(dialect));
        Self { output: Output::new(out, options), parser, redactor: Redactor::default() }
    }

    /// Says what begins.
    pub(crate) fn begin(
        &mut self,
        run: &RunId,
        state: &State,
        program: &str,
        verify: Option<&str>,
    ) {
        let title = display::excerpt(state.setup().task.trim(), TITLE_MAX);
        let check = verify.map(|verify| format!(", verify: {}", display::line(verify)));
        let (program, dialect) = (display::line(program), display::line(&state.setup().dialect));
        let how = format!("{program}, {dialect}{}", check.unwrap_or_default());
        self.output.begin(run, state.started_at(), &title, &how);
    }

    /// Says what changed in the run.
    pub(crate) fn changed(&mut self, now: Timestamp, before: &LastShown, after: &State) {
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
        // The others are over in a moment, or have a line of their own.
        let lasts = matches!(
            after.status(),
            Status::Paused { .. }
                | Status::Limited { .. }
                | Status::Backoff { .. }
                | Status::Asking
                | Status::Ending { .. }
        );
        if before.status != *after.status() && lasts {
            let (_, mut text) = run_status(now, after);
            if let (Status::Asking, Some(question)) = (after.status(), after.question()) {
                let here = if self.output.options.terminal { "type it here, or " } else { "" };
                text = format!("{text} ({here}`aldis answer {} TEXT`)", question.id);
            }
            self.event("status", now, &text);
        }
        if before.refused != after.last_refusal().map(|refused| refused.iteration)
            && let Some(refused) = run_refusal(after)
        {
            self.event("refused", now, &format!("done claim refused: {refused}"));
        }
        let is = after.monitor().level();
        if before.level != is && is == Level::None {
            self.event("stagnation", now, "progress again");
        }
    }

    /// Returns whether anybody sees what the agent says.
    pub(crate) fn shows_words(&self) -> bool {
        !self.output.options.quiet && !self.output.options.json
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
        self.event("check", now, &format!("the agent reports done; verifying with: {verify}"));
    }

    pub(crate) fn checked(&mut self, now: Timestamp, passed: bool) {
        let failed = "verification failed; continuing with its output";
        self.event("check", now, if passed { "verification passed" } else { failed });
    }

    pub(crate) fn question(&mut self, now: Timestamp, id: &str, text: &str) {
        self.output.question(now, id, text);
    }

    pub(crate) fn notice(&mut self, now: Timestamp, notice: Notice, text: &str) {
        // The end has a line of its own, and a question too.
        if self.output.options.json || !matches!(notice, Notice::RunEnded | Notice::Question) {
            self.event(notice.as_str(), now, text);
        }
    }

    pub(crate) fn host(&mut self, now: Timestamp, text: &str) {
        self.event("host", now, text);
    }

    pub(crate) fn kept(&mut self, now: Timestamp, branch: &str) {
        let text =
            format!("saved uncommitted changes to branch {branch} (your checkout is unchanged)");
        self.event("kept", now, &text);
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
        let run = &self.output.run;
        let why = reason(state, ending).map(|why| format!(": {why}")).unwrap_or_default();
        let cost = spent(state.cost()).map(|cost| format!(", {cost}")).unwrap_or_default();
        let next = match (ending, state.question()) {
            (Ending::Done, _) => None,
            (Ending::PermissionDenied, _) => Some(state.how_to_allow()),
            (_, Some(question)) => {
                Some(format!("aldis answer {} TEXT, then aldis run --continue {run}", question.id))
            }
            (_, None) => Some(format!("aldis run --continue {run} continues it")),
        };
        let log = log.map(|log| format!(" · output in {}", display::line(&log.to_string_lossy())));
        let verified = ending == Ending::Done && state.setup().config.verify;
        let end = End {
            code: ending.as_str(),
            good: ending == Ending::Done,
            title: if verified { "done and verified" } else { ending.as_str() },
            detail: format!(
                " after {}, {}{cost}{why}",
                counted(state.iteration().into(), "iteration"),
                elapsed(Duration::from_millis(state.worked(now)))
            ),
            refused: run_refusal(state),
            next,
            why: format!("aldis why {run}"),
            output: log.unwrap_or_default(),
        };
        self.output.ended(now, &end);
    }

    fn event(&mut self, kind: &str, now: Timestamp, text: &str) {
        self.output.event(kind, now, text);
    }
}

/// What of a run is shown when it changes. A whole state would be too much to keep for each event.
pub(crate) struct LastShown {
    iteration: u32,
    progress: Option<u8>,
    phase: Option<String>,
    status: Status,
    level: Level,
    /// The iteration whose done claim was refused last.
    refused: Option<u32>,
}

impl LastShown {
    pub(crate) fn of(state: &State) -> Self {
        Self {
            iteration: state.iteration(),
            progress: state.progress(),
            phase: state.phase().map(str::to_owned),
            status: state.status().clone(),
            level: state.monitor().level(),
            refused: state.last_refusal().map(|refused| refused.iteration),
        }
    }
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
            return Some(format!("the agent exited with code {code}"));
        }
        (Ending::Crashed, Some(AgentExit { signal: Some(signal), .. })) => {
            return Some(format!("the agent was ended by signal {signal}"));
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
    let status = (*state.status() != Status::Working).then(|| paint.warn(run_status(now, state).1));
    let level = Some(state.monitor().level()).filter(|level| *level != Level::None);
    let parts = [
        Some(format!("  iteration {}/{}", state.iteration(), state.setup().config.max_iterations)),
        state.phase().map(|phase| display::excerpt(phase, BAR)),
        state.shown_progress().map(bar),
        Some(elapsed(Duration::from_millis(state.worked(now)))),
        spent(state.cost()),
        status.map(|status| status.to_string()),
        level.map(|level| paint.warn(format!("stalled: {}", level.as_str())).to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}
