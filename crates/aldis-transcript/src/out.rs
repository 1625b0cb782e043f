//! Where messages go.

use aldis_signal::message::{Message, Origin};
use aldis_signal::time::Timestamp;

/// Where in a file a message stands, and when it was written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntryPos {
    /// The number of its line.
    pub(super) entry: u64,
    pub(super) at: Option<Timestamp>,
}

/// The way out of a reader.
pub(super) struct Out<'a> {
    pub(super) sink: &'a mut dyn FnMut(Message),
    pub(super) may_matter: &'a dyn Fn(&[u8]) -> bool,
    /// How many messages were seen so far, given out or not.
    pub(super) count: &'a mut u64,
    /// Whether messages are wanted as they come, before the end is known.
    pub(super) following: bool,
    /// Whether only what agents say is wanted.
    pub(super) signals_only: bool,
}

impl Out<'_> {
    /// Counts a message and returns its index.
    pub(super) fn next_index(&mut self) -> u64 {
        let index = *self.count;
        *self.count += 1;
        index
    }

    /// Gives out a message unless it is empty.
    pub(super) fn emit(&mut self, message: Message) {
        if !message.text.is_empty() {
            (self.sink)(message);
        }
    }
}

/// Puts a message together.
pub(super) fn message(
    index: u64,
    pos: EntryPos,
    id: Option<String>,
    origin: Origin,
    text: String,
) -> Message {
    let mut message = Message::new(index, origin, text);
    (message.entry, message.id, message.at) = (Some(pos.entry), id, pos.at);
    message
}

/// Appends a text block to those before it.
pub(super) fn join(text: &mut String, block: &str) {
    if !text.is_empty() && !block.is_empty() {
        text.push('\n');
    }
    text.push_str(block);
}
