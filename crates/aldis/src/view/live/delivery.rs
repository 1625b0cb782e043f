//! What a delivery shows while it is active: each decision as a line, with `-v` what its agents say and
//! do, and on a terminal the tasks that matter now at the bottom.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use aldis_machine::delivery::{Dispatch, Ending, Rule, State};
use aldis_machine::{Decision, Machine as _};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Parser};
use aldis_store::RunId;

use super::tools::{ToolCall, within};
use super::{Detail, End, OutputOptions, RunOutput};
use crate::view::display;
use crate::view::paint::{Paint, Tone};
use crate::view::run_view::delivery_refusal;
use crate::view::show::{LastTools, spent, tally, task_rows};
use crate::view::time::{counted, elapsed};
use crate::view::wire::live::{About, LiveEvent};
use crate::view::wire::task::TaskLine;

/// How many tasks are shown at the bottom.
const TASKS_MAX: usize = 12;
/// How much of a reason, and of the title of a task, is shown.
const REASON_MAX: usize = 60;
const TITLE_MAX: usize = 24;
/// Decisions of these rules are shown only to programs.
pub(super) const QUIET: [Rule; 2] = [Rule::Started, Rule::AgentStarted];

/// Where things are shown.
pub(crate) struct DeliveryReporter {
    output: RunOutput,
    /// Takes signals out of what is shown.
    parser: Option<Parser>,
    /// The titles of tasks.
    titles: BTreeMap<String, String>,
    /// The last tool of each task.
    tools: LastTools,
}

impl DeliveryReporter {
    pub(crate) fn new(out: Box<dyn Write>, options: OutputOptions) -> Self {
        let dialect = Dialect::builtin(aldis_machine::delivery::DIALECT).cloned();
        let parser = dialect.map(Parser::new);
        let (titles, tools) = (BTreeMap::new(), LastTools::new());
        Self { output: RunOutput::new(out, options, 2), parser, titles, tools }
    }

    /// Says what begins.
    pub(crate) fn begin(&mut self, run: &RunId, state: &State) {
        let tasks = state.tasks().iter();
        self.titles = tasks.map(|task| (task.spec.id.clone(), task.spec.title.clone())).collect();
        let count = u64::try_from(state.tasks().len()).unwrap_or(u64::MAX);
        let (title, how) = (&state.run().title, counted(count, "task"));
        self.output.begin(run, state.run().started_at, (State::NAME, title), &how);
    }

    /// Shows what was decided.
    pub(crate) fn decided(&mut self, now: Timestamp, decision: &Decision) {
        let task = decision.task.as_deref();
        let about = About { task, ..About::default() };
        self.output.tell(now, about, &decision.summary, LiveEvent::of_decision(decision));
        if self.output.options.detail == Detail::Quiet
            || QUIET.iter().any(|rule| rule.as_str() == decision.rule)
        {
            return;
        }
        let because = display::excerpt(&decision.because, REASON_MAX);
        let because = if because.is_empty() { because } else { format!("  ({because})") };
        let title = task.map(|task| self.title(task)).unwrap_or_default();
        self.line(now, &title, None, &format!("{}{because}", decision.summary));
    }

    /// Shows what an agent said.
    pub(crate) fn said(&mut self, now: Timestamp, by: &Dispatch, (own, text): (bool, &str)) {
        let text = match &mut self.parser {
            Some(parser) => parser.read(text).without_signals().into_owned(),
            None => text.to_owned(),
        };
        let words = text.trim();
        if !words.is_empty() && self.output.shows_work() {
            self.output.tell(now, about(by), words, LiveEvent::Words { aside: !own });
        }
        if self.output.is_verbose() {
            self.name(now, by);
            self.output.words(now, own, &text);
        }
    }

    /// Shows that an agent calls a tool.
    pub(crate) fn tool(
        &mut self,
        now: Timestamp,
        by: &Dispatch,
        call: &ToolCall<'_>,
        directory: &Path,
    ) {
        let call = ToolCall { about: within(call.about, directory), ..*call };
        if self.output.shows_work() {
            self.output.tell(now, about(by), &call.to_string(), LiveEvent::of_call(&call));
        }
        if let Some(task) = &by.task {
            self.tools.insert(task.clone(), call.to_string());
        }
        if self.output.is_verbose() {
            self.name(now, by);
            self.output.tool(now, &call);
        }
    }

    /// Shows how a call ended.
    pub(crate) fn tool_ended(
        &mut self,
        now: Timestamp,
        by: &Dispatch,
        (call, failed, exit_code): (&str, bool, Option<i64>),
    ) {
        if self.output.shows_work() {
            let event = LiveEvent::ToolEnded { call: call.to_owned(), failed, exit_code };
            self.output.tell(now, about(by), if failed { "failed" } else { "ended" }, event);
        }
        self.output.tool_ended(now, (call, failed, exit_code));
    }

    /// Shows that the host denied a permission.
    pub(crate) fn denied(
        &mut self,
        now: Timestamp,
        by: &Dispatch,
        (tool, what): (&str, &str),
        directory: &Path,
    ) {
        let what = within(what, directory);
        let text =
            format!("the host denied {tool} {}", display::excerpt(&redact(what), REASON_MAX));
        let event = LiveEvent::Denied { tool: tool.to_owned(), about: redact(what).into_owned() };
        self.output.tell(now, about(by), text.trim(), event);
        if self.output.shows_work() {
            let title = by.task.as_deref().map(|task| self.title(task)).unwrap_or_default();
            self.line(now, &title, Some(Tone::Bad), text.trim());
        }
    }

