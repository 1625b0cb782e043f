//! What humans want of a run: pause, resume, abort, a message, an answer.

use super::ending::finish;
use super::event::Effect;
use super::events::stop;
use super::prompt::{add_feedback, block};
use super::rule::Rule;
use super::state::{Ending, Outcome, State, Status};
use super::verdict::start;
use crate::Evidence;
use crate::evidence::beginning;
use crate::stagnation::Observation;
use crate::words::cause;
use aldis_signal::scan::Token;
use aldis_signal::time::Timestamp;

/// How much of a human's message a decision shows.
const QUOTE_MAX: usize = 200;

pub(super) fn on_pause(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if state.status != Status::Working {
        return Outcome::nothing();
    }
    state.status = Status::Paused { stagnated: false };
    state.pause_clocks(now);
    let decision = state
        .decision(Rule::Paused, "Suspending the agent")
        .because(requested(by))
        .next("`aldis resume` lets it work on");
    Outcome::decided([Effect::Suspend], decision)
}

pub(super) fn on_resume(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if !matches!(state.status, Status::Paused { .. }) {
        return Outcome::nothing();
    }
    state.resume_clocks(now);
    state.monitor.observe(now, &Observation::Human);
    state.status = Status::Working;
    let decision = state
        .decision(Rule::Resumed, "Resuming the agent")
        .because(requested(by))
        .next("nothing to do; `aldis abort` ends the run");
    Outcome::decided([Effect::Continue], decision)
}

pub(super) fn on_abort(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if state.has_agent() {
        let decision = state
            .decision(Rule::Abort, "Stopping the agent: the run is aborted")
            .because(requested(by))
            .next("the run ends when the agent has stopped");
        let outcome = stop(state, Some(Ending::Aborted), decision);
        state.resume_clocks(now);
        return outcome;
    }
    let decision = state
        .decision(Rule::Abort, "Aborted")
        .because(requested(by))
        .next("`aldis run --continue` repeats the iteration");
    finish(state, Ending::Aborted, decision, Vec::new())
}

/// Keeps a message for the next prompt. A human's message resets what stagnation counts.
pub(super) fn on_message(state: &mut State, now: Timestamp, text: &str, by: &str) -> Outcome {
    state.monitor.observe(now, &Observation::Human);
    add_feedback(state, format!("A message from the human you work for:\n\n{}", block(text)));
    let quote = beginning(text, QUOTE_MAX, &Token::Off);
    let message = Evidence::new("message", quote);
    let decision = state
        .decision(Rule::MessageReceived, "Kept a message for the agent")
        .because(format!("sent by {}", cause(by)))
        .seen([message])
        .next("the next prompt holds it");
    Outcome::decided([], decision)
}

fn requested(by: &str) -> String {
    format!("requested by {}", cause(by))
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
    state.resume_clocks(now);
    state.monitor.observe(now, &Observation::Human);
    add_feedback(state, answered(&question.text, text));
    let mut effects = Vec::new();
    // The iteration that asked is repeated: a question does not use one up.
    start(state, now, &mut effects);
    let iteration = state.iteration;
    let decision = state
        .decision(
            Rule::Answered,
            format!("Repeating iteration {iteration} with the answer to {id}"),
        )
        .because(format!("answered by {}", cause(by)))
        .next("nothing to do; `aldis abort` ends the run");
    Outcome::decided(effects, decision)
}

/// Keeps an answer for when the run is reopened.
pub(super) fn on_late_answer(state: &mut State, id: &str, text: &str) -> Outcome {
    let Some(question) = state.question.take_if(|question| question.id == id) else {
        return Outcome::nothing();
    };
    add_feedback(state, answered(&question.text, text));
    let decision = state
        .decision(Rule::AnswerKept, format!("Kept the answer to {id}"))
        .because("the run has ended")
        .next("`aldis run --continue` gives it to the agent");
    Outcome::decided([], decision)
}

fn answered(question: &str, answer: &str) -> String {
    format!("You asked:\n\n{}\nThe answer:\n\n{}", block(question), block(answer))
}
