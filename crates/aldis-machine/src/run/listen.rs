//! What happens while an agent works, and the words of humans.

use super::decide::{self, ended, finish};
use super::event::{Effect, Heard, Notice, Usage};
use super::state::{Ending, Limit, Outcome, State, Status};
use crate::Evidence;
use crate::evidence::beginning;
use crate::stagnation::{Change, Level, Observation};
use aldis_signal::scan::Token;
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// How many signals of one iteration are remembered.
const SAID_MAX: usize = 64;
/// How much of a human's message is shown to whoever asks why.
const TOLD_QUOTE: usize = 200;

/// The agent was started. Kept at once: after a crash of ours somebody must find it.
pub(super) fn on_launch(state: &mut State, agent: &str) -> Outcome {
    state.agent = Some(agent.to_owned());
    let summary = format!("Started the agent for iteration {}", state.iteration);
    let decision = state.decision("listen", summary).because("it was due").next("it works");
    Outcome::decided([], decision)
}

/// Keeps an answer for when the run is opened again.
pub(super) fn on_late_answer(state: &mut State, id: &str, text: &str) -> Outcome {
    let Some(question) = state.question.take_if(|question| question.id == id) else {
        return Outcome::nothing();
    };
    state.feedback.push(answered(&question.text, text));
    let decision = state
        .decision("answer", "Kept the answer")
        .because("the run has ended")
        .next("continue the run: the agent is told");
    Outcome::decided([], decision)
}

fn answered(question: &str, answer: &str) -> String {
    let [question, answer] = [question, answer].map(super::prompt::quoted);
    format!("You asked:\n\n{question}\nThe answer:\n\n{answer}")
}

/// The agent said something in its dialect.
pub(super) fn on_signals(state: &mut State, now: Timestamp, said: &[Heard]) -> Outcome {
    if !state.has_agent() || said.is_empty() {
        return Outcome::nothing();
    }
    no_longer_retrying(state, now);
    for heard in said {
        let enters = heard.phase.is_some() && heard.phase != state.phase;
        if let Some(phase) = &heard.phase {
            state.phase = Some(phase.clone());
        }
        state.own_iteration = heard.iteration.or(state.own_iteration);
        // The bar never goes backwards on an exit.
        let ends = matches!(heard.meaning, Meaning::Done | Meaning::Failed);
        if let Some(progress) = heard.progress {
            let least = state.progress.filter(|_| ends).unwrap_or(0);
            state.progress = Some(progress.max(least));
        }
        if let Some(shown) = heard.progress.or_else(|| heard.implied.filter(|_| enters)) {
            let least = state.bar.filter(|_| ends).unwrap_or(0);
            state.bar = Some(shown.max(least));
        }
        if heard.meaning == Meaning::Done {
            state.claimed_at = state.claimed_at.or(Some(now));
        }
        remember(&mut state.said, heard);
    }
    let observation = Observation::State {
        phase: state.phase.clone().unwrap_or_default(),
        progress: state.progress,
        iteration: state.own_iteration.unwrap_or(state.iteration),
        fingerprint: state.tree.fingerprint.clone(),
    };
    let change = state.monitor.observe(now, &observation);
    let last = &said[said.len() - 1];
    let decision = state
        .decision("listen", format!("Heard {}", last.name))
        .because("the agent said it")
        .seen(decide::evidence(said))
        .next("it counts when the agent stops");
    let mut outcome = Outcome::decided([], decision);
    if let Some(change) = change {
        worried(state, now, &change, &mut outcome);
    }
    outcome
}

/// Keeps what was said. Where that becomes too much, the oldest that was said again gives way: the
/// last word of each meaning always stays.
fn remember(said: &mut Vec<Heard>, heard: &Heard) {
    said.push(heard.clone());
    if said.len() > SAID_MAX {
        let again =
            |at: usize| said[at + 1..].iter().any(|later| later.meaning == said[at].meaning);
        if let Some(oldest) = (0..said.len()).find(|at| again(*at)) {
            said.remove(oldest);
        }
    }
}

