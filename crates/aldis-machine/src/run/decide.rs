//! What follows the end of an iteration, in the order of the specification: crash, blocked, help,
//! done and verified, the limit, the next iteration.

use std::time::Duration;

use super::event::{Effect, Exit, Heard, Notice, Tree};
use super::prompt;
use super::state::{Ending, Limit, Outcome, Question, State, Status};
use crate::stagnation::Observation;
use crate::{Decision, Evidence};
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// How much of a check's output the agent is shown.
const OUTPUT_MAX: usize = 4_000;
/// How long a limit is waited for. The longest that services have is a week.
const LIMIT_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// The agent's process has ended.
pub(super) fn on_exit(state: &mut State, now: Timestamp, exit: Exit) -> Outcome {
    if !state.has_agent() {
        return Outcome::nothing();
    }
    state.last_exit = Some(exit);
    state.agent = None;
    state.retrying = false;
    state.wake(now);
    settle_costs(state);
    let evidence = evidence(&state.said);
    if let Status::Ending { with: Some(ending) } = state.status {
        let decision = ended(state, ending).seen(evidence);
        return finish(state, ending, decision, Vec::new());
    }
    let asked_to_stop = matches!(state.status, Status::Ending { with: None });
    if let Some(Limit { until }) = state.limited.take() {
        return limited(state, now, until);
    }
    state.limit_waits = 0;
    let refused = state.refused.take();
    if !exit.is_clean() && !asked_to_stop || refused.is_some() {
        let decision = crashed(state, exit, refused).seen(evidence);
        return finish(state, Ending::Crashed, decision, Vec::new());
    }
    claimed(state, now, evidence)
}

/// Says that the agent did not end by its own will.
fn crashed(state: &State, exit: Exit, refused: Option<String>) -> Decision {
    if let Some(what) = refused {
        return state
            .decision("1", "The run failed: the host cannot work")
            .because(what)
            .next("waiting does not help: look at login, account and request, then continue");
    }
    let how = spoken(exit);
    state
        .decision("1", "The run failed: the agent crashed")
        .because(format!("its process ended {how}, which outranks whatever it said"))
        .next("look at the log, remove the cause and start again")
}

/// What the agent said decides.
fn claimed(state: &mut State, now: Timestamp, evidence: Vec<Evidence>) -> Outcome {
    let said = |meaning: Meaning| state.said.iter().rfind(|heard| heard.meaning == meaning);
    if let Some(blocked) = said(Meaning::Blocked) {
        let why = blocked.text.clone().unwrap_or_else(|| "it does not say by what".to_owned());
        let decision = state
            .decision("2", "The run is blocked")
            .because(why)
            .seen(evidence)
            .next("remove what blocks it and continue the run");
        return finish(state, Ending::Blocked, decision, Vec::new());
    }
    let asks = said(Meaning::NeedsHuman).or_else(|| said(Meaning::NeedsHelp));
    if let Some(asks) = asks {
        let text = asks.text.clone().unwrap_or_else(|| "The agent needs help.".to_owned());
        return ask(state, now, text, evidence);
    }
    if contradicts(&state.said) {
        state.feedback.push(
            "Your last message reported success after failure. Say which of the two it is."
                .to_owned(),
        );
        return after_iteration(state, now, "the agent contradicted itself", evidence);
    }
    // The agent's latest word counts.
    let verdict = |heard: &&Heard| matches!(heard.meaning, Meaning::Done | Meaning::Failed);
    let verdict = state.said.iter().rfind(verdict);
    if let Some(failed) = verdict.filter(|heard| heard.meaning == Meaning::Failed) {
        let why = failed.text.clone().unwrap_or_else(|| "it does not say why".to_owned());
        let decision = state
            .decision("3", "The run failed: the agent gave up")
            .because(why)
            .seen(evidence)
            .next("look at what it said, then start again");
        return finish(state, Ending::Failed, decision, Vec::new());
    }
    if verdict.is_some() {
        state.status = Status::Looking;
        let decision = state
            .decision("4", "Heard that the work is done")
            .because("the agent said so")
            .seen(evidence)
            .next("the work tree is looked at, then the check runs");
        return Outcome::decided([Effect::Look], decision);
    }
    after_iteration(state, now, "the agent stopped without saying that it is done", evidence)
}

