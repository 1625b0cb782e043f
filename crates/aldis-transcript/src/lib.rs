//! Transcripts: hosts' files and streams as messages.
//!
//! Every host writes down what its agent said in a form of its own, mixed with what tools, users
//! and the host itself said. The readers here give each text its [`Origin`], so that
//! the scanner can tell a claim by the agent from the same words in a file it read.
//!
//! A [`Reader`] takes bytes in any chunks and never fails: a line that makes no sense is skipped and
//! counted. Lines in which a quick look finds nothing of interest are not parsed.

mod acp;
mod blocks;
mod branches;
mod chain;
mod claude_code;
mod claude_stream;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod detect;
mod droid;
pub mod facts;
mod format;
mod gemini;
mod glance;
mod goose;
mod json;
mod lines;
mod opencode;
mod out;
mod waiting;
mod walk;

use std::borrow::Cow;
use std::fmt;

use claude_stream::ordinary::Ordinary;
pub use detect::detect;
use facts::{Fact, Facts};
pub use format::{Format, HOSTS, Input};
pub use glance::{Glance, Mark, glance};
use lines::{Lines, trim};
use out::{Host, Line, Out};
use serde_json::value::RawValue;

use aldis_signal::message::{Message, Origin};
use aldis_signal::time::Timestamp;

/// What a line of live output tells. Exhaustive: there is nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// What the host says about itself.
    Fact(Fact),
    /// What somebody says.
    Message(Message),
}

/// Incremental reader of one transcript or stream. Feed it with [`push`](Self::push), end it with
/// [`finish`](Self::finish).
///
/// Texts that no agent said are given out only where the filter says that they matter; so are
/// messages of a [`Format::ClaudeCode`] file, except the last one of the live conversation.
/// Messages of one entry share its index.
pub struct Reader<'f> {
    may_matter: &'f dyn Fn(&[u8]) -> bool,
    host: Box<dyn Host>,
    lines: Lines,
    /// A document that is spread over lines, until its end.
    document: Option<Vec<u8>>,
    /// All of a plain text.
    text: Option<Vec<u8>>,
    started: bool,
    utterances: u64,
    skipped: u64,
    following: bool,
    signals_only: bool,
    /// Whether lines are read at once for messages and facts.
    is_shared: bool,
}

impl<'f> Reader<'f> {
    /// Starts a reader. `may_matter` is asked about raw JSON and may say yes too often, never no
    /// wrongly.
    pub fn new(format: Format, may_matter: &'f dyn Fn(&[u8]) -> bool) -> Self {
        let host: Box<dyn Host> = match format {
            Format::Acp => Box::new(acp::Acp::default()),
            Format::ClaudeCode => Box::new(claude_code::ClaudeCode::new()),
            Format::ClaudeStream => Box::new(claude_stream::ClaudeStream::default()),
            Format::Cline => Box::new(cline::Cline::default()),
            Format::CodexExec => Box::new(codex::Exec),
            Format::CodexRollout => Box::new(codex::Rollout::default()),
            Format::Copilot => Box::new(copilot::Copilot::default()),
            Format::CursorStream => Box::new(cursor::Stream::default()),
            Format::CursorTranscript => Box::new(cursor::Transcript::default()),
            Format::Droid => Box::new(droid::Transcript::default()),
            Format::DroidStream => Box::new(droid::Stream::default()),
            Format::GeminiSession => Box::new(gemini::Session::default()),
            Format::GeminiStream => Box::new(gemini::Stream::default()),
            Format::Goose => Box::new(goose::Goose::default()),
            Format::OpenCode => Box::new(opencode::OpenCode::default()),
            Format::Text => Box::new(Plain),
        };
        Self {
            may_matter,
            host,
            lines: Lines::default(),
            document: None,
            text: (format == Format::Text).then(Vec::new),
            started: false,
            utterances: 0,
            skipped: 0,
            following: false,
            signals_only: false,
            is_shared: format == Format::ClaudeStream,
        }
    }

    /// Says that words of others than agents are not wanted. Some are given out all the same, where
    /// telling them apart would cost more.
    #[must_use]
    pub fn signals_only(mut self) -> Self {
        self.signals_only = true;
        self
    }

    /// Asks for messages as soon as they are complete. Whether one will be rewound later cannot be
    /// known then.
    #[must_use]
    pub fn following(mut self) -> Self {
        self.following = true;
        self
    }

    /// Says that only the end of a file comes, from the start of some line on. What hangs on entries
    /// before it is live, and entries of any session but this one are not.
    #[must_use]
    pub fn late(mut self, session: Option<&str>) -> Self {
        self.host.begin_late(session);
        self
    }

