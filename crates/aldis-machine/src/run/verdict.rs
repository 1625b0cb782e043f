//! What follows the end of an iteration, in the order of the specification: crash, blocked, help,
//! done and verified, the limits, the next iteration.

use super::event::{AgentExit, Effect, Notice, Usage, WorkTree};
use super::parts::Attempt;
use super::prompt;
use super::rule::Rule;
use super::signal::{self, RunSignal};
use super::state::{ClaimRefusal, Ending, Outcome, QuestionDraft, State, Status};
use crate::Evidence;
use crate::evidence::ending as end_of;
use crate::proof::{Verdict, evidence};
use crate::stagnation::Observation;
use crate::trust::Rank;
use crate::words::{self, counted};
use aldis_signal::scan::Token;
use aldis_signal::signal::Meaning;

/// How much of a check's or a crashed agent's output is kept.
const OUTPUT_MAX: usize = 4_000;
/// How much of the suggested answers to a question stands in a sentence.
const SUGGESTION_MAX: usize = 200;

/// What the signals of an iteration amount to. The order is that of the specification.
enum IterationVerdict<'s> {
    Blocked(&'s RunSignal),
    Asks(&'s RunSignal),
    /// Success after failure in one message is neither.
    Contradictory,
    Failed(&'s RunSignal),
    Done(&'s RunSignal),
    Undecided,
}

impl<'s> IterationVerdict<'s> {
    fn of(signals: &'s [RunSignal]) -> Self {
        let ranked = signals.iter().zip(signal::ranks(signals));
        let counting = ranked.filter(|(_, rank)| *rank == Rank::Counts);
        let signals: Vec<&RunSignal> = counting.map(|(signal, _)| signal).collect();
        let last =
            |meaning: Meaning| signals.iter().copied().rfind(|signal| signal.meaning == meaning);
        if let Some(blocked) = last(Meaning::Blocked) {
            return Self::Blocked(blocked);
        }
        if let Some(asks) = last(Meaning::NeedsHuman).or_else(|| last(Meaning::NeedsHelp)) {
            return Self::Asks(asks);
        }
        if contradicts(&signals) {
            return Self::Contradictory;
        }
        let ends = |signal: &&RunSignal| matches!(signal.meaning, Meaning::Done | Meaning::Failed);
        match signals.iter().copied().rfind(ends) {
            Some(failed) if failed.meaning == Meaning::Failed => Self::Failed(failed),
            Some(done) => Self::Done(done),
            None => Self::Undecided,
        }
    }
}

/// Whether the last message that says how the work ended reports success after failure.
fn contradicts(signals: &[&RunSignal]) -> bool {
    let ends = || signals.iter().filter(|it| matches!(it.meaning, Meaning::Done | Meaning::Failed));
    let Some(last) = ends().next_back() else { return false };
    let mut of_last = ends().filter(|it| it.message == last.message).map(|it| it.meaning);
    of_last.any(|meaning| meaning == Meaning::Failed)
        && of_last.any(|meaning| meaning == Meaning::Done)
}

impl State {
    /// The agent's process has ended.
    pub(super) fn on_exit(&mut self, exit: &AgentExit) -> Outcome {
        if !self.has_agent() {
            return Outcome::nothing();
        }
        let exit =
            AgentExit { output: end_of(&exit.output, OUTPUT_MAX, &Token::Off), ..exit.clone() };
        self.last_exit = Some(exit.clone());
        self.agent = None;
        self.attempt.retrying = false;
        self.resume_clocks();
        self.settle_costs();
        if let Status::Ending { with: Some(ending) } = self.status {
            return self.end_with(ending);
        }
        let asked_to_stop = matches!(self.status, Status::Ending { with: None });
        if let Some(limit) = self.attempt.limit.take() {
            return self.wait_for_limit(&limit);
        }
        self.counts.limit_waits = 0;
        if let Some(what) = self.attempt.host_error.clone() {
            return self.end_host_failed(what);
        }
        if !exit.is_clean() && !asked_to_stop {
            return self.wait_after_crash(exit);
        }
        (self.counts.crashes, self.memory.last_crash) = (0, None);
        if asked_to_stop
            && matches!(IterationVerdict::of(&self.attempt.signals), IterationVerdict::Undecided)
        {
            // It ran out of time before it could act on its feedback: the next prompt has it again.
            self.memory.feedback_given = 0;
        }
        self.stopped()
    }

    /// The agent stopped by itself, or was asked to: its reports decide.
    fn stopped(&mut self) -> Outcome {
        let unexplained = || "the agent did not say why".to_owned();
        let seen = self.evidence();
        let outranked = signal::outranked(&self.attempt.signals);
        let with_outranked = |because: String| match &outranked {
            Some(outranked) => format!("{because}; {outranked}"),
            None => because,
        };
        let (rule, summary, because, next) = match IterationVerdict::of(&self.attempt.signals) {
            IterationVerdict::Blocked(signal) => {
                let because = with_outranked(signal.text.clone().unwrap_or_else(unexplained));
                let decided = self
                    .decided(Rule::Blocked, "Stopped: the agent is blocked")
                    .because(because)
                    .seen(seen)
                    .next("remove what blocks it, then `aldis run --continue`");
                return self.finish(Ending::Blocked, decided);
            }
            IterationVerdict::Failed(signal) => {
                let because = with_outranked(signal.text.clone().unwrap_or_else(unexplained));
                let decided = self
                    .decided(Rule::GaveUp, "Failed: the agent gave up")
                    .because(because)
                    .seen(seen)
                    .next("fix the cause, then `aldis run --continue`");
                return self.finish(Ending::Failed, decided);
            }
            IterationVerdict::Asks(signal) => {
                let text =
                    signal.text.clone().unwrap_or_else(|| "The agent needs help.".to_owned());
                let (options, default) = (signal.options.clone(), signal.default.clone());
                let question = QuestionDraft { text, options, default };
                return self.ask(Rule::QuestionAsked, question, seen);
            }
            IterationVerdict::Contradictory => (
                Rule::Contradiction,
                "Ignored the reports: success after failure in one message",
                "the agent reported both, and only one can be true".to_owned(),
                "the agent is asked which of the two is true",
            ),
            IterationVerdict::Done(signal) => (
                Rule::DoneClaimed,
                "The agent claims to be done",
                format!("it reported {}", signal.name),
                match self.start.config.has_check() {
                    true => "the check runs if the work tree is in order",
                    false => "the run is done if the work tree is in order",
                },
            ),
            IterationVerdict::Undecided => (
                Rule::IterationEnded,
                "The agent stopped without reporting done",
                format!("iteration {} ended without a signal that means done", self.iteration),
                "the next iteration starts unless a limit is reached",
            ),
        };
        let decided =
            self.decided(rule, summary).because(with_outranked(because)).seen(seen).next(next);
        self.status = Status::Looking;
        decided.with([Effect::Look])
    }

    /// Asks a human. `rule` says who wants to know.
    pub(super) fn ask(
        &mut self,
        rule: Rule,
        question: QuestionDraft,
        seen: Vec<Evidence>,
    ) -> Outcome {
        let now = self.now();
        self.counts.questions_asked += 1;
        let id = format!("q{}", self.counts.questions_asked);
        self.question = Some(question.clone().named(&id, now));
        let suggestion = question.suggestion();
        let QuestionDraft { text, options, default } = question;
        let (answer, asked) = match suggestion {
            Some(suggestion) => (
                format!("`aldis answer {id} TEXT`; {}", words::inline(&suggestion, SUGGESTION_MAX)),
                format!("{text}\n\n{suggestion}"),
            ),
            None => (format!("`aldis answer {id} TEXT`"), text.clone()),
        };
        if self.start.config.no_wait {
            let decided = self
                .decided(Rule::NeedsHuman, format!("Stopped: question {id} needs an answer"))
                .because(text)
                .seen(seen)
                .next(format!("answer with {answer}, then `aldis run --continue`"))
                .with([Effect::notice(Notice::Question, asked)]);
            return self.finish(Ending::NeedsHuman, decided);
        }
        self.status = Status::Asking;
        self.pause_clocks(now);
        let notice = Effect::notice(Notice::Question, asked);
        self.decided(rule, format!("Waiting for an answer to {id}"))
            .because(text.clone())
            .seen(seen)
            .next(format!("answer with {answer}"))
            .with([Effect::Ask { id, text, options, default }, notice])
    }

    /// The work tree was inspected: a change is evidence of work, and at the end of an iteration it
    /// decides whether a claim is worth a check.
    pub(super) fn on_look(&mut self, tree: &WorkTree) -> Outcome {
        let outcome = match self.keep_tree(tree) {
            true => self.on_activity(),
            false => Outcome::nothing(),
        };
        match self.status {
            Status::Looking => outcome.then(self.judge()),
            Status::Preparing => outcome.then(self.pin()),
            _ => outcome,
        }
    }

    /// Remembers how the work tree is. Returns whether it changed since it was last inspected.
    fn keep_tree(&mut self, tree: &WorkTree) -> bool {
        if tree.error.is_some() {
            self.trees.tree.error.clone_from(&tree.error);
            return false;
        }
        let first = !std::mem::replace(&mut self.trees.base_known, true);
        if first && self.trees.base.is_none() && self.status != Status::Looking {
            self.trees.base.clone_from(&tree.head);
            self.trees.base_fingerprint.clone_from(&tree.fingerprint);
        }
        let changed =
            self.trees.tree.fingerprint != tree.fingerprint || self.trees.tree.head != tree.head;
        self.trees.tree.clone_from(tree);
        changed && !first
    }

    /// The iteration is over and the work tree is known.
    fn judge(&mut self) -> Outcome {
        match IterationVerdict::of(&self.attempt.signals) {
            IterationVerdict::Done(_) => self.judge_claim(),
            IterationVerdict::Contradictory => {
                let because = "the agent reported success after failure in one message";
                let feedback = "Your last message reported success after failure. Report which of the \
                            two is true.";
                self.remember_refusal(because, feedback.to_owned(), self.evidence());
                self.after_iteration(because, self.evidence())
            }
            IterationVerdict::Asks(_)
            | IterationVerdict::Blocked(_)
            | IterationVerdict::Failed(_)
            | IterationVerdict::Undecided => {
                let because = "the agent stopped without reporting done";
                self.after_iteration(because, self.evidence())
            }
        }
    }

    fn judge_claim(&mut self) -> Outcome {
        let lacking = self.lacking().join("; ");
        if !lacking.is_empty() {
            let feedback = format!("You reported done, but {lacking}.");
            let seen = self.evidence();
            return self.refuse((Rule::ClaimRefused, &lacking), feedback, seen);
        }
        if self.start.config.proof.is_active() {
            return self.check_claim();
        }
        if self.start.config.verify {
            self.status = Status::Checking;
            return self
                .decided(Rule::CheckStarted, "Running the check")
                .because("the agent claims to be done, and the work tree is in order")
                .next("the run is done if the check passes")
                .with([Effect::Check]);
        }
        self.finish_done("Done", "no check is configured")
    }

    /// Whether the claim that counts says that there was nothing to do.
    pub(super) fn claims_no_op(&self) -> bool {
        let verdict = IterationVerdict::of(&self.attempt.signals);
        matches!(verdict, IterationVerdict::Done(claim) if claim.no_op)
    }

    /// What the work tree says against a claim, as clauses.
    fn lacking(&self) -> Vec<String> {
        self.lacking_in(&self.trees.tree)
    }

    /// Returns what this work tree says against a claim to be done, as clauses.
    pub fn lacking_in(&self, tree: &WorkTree) -> Vec<String> {
        let WorkTree { head, dirty, conflicts, error, .. } = tree;
        let no_op = self.claims_no_op();
        let resolves = self.attempt.signals.iter().any(RunSignal::resolves_merge);
        // Where there was nothing to do, nothing was changed and no commit is missing.
        let must_be_clean = self.start.config.require_clean || no_op;
        let must_commit = self.start.config.require_commit && !no_op;
        if let Some(error) = error.as_ref().filter(|_| resolves || must_be_clean || must_commit) {
            return vec![format!("the work tree could not be inspected ({error})")];
        }
        let mut lacking = Vec::new();
        if resolves && *conflicts {
            lacking.push("conflict markers are left".to_owned());
        }
        if must_be_clean && *dirty {
            lacking.push("there are uncommitted changes".to_owned());
        }
        if must_commit && *head == self.trees.base {
            lacking.push("there is no commit since the run began".to_owned());
        }
        lacking
    }

    /// The check has the last word.
    pub(super) fn on_check(&mut self, passed: bool, output: &str) -> Outcome {
        if self.status != Status::Checking {
            return Outcome::nothing();
        }
        if passed {
            return self.finish_done("Done and verified", "the check passed");
        }
        let output = end_of(output.trim_end(), OUTPUT_MAX, &Token::Off);
        let feedback = match prompt::block(&output) {
            shown if shown.is_empty() => {
                "You reported done, but the check failed without any output.".to_owned()
            }
            shown => {
                format!("You reported done, but the check failed. Its output ends with:\n\n{shown}")
            }
        };
        let mut seen = self.evidence();
        seen.push(Evidence::new("output", output));
        self.refuse((Rule::CheckFailed, "the check failed"), feedback, seen)
    }

    /// A claim that does not hold. A merge that is not resolved again and again needs a human.
    pub(super) fn refuse(
        &mut self,
        (rule, because): (Rule, &str),
        feedback: String,
        seen: Vec<Evidence>,
    ) -> Outcome {
        let refused = self
            .decided(rule, format!("Refused the done claim: {because}"))
            .because(format!("the agent claimed to be done in iteration {}", self.iteration))
            .seen(seen.clone())
            .next("the agent gets this in its next prompt");
        self.remember_refusal(because, feedback, seen.clone());
        if self.attempt.signals.iter().any(RunSignal::resolves_merge) {
            self.counts.refused_resolutions += 1;
            if self.counts.refused_resolutions >= self.start.config.max_attempts {
                let attempts = std::mem::take(&mut self.counts.refused_resolutions);
                let attempts = counted(attempts, "attempt");
                let text = format!("The merge is not resolved after {attempts}: {because}.");
                return refused.then(self.ask(
                    Rule::AttemptsUsedUp,
                    QuestionDraft::new(text),
                    seen,
                ));
            }
        }
        refused.then(self.after_iteration(&format!("the done claim was refused: {because}"), seen))
    }

    /// Remembers why a claim does not hold. The agent is told in the next prompt, and in each one after
    /// it until it claims to be done again.
    pub(super) fn remember_refusal(
        &mut self,
        because: &str,
        feedback: String,
        evidence: Vec<Evidence>,
    ) {
        let (iteration, because) = (self.iteration, because.to_owned());
        self.add_feedback(feedback.clone());
        self.memory.last_refusal = Some(ClaimRefusal { iteration, because, evidence, feedback });
    }

    pub(super) fn finish_done(&mut self, how: &str, checked: &str) -> Outcome {
        let name = match IterationVerdict::of(&self.attempt.signals) {
            IterationVerdict::Done(signal) => signal.name.clone(),
            _ => "done".to_owned(),
        };
        let mut seen = self.evidence();
        seen.extend(self.proof.round().into_iter().flat_map(evidence));
        let remarks = self.proof.verdict().map(Verdict::because).unwrap_or_default();
        let next = match &*remarks {
            "" => "nothing to do".to_owned(),
            remarks => format!("review this before you rely on it: {remarks}"),
        };
        let decided = self
            .decided(Rule::Done, format!("{how} after {}", counted(self.iteration, "iteration")))
            .because(format!("the agent reported {name}, and {checked}"))
            .seen(seen)
            .next(next);
        self.finish(Ending::Done, decided)
    }

    /// The iteration is over and the work is not done.
    fn after_iteration(&mut self, because: &str, seen: Vec<Evidence>) -> Outcome {
        let observed = Observation::IterationEnded { iteration: self.iteration };
        let change = self.monitor.observe(self.now(), &observed);
        let notice = match self.between_iterations(change.as_ref()) {
            Ok(notice) => notice,
            Err(ended) => return ended,
        };
        let because = match &change {
            Some(change) if notice.is_some() => format!("{because}; {}", change.because),
            _ => because.to_owned(),
        };
        let used_up = self.iteration >= self.start.config.max_iterations;
        let reached = used_up.then_some(Ending::IterationsUsedUp).or_else(|| self.exhausted());
        let mut outcome = match reached {
            Some(ending) => self.end_with(ending),
            None => self.next_iteration(&because, seen),
        };
        outcome.effects.splice(0..0, notice);
        outcome
    }

    /// The limit of money, tokens or time that is reached.
    pub(super) fn exhausted(&self) -> Option<Ending> {
        if self.is_over_budget() {
            Some(Ending::OverBudget)
        } else {
            self.is_out_of_time().then_some(Ending::TimedOut)
        }
    }

    pub(super) fn is_over_budget(&self) -> bool {
        self.uses_of_budget(3)
    }

    /// Whether so many thirds of the tokens or of the money are used.
    pub(super) fn uses_of_budget(&self, thirds: u64) -> bool {
        let config = &self.start.config;
        let used = self.cost().reaches(thirds, config.max_tokens, config.max_micro_dollars);
        used.contains(&true)
    }

    pub(super) fn is_out_of_time(&self) -> bool {
        self.worked_since_opened(self.now()) >= self.start.config.timeout.saturating_mul(1_000)
    }

    pub(super) fn next_iteration(&mut self, because: &str, seen: Vec<Evidence>) -> Outcome {
        self.drop_given_feedback();
        self.iteration += 1;
        self.counts.starts = 0;
        let look = (self.iteration == 1 && !self.trees.base_known).then_some(Effect::Look);
        let started = self.start_attempt();
        let (iteration, most) = (self.iteration, self.start.config.max_iterations);
        self.decided(Rule::IterationStarted, format!("Starting iteration {iteration} of {most}"))
            .because(because)
            .seen(seen)
            .next("nothing to do; `aldis abort` ends the run")
            .with(look)
            .with([started])
    }

    /// Starts the agent for the current iteration. Its prompt holds all feedback that no completed
    /// iteration has had yet, so an iteration that is repeated gets the same again.
    pub(super) fn start_attempt(&mut self) -> Effect {
        self.counts.starts = self.counts.starts.saturating_add(1);
        let prompt = self.prompt();
        self.memory.feedback_given = self.memory.feedback.len();
        // The cost of an agent that was lost was not reported to the end.
        self.settle_costs();
        self.status = Status::Working;
        self.clock.iteration_started_at = self.now();
        self.attempt = Attempt::default();
        Effect::Start { iteration: self.iteration, prompt }
    }

    /// Concludes an iteration whose work tree nobody inspects: a driver of 0.1.0 started the next one at
    /// once, and its journals are still replayed.
    pub(super) fn conclude_without_look(&mut self) -> Outcome {
        match IterationVerdict::of(&self.attempt.signals) {
            IterationVerdict::Done(_) => Outcome::nothing(),
            _ if self.status == Status::Looking => self.judge(),
            _ => Outcome::nothing(),
        }
    }

    /// Adds the cost of this attempt to that of the earlier ones.
    fn settle_costs(&mut self) {
        self.spending.spent_before = self.cost();
        self.spending.spent_now = Usage::default();
    }
}
