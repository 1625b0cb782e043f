//! The way of a task: developer, critic, auditor, and back.

use super::event::{Notice, Severity};
use super::human::NewQuestion;
use super::judge::{Accepted, RefusedSignal};
use super::ledger::{FindingStatus, Raised};
use super::locks;
use super::matrix::{self, MatrixProblem};
use super::reply::preview;
use super::rule::Rule;
use super::run::{QuestionSubject, WorkingAgent};
use super::signal::{Role, SignalKind};
use super::state::State;
use super::task::{CRITERIA_MAX, Expansion, FILES_MAX, Wait};
use crate::Evidence;
use crate::proof::Stage;
use crate::words::{counted, listed};

/// How many names a sentence holds.
const NAMES_MAX: usize = 5;

impl State {
    /// A signal of the agent at work counts.
    pub(super) fn apply_to_task(&mut self, no: usize, accepted: Accepted<'_>) {
        let task = self.at_mut(no);
        (task.counters.unknown, task.last_failure, task.last_refused) = (0, None, None);
        match accepted.kind {
            SignalKind::ReadyForReview => self.ready_for_review(no, accepted),
            SignalKind::TaskIncomplete => self.incomplete(no, accepted),
            SignalKind::InfraBlocked | SignalKind::AuditBlocked => {
                self.enter_remediation(no, accepted);
            }
            SignalKind::ReviewPassed => self.review_passed(no, accepted),
            SignalKind::ReviewFailed => self.rework(no, accepted, Role::Critic),
            SignalKind::AuditPassed => self.audit_passed(no, accepted),
            SignalKind::AuditFailed => self.rework(no, accepted, Role::Auditor),
            SignalKind::Expanded => self.expanded(no, accepted),
            SignalKind::SeekingClarification => {
                self.at_mut(no).hands.resume = Some(accepted.agent);
                let role = self.at(no).role;
                let new = NewQuestion::of_agent(Rule::QuestionAsked, role, accepted.signal);
                self.ask_about(no, new.seen([accepted.evidence()]));
            }
            SignalKind::ExpertRequest => {
                let asking = (Some(no), self.at(no).role);
                self.consult(asking, accepted);
            }
            SignalKind::FileConflict => self.file_conflict(no, accepted),
            // Reported by no agent of a task, or handled before.
            SignalKind::RemediationComplete
            | SignalKind::HealthAudit
            | SignalKind::ExpertAdvice
            | SignalKind::ExpertUnsuccessful
            | SignalKind::ExpertCreated
            | SignalKind::Checkpoint => {}
        }
    }

