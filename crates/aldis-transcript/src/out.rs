//! Where messages go.

use aldis_signal::message::{Message, Origin};
use aldis_signal::time::Timestamp;

/// Where and when a message was said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spot {
    /// The number of its line.
    pub(super) entry: u64,
    pub(super) at: Option<Timestamp>,
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

/// Appends a text block to those before it.
pub(super) fn join(text: &mut String, block: &str) {
    if !text.is_empty() && !block.is_empty() {
        text.push('\n');
    }
    text.push_str(block);
}
