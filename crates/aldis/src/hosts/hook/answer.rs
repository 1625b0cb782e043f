//! What a hook says to its host.

use serde_json::Value;

use super::call::Event;
use crate::hosts::Host;

/// An answer, whoever it is for. Exhaustive: hosts differ in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Let things take their course.
    Allow,
    /// Make the agent go on.
    Block {
        /// What the agent is told.
        reason: String,
        /// What the user is told.
        notice: Option<String>,
    },
    /// Let things take their course, and tell the user something.
    Notice {
        /// What the user is told.
        text: String,
    },
    /// Tell the agent something beside its prompt.
    Context {
        /// What it is told.
        text: String,
        /// What the user is told.
        notice: Option<String>,
    },
}

impl Answer {
    /// Returns what it is, in a word.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block { .. } => "block",
            Self::Notice { .. } => "notice",
            Self::Context { .. } => "context",
        }
    }
}

/// The longest text that hosts hand over uncut, in UTF-16 units as they count.
pub const TEXT_MAX: usize = 10_000;

/// Returns what to print: one JSON object, or nothing.
///
/// An answer that the host does not understand at this event becomes the one that lets things take
/// their course. In particular a prompt is never refused: there, blocking would throw away what the
/// user wrote.
pub fn answer(host: Host, event: &Event, answer: &Answer) -> Vec<u8> {
    let answers = &host.spec().answers;
    let told = |text: &str| (answers.notice)(event, &bounded(text));
    let beside = |said: Option<Value>, notice: &Option<String>| match notice {
        Some(text) => said.map(|said| joined(said, told(text))),
        None => said,
    };
    let said = match answer {
        Answer::Allow => None,
        Answer::Block { reason, notice } => {
            let reason = if reason.trim().is_empty() { GO_ON } else { reason };
            beside((answers.block)(event, &bounded(reason)), notice)
        }
        Answer::Notice { text } => told(text),
        Answer::Context { text, .. } if text.trim().is_empty() => None,
        Answer::Context { text, notice } => {
            beside((answers.context)(event, &bounded(text)), notice)
        }
    };
    let said = said.or_else(|| (answers.allow)(event));
    said.map(|value| value.to_string().into_bytes()).unwrap_or_default()
}

/// Returns what to print for an agent that is woken, cut as hosts would.
pub(crate) fn woken(text: &str) -> Vec<u8> {
    bounded(text).into_bytes()
}

/// Adds to an answer what tells the user something. What the answer decides stays.
fn joined(mut said: Value, notice: Option<Value>) -> Value {
    if let (Some(members), Some(Value::Object(notice))) = (said.as_object_mut(), notice) {
        for (name, value) in notice {
            members.entry(name).or_insert(value);
        }
    }
    said
}

/// Cuts a text at [`TEXT_MAX`] and says so at its end.
fn bounded(text: &str) -> String {
    let units = |text: &str| text.encode_utf16().count();
    // No text has more units than bytes.
    if text.len() <= TEXT_MAX || units(text) <= TEXT_MAX {
        return text.to_owned();
    }
    let mut left = TEXT_MAX - units(CUT);
    let end = text.char_indices().find(|(_, c)| {
        let fits = left >= c.len_utf16();
        left = left.saturating_sub(c.len_utf16());
        !fits
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}

/// Hosts refuse to go on without a reason.
const GO_ON: &str = "Continue with the current task.";
const CUT: &str = "\n[The rest was cut off.]";
