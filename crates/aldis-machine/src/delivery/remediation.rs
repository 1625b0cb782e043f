//! The repair of the infrastructure: nobody's failure, and no new work starts meanwhile.

use super::event::{Notice, Severity};
use super::human::NewQuestion;
use super::judge::Accepted;
use super::reply::preview;
use super::rule::Rule;
use super::run::{QuestionSubject, Remediation, Work, WorkingAgent};
use super::signal::{Role, SignalKind};
use super::state::State;
use super::task::{PromptNote, Wait, remember};
use crate::Evidence;
use crate::words::counted;

impl State {
    /// A task cannot continue because the infrastructure is broken.
    pub(super) fn enter_remediation(&mut self, no: usize, accepted: Accepted<'_>) {
        self.set_wait(no, Wait::Infrastructure);
        let task = self.at_mut(no);
        task.hands.resume = None;
        let about = format!("The {} of {} reported:", task.role.label(), task.name());
        let report = PromptNote::new(about, &accepted.signal.body());
        let began = self.run.remediation.is_none();
        let remediation = self.run.remediation.get_or_insert_with(|| Remediation {
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
        let (rule, summary, next) = if began {
            let summary = "Stopped new work until the infrastructure is repaired";
            (Rule::RemediationStarted, summary, "a remediation agent was started")
        } else {
            let next = "the task continues when the infrastructure is repaired";
            (Rule::RemediationJoined, "Joined the repair that is under way", next)
        };
        self.decide(Some(no), rule, summary)
            .because(preview(&issue))
            .seen([accepted.evidence()])
            .next(next);
        if began {
            let task = self.at(no);
            let text = format!("{} reports broken infrastructure: {issue}", task.name());
            self.notice((Notice::RemediationStarted, Severity::Warning), Some(no), text);
            self.dispatch(Role::Remediation, Work::Infrastructure);
        }
    }

    /// A signal of the agent that repairs or judges counts.
    pub(super) fn apply_repair(&mut self, agent: &WorkingAgent, accepted: Accepted<'_>) {
        match accepted.kind {
            SignalKind::RemediationComplete => {
                self.note_repair("The remediation agent reported:", &accepted.signal.body());
                self.decide(None, Rule::RemediationReported, "Checking the repair")
                    .because("the remediation agent reports that it is done")
                    .seen([accepted.evidence()])
                    .next("a health auditor was started; no new work starts before its verdict");
                self.dispatch(Role::HealthAuditor, Work::Infrastructure);
            }
            SignalKind::HealthAudit if accepted.approves() == Some(true) => {
                let attempts = self.run.remediation.as_ref().map_or(0, |it| it.attempts);
                let attempts = counted(attempts, "attempt");
                self.end_remediation(&format!(
                    "the health auditor confirmed the repair after {attempts}"
                ));
            }
            SignalKind::HealthAudit => {
                self.note_repair("The health auditor reported:", &accepted.signal.body());
                let why = "the health auditor found it still broken";
                self.next_repair(why, vec![accepted.evidence()]);
            }
            SignalKind::SeekingClarification => {
                let new = NewQuestion::of_agent(Rule::QuestionAsked, agent.role, accepted.signal);
                self.ask_for(None, agent.role, new.seen([accepted.evidence()]));
            }
            SignalKind::ExpertRequest => {
                self.consult((None, agent.role), accepted);
            }
            SignalKind::FileConflict => {
                let path = accepted.signal.subject.clone().unwrap_or_default();
                let text = format!("The {} changes {path}.", agent.role.label());
                self.notice((Notice::FileConflict, Severity::Warning), None, text);
                self.note_repair("The repair goes first. You may change:", &path);
                let why = format!("the {} needs {path}", agent.role.label());
                self.next_repair(&why, vec![accepted.evidence()]);
            }
            // Reported by no agent that repairs or judges.
            _ => {}
        }
    }

    /// Tries again, or asks a human at the limit.
    pub(super) fn next_repair(&mut self, why: &str, seen: Vec<Evidence>) {
        let limit = self.run.config.remediation_attempts;
        let Some(remediation) = &mut self.run.remediation else { return };
        if remediation.attempts >= limit {
            let attempts = counted(remediation.attempts, "attempt");
            let because = format!("{attempts} to repair the infrastructure failed. Last: {why}");
            let text = format!("{because}.");
            self.notice((Notice::RemediationExhausted, Severity::Error), None, text);
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
            return self.ask(QuestionSubject::RemediationExhausted, new);
        }
        remediation.attempts += 1;
        let attempts = remediation.attempts;
        let summary = format!("Started attempt {attempts} of {limit} to repair the infrastructure");
        self.decide(None, Rule::RemediationRetried, summary)
            .because(why)
            .seen(seen)
            .next("a remediation agent was started")
            .count("attempts", attempts);
        self.dispatch(Role::Remediation, Work::Infrastructure);
    }

    /// A human wants new attempts.
    pub(super) fn retry_repair(&mut self, answer: &str) {
        if let Some(remediation) = &mut self.run.remediation {
            remediation.attempts = 1;
        }
        self.note_repair("A human answered:", answer);
        self.dispatch(Role::Remediation, Work::Infrastructure);
    }

    /// The infrastructure works again: the tasks that reported it get a new agent of the same role.
    pub(super) fn end_remediation(&mut self, because: &str) {
        let Some(remediation) = self.run.remediation.take() else { return };
        for no in &remediation.tasks {
            let about = "What stopped the agent before you is repaired. Continue where it was.";
            self.at_mut(*no).note(about, "");
            self.set_wait(*no, Wait::Slot);
        }
        self.decide(None, Rule::RemediationEnded, "Resumed the work after the repair")
            .because(because)
            .next("the tasks that were blocked get a new agent of the same role")
            .count("attempts", remediation.attempts);
        let text = format!("The work resumes: {because}.");
        self.notice((Notice::RemediationEnded, Severity::Info), None, text);
    }

    /// Adds something to the next prompt of the repair.
    pub(super) fn note_repair(&mut self, heading: &str, quote: &str) {
        if let Some(remediation) = &mut self.run.remediation {
            remember(&mut remediation.notes, PromptNote::new(heading, quote));
        }
    }
}
