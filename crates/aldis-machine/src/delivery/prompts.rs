//! What agents get to read.
//!
//! No prompt is itself a signal, wherever a host writes it down: the forms of signals are indented, and
//! whatever people or agents wrote is quoted so that it cannot break out of its place.

mod forms;

use std::fmt::Write as _;

use self::forms::{FormContext, duty};
use super::ledger::{FindingStatus, Ledger, ReviewFinding};
use super::reply::AgentReply;
use super::run::Work;
use super::signal::Role;
use super::state::State;
use super::task::{PromptNote, Task};
use crate::calls;
use crate::words::{self, list, paragraph};

/// How much of a plan's, an agent's or a human's text stands in a prompt.
const TEXT_MAX: usize = 20_000;
const LINE_MAX: usize = 500;
/// How many findings of each kind are shown.
const FINDINGS_MAX: usize = 50;
/// How many tasks the planner is shown.
const TASKS_MAX: usize = 200;
/// How the note about a reply without a signal begins.
pub(super) const NO_SIGNAL: &str = "Your last reply held no valid signal";

/// What an agent of a task gets.
pub(super) fn task(state: &State, no: usize, agent: u64) -> String {
    let task = state.at(no);
    let mut text = format!("## You are the {} of task {}\n\n", task.role.label(), task.spec.id);
    paragraph(&mut text, duty(task.role));
    if let (Role::Developer, 1..) = (task.role, task.round) {
        let round = task.round + 1;
        let sentence =
            "The work of the earlier rounds is there: continue from it and do not start over.";
        paragraph(&mut text, format_args!("This is round {round}. {sentence}"));
    }
    specification(&mut text, task);
    match task.role {
        Role::Developer => {
            ledger(&mut text, &task.ledger, false);
            if task.ledger.with_status(FindingStatus::Open).next().is_some() {
                text.push_str(
                    "If a finding is wrong, do not work around it: list it under Disputed with \
                     your reason when you hand over.\n\n",
                );
            }
        }
        Role::Critic => {
            report(&mut text, task);
            checks(&mut text, task);
            ledger(&mut text, &task.ledger, true);
        }
        Role::Auditor => {
            report(&mut text, task);
            checks(&mut text, task);
        }
        _ => {}
    }
    notes(&mut text, &task.notes);
    experts(&mut text, state);
    how_to_report(text, state, agent)
}

/// What an agent gets that repairs the infrastructure, or judges the repair.
pub(super) fn repair(state: &State, role: Role, agent: u64) -> String {
    let mut text = format!("## You are the {}\n\n{}\n\n", role.label(), duty(role));
    if let Some(remediation) = &state.run.remediation {
        notes(&mut text, &remediation.notes);
    }
    experts(&mut text, state);
    how_to_report(text, state, agent)
}

/// What an expert gets that is asked.
pub(super) fn expert(state: &State, request: &str, agent: u64) -> String {
    let mut text = String::new();
    let Some(asked) = state.run.experts.consultations.get(request) else { return text };
    paragraph(&mut text, format_args!("## You are the expert {}", line(&asked.expert)));
    paragraph(&mut text, duty(Role::Expert));
    if let Some(expertise) = state.run.experts.known.get(&asked.expert).filter(|it| !it.is_empty())
    {
        paragraph(&mut text, format_args!("Your expertise:\n\n{}", quoted(expertise)));
    }
    let who = asked.role.label();
    let kind = match &*asked.kind {
        "" => String::new(),
        kind => format!(" for {}", line(kind)),
    };
    paragraph(&mut text, format_args!("The {who} asks{kind} (request {request}):"));
    paragraph(&mut text, quoted(&asked.prompt));
    let snapshot = line(&asked.snapshot);
    paragraph(&mut text, format_args!("It wrote down what it knows in {snapshot}."));
    if let Some(no) = asked.task {
        specification(&mut text, state.at(no));
    }
    notes(&mut text, &asked.notes);
    how_to_report(text, state, agent)
}