/// Success after failure in one message is neither.
fn contradicts(said: &[Heard]) -> bool {
    let failed = said.iter().position(|heard| heard.meaning == Meaning::Failed);
    failed.is_some_and(|at| {
        let later = &said[at + 1..];
        later.iter().any(|h| h.meaning == Meaning::Done && h.message == said[at].message)
    })
}

fn ask(state: &mut State, now: Timestamp, text: String, evidence: Vec<Evidence>) -> Outcome {
    state.questions += 1;
    let id = format!("q{}", state.questions);
    state.question = Some(Question { id: id.clone(), text: text.clone(), asked_at: now });
    if state.config.no_wait {
        let decision = state
            .decision("3", "The run waits for a human")
            .because(text)
            .seen(evidence)
            .next(format!("answer with `aldis answer {id} TEXT`, then continue the run"));
        return finish(state, Ending::NeedsHuman, decision, Vec::new());
    }
    state.status = Status::Asking;
    state.wait(now);
    let decision = state
        .decision("3", "Asked a human")
        .because(text.clone())
        .seen(evidence)
        .next(format!("answer with `aldis answer {id} TEXT`"));
    let notice = Effect::Notice { notice: Notice::Question, text: text.clone() };
    Outcome::decided([Effect::Ask { id, text }, notice], decision)
}

/// How the work tree stands decides whether a claim is worth a check.
pub(super) fn on_look(state: &mut State, now: Timestamp, tree: &Tree) -> Outcome {
    if !state.based && state.base.is_none() && state.status != Status::Looking {
        state.base.clone_from(&tree.head);
    }
    state.based = true;
    let moved = state.tree.fingerprint.is_some() && state.tree.fingerprint != tree.fingerprint;
    state.tree.clone_from(tree);
    if state.status != Status::Looking {
        return if moved { super::listen::on_work(state, now) } else { Outcome::nothing() };
    }
    let lacking = lacking(state);
    if lacking.is_empty() && state.config.verify {
        state.status = Status::Checking;
        let because = "a claim counts when the check passes";
        let decision = state.decision("4", "Checks the claim").because(because).next("wait for it");
        return Outcome::decided([Effect::Check], decision);
    }
    if lacking.is_empty() {
        return done(state, "the agent said so, and no check was asked for");
    }
    let lacking = lacking.join("; ");
    state.feedback.push(format!("You said that the work is done, but {lacking}."));
    refused(state, now, &format!("done was claimed, but {lacking}"), Vec::new())
}

/// A claim that does not count. A merge that is resolved in vain again and again needs a human.
fn refused(state: &mut State, now: Timestamp, because: &str, evidence: Vec<Evidence>) -> Outcome {
    if claims_resolution(state) {
        state.attempts += 1;
        if state.attempts >= state.config.max_attempts {
            let attempts = std::mem::take(&mut state.attempts);
            let text =
                format!("The conflicts were not resolved in {attempts} attempts: {because}.");
            return ask(state, now, text, evidence);
        }
    }
    after_iteration(state, now, because, evidence)
}

fn claims_resolution(state: &State) -> bool {
    state.said.iter().any(|heard| heard.name == "RESOLVED")
}

/// What a claim still lacks, in words.
fn lacking(state: &State) -> Vec<&'static str> {
    let Tree { head, dirty, conflicts, .. } = &state.tree;
    let no_op = state.said.iter().any(|heard| heard.meaning == Meaning::Done && heard.no_op);
    let mut lacking = Vec::new();
    if claims_resolution(state) && *conflicts {
        lacking.push("there are conflict markers left");
    }
    // Where there was nothing to do, nothing was changed and no commit is missing.
    if (state.config.require_clean || no_op) && *dirty {
        lacking.push("there are changes that are not committed");
    }
    if state.config.require_commit && !no_op && *head == state.base {
        lacking.push("there is no commit since the run began");
    }
    lacking
}