    /// Signals besides the one that counts are recorded, and the role reads of them when it starts again.
    pub(super) fn also_reported(
        &mut self,
        no: usize,
        agent: &WorkingAgent,
        (first, others): (Accepted<'_>, &[Accepted<'_>]),
    ) {
        if others.is_empty() {
            return;
        }
        let names: Vec<&str> = others.iter().map(|accepted| accepted.kind.as_str()).collect();
        let names = names.join(", ");
        let role = agent.role.label();
        let again = self.at(no).role == agent.role && !matches!(self.at(no).wait, Wait::Complete);
        if again {
            let about = format!(
                "In the same reply the last {role} also reported {names}. That was recorded and not \
             acted on. Report it again if it still holds.",
            );
            self.at_mut(no).note(about, "");
        }
        self.decide(Some(no), Rule::AlsoReported, format!("Recorded {names} without acting on it"))
            .because(format!("{} in the same reply goes first", first.kind.as_str()))
            .seen(others.iter().map(Accepted::evidence))
            .next(if again {
                format!("the next {role} is told")
            } else {
                "nothing to do".to_owned()
            });
    }

    /// How far the work has come. Never changes where a task is, nor the count of unknown replies.
    pub(super) fn checkpoint(&mut self, agent: &WorkingAgent, accepted: Accepted<'_>) {
        let progress = preview(&accepted.signal.first_field(&["progress", "current_activity"]));
        let progress = progress.trim();
        let summary = match progress.lines().next() {
            None | Some("") => "Received a checkpoint".to_owned(),
            Some(line) => format!("Received a checkpoint: {line}"),
        };
        if let Some(no) = agent.work.task() {
            self.at_mut(no).progress = Some(progress.to_owned());
        }
        self.decide(agent.work.task(), Rule::CheckpointReceived, summary)
            .because(format!("the {} reported how far it is", agent.role.label()))
            .seen([accepted.evidence()]);
    }

    fn ready_for_review(&mut self, no: usize, accepted: Accepted<'_>) {
        if let Some(problem) = matrix::problem(&self.run.config, accepted.signal) {
            return self.refuse_matrix(no, accepted, &problem);
        }
        let task = self.at_mut(no);
        task.ledger.answered(accepted.signal);
        task.report = accepted.signal.body();
        task.round += 1;
        task.notes.clear();
        (task.hands.reviewed_by, task.hands.audited_by, task.hands.resume) = (None, None, None);
        task.hands.developer = Some(accepted.agent);
        let (because, seen) = ("the developer reports that it is ready", accepted.evidence());
        if !self.run.config.proof.is_active() {
            return self.send_to_critic(no, Rule::ReadyForReview, because, vec![seen]);
        }
        self.start_checks(no, Stage::Claim);
        self.decide(Some(no), Rule::ReadyForReview, "Checking the work")
            .because(because)
            .seen([seen])
            .next("a critic reviews it if it passes its checks");
    }

    /// A claim without the checks that it needs.
    fn refuse_matrix(&mut self, no: usize, accepted: Accepted<'_>, problem: &MatrixProblem) {
        let why = match problem {
            MatrixProblem::Failed(row) => format!("its own results report a failure: {row}"),
            MatrixProblem::Missing(what) => format!(
                "its Verification Results have no passed check for {what}; list every check with its \
             environment in parentheses, or as a table with the columns Check, Environment and \
             Result"
            ),
        };
        self.refuse_signal(no, accepted, "missing_environment_matrix", why);
    }

    /// Refuses a well-formed signal for what stands below it.
    pub(super) fn refuse_signal(
        &mut self,
        no: usize,
        accepted: Accepted<'_>,
        code: &'static str,
        why: impl Into<String>,
    ) {
        self.reply_refused(no, accepted.agent, vec![RefusedSignal::new(accepted, code, why)]);
    }

    fn review_passed(&mut self, no: usize, accepted: Accepted<'_>) {
        let task = self.at_mut(no);
        task.ledger.passed(Role::Critic);
        task.hands.reviewed_by = Some(accepted.agent);
        task.notes.clear();
        task.hands.resume = None;
        self.queue(no, Role::Auditor);
        self.decide(Some(no), Rule::ReviewPassed, "Sent the work to the auditor")
            .because("the critic passed it")
            .seen([accepted.evidence()])
            .next("an auditor checks the acceptance criteria as soon as a slot is free");
    }

    fn audit_passed(&mut self, no: usize, accepted: Accepted<'_>) {
        match matrix::problem(&self.run.config, accepted.signal) {
            // What was measured beats what is claimed.
            Some(MatrixProblem::Failed(row)) => {
                let why =
                    format!("the auditor passed it, but its own results report a failure: {row}");
                return self.rework_because(no, accepted, (Role::Auditor, &why));
            }
            Some(problem) => return self.refuse_matrix(no, accepted, &problem),
            None => {}
        }
        let task = self.at_mut(no);
        task.ledger.passed(Role::Auditor);
        task.hands.audited_by = Some(accepted.agent);
        task.notes.clear();
        task.hands.resume = None;
        let seen = accepted.evidence();
        if self.run.config.worktrees {
            return self.start_merge(no, seen);
        }
        self.complete_task(no, "the auditor passed it", vec![seen]);
    }

    /// The only way to completion: reviewed and audited as it stands.
    pub(super) fn complete_task(&mut self, no: usize, because: &str, seen: Vec<Evidence>) {
        self.set_wait(no, Wait::Complete);
        self.release_files(no);
        let freed = self.index.completed(no);
        for dependent in &freed {
            if self.at(*dependent).wait == Wait::Needs {
                self.set_wait(*dependent, Wait::Slot);
            }
        }
        for waiting in self.index.later() {
            self.set_wait(waiting, Wait::Slot);
        }
        let unblocked: Vec<String> = freed.iter().map(|no| self.at(*no).name()).collect();
        let next = match &*unblocked {
            [] => "nothing to do".to_owned(),
            names => format!("this unblocks {}", listed(names, NAMES_MAX)),
        };
        self.decide(Some(no), Rule::TaskComplete, "Completed the task")
            .because(because)
            .seen(seen)
            .next(next);
        let task = self.at(no);
        let text = format!("{} is complete.", task.name());
        self.notice((Notice::TaskComplete, Severity::Info), Some(no), text);
    }

    /// A reviewer refuses the work: back to the developer, or to a human.
    fn rework(&mut self, no: usize, accepted: Accepted<'_>, by: Role) {
        let why = format!("the {} refused it", by.label());
        self.rework_because(no, accepted, (by, &why));
    }

    fn rework_because(&mut self, no: usize, accepted: Accepted<'_>, (by, because): (Role, &str)) {
        if self.at_mut(no).ledger.failed(by, accepted.signal) == Raised::OnlySettled {
            let why = "every finding in it was settled before; pass the work, or give evidence \
                       that is new under the key Evidence";
            return self.refuse_signal(no, accepted, "settled_finding", why);
        }
        let limit = self.run.config.failure_limit;
        let rounds = self.run.config.plateau_rounds;
        let task = self.at_mut(no);
        let (failures, which) = match by {
            Role::Critic => (&mut task.counters.review_failures, "review"),
            _ => (&mut task.counters.audit_failures, "audit"),
        };
        *failures += 1;
        let failures = *failures;
        (task.hands.reviewed_by, task.hands.audited_by) = (None, None);
        // Whoever did the work knows it best. Reviewers always look with fresh eyes.
        task.hands.resume = task.hands.developer;
        task.notes.clear();
        let body = accepted.signal.body();
        task.note(format!("Your work came back: {because}. The {} wrote:", by.label()), &body);
        task.last_refused = Some(accepted.evidence());
        let plateau = task.ledger.is_plateau(by, rounds);
        let open = task.ledger.with_status(FindingStatus::Open).count();
        self.set(no, Role::Developer, Wait::Slot);
        if failures >= limit || plateau {
            let critic = by == Role::Critic;
            let (rule, why) = match (failures >= limit, critic) {
                (true, true) => {
                    (Rule::ReviewLimit, format!("{} failed", counted(failures, "review")))
                }
                (true, false) => {
                    (Rule::AuditLimit, format!("{} failed", counted(failures, "audit")))
                }
                (false, _) => (
                    if critic { Rule::ReviewPlateau } else { Rule::AuditPlateau },
                    format!("{rounds} failed {which}s in a row left no fewer findings open"),
                ),
            };
            let new = NewQuestion::new(rule, why)
                .knowing(match body.trim() {
                    "" => String::new(),
                    body => format!("The last {which} says:\n{body}"),
                })
                .seen([accepted.evidence()]);
            return self.ask_about(no, new);
        }
        let rule = if by == Role::Critic { Rule::ReviewFailed } else { Rule::AuditFailed };
        let because = match open {
            0 => because.to_owned(),
            open => format!("{because}; {} to fix", counted(open, "finding")),
        };
        self.decide(Some(no), rule, "Sent the work back to the developer")
            .because(because)
            .seen([accepted.evidence()])
            .next("the developer gets the findings; the critic reviews the result");
    }

    fn incomplete(&mut self, no: usize, accepted: Accepted<'_>) {
        let limit = self.run.config.incomplete_limit;
        let body = accepted.signal.body();
        let (needed, blocker) = (accepted.signal.field("needed"), accepted.signal.field("blocker"));
        let lacks = match (needed.trim(), blocker.trim(), body.trim()) {
            ("", "", "") => "the developer does not say what is missing".to_owned(),
            ("", "", body) => body.to_owned(),
            ("", blocker, _) => format!("blocked by {blocker}"),
            (needed, _, _) => format!("needed: {needed}"),
        };
        let task = self.at_mut(no);
        task.counters.incomplete += 1;
        let times = task.counters.incomplete;
        task.notes.clear();
        task.hands.resume = None;
        task.note("The last developer gave the task back and wrote:", &body);
        if times >= limit {
            let why = format!("developers gave the task back {}", counted(times, "time"));
            let new = NewQuestion::new(Rule::IncompleteLimit, why)
                .asking(format!(
                    "{} was given back {} ({}). How should it continue?",
                    self.at(no).name(),
                    counted(times, "time"),
                    preview(&lacks),
                ))
                .knowing(body)
                .seen([accepted.evidence()]);
            return self.ask_about(no, new);
        }
        self.set_wait(no, Wait::Change);
        let task = self.at(no);
        let text = format!("{} is on hold ({lacks})", task.name());
        self.notice((Notice::TaskBlocked, Severity::Warning), Some(no), text);
        self.decide(Some(no), Rule::TaskIncomplete, "Put the task on hold")
            .because(format!("the developer cannot continue ({})", preview(&lacks)))
            .seen([accepted.evidence()])
            .next("it is tried again when another task is complete or nothing else can run");
    }

    fn expanded(&mut self, no: usize, accepted: Accepted<'_>) {
        let signal = accepted.signal;
        let mut acceptance = signal.list("acceptance_criteria");
        if acceptance.is_empty() {
            let why = "it has no acceptance criteria; list them under the key Acceptance Criteria";
            return self.refuse_signal(no, accepted, "missing_criteria", why);
        }
        acceptance.truncate(CRITERIA_MAX);
        let approach = signal.field("technical_approach");
        let mut description = signal.field("expanded_specification");
        if !approach.is_empty() {
            description = format!("{description}\n\nApproach: {approach}");
        }
        let files = signal.list("target_files").into_iter().filter_map(|file| locks::normal(&file));
        let files = files.take(FILES_MAX).collect();
        let expansion = Expansion { description, acceptance, files };
        let confidence = signal.field("confidence").to_ascii_uppercase();
        if confidence == "HIGH" || confidence == "MEDIUM" {
            self.apply_expansion(no, expansion);
            self.decide(Some(no), Rule::TaskExpanded, "Gave the task its acceptance criteria")
                .because(format!("the business analyst wrote them with {confidence} confidence"))
                .seen([accepted.evidence()])
                .next("a developer starts as soon as a slot is free");
            return;
        }
        let criteria: String =
            expansion.acceptance.iter().map(|line| format!("- {line}\n")).collect();
        let details = format!("{}\n{criteria}", expansion.description);
        self.at_mut(no).proposal = Some(expansion);
        self.at_mut(no).hands.resume = Some(accepted.agent);
        let name = self.at(no).name();
        let because = "the business analyst is not confident about its specification";
        let new = NewQuestion::new(Rule::ExpansionUnconfirmed, because)
            .asking(format!("Is this what {name} should do? Accept it, or say what is wanted."))
            .knowing(details)
            .seen([accepted.evidence()]);
        let new = NewQuestion { options: &["accept", "fail"], ..new };
        self.ask(QuestionSubject::Expansion { task: no }, new);
    }

    /// Replaces description and criteria by what the business analyst wrote.
    pub(super) fn apply_expansion(&mut self, no: usize, expansion: Expansion) {
        let Expansion { description, acceptance, files } = expansion;
        let task = self.at_mut(no);
        if !description.trim().is_empty() {
            task.spec.description = description;
        }
        task.spec.acceptance = acceptance;
        task.proposal = None;
        task.notes.clear();
        task.hands.resume = None;
        if task.spec.files.is_empty() {
            task.spec.files = files;
        }
        // A developer takes all its files at once, so that no two tasks wait for each other's.
        self.release_files(no);
        self.queue(no, Role::Developer);
    }
}
