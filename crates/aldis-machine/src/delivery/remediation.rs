//! The repair of what all tasks need: nobody's failure, and nobody starts anything meanwhile.

use super::event::{Notice, Severity};
use super::judge::{Accepted, evidence, first_field};
use super::run::{QuestionSubject, Remediation, WorkingAgent};
use super::signal::{Role, SignalKind};
use super::state::{State, StepOutput, decision};
use super::task::{PromptNote, Wait, remember, render_fields};
use super::{expert, human, schedule};

/// A task cannot go on because something that all tasks need is broken.
pub(super) fn enter(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    state.set_wait(no, Wait::Infrastructure);
    let task = state.at_mut(no);
    task.resume = None;
    let about = format!("The {} of {} reported:", task.role.label(), task.spec.id);
    let report = PromptNote::new(about, &render_fields(&accepted.signal.fields));
    let seen = evidence(accepted.signal, accepted.agent, None);
    let began = state.run.remediation.is_none();
    let remediation = state.run.remediation.get_or_insert_with(|| Remediation {
        attempts: 1,
        tasks: Vec::new(),
        notes: Vec::new(),
    });
    remediation.tasks.push(no);
    remember(&mut remediation.notes, report);
    let (summary, next) = if began {
        ("Stopped new work to repair what all tasks need", "a remediation agent was started")
    } else {
        ("Joined the repair that is under way", "the task goes on when it is over")
    };
    let because = match first_field(accepted.signal, &["issue", "pre-existing_failures"]) {
        silent if silent.is_empty() => "the agent does not say what is broken".to_owned(),
        because => because,
    };
    let decision =
        decision("remediation", summary).because(because.clone()).seen([seen]).next(next);
    out.decided(Some(state.at(no)), decision);
    if began {
        let notice = (Notice::RemediationStarted, Severity::Warning);
        out.notice(notice, Some(state.at(no)), because);
        schedule::dispatch_repair(state, out, Role::Remediation);
    }
}

/// A signal of the agent that repairs or judges counts.
pub(super) fn apply(
    state: &mut State,
    out: &mut StepOutput,
    agent: &WorkingAgent,
    accepted: Accepted<'_>,
) {
    let seen = evidence(accepted.signal, accepted.agent, None);
    match accepted.kind {
        SignalKind::RemediationComplete => {
            note(state, "The remediation agent says:", &render_fields(&accepted.signal.fields));
            let decision = decision("remediation", "Lets the repair be judged")
                .because("the remediation agent says that it is done")
                .seen([seen])
                .next("a health auditor was started; nothing else begins before its verdict");
            out.decided(None, decision);
            schedule::dispatch_repair(state, out, Role::HealthAuditor);
        }
        SignalKind::HealthAudit if accepted.approves() == Some(true) => {
            let attempts = state.run.remediation.as_ref().map_or(0, |it| it.attempts);
            let attempts = match attempts {
                1 => "1 attempt".to_owned(),
                more => format!("{more} attempts"),
            };
            healed(state, out, &format!("the health auditor says so, after {attempts}"));
        }
        SignalKind::HealthAudit => {
            note(state, "The health auditor says:", &render_fields(&accepted.signal.fields));
            next_attempt(state, out, "the health auditor says that it is not repaired");
        }
        SignalKind::SeekingClarification => {
            let text = first_field(accepted.signal, &["question"]);
            let why = format!("the {} asks", agent.role.label());
            let about = QuestionSubject::Infrastructure { role: agent.role };
            human::ask(state, out, about, &why, &text, &[], Some(seen));
        }
        SignalKind::ExpertRequest => expert::requested(state, out, (None, agent.role), accepted),
        SignalKind::FileConflict => {
            let path = accepted.signal.subject.clone().unwrap_or_default();
            let text = format!("The {} changes {path}.", agent.role.label());
            out.notice((Notice::FileConflict, Severity::Warning), None, text);
            note(state, "The repair goes first: you may change", &path);
            next_attempt(state, out, "a file of somebody else is needed");
        }
        // Written by no agent that repairs or judges.
        _ => {}
    }
}

/// Tries again, or asks a human at the limit.
pub(super) fn next_attempt(state: &mut State, out: &mut StepOutput, why: &str) {
    let limit = state.run.config.remediation_attempts;
    let Some(remediation) = &mut state.run.remediation else { return };
    if remediation.attempts >= limit {
        let attempts = remediation.attempts;
        let text = format!(
            "What all tasks need is still broken after {attempts} attempts: {why}. Say retry to go \
             on with new attempts, override to go on as if it were repaired, or halt to end."
        );
        out.notice((Notice::RemediationExhausted, Severity::Error), None, text.clone());
        let options = ["retry", "override", "halt"];
        return human::ask(
            state,
            out,
            QuestionSubject::RemediationExhausted,
            why,
            &text,
            &options,
            None,
        );
    }
    remediation.attempts += 1;
    let attempts = remediation.attempts;
    let mut decision = decision("remediation", format!("Tries to repair it, attempt {attempts}"))
        .because(why)
        .next("a remediation agent was started");
    decision.counters.insert("attempts".to_owned(), u64::from(attempts));
    out.decided(None, decision);
    schedule::dispatch_repair(state, out, Role::Remediation);
}

/// A human wants new attempts.
pub(super) fn retry(state: &mut State, out: &mut StepOutput, words: &str) {
    if let Some(remediation) = &mut state.run.remediation {
        remediation.attempts = 1;
    }
    note(state, "A human says:", words);
    schedule::dispatch_repair(state, out, Role::Remediation);
}

/// What all tasks need works again: those that reported it get a fresh agent of the same role.
pub(super) fn healed(state: &mut State, out: &mut StepOutput, because: &str) {
    let Some(remediation) = state.run.remediation.take() else { return };
    for no in &remediation.tasks {
        let about = "What stopped the agent before you has been repaired. Go on where it was.";
        state.at_mut(*no).note(about, "");
        state.set_wait(*no, Wait::Slot);
    }
    let mut decision = decision("remediation", "Went back to work")
        .because(because)
        .next("the tasks that were blocked get a new agent of the same role");
    decision.counters.insert("attempts".to_owned(), u64::from(remediation.attempts));
    out.decided(None, decision);
    out.notice((Notice::RemediationEnded, Severity::Info), None, because);
}

/// Tells the next agent of the repair something.
pub(super) fn note(state: &mut State, about: &str, words: &str) {
    if let Some(remediation) = &mut state.run.remediation {
        remember(&mut remediation.notes, PromptNote::new(about, words));
    }
}
