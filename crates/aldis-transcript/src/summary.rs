//! What one line of a transcript file is, seen alone.
//!
//! A [`Reader`](super::Reader) needs a file from its start. Whoever reads one from its end needs to
//! know of each line by itself whether a turn begins there, and of the last lines whether the agent
//! has answered, used a tool or asked something.

use super::Format;
use super::about::tool_input;
use super::history::EntryStanding;
use super::hosts::decoder;
use super::item::{Entry, Item, Wanted, decode_line};
use super::lines::trim;
use super::receipt::receipt_in;
use aldis_signal::message::Role;
use aldis_signal::time::Timestamp;

/// One line, as far as it concerns the main agent of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineSummary {
    /// When the host wrote it.
    pub at: Option<Timestamp>,
    /// What happens in it, in order.
    pub marks: Vec<Mark>,
}

/// One thing that happens in a line. Exhaustive: whoever folds over these must judge each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The agent calls a tool.
    Call {
        /// The host's id for the call, if it has one.
        id: String,
        /// The tool.
        name: String,
        /// Whether it is a shell that runs `aldis signal` and nothing else.
        reports: bool,
    },
    /// Something else than a prompt is said to the agent: hook feedback, a notice, a summary.
    Notice,
    /// A human says something: a turn begins.
    Prompt,
    /// A call is answered.
    Result {
        /// The id of the call.
        id: String,
        /// The ids of ours in the answer.
        ids: Vec<String>,
        /// The line of a receipt in the answer, if there is one.
        receipt: Option<String>,
    },
    /// The agent says something.
    Text,
}

/// Summarizes one line of a transcript file. Lines of sub-agents and of sessions other than `session`
/// have no marks, nor have lines that make no sense or formats that are no files.
///
/// ```
/// use aldis_transcript::{Format, Mark, summarize};
///
/// let line = br#"{"role":"user","message":{"content":[{"type":"text","text":"Go on."}]}}"#;
/// assert_eq!(summarize(Format::CursorTranscript, line, None).marks, [Mark::Prompt]);
/// ```
pub fn summarize(format: Format, line: &[u8], session: Option<&str>) -> LineSummary {
    summarize_as(format, line, session, false)
}

/// As [`summarize`], for the transcript of a sub-agent, which is the main agent there.
pub fn summarize_of_agent(format: Format, line: &[u8], session: Option<&str>) -> LineSummary {
    summarize_as(format, line, session, true)
}

fn summarize_as(format: Format, line: &[u8], session: Option<&str>, of_agent: bool) -> LineSummary {
    let line = trim(line);
    let mut summary = LineSummary::default();
    let Some(mut decoder) = decoder(format).filter(|_| is_file(format) && !line.is_empty()) else {
        return summary;
    };
    let mut is_history = false;
    let mut each = |entry: Entry<'_>, _: &[u8]| {
        // What follows a rewind on its line is history that is written again.
        is_history |= entry.items.iter().any(|item| matches!(item, Item::Rewind(_)));
        if !is_history {
            summary.add(&entry, session, of_agent);
        }
    };
    let _malformed = decode_line(&mut *decoder, line, &Wanted::new(line, &|_| true), &mut each);
    // Hosts add notices beside results: those are no prompts.
    if summary.marks.iter().any(|mark| matches!(mark, Mark::Result { .. })) {
        summary.marks.retain(|mark| *mark != Mark::Prompt);
    }
    summary
}

fn is_file(format: Format) -> bool {
    matches!(
        format,
        Format::ClaudeCode
            | Format::CodexRollout
            | Format::Copilot
            | Format::CursorTranscript
            | Format::Droid
            | Format::GeminiSession
    )
}

impl LineSummary {
    fn add(&mut self, entry: &Entry<'_>, session: Option<&str>, of_agent: bool) {
        self.at = self.at.or(entry.at);
        let link = entry.link.as_ref();
        let own = link.and_then(|link| link.session.as_deref());
        let is_foreign = own.zip(session).is_some_and(|(own, session)| own != session);
        let is_team = link.is_some_and(|link| link.standing == EntryStanding::Team);
        if is_foreign || is_team || entry.is_side && !of_agent {
            return;
        }
        for mark in entry.items.iter().filter_map(mark) {
            let is_text = matches!(mark, Mark::Notice | Mark::Prompt | Mark::Text);
            if !is_text || self.marks.last() != Some(&mark) {
                self.marks.push(mark);
            }
        }
    }
}

fn mark(item: &Item<'_>) -> Option<Mark> {
    Some(match item {
        // What is said on the way is no answer.
        Item::Text(text) if text.is_interim => return None,
        Item::Text(text) if !text.by.may_signal() || text.text.trim().is_empty() => return None,
        Item::Text(text) if text.is_copy() => return None,
        Item::Text(_) => Mark::Text,
        Item::Prompt { text, .. } if text.trim().is_empty() => return None,
        Item::Prompt { by, .. } if by.role == Role::User => Mark::Prompt,
        Item::Prompt { .. } => Mark::Notice,
        Item::Call(call) => Mark::Call {
            id: call.id.to_string(),
            name: call.name.to_string(),
            reports: tool_input(call.about.or(call.input)).is_report(),
        },
        Item::Result(result) => Mark::Result {
            id: result.id.to_string(),
            ids: result.ids(),
            receipt: receipt_in(result),
        },
        _ => return None,
    })
}