/// A near miss is explained in the next prompt.
pub(super) fn on_near_miss(state: &mut State, hint: &str) -> Outcome {
    if state.has_agent()
        && !state.feedback.iter().any(|known| known == hint)
        && state.feedback.len() < 8
    {
        state.feedback.push(hint.to_owned());
    }
    Outcome::nothing()
}

/// Work is evidence, whatever the agent says.
pub(super) fn on_work(state: &mut State, now: Timestamp) -> Outcome {
    no_longer_retrying(state, now);
    observed(state, now, &Observation::Evidence)
}

/// The host's own figures. They are totals of the iteration.
pub(super) fn on_usage(state: &mut State, usage: Usage) -> Outcome {
    state.spending = Usage {
        tokens: state.spending.tokens.max(usage.tokens),
        micro_dollars: state.spending.micro_dollars.max(usage.micro_dollars),
    };
    if decide::over_budget(state) && state.status == Status::Working {
        let decision = ended(state, Ending::OverBudget);
        return stop(state, Some(Ending::OverBudget), decision);
    }
    let cost = state.cost();
    let near = |used: u64, most: Option<u64>| {
        most.is_some_and(|most| used.saturating_mul(3) >= most.saturating_mul(2))
    };
    let soon = near(cost.tokens, state.config.max_tokens)
        || near(cost.micro_dollars, state.config.max_micro_dollars);
    if soon && !std::mem::replace(&mut state.warned_of_budget, true) {
        let text = "Two thirds of the budget are used.".to_owned();
        let decision = state.decision("budget", "Warned of the budget").because(text.clone());
        let effects = [Effect::Notice { notice: Notice::BudgetSoon, text }];
        return Outcome::decided(effects, decision.next("nothing to do yet"));
    }
    Outcome::nothing()
}

/// The service refuses to work. What that means is decided when the process has ended.
pub(super) fn on_limit(state: &mut State, what: &str, until: Option<Timestamp>) -> Outcome {
    if !state.has_agent() {
        return Outcome::nothing();
    }
    let until = until.or_else(|| state.limited?.until);
    state.limited = Some(Limit { until });
    let decision = state
        .decision("limit", "Heard that the service refuses to work for now")
        .because(what)
        .next("the iteration will be repeated without being counted");
    Outcome::decided([], decision)
}

/// The host waits for the service by itself: until it works again, that is no stagnation. The
/// limits of time go on.
pub(super) fn on_retry(state: &mut State, now: Timestamp, what: &str) -> Outcome {
    if !state.has_agent() || std::mem::replace(&mut state.retrying, true) {
        return Outcome::nothing();
    }
    state.monitor.observe(now, &Observation::Waiting);
    let decision = state
        .decision("listen", "Heard that the host tries again")
        .because(what)
        .next("nothing to do: time without answers is not counted as stagnation");
    Outcome::decided([], decision)
}

fn no_longer_retrying(state: &mut State, now: Timestamp) {
    if std::mem::take(&mut state.retrying) {
        state.monitor.observe(now, &Observation::Awake);
    }
}

/// The host gave up. What that means is decided when the process has ended.
pub(super) fn on_refusal(state: &mut State, what: &str) -> Outcome {
    if !state.has_agent() {
        return Outcome::nothing();
    }
    state.refused = Some(what.to_owned());
    let decision = state
        .decision("listen", "Heard that the host cannot work")
        .because(what)
        .next("the run ends when its process has");
    Outcome::decided([], decision)
}

/// Time passed: limits, waits that are over, silence.
pub(super) fn on_tick(state: &mut State, now: Timestamp) -> Outcome {
    match state.status {
        Status::Limited { until } if now >= until => {
            state.wake(now);
            let mut effects = Vec::new();
            decide::start(state, now, &mut effects);
            let decision = state
                .decision("limit", "Goes on with the same iteration")
                .because("the wait is over")
                .next("the agent works");
            Outcome::decided(effects, decision)
        }
        Status::Working => working(state, now),
        _ => Outcome::nothing(),
    }
}

