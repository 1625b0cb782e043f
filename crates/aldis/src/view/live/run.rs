//! What a supervised run shows while it is active: the agent's words, its tools, what became of its
//! claims, and on a terminal one line at the bottom that says how it is.

mod claim;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aldis_machine::proof::{Check, CheckResult};
use aldis_machine::run::{Ending, Notice, Rule, State, Status, Usage};
use aldis_machine::stagnation::Level;
use aldis_machine::{Decision, Machine as _};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Meaning, Origin, Parser, Role};
use aldis_store::RunId;

use super::status_line::{count, status_line};
use super::tools::{ToolCall, within};
use super::{End, OutputOptions, RunOutput};
use crate::view::display;
use crate::view::ending::{ended_remedy, ending_reason, ending_words};
use crate::view::paint::Tone;
use crate::view::run_view::{run_refusal, run_status};
use crate::view::show::spent;
use crate::view::time::{counted, rough};
use crate::view::wire::live::{About, LiveEvent};
use crate::view::wrap::width;

/// How much of a title, and of a command, is shown.
const TITLE_MAX: usize = 60;
/// How much of a reason is shown.
const REASON_MAX: usize = 200;
/// How much of standard error is kept for a crash, and how many lines of it are shown.
const ERRORS_MAX: usize = 4_096;
const ERROR_LINES: usize = 3;
/// Decisions of these rules have no line of another kind, and people want to know of them.
const TOLD: [Rule; 9] = [
    Rule::Answered,
    Rule::CheckEnded,
    Rule::CheckProvesNothing,
    Rule::CrashWaitOver,
    Rule::LimitOver,
    Rule::MessageReceived,
    Rule::Recovered,
    Rule::Reopened,
    Rule::Resumed,
];

/// Where things are shown.
pub(crate) struct RunReporter {
    output: RunOutput,
    /// Takes signals out of what is shown.
    parser: Parser,
    /// Where the agent works.
    directory: PathBuf,
    /// The checks, in few words, and the exit code of the last one that ended.
    verify: String,
    checked: Option<i32>,
    /// The end of what the agent wrote to standard error. It is shown where it matters: after a crash.
    errors: String,
}

impl RunReporter {
    pub(crate) fn new(out: Box<dyn Write>, options: OutputOptions, dialect: &Arc<Dialect>) -> Self {
        let parser = Parser::new(Arc::clone(dialect));
        let output = RunOutput::new(out, options, 0);
        let (directory, verify, checked) = (PathBuf::new(), String::new(), None);
        Self { output, parser, directory, verify, checked, errors: String::new() }
    }

    /// Says what begins: who works, where, and what checks it.
    pub(crate) fn begin(&mut self, run: &RunId, state: &State, agent: &str, directory: &Path) {
        directory.clone_into(&mut self.directory);
        let verify = claim::checks(state);
        verify.clone().unwrap_or_default().clone_into(&mut self.verify);
        let title = state.setup().task.trim().lines().next().unwrap_or_default();
        let title = excerpt(title, TITLE_MAX);
        let check = verify.map(|verify| format!(", verify: {}", excerpt(&verify, TITLE_MAX)));
        let how = format!("{agent}, {}{}", state.setup().dialect, check.unwrap_or_default());
        self.output.indent = width(&count(state)) + 2;
        self.output.begin(run, state.started_at(), (State::NAME, &title), &how);
        self.output.gutter = (state.iteration() > 0).then(|| count(state));
    }

