//! What a supervised run shows while it is active: the agent's words, its tools, what became of its
//! claims, and on a terminal one line at the bottom that says how it is.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aldis_machine::run::{AgentExit, Ending, Exit, Notice, Rule, State, Status, Usage};
use aldis_machine::stagnation::Level;
use aldis_machine::{Decision, Machine as _};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Meaning, Origin, Parser, Role, Via};
use aldis_store::RunId;

use super::tools::{ToolCall, within};
use super::{End, Output, OutputOptions};
use crate::view::display;
use crate::view::paint::{Paint, Tone};
use crate::view::run_view::{run_refusal, run_status};
use crate::view::show::{dollars, spent};
use crate::view::time::{ago, counted, elapsed, rough, short};
use crate::view::wire::live::{About, LiveEvent};
use crate::view::wrap::width;

/// How much of a title, and of a command, is shown.
const TITLE_MAX: usize = 60;
/// How much of a reason is shown.
const REASON_MAX: usize = 200;
/// How many lines of a failed check are shown, and how many if more is asked for.
const CHECK_LINES: [usize; 2] = [3, 20];
/// Decisions of these rules have no line of another kind, and people want to know of them.
const TOLD: [Rule; 7] = [
    Rule::Answered,
    Rule::CrashWaitOver,
    Rule::LimitOver,
    Rule::MessageReceived,
    Rule::Recovered,
    Rule::Reopened,
    Rule::Resumed,
];

/// Where things are shown.
pub(crate) struct RunReporter {
    output: Output,
    /// Takes signals out of what is shown.
    parser: Parser,
    /// Where the agent works.
    directory: PathBuf,
    /// The check, and how it ended last.
    verify: String,
    checked: Option<Exit>,
}

impl RunReporter {
    pub(crate) fn new(out: Box<dyn Write>, options: OutputOptions, dialect: &Arc<Dialect>) -> Self {
        let parser = Parser::new(Arc::clone(dialect));
        let output = Output::new(out, options, 0);
        let (directory, verify, checked) = (PathBuf::new(), String::new(), None);
        Self { output, parser, directory, verify, checked }
    }

