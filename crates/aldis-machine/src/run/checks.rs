//! The checks of a run: what they are made of is pinned before the work starts, and after each claim
//! they run in order.

use super::event::{Effect, WorkTree};
use super::prompt::block;
use super::rule::Rule;
use super::state::{Ending, Outcome, Question, QuestionDraft, State, Status};
use crate::proof::{
    Acceptance, CheckResult, Claim, Inspection, Opinion, Round, Stage, Step, Verdict, Weight,
    capital, evidence, opinion_evidence,
};
use crate::words::{accepts, counted};

impl State {
    /// Pins what the checks are made of, before an agent could change it. No clock runs.
    pub(super) fn prepare(&mut self) -> Outcome {
        self.status = Status::Preparing;
        self.pause_clocks(self.now());
        self.decided(Rule::FilesPinned, "Looking at the work tree before the work starts")
            .because("the agent must not change what its work is checked with")
            .next("the agent starts then")
            .with([Effect::Look])
    }

    /// The work tree is known, and the files can be pinned.
    pub(super) fn pin(&mut self) -> Outcome {
        if self.proof.current().is_some() {
            return Outcome::nothing();
        }
        let config = &self.start.config.proof;
        let (head, base) = (self.trees.tree.head.clone(), self.trees.base.clone());
        let step = match self.iteration {
            0 => self.proof.begin_start(config, head),
            _ => self.proof.begin_pins(config, base),
        };
        self.take(step)
    }

    /// Has a claim checked.
    pub(super) fn check_claim(&mut self) -> Outcome {
        self.status = Status::Checking;
        let claim = self.claim_about(&self.trees.tree);
        let step = self.proof.begin_claim(&self.start.config.proof, claim);
        self.take(step)
    }

    fn claim_about(&self, tree: &WorkTree) -> Claim {
        Claim {
            commit: tree.head.clone(),
            base: self.trees.base.clone(),
            dirty: tree.dirty,
            no_op: self.claims_no_op(),
        }
    }

    /// What a claim about this work tree would amount to: see [`Proof::preview`](crate::proof::Proof::preview).
    pub fn preview_claim(
        &self,
        tree: &WorkTree,
        seen: &Inspection,
        results: &[CheckResult],
    ) -> Option<Verdict> {
        let config = &self.start.config.proof;
        self.proof.preview(config, self.claim_about(tree), seen, results)
    }

    /// The files were pinned, or compared with their pins.
    pub(super) fn on_inspected(&mut self, seen: &Inspection) -> Outcome {
        if !matches!(self.status, Status::Checking | Status::Preparing) {
            return Outcome::nothing();
        }
        match self.proof.on_inspected(&self.start.config.proof, seen) {
            Some(step) => self.take(step),
            None => Outcome::nothing(),
        }
    }

    /// A check has ended.
    pub(super) fn on_check_ended(&mut self, result: &CheckResult) -> Outcome {
        if !matches!(self.status, Status::Checking | Status::Preparing) {
            return Outcome::nothing();
        }
        let Some(step) = self.proof.on_result(&self.start.config.proof, result) else {
            return Outcome::nothing();
        };
        let several = self.start.config.proof.checks.len() > 1;
        let repeats = matches!(&step, Step::Run { attempt, .. } if *attempt > 1);
        let ended = (several || repeats || self.status == Status::Preparing).then(|| {
            let summary = format!("{} {}", capital(&result.title()), result.clause());
            self.decided(Rule::CheckEnded, summary).because(result.sentence()).next("nothing to do")
        });
        let next = self.take(step);
        ended.unwrap_or_else(Outcome::nothing).then(next)
    }

    /// A second opinion was given.
    pub(super) fn on_opinion(&mut self, opinion: &Opinion) -> Outcome {
        if self.status != Status::Checking {
            return Outcome::nothing();
        }
        let Some(step) = self.proof.on_opinion(&self.start.config.proof, opinion) else {
            return Outcome::nothing();
        };
        let given = self
            .decided(Rule::OpinionGiven, "A second opinion was given")
            .because(opinion.sentence())
            .seen(vec![opinion_evidence(opinion)])
            .next("nothing to do");
        let next = self.take(step);
        given.then(next)
    }

