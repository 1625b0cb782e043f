//! A message that may go on: its parts, and how they are put together.

use std::collections::HashMap;

use super::context::Where;
use crate::history::Live;
use crate::out::{EntryPos, join, message};
use aldis_signal::message::{Message, Origin, Role};

/// A message of an agent.
#[derive(Debug)]
pub(super) struct OpenMessage {
    pub(super) id: Option<String>,
    pub(super) index: Option<u64>,
    pub(super) origin: Origin,
    /// Whole blocks came: pieces are copies of them.
    pub(super) is_complete: bool,
    /// Pieces came, and not all of them.
    pub(super) is_unfinished: bool,
    /// Whether the filter found anything of interest in it.
    pub(super) matters: bool,
    parts: Vec<MessagePart>,
    /// Where the part of a name is.
    by_name: HashMap<String, usize>,
}

/// What one line adds.
#[derive(Debug)]
struct MessagePart {
    text: String,
    /// Its place in the message, if the host names it.
    place: Option<u64>,
    at: Where,
}

impl Default for OpenMessage {
    fn default() -> Self {
        Self::new(None, Origin::assistant())
    }
}

impl OpenMessage {
    pub(super) fn new(id: Option<String>, origin: Origin) -> Self {
        Self {
            id,
            index: None,
            origin,
            is_complete: false,
            is_unfinished: false,
            matters: false,
            parts: Vec::new(),
            by_name: HashMap::new(),
        }
    }

    /// A message of which nothing has come yet.
    pub(super) fn unfinished(id: Option<String>, origin: Origin) -> Self {
        Self { is_unfinished: true, ..Self::new(id, origin) }
    }

    /// Adds a block.
    pub(super) fn add(&mut self, text: &str, place: Option<u64>, at: Where) {
        self.parts.push(MessagePart { text: text.into(), place, at });
    }

    /// Adds to the part of this name.
    pub(super) fn append(&mut self, name: &str, text: &str, at: Where) {
        let part = self.part(name, at);
        part.text.push_str(text);
    }

    /// Replaces the part of this name.
    pub(super) fn replace(&mut self, name: &str, text: &str, at: Where) {
        let part = self.part(name, at);
        part.text.clear();
        part.text.push_str(text);
    }

    fn part(&mut self, name: &str, at: Where) -> &mut MessagePart {
        let next = self.parts.len();
        let place = *self.by_name.entry(name.into()).or_insert(next);
        if place == next {
            self.parts.push(MessagePart { text: String::new(), place: None, at });
        }
        let part = &mut self.parts[place];
        let pos = EntryPos { entry: at.pos.entry, at: at.pos.at.or(part.at.pos.at) };
        part.at = Where { node: at.node, pos };
        part
    }

    /// A message that is cut off or written by the host is so as a whole, whichever line says it.
    pub(super) fn set_origin(&mut self, origin: Origin) {
        if self.origin.live && self.origin.role == Role::Assistant {
            self.origin = origin;
        }
    }

    /// Marks a message that was aborted before it was complete.
    pub(super) fn abort(&mut self) {
        if self.is_unfinished && self.origin.live {
            self.origin = self.origin.clone().dead("aborted message");
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.text.is_empty())
    }

    /// Returns the last line on which it went on.
    pub(super) fn entry(&self) -> u64 {
        self.parts.iter().map(|part| part.at.pos.entry).max().unwrap_or(0)
    }

    /// Returns all of its text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.parts.iter().for_each(|part| join(&mut text, &part.text));
        text
    }

    /// Puts the parts together. What a rewind cut off is a message of its own.
    pub(super) fn messages(mut self, live: Option<&Live>) -> Vec<(Option<u32>, Message)> {
        // Blocks may be written in another order than they were said in.
        if self.parts.iter().all(|part| part.place.is_some()) {
            self.parts.sort_by_key(|part| part.place);
        }
        let is_live = |part: &MessagePart| match (live, part.at.node) {
            (Some(live), Some(node)) => live.dead(node).is_none(),
            _ => true,
        };
        let index = self.index.unwrap_or_default();
        let parts = std::mem::take(&mut self.parts);
        let (kept, cut): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_live);
        let put_together = |parts: Vec<MessagePart>| self.put_together(index, parts);
        [kept, cut].into_iter().filter_map(put_together).collect()
    }

    fn put_together(&self, index: u64, parts: Vec<MessagePart>) -> Option<(Option<u32>, Message)> {
        let mut parts = parts.into_iter().filter(|part| !part.text.is_empty());
        let MessagePart { mut text, at: Where { node, mut pos }, .. } = parts.next()?;
        for part in parts {
            join(&mut text, &part.text);
            pos.entry = pos.entry.max(part.at.pos.entry);
            pos.at = pos.at.max(part.at.pos.at);
        }
        Some((node, message(index, pos, self.id.clone(), self.origin.clone(), text)))
    }
}