/// The check has the last word.
pub(super) fn on_check(state: &mut State, now: Timestamp, passed: bool, output: &str) -> Outcome {
    if state.status != Status::Checking {
        return Outcome::nothing();
    }
    if passed {
        return done(state, "the agent said so, and the check passed");
    }
    let output = tail(output);
    state.feedback.push(format!(
        "You said that the work is done, but the check failed. Its output ends with:\n\n{}",
        prompt::quoted(&output)
    ));
    let quote = Evidence { what: "said".to_owned(), quote: output, ..Evidence::default() };
    refused(state, now, "done was claimed, but the check failed", vec![quote])
}

fn done(state: &mut State, because: &str) -> Outcome {
    let count = state.iteration;
    let decision = state
        .decision("4", format!("Done after {count} {}", plural(count)))
        .because(because)
        .seen(evidence(&state.said))
        .next("nothing to do");
    finish(state, Ending::Done, decision, Vec::new())
}

/// The iteration is over and the work is not done.
fn after_iteration(
    state: &mut State,
    now: Timestamp,
    because: &str,
    evidence: Vec<Evidence>,
) -> Outcome {
    let observed = Observation::IterationEnded { iteration: state.iteration };
    let change = state.monitor.observe(now, &observed);
    let mut told = Vec::new();
    if let Some(outcome) = super::listen::between(state, change.as_ref(), &mut told) {
        return outcome;
    }
    let because = match &change {
        Some(change) if !told.is_empty() => format!("{because}; {}", change.because),
        _ => because.to_owned(),
    };
    let mut outcome = match used_up(state, now, &evidence) {
        Some(outcome) => outcome,
        None => next_iteration(state, now, &because, evidence),
    };
    outcome.effects.splice(0..0, told);
    outcome
}

/// A limit that is reached before the next iteration.
fn used_up(state: &mut State, now: Timestamp, evidence: &[Evidence]) -> Option<Outcome> {
    let ending = if state.iteration >= state.config.max_iterations {
        Ending::IterationsUsedUp
    } else if over_budget(state) {
        Ending::OverBudget
    } else if state.worked(now) >= state.config.timeout.saturating_mul(1_000) {
        Ending::TimedOut
    } else {
        return None;
    };
    let decision = ended(state, ending).seen(evidence.to_vec());
    Some(finish(state, ending, decision, Vec::new()))
}

pub(super) fn over_budget(state: &State) -> bool {
    let cost = state.cost();
    state.config.max_tokens.is_some_and(|most| cost.tokens >= most)
        || state.config.max_micro_dollars.is_some_and(|most| cost.micro_dollars >= most)
}

/// Says how a run ended that did not end by itself.
pub(super) fn ended(state: &State, ending: Ending) -> Decision {
    let (summary, because, next) = match ending {
        Ending::IterationsUsedUp => (
            "The run ended: no iterations left",
            format!("{} iterations were allowed", state.config.max_iterations),
            "continue it with a higher --max-iterations",
        ),
        Ending::OverBudget => (
            "The run ended: the budget is used up",
            "the host reported more than was allowed".to_owned(),
            "continue it with a higher budget",
        ),
        Ending::TimedOut => (
            "The run ended: no time left",
            format!("{} s were allowed", state.config.timeout),
            "continue it with a longer --total-timeout",
        ),
        Ending::Stagnated => (
            "The run ended: nothing moved any more",
            "see the warnings before".to_owned(),
            "look at where it got stuck; uncommitted work is on a branch of its own",
        ),
        _ => ("The run ended", "a human asked for it".to_owned(), "start again when you like"),
    };
    state.decision("5", summary).because(because).next(next)
}