    /// Does what comes next in a round.
    fn take(&mut self, step: Step) -> Outcome {
        match step {
            Step::Inspect { stage, commit, keep } => {
                let (rule, summary, next) = match stage {
                    Stage::Start => (
                        Rule::FilesPinned,
                        "Pinning the files of the checks",
                        "the agent starts then",
                    ),
                    Stage::Claim => (
                        Rule::FilesCompared,
                        "Comparing the files of the checks with their pins",
                        "the checks run if the policy allows what changed",
                    ),
                };
                let because = match (stage, &commit) {
                    (Stage::Start, None) => "the work has not started".to_owned(),
                    (Stage::Claim, None) => {
                        "the agent claims to be done, and the work tree is in order".to_owned()
                    }
                    (_, Some(commit)) => format!("in a clean checkout of commit {commit}"),
                };
                let decided = self.decided(rule, summary).because(because).next(next);
                decided.with([Effect::Inspect { stage, commit, keep }])
            }
            Step::Run { check, attempt } => {
                let again = match attempt {
                    1 => String::new(),
                    _ => format!(" again ({attempt} of {})", self.start.config.proof.repeat + 1),
                };
                let because = match self.status {
                    Status::Preparing => "before the work starts",
                    _ => "the agent claims to be done, and the work tree is in order",
                };
                let next = match (&self.status, self.start.config.proof.checks.len()) {
                    (Status::Preparing, _) => "the agent starts then",
                    (_, ..=1) => "the run is done if the check passes",
                    (..) => "the run is done if every check passes",
                };
                self.decided(Rule::CheckStarted, format!("Running {}{again}", check.title()))
                    .because(because)
                    .next(next)
                    .with([Effect::RunCheck { check: check.name, attempt }])
            }
            Step::Ask => self
                .decided(Rule::OpinionAsked, "Asking for a second opinion")
                .because("nothing refuses the claim")
                .next("the run is done if it does not refuse")
                .with([Effect::AskJudge]),
            Step::Judged(verdict) if self.status == Status::Preparing => self.prepared(&verdict),
            Step::Judged(verdict) => self.judged(&verdict),
        }
    }

    /// The files are pinned, and the checks ran where that is wanted: the work starts.
    fn prepared(&mut self, verdict: &Verdict) -> Outcome {
        self.resume_clocks();
        let because = self.proof.start().map(|round| verdict_because(round, verdict));
        let because = because.filter(|because| !because.is_empty());
        if verdict.acceptance == Acceptance::Refused {
            let decided = self
                .decided(Rule::CheckProvesNothing, "Stopped: the checks prove nothing")
                .because(because.unwrap_or_default())
                .next(
                    "write a check that fails before the work is done, or leave out \
                     `--red-first=strict`, then `aldis run --continue`",
                );
            return self.finish(Ending::NeedsHuman, decided);
        }
        let proves_nothing = self.proof.proves_nothing(&self.start.config.proof);
        let remark = (proves_nothing && self.iteration == 0).then(|| {
            self.decided(Rule::CheckProvesNothing, "The checks prove nothing")
                .because(because.clone().unwrap_or_default())
                .next("the work starts; a check that fails first would prove more")
        });
        let started = match self.iteration {
            0 => self.next_iteration(because.as_deref().unwrap_or("the run begins"), Vec::new()),
            _ => self.work_on(self.iteration_unfinished),
        };
        remark.unwrap_or_else(Outcome::nothing).then(started)
    }