    /// Shows what was decided, and what it changed in the run.
    pub(crate) fn decided(
        &mut self,
        now: Timestamp,
        decisions: &[Decision],
        before: &LastShown,
        after: &State,
    ) {
        self.progress(now, before, after);
        let decided = |rule: Rule| decisions.iter().any(|it| it.rule == rule.as_str());
        let goes_on = decided(Rule::IterationStarted);
        if decided(Rule::Reopened) {
            // With the limits that hold now.
            self.output.gutter = (after.iteration() > 0).then(|| count(after));
        }
        if decided(Rule::AgentStarted) {
            self.errors.clear();
        }
        if decided(Rule::CrashWait) || decided(Rule::Crashed) {
            self.show_errors(now);
        }
        for decision in decisions {
            let event = LiveEvent::of_decision(decision);
            self.output.tell(now, About::default(), &decision.summary, event);
            self.claim(now, decision, after, goes_on);
            if TOLD.iter().any(|rule| rule.as_str() == decision.rule) {
                let waiting = [Rule::Recovered, Rule::MessageReceived].map(Rule::as_str);
                let waits = waiting.contains(&&*decision.rule)
                    && matches!(
                        after.status(),
                        Status::Limited { .. } | Status::Backoff { .. } | Status::Asking
                    );
                let status = waits.then(|| format!(": {}", run_status(now, after).1));
                let text = format!("{}{}", decision.summary, status.unwrap_or_default());
                self.output.show(now, None, &text);
            }
        }
        if before.iteration != after.iteration() {
            self.output.end_row(now);
            self.output.gutter = Some(count(after));
            let most = after.setup().config.max_iterations;
            let event = LiveEvent::Iteration { iteration: after.iteration(), max_iterations: most };
            let text = format!("iteration {} of {most}", after.iteration());
            self.output.tell(now, About::default(), &text, event);
        }
        let limit = decisions.iter().find(|it| it.rule == Rule::LimitWait.as_str());
        self.status(now, before, after, limit.map(|limit| &*limit.because));
        if before.cost != after.cost() {
            let Usage { tokens, micro_dollars } = after.cost();
            let text = spent(after.cost()).unwrap_or_default();
            let event = LiveEvent::Spent { tokens, micro_dollars };
            self.output.tell(now, About::default(), &text, event);
        }
        let waited = before.status == Status::Asking && *after.status() != Status::Asking;
        if waited && decisions.is_empty() && after.ending().is_none() {
            self.output.show(now, None, "the question was answered");
        }
        if before.level != Level::None && after.monitor().level() == Level::None {
            self.output.show(now, None, "progress again");
        }
    }

    fn progress(&mut self, now: Timestamp, before: &LastShown, after: &State) {
        if before.progress == after.progress() && before.phase.as_deref() == after.phase() {
            return;
        }
        let percent = after.progress().map(|percent| format!(" {percent} %"));
        let phase = after.phase().map(|phase| format!(" {phase}"));
        let last = after.signals().iter().rfind(|signal| signal.meaning == Meaning::Progress);
        let said = last.and_then(|signal| signal.text.as_deref());
        let said = said.filter(|said| said.trim().trim_end_matches('%').parse::<u8>().is_err());
        let said = said.map(|said| format!(": \"{}\"", excerpt(&redact(said), REASON_MAX)));
        let text = [Some("progress".to_owned()), percent, phase, said];
        let text: String = text.into_iter().flatten().collect();
        let phase = after.phase().map(|phase| redact(phase).into_owned());
        let progress = after.progress();
        let event = LiveEvent::Progress { progress, phase };
        self.output.tell(now, About::default(), &text, event);
        self.output.show(now, None, &text);
    }

    /// Shows that the run waits or stops. The other states are over in a moment, or have a line of
    /// their own.
    fn status(&mut self, now: Timestamp, before: &LastShown, after: &State, because: Option<&str>) {
        let until = match after.status() {
            status if *status == before.status => return,
            Status::Limited { until } | Status::Backoff { until } => Some(*until),
            Status::Paused { .. } | Status::Ending { .. } => None,
            _ => return,
        };
        let (_, mut text) = run_status(now, after);
        if let Some(because) = because.filter(|because| !because.trim().is_empty()) {
            text.push_str(": ");
            text.push_str(&excerpt(because, REASON_MAX));
        }
        let status = after.status().name().to_owned();
        self.output.tell(now, About::default(), &text, LiveEvent::Status { status, until });
        self.output.show(now, Some(Tone::Warn), &text);
    }

    /// Returns whether anybody sees what the agent says.
    pub(crate) fn shows_words(&self) -> bool {
        self.output.shows_work()
    }

    /// Draws the line at the bottom. Where a person is asked, the line they type on is the last one.
    pub(crate) fn draw(&mut self, now: Timestamp, state: &State) {
        let asks = matches!(state.status(), Status::Asking | Status::Paused { stagnated: true });
        let (paint, active) = (self.output.paint, self.output.active);
        self.output.draw(now, |columns| match asks {
            true => Vec::new(),
            false => vec![status_line(paint, now, state, active, columns)],
        });
    }

