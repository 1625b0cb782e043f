//! What the agent is told at the start of an iteration.

use std::fmt::Write as _;

use super::state::State;

/// How much of a task stands in a prompt.
const TASK_MAX: usize = 200_000;

/// The task, what was wrong so far, and how to speak.
pub(super) fn compose(state: &State) -> String {
    let mut text = String::new();
    text.push_str(cut(state.task.trim(), TASK_MAX));
    text.push('\n');
    if !state.feedback.is_empty() {
        let _ = writeln!(text, "\n## Since the last time (iteration {})\n", state.iteration);
        for feedback in &state.feedback {
            let _ = writeln!(text, "{}\n", feedback.trim_end());
        }
    }
    if !state.instructions.trim().is_empty() {
        let _ = writeln!(text, "\n## How to report\n\n{}", state.instructions.trim());
    }
    text
}

/// Text of several lines as a block quotation, which no line of it can leave.
pub(super) fn quoted(text: &str) -> String {
    let mut shown = String::new();
    for line in text.trim().lines() {
        let line: String = line.chars().filter(|letter| !letter.is_control()).collect();
        let _ = writeln!(shown, "> {line}");
    }
    shown
}

fn cut(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}