    /// The round of a claim is over.
    fn judged(&mut self, verdict: &Verdict) -> Outcome {
        let mut seen = self.evidence();
        seen.extend(self.proof.round().into_iter().flat_map(evidence));
        let because = verdict.because();
        match verdict.acceptance {
            Acceptance::Accepted => {
                let (how, mut checked) = self.how_checked();
                if !because.is_empty() {
                    checked = format!("{checked}; {because}");
                }
                self.finish_done(how, &checked)
            }
            Acceptance::Refused => {
                let checks = verdict.weighing(Weight::Refuses).any(|it| it.rule.is_about_check());
                let rule = if checks { Rule::CheckFailed } else { Rule::ProofRefused };
                let feedback = self.proof.feedback(&self.start.config.proof);
                self.refuse((rule, &because), feedback, seen)
            }
            Acceptance::Asks => {
                let (_, checked) = self.how_checked();
                let text = format!(
                    "The agent reported done, and {checked}. But {because}. Answer `accept` to take \
                     it as it is; any other answer goes to the agent."
                );
                self.ask(Rule::AcceptanceAsked, QuestionDraft::new(text), seen)
            }
        }
    }

    /// What the checks said for a claim: how it is done, and why, as a clause.
    fn how_checked(&self) -> (&'static str, String) {
        match (self.start.config.proof.checks.len(), self.proof.round()) {
            (0, _) | (_, None) => ("Done", "no check is configured".to_owned()),
            (1, _) => ("Done and verified", "the check passed".to_owned()),
            (most, _) => {
                ("Done and verified", format!("all {} passed", counted(most as u64, "check")))
            }
        }
    }

    /// Takes the answer to a question. Returns whether it takes the last claim as it is; any other one
    /// goes to the agent, with the question if the agent asked it, else with what it was about.
    pub(super) fn take_answer(&mut self, question: &Question, text: &str, by: &str) -> bool {
        let asked = self.proof.verdict().is_some_and(|it| it.acceptance == Acceptance::Asks);
        if !asked {
            let question = block(&question.text);
            let answered = format!("You asked:\n\n{question}\nThe answer:\n\n{}", block(text));
            self.add_feedback(answered);
            return false;
        }
        if accepts(text) {
            self.proof.accept(crate::words::cause(by));
            return true;
        }
        let feedback = self.proof.feedback(&self.start.config.proof);
        self.remember_refusal("a human did not accept it", feedback, self.evidence());
        let answer = block(text);
        self.add_feedback(format!(
            "The human you work for was asked whether to take it as it is, and answered:\n\n{answer}"
        ));
        self.proof.decline();
        false
    }

    /// Whether a human has taken the last claim as it is, and the run did not end by that yet.
    pub(super) fn is_accepted(&self) -> bool {
        self.proof.verdict().is_some_and(|verdict| verdict.accepted_by.is_some())
    }

    /// Ends a run whose last claim a human has taken as it is.
    pub(super) fn finish_accepted(&mut self) -> Outcome {
        let (how, checked) = self.how_checked();
        let by = self.proof.verdict().and_then(|verdict| verdict.accepted_by.clone());
        let by = by.unwrap_or_default();
        let found = self.proof.asked_about();
        self.finish_done(how, &format!("{checked}; {found}; accepted by {by}"))
    }

    /// Goes on with checks after a crash of whoever ran them.
    pub(super) fn check_again(&mut self, recovered: impl Fn(&str) -> Outcome) -> Outcome {
        let next = self.proof.again(&self.start.config.proof);
        match next {
            Some(step) => recovered("the check runs again").then(self.take(step)),
            None if self.status == Status::Preparing => {
                recovered("the files of the checks are pinned").with([Effect::Look])
            }
            // The run began before checks had names.
            None => recovered("the check runs again").with([Effect::Check]),
        }
    }
}

/// What the round before the work amounts to, as clauses.
fn verdict_because(round: &Round, verdict: &Verdict) -> String {
    let because = verdict.because();
    if !because.is_empty() || round.results.is_empty() {
        return because;
    }
    let failed = round.results.iter().find(|result| !result.passed());
    failed.map(|failed| format!("{} fails, as it should", failed.title())).unwrap_or_default()
}
