//! Transcripts: hosts' files and streams as messages.
//!
//! Every host writes down what its agent said in a form of its own, mixed with what tools, users
//! and the host itself said. The readers here give each text its [`Origin`], so that
//! the scanner can tell a claim by the agent from the same words in a file it read.
//!
//! A [`Reader`] takes bytes in any chunks and never fails: a line that makes no sense is skipped and
//! counted. Lines in which a quick look finds nothing of interest are not parsed.

mod content;
mod detect;
pub mod facts;
mod format;
mod history;
mod hosts;
mod item;
mod json;
mod lines;
mod members;
mod messages;
mod out;
mod summary;

use std::fmt;

pub use detect::detect;
use facts::{Fact, Facts};
pub use format::{Format, HOSTS, Input};
use item::{Decode, Entry, decode_line};
use lines::{Lines, trim};
use messages::{Messages, Source};
use out::Out;
pub use summary::{Glance, Mark, glance};

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
    format: Format,
    /// None for plain text.
    decoder: Option<Box<dyn Decode>>,
    messages: Messages,
    lines: Lines,
    /// A document that is spread over lines, until its end.
    document: Option<Vec<u8>>,
    /// All of a plain text.
    text: Vec<u8>,
    started: bool,
    utterances: u64,
    skipped: u64,
    following: bool,
    signals_only: bool,
    /// The agent whose own conversation is read.
    agent: Option<String>,
}

impl<'f> Reader<'f> {
    /// Starts a reader. `may_matter` is asked about raw JSON and may say yes too often, never no
    /// wrongly.
    pub fn new(format: Format, may_matter: &'f dyn Fn(&[u8]) -> bool) -> Self {
        let decoder = hosts::decoder(format);
        let holds_back = decoder.as_ref().is_some_and(|decoder| decoder.holds_back());
        Self {
            may_matter,
            format,
            decoder,
            messages: Messages::new(holds_back),
            lines: Lines::default(),
            document: None,
            text: Vec::new(),
            started: false,
            utterances: 0,
            skipped: 0,
            following: false,
            signals_only: false,
            agent: None,
        }
    }

    /// Reads the conversation of this sub-agent instead of the main one: a sub-agent's own file, or
    /// what it says in the file of the agent that called it.
    #[must_use]
    pub fn of_agent(mut self, agent: &str) -> Self {
        self.agent = Some(agent.into());
        self
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
        self.messages.begin_late(session);
        self
    }

    /// Reads the next chunk, giving `sink` the messages that are complete.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Message)) {
        if self.decoder.is_none() {
            self.text.extend_from_slice(chunk);
            return;
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |number, line| self.line(number, line, None, &mut only(sink)));
        self.lines = lines;
    }

    /// Reads the next chunk of live output for messages and facts, each line once. `now` is when the
    /// chunk came.
    pub fn push_with(
        &mut self,
        chunk: &[u8],
        facts: &mut Facts,
        now: Timestamp,
        sink: &mut dyn FnMut(Told),
    ) {
        if self.decoder.is_none() {
            self.text.extend_from_slice(chunk);
            return facts.push(chunk, now, &mut |fact| sink(Told::Fact(fact)));
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |number, line| {
            self.line(number, line, Some((&mut *facts, now)), sink);
        });
        self.lines = lines;
    }

    /// Ends the input: the last line counts even without its newline.
    pub fn finish(mut self, sink: &mut dyn FnMut(Message)) {
        self.end(None, &mut only(sink));
    }

    /// Ends the input of [`push_with`](Self::push_with).
    pub fn finish_with(mut self, mut facts: Facts, now: Timestamp, sink: &mut dyn FnMut(Told)) {
        self.end(Some((&mut facts, now)), sink);
        facts.finish(now, &mut |fact| sink(Told::Fact(fact)));
    }

    /// As [`finish`](Self::finish), and returns how many lines were skipped in the end.
    pub fn finish_counting(mut self, sink: &mut dyn FnMut(Message)) -> u64 {
        self.end(None, &mut only(sink));
        self.skipped
    }

    /// Returns how many lines did not parse so far.
    pub fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    fn end(&mut self, mut facts: Option<(&mut Facts, Timestamp)>, sink: &mut dyn FnMut(Told)) {
        if self.decoder.is_none() {
            let text = String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned();
            let (index, entry, id, at) = (0, None, None, None);
            let message = Message { index, entry, origin: Origin::assistant(), id, at, text };
            return sink(Told::Message(message));
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|number, line| {
            let facts = facts.as_mut().map(|(facts, now)| (&mut **facts, *now));
            self.line(number, line, facts, sink);
        });
        if let Some(document) = self.document.take() {
            self.value(1, trim(&document), facts, sink);
        }
        let mut out = Out {
            sink: &mut |message| sink(Told::Message(message)),
            may_matter: self.may_matter,
            utterances: &mut self.utterances,
            following: self.following,
            signals_only: self.signals_only,
        };
        self.messages.finish(&mut out);
    }

    fn line(
        &mut self,
        number: u64,
        line: Option<&[u8]>,
        facts: Option<(&mut Facts, Timestamp)>,
        sink: &mut dyn FnMut(Told),
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
        self.value(number, trimmed, facts, sink);
    }

    fn value(
        &mut self,
        number: u64,
        bytes: &[u8],
        mut facts: Option<(&mut Facts, Timestamp)>,
        sink: &mut dyn FnMut(Told),
    ) {
        let Some(decoder) = &mut self.decoder else { return };
        let matters = (self.may_matter)(bytes);
        let is_wanted = matters || facts.is_some();
        let (messages, agent) = (&mut self.messages, self.agent.as_deref());
        let mut each = |mut entry: Entry<'_>, bytes: &[u8]| {
            if let (Some((facts, now)), true) = (&mut facts, self.format.is_live()) {
                facts.entry(&entry, *now, &mut |fact| sink(Told::Fact(fact)));
            }
            if let Some(agent) = agent {
                entry.turn_to(agent);
            }
            let mut out = Out {
                sink: &mut |message| sink(Told::Message(message)),
                may_matter: self.may_matter,
                utterances: &mut self.utterances,
                following: self.following,
                signals_only: self.signals_only,
            };
            messages.take(Source { number, bytes, matters }, entry, &mut out);
        };
        if decode_line(&mut **decoder, bytes, is_wanted, &mut each).is_err() {
            self.skipped += 1;
        }
    }
}

/// Leaves out everything but messages.
fn only(sink: &mut dyn FnMut(Message)) -> impl FnMut(Told) {
    move |told| {
        if let Told::Message(message) = told {
            sink(message);
        }
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("decoder", &self.decoder)
            .field("utterances", &self.utterances)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

/// A session that is one document, as Gemini once wrote, is small; a bound all the same.
const DOCUMENT_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests;