    /// Shows what an agent said: the main agent plainly, its sub-agents dimmed. Prompts, tools and what
    /// a host says about itself belong into the log.
    pub(crate) fn said(&mut self, now: Timestamp, origin: &Origin, text: &str) {
        if matches!(origin.role, Role::Assistant | Role::Subagent) {
            let own = origin.role == Role::Assistant && !origin.sidechain;
            let stripped = self.parser.read(text).without_signals().into_owned();
            self.words(now, own, &stripped);
        }
    }

    /// Shows what was written to standard error, if everything is shown.
    pub(crate) fn aside(&mut self, now: Timestamp, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        if self.output.is_verbose() || self.output.options.json {
            return self.words(now, false, &text);
        }
        self.output.active = Some(now);
        self.errors.push_str(&text);
        let most = self.errors.len().saturating_sub(ERRORS_MAX);
        self.errors.drain(..self.errors.ceil_char_boundary(most));
    }

    /// Shows the last lines that a crashed agent wrote to standard error.
    fn show_errors(&mut self, now: Timestamp) {
        let errors = std::mem::take(&mut self.errors);
        let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(ERROR_LINES)..];
        if !last.is_empty() && self.shows_words() {
            self.output.show(now, Some(Tone::Dim), &last.join("\n"));
        }
    }

    fn words(&mut self, now: Timestamp, own: bool, text: &str) {
        let words = text.trim();
        if !words.is_empty() && self.output.options.json && self.shows_words() {
            self.output.tell(now, About::default(), words, LiveEvent::Words { aside: !own });
        }
        self.output.words(now, own, text);
    }

    /// Shows that the agent calls a tool.
    pub(crate) fn tool(&mut self, now: Timestamp, call: &ToolCall<'_>) {
        if !self.shows_words() {
            self.output.active = Some(now);
            return;
        }
        let call = ToolCall { about: within(call.about, &self.directory), ..*call };
        self.output.tell(now, About::default(), &call.to_string(), LiveEvent::of_call(&call));
        self.output.tool(now, &call);
    }

    /// Shows how a call ended.
    pub(crate) fn tool_ended(
        &mut self,
        now: Timestamp,
        call: &str,
        failed: bool,
        code: Option<i64>,
    ) {
        if self.shows_words() {
            let event = LiveEvent::ToolEnded { call: call.to_owned(), failed, exit_code: code };
            self.output.tell(now, About::default(), if failed { "failed" } else { "ended" }, event);
        }
        self.output.tool_ended(now, (call, failed, code));
    }

    /// Shows that a check begins.
    pub(crate) fn checking(&mut self, now: Timestamp, check: &Check, before_work: bool) {
        let why = if before_work { "before the work starts" } else { "the agent claims done" };
        let text = format!("{why}; verifying with: {}", check.command);
        let (name, command) = (claim::name(&check.name), check.command.clone());
        let event = LiveEvent::Check { name, command, passed: None, exit_code: None };
        self.output.tell(now, About::default(), &text, event);
    }

    /// Shows how a check ended.
    pub(crate) fn checked(&mut self, now: Timestamp, result: &CheckResult) {
        let passed = result.passed();
        let text = if passed { "verification passed" } else { "verification failed" };
        let (name, command) = (claim::name(&result.name), result.command.clone());
        let exit_code = result.exit_code;
        let event = LiveEvent::Check { name, command, passed: Some(passed), exit_code };
        self.output.tell(now, About::default(), text, event);
        self.checked = exit_code;
    }

    pub(crate) fn question(
        &mut self,
        now: Timestamp,
        (id, text): (&str, &str),
        suggestion: Option<&str>,
    ) {
        let event = LiveEvent::Question { question: id.to_owned() };
        let text = match suggestion {
            Some(suggestion) => format!("{text}\n{suggestion}"),
            None => text.to_owned(),
        };
        self.output.tell(now, About::default(), &text, event);
        self.output.question(now, id, &text);
    }

    /// Tells what has no other line: the end, a question and a limit have.
    pub(crate) fn notice(&mut self, now: Timestamp, notice: Notice, text: &str) {
        if !matches!(notice, Notice::RunEnded | Notice::Question) {
            self.output.notice(now, About::default(), notice.as_str(), text);
            if notice != Notice::RateLimit {
                self.output.show(now, Some(Tone::Warn), text);
            }
        }
    }

    /// Shows that the host met an error and tries again by itself.
    pub(crate) fn retrying(&mut self, now: Timestamp, what: &str) {
        let text = format!("the host is retrying: {what}");
        self.output.tell(now, About::default(), &text, LiveEvent::Retrying);
        self.output.show(now, Some(Tone::Dim), &text);
    }

    /// Shows that the host denied a permission.
    pub(crate) fn denied(&mut self, now: Timestamp, (tool, about): (&str, &str)) {
        let about = within(about, &self.directory);
        let what = format!("{tool} {}", excerpt(about, TITLE_MAX));
        let text = format!("the host denied {}", what.trim());
        let event = LiveEvent::Denied { tool: tool.to_owned(), about: redact(about).into_owned() };
        self.output.tell(now, About::default(), &text, event);
        self.output.show(now, Some(Tone::Bad), &text);
    }

    pub(crate) fn kept(&mut self, now: Timestamp, branch: &str) {
        let text =
            format!("saved uncommitted changes to branch {branch} (your checkout is unchanged)");
        let event = LiveEvent::Kept { branch: branch.to_owned() };
        self.output.tell(now, About::default(), &text, event);
        self.output.show(now, None, &text);
    }

    pub(crate) fn problem(&mut self, now: Timestamp, text: &str) {
        self.output.problem(now, text);
    }

    /// Says how it ended, and where to read more.
    pub(crate) fn ended(
        &mut self,
        now: Timestamp,
        state: &State,
        ending: Ending,
        (commits, branch): (usize, Option<String>),
    ) {
        let run = self.output.run.clone();
        let why = ending_reason(state, ending).map(|why| format!(": {why}")).unwrap_or_default();
        let cost = spent(state.cost()).map(|cost| format!(", {cost}")).unwrap_or_default();
        let next = ended_remedy(&run, state, ending);
        let verified = ending == Ending::Done && state.setup().config.has_check();
        let title = if verified { "done and verified".to_owned() } else { ending_words(ending) };
        let Usage { tokens, micro_dollars } = state.cost();
        let refused = run_refusal(state);
        let event = LiveEvent::Ended {
            ending: ending.as_str().to_owned(),
            iterations: Some(state.iteration()),
            tokens,
            micro_dollars,
            refused: refused.as_deref().map(|refused| redact(refused).into_owned()),
            next: next.clone(),
        };
        let worked = rough(Duration::from_millis(state.worked(now)));
        let iterations = counted(state.iteration().into(), "iteration");
        let branch = branch.map(|branch| format!(" on {}", display::line(&branch)));
        let commits = (commits > 0).then(|| {
            let commits = counted(u64::try_from(commits).unwrap_or(u64::MAX), "commit");
            format!(". {commits}{}", branch.unwrap_or_default())
        });
        let commits = commits.unwrap_or_default();
        let detail = format!(" after {iterations}, {worked}{cost}{why}{commits}");
        self.output.tell(now, About::default(), &format!("{title}{detail}"), event);
        let more = format!("aldis why {run} · aldis output {run} · aldis report {run}");
        let good = ending == Ending::Done;
        self.output.ended(now, &End { good, title: &title, detail, refused, next, more });
    }
}

/// What of a run is shown when it changes. A whole state would be too much to keep for each event.
pub(crate) struct LastShown {
    iteration: u32,
    progress: Option<u8>,
    phase: Option<String>,
    status: Status,
    level: Level,
    cost: Usage,
}

impl LastShown {
    pub(crate) fn of(state: &State) -> Self {
        Self {
            iteration: state.iteration(),
            progress: state.progress(),
            phase: state.phase().map(str::to_owned),
            status: state.status().clone(),
            level: state.monitor().level(),
            cost: state.cost(),
        }
    }
}

/// The beginning of a text, not made harmless yet.
fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
