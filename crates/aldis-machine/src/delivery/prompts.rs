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
use crate::words;

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
    let _ = writeln!(text, "{}\n", duty(task.role));
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
            ledger(&mut text, &task.ledger, true);
        }
        Role::Auditor => report(&mut text, task),
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
    let name = words::inline(&asked.expert, LINE_MAX);
    let _ = writeln!(text, "## You are the expert {name}\n\n{}\n", duty(Role::Expert));
    if let Some(expertise) = state.run.experts.known.get(&asked.expert).filter(|it| !it.is_empty())
    {
        let _ = writeln!(text, "Your expertise:\n\n{}", words::quoted(expertise, TEXT_MAX));
    }
    let who = asked.role.label();
    if asked.kind.is_empty() {
        let _ = writeln!(text, "The {who} asks (request {request}):\n");
    } else {
        let kind = words::inline(&asked.kind, LINE_MAX);
        let _ = writeln!(text, "The {who} asks for {kind} (request {request}):\n");
    }
    text.push_str(&words::quoted(&asked.prompt, TEXT_MAX));
    let snapshot = words::inline(&asked.snapshot, LINE_MAX);
    let _ = writeln!(text, "\nIt wrote down what it knows in {snapshot}.\n");
    if let Some(no) = asked.task {
        specification(&mut text, state.at(no));
    }
    notes(&mut text, &asked.notes);
    how_to_report(text, state, agent)
}

/// What the planner gets.
pub(super) fn planner(state: &State, agent: u64) -> String {
    let title = words::inline(&state.run.title, LINE_MAX);
    let mut text = format!("## You are the planner of {title}\n\n{}\n\n", duty(Role::Planner));
    text.push_str("The tasks of the plan:\n\n");
    for task in state.tasks.iter().take(TASKS_MAX) {
        let title = words::inline(&task.spec.title, LINE_MAX);
        let _ = writeln!(text, "- {}: {title}", task.spec.id);
    }
    if state.tasks.len() > TASKS_MAX {
        let _ = writeln!(text, "- and {} more", state.tasks.len() - TASKS_MAX);
    }
    text.push('\n');
    how_to_report(text, state, agent)
}

fn specification(text: &mut String, task: &Task) {
    let spec = &task.spec;
    text.push_str("### The task\n\n");
    if let Some(title) = task.title() {
        let _ = writeln!(text, "Title: {}\n", words::inline(&title, LINE_MAX));
    }
    if !spec.description.trim().is_empty() {
        let _ = writeln!(text, "{}", words::quoted(&spec.description, TEXT_MAX));
    }
    if !spec.acceptance.is_empty() {
        text.push_str("It is done when all of this holds:\n\n");
        for criterion in &spec.acceptance {
            let _ = writeln!(text, "- {}", words::inline(criterion, LINE_MAX));
        }
        text.push('\n');
    }
    if !task.holds.is_empty() {
        text.push_str("Files that are yours while you work on it:\n\n");
        for file in &task.holds {
            let _ = writeln!(text, "- {}", words::inline(file, LINE_MAX));
        }
        text.push('\n');
    }
}

fn report(text: &mut String, task: &Task) {
    if !task.report.is_empty() {
        let _ = writeln!(
            text,
            "### What the developer reported (round {})\n\n{}",
            task.round,
            words::quoted(&task.report, TEXT_MAX)
        );
    }
}

/// Shows what was found so far, so that nobody goes round in circles.
fn ledger(text: &mut String, ledger: &Ledger, settled: bool) {
    let mut group = |title: &str, statuses: &[FindingStatus]| {
        let found: Vec<&ReviewFinding> =
            statuses.iter().flat_map(|status| ledger.with_status(*status)).collect();
        if found.is_empty() {
            return;
        }
        let _ = writeln!(text, "### {title}\n");
        for finding in found.iter().rev().take(FINDINGS_MAX).rev() {
            let place = match (finding.file.is_empty(), finding.line) {
                (true, _) => String::new(),
                (false, None) => format!("{}: ", words::inline(&finding.file, LINE_MAX)),
                (false, Some(line)) => {
                    format!("{} line {line}: ", words::inline(&finding.file, LINE_MAX))
                }
            };
            let _ = write!(text, "- {place}{}", words::inline(&finding.text, LINE_MAX));
            if finding.raised > 1 {
                let _ = write!(text, ", raised {} times", finding.raised);
            }
            if !finding.dispute.is_empty() {
                let dispute = words::inline(&finding.dispute, LINE_MAX);
                let _ = write!(text, ", disputed: {dispute}");
            }
            text.push('\n');
        }
        text.push('\n');
    };
    group("Open findings", &[FindingStatus::Open]);
    group("Disputed findings", &[FindingStatus::Disputed]);
    if settled {
        let title = "Settled findings, not to be raised again without new evidence";
        group(title, &[FindingStatus::Fixed, FindingStatus::Withdrawn]);
    }
}

fn notes(text: &mut String, notes: &[PromptNote]) {
    if notes.is_empty() {
        return;
    }
    text.push_str("### What you must know\n\n");
    for PromptNote { heading, quote } in notes {
        let _ = writeln!(text, "{}\n", heading.trim_end());
        if !quote.trim().is_empty() {
            let _ = writeln!(text, "{}", words::quoted(quote, TEXT_MAX));
        } else if heading.trim_end().ends_with(':') {
            text.push_str("> (no details)\n\n");
        }
    }
}

fn experts(text: &mut String, state: &State) {
    if state.run.experts.known.is_empty() {
        return;
    }
    text.push_str("### Experts you can ask\n\n");
    for (name, expertise) in &state.run.experts.known {
        let name = words::inline(name, LINE_MAX);
        let _ = writeln!(text, "- {name}: {}", words::inline(expertise, LINE_MAX));
    }
    text.push('\n');
}

/// How to report, last of all.
fn how_to_report(mut text: String, state: &State, agent: u64) -> String {
    let token = state.token_of(agent);
    let Some(context) = context(state, agent, token.as_deref()) else { return text };
    let how_many = match context.role {
        Role::Planner => "End your reply with one signal for each expert that you created.",
        _ => "End your reply with exactly one of the signals below.",
    };
    let _ = writeln!(
        text,
        "### How to report\n\n{how_many} Write it as plain text, with its name at the very start \
         of a line: no indentation, no list mark, no bold, no code fence. Nothing else stands on \
         that line; the details follow on the lines below it. Replace the [placeholders].\n"
    );
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
        let _ = writeln!(
            text,
            "Report every check with {which}. A table with the columns Check, Environment and \
             Result is fine, too. A check that failed means that the work is not done.\n"
        );
    }
    forms::show(&mut text, context);
    text
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
        let _ = write!(
            text,
            " Line {}, {}, is almost one and does not count ({}): {}.",
            miss.line,
            words::inline(&miss.quote, LINE_MAX),
            words::inline(&miss.reason, LINE_MAX),
            words::inline(&miss.hint, LINE_MAX),
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
