//! Runs and decisions on a terminal. First the outcome, then the evidence, then what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};

use aldis_machine::delivery::{State, Status};
use aldis_machine::run::Usage;
use aldis_signal::time::Timestamp;

use super::display;
use super::paint::{Paint, Tone};
use super::run_view::RunView;
use super::time::{ago, counted, elapsed, localized, moment};
use super::wire::run::{DecisionForm, EvidenceForm};
use super::wire::task::TaskLine;
use super::wrap::width;
use crate::io::Io;

/// How much of a quotation is shown.
const QUOTE_MAX: usize = 160;
/// How much of a title is shown.
const TITLE_MAX: usize = 60;
/// How much history of a channel is shown.
const HISTORY_SHOWN: usize = 5;
/// How wide the columns of a task are, and how much of its last failure and of what its agent does is
/// shown.
const TASK_ID_MAX: usize = 32;
const TASK_TITLE: usize = 28;
const TASK_STATUS: usize = 11;
const TASK_DOING: usize = 40;
const FAILURE_MAX: usize = 60;
/// The state of a task that is complete.
const COMPLETE: &str = "complete";

/// The name of a project for people.
pub(crate) fn project(project: &str) -> &str {
    if project.is_empty() { "none" } else { project }
}

/// Shows a run in a few lines.
pub(crate) fn run(io: &mut Io, now: Timestamp, view: &RunView) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let out = &mut io.stdout;
    let title = display::excerpt(&view.title, TITLE_MAX);
    writeln!(out, "{}  {}", paint.strong(&view.id), paint.strong(title))?;
    writeln!(out, "  {}", status(paint, view))?;
    for (label, text) in view.all_facts(now) {
        writeln!(out, "  {label:<9} {}", display::line(&text))?;
    }
    for question in &view.questions {
        writeln!(
            out,
            "  {:<9} {}: {}",
            "question",
            question.id,
            display::one_line(&question.text, usize::MAX)
        )?;
        if let Some(suggestion) = question.suggestion() {
            writeln!(out, "  {:<9} {}", "", display::one_line(&suggestion, usize::MAX))?;
        }
    }
    if !view.tasks.is_empty() {
        writeln!(out, "  {:<9} aldis tasks {}", "tasks", view.id)?;
    }
    for (at, text) in view.history.iter().take(HISTORY_SHOWN) {
        writeln!(out, "  {}  {}", display::line(text), paint.dim(ago(now, *at)))?;
    }
    Ok(())
}

/// Says in one line how a run is.
pub(crate) fn status(paint: Paint, view: &RunView) -> String {
    let (tone, text) = &view.status;
    format!("{}{}", paint.tone(*tone, display::line(text)), display::line(&view.detail))
}

/// Shows a decision with its reasons, and the run it is about where that is not clear.
pub(crate) fn decision(
    io: &mut Io,
    now: Timestamp,
    form: &DecisionForm,
    about: Option<&RunView>,
) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let out = &mut io.stdout;
    let when = format!("{}, {}", moment(now, form.at), ago(now, form.at));
    writeln!(out, "{}   {}", paint.strong(display::line(&form.summary)), paint.dim(when))?;
    if let Some(view) = about {
        let title = display::excerpt(&view.title, TITLE_MAX);
        let status = status(paint, view);
        writeln!(out, "  {:<9} {}  {}   {status}", "run", view.id, paint.strong(title))?;
    }
    for (label, text) in reasons(form, about) {
        writeln!(out, "  {label:<9} {text}")?;
    }
    Ok(())
}

/// What a decision rests on, line by line: what each line is, and its words made harmless. Evidence
/// after the first has no label.
pub(crate) fn reasons(form: &DecisionForm, about: Option<&RunView>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    lines.extend(form.task.as_deref().map(|task| ("task", display::line(task))));
    let said = |sentence: &str| display::line(&localized(form.at, sentence));
    lines.push(("rule", format!("{}: {}", form.rule, said(&form.because))));
    for (count, evidence) in form.evidence.iter().enumerate() {
        lines.push((if count == 0 { "evidence" } else { "" }, quoted(evidence)));
    }
    if !form.counters.is_empty() {
        let counters: Vec<String> = form
            .counters
            .iter()
            .map(|(name, count)| match &**name {
                "micro_dollars" => format!("cost {}", money(*count)),
                _ => format!("{} {count}", display::line(&name.replace('_', " "))),
            })
            .collect();
        lines.push(("counters", counters.join(", ")));
    }
    // What was next when somebody supervised the run is not what is next now.
    let gone = about.filter(|view| view.unsupervised).and_then(|view| view.remedy.as_deref());
    lines.push(("next", said(gone.unwrap_or(&form.remedy))));
    lines
}

fn quoted(evidence: &EvidenceForm) -> String {
    let quote = display::excerpt(&evidence.quote, QUOTE_MAX);
    let name = evidence.name.as_deref().map(display::line).unwrap_or_default();
    let place = match (evidence.line.filter(|line| *line > 0), &evidence.agent) {
        (Some(line), Some(agent)) => format!(" (agent {}, line {line})", display::line(agent)),
        (Some(line), None) => format!(" (line {line})"),
        (None, _) => String::new(),
    };
    let verdict = match (&*evidence.what, &evidence.reason) {
        ("near_miss", Some(reason)) => format!("  -> near miss: {}", display::line(reason)),
        ("refused", Some(reason)) => format!("  -> {name} refused: {}", display::line(reason)),
        ("finding", Some(rule)) => return format!("{quote}  -> {}", display::line(rule)),
        ("check", _) => return quote,
        ("signal", _) if quote.is_empty() => return name,
        ("signal", _) => format!("  -> {name}"),
        _ => String::new(),
    };
    format!("\"{quote}\"{place}{verdict}")
}

