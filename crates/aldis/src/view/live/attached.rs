//! A run as somebody sees it who looks on: the same lines as before its supervisor, made of what was
//! decided and of what its agents wrote.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aldis_engine::{Snapshot, State};
use aldis_machine::run::{self, Rule};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Parser};
use aldis_store::RunId;

use super::delivery::{QUIET, bottom};
use super::status_line::{count, count_of, status_line};
use super::tools::{ToolCall, within};
use super::{OutputOptions, RunOutput};
use crate::view::display;
use crate::view::paint::Tone;
use crate::view::run_view::RunView;
use crate::view::show::LastTools;
use crate::view::wire::run::DecisionForm;
use crate::view::wrap::width;

/// How much of a reason is shown.
const REASON_MAX: usize = 160;

/// Where things are shown.
pub(crate) struct AttachedReporter {
    output: RunOutput,
    /// Takes signals out of what is shown.
    parser: Option<Parser>,
    /// Where the agents work.
    directory: PathBuf,
    /// Whose words or tools were shown last, where there are several agents.
    speaker: Option<String>,
    /// The last tool of each task.
    tools: LastTools,
}

impl AttachedReporter {
    /// Signals in this dialect are left out of what agents say.
    pub(crate) fn new(
        out: Box<dyn Write>,
        options: OutputOptions,
        dialect: Option<Arc<Dialect>>,
    ) -> Self {
        Self {
            output: RunOutput::new(out, options, 2),
            parser: dialect.map(Parser::new),
            directory: PathBuf::new(),
            speaker: None,
            tools: LastTools::new(),
        }
    }

    /// Says which run is looked at, and how it is.
    pub(crate) fn begin(&mut self, snapshot: &Snapshot, now: Timestamp) {
        let view = RunView::new(snapshot, now);
        self.directory = Path::new(&view.project).to_owned();
        let machine = &snapshot.run.record.machine;
        if let State::Run(state) = &snapshot.state {
            self.output.indent = width(&count(state)) + 2;
        }
        let (began, about) = (snapshot.run.created, (&**machine, &*view.title));
        self.output.begin(&view.id, began, about, &view.summary());
    }

    /// Shows what was decided. An iteration that begins stands in front of what happens in it.
    pub(crate) fn decided(&mut self, form: &DecisionForm) {
        let counter = |name: &str| form.counters.get(name).copied();
        if form.rule == Rule::IterationStarted.as_str()
            && let Some((now, most)) = counter("iteration").zip(counter("max_iterations"))
        {
            self.output.end_row(form.at);
            self.output.gutter = Some(count_of(now, most));
            return;
        }
        if is_quiet(&form.rule) {
            return;
        }
        self.speaker = None;
        let task = form.task.as_deref().map(|task| format!("{task}: ")).unwrap_or_default();
        let because = display::excerpt(&redact(&form.because), REASON_MAX);
        let because = if because.is_empty() { because } else { format!("  ({because})") };
        let tone = form.rule.ends_with("/done").then_some(Tone::Good);
        self.output.show(form.at, tone, &format!("{task}{}{because}", form.summary));
    }

    /// Shows what an agent said. `by` names it where there are several.
    pub(crate) fn said(&mut self, now: Timestamp, by: Option<&str>, (own, text): (bool, &str)) {
        let text = match &mut self.parser {
            Some(parser) => parser.read(text).without_signals().into_owned(),
            None => text.to_owned(),
        };
        if !text.trim().is_empty() {
            self.name(now, by);
            self.output.words(now, own, &text);
        }
    }

    /// Shows that an agent calls a tool, for this task if there are tasks.
    pub(crate) fn tool(
        &mut self,
        now: Timestamp,
        (by, task): (Option<&str>, Option<&str>),
        call: &ToolCall<'_>,
    ) {
        let call = ToolCall { about: within(call.about, &self.directory), ..*call };
        if let Some(task) = task {
            self.tools.insert(task.to_owned(), call.to_string());
        }
        self.name(now, by);
        self.output.tool(now, &call);
    }

    /// Shows how a call ended: which, whether it failed, and its exit code.
    pub(crate) fn tool_ended(&mut self, now: Timestamp, end: (&str, bool, Option<i64>)) {
        self.output.tool_ended(now, end);
    }

    /// Shows a question and how to answer it. Nobody reads what is typed here.
    pub(crate) fn question(&mut self, now: Timestamp, id: &str, text: &str) {
        self.output.show(now, Some(Tone::Warn), &format!("? {text}"));
        self.output.show(now, None, &format!("  aldis answer {id} TEXT"));
    }

    /// Draws the line at the bottom, or those of the tasks at work.
    pub(crate) fn draw(&mut self, now: Timestamp, id: &RunId, state: &State) {
        let (paint, active) = (self.output.paint, self.output.active);
        let tools = &self.tools;
        self.output.draw(now, |columns| match state {
            State::Run(state) => {
                let waits = *state.status() != run::Status::Working;
                let active = active.filter(|_| !waits);
                vec![status_line(paint, now, state, active, columns)]
            }
            State::Delivery(state) => bottom(paint, now, (id.as_str(), state), tools),
            State::Phases(_) | State::Turns(_) | State::Unreadable(_) => Vec::new(),
        });
        let _flushed = self.output.out.flush();
    }

    /// Says in plain lines how it ended, or why nobody looks on any more.
    pub(crate) fn ended(&mut self, now: Timestamp, lines: &[String]) {
        self.output.end_row(now);
        self.output.bottom.finish_and_clear();
        for line in lines {
            self.output.print(&display::line(line));
        }
    }

    /// Says whose words or tools follow, where that is somebody else than before.
    fn name(&mut self, now: Timestamp, by: Option<&str>) {
        let Some(by) = by.filter(|by| self.speaker.as_deref() != Some(*by)) else { return };
        self.output.end_row(now);
        self.output.show(now, Some(Tone::Dim), &format!("{by}:"));
        self.speaker = Some(by.to_owned());
    }
}

/// Whether the agent's own lines show what was decided.
fn is_quiet(rule: &str) -> bool {
    let of_run = Rule::named(rule);
    of_run.is_some_and(|rule| rule.is_record() || rule == Rule::DoneClaimed)
        || QUIET.iter().any(|quiet| quiet.as_str() == rule)
}