fn working(state: &mut State, now: Timestamp) -> Outcome {
    let over = |since: Timestamp, most: u64| now.since(since).as_secs() >= most;
    if state.worked(now) >= state.config.timeout.saturating_mul(1_000) {
        let decision = ended(state, Ending::TimedOut);
        return stop(state, Some(Ending::TimedOut), decision);
    }
    if let Some(claimed) = state.claimed_at
        && over(claimed, state.config.stagnation.grace_period)
    {
        let decision = state
            .decision("grace", "Asked the agent to stop")
            .because("it said that it is done, and went on")
            .next("then its claim is checked");
        return stop(state, None, decision);
    }
    if over(state.iteration_started_at, state.config.iteration_timeout) {
        let most = state.config.iteration_timeout;
        state.feedback.push(format!(
            "Your last turn was ended after {most} seconds. Work in smaller steps, and say where \
             you stand before you stop."
        ));
        let decision = state
            .decision("timeout", "Asked the agent to stop")
            .because(format!("the iteration took longer than {most} s"))
            .next("the next iteration begins");
        return stop(state, None, decision);
    }
    observed(state, now, &Observation::Tick)
}

fn observed(state: &mut State, now: Timestamp, observation: &Observation) -> Outcome {
    let mut outcome = Outcome::nothing();
    if let Some(change) = state.monitor.observe(now, observation) {
        worried(state, now, &change, &mut outcome);
    }
    outcome
}

/// What a change of the level means while the agent works.
fn worried(state: &mut State, now: Timestamp, change: &Change, outcome: &mut Outcome) {
    let because = change.because.clone();
    let level = change.to.as_str();
    let working = state.status == Status::Working;
    // One that is suspended for this very reason and still repeats itself goes on to the end.
    let suspended = state.status == Status::Paused { stagnated: true };
    let decision =
        state.decision(&format!("stagnation/{level}"), summary(change)).because(&*because);
    match change.to {
        Level::None => outcome.decisions.push(decision.next("nothing to do")),
        Level::Warn => {
            outcome.effects.push(Effect::Notice { notice: Notice::StagnationWarn, text: because });
            nudge(state);
            outcome.decisions.push(decision.next("the next prompt tells the agent"));
        }
        Level::Pause if working => {
            outcome.effects.push(Effect::Suspend);
            outcome.effects.push(Effect::Notice { notice: Notice::StagnationPause, text: because });
            state.status = Status::Paused { stagnated: true };
            // From here on the human is waited for. That is no excuse for what led here.
            state.rest(now);
            outcome.decisions.push(decision.next("`aldis resume` or `aldis abort`"));
        }
        Level::Abort if working || suspended => {
            let stopped =
                stop(state, Some(Ending::Stagnated), decision.next("it has a moment to stop"));
            outcome.effects.extend(stopped.effects);
            let notice = Notice::StagnationAbort;
            outcome.effects.push(Effect::Notice { notice, text: because });
            outcome.decisions.extend(stopped.decisions);
        }
        Level::Pause | Level::Abort => {}
    }
}

/// What the level means between two iterations; `None` to go on. Whoever wants to know is told.
pub(super) fn between(
    state: &mut State,
    change: Option<&Change>,
    told: &mut Vec<Effect>,
) -> Option<Outcome> {
    match state.monitor.level() {
        Level::None => None,
        // The next prompt tells the agent; a pause without an agent would have nobody to suspend.
        level @ (Level::Warn | Level::Pause) => {
            if let Some(change) = change {
                nudge(state);
                let notice = match level {
                    Level::Pause => Notice::StagnationPause,
                    _ => Notice::StagnationWarn,
                };
                told.push(Effect::Notice { notice, text: change.because.clone() });
            }
            None
        }
        // Whenever it was reached: while an agent is asked to stop, nothing is done about it.
        Level::Abort => {
            let decision = ended(state, Ending::Stagnated);
            let text = change.map_or_else(|| decision.because.clone(), |c| c.because.clone());
            let decision = decision.because(&*text);
            let notice = Effect::Notice { notice: Notice::StagnationAbort, text };
            Some(finish(state, Ending::Stagnated, decision, vec![notice]))
        }
    }
}

