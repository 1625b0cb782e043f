//! What follows the end of an iteration, in the order of the specification: crash, blocked, help,
//! done and verified, the limits, the next iteration.

use super::ending::{ended, evidence, finish};
use super::event::{AgentExit, Effect, Notice, Usage, WorkTree};
use super::prompt::{self, add_feedback};
use super::rule::Rule;
use super::signal::RunSignal;
use super::state::{ClaimRefusal, Ending, Outcome, Question, State, Status};
use super::{levels, waits};
use crate::Evidence;
use crate::evidence::ending as end_of;
use crate::stagnation::Observation;
use crate::words::counted;
use aldis_signal::scan::Token;
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// How much of a check's or a crashed agent's output is kept.
const OUTPUT_MAX: usize = 4_000;

/// What the signals of an iteration amount to. The order is that of the specification.
enum Verdict<'s> {
    Blocked(&'s RunSignal),
    Asks(&'s RunSignal),
    /// Success after failure in one message is neither.
    Contradictory,
    Failed(&'s RunSignal),
    Done(&'s RunSignal),
    Undecided,
}

impl<'s> Verdict<'s> {
    fn of(signals: &'s [RunSignal]) -> Self {
        let last = |meaning: Meaning| signals.iter().rfind(|signal| signal.meaning == meaning);
        if let Some(blocked) = last(Meaning::Blocked) {
            return Self::Blocked(blocked);
        }
        if let Some(asks) = last(Meaning::NeedsHuman).or_else(|| last(Meaning::NeedsHelp)) {
            return Self::Asks(asks);
        }
        if contradicts(signals) {
            return Self::Contradictory;
        }
        let ends = |signal: &&RunSignal| matches!(signal.meaning, Meaning::Done | Meaning::Failed);
        match signals.iter().rfind(ends) {
            Some(failed) if failed.meaning == Meaning::Failed => Self::Failed(failed),
            Some(done) => Self::Done(done),
            None => Self::Undecided,
        }
    }
}

fn contradicts(signals: &[RunSignal]) -> bool {
    let failed = signals.iter().position(|signal| signal.meaning == Meaning::Failed);
    failed.is_some_and(|at| {
        let is_success = |later: &RunSignal| {
            later.meaning == Meaning::Done && later.message == signals[at].message
        };
        signals[at + 1..].iter().any(is_success)
    })
}

/// The agent's process has ended.
pub(super) fn on_exit(state: &mut State, now: Timestamp, exit: &AgentExit) -> Outcome {
    if !state.has_agent() {
        return Outcome::nothing();
    }
    let exit = AgentExit { output: end_of(&exit.output, OUTPUT_MAX, &Token::Off), ..exit.clone() };
    state.last_exit = Some(exit.clone());
    state.agent = None;
    state.retrying = false;
    state.resume_clocks(now);
    settle_costs(state);
    if let Status::Ending { with: Some(ending) } = state.status {
        let decision = ended(state, ending);
        return finish(state, ending, decision, Vec::new());
    }
    let asked_to_stop = matches!(state.status, Status::Ending { with: None });
    if let Some(limit) = state.limit.take() {
        return waits::limited(state, now, &limit);
    }
    state.limit_waits = 0;
    if let Some(what) = state.host_error.take() {
        return waits::host_failed(state, what);
    }
    if !exit.is_clean() && !asked_to_stop {
        return waits::crashed(state, now, exit);
    }
    (state.crashes, state.last_crash) = (0, None);
    if asked_to_stop && matches!(Verdict::of(&state.signals), Verdict::Undecided) {
        // It ran out of time before it could act on its feedback: the next prompt has it again.
        state.feedback_given = 0;
    }
    stopped(state, now)
}

/// The agent stopped by itself, or was asked to: its reports decide.
fn stopped(state: &mut State, now: Timestamp) -> Outcome {
    let unexplained = || "the agent did not say why".to_owned();
    let seen = evidence(&state.signals);
    let (rule, summary, because, next) = match Verdict::of(&state.signals) {
        Verdict::Blocked(signal) => {
            let because = signal.text.clone().unwrap_or_else(unexplained);
            let decision = state
                .decision(Rule::Blocked, "Stopped: the agent is blocked")
                .because(because)
                .seen(seen)
                .next("remove what blocks it, then `aldis run --continue`");
            return finish(state, Ending::Blocked, decision, Vec::new());
        }
        Verdict::Failed(signal) => {
            let because = signal.text.clone().unwrap_or_else(unexplained);
            let decision = state
                .decision(Rule::GaveUp, "Failed: the agent gave up")
                .because(because)
                .seen(seen)
                .next("fix the cause, then `aldis run --continue`");
            return finish(state, Ending::Failed, decision, Vec::new());
        }
        Verdict::Asks(signal) => {
            let text = signal.text.clone().unwrap_or_else(|| "The agent needs help.".to_owned());
            return ask(state, now, Rule::QuestionAsked, text, seen);
        }
        Verdict::Contradictory => (
            Rule::Contradiction,
            "Ignored the reports: success after failure in one message",
            "the agent reported both, and only one can be true".to_owned(),
            "the agent is asked which of the two is true",
        ),
        Verdict::Done(signal) => (
            Rule::DoneClaimed,
            "The agent claims to be done",
            format!("it reported {}", signal.name),
            match state.config.verify {
                true => "the check runs if the work tree is in order",
                false => "the run is done if the work tree is in order",
            },
        ),
        Verdict::Undecided => (
            Rule::IterationEnded,
            "The agent stopped without reporting done",
            format!("iteration {} ended without a signal that means done", state.iteration),
            "the next iteration starts unless a limit is reached",
        ),
    };
    let decision = state.decision(rule, summary).because(because).seen(seen).next(next);
    state.status = Status::Looking;
    Outcome::decided([Effect::Look], decision)
}

/// Asks a human. `rule` says who wants to know.
fn ask(
    state: &mut State,
    now: Timestamp,
    rule: Rule,
    text: String,
    seen: Vec<Evidence>,
) -> Outcome {
    state.questions_asked += 1;
    let id = format!("q{}", state.questions_asked);
    state.question = Some(Question { id: id.clone(), text: text.clone(), asked_at: now });
    let answer = format!("`aldis answer {id} TEXT`");
    if state.config.no_wait {
        let decision = state
            .decision(Rule::NeedsHuman, format!("Stopped: question {id} needs an answer"))
            .because(text)
            .seen(seen)
            .next(format!("answer with {answer}, then `aldis run --continue`"));
        return finish(state, Ending::NeedsHuman, decision, Vec::new());
    }
    state.status = Status::Asking;
    state.pause_clocks(now);
    let decision = state
        .decision(rule, format!("Waiting for an answer to {id}"))
        .because(text.clone())
        .seen(seen)
        .next(format!("answer with {answer}"));
    let notice = Effect::Notice { notice: Notice::Question, text: text.clone() };
    Outcome::decided([Effect::Ask { id, text }, notice], decision)
}

/// The work tree was inspected: a change is evidence of work, and at the end of an iteration it
/// decides whether a claim is worth a check.
pub(super) fn on_look(state: &mut State, now: Timestamp, tree: &WorkTree) -> Outcome {
    let mut outcome = match keep_tree(state, tree) {
        true => super::events::on_activity(state, now),
        false => Outcome::nothing(),
    };
    if state.status == Status::Looking {
        let judged = judge(state, now);
        outcome.effects.extend(judged.effects);
        outcome.decisions.extend(judged.decisions);
    }
    outcome
}

/// Remembers how the work tree is. Returns whether it changed since it was last inspected.
fn keep_tree(state: &mut State, tree: &WorkTree) -> bool {
    if tree.error.is_some() {
        state.tree.error.clone_from(&tree.error);
        return false;
    }
    let first = !std::mem::replace(&mut state.base_known, true);
    if first && state.base.is_none() && state.status != Status::Looking {
        state.base.clone_from(&tree.head);
        state.base_fingerprint.clone_from(&tree.fingerprint);
    }
    let changed = state.tree.fingerprint != tree.fingerprint || state.tree.head != tree.head;
    state.tree.clone_from(tree);
    changed && !first
}

/// The iteration is over and the work tree is known.
fn judge(state: &mut State, now: Timestamp) -> Outcome {
    match Verdict::of(&state.signals) {
        Verdict::Done(_) => judge_claim(state, now),
        Verdict::Contradictory => {
            let because = "the agent reported success after failure in one message";
            let feedback = "Your last message reported success after failure. Report which of the \
                            two is true.";
            remember_refusal(state, because, evidence(&state.signals));
            add_feedback(state, feedback.to_owned());
            after_iteration(state, now, because, evidence(&state.signals))
        }
        Verdict::Asks(_) | Verdict::Blocked(_) | Verdict::Failed(_) | Verdict::Undecided => {
            let because = "the agent stopped without reporting done";
            after_iteration(state, now, because, evidence(&state.signals))
        }
    }
}

fn judge_claim(state: &mut State, now: Timestamp) -> Outcome {
    let lacking = lacking(state).join("; ");
    if !lacking.is_empty() {
        let feedback = format!("You reported done, but {lacking}.");
        let seen = evidence(&state.signals);
        return refuse(state, now, (Rule::ClaimRefused, &lacking), feedback, seen);
    }
    if state.config.verify {
        state.status = Status::Checking;
        let decision = state
            .decision(Rule::CheckStarted, "Running the check")
            .because("the agent claims to be done, and the work tree is in order")
            .next("the run is done if the check passes");
        return Outcome::decided([Effect::Check], decision);
    }
    done(state, "Done", "no check is configured")
}

/// What the work tree says against a claim, as clauses.
fn lacking(state: &State) -> Vec<String> {
    let WorkTree { head, dirty, conflicts, error, .. } = &state.tree;
    let no_op = state.signals.iter().any(|it| it.meaning == Meaning::Done && it.no_op);
    let resolves = state.signals.iter().any(RunSignal::resolves_merge);
    // Where there was nothing to do, nothing was changed and no commit is missing.
    let must_be_clean = state.config.require_clean || no_op;
    let must_commit = state.config.require_commit && !no_op;
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
    if must_commit && *head == state.base {
        lacking.push("there is no commit since the run began".to_owned());
    }
    lacking
}

/// The check has the last word.
pub(super) fn on_check(state: &mut State, now: Timestamp, passed: bool, output: &str) -> Outcome {
    if state.status != Status::Checking {
        return Outcome::nothing();
    }
    if passed {
        return done(state, "Done and verified", "the check passed");
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
    let mut seen = evidence(&state.signals);
    seen.push(Evidence::new("output", output));
    refuse(state, now, (Rule::CheckFailed, "the check failed"), feedback, seen)
}

/// A claim that does not hold. A merge that is not resolved again and again needs a human.
fn refuse(
    state: &mut State,
    now: Timestamp,
    (rule, because): (Rule, &str),
    feedback: String,
    seen: Vec<Evidence>,
) -> Outcome {
    let decision = state
        .decision(rule, format!("Refused the done claim: {because}"))
        .because(format!("the agent claimed to be done in iteration {}", state.iteration))
        .seen(seen.clone())
        .next("the agent gets this in its next prompt");
    remember_refusal(state, because, seen.clone());
    add_feedback(state, feedback);
    let mut next = None;
    if state.signals.iter().any(RunSignal::resolves_merge) {
        state.refused_resolutions += 1;
        if state.refused_resolutions >= state.config.max_attempts {
            let attempts = std::mem::take(&mut state.refused_resolutions);
            let attempts = counted(attempts, "attempt");
            let text = format!("The merge is not resolved after {attempts}: {because}.");
            next = Some(ask(state, now, Rule::AttemptsUsedUp, text, seen.clone()));
        }
    }
    let mut next = match next {
        Some(asked) => asked,
        None => {
            after_iteration(state, now, &format!("the done claim was refused: {because}"), seen)
        }
    };
    next.decisions.insert(0, decision);
    next
}

fn remember_refusal(state: &mut State, because: &str, evidence: Vec<Evidence>) {
    let (iteration, because) = (state.iteration, because.to_owned());
    state.last_refusal = Some(ClaimRefusal { iteration, because, evidence });
}

fn done(state: &mut State, how: &str, checked: &str) -> Outcome {
    let name = match Verdict::of(&state.signals) {
        Verdict::Done(signal) => signal.name.clone(),
        _ => "done".to_owned(),
    };
    let decision = state
        .decision(Rule::Done, format!("{how} after {}", counted(state.iteration, "iteration")))
        .because(format!("the agent reported {name}, and {checked}"))
        .seen(evidence(&state.signals))
        .next("nothing to do");
    finish(state, Ending::Done, decision, Vec::new())
}

/// The iteration is over and the work is not done.
fn after_iteration(
    state: &mut State,
    now: Timestamp,
    because: &str,
    seen: Vec<Evidence>,
) -> Outcome {
    let observed = Observation::IterationEnded { iteration: state.iteration };
    let change = state.monitor.observe(now, &observed);
    let mut notices = Vec::new();
    if let Some(outcome) = levels::between_iterations(state, now, change.as_ref(), &mut notices) {
        return outcome;
    }
    let because = match &change {
        Some(change) if !notices.is_empty() => format!("{because}; {}", change.because),
        _ => because.to_owned(),
    };
    let mut outcome = match used_up(state, now) {
        Some(outcome) => outcome,
        None => next_iteration(state, now, &because, seen),
    };
    outcome.effects.splice(0..0, notices);
    outcome
}

/// Ends the run if a limit is reached before the next iteration.
fn used_up(state: &mut State, now: Timestamp) -> Option<Outcome> {
    let ending = if state.iteration >= state.config.max_iterations {
        Ending::IterationsUsedUp
    } else {
        exhausted(state, now)?
    };
    let decision = ended(state, ending);
    Some(finish(state, ending, decision, Vec::new()))
}

/// The limit of money, tokens or time that is reached.
pub(super) fn exhausted(state: &State, now: Timestamp) -> Option<Ending> {
    if over_budget(state) {
        Some(Ending::OverBudget)
    } else {
        out_of_time(state, now).then_some(Ending::TimedOut)
    }
}

pub(super) fn over_budget(state: &State) -> bool {
    let cost = state.cost();
    state.config.max_tokens.is_some_and(|most| cost.tokens >= most)
        || state.config.max_micro_dollars.is_some_and(|most| cost.micro_dollars >= most)
}

pub(super) fn out_of_time(state: &State, now: Timestamp) -> bool {
    state.worked(now) >= state.config.timeout.saturating_mul(1_000)
}

pub(super) fn next_iteration(
    state: &mut State,
    now: Timestamp,
    because: &str,
    seen: Vec<Evidence>,
) -> Outcome {
    prompt::drop_given_feedback(state);
    state.iteration += 1;
    state.starts = 0;
    let mut effects = Vec::new();
    if state.iteration == 1 {
        effects.push(Effect::Look);
    }
    start(state, now, &mut effects);
    let (iteration, most) = (state.iteration, state.config.max_iterations);
    let decision = state
        .decision(Rule::IterationStarted, format!("Starting iteration {iteration} of {most}"))
        .because(because)
        .seen(seen)
        .next("nothing to do; `aldis abort` ends the run");
    Outcome::decided(effects, decision)
}

/// Starts the agent for the current iteration. Its prompt holds all feedback that no completed
/// iteration has had yet, so an iteration that is repeated gets the same again.
pub(super) fn start(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    state.starts = state.starts.saturating_add(1);
    let prompt = prompt::compose(state);
    state.feedback_given = state.feedback.len();
    // The cost of an agent that was lost was not reported to the end.
    settle_costs(state);
    state.status = Status::Working;
    state.retrying = false;
    state.iteration_started_at = now;
    state.signals.clear();
    state.reported_iteration = None;
    state.claimed_at = None;
    state.limit = None;
    state.host_error = None;
    state.stop_because = None;
    effects.push(Effect::Start { iteration: state.iteration, prompt });
}

/// Concludes an iteration whose work tree nobody inspects: a driver of 0.1.0 started the next one at
/// once, and its journals are still replayed.
pub(super) fn conclude_without_look(state: &mut State, now: Timestamp) -> Outcome {
    match Verdict::of(&state.signals) {
        Verdict::Done(_) => Outcome::nothing(),
        _ if state.status == Status::Looking => judge(state, now),
        _ => Outcome::nothing(),
    }
}

/// Adds the cost of this attempt to that of the earlier ones.
fn settle_costs(state: &mut State) {
    state.spent_before = state.cost();
    state.spent_now = Usage::default();
}
