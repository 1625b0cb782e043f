//! The repair of the infrastructure: nobody's failure, and no new work starts meanwhile.

use super::event::{Notice, Severity};
use super::human::{self, NewQuestion};
use super::judge::Accepted;
use super::reply::preview;
use super::rule::Rule;
use super::run::{QuestionSubject, Remediation, WorkingAgent};
use super::sentences::counted;
use super::signal::{Role, SignalKind};
use super::state::{State, StepOutput, decision};
use super::task::{PromptNote, Wait, remember};
use super::{expert, schedule};
use crate::Evidence;

/// A task cannot continue because the infrastructure is broken.
pub(super) fn enter(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    state.set_wait(no, Wait::Infrastructure);
    let task = state.at_mut(no);
    task.resume = None;
    let about = format!("The {} of {} reported:", task.role.label(), task.name());
    let report = PromptNote::new(about, &accepted.signal.body());
    let began = state.run.remediation.is_none();
    let remediation = state.run.remediation.get_or_insert_with(|| Remediation {
        attempts: 1,
        tasks: Vec::new(),
        notes: Vec::new(),
    });
    remediation.tasks.push(no);
    remember(&mut remediation.notes, report);
    let issue = accepted.signal.first_field(&["issue", "pre_existing_failures"]);
    let issue = match issue.trim() {
        "" => "the agent does not say what is broken".to_owned(),
        issue => issue.to_owned(),
    };
    let decision = if began {
        decision(Rule::RemediationStarted, "Stopped new work until the infrastructure is repaired")
            .next("a remediation agent was started")
    } else {
        decision(Rule::RemediationJoined, "Joined the repair that is under way")
            .next("the task continues when the infrastructure is repaired")
    };
    let decision = decision.because(preview(&issue)).seen([accepted.evidence()]);
    out.decided(Some(state.at(no)), decision);
    if began {
        let task = state.at(no);
        let text = format!("{} reports broken infrastructure: {issue}", task.name());
        out.notice((Notice::RemediationStarted, Severity::Warning), Some(task), text);
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
    match accepted.kind {
        SignalKind::RemediationComplete => {
            note(state, "The remediation agent reported:", &accepted.signal.body());
            let decision = decision(Rule::RemediationReported, "Checking the repair")
                .because("the remediation agent reports that it is done")
                .seen([accepted.evidence()])
                .next("a health auditor was started; no new work starts before its verdict");
            out.decided(None, decision);
            schedule::dispatch_repair(state, out, Role::HealthAuditor);
        }
        SignalKind::HealthAudit if accepted.approves() == Some(true) => {
            let attempts = state.run.remediation.as_ref().map_or(0, |it| it.attempts);
            let attempts = counted(attempts, "attempt");
            ended(state, out, &format!("the health auditor confirmed the repair after {attempts}"));
        }
        SignalKind::HealthAudit => {
            note(state, "The health auditor reported:", &accepted.signal.body());
            let why = "the health auditor found it still broken";
            next_attempt(state, out, why, vec![accepted.evidence()]);
        }
        SignalKind::SeekingClarification => {
            let about = QuestionSubject::Infrastructure { role: agent.role };
            let new = NewQuestion::of_agent(Rule::QuestionAsked, agent.role, accepted.signal)
                .seen([accepted.evidence()]);
            human::ask(state, out, about, NewQuestion { options: &[], ..new });
        }
        SignalKind::ExpertRequest => {
            expert::requested(state, out, (None, agent.role), accepted);
        }
        SignalKind::FileConflict => {
            let path = accepted.signal.subject.clone().unwrap_or_default();
            let text = format!("The {} changes {path}.", agent.role.label());
            out.notice((Notice::FileConflict, Severity::Warning), None, text);
            note(state, "The repair goes first. You may change:", &path);
            let why = format!("the {} needs {path}", agent.role.label());
            next_attempt(state, out, &why, vec![accepted.evidence()]);
        }
        // Reported by no agent that repairs or judges.
        _ => {}
    }
}

/// Tries again, or asks a human at the limit.
pub(super) fn next_attempt(
    state: &mut State,
    out: &mut StepOutput,
    why: &str,
    seen: Vec<Evidence>,
) {
    let limit = state.run.config.remediation_attempts;
    let Some(remediation) = &mut state.run.remediation else { return };
    if remediation.attempts >= limit {
        let attempts = counted(remediation.attempts, "attempt");
        let because = format!("{attempts} to repair the infrastructure failed. Last: {why}");
        let text = format!("{because}.");
        out.notice((Notice::RemediationExhausted, Severity::Error), None, text);
        let new = NewQuestion::new(Rule::RemediationLimit, because)
            .asking(format!(
                "The infrastructure is still broken after {attempts}: {why}. Retry, override or \
                 halt?"
            ))
            .knowing(
                "`retry`, or advice, starts new attempts. `override` continues as if it were \
                 repaired. `halt` ends the delivery.",
            )
            .seen(seen);
        let new = NewQuestion { options: &["retry", "override", "halt"], ..new };
        return human::ask(state, out, QuestionSubject::RemediationExhausted, new);
    }
    remediation.attempts += 1;
    let attempts = remediation.attempts;
    let summary = format!("Started attempt {attempts} of {limit} to repair the infrastructure");
    let mut decision = decision(Rule::RemediationRetried, summary)
        .because(why)
        .seen(seen)
        .next("a remediation agent was started");
    decision.counters.insert("attempts".to_owned(), u64::from(attempts));
    out.decided(None, decision);
    schedule::dispatch_repair(state, out, Role::Remediation);
}

/// A human wants new attempts.
pub(super) fn retry(state: &mut State, out: &mut StepOutput, answer: &str) {
    if let Some(remediation) = &mut state.run.remediation {
        remediation.attempts = 1;
    }
    note(state, "A human answered:", answer);
    schedule::dispatch_repair(state, out, Role::Remediation);
}

/// The infrastructure works again: the tasks that reported it get a new agent of the same role.
pub(super) fn ended(state: &mut State, out: &mut StepOutput, because: &str) {
    let Some(remediation) = state.run.remediation.take() else { return };
    for no in &remediation.tasks {
        let about = "What stopped the agent before you is repaired. Continue where it was.";
        state.at_mut(*no).note(about, "");
        state.set_wait(*no, Wait::Slot);
    }
    let mut decision = decision(Rule::RemediationEnded, "Resumed the work after the repair")
        .because(because)
        .next("the tasks that were blocked get a new agent of the same role");
    decision.counters.insert("attempts".to_owned(), u64::from(remediation.attempts));
    out.decided(None, decision);
    let text = format!("The work resumes: {because}.");
    out.notice((Notice::RemediationEnded, Severity::Info), None, text);
}

/// Adds something to the next prompt of the repair.
pub(super) fn note(state: &mut State, heading: &str, quote: &str) {
    if let Some(remediation) = &mut state.run.remediation {
        remember(&mut remediation.notes, PromptNote::new(heading, quote));
    }
}