/// The last tool of each task, by its id.
pub(crate) type LastTools = BTreeMap<String, String>;

/// Tasks, one in a line: what people call it, its id, its state, its round, its agent and what that does.
/// Only those that are `wanted`.
pub(crate) fn task_rows(
    paint: Paint,
    now: Timestamp,
    tasks: &[TaskLine],
    tools: &LastTools,
    wanted: impl Fn(&TaskLine) -> bool,
) -> Vec<String> {
    let widest = tasks.iter().map(|task| width(&task.task)).max().unwrap_or(0);
    let complete: BTreeSet<&str> =
        tasks.iter().filter(|task| task.status == COMPLETE).map(|task| &*task.task).collect();
    let wanted = tasks.iter().filter(|task| wanted(task));
    wanted
        .map(|task| {
            let tool = tools.get(&task.task).filter(|_| task.role.is_some());
            let doing =
                task.progress.iter().chain(tool).map(|text| display::excerpt(text, TASK_DOING));
            let doing = doing.map(|text| format!("  {text}")).collect::<String>();
            format!("{}{doing}", task_row(paint, now, task, &complete, widest.min(TASK_ID_MAX)))
        })
        .collect()
}

fn task_row(
    paint: Paint,
    now: Timestamp,
    task: &TaskLine,
    complete: &BTreeSet<&str>,
    width: usize,
) -> String {
    let agent = task.role.as_ref().zip(task.since);
    let at = match &task.worker {
        _ if task.queued => " waits for a worker".to_owned(),
        Some(worker) => format!(" on {}", display::line(worker)),
        None => String::new(),
    };
    let agent = agent.map(|(role, since)| format!("  {role}{at}  {}", elapsed(now.since(since))));
    let failure = task.setback.as_deref().map(|why| {
        let why = format!("before: {}", display::excerpt(why, FAILURE_MAX));
        format!("  {}", paint.dim(why))
    });
    let round = (task.round > 0).then(|| format!("  round {}", task.round));
    let title = if task.title.trim().is_empty() { &task.task } else { &task.title };
    let row = format!(
        "{:<TASK_TITLE$} {}  {:<TASK_STATUS$}{}{}{}",
        display::excerpt(title, TASK_TITLE - 1),
        paint.dim(format!("{:<width$}", display::line(&task.task))),
        paint.tone(task_tone(&task.status), task_status(task, complete)),
        round.unwrap_or_default(),
        agent.unwrap_or_default(),
        failure.unwrap_or_default()
    );
    row.trim_end().to_owned()
}

/// Where a task is, in words.
fn task_status(task: &TaskLine, complete: &BTreeSet<&str>) -> String {
    let waits: Vec<String> = task
        .needs
        .iter()
        .filter(|needed| !complete.contains(&***needed))
        .map(|needed| display::line(needed))
        .collect();
    match &*task.status {
        "pending" if !waits.is_empty() => format!("waits for {}", waits.join(", ")),
        status => task_words(status).to_owned(),
    }
}

/// The state of a task in words.
pub(crate) fn task_words(status: &str) -> &str {
    match status {
        "implementing" => "in progress",
        "awaiting-review" => "in review",
        "awaiting-audit" => "in audit",
        "awaiting-guidance" => "needs you",
        status => status,
    }
}

/// How good the state of a task is.
pub(crate) fn task_tone(status: &str) -> Tone {
    match status {
        "complete" => Tone::Good,
        "failed" | "awaiting-guidance" => Tone::Warn,
        "pending" => Tone::Dim,
        _ => Tone::Strong,
    }
}

/// How many tasks of a delivery are where.
pub(crate) fn tally(state: &State) -> String {
    let counts = state.tally();
    let count = |status: Status| counts.get(&status).copied().unwrap_or(0);
    let total = state.tasks().len();
    let total = counted(u64::try_from(total).unwrap_or(u64::MAX), "task");
    let mut parts = vec![format!("{} of {total} complete", count(Status::Complete))];
    for (status, name) in
        [(Status::Failed, "failed"), (Status::AwaitingGuidance, "waiting for you")]
    {
        let waits = status != Status::AwaitingGuidance || state.takes_answers();
        if waits && count(status) > 0 {
            parts.push(format!("{} {name}", count(status)));
        }
    }
    parts.join(", ")
}

/// Money where a host names it, else tokens.
pub(crate) fn spent(cost: Usage) -> Option<String> {
    match (cost.tokens, cost.micro_dollars) {
        (0, 0) => None,
        (tokens, 0) => Some(format!("{tokens} tokens")),
        _ => Some(dollars(cost)),
    }
}

/// What something has cost in dollars and cents, rounded up: less would be a lie.
pub(crate) fn dollars(cost: Usage) -> String {
    money(cost.micro_dollars)
}

fn money(micro_dollars: u64) -> String {
    let cents = micro_dollars.div_ceil(10_000);
    format!("${}.{:02}", cents / 100, cents % 100)
}