    /// Reads the next chunk, giving `sink` the messages that are complete.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Message)) {
        if let Some(text) = &mut self.text {
            text.extend_from_slice(chunk);
            return;
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |number, line| self.line(number, line, None, sink));
        self.lines = lines;
    }

    /// Reads the next chunk of live output for messages and facts, each line once. `facts` must be
    /// given nothing otherwise; `now` is when the chunk came.
    pub fn push_with(
        &mut self,
        chunk: &[u8],
        facts: &mut Facts,
        now: Timestamp,
        sink: &mut dyn FnMut(Told),
    ) {
        if let Some(text) = &mut self.text {
            text.extend_from_slice(chunk);
            return facts.push(chunk, now, &mut |fact| sink(Told::Fact(fact)));
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |number, line| self.line_with(number, line, (facts, now), sink));
        self.lines = lines;
    }

    /// Returns room to read the next bytes of the input into. Whoever says with
    /// [`filled`](Self::filled) how many came spares the copies that [`push`](Self::push) makes of
    /// lines that cross its chunks.
    pub fn room(&mut self) -> &mut [u8] {
        self.lines.room(ROOM)
    }

    /// As [`push`](Self::push) for bytes that were read to the start of the [`room`](Self::room).
    ///
    /// # Panics
    ///
    /// If more bytes are said to have come than there was room for.
    pub fn filled(&mut self, count: usize, sink: &mut dyn FnMut(Message)) {
        if let Some(text) = &mut self.text {
            text.extend_from_slice(&self.lines.room(ROOM)[..count]);
            return;
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.filled(count, |number, line| self.line(number, line, None, sink));
        self.lines = lines;
    }

    /// Ends the input: the last line counts even without its newline.
    pub fn finish(mut self, sink: &mut dyn FnMut(Message)) {
        self.end(sink);
    }

    /// Ends the input of [`push_with`](Self::push_with).
    pub fn finish_with(mut self, mut facts: Facts, now: Timestamp, sink: &mut dyn FnMut(Told)) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|number, line| self.line_with(number, line, (&mut facts, now), sink));
        self.end(&mut |message| sink(Told::Message(message)));
        facts.finish(now, &mut |fact| sink(Told::Fact(fact)));
    }

    /// As [`finish`](Self::finish), and returns how many lines were skipped in the end.
    pub fn finish_counting(mut self, sink: &mut dyn FnMut(Message)) -> u64 {
        self.end(sink);
        self.skipped
    }

    /// Returns how many lines did not parse so far. Lines of a [`Format::ClaudeCode`] file that do
    /// not matter and look like others before them are not parsed, so they count as sound.
    pub fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    fn end(&mut self, sink: &mut dyn FnMut(Message)) {
        if let Some(text) = self.text.take() {
            let text = String::from_utf8_lossy(&text).into_owned();
            sink(Message {
                index: 0,
                entry: None,
                origin: Origin::assistant(),
                id: None,
                at: None,
                text,
            });
            return;
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|number, line| self.line(number, line, None, sink));
        if let Some(document) = self.document.take() {
            self.value(1, trim(&document), sink);
        }
        let mut out = Out {
            sink,
            may_matter: self.may_matter,
            utterances: &mut self.utterances,
            following: self.following,
            signals_only: self.signals_only,
        };
        self.host.finish(&mut out);
    }

    fn line_with(
        &mut self,
        number: u64,
        line: Option<&[u8]>,
        (facts, now): (&mut Facts, Timestamp),
        sink: &mut dyn FnMut(Told),
    ) {
        let ordinary = line.filter(|_| self.is_shared).and_then(|line| Ordinary::read(trim(line)));
        facts.take(line, ordinary.as_ref(), now, &mut |fact| sink(Told::Fact(fact)));
        self.line(number, line, ordinary.as_ref(), &mut |message| sink(Told::Message(message)));
    }

    fn line(
        &mut self,
        number: u64,
        line: Option<&[u8]>,
        ordinary: Option<&Ordinary<'_>>,
        sink: &mut dyn FnMut(Message),
    ) {
        let Some(line) = line else {
            self.skipped += 1;
            return;
        };
        let trimmed = trim(line);
        if let Some(document) = &mut self.document {
            if document.len() + line.len() < DOCUMENT_MAX {
                document.extend_from_slice(line);
                document.push(b'\n');
            }
            return;
        }
        if trimmed.is_empty() {
            self.skipped += u64::from(line.contains(&0));
            return;
        }
        // A lone bracket on the first line begins a document that was laid out for people.
        if !self.started && matches!(trimmed, b"{" | b"[") {
            self.document = Some([trimmed, b"\n"].concat());
            return;
        }
        self.started = true;
        match ordinary {
            Some(_) => self.object(Line { ordinary, ..Line::new(number, trimmed) }, sink),
            None => self.value(number, trimmed, sink),
        }
    }

    fn value(&mut self, number: u64, bytes: &[u8], sink: &mut dyn FnMut(Message)) {
        if bytes.starts_with(b"[")
            && let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(bytes)
        {
            for element in elements {
                self.object(Line::new(number, element.get().as_bytes()), sink);
            }
            return;
        }
        self.object(Line::new(number, bytes), sink);
    }

    fn object(&mut self, line: Line<'_>, sink: &mut dyn FnMut(Message)) {
        let mut out = Out {
            sink,
            may_matter: self.may_matter,
            utterances: &mut self.utterances,
            following: self.following,
            signals_only: self.signals_only,
        };
        if self.host.line(line, &mut out).is_ok() {
            return;
        }
        // Broken text inside a sound line is no reason to lose the line.
        let text = String::from_utf8_lossy(line.bytes);
        let mended = json::mended(&text).map(Cow::Owned);
        if let Some(mended) = mended.or_else(|| matches!(text, Cow::Owned(_)).then_some(text)) {
            let line = Line::new(line.number, mended.as_bytes());
            if self.host.line(line, &mut out).is_ok() {
                return;
            }
        }
        self.skipped += 1;
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("host", &self.host)
            .field("utterances", &self.utterances)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

/// Plain text has no lines to take apart: the reader keeps it whole.
#[derive(Debug)]
struct Plain;

impl Host for Plain {
    fn line(&mut self, _: Line<'_>, _: &mut Out<'_>) -> Result<(), json::Malformed> {
        Ok(())
    }

    fn finish(&mut self, _: &mut Out<'_>) {}
}

/// How much is read at a time: it is still in the second-level cache when it is looked at.
const ROOM: usize = 256 * 1024;
/// A session that is one document, as Gemini once wrote, is small; a bound all the same.
const DOCUMENT_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests;