    pub(crate) fn question(&mut self, now: Timestamp, id: &str, task: Option<&str>, text: &str) {
        let about = About { task, ..About::default() };
        let event = LiveEvent::Question { question: id.to_owned() };
        self.output.tell(now, about, text, event);
        let title = task.map(|task| format!("{}: ", self.title(task)));
        self.output.question(now, id, &format!("{}{text}", title.unwrap_or_default()));
    }

    pub(crate) fn problem(&mut self, now: Timestamp, text: &str) {
        self.output.problem(now, text);
    }

    /// Says to programs what others are told; people see the decision it comes from.
    pub(crate) fn notice(&mut self, now: Timestamp, kind: &str, text: &str) {
        if !matches!(kind, "question" | "run_ended") {
            self.output.notice(now, About::default(), kind, text);
        }
    }

    /// Draws the tasks that matter now. Where a person is asked, the line they type on is the last
    /// one.
    pub(crate) fn draw(&mut self, now: Timestamp, state: &State, asked: bool) {
        let (paint, tools) = (self.output.paint, std::mem::take(&mut self.tools));
        let run = self.output.run.clone();
        self.output.draw(now, |_| match asked {
            true => Vec::new(),
            false => bottom(paint, now, (&run, state), &tools),
        });
        self.tools = tools;
    }

    /// Says how it ended, and where to read more.
    pub(crate) fn ended(&mut self, now: Timestamp, state: &State, ending: Ending) {
        let run = self.output.run.clone();
        let cost = state.run().spending.spent;
        let spent = spent(cost).map(|spent| format!(", {spent}"));
        let time = elapsed(now.since(self.output.began));
        let detail = format!(": {} after {time}{}", tally(state), spent.unwrap_or_default());
        let refused = delivery_refusal(state);
        let next = ending
            .can_be_continued()
            .then(|| format!("aldis deliver --continue {run} continues it"));
        let event = LiveEvent::Ended {
            ending: ending.as_str().to_owned(),
            iterations: None,
            tokens: cost.tokens,
            micro_dollars: cost.micro_dollars,
            refused: refused.as_deref().map(|refused| redact(refused).into_owned()),
            next: next.clone(),
        };
        let title = ending.as_str().replace('_', " ");
        self.output.tell(now, About::default(), &format!("{title}{detail}"), event);
        let more = format!("aldis tasks {run} · aldis why TASK · aldis report {run}");
        let good = ending == Ending::Complete;
        self.output.ended(now, &End { good, title: &title, detail, refused, next, more });
    }

    /// Says that it waits for a human, and ends here.
    pub(crate) fn waits(&mut self, now: Timestamp, state: &State) {
        self.output.bottom.finish_and_clear();
        let questions: Vec<String> = state.run().questions.keys().cloned().collect();
        let text = format!(
            "waiting for your answer to {}; aldis answer ID TEXT, then aldis deliver --continue {}",
            questions.join(", "),
            self.output.run
        );
        self.output.tell(now, About::default(), &text, LiveEvent::Waits { questions });
        self.output.show(now, Some(Tone::Warn), &text);
    }

    /// Says whose words or tools follow, where that is somebody else than before.
    fn name(&mut self, now: Timestamp, by: &Dispatch) {
        if self.output.speaker != Some(by.agent) && !self.output.options.json {
            self.output.end_row(now);
            let title = by.task.as_deref().map(|task| self.title(task)).unwrap_or_default();
            self.line(now, &title, Some(Tone::Dim), &format!("{}:", by.role.as_str()));
            self.output.speaker = Some(by.agent);
        }
    }

    /// Shows a line about a task.
    fn line(&mut self, now: Timestamp, title: &str, tone: Option<Tone>, text: &str) {
        self.output.speaker = None;
        let time = elapsed(now.since(self.output.began));
        let text = format!("{time}  {title:<TITLE_MAX$}  {text}");
        self.output.show(now, tone, text.trim_end());
    }

    /// What people call a task.
    fn title(&self, task: &str) -> String {
        let title = self.titles.get(task).filter(|title| !title.trim().is_empty());
        display::excerpt(title.map_or(task, |title| title), TITLE_MAX - 1)
    }
}

fn about(by: &Dispatch) -> About<'_> {
    About { task: by.task.as_deref(), role: Some(by.role.as_str()), agent: Some(by.agent) }
}

/// The tasks that matter now, below how many are complete.
pub(super) fn bottom(
    paint: Paint,
    now: Timestamp,
    (run, state): (&str, &State),
    tools: &LastTools,
) -> Vec<String> {
    let working = counted(u64::try_from(state.run().agents.len()).unwrap_or(u64::MAX), "agent");
    let Ok(run) = RunId::new(run) else { return Vec::new() };
    let tasks: Vec<TaskLine> =
        state.tasks().iter().map(|task| TaskLine::new(&run, state, task)).collect();
    let rows =
        task_rows(paint, now, &tasks, tools, |task| task.role.is_some() || task.question.is_some());
    let head = format!("  {}   {working} at work", tally(state));
    [head]
        .into_iter()
        .chain(rows.into_iter().take(TASKS_MAX).map(|row| format!("  {row}")))
        .collect()
}
