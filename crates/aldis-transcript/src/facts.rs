//! What a host's live output says beside the agent's words: costs, limits, errors, tool use, the end.
//!
//! A supervisor must know that a service refuses to work, and must not be told so by anybody but
//! the host: a document about rate limits, an agent that quotes one, a tool that prints one are no
//! limits. So every fact comes from a member that the host writes itself, never from a text by the
//! agent, a tool or a user. Plain text has no such members; [`Format::Text`] therefore knows only
//! the exact lines in which hosts report at the very end of their output.
//!
//! What a host overcomes by itself is no limit either: [`Fact::Limited`] and [`Fact::Failed`] come
//! when the host ends (its last line, or the end of the output) and only if the agent did not go on
//! after the trouble. Until then a host that tries again says [`Fact::Retrying`].
//!
//! Only live output is read. The forms of transcript files ([`Format::ClaudeCode`],
//! [`Format::CodexRollout`], [`Format::CursorTranscript`], [`Format::Droid`],
//! [`Format::GeminiSession`]) give no facts.

mod out;
mod resets;
mod text;
pub(crate) mod trouble;

use std::fmt;

use out::{Memory, Out};
pub use resets::{Zone, resets_at};
use text::Tail;

use super::detect::so_far;
use super::hosts::decoder;
use super::item::{Decode, Entry, decode_line};
use super::lines::{Lines, trim};
use super::{Format, Input, detect};
use aldis_signal::time::Timestamp;

/// One thing that a host said about itself. Exhaustive: a supervisor has a use for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The session's name, by which the host can go on with it. Comes again if it changes.
    Session(String),
    /// The agent or a sub-agent used a tool: evidence of work. Once per call.
    Tool {
        /// Which one, as the host calls it.
        name: String,
    },
    /// The host denied the agent a permission. Once per call, where the host says so at all.
    Denied {
        /// The tool that the agent wanted to use, as the host calls it.
        tool: String,
        /// What it wanted to do with it: a command, a path; empty where the host does not say.
        what: String,
    },
    /// What this process has cost so far: totals that never fall.
    Spent {
        /// Tokens in and out, those read from a cache too, as far as the host tells.
        tokens: u64,
        /// Millionths of a dollar; zero where the host names no price.
        micro_dollars: u64,
    },
    /// The host met an error and tries again by itself: a sign of life, no end.
    Retrying {
        /// What it says.
        what: String,
        /// When it tries again, where it says so.
        until: Option<Timestamp>,
    },
    /// The host ended because the service refuses to work for now: rate or usage limit, quota,
    /// overload. Before [`Fact::Ended`], if there is one.
    Limited {
        /// What it says.
        what: String,
        /// When it will work again, where it says so; may be past.
        until: Option<Timestamp>,
    },
    /// The host ended because of an error that waiting does not cure: API, login, account, request.
    /// Before [`Fact::Ended`], if there is one.
    Failed {
        /// What it says.
        what: String,
    },
    /// The host's own last word. Missing when it was interrupted; one per turn where it takes
    /// several, so the last counts.
    Ended {
        /// Whether it ended well in its own view. It knows nothing about the work.
        ok: bool,
        /// Why not, or what was unusual.
        what: Option<String>,
    },
}

/// Incremental reader of facts. Takes bytes in any chunks, never fails, and keeps little: of a line
/// at most a mebibyte (a longer one is skipped), of plain text the last lines.
///
/// Until its first lines have told the form ([`Input::Auto`], [`Input::Host`]), it keeps those. Name
/// the form where it is known: plain text that begins with a line like a host's is taken for its.
///
/// ```
/// use aldis_signal::time::Timestamp;
/// use aldis_transcript::facts::{Fact, Facts, Zone};
/// use aldis_transcript::{Format, Input};
///
/// let now = Timestamp::from_millis(1_794_787_200_000);
/// let mut facts = Facts::new(Input::Format(Format::CodexExec), Zone::utc());
/// let mut found = Vec::new();
/// facts.push(br#"{"type":"thread.started","thread_id":"t1"}"#, now, &mut |fact| found.push(fact));
/// facts.finish(now, &mut |fact| found.push(fact));
/// assert_eq!(found, [Fact::Session("t1".into())]);
/// ```
pub struct Facts {
    input: Input,
    zone: Zone,
    lines: Lines,
    stage: Stage,
    memory: Memory,
}

/// How far the form of the input is known.
enum Stage {
    /// No line with anything in it has come.
    Start,
    /// No line has told yet: what came so far.
    Head(Vec<u8>),
    /// One document that is spread over lines, until its end.
    Document(Vec<u8>),
    Json(Box<dyn Decode>),
    Text(Tail),
    /// Nothing more will be understood.
    Deaf,
}

impl Facts {
    /// Starts a reader. `local` is the zone of clock times that name none: the host's, so usually
    /// this machine's.
    pub fn new(input: Input, local: Zone) -> Self {
        let stage = match input {
            Input::Format(Format::Text) => Stage::Text(Tail::default()),
            Input::Auto | Input::Format(_) | Input::Host(_) => Stage::Start,
        };
        let lines = Lines::up_to(LINE_MAX);
        Self { input, zone: local, lines, stage, memory: Memory::default() }
    }

