//! What a host's reader is given and where its messages go.

use std::fmt;

use super::json::Malformed;
use crate::message::{Message, Origin};

/// One trimmed, non-empty line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Counts from 1.
    pub(super) number: u64,
    /// One JSON value, if the host kept its promise.
    pub(super) bytes: &'a [u8],
}

/// The reader of one format.
pub(super) trait Host: fmt::Debug {
    /// Takes one line. Must change nothing before it knows that the line is well formed.
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed>;

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
    pub(super) fn speak(&mut self, entry: u64, id: Option<String>, origin: Origin, text: String) {
        let index = self.utter();
        self.say(message(index, entry, id, origin, text));
    }

    /// Gives out a record beside the conversation, which is not counted.
    pub(super) fn mention(&mut self, entry: u64, id: Option<String>, origin: Origin, text: String) {
        self.say(message(*self.utterances, entry, id, origin, text));
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
    entry: u64,
    id: Option<String>,
    origin: Origin,
    text: String,
) -> Message {
    Message { index, entry: Some(entry), origin, id, text }
}

/// Appends a text block to those before it.
pub(super) fn join(text: &mut String, block: &str) {
    if !text.is_empty() && !block.is_empty() {
        text.push('\n');
    }
    text.push_str(block);
}
