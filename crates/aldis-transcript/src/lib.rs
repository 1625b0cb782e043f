//! Transcripts: hosts' files and streams as messages.
//!
//! Every host writes down what its agent said in a form of its own, mixed with what tools, users
//! and the host itself said. A [`Reader`] gives each text its [`Origin`], so that the scanner can tell
//! a claim by the agent from the same words in a file it read. It takes bytes in any chunks and never
//! fails: a line that makes no sense is skipped and counted.
//!
//! Each host has one decoder that turns a line into items. Messages, [host events](events) and
//! [line summaries](summarize) are folds over items, so what a host writes is understood in one
//! place.

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod about;
pub mod activity;
mod content;
mod detect;
mod ending;
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
mod receipt;
mod summary;

use std::fmt;

use activity::{Activities, Activity};
pub use detect::detect;
use events::{Events, HostEvent, Zone};
pub use format::{Format, HOSTS, Input};
use item::{Decode, Entry, Wanted, decode_line};
use lines::{Lines, trim};
use messages::{Messages, Source};
use out::Out;
pub use receipt::{RECEIPT, is_report_command};
pub use summary::{LineSummary, Mark, summarize, summarize_of_agent};

use aldis_signal::message::{Message, Origin};
use aldis_signal::time::Timestamp;

/// What live output holds. Exhaustive: there is nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// What happened.
    Activity(Box<Activity>),
    /// What the host reports about itself.
    Event(HostEvent),
    /// What somebody says.
    Message(Message),
}

/// Incremental reader of one transcript or stream. Feed it with [`push`](Self::push), end it with
/// [`finish`](Self::finish).
///
/// Messages of one entry share its index. In formats in which a later line can take back earlier
/// ones, messages come at the end, when it is known which are live; of those that the filter finds
/// nothing in, only the agent's last one comes.
///
/// ```
/// use aldis_transcript::{Format, Reader};
///
/// let stream = br#"{"type":"thread.started","thread_id":"t1"}
/// {"type":"item.completed","item":{"id":"i1","type":"command_execution","aggregated_output":"DONE"}}
/// {"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"All tests pass."}}"#;
/// let mut agent = Vec::new();
/// let mut sink = |message: aldis_signal::Message| {
///     if message.origin.may_signal() {
///         agent.push(message.text);
///     }
/// };
/// let mut reader = Reader::new(Format::CodexExec);
/// reader.push(stream, &mut sink);
/// reader.finish(&mut sink);
/// assert_eq!(agent, ["All tests pass."]);
/// ```
pub struct Reader<'f> {
    may_matter: &'f dyn Fn(&[u8]) -> bool,
    format: Format,
    /// None for plain text.
    decoder: Option<Box<dyn Decode>>,
    messages: Box<Messages>,
    events: Option<Box<Events>>,
    activities: Option<Box<Activities>>,
    lines: Lines,
    /// A document that is spread over lines, until its end.
    document: Option<Vec<u8>>,
    /// All of a plain text.
    text: Vec<u8>,
    started: bool,
    count: u64,
    skipped: u64,
    following: bool,
    signals_only: bool,
    /// The agent whose own conversation is read.
    agent: Option<String>,
}

impl<'f> Reader<'f> {
    /// Starts a reader that gives out everything.
    pub fn new(format: Format) -> Self {
        let decoder = hosts::decoder(format);
        let messages = decoder.as_deref().map(Messages::new).unwrap_or_default();
        Self {
            may_matter: &|_| true,
            format,
            decoder,
            messages: Box::new(messages),
            events: None,
            activities: None,
            lines: Lines::default(),
            document: None,
            text: Vec::new(),
            started: false,
            count: 0,
            skipped: 0,
            following: false,
            signals_only: false,
            agent: None,
        }
    }

    /// Leaves out texts that hold nothing of interest and are not the agent's. `may_matter` is asked about raw JSON and may say yes
    /// too often, never no wrongly.
    #[must_use]
    pub fn with_filter(mut self, may_matter: &'f dyn Fn(&[u8]) -> bool) -> Self {
        self.may_matter = may_matter;
        self
    }

