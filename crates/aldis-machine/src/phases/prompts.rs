//! The prompts for the agent: at the start of a phase, and when it stops too early.
//!
//! A prompt shows the block to write, with a placeholder for the time and indented by four spaces, so
//! that no prompt is itself a signal, wherever a host writes it down. Text of people and agents is
//! quoted, line by line, so that it cannot break out of its place.

use std::fmt::Write as _;
use std::sync::Arc;

use super::checks::CheckedClaim;
use super::parts::Setup;
use super::pipeline::COMPLETE;
use super::state::State;
use super::tally::RefusedSignal;
use crate::calls;
use crate::{Miss, Refusal, words};
use aldis_signal::dialect::{Dialect, Syntax};
use aldis_signal::prompt;
use aldis_signal::signal::Meaning;

/// How many characters of a task stand in a prompt.
const TASK_MAX: usize = 4_000;
/// How many characters of the agent's own text are quoted back.
const QUOTE_MAX: usize = 300;

/// How many checks are named.
const CHECKS_MAX: usize = 10;

/// What the agent should know beside the form of the signal.
#[derive(Default)]
pub(super) struct Feedback<'s> {
    /// Something that looked like a signal.
    pub(super) miss: Option<&'s Miss>,
    /// The same as twice before: only the form is shown.
    pub(super) again: bool,
    /// Signals that were well formed and changed nothing.
    pub(super) refused: &'s [RefusedSignal],
}

/// Says what the current phase is for and how to end it.
pub(super) fn start(state: &State) -> String {
    let mut text = format!("## Auto Mode: phase {}\n\n", state.progress.phase);
    if !state.setup.task.trim().is_empty() {
        let _ = writeln!(text, "The task:\n\n{}", words::quoted(&state.setup.task, TASK_MAX));
    }
    let purpose =
        state.setup.pipeline.phase(&state.progress.phase).map_or("", |phase| &phase.purpose);
    if !purpose.is_empty() {
        let _ = writeln!(text, "**This phase:** {purpose}\n");
    }
    let phases = state.setup.pipeline.phases.iter().map(|phase| &*phase.name);
    let done: Vec<&str> =
        phases.filter(|phase| state.progress.completed.contains(*phase)).collect();
    if !done.is_empty() {
        let done = words::listed(&done, done.len());
        let _ = writeln!(text, "**Complete so far:** {done}. Continue from what is there.\n");
    }
    if state.progress.phase == "review" && state.setup.config.parallel_validation {
        text.push_str(
            "Give three separate verdicts: functional, security and quality. If you can, delegate \
             each to a sub-agent and run them in parallel.\n\n",
        );
    }
    options(&mut text, state);
    form(&mut text, state, "When the phase is complete, and not before, end your message with");
    text
}

/// Says that the phase is not complete, and what is missing.
pub(super) fn continuation(state: &State, feedback: &Feedback<'_>) -> String {
    let mut text = format!(
        "## Auto Mode Continuation\n\nThe auto workflow is active but phase completion signal \
         was not detected.\n\n**Current State:**\n- Phase: {}\n- Iteration: {}/{}\n",
        state.progress.phase, state.progress.iteration, state.setup.max_iterations,
    );
    if state.setup.task.trim().is_empty() {
        text.push('\n');
    } else {
        let _ = writeln!(text, "- Task:\n\n{}", words::quoted(&state.setup.task, TASK_MAX));
    }
    let _ = writeln!(text, "**Expected Signal:** {}\n", state.expected());
    for refused in feedback.refused {
        let why = explain(state, refused.refusal);
        let _ = writeln!(text, "**Not accepted:** {}. {why}\n", refused.named());
    }
    if let Some(miss) = feedback.miss {
        let _ = writeln!(
            text,
            "**Almost a signal:** {} in line {} of your last message does not count ({}): {}.\n",
            words::inline(&miss.quote, QUOTE_MAX),
            miss.line,
            miss.reason,
            miss.hint.trim_end_matches('.'),
        );
    } else if feedback.again {
        text.push_str(
            "Your last message again has something that is almost the signal. Copy the form below \
             exactly, as the last thing in your message.\n\n",
        );
    }
    options(&mut text, state);
    text.push_str("**Action Required:**\n");
    form(&mut text, state, "Continue working on the current phase. When complete, output");
    text
}

/// Says that the claim is being checked, and how to wait.
pub(super) fn checking(state: &State, claim: &CheckedClaim) -> String {
    let mut text = format!(
        "## Auto Mode: your claim is being checked\n\nYou reported that {}. The checks run now, and \
         nothing more is needed of you meanwhile:\n\n",
        claim.clause()
    );
    for check in state.setup.config.proof.checks.iter().take(CHECKS_MAX) {
        let _ = writeln!(text, "    {}", words::inline(&check.command, QUOTE_MAX));
    }
    text.push_str(
        "\nDo not change files while they run, and do not start them yourself. Wait for the verdict \
         with this command, then end your turn again:\n\n    aldis auto status --wait\n\n",
    );
    text.push_str(&human_messages(state));
    text
}

/// Says that the claim does not hold, and why.
pub(super) fn refused(state: &State, feedback: &str) -> String {
    let mut text = format!(
        "## Auto Mode: phase {} is not complete\n\n{}\n\n",
        state.progress.phase,
        feedback.trim_end()
    );
    options(&mut text, state);
    form(&mut text, state, "When it is fixed, and not before, end your message with");
    text
}

