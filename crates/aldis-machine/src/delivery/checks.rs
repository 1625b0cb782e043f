//! The checks of a task: what they are made of is pinned before its first agent starts, and they run
//! after the developer's claim, before the critic reads the work.

use super::event::Effect;
use super::human::NewQuestion;
use super::rule::Rule;
use super::run::QuestionSubject;
use super::signal::Role;
use super::state::State;
use super::task::Wait;
use crate::Evidence;
use crate::proof::{
    Acceptance, CheckResult, Claim, Inspection, Opinion, Proof, Stage, Step, Verdict,
    opinion_evidence,
};
use crate::words::counted;

impl State {
    /// Whether the files of the checks are pinned before an agent of the task starts.
    pub(super) fn must_pin(&self, no: usize) -> bool {
        let task = self.at(no);
        let begins = matches!(task.role, Role::Developer | Role::BusinessAnalyst);
        begins && self.run.config.proof.is_active() && task.proof.start().is_none()
    }

    /// Pins what the checks are made of, or compares it.
    pub(super) fn start_checks(&mut self, no: usize, stage: Stage) {
        self.set_wait(no, Wait::Checks { stage });
        let task = self.at(no).spec.id.clone();
        self.out.effects.push(Effect::Inspect { task, stage });
    }

    /// Pins the files of the checks before an agent could change them.
    pub(super) fn pin(&mut self, no: usize) {
        self.start_checks(no, Stage::Start);
        self.decide(Some(no), Rule::FilesPinned, "Pinning the files of the checks")
            .because("agents must not change what their work is checked with")
            .next("the first agent of the task starts then");
    }

    /// The files of a task were pinned, or compared with their pins.
    pub(super) fn inspected(
        &mut self,
        id: &str,
        (head, dirty): (Option<&str>, bool),
        seen: &Inspection,
    ) {
        let Some((no, stage)) = self.checked_task(id) else { return };
        let config = self.run.config.proof.clone();
        let proof = &mut self.at_mut(no).proof;
        let head = head.map(str::to_owned);
        let first = match (proof.current().is_some(), stage) {
            (true, _) => proof.on_inspected(&config, seen),
            (false, Stage::Start) => {
                let step = proof.begin_start(&config, head);
                with_inspection(proof, &config, step, seen)
            }
            (false, Stage::Claim) => {
                let base = proof.start().and_then(|round| round.claim.commit.clone());
                let claim = Claim { commit: head, base, dirty, no_op: false };
                let step = proof.begin_claim(&config, claim);
                with_inspection(proof, &config, step, seen)
            }
        };
        if let Some(step) = first {
            self.take_step(no, stage, step);
        }
    }

    /// A check of a task has ended.
    pub(super) fn check_ended(&mut self, id: &str, result: &CheckResult) {
        let Some((no, stage)) = self.checked_task(id) else { return };
        let config = self.run.config.proof.clone();
        if let Some(step) = self.at_mut(no).proof.on_result(&config, result) {
            let summary =
                format!("{}: {}", crate::proof::capital(&result.title()), result.clause());
            self.decide(Some(no), Rule::CheckEnded, summary).because(result.sentence());
            self.take_step(no, stage, step);
        }
    }

    /// A second opinion about the work of a task was given.
    pub(super) fn opinion_given(&mut self, id: &str, opinion: &Opinion) {
        let Some((no, stage)) = self.checked_task(id) else { return };
        let config = self.run.config.proof.clone();
        if let Some(step) = self.at_mut(no).proof.on_opinion(&config, opinion) {
            self.decide(Some(no), Rule::OpinionGiven, "A second opinion was given")
                .because(opinion.sentence())
                .seen(vec![opinion_evidence(opinion)]);
            self.take_step(no, stage, step);
        }
    }

    /// The checks that ran when the coordinator was lost run again.
    pub(super) fn check_again(&mut self) {
        for no in self.index.checking().collect::<Vec<_>>() {
            let Wait::Checks { stage } = self.at(no).wait else { continue };
            let config = self.run.config.proof.clone();
            match self.at_mut(no).proof.again(&config) {
                Some(step) => self.take_step(no, stage, step),
                None => self.start_checks(no, stage),
            }
        }
    }

    fn checked_task(&self, id: &str) -> Option<(usize, Stage)> {
        let no = self.index.number(id)?;
        match self.at(no).wait {
            Wait::Checks { stage } => Some((no, stage)),
            _ => None,
        }
    }

    /// Does what comes next in a round.
    fn take_step(&mut self, no: usize, stage: Stage, step: Step) {
        match step {
            Step::Inspect { .. } => self.start_checks(no, stage),
            Step::Run { check, attempt } => {
                let task = self.at(no).spec.id.clone();
                let title = check.title();
                self.out.effects.push(Effect::RunCheck { task, check: check.name, attempt });
                let again = if attempt > 1 { " again" } else { "" };
                self.decide(Some(no), Rule::CheckStarted, format!("Running {title}{again}"))
                    .because(match stage {
                        Stage::Start => "before the work starts",
                        Stage::Claim => "the developer reports that the work is ready",
                    })
                    .next("the critic gets the work if every check passes");
            }
            Step::Ask => {
                let task = self.at(no).spec.id.clone();
                self.out.effects.push(Effect::AskJudge { task });
                self.decide(Some(no), Rule::OpinionAsked, "Asking for a second opinion")
                    .because("nothing refuses the work")
                    .next("the critic gets the work if it does not refuse");
            }
            Step::Judged(verdict) if stage == Stage::Start => self.prepared(no, &verdict),
            Step::Judged(verdict) => self.judge_checks(no, &verdict),
        }
    }

