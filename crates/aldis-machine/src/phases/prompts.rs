//! What the agent is told: at the start of a phase, and when it stops too early.
//!
//! Every text shows the form of the signal with a placeholder for the time and inside a fence that
//! does not end it, so that no prompt is itself a signal, wherever a host writes it down. Text that
//! comes from people or agents is quoted so that it cannot break out of its place.

use std::fmt::Write as _;

use super::pipeline::COMPLETE;
use super::state::State;
use crate::{Miss, Refusal, words};
use aldis_signal::dialect::{Dialect, Syntax};
use aldis_signal::prompt;

/// How much of a task's text stands in a prompt.
const TASK_MAX: usize = 4_000;
/// How much of an agent's own words is quoted back.
const QUOTE_MAX: usize = 300;

/// What the agent should know beside the form of the signal.
#[derive(Debug, Default)]
pub(super) struct Feedback<'s> {
    /// Something that looked like a signal.
    pub(super) miss: Option<&'s Miss>,
    /// The same as twice before: only the form is shown.
    pub(super) again: bool,
    /// Signals that were well formed and changed nothing.
    pub(super) refused: Vec<(String, Refusal)>,
}

/// Tells the agent what the current phase is for and how to end it.
pub(super) fn start(state: &State) -> String {
    let mut text =
        format!("## Auto Mode: phase {}\n\nThe task:\n\n{}\n", state.phase, quoted(&state.task));
    let purpose = state.pipeline.phase(&state.phase).map_or("", |phase| &phase.purpose);
    if !purpose.is_empty() {
        let _ = writeln!(text, "**This phase:** {purpose}\n");
    }
    if state.phase == "review" && state.config.parallel_validation {
        text.push_str(
            "Give three verdicts, each on its own: functional, security and quality. Delegate them \
             to sub-agents that work side by side where you can.\n\n",
        );
    }
    options(&mut text, state);
    form(
        &mut text,
        state,
        "When the phase is truly complete, and not before, end your message with:",
    );
    text
}

/// Tells the agent that its phase is not complete.
pub(super) fn continuation(state: &State, feedback: &Feedback<'_>) -> String {
    let mut text = format!(
        "## Auto Mode Continuation\n\nThe auto workflow is active but phase completion signal \
         was not detected.\n\n**Current State:**\n- Phase: {}\n- Iteration: {}/{}\n- Task: \
         {}\n\n**Expected Signal:** {}\n\n",
        state.phase,
        state.iteration,
        state.max_iterations,
        inline(&state.task),
        state.expected(),
    );
    for (name, refusal) in &feedback.refused {
        let _ = writeln!(text, "**Not taken:** {name}: {}\n", explain(state, *refusal));
    }
    if let Some(miss) = feedback.miss {
        let _ = writeln!(
            text,
            "**Almost a signal:** line {} of your last message, {}, does not count ({}): {}.\n",
            miss.line,
            inline(&miss.quote),
            miss.reason,
            miss.hint.trim_end_matches('.'),
        );
    } else if feedback.again {
        text.push_str(
            "Your message again held something that is almost the signal. Copy the form below as it \
             is, outside any code fence or quotation, as the last thing you say.\n\n",
        );
    }
    options(&mut text, state);
    text.push_str("**Action Required:**\n");
    form(&mut text, state, "Continue working on the current phase. When complete, output:");
    text
}

fn explain(state: &State, refusal: Refusal) -> String {
    match refusal {
        Refusal::Contradictory => {
            "the same message reports success after failure; say which of the two it is".to_owned()
        }
        Refusal::LateSignal => "it was said before this phase began".to_owned(),
        Refusal::OutOfOrder => format!("the current phase is {}, one after the other", state.phase),
        Refusal::RoleNotAllowed => "a sub-agent cannot speak for the whole run".to_owned(),
        Refusal::StateEdited => "the state file is a view; editing it changes nothing".to_owned(),
        Refusal::SubjectMismatch => "it is about something else".to_owned(),
        Refusal::WrongToken => "each phase has a code of its own; this one's is below".to_owned(),
    }
}

/// What a human wants the agent to know.
pub(super) fn told(text: &mut String, state: &State) {
    for message in &state.human_messages {
        let _ = writeln!(text, "**A message from the human you work for:**\n\n{}", quoted(message));
    }
}

fn options(text: &mut String, state: &State) {
    told(text, state);
    if state.config.no_questions {
        text.push_str(
            "Do not ask the user anything: decide for yourself, and write down what you decided \
             and why.\n\n",
        );
    }
    if state.config.verbose {
        let _ = writeln!(
            text,
            "Counters: iteration {} of {}, {} refusals in this turn.\n",
            state.iteration, state.max_iterations, state.block_limit.blocks
        );
    }
}

/// Shows how the phase is ended, and how an error is reported.
fn form(text: &mut String, state: &State, lead: &str) {
    match state.pipeline.phase(&state.phase).and_then(|phase| phase.signal.as_ref()) {
        Some(signal) if state.pipeline.dialect == "caw" => block(text, state, lead, signal),
        signal => spoken(text, state, lead, signal.map(String::as_str)),
    }
}

/// The block of the caw dialect.
fn block(text: &mut String, state: &State, lead: &str, signal: &str) {
    let phase = &state.phase;
    let next = match state.pipeline.next(phase, &state.config.skip) {
        None | Some(COMPLETE) => "none",
        Some(next) => next,
    };
    let token = match &state.token {
        Some(token) => format!("TOKEN: {token}\n"),
        None => String::new(),
    };
    let _ = write!(
        text,
        "{lead}\n\n```\n---\nSIGNAL: {signal}\nPHASE: {phase}\nSTATUS: complete\nTIMESTAMP: [current \
         time ISO8601]\nNEXT: {next}\n{token}---\n```\n\nIf unable to complete, explain the blocker, \
         request user guidance and end with:\n\n```\n---\nSIGNAL: PHASE_ERROR\nPHASE: {phase}\n\
         STATUS: error\nTIMESTAMP: [current time ISO8601]\nERROR: [brief error description]\n\
         RECOVERABLE: [true/false]\n{token}---\n```\n\nFill in what stands in brackets, and write the \
         block as plain text, not inside a fence.\n"
    );
}

/// Any other dialect: its own instructions, and which signal is meant.
fn spoken(text: &mut String, state: &State, lead: &str, signal: Option<&str>) {
    let name = &state.pipeline.dialect;
    let what = match signal {
        Some(signal) => format!("the signal {signal} of the dialect {name}"),
        None => format!("a signal of the dialect {name} that means done"),
    };
    let _ = writeln!(text, "{lead} {what}.\n");
    if let Some(dialect) = Dialect::builtin(name) {
        let told = match &state.token {
            Some(token) if !matches!(dialect.syntax, Syntax::Trailer(_)) => {
                prompt::instructions_with_token(dialect, token)
            }
            _ => prompt::instructions(dialect),
        };
        text.push_str(&told);
    }
}

fn quoted(text: &str) -> String {
    words::quoted(text, TASK_MAX)
}

fn inline(text: &str) -> String {
    words::inline(text, QUOTE_MAX)
}
