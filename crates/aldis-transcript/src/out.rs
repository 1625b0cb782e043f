//! What a host's reader is given and where its messages go.

use std::fmt;

use serde_json::value::RawValue;

use super::claude_stream::ordinary::Ordinary;
use super::json::{Malformed, time};
use aldis_signal::message::{Message, Origin};
use aldis_signal::time::Timestamp;

/// One trimmed, non-empty line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Counts from 1.
    pub(super) number: u64,
    /// One JSON value, if the host kept its promise.
    pub(super) bytes: &'a [u8],
    /// When the host wrote it, once that is known.
    pub(super) at: Option<Timestamp>,
    /// What it says, if that was read before.
    pub(super) ordinary: Option<&'a Ordinary<'a>>,
}

/// Where and when a message was said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spot {
    /// The number of its line.
    pub(super) entry: u64,
    pub(super) at: Option<Timestamp>,
}

impl<'a> Line<'a> {
    /// Starts with a line of which only its place is known.
    pub(super) fn new(number: u64, bytes: &'a [u8]) -> Self {
        Self { number, bytes, at: None, ordinary: None }
    }

    /// Adds the time that the line names.
    pub(super) fn dated(self, stamp: Option<&RawValue>) -> Self {
        Self { at: stamp.and_then(time), ..self }
    }

    /// Returns where and when this is.
    pub(super) fn spot(self) -> Spot {
        Spot { entry: self.number, at: self.at }
    }
}

/// The reader of one format.
pub(super) trait Host: fmt::Debug {
    /// Takes one line. Must change nothing before it knows that the line is well formed.
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed>;

    /// Says that the lines to come are the end of a file whose beginning is not read, and which
    /// session they should be of.
    fn begin_late(&mut self, _session: Option<&str>) {}

    /// Gives out what was held back.
    fn finish(&mut self, out: &mut Out<'_>);
}

/// The way out of a reader.
pub(super) struct Out<'a> {
    pub(super) sink: &'a mut dyn FnMut(Message),
    pub(super) may_matter: &'a dyn Fn(&[u8]) -> bool,
    /// How many utterances were seen so far, given out or not.
    pub(super) utterances: &'a mut u64,
    /// Whether messages are wanted as they come, before the end is known.
    pub(super) following: bool,
    /// Whether only what agents say is wanted.
    pub(super) signals_only: bool,
}

impl Out<'_> {
    /// Counts an utterance and returns its index.
    pub(super) fn utter(&mut self) -> u64 {
        let index = *self.utterances;
        *self.utterances += 1;
        index
    }

    /// Returns whether raw JSON can hold anything of interest.
    pub(super) fn matters(&self, raw: &str) -> bool {
        (self.may_matter)(raw.as_bytes())
    }

    /// Counts an utterance and gives it out.
    pub(super) fn speak(&mut self, spot: Spot, id: Option<String>, origin: Origin, text: String) {
        let index = self.utter();
        self.say(message(index, spot, id, origin, text));
    }

    /// Gives out a record beside the conversation, which is not counted.
    pub(super) fn mention(&mut self, spot: Spot, id: Option<String>, origin: Origin, text: String) {
        self.say(message(*self.utterances, spot, id, origin, text));
    }

    /// Gives out a message unless it is empty.
    pub(super) fn say(&mut self, message: Message) {
        if !message.text.is_empty() {
            (self.sink)(message);
        }
    }
}

/// Puts a message together.
pub(super) fn message(
    index: u64,
    spot: Spot,
    id: Option<String>,
    origin: Origin,
    text: String,
) -> Message {
    Message { index, entry: Some(spot.entry), origin, id, at: spot.at, text }
}

/// Moves a message that goes on to the line on which it does.
pub(super) fn move_to(message: &mut Message, line: Line<'_>) {
    message.entry = Some(line.number);
    message.at = line.at.or(message.at);
}

/// As [`join`], for a block that is not needed any more: the first one need not be copied.
pub(super) fn append(text: &mut String, block: String) {
    if text.is_empty() {
        *text = block;
    } else {
        join(text, &block);
    }
}

/// Appends a text block to those before it.
pub(super) fn join(text: &mut String, block: &str) {
    if !text.is_empty() && !block.is_empty() {
        text.push('\n');
    }
    text.push_str(block);
}