    /// Reads the next chunk, giving `sink` what it tells. `now` is when it came.
    pub fn push(&mut self, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        if let Stage::Text(tail) = &mut self.stage {
            match self.lines.take_rest() {
                Some(rest) => tail.push(&rest),
                None => tail.give_up_line(),
            }
            tail.push(bytes);
            return;
        }
        let mut lines = std::mem::replace(&mut self.lines, Lines::up_to(LINE_MAX));
        lines.push(bytes, |_, line| self.line(line, now, sink));
        self.lines = lines;
    }

    /// Takes in what a line says that was read elsewhere.
    pub(super) fn entry(&mut self, entry: &Entry<'_>, now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        self.stage = Stage::Deaf;
        self.out(now, sink).entry(entry);
    }

    /// Ends the output: the last line counts even without its newline.
    pub fn finish(mut self, now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        let mut lines = std::mem::replace(&mut self.lines, Lines::up_to(LINE_MAX));
        lines.finish(|_, line| self.line(line, now, sink));
        match std::mem::replace(&mut self.stage, Stage::Deaf) {
            Stage::Document(bytes) => self.document(&bytes, now, sink),
            Stage::Head(kept) => {
                let found = Input::Auto.resolve(&kept);
                self.stage = Stage::Head(kept);
                self.decide(found, now, sink);
            }
            stage => self.stage = stage,
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Deaf);
        let mut out = self.out(now, sink);
        if let Stage::Text(tail) = stage {
            tail.finish(&mut out);
        }
        out.finish();
    }

    fn out<'a>(&'a mut self, now: Timestamp, sink: &'a mut dyn FnMut(Fact)) -> Out<'a> {
        Out { now, zone: &self.zone, memory: &mut self.memory, sink }
    }

    fn line(&mut self, line: Option<&[u8]>, now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        if let Stage::Text(tail) = &mut self.stage {
            tail.line(line);
            return;
        }
        let line = line.unwrap_or(TOO_LONG);
        let trimmed = trim(line);
        if trimmed.is_empty() {
            return;
        }
        match &mut self.stage {
            Stage::Start => self.first(trimmed, now, sink),
            Stage::Head(kept) => {
                keep(kept, line);
                let found = match kept.len() > LINE_MAX {
                    true => Some(Format::Text),
                    false => so_far(kept, false).0,
                };
                if let Some(found) = found {
                    self.decide(found, now, sink);
                }
            }
            Stage::Document(kept) => {
                keep(kept, line);
                if kept.len() > LINE_MAX {
                    self.decide(Format::Text, now, sink);
                }
            }
            Stage::Json(_) => self.json(trimmed, now, sink),
            Stage::Text(_) | Stage::Deaf => {}
        }
    }

    /// The first line with anything in it: a lone bracket begins a document laid out for people.
    fn first(&mut self, line: &[u8], now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        let mut kept = Vec::new();
        keep(&mut kept, line);
        if matches!(line, b"{" | b"[") {
            self.stage = Stage::Document(kept);
            return;
        }
        if let Input::Format(format) = self.input {
            self.stage = stage_of(format);
            self.json(line, now, sink);
            return;
        }
        let found = so_far(&kept, false).0;
        self.stage = Stage::Head(kept);
        if let Some(found) = found {
            self.decide(found, now, sink);
        }
    }

    /// The form is known: what was kept is read now.
    fn decide(&mut self, found: Format, now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        let format = match self.input {
            Input::Format(format) => format,
            Input::Auto => found,
            // What is none of the host's forms is what its agent printed.
            Input::Host(forms) if forms.contains(&found) => found,
            Input::Host(_) => Format::Text,
        };
        let stage = std::mem::replace(&mut self.stage, stage_of(format));
        let (Stage::Head(kept) | Stage::Document(kept)) = stage else { return };
        if format == Format::Text {
            self.begin_text(&kept, now, sink);
            return;
        }
        for line in kept.split(|byte| *byte == b'\n') {
            self.json(trim(line), now, sink);
        }
    }

    fn begin_text(&mut self, kept: &[u8], now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        self.stage = Stage::Text(Tail::default());
        for line in kept.split(|byte| *byte == b'\n') {
            self.line(Some(line), now, sink);
        }
    }

    fn document(&mut self, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        let found = detect(bytes);
        self.decide(found, now, sink);
        match &self.stage {
            Stage::Json(_) => self.json(trim(bytes), now, sink),
            _ => self.begin_text(bytes, now, sink),
        }
    }

    fn json(&mut self, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Fact)) {
        let Stage::Json(decoder) = &mut self.stage else { return };
        let mut out = Out { now, zone: &self.zone, memory: &mut self.memory, sink };
        let mut each = |entry: Entry<'_>, _: &[u8]| out.entry(&entry);
        let _malformed = decode_line(&mut **decoder, bytes, true, &mut each);
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").field("input", &self.input).finish_non_exhaustive()
    }
}

fn stage_of(format: Format) -> Stage {
    match decoder(format) {
        None => Stage::Text(Tail::default()),
        Some(decoder) if format.is_live() => Stage::Json(decoder),
        Some(_) => Stage::Deaf,
    }
}

fn keep(kept: &mut Vec<u8>, line: &[u8]) {
    kept.extend_from_slice(line);
    kept.push(b'\n');
}

/// Longer lines are skipped: they hold files and pictures, not facts.
const LINE_MAX: usize = 1 << 20;

/// Stands for a line that was skipped: text that no form matches.
const TOO_LONG: &[u8] = b"(a line that is too long)";

#[cfg(test)]
mod tests;
