//! What a delivery shows while it goes on: each decision as a line, and on a terminal the tasks that
//! matter now at the bottom.

use std::io::Write;

use aldis_machine::Decision;
use aldis_machine::delivery::{Ending, Rule, State};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use super::{Output, OutputOptions};
use crate::view::display;
use crate::view::paint::Paint;
use crate::view::run_view::delivery_refusal;
use crate::view::show::{spent, tally, task_rows};
use crate::view::time::{counted, elapsed};
use crate::view::wire::task::TaskLine;

/// How many tasks are shown at the bottom.
const TASKS_MAX: usize = 12;
/// How much of a reason is shown.
const REASON_MAX: usize = 60;
/// How much of a refused claim is shown at the end.
const REFUSED_MAX: usize = 200;
/// Decisions of these rules are shown only to programs.
const QUIET: [Rule; 2] = [Rule::Started, Rule::AgentStarted];

/// Where things are shown.
pub(crate) struct DeliveryReporter {
    output: Output,
}

impl DeliveryReporter {
    pub(crate) fn new(out: Box<dyn Write>, options: OutputOptions) -> Self {
        Self { output: Output::new(out, options) }
    }

    /// Says what begins.
    pub(crate) fn begin(&mut self, run: &RunId, state: &State) {
        self.output.begin(run, state.run().started_at);
        let title = display::line(&state.run().title);
        let count = u64::try_from(state.tasks().len()).unwrap_or(u64::MAX);
        if self.output.options.json {
            self.output.event("begin", self.output.began, &title);
        } else {
            let head = format!(
                "{} {}  {}   {}",
                self.output.paint.good("●"),
                self.output.paint.strong(run),
                self.output.paint.strong(title),
                self.output.paint.dim(counted(count, "task"))
            );
            self.output.print(&head);
        }
    }

    /// Shows what was decided.
    pub(crate) fn decided(&mut self, now: Timestamp, decision: &Decision) {
        let task = decision.task.as_deref().unwrap_or_default();
        if self.output.options.json {
            let text = format!("{task} {}: {}", decision.summary, decision.because);
            self.output.event("decision", now, text.trim());
            return;
        }
        if self.output.options.quiet || QUIET.iter().any(|rule| rule.as_str() == decision.rule) {
            return;
        }
        let because = display::excerpt(&decision.because, REASON_MAX);
        let text = format!("{:<10} {}", display::line(task), display::line(&decision.summary));
        let line = if because.is_empty() {
            text
        } else {
            format!("{text}  {}", self.output.paint.dim(because))
        };
        self.output.print_at(now, &line);
    }

    pub(crate) fn question(&mut self, now: Timestamp, id: &str, task: Option<&str>, text: &str) {
        if self.output.options.json {
            return self.output.event("question", now, text);
        }
        let text = display::lines(text).replace('\n', "\n         ");
        let line = format!(
            "{:<10} {}\n         aldis answer {id} TEXT",
            task.unwrap_or_default(),
            self.output.paint.warn(text)
        );
        self.output.print_at(now, &line);
    }

    pub(crate) fn problem(&mut self, now: Timestamp, text: &str) {
        if self.output.options.json {
            return self.output.event("problem", now, text);
        }
        let line = self.output.paint.bad(display::lines(text)).to_string();
        self.output.print_at(now, &line);
    }

    /// Says to programs what others are told; people see the decision it comes from.
    pub(crate) fn notice(&mut self, now: Timestamp, kind: &str, text: &str) {
        if self.output.options.json {
            self.output.event(kind, now, text);
        }
    }

    /// Draws the tasks that matter now. Where a person is asked, the line they type on is the last
    /// one.
    pub(crate) fn draw(&self, now: Timestamp, state: &State, asked: bool) {
        let paint = self.output.paint;
        let run = &self.output.run;
        self.output.draw(|| if asked { String::new() } else { bottom(paint, now, run, state) });
    }

    /// Says how it ended, and where to read more.
    pub(crate) fn ended(&mut self, now: Timestamp, state: &State, ending: Ending) {
        self.output.clear();
        if self.output.options.json {
            return self.output.event("ended", now, ending.as_str());
        }
        let mark = match ending {
            Ending::Complete => self.output.paint.good("✔"),
            _ => self.output.paint.bad("✘"),
        };
        let what = self.output.paint.strong(ending.as_str().replace('_', " "));
        let line = format!(
            "{mark} {what}: {} after {}{}\n  aldis tasks {run} · aldis why TASK · aldis log {run}",
            tally(state),
            elapsed(now.since(self.output.began)),
            spent(state.run().spent).map(|spent| format!(", {spent}")).unwrap_or_default(),
            run = self.output.run
        );
        self.output.print(&line);
        if let Some(refused) = delivery_refusal(state) {
            let refused = display::excerpt(&refused, REFUSED_MAX);
            self.output.print(&format!("  last claim refused: {refused}"));
        }
        if ending.can_be_continued() {
            let line = format!("  aldis deliver --continue {} continues it", self.output.run);
            self.output.print(&line);
        }
    }

    /// Says that it waits for a human, and ends here.
    pub(crate) fn waits(&mut self, now: Timestamp, state: &State) {
        self.output.clear();
        let ids: Vec<&str> = state.run().questions.keys().map(String::as_str).collect();
        let text = format!(
            "waiting for your answer to {}; aldis answer ID TEXT, then aldis deliver --continue {}",
            ids.join(", "),
            self.output.run
        );
        if self.output.options.json {
            return self.output.event("waits", now, &text);
        }
        let line = self.output.paint.warn(text).to_string();
        self.output.print(&line);
    }
}

fn bottom(paint: Paint, now: Timestamp, run: &str, state: &State) -> String {
    let working = counted(u64::try_from(state.run().agents.len()).unwrap_or(u64::MAX), "agent");
    let Ok(run) = RunId::new(run) else { return String::new() };
    let tasks: Vec<TaskLine> =
        state.tasks().iter().map(|task| TaskLine::new(&run, state, task)).collect();
    let shown = tasks.iter().filter(|task| task.role.is_some() || task.question.is_some());
    let rows = task_rows(paint, now, shown.take(TASKS_MAX));
    let mut lines = vec![format!("  {}   {working} at work", tally(state))];
    lines.extend(rows.into_iter().map(|row| format!("  {row}")));
    lines.join("\n")
}
