//! The prompt of an iteration, and what the next one will hold.

use std::fmt::Write as _;

use super::state::State;
use crate::calls;
use crate::words::{cut, quoted};
use aldis_signal::signal::Meaning;

/// How much of a task stands in a prompt.
const TASK_MAX: usize = 200_000;
/// How much of one piece of feedback stands in a prompt.
const TEXT_MAX: usize = 16_000;
/// How many pieces of feedback wait for the next prompt. The oldest gives way.
const FEEDBACK_MAX: usize = 32;
/// How many of them are remarks of one kind on what the agent did.
const REMARKS_MAX: usize = 8;

impl State {
    /// The task, where the run is, what happened since, and how to report.
    pub(super) fn prompt(&self) -> String {
        let mut text = String::new();
        text.push_str(cut(self.start.task.trim(), TASK_MAX));
        text.push('\n');
        if let Some(position) = self.position() {
            let _ = writeln!(text, "\n## Where you are\n\n{position}");
        }
        let (open, crash) = (self.open_refusal(), self.crash_text());
        let feedback: Vec<&String> =
            open.iter().chain(&self.memory.feedback).chain(&crash).collect();
        if !feedback.is_empty() {
            text.push_str("\n## Feedback\n\n");
            for feedback in feedback {
                let _ = writeln!(text, "{}\n", feedback.trim_end());
            }
        }
        let calls = match self.start.config.prefer_calls {
            true => calls::preference(calls::RUN, None),
            false => String::new(),
        };
        let instructions = format!("{calls}{}", self.start.instructions.trim());
        if !instructions.is_empty() {
            let _ = writeln!(text, "\n## How to report\n\n{}", instructions.trim_end());
        }
        text
    }

    /// What is wrong with the last claim to be done, if an earlier prompt said so: the agent has not
    /// claimed since that it is mended, and may not remember.
    fn open_refusal(&self) -> Option<String> {
        let refusal = self.memory.last_refusal.as_ref()?;
        let is_known =
            refusal.feedback.is_empty() || self.memory.feedback.contains(&refusal.feedback);
        (!is_known).then(|| {
            format!("Still open since iteration {}:\n\n{}", refusal.iteration, refusal.feedback)
        })
    }

    /// Which iteration it is, unless it is the very first start: an agent has no memory of the others.
    fn position(&self) -> Option<String> {
        let (iteration, most) = (self.iteration, self.start.config.max_iterations);
        let start = format!("This is iteration {iteration} of {most}");
        match (iteration, self.counts.starts) {
            (..=1, ..=1) => None,
            _ if self.had_reported() => {
                Some(format!("{start}, continued. Go on from what is there."))
            }
            (_, ..=1) => Some(format!(
                "{start}. Earlier iterations left their work here: \
             continue from what is there and do not start over."
            )),
            (..) => Some(format!(
                "{start}, started again because the last attempt did \
             not finish. Continue from what is there and do not start over."
            )),
        }
    }

    /// Whether the last attempt ended with a question or a claim, which a human has answered.
    fn had_reported(&self) -> bool {
        let ends = [Meaning::NeedsHuman, Meaning::NeedsHelp, Meaning::Done];
        self.counts.starts > 1 && self.attempt.signals.iter().any(|it| ends.contains(&it.meaning))
    }

    /// What the last attempt printed when it crashed.
    fn crash_text(&self) -> Option<String> {
        let exit = self.memory.last_crash.as_ref()?;
        let clause = exit.clause();
        Some(match quoted(&exit.output, TEXT_MAX) {
            output if output.is_empty() => format!("The last attempt crashed: it {clause}."),
            output => {
                format!("The last attempt crashed: it {clause}. Its output ended with:\n\n{output}")
            }
        })
    }
}

/// Text of several lines as a block quotation, which no line of it can leave.
pub(super) fn block(text: &str) -> String {
    quoted(text, TEXT_MAX)
}

impl State {
    /// Adds to the next prompt. What stands in the current prompt already is kept for the next one, too:
    /// it happened again.
    pub(super) fn add_feedback(&mut self, text: String) {
        if let Some(at) = self.memory.feedback.iter().position(|known| *known == text) {
            self.forget_feedback(at);
        } else if self.memory.feedback.len() >= FEEDBACK_MAX {
            self.forget_feedback(0);
        }
        self.memory.feedback.push(text);
    }

    /// Adds a remark on what the agent did. Of those that begin in the same way only the latest are
    /// kept: they must not push out what a human said or a check showed.
    pub(super) fn add_remark(&mut self, beginning: &str, rest: &str) {
        let same = |known: &String| known.starts_with(beginning);
        let text = format!("{beginning}{rest}");
        let feedback = &self.memory.feedback;
        if !feedback.contains(&text)
            && feedback.iter().filter(|known| same(known)).count() >= REMARKS_MAX
            && let Some(oldest) = feedback.iter().position(same)
        {
            self.forget_feedback(oldest);
        }
        self.add_feedback(text);
    }

    /// Adds to the next prompt, in the place of what begins in the same way.
    pub(super) fn replace_feedback(&mut self, beginning: &str, text: String) {
        if let Some(at) = self.memory.feedback.iter().position(|known| known.starts_with(beginning))
        {
            self.forget_feedback(at);
        }
        self.add_feedback(text);
    }

    fn forget_feedback(&mut self, at: usize) {
        self.memory.feedback.remove(at);
        if at < self.memory.feedback_given {
            self.memory.feedback_given -= 1;
        }
    }

    /// Forgets what stood in the prompt of an iteration that was completed.
    pub(super) fn drop_given_feedback(&mut self) {
        let given = std::mem::take(&mut self.memory.feedback_given).min(self.memory.feedback.len());
        self.memory.feedback.drain(..given);
    }
}