    /// Reads the conversation of this sub-agent instead of the main one: a sub-agent's own file, or
    /// what it says in the file of the agent that called it.
    ///
    /// ```
    /// use aldis_transcript::{Format, Reader};
    ///
    /// let line = br#"{"type":"assistant","isSidechain":true,"agentId":"a1","uuid":"u1",
    ///     "message":{"role":"assistant","content":"Found it."}}"#;
    /// let line: Vec<u8> = line.iter().copied().filter(|byte| *byte != b'\n').collect();
    /// let mut found = Vec::new();
    /// let mut reader = Reader::new(Format::ClaudeCode).of_agent("a1");
    /// reader.push(&line, &mut |message| found.push(message));
    /// reader.finish(&mut |message| found.push(message));
    /// assert!(found[0].origin.may_signal());
    /// ```
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
    ///
    /// ```
    /// use aldis_signal::time::Timestamp;
    /// use aldis_transcript::events::{HostEvent, Zone};
    /// use aldis_transcript::{Format, Output, Reader};
    ///
    /// let now = Timestamp::from_millis(1_794_787_200_000);
    /// let mut found = Vec::new();
    /// let mut reader = Reader::new(Format::CodexExec).following().with_events(Zone::utc());
    /// let line = b"{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n";
    /// reader.push_live(line, now, &mut |output| found.push(output));
    /// reader.finish_live(now, &mut |output| found.push(output));
    /// assert!(found.contains(&Output::Event(HostEvent::Session("t1".into()))));
    /// ```
    #[must_use]
    pub fn with_events(mut self, local: Zone) -> Self {
        self.events = Some(Box::new(Events::new(local)));
        self
    }

    /// Asks for what happened, too, with [`push_live`](Self::push_live), in files as in streams; plain
    /// text has no activities. `local` is the zone of clock times that name none.
    ///
    /// ```
    /// use aldis_signal::time::Timestamp;
    /// use aldis_transcript::activity::{Fact, ToolEnd};
    /// use aldis_transcript::events::Zone;
    /// use aldis_transcript::{Format, Output, Reader};
    ///
    /// let stream = br#"{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"make","exit_code":2}}"#;
    /// let mut found = Vec::new();
    /// let mut reader = Reader::new(Format::CodexExec).with_activities(Zone::utc());
    /// let now = Timestamp::from_millis(0);
    /// reader.push_live(stream, now, &mut |output| found.push(output));
    /// reader.finish_live(now, &mut |output| found.push(output));
    /// let tools = found.iter().filter_map(|output| match output {
    ///     Output::Activity(activity) => match &activity.fact {
    ///         Fact::Tool(tool) => Some((&*tool.what, tool.end, tool.exit)),
    ///         _ => None,
    ///     },
    ///     _ => None,
    /// });
    /// assert_eq!(tools.collect::<Vec<_>>(), [("make", ToolEnd::Failed, Some(2))]);
    /// ```
    #[must_use]
    pub fn with_activities(mut self, local: Zone) -> Self {
        self.activities = Some(Box::new(Activities::new(local)));
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
            sink(Output::Message(Message::new(0, Origin::assistant(), text)));
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|number, line| self.line(number, line, now, sink));
        if let Some(document) = self.document.take() {
            self.value(1, trim(&document), now, sink);
        }
        let mut out = Out {
            sink: &mut |message| sink(Output::Message(message)),
            may_matter: self.may_matter,
            count: &mut self.count,
            following: self.following,
            signals_only: self.signals_only,
        };
        self.messages.finish(&mut out);
        if let Some(activities) = self.activities.take() {
            activities.finish(&mut |activity| sink(Output::Activity(Box::new(activity))));
        }
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
        if self.activities.is_some() {
            wanted = wanted.whole();
        }
        let (messages, agent, is_live) = (&mut self.messages, &self.agent, self.format.is_live());
        let mut events = self.events.as_mut();
        let mut activities = self.activities.as_mut();
        let mut each = |mut entry: Entry<'_>, bytes: &[u8]| {
            // What was said before something happened is told before it.
            let mut happened = Vec::new();
            if let Some(events) = events.as_mut().filter(|_| is_live) {
                events.entry(&entry, now, &mut |event| happened.push(event));
            }
            if let Some(activities) = &mut activities {
                let mut sink = |activity| sink(Output::Activity(Box::new(activity)));
                activities.entry(&entry, number, &mut sink);
            }
            if let Some(agent) = agent {
                entry.turn_to(agent);
            }
            let mut out = Out {
                sink: &mut |message| sink(Output::Message(message)),
                may_matter: self.may_matter,
                count: &mut self.count,
                following: self.following,
                signals_only: self.signals_only,
            };
            messages.take(Source { number, bytes, wanted: &wanted }, entry, &mut out);
            happened.into_iter().for_each(|event| sink(Output::Event(event)));
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
            .field("count", &self.count)
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