    /// Says what begins: who works, where, and what checks it.
    pub(crate) fn begin(
        &mut self,
        run: &RunId,
        state: &State,
        agent: &str,
        (directory, verify): (&Path, Option<&str>),
    ) {
        directory.clone_into(&mut self.directory);
        verify.unwrap_or_default().clone_into(&mut self.verify);
        let title = state.setup().task.trim().lines().next().unwrap_or_default();
        let title = excerpt(title, TITLE_MAX);
        let check = verify.map(|verify| format!(", verify: {}", excerpt(verify, TITLE_MAX)));
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
        let goes_on = decisions.iter().any(|it| it.rule == Rule::IterationStarted.as_str());
        for decision in decisions {
            let event = LiveEvent::of_decision(decision);
            self.output.tell(now, About::default(), &decision.summary, event);
            self.claim(now, decision, after, goes_on);
            if TOLD.iter().any(|rule| rule.as_str() == decision.rule) {
                self.output.show(now, None, &decision.summary);
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
        self.status(now, before, after);
        if before.cost != after.cost() {
            let Usage { tokens, micro_dollars } = after.cost();
            let text = spent(after.cost()).unwrap_or_default();
            let event = LiveEvent::Spent { tokens, micro_dollars };
            self.output.tell(now, About::default(), &text, event);
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

    /// Shows what became of a claim, or that there was none.
    fn claim(&mut self, now: Timestamp, decision: &Decision, state: &State, goes_on: bool) {
        let Some(rule) = Rule::ALL.iter().find(|rule| rule.as_str() == decision.rule) else {
            return;
        };
        let claim = decision.evidence.iter().rfind(|seen| seen.what == "signal");
        let claims = match claim.map(|claim| claim.via) {
            Some(Via::Call) => "claims done (by call)",
            _ => "claims done",
        };
        let back = |what: &str| if goes_on { format!(". {what}") } else { String::new() };
        let verify = excerpt(&self.verify, TITLE_MAX);
        let (tone, text) = match rule {
            Rule::Done if state.setup().config.verify => {
                (Some(Tone::Good), format!("{claims} → {verify} passed"))
            }
            Rule::Done => {
                (Some(Tone::Good), format!("{claims} → accepted: no check is configured"))
            }
            Rule::CheckFailed => {
                let code = self.checked.take().and_then(|exit| exit.code);
                let code = code.map(|code| format!(" (exit {code})")).unwrap_or_default();
                (
                    Some(Tone::Bad),
                    format!("{claims} → {verify} failed{code}{}", back("Sent the output back.")),
                )
            }
            Rule::ClaimRefused => {
                let because = state.last_refusal().map_or("", |refused| &refused.because);
                (
                    Some(Tone::Bad),
                    format!("{claims} → refused: {because}{}", back("Told the agent.")),
                )
            }
            Rule::Contradiction => {
                (Some(Tone::Bad), "reports success after failure in one message".to_owned())
            }
            Rule::IterationEnded => {
                let hint = state.last_near_miss().map(|hint| format!(": {hint}"));
                let text = format!("stopped without claiming done{}", hint.unwrap_or_default());
                (Some(Tone::Warn), text)
            }
            _ => return,
        };
        self.output.show(now, tone, &text);
        if *rule == Rule::CheckFailed {
            let output = decision.evidence.iter().find(|seen| seen.what == "output");
            let lines: Vec<&str> =
                output.map_or("", |seen| &seen.quote).trim_end().lines().collect();
            let most = CHECK_LINES[usize::from(self.output.is_verbose())];
            let shown = lines[lines.len().saturating_sub(most)..].join("\n");
            self.output.show(now, Some(Tone::Dim), &shown);
        }
    }

    /// Shows that the run waits or stops. The other states are over in a moment, or have a line of
    /// their own.
    fn status(&mut self, now: Timestamp, before: &LastShown, after: &State) {
        let until = match after.status() {
            status if *status == before.status => return,
            Status::Limited { until } | Status::Backoff { until } => Some(*until),
            Status::Paused { .. } | Status::Ending { .. } => None,
            _ => return,
        };
        let (_, text) = run_status(now, after);
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
            let stripped = self.parser.strip(text);
            self.words(now, own, &stripped);
        }
    }

    /// Shows what was written to standard error.
    pub(crate) fn aside(&mut self, now: Timestamp, bytes: &[u8]) {
        self.words(now, false, &String::from_utf8_lossy(bytes));
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

    pub(crate) fn checking(&mut self, now: Timestamp) {
        let text = format!("the agent claims done; verifying with: {}", self.verify);
        self.check(now, &text, None, None);
    }

    pub(crate) fn checked(&mut self, now: Timestamp, exit: Exit) {
        let passed = exit.is_clean();
        let text = if passed { "verification passed" } else { "verification failed" };
        self.check(now, text, Some(passed), exit.code);
        self.checked = Some(exit);
    }

    fn check(&mut self, now: Timestamp, text: &str, passed: Option<bool>, exit_code: Option<i32>) {
        let command = self.verify.clone();
        let event = LiveEvent::Check { command, passed, exit_code };
        self.output.tell(now, About::default(), text, event);
    }

    pub(crate) fn question(&mut self, now: Timestamp, id: &str, text: &str) {
        let event = LiveEvent::Question { question: id.to_owned() };
        self.output.tell(now, About::default(), text, event);
        self.output.question(now, id, text);
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
        let verified = ending == Ending::Done && state.setup().config.verify;
        let title = if verified { "done and verified" } else { ending.as_str() };
        let title = title.replace('_', " ");
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

/// The iteration, as it stands in front of what happens in it.
fn count(state: &State) -> String {
    let most = state.setup().config.max_iterations.to_string();
    let width = most.len();
    format!("  {:>width$}/{most}", state.iteration())
}

/// The beginning of a text, not made harmless yet.
fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
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

/// The line at the bottom: iteration, progress, time and cost with their limits, and what happens now.
/// What matters least goes first where there is no room.
fn status_line(
    paint: Paint,
    now: Timestamp,
    state: &State,
    active: Option<Timestamp>,
    columns: usize,
) -> String {
    let config = &state.setup().config;
    let worked = elapsed(Duration::from_millis(state.worked(now)));
    let time = format!("{worked} of {}", short(Duration::from_secs(config.timeout)));
    let cost = state.cost();
    let cost = match (config.max_micro_dollars, config.max_tokens) {
        (Some(most), _) => {
            let most = Usage { tokens: 0, micro_dollars: most };
            Some(format!("{} of {}", dollars(cost), dollars(most)))
        }
        (None, Some(most)) => Some(format!("{} of {most} tokens", cost.tokens)),
        (None, None) => spent(cost),
    };
    let level = Some(state.monitor().level()).filter(|level| *level != Level::None);
    let now_doing = match state.status() {
        Status::Working => active.map(|at| format!("last activity {}", ago(now, at))),
        _ => Some(run_status(now, state).1),
    };
    let percent = state.shown_progress().map(|percent| format!("{percent} %"));
    let phase = state.phase().map(|phase| display::excerpt(phase, 20));
    // From the first to go to the last; the order of the line is another.
    let mut parts = [
        (1, Some(count(state))),
        (5, percent),
        (2, phase),
        (4, Some(time)),
        (3, cost),
        (6, now_doing),
        (7, level.map(|level| format!("stalled: {}", level.as_str()))),
    ]
    .map(|(rank, part)| part.map(|part| (rank, part)));
    let line = |parts: &[Option<(u8, String)>]| {
        let parts: Vec<&str> = parts.iter().flatten().map(|(_, part)| &**part).collect();
        parts.join("  ")
    };
    for rank in 1..=7 {
        if width(&line(&parts)) <= columns {
            break;
        }
        let left = parts.iter().flatten().count();
        parts
            .iter_mut()
            .filter(|_| left > 1)
            .for_each(|part| drop(part.take_if(|it| it.0 == rank)));
    }
    let line = line(&parts);
    let warns = level.is_some() || *state.status() != Status::Working;
    if warns { paint.warn(line).to_string() } else { paint.dim(line).to_string() }
}