/// What the planner gets.
pub(super) fn planner(state: &State, agent: u64) -> String {
    let mut text = format!("## You are the planner of {}\n\n", line(&state.run.title));
    paragraph(&mut text, duty(Role::Planner));
    let tasks = state.tasks.iter().take(TASKS_MAX);
    let tasks = tasks.map(|task| match task.title() {
        Some(title) => format!("{}: {}", task.spec.id, line(&title)),
        None => task.spec.id.clone(),
    });
    let more = state.tasks.len().saturating_sub(TASKS_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    list(&mut text, "The tasks of the plan:", tasks.chain(more));
    how_to_report(text, state, agent)
}

fn specification(text: &mut String, task: &Task) {
    let spec = &task.spec;
    text.push_str("### The task\n\n");
    if let Some(title) = task.title() {
        paragraph(text, format_args!("Title: {}", line(&title)));
    }
    if !spec.description.trim().is_empty() {
        paragraph(text, quoted(&spec.description));
    }
    let criteria = spec.acceptance.iter().map(|criterion| line(criterion));
    list(text, "It is done when all of this holds:", criteria);
    let files = task.holds.iter().map(|file| line(file));
    list(text, "Files that are yours while you work on it:", files);
}

fn report(text: &mut String, task: &Task) {
    if !task.report.is_empty() {
        let heading = format!("### What the developer reported (round {})", task.round);
        paragraph(text, format_args!("{heading}\n\n{}", quoted(&task.report)));
    }
}

/// Shows what was found so far, so that nobody goes round in circles.
fn ledger(text: &mut String, ledger: &Ledger, settled: bool) {
    let mut group = |title: &str, statuses: &[FindingStatus]| {
        let found: Vec<&ReviewFinding> =
            statuses.iter().flat_map(|status| ledger.with_status(*status)).collect();
        let last = found.len().saturating_sub(FINDINGS_MAX);
        list(text, format_args!("### {title}"), found[last..].iter().map(|it| finding(it)));
    };
    group("Open findings", &[FindingStatus::Open]);
    group("Disputed findings", &[FindingStatus::Disputed]);
    if settled {
        let title = "Settled findings, not to be raised again without new evidence";
        group(title, &[FindingStatus::Fixed, FindingStatus::Withdrawn]);
    }
}

fn finding(finding: &ReviewFinding) -> String {
    let file = line(&finding.file);
    let mut shown = match (finding.file.is_empty(), finding.line) {
        (true, _) => line(&finding.text),
        (false, None) => format!("{file}: {}", line(&finding.text)),
        (false, Some(number)) => format!("{file} line {number}: {}", line(&finding.text)),
    };
    if finding.raised > 1 {
        let _ = write!(shown, ", raised {} times", finding.raised);
    }
    if !finding.dispute.is_empty() {
        let _ = write!(shown, ", disputed: {}", line(&finding.dispute));
    }
    shown
}

/// What the checks said about the work as it was handed over.
fn checks(text: &mut String, task: &Task) {
    let Some(round) = task.proof.round() else { return };
    let results = round.results.iter();
    let said = results.map(|result| format!("{}: {}", result.title(), result.sentence()));
    list(text, "### What the checks said", said);
    let found = round.verdict.iter().flat_map(|verdict| &verdict.findings);
    let found = found.map(|finding| finding.what.as_str());
    list(text, "What else was found. Look at it:", found);
}

fn notes(text: &mut String, notes: &[PromptNote]) {
    if notes.is_empty() {
        return;
    }
    text.push_str("### What you must know\n\n");
    for PromptNote { heading, quote } in notes {
        paragraph(text, heading.trim_end());
        if !quote.trim().is_empty() {
            paragraph(text, quoted(quote));
        } else if heading.trim_end().ends_with(':') {
            text.push_str("> (no details)\n\n");
        }
    }
}

fn experts(text: &mut String, state: &State) {
    let known = state.run.experts.known.iter();
    let known = known.map(|(name, expertise)| format!("{}: {}", line(name), line(expertise)));
    list(text, "### Experts you can ask", known);
}

/// How to report, last of all.
fn how_to_report(mut text: String, state: &State, agent: u64) -> String {
    let token = state.token_of(agent);
    let Some(context) = context(state, agent, token.as_deref()) else { return text };
    let how_many = match context.role {
        Role::Planner => "End your reply with one signal for each expert that you created.",
        _ => "End your reply with exactly one of the signals below.",
    };
    let form = "Write it as plain text, with its name at the very start of a line: leave out the \
                four spaces that indent it below, and use no list mark, no bold and no code \
                fence. Nothing else stands on that line; the details follow on the lines below \
                it. Replace the [placeholders].";
    let calls = match state.run.config.prefer_calls {
        true => calls::preference(calls::DELIVERY, Some(context.role)),
        false => String::new(),
    };
    paragraph(&mut text, format_args!("### How to report\n\n{calls}{how_many} {form}"));
    if context.token.is_some() {
        text.push_str(
            "Every signal carries the TOKEN line as shown; without it, it may not count. Write \
             the code nowhere else.\n\n",
        );
    }
    if let Some(environments) = context.environments {
        let which = match environments {
            [] => "its environment".to_owned(),
            names => format!("its environment ({})", names.join(", ")),
        };
        let rest = "A table with the columns Check, Environment and Result is fine, too. A check \
                    that failed means that the work is not done.";
        paragraph(&mut text, format_args!("Report every check with {which}. {rest}"));
    }
    forms::show(&mut text, context);
    text
}

/// Text of people or agents as a block that it cannot break out of.
fn quoted(text: &str) -> String {
    words::quoted(text, TEXT_MAX).trim_end().to_owned()
}

/// Text of people or agents as one line.
fn line(text: &str) -> String {
    words::inline(text, LINE_MAX)
}

/// What the forms of an agent are filled in with.
fn context<'s>(state: &'s State, agent: u64, token: Option<&'s str>) -> Option<FormContext<'s>> {
    let live = state.run.agents.get(&agent)?;
    let task = live.work.task().map(|no| state.at(no));
    let id = match &live.work {
        Work::Task { task } => Some(&*state.at(*task).spec.id),
        Work::Request { request } => Some(&**request),
        Work::Infrastructure | Work::Plan => None,
    };
    let has = |statuses: &[FindingStatus]| {
        task.is_some_and(|task| {
            task.ledger.findings().iter().any(|finding| statuses.contains(&finding.status))
        })
    };
    let required = state.run.config.require_environment_matrix
        && matches!(live.role, Role::Developer | Role::Auditor);
    Some(FormContext {
        role: live.role,
        id,
        expert: state.run.experts.known.keys().next().map(String::as_str),
        environments: required.then_some(&*state.run.config.environments),
        findings: has(&[FindingStatus::Open]),
        settled: has(&[FindingStatus::Fixed, FindingStatus::Withdrawn]),
        token,
    })
}

/// What the next prompt says about a reply without a signal.
pub(super) fn no_signal(reply: &AgentReply) -> String {
    let mut text = format!("{NO_SIGNAL}, so nothing happened.");
    if let Some(miss) = reply.near_misses.last() {
        let [quote, reason, hint] = [&miss.quote, &miss.reason, &miss.hint].map(|it| line(it));
        let _ = write!(
            text,
            " Line {}, {quote}, is almost one and does not count ({reason}): {hint}.",
            miss.line
        );
    }
    text.push_str(
        " Finish your work if it is not finished, then end your reply with one of the signals \
         under \"How to report\".",
    );
    text
}

/// What another agent is told after several replies without a signal: the signals, as plainly as
/// possible.
pub(super) fn exact_forms(role: Role, id: &str, replies: u32) -> String {
    let mut text = format!(
        "The last {replies} replies about this task held no valid signal, so nobody knows how the \
         work ended. Look at what is there, finish it, and end your reply with one of these lines at \
         the very start of a line, with the details that \"How to report\" shows below it:\n\n"
    );
    let context = FormContext {
        role,
        id: Some(id),
        expert: None,
        environments: None,
        findings: false,
        settled: false,
        token: None,
    };
    forms::show_signals(&mut text, context);
    text
}

/// Asks an agent at work how far it is.
pub(super) fn checkpoint(state: &State, agent: u64) -> String {
    let token = state.token_of(agent);
    let mut text =
        "How far are you? Answer with this signal, at the very start of a line and with \
                    the [placeholders] replaced, and continue your work:\n\n"
            .to_owned();
    if let Some(context) = context(state, agent, token.as_deref()) {
        forms::show_checkpoint(&mut text, context);
    }
    text
}

/// Asks an agent at work to report its result again.
pub(super) fn resend(state: &State, agent: u64) -> String {
    let token = state.token_of(agent);
    let mut text = "Your last reply held no valid signal. Report again how your work ended, with \
                    one of these at the very start of a line, and the details below it:\n\n"
        .to_owned();
    if let Some(context) = context(state, agent, token.as_deref()) {
        forms::show_signals(&mut text, context);
    }
    text
}