    /// The files are pinned: the first agent of the task starts.
    fn prepared(&mut self, no: usize, verdict: &Verdict) {
        let because = verdict.because();
        if verdict.acceptance == Acceptance::Refused {
            let new = NewQuestion::new(Rule::CheckProvesNothing, because)
                .knowing("Any answer starts the work all the same, and the checks prove nothing.");
            return self.ask_about(no, new);
        }
        self.set_wait(no, Wait::Slot);
        if self.at(no).proof.proves_nothing(&self.run.config.proof) {
            self.decide(Some(no), Rule::CheckProvesNothing, "The checks prove nothing")
                .because(because)
                .next("the work starts; a check that fails first would prove more");
        }
    }

    /// The checks of a claim are over.
    fn judge_checks(&mut self, no: usize, verdict: &Verdict) {
        let seen = self.at(no).proof.round().map(crate::proof::evidence).unwrap_or_default();
        let because = verdict.because();
        match verdict.acceptance {
            Acceptance::Accepted => {
                let checked = match (self.run.config.proof.checks.len(), &*because) {
                    (0, "") => "no protected file changed".to_owned(),
                    (0, because) => because.to_owned(),
                    (count, "") => format!("{} passed", counted(count, "check")),
                    (count, because) => format!("{} passed; {because}", counted(count, "check")),
                };
                self.send_to_critic(no, Rule::ChecksPassed, checked, seen);
            }
            Acceptance::Refused => self.back_from_checks(no, &because, seen),
            Acceptance::Asks => {
                let name = self.at(no).name();
                let ready = match self.run.config.proof.checks.is_empty() {
                    true => format!("The work on {name} is ready"),
                    false => format!("The checks of {name} passed"),
                };
                let new = NewQuestion::new(Rule::AcceptanceAsked, because.clone())
                    .asking(format!("{ready}, but {because}. Accept it?"))
                    .seen(seen);
                let new = NewQuestion { options: &["accept", "fail"], ..new };
                self.ask(QuestionSubject::Acceptance { task: no }, new);
            }
        }
    }

    pub(super) fn send_to_critic(
        &mut self,
        no: usize,
        rule: Rule,
        because: impl Into<String>,
        seen: Vec<Evidence>,
    ) {
        self.queue(no, Role::Critic);
        self.decide(Some(no), rule, "Sent the work to the critic")
            .because(because)
            .seen(seen)
            .next("a critic reviews it as soon as a slot is free");
    }

    /// The work does not pass its checks: the developer gets it back with what they printed.
    fn back_from_checks(&mut self, no: usize, because: &str, seen: Vec<Evidence>) {
        let limit = self.run.config.failure_limit;
        let feedback = self.at(no).proof.feedback(&self.run.config.proof);
        let task = self.at_mut(no);
        task.counters.check_failures += 1;
        let failures = task.counters.check_failures;
        task.hands.resume = task.hands.developer;
        task.notes.clear();
        task.note(feedback.clone(), "");
        task.last_failure = Some(because.to_owned());
        self.set(no, Role::Developer, Wait::Slot);
        if failures >= limit {
            let why = format!("the checks failed {}. Last: {because}", counted(failures, "time"));
            let new = NewQuestion::new(Rule::CheckLimit, why).knowing(feedback).seen(seen);
            return self.ask_about(no, new);
        }
        self.decide(Some(no), Rule::ChecksFailed, "Sent the work back to the developer")
            .because(because)
            .seen(seen)
            .next("the developer gets the output of the checks; no critic reads the work before");
    }

    /// A human takes the work although files of the checks changed.
    pub(super) fn accept_checks(&mut self, no: usize, by: &str) {
        let task = self.at_mut(no);
        task.proof.accept(by);
        let because = format!("{}; accepted by {by}", task.proof.asked_about());
        self.reset_counters(no);
        self.send_to_critic(no, Rule::ChecksPassed, because, Vec::new());
    }

    /// A human does not take the work: the developer gets it back with the reasons.
    pub(super) fn decline_checks(&mut self, no: usize) {
        let feedback = self.at(no).proof.feedback(&self.run.config.proof);
        let task = self.at_mut(no);
        task.proof.decline();
        task.hands.resume = task.hands.developer;
        task.note(feedback, "");
        self.set(no, Role::Developer, Wait::Slot);
    }
}

/// Begins a round with what was seen already.
fn with_inspection(
    proof: &mut Proof,
    config: &crate::proof::Config,
    first: Step,
    seen: &Inspection,
) -> Option<Step> {
    match first {
        Step::Inspect { .. } => proof.on_inspected(config, seen),
        judged => Some(judged),
    }
}
