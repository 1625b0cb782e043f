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
pub mod events;
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
use events::{Events, HostEvent, Zone};
pub use format::{Format, HOSTS, Input};
use item::{Decode, Entry, Wanted, decode_line};
use lines::{Lines, trim};
use messages::{Messages, Source};
use out::Out;
pub use summary::{LineSummary, Mark, summarize};

use aldis_signal::message::{Message, Origin};
use aldis_signal::time::Timestamp;

/// What live output holds. Exhaustive: there is nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// What the host reports about itself.
    Event(HostEvent),
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
    events: Option<Events>,
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
        let messages = decoder.as_deref().map(Messages::new).unwrap_or_default();
        Self {
            may_matter,
            format,
            decoder,
            messages,
            events: None,
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

    /// Asks for host events, too, with [`push_live`](Self::push_live). `local` is the zone of clock
    /// times that name none: the host's, so usually this machine's.
    #[must_use]
    pub fn with_events(mut self, local: Zone) -> Self {
        self.events = Some(Events::new(local));
        self
    }

    /// Reads the next chunk, giving `sink` the messages that are complete.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Message)) {
        self.push_live(chunk, NO_TIME, &mut messages_to(sink));
    }

    /// Reads the next chunk of live output, giving `sink` the messages that are complete and the host
    /// events. `now` is when the chunk came.
    pub fn push_live(&mut self, chunk: &[u8], now: Timestamp, sink: &mut dyn FnMut(Output)) {
        if self.decoder.is_none() {
            if let Some(events) = &mut self.events {
                events.text(chunk);
            }
            return self.text.extend_from_slice(chunk);
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |number, line| self.line(number, line, now, sink));
        self.lines = lines;
    }

    /// Ends the input: the last line counts even without its newline.
    pub fn finish(mut self, sink: &mut dyn FnMut(Message)) {
        self.end(NO_TIME, &mut messages_to(sink));
    }

    /// Ends the input of [`push_live`](Self::push_live).
    pub fn finish_live(mut self, now: Timestamp, sink: &mut dyn FnMut(Output)) {
        self.end(now, sink);
    }

    /// As [`finish`](Self::finish), and returns how many lines were skipped in the end.
    pub fn finish_counting(mut self, sink: &mut dyn FnMut(Message)) -> u64 {
        self.end(NO_TIME, &mut messages_to(sink));
        self.skipped
    }

    /// Returns how many lines did not parse so far.
    pub fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    fn end(&mut self, now: Timestamp, sink: &mut dyn FnMut(Output)) {
        if self.decoder.is_none() {
            let text = String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned();
            let (index, entry, id, at) = (0, None, None, None);
            let message = Message { index, entry, origin: Origin::assistant(), id, at, text };
            sink(Output::Message(message));
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|number, line| self.line(number, line, now, sink));
        if let Some(document) = self.document.take() {
            self.value(1, trim(&document), now, sink);
        }
        let mut out = Out {
            sink: &mut |message| sink(Output::Message(message)),
            may_matter: self.may_matter,
            utterances: &mut self.utterances,
            following: self.following,
            signals_only: self.signals_only,
        };
        self.messages.finish(&mut out);
        if let Some(events) = self.events.take() {
            events.finish(now, &mut |event| sink(Output::Event(event)));
        }
    }

    fn line(
        &mut self,
        number: u64,
        line: Option<&[u8]>,
        now: Timestamp,
        sink: &mut dyn FnMut(Output),
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
        self.value(number, trimmed, now, sink);
    }

    fn value(&mut self, number: u64, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Output)) {
        let Some(decoder) = &mut self.decoder else { return };
        let mut wanted = Wanted::new(bytes, self.may_matter);
        if self.signals_only {
            wanted = wanted.signals_only(self.messages.has_agents());
        }
        let (messages, agent, is_live) = (&mut self.messages, &self.agent, self.format.is_live());
        let mut events = self.events.as_mut();
        let mut each = |mut entry: Entry<'_>, bytes: &[u8]| {
            if let Some(events) = events.as_mut().filter(|_| is_live) {
                events.entry(&entry, now, &mut |event| sink(Output::Event(event)));
            }
            if let Some(agent) = agent {
                entry.turn_to(agent);
            }
            let mut out = Out {
                sink: &mut |message| sink(Output::Message(message)),
                may_matter: self.may_matter,
                utterances: &mut self.utterances,
                following: self.following,
                signals_only: self.signals_only,
            };
            messages.take(Source { number, bytes, wanted: &wanted }, entry, &mut out);
        };
        if decode_line(&mut **decoder, bytes, &wanted, &mut each).is_err() {
            self.skipped += 1;
            if let Some(events) = &mut self.events {
                events.plain_line(bytes);
            }
        }
    }
}

/// Leaves out everything but messages.
fn messages_to(sink: &mut dyn FnMut(Message)) -> impl FnMut(Output) {
    move |output| {
        if let Output::Message(message) = output {
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

/// For whoever does not ask for events.
const NO_TIME: Timestamp = Timestamp::from_millis(0);

/// A session that is one document, as Gemini once wrote, is small; a bound all the same.
const DOCUMENT_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests;
