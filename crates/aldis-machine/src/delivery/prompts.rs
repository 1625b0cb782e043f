//! What agents are told.
//!
//! Every text names signals only in the middle of sentences or inside a fence with placeholders, so
//! that no prompt is itself a signal, wherever a host writes it down. Whatever people or agents said
//! is quoted so that it cannot break out of its place.

use std::fmt::Write as _;

use super::event::AgentReply;
use super::ledger::{FindingStatus, Ledger, ReviewFinding};
use super::signal::{DIALECT, Role};
use super::state::State;
use super::task::{PromptNote, Task};
use crate::words;
use aldis_signal::dialect::Dialect;
use aldis_signal::prompt;

/// How much of a plan's, an agent's or a human's text stands in a prompt.
const TEXT_MAX: usize = 20_000;
const LINE_MAX: usize = 500;
/// How many findings of each kind are shown.
const FINDINGS_MAX: usize = 50;
/// How many tasks the planner is shown.
const TASKS_MAX: usize = 200;
/// How the note about a reply without a signal begins.
pub(super) const NOT_UNDERSTOOD: &str = "Your last reply held no signal";

/// Tells an agent of a task what to do.
pub(super) fn task(state: &State, no: usize, agent: u64) -> String {
    let task = state.at(no);
    let mut text = format!("## You are the {} of task {}\n\n", task.role.label(), task.spec.id);
    text.push_str(duty(task.role));
    text.push_str("\n\n");
    specification(&mut text, task);
    match task.role {
        Role::Developer => ledger(&mut text, &task.ledger, false),
        Role::Critic => {
            report(&mut text, task);
            ledger(&mut text, &task.ledger, true);
        }
        Role::Auditor => report(&mut text, task),
        _ => {}
    }
    notes(&mut text, &task.notes);
    experts(&mut text, state);
    let id = &task.spec.id;
    ending(text, state, agent, &format!("Your task's id is {id}; signals about a task name it."))
}

/// Tells an agent to repair what all tasks need, or to judge that.
pub(super) fn repair(state: &State, role: Role, agent: u64) -> String {
    let mut text = format!("## You are the {}\n\n{}\n\n", role.label(), duty(role));
    if let Some(remediation) = &state.run.remediation {
        notes(&mut text, &remediation.notes);
    }
    if role == Role::Remediation {
        experts(&mut text, state);
    }
    ending(text, state, agent, "You have no task of your own.")
}

/// Tells an expert what it is asked.
pub(super) fn expert(state: &State, request: &str, agent: u64) -> String {
    let mut text = String::new();
    let Some(asked) = state.run.consultations.get(request) else { return text };
    let name = words::inline(&asked.expert, LINE_MAX);
    let _ = writeln!(text, "## You are the expert {name}\n\n{}\n", duty(Role::Expert));
    if let Some(knows) = state.run.experts.get(&asked.expert) {
        let _ = writeln!(text, "What you know:\n\n{}", words::quoted(knows, TEXT_MAX));
    }
    let who = asked.role.label();
    if asked.kind.is_empty() {
        let _ = writeln!(text, "The {who} asks:\n");
    } else {
        let kind = words::inline(&asked.kind, LINE_MAX);
        let _ = writeln!(text, "The {who} asks for {kind}:\n");
    }
    text.push_str(&words::quoted(&asked.prompt, TEXT_MAX));
    let snapshot = words::inline(&asked.snapshot, LINE_MAX);
    let _ = writeln!(text, "\nWhat it knows is written down in {snapshot}.\n");
    if let Some(no) = asked.task {
        specification(&mut text, state.at(no));
    }
    notes(&mut text, &asked.notes);
    let about = format!("The id of the request is {request}; your signal names it.");
    ending(text, state, agent, &about)
}

/// Tells the planner what the plan is.
pub(super) fn planner(state: &State, agent: u64) -> String {
    let title = words::inline(&state.run.title, LINE_MAX);
    let mut text = format!("## You are the planner of {title}\n\n{}\n\n", duty(Role::Planner));
    for task in state.tasks.iter().take(TASKS_MAX) {
        let title = words::inline(&task.spec.title, LINE_MAX);
        let _ = writeln!(text, "- task {}, called {title}", task.spec.id);
    }
    if state.tasks.len() > TASKS_MAX {
        let _ = writeln!(text, "- and {} more", state.tasks.len() - TASKS_MAX);
    }
    text.push('\n');
    ending(text, state, agent, "An expert's signal names the expert.")
}