pub(super) fn next_iteration(
    state: &mut State,
    now: Timestamp,
    because: &str,
    evidence: Vec<Evidence>,
) -> Outcome {
    state.iteration += 1;
    let mut effects = Vec::new();
    if state.iteration == 1 {
        effects.push(Effect::Look);
    }
    start(state, now, &mut effects);
    let decision = state
        .decision("6", format!("Started iteration {}", state.iteration))
        .because(because)
        .seen(evidence)
        .next("the agent works; watch it, or end it with `aldis abort`");
    Outcome::decided(effects, decision)
}

/// Starts the agent with a prompt of its own for this iteration.
pub(super) fn start(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let prompt = prompt::compose(state);
    // What an agent that was lost had spent is spent.
    settle_costs(state);
    state.status = Status::Working;
    state.retrying = false;
    state.iteration_started_at = now;
    state.said.clear();
    state.own_iteration = None;
    state.claimed_at = None;
    state.limited = None;
    state.refused = None;
    state.feedback.clear();
    effects.push(Effect::Start { iteration: state.iteration, prompt });
}

/// Waits for a limit, then goes on with the same iteration.
fn limited(state: &mut State, now: Timestamp, until: Option<Timestamp>) -> Outcome {
    state.limit_waits += 1;
    if state.limit_waits > state.config.max_limit_waits {
        let waits = state.config.max_limit_waits;
        let decision = state
            .decision("5", "The run ended: the service does not work")
            .because(format!("it refused {waits} times in a row"))
            .next("continue the run when the service works again");
        return finish(state, Ending::TimedOut, decision, Vec::new());
    }
    let pause = Duration::from_secs(state.config.limit_wait);
    let until = until.filter(|until| *until > now).unwrap_or_else(|| now.after(pause));
    let until = until.min(now.after(LIMIT_MAX));
    state.status = Status::Limited { until };
    state.wait(now);
    let decision = state
        .decision("limit", format!("Waits until {until}"))
        .because("the service refuses to work for now; the iteration is not counted")
        .next("it goes on by itself with the same iteration");
    let text = format!("The service refuses to work; waiting until {until}.");
    let effects = vec![Effect::Notice { notice: Notice::RateLimit, text }];
    Outcome::decided(effects, decision)
}

/// Ends the run.
pub(super) fn finish(
    state: &mut State,
    ending: Ending,
    decision: Decision,
    mut effects: Vec<Effect>,
) -> Outcome {
    let partial = !matches!(ending, Ending::Done | Ending::NeedsHuman | Ending::Blocked);
    // Something may have changed since the last look; whoever keeps it sees whether there is anything.
    let may_be_dirty = state.tree.dirty || state.tree.fingerprint.is_some();
    if partial && state.config.stagnation.commit_partial_work && may_be_dirty {
        effects.push(Effect::KeepWork);
    }
    state.cut_off = matches!(state.status, Status::Ending { with: Some(_) })
        || matches!(ending, Ending::Aborted | Ending::Crashed | Ending::NeedsHuman);
    state.status = Status::Ended { ending };
    let text = format!("{}: {}", decision.summary, decision.because);
    effects.push(Effect::Notice { notice: Notice::RunEnded, text });
    effects.push(Effect::Finish { ending });
    Outcome::decided(effects, decision)
}

pub(super) fn evidence(said: &[Heard]) -> Vec<Evidence> {
    let quoted = |heard: &Heard| Evidence {
        what: "signal".to_owned(),
        name: Some(heard.name.clone()),
        quote: heard.quote.clone(),
        line: Some(heard.line),
        ..Evidence::default()
    };
    said.iter().map(quoted).collect()
}

/// What this iteration cost belongs to the past.
fn settle_costs(state: &mut State) {
    state.spent = state.cost();
    state.spending = super::event::Usage::default();
}

fn spoken(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("with code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "in an unknown way".to_owned(),
    }
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "iteration" } else { "iterations" }
}

/// The end of a text.
fn tail(text: &str) -> String {
    match text.char_indices().rev().nth(OUTPUT_MAX - 1) {
        Some((at, _)) => format!("…{}", &text[at..]),
        None => text.to_owned(),
    }
}
