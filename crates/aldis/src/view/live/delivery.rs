//! What a delivery shows while it is active: each decision as a line, and on a terminal the tasks that
//! matter now at the bottom.

use std::io::Write;

use aldis_machine::Decision;
use aldis_machine::delivery::{Ending, Rule, State};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use super::{End, Output, OutputOptions};
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
        let count = u64::try_from(state.tasks().len()).unwrap_or(u64::MAX);
        let title = display::line(&state.run().title);
        self.output.begin(run, state.run().started_at, &title, &counted(count, "task"));
    }

    /// Shows what was decided.
    pub(crate) fn decided(&mut self, now: Timestamp, decision: &Decision) {
        let task = decision.task.as_deref().unwrap_or_default();
        if self.output.options.json {
            let text = format!("{task} {}: {}", decision.summary, decision.because);
            return self.output.event("decision", now, text.trim());
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
        self.output.question(now, id, format!("{} {text}", task.unwrap_or_default()).trim());
    }

    pub(crate) fn problem(&mut self, now: Timestamp, text: &str) {
        self.output.event("problem", now, text);
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
        let run = &self.output.run;
        let spent = spent(state.run().spent).map(|spent| format!(", {spent}"));
        let end = End {
            code: ending.as_str(),
            good: ending == Ending::Complete,
            title: ending.as_str(),
            detail: format!(
                ": {} after {}{}",
                tally(state),
                elapsed(now.since(self.output.began)),
                spent.unwrap_or_default()
            ),
            refused: delivery_refusal(state),
            next: ending
                .can_be_continued()
                .then(|| format!("aldis deliver --continue {run} continues it")),
            why: format!("aldis tasks {run} · aldis why TASK"),
            output: String::new(),
        };
        self.output.ended(now, &end);
    }

    /// Says that it waits for a human, and ends here.
    pub(crate) fn waits(&mut self, now: Timestamp, state: &State) {
        self.output.bottom.finish_and_clear();
        let ids: Vec<&str> = state.run().questions.keys().map(String::as_str).collect();
        let text = format!(
            "waiting for your answer to {}; aldis answer ID TEXT, then aldis deliver --continue {}",
            ids.join(", "),
            self.output.run
        );
        self.output.event("waits", now, &text);
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
