//! Questions to humans, and their words.

use super::event::{Effect, Notice, Severity};
use super::run::{Ending, Question, QuestionSubject};
use super::signal::Role;
use super::state::{State, StepOutput, decision};
use super::task::{Counters, Task, Wait};
use super::{locks, remediation, schedule, workflow};
use crate::Evidence;

/// How much of a question is kept.
const QUESTION_MAX: usize = 4_000;

/// Asks how a task goes on.
pub(super) fn ask_about(
    state: &mut State,
    out: &mut StepOutput,
    no: usize,
    why: &str,
    text: &str,
    seen: Option<Evidence>,
) {
    ask(state, out, QuestionSubject::Task { task: no }, why, text, &["fail"], seen);
}

/// Asks a human. No slot is filled before the answer.
pub(super) fn ask(
    state: &mut State,
    out: &mut StepOutput,
    about: QuestionSubject,
    why: &str,
    text: &str,
    options: &[&str],
    seen: Option<Evidence>,
) {
    state.run.questions_asked += 1;
    let id = format!("q{}", state.run.questions_asked);
    let text: String = text.trim().chars().take(QUESTION_MAX).collect();
    let text = if text.is_empty() { why.to_owned() } else { text };
    let options: Vec<String> = options.iter().map(|&word| word.to_owned()).collect();
    let no = match about {
        QuestionSubject::Task { task } | QuestionSubject::Expansion { task } => Some(task),
        QuestionSubject::Infrastructure { .. } | QuestionSubject::RemediationExhausted => None,
    };
    if let Some(no) = no {
        state.set_wait(no, Wait::Human { question: id.clone() });
    }
    let question =
        Question { about, text: text.clone(), options: options.clone(), asked_at: out.now };
    state.run.questions.insert(id.clone(), question);
    let task = no.map(|no| state.at(no));
    let decision = decision("question", "Asked a human")
        .because(why)
        .seen(seen)
        .next(format!("answer with `aldis answer {id} TEXT`"));
    out.notice((Notice::Question, Severity::Warning), task, text.clone());
    out.decided(task, decision);
    let task = task.map(|task| task.spec.id.clone());
    out.effects.push(Effect::Ask { id, task, text, options });
}

/// A human answers.
pub(super) fn answered(state: &mut State, out: &mut StepOutput, id: &str, text: &str, by: &str) {
    let Some(question) = state.run.questions.remove(id) else { return };
    let word = text.trim().to_ascii_lowercase();
    let task = match question.about {
        QuestionSubject::Task { task } | QuestionSubject::Expansion { task } => Some(task),
        QuestionSubject::Infrastructure { .. } | QuestionSubject::RemediationExhausted => None,
    };
    let decision = decision("answer", format!("Took the answer to {id}"))
        .because(if by.is_empty() {
            "a human gave it".to_owned()
        } else {
            format!("answered by {by}")
        })
        .seen([Evidence {
            what: "said".to_owned(),
            quote: super::event::preview(text),
            ..Evidence::default()
        }])
        .next("the work goes on with it");
    out.decided(task.map(|no| state.at(no)), decision);
    match question.about {
        QuestionSubject::Task { task } | QuestionSubject::Expansion { task } if word == "fail" => {
            give_up(state, out, task);
        }
        QuestionSubject::Task { task } => {
            resume(state, task, &question.text, text);
        }
        QuestionSubject::Expansion { task } => match state.at_mut(task).proposal.take() {
            Some(proposal) if word == "accept" => {
                reset(state, task);
                workflow::apply_expansion(state, task, proposal);
            }
            _ => resume(state, task, &question.text, text),
        },
        QuestionSubject::RemediationExhausted if word == "halt" => state.end(out, Ending::Halted),
        QuestionSubject::RemediationExhausted if word == "override" => {
            remediation::healed(state, out, "a human says to go on as if it were");
        }
        QuestionSubject::RemediationExhausted => remediation::retry(state, out, text),
        QuestionSubject::Infrastructure { role } => {
            remediation::note(state, "A human was asked:", &question.text);
            remediation::note(state, "The human answers:", text);
            schedule::dispatch_repair(state, out, role);
        }
    }
}

/// Lets a task go on with an answer.
fn resume(state: &mut State, no: usize, question: &str, answer: &str) {
    reset(state, no);
    let task = state.at_mut(no);
    task.note("A human was asked:", question);
    task.note("The human answers, and what it says goes before everything else:", answer);
    state.set_wait(no, Wait::Slot);
}

/// A human looked at the task: what led to the question begins anew.
fn reset(state: &mut State, no: usize) {
    let task = state.at_mut(no);
    task.counters = Counters::default();
    task.ledger.forget_history();
}

/// A human gives a task up.
fn give_up(state: &mut State, out: &mut StepOutput, no: usize) {
    state.set_wait(no, Wait::Failed);
    locks::release(state, out, no);
    let decision = decision("failed", "Gave the task up")
        .because("a human said so")
        .next("tasks that need it cannot begin");
    let task = state.at(no);
    out.notice((Notice::TaskFailed, Severity::Error), Some(task), "given up by a human");
    out.decided(Some(task), decision);
}

/// A human wants no further agents, or wants them again.
pub(super) fn paused(state: &mut State, out: &mut StepOutput, pause: bool, by: &str) {
    if std::mem::replace(&mut state.run.paused, pause) == pause {
        return;
    }
    let (rule, summary) =
        if pause { ("pause", "Starts no further agents") } else { ("resume", "Goes on") };
    let next =
        if pause { "agents at work finish; `aldis resume` goes on" } else { "nothing to do" };
    let because = match by {
        "" => "a human asked for it".to_owned(),
        by => format!("{by} asked for it"),
    };
    out.decided(None, decision(rule, summary).because(because).next(next));
}

/// A human wants agents to know something: those of a task, of a role, or all that are not done.
pub(super) fn tell(
    state: &mut State,
    out: &mut StepOutput,
    text: &str,
    to: Option<&str>,
    by: &str,
) {
    let role = to.and_then(Role::named);
    let only = to.filter(|_| role.is_none());
    let about = "A message from the human you work for:";
    let meant = |task: &Task| {
        only.is_none_or(|id| task.spec.id == id) && role.is_none_or(|role| task.role == role)
    };
    let done = |task: &Task| matches!(task.wait, Wait::Complete | Wait::Failed);
    let tasks: Vec<usize> = (0..state.tasks().len())
        .filter(|no| meant(state.at(*no)) && !done(state.at(*no)))
        .collect();
    for no in &tasks {
        state.at_mut(*no).note(about, text);
    }
    let because = match by {
        "" => "a human asked for it".to_owned(),
        by => format!("{by} asked for it"),
    };
    let quote = super::event::preview(text);
    let decision = decision("tell", "Took a message for agents")
        .because(because)
        .seen([Evidence { what: "said".to_owned(), quote, ..Evidence::default() }])
        .next("the next agent of each task that is meant reads it");
    let only = only.and_then(|id| state.task(id));
    out.decided(only, decision);
}

/// A human wants it to end.
pub(super) fn aborted(state: &mut State, out: &mut StepOutput, by: &str) {
    let decision = decision("abort", "Ended the delivery")
        .because(format!("a human did, by {by}"))
        .next("`aldis deliver --continue` goes on where it was");
    out.decided(None, decision);
    state.end(out, Ending::Aborted);
}