fn nudge(state: &mut State) {
    state.feedback.push(
        "There has been no evidence of progress for a while. Try another way, or say what you \
         need."
            .to_owned(),
    );
}

fn summary(change: &Change) -> &'static str {
    match change.to {
        Level::None => "The work moves again",
        Level::Warn => "Warned: the work does not move",
        Level::Pause => "Suspended the agent: the work does not move",
        Level::Abort => "Ends the run: the work does not move",
    }
}

/// Asks the agent to stop.
fn stop(state: &mut State, with: Option<Ending>, decision: crate::Decision) -> Outcome {
    let suspended = matches!(state.status, Status::Paused { .. });
    state.status = Status::Ending { with };
    let grace = state.config.stagnation.grace_period;
    let mut effects = vec![Effect::End { grace }];
    if suspended {
        effects.insert(0, Effect::Continue);
    }
    Outcome::decided(effects, decision)
}

pub(super) fn on_pause(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if state.status != Status::Working {
        return Outcome::nothing();
    }
    state.status = Status::Paused { stagnated: false };
    state.wait(now);
    let decision = state
        .decision("pause", "Suspended the agent")
        .because(asked_for(by))
        .next("`aldis resume` lets it go on");
    Outcome::decided([Effect::Suspend], decision)
}

pub(super) fn on_resume(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if !matches!(state.status, Status::Paused { .. }) {
        return Outcome::nothing();
    }
    state.wake(now);
    state.monitor.observe(now, &Observation::Human);
    state.status = Status::Working;
    let decision = state
        .decision("resume", "Let the agent go on")
        .because(asked_for(by))
        .next("the agent works");
    Outcome::decided([Effect::Continue], decision)
}

pub(super) fn on_abort(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    let decision = state
        .decision("abort", "Ends the run")
        .because(asked_for(by))
        .next("start again when you like");
    if state.has_agent() {
        state.wake(now);
        return stop(state, Some(Ending::Aborted), decision);
    }
    finish(state, Ending::Aborted, decision, Vec::new())
}

/// Keeps what a human said for the next prompt. A human's word is no stagnation.
pub(super) fn on_told(state: &mut State, now: Timestamp, text: &str, by: &str) -> Outcome {
    state.monitor.observe(now, &Observation::Human);
    let told = super::prompt::quoted(text);
    state.feedback.push(format!("A message from the human you work for:\n\n{told}"));
    let quote = beginning(text, TOLD_QUOTE, &Token::Off);
    let said = Evidence { what: "said".to_owned(), quote, ..Evidence::default() };
    let decision = state
        .decision("tell", "Took a message for the agent")
        .because(asked_for(by))
        .seen([said])
        .next("the next prompt holds it");
    Outcome::decided([], decision)
}

fn asked_for(by: &str) -> String {
    if by.is_empty() { "a human asked for it".to_owned() } else { format!("{by} asked for it") }
}

pub(super) fn on_answer(
    state: &mut State,
    now: Timestamp,
    id: &str,
    text: &str,
    by: &str,
) -> Outcome {
    let Some(question) = state.question.take_if(|question| question.id == id) else {
        return Outcome::nothing();
    };
    state.wake(now);
    state.monitor.observe(now, &Observation::Human);
    state.feedback.push(answered(&question.text, text));
    let mut effects = Vec::new();
    // The iteration that asked is repeated: a question does not use one up.
    decide::start(state, now, &mut effects);
    let decision = state
        .decision("answer", "Goes on with the answer")
        .because(if by.is_empty() {
            "a human answered".to_owned()
        } else {
            format!("answered by {by}")
        })
        .next("the agent works");
    Outcome::decided(effects, decision)
}