fn duty(role: Role) -> &'static str {
    match role {
        Role::BusinessAnalyst => {
            "Turn the task below into one that can be built and judged: what exactly is wanted, and \
             criteria that each can be checked. Say how sure you are. Change no files. Report with \
             EXPANDED_TASK_SPECIFICATION and the keys Confidence (HIGH, MEDIUM or LOW), Expanded \
             Specification, Acceptance Criteria, Technical Approach and Target Files."
        }
        Role::Developer => {
            "Do the task below, with tests, and nothing beside it. Check your own work before you \
             hand it over. If you think that a finding of a reviewer is wrong, list it with your \
             reason under the key Disputed when you hand over, instead of working around it."
        }
        Role::Critic => {
            "Judge the quality of the work: correctness, clarity, errors, tests. Look at what \
             changed since your last look, and at what is listed below. Whether the acceptance \
             criteria are met is for the auditor. Refuse only for what is worth another round, and \
             give each finding with path, line and text under Issues Found. A settled finding is \
             not raised again without new evidence, given under the key Evidence. Change no files."
        }
        Role::Auditor => {
            "Judge whether each acceptance criterion below is met, by running what proves it, and \
             nothing else: matters of taste and style were settled in the review. Name every \
             criterion that is not met under Failed Criteria. If failures that are older than this \
             task keep you from judging, say that the audit is blocked. Change no files."
        }
        Role::Remediation => {
            "Something that every task needs is broken. Repair it, and nothing else, and verify that \
             it works. Nobody starts new work before you are done."
        }
        Role::HealthAuditor => {
            "Somebody says that what every task needs is repaired. Run the checks in every \
             environment and give your verdict on what you saw. Repair nothing yourself."
        }
        Role::Expert => {
            "Another agent asks for your advice. Answer it clearly, for this case. If you cannot \
             after three different approaches, say so; do not guess, and do not ask a human."
        }
        Role::Planner => {
            "Look at the plan before the work begins. Where agents will need knowledge that they do \
             not have, write a file for an expert who has it, and name each expert with one signal, \
             its File and the Gap Filled. If none is needed, say nothing of the kind."
        }
    }
}

fn specification(text: &mut String, task: &Task) {
    let spec = &task.spec;
    let _ = writeln!(text, "### The task\n\nTitle: {}\n", words::inline(&spec.title, LINE_MAX));
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
            "### What the developer says (round {})\n\n{}",
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
        let _ = writeln!(text, "{heading}\n");
        if !quote.trim().is_empty() {
            let _ = writeln!(text, "{}", words::quoted(quote, TEXT_MAX));
        }
    }
}

fn experts(text: &mut String, state: &State) {
    if state.run.experts.is_empty() {
        return;
    }
    text.push_str("### Experts you can ask\n\n");
    for (name, knows) in &state.run.experts {
        let (name, knows) = (words::inline(name, LINE_MAX), words::inline(knows, LINE_MAX));
        let _ = writeln!(text, "- {name} knows {knows}");
    }
    text.push('\n');
}

/// How to report, last of all.
fn ending(mut text: String, state: &State, agent: u64, about: &str) -> String {
    let _ = writeln!(text, "### How to report\n\n{about}\n");
    let Some(dialect) = Dialect::builtin(DIALECT) else { return text };
    match state.token_of(agent) {
        Some(token) => text.push_str(&prompt::instructions_with_token(dialect, &token)),
        None => text.push_str(&prompt::instructions(dialect)),
    }
    text
}

/// What an agent is told whose reply holds no signal.
pub(super) fn not_understood(reply: &AgentReply) -> String {
    let mut text = format!("{NOT_UNDERSTOOD}, so nothing happened.");
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
        " Finish your work if it is not finished, and end with the signal that says how.",
    );
    text
}

/// The format, as plainly as possible.
pub(super) fn format(role: Role) -> String {
    let lines: &[&str] = match role {
        Role::BusinessAnalyst => &["EXPANDED_TASK_SPECIFICATION: [task_id]"],
        Role::Developer => &[
            "READY_FOR_REVIEW: [task_id]",
            "TASK_INCOMPLETE: [task_id]",
            "INFRA_BLOCKED: [task_id]",
        ],
        Role::Critic => &["REVIEW_PASSED: [task_id]", "REVIEW_FAILED: [task_id]"],
        Role::Auditor => {
            &["AUDIT_PASSED: [task_id]", "AUDIT_FAILED: [task_id]", "AUDIT_BLOCKED: [task_id]"]
        }
        Role::Remediation | Role::HealthAuditor | Role::Expert | Role::Planner => &[],
    };
    format!(
        "The agents before you did the work but nobody could tell how it ended. Your reply must \
         hold one of these lines, as plain text at the very start of the line, not inside a fence, \
         with the id of the task instead of the brackets:\n\n```\n{}\n```",
        lines.join("\n")
    )
}

/// Asks a living agent for a sign of life.
pub(super) fn checkpoint() -> String {
    "Say how far you are, with the signal CHECKPOINT and the keys Progress, Current Activity and \
     Blockers, and go on with your work.\n"
        .to_owned()
}

/// Asks a living agent to say its last word again.
pub(super) fn resend() -> String {
    "Your last reply held no signal. Say again how your work ended, this time with the signal for \
     it on a line of its own.\n"
        .to_owned()
}