fn explain(state: &State, refusal: Refusal) -> String {
    match refusal {
        Refusal::Contradictory => {
            "The message reports success after a failure. Report which of the two it is.".to_owned()
        }
        Refusal::LateSignal => "It was written before this phase began.".to_owned(),
        Refusal::OutOfOrder => {
            format!("The current phase is {}. Complete the phases in order.", state.progress.phase)
        }
        Refusal::Outranked => {
            "You reported something else about the same phase by a tool call or with the run token, \
             and that counts. Report only the one that holds."
                .to_owned()
        }
        Refusal::RoleNotAllowed => {
            "Only you, the main agent, can end the run or report an error of the phase.".to_owned()
        }
        Refusal::StateEdited => "Editing the state file changes nothing.".to_owned(),
        Refusal::SubjectMismatch => "It is about something else.".to_owned(),
        Refusal::WrongToken => {
            "Each phase has its own code. The code of this phase is below.".to_owned()
        }
    }
}

/// The messages that humans sent to the agent.
pub(super) fn human_messages(state: &State) -> String {
    let mut text = String::new();
    for message in &state.handover.human_messages {
        let _ = writeln!(
            text,
            "A message from the human you work for:\n\n{}",
            words::quoted(message, TASK_MAX)
        );
    }
    text
}

/// The messages that humans sent, for an agent that knows the prompt of its phase.
pub(super) fn messages_alone(state: &State) -> String {
    format!("{}Continue with phase {}.\n", human_messages(state), state.progress.phase)
}

fn options(text: &mut String, state: &State) {
    text.push_str(&human_messages(state));
    if state.setup.config.no_questions {
        text.push_str(
            "Do not ask the user anything. Decide yourself, and write down what you decided and \
             why.\n\n",
        );
    }
    if state.setup.config.verbose {
        let blocks = words::counted(state.block_limit.blocks, "blocked stop");
        let (iteration, most) = (state.progress.iteration, state.setup.max_iterations);
        let _ =
            writeln!(text, "Counters: iteration {iteration} of {most}, {blocks} in this turn.\n");
    }
}

/// Shows how the phase is ended, and how an error is reported.
fn form(text: &mut String, state: &State, lead: &str) {
    if state.setup.config.prefer_calls {
        text.push_str(&calls::preference(calls::PHASES, None));
    }
    let Setup { pipeline, .. } = &state.setup;
    let is_block = |dialect: Arc<Dialect>| matches!(dialect.syntax, Syntax::Block(_));
    match pipeline.phase(&state.progress.phase).and_then(|phase| phase.signal.as_ref()) {
        Some(signal) if builtin(&pipeline.dialect).is_some_and(is_block) => {
            block(text, state, lead, signal);
        }
        signal => instructions(text, state, lead, signal.map(String::as_str)),
    }
}

/// A block, for dialects whose signals are blocks.
fn block(text: &mut String, state: &State, lead: &str, signal: &str) {
    let phase = &state.progress.phase;
    let next = match state.setup.pipeline.next(phase, &state.setup.config.skip) {
        None | Some(COMPLETE) => "none",
        Some(next) => next,
    };
    let token = match &state.token {
        Some(token) => format!("    TOKEN: {token}\n"),
        None => String::new(),
    };
    let time = "    TIMESTAMP: [current time ISO8601]\n";
    let _ = write!(
        text,
        "{lead}:\n\n    ---\n    SIGNAL: {signal}\n    PHASE: {phase}\n    STATUS: complete\n{time}    \
         NEXT: {next}\n{token}    ---\n\nIf unable to complete, explain the blocker, request user \
         guidance, and end your message with:\n\n    ---\n    SIGNAL: PHASE_ERROR\n    PHASE: \
         {phase}\n    STATUS: error\n{time}    ERROR: [brief error description]\n    RECOVERABLE: \
         [true/false]\n{token}    ---\n\nReplace the [placeholders]. Start every line of the block at \
         the left margin, without the four spaces, and write it as plain text outside code fences \
         and quotes.\n"
    );
}

/// Any other dialect: which signal is meant, and the dialect's own instructions.
fn instructions(text: &mut String, state: &State, lead: &str, signal: Option<&str>) {
    let name = &state.setup.pipeline.dialect;
    let dialect = builtin(name);
    let syntax = dialect.as_ref().map(|dialect| &dialect.syntax);
    if let (Some(Syntax::Tag(tag)), None) = (syntax, &state.token)
        && let Some(promise) = &tag.text
    {
        let (open, close) = (&tag.open, &tag.close);
        let _ = writeln!(
            text,
            "{lead}:\n\n    {open}{promise}{close}\n\nStart that line at the left margin, without the four \
             spaces, and write it as plain text outside code fences and quotes. Write it only when it is \
             completely true."
        );
        return;
    }
    let what = match signal {
        Some(signal) => format!("the signal {signal} of the dialect {name}"),
        None => format!("a signal of the dialect {name} that means done ({})", done_signals(name)),
    };
    let _ = writeln!(text, "{lead} {what}.\n");
    if let Some(dialect) = &dialect {
        let how = match &state.token {
            Some(token) if !matches!(dialect.syntax, Syntax::Trailer(_)) => {
                prompt::instructions_with_token(dialect, token)
            }
            _ => prompt::instructions(dialect),
        };
        text.push_str(&how);
    }
}

/// Names the signals of a dialect that end a phase by their meaning.
pub(super) fn done_signals(name: &str) -> String {
    let Some(dialect) = builtin(name) else { return format!("any {name} signal that means done") };
    let done = dialect.signals.iter().filter(|signal| signal.meaning == Meaning::Done);
    let names: Vec<&str> = done.map(|signal| &*signal.name).collect();
    names.join(" or ")
}

/// Returns the built-in dialect of this name, or of `NAME=WORD` with that word.
pub(super) fn builtin(name: &str) -> Option<Arc<Dialect>> {
    match name.split_once('=') {
        Some((name, word)) => Dialect::builtin(name)?.with_word(word).ok().map(Arc::new),
        None => Dialect::builtin(name).cloned(),
    }
}
