//! The lines of one message of the agent, and how they are put together.

use super::entry::{Record, Said};
use crate::blocks::{Calls, Spoken};
use crate::chain::Live;
use crate::out::{Out, Spot, join, message};
use aldis_signal::message::{Message, Origin, Role};

/// The lines of one assistant message.
#[derive(Debug)]
pub(super) struct Group {
    /// The message's id, hashed; 0 if it has none.
    pub(super) key: u128,
    pub(super) sidechain: bool,
    pub(super) index: u64,
    pub(super) matters: bool,
    /// Its lines that may hold text.
    pub(super) parts: Vec<Part>,
}

/// What is kept of a line until its message is complete.
#[derive(Debug)]
pub(super) enum Part {
    /// Its entry, number and bytes: it says nothing of interest, but others of its message may.
    Line(u32, u64, Vec<u8>),
    Said(Box<Words>),
}

/// What one line says.
#[derive(Debug)]
pub(super) struct Words {
    node: u32,
    /// Its place in the message, if the host names it.
    block: Option<u64>,
    spot: Spot,
    id: Option<String>,
    origin: Origin,
    text: String,
    asides: Vec<(Origin, String)>,
}

/// A message that waits for the end of the file.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) node: Option<u32>,
    pub(super) message: Message,
}

impl Words {
    pub(super) fn new<M, C>(
        (node, number): (u32, u64),
        record: &Record<'_, M>,
        said: &Said<'_, C>,
        spoken: Spoken,
    ) -> Self {
        let place = |(origin, aside)| (record.place(origin), aside);
        Self {
            node,
            block: record.block(),
            spot: record.spot(number),
            id: said.id.as_ref().or(record.uuid.as_ref()).map(|id| id.to_owned()),
            origin: record.place(record.speaker(said)),
            text: spoken.text,
            asides: spoken.asides.into_iter().map(place).collect(),
        }
    }
}

impl Part {
    fn read(self, calls: &mut Calls, out: &Out<'_>) -> Option<Words> {
        match self {
            Self::Said(words) => Some(*words),
            Self::Line(node, number, bytes) => {
                // Such a line was well formed or only looked so, and then it says nothing.
                let (record, said) = Record::read(&bytes).ok()?;
                let spoken = record.spoken(&said, calls, out.may_matter);
                Some(Words::new((node, number), &record, &said, spoken))
            }
        }
    }
}

impl Group {
    /// Reads the lines that were only kept.
    pub(super) fn read(mut self, calls: &mut Calls, out: &Out<'_>) -> Self {
        let words = self.parts.into_iter().filter_map(|part| part.read(calls, out));
        self.parts = words.map(|words| Part::Said(Box::new(words))).collect();
        self
    }

    /// Puts the lines together: the text as one message, and what else is in them. What a rewind
    /// cut off is a message of its own.
    pub(super) fn messages(
        self,
        calls: &mut Calls,
        out: &Out<'_>,
        live: Option<&Live>,
    ) -> Vec<Ready> {
        let words = self.parts.into_iter().filter_map(|part| part.read(calls, out));
        let mut words: Vec<Words> = words.collect();
        // Blocks may be written in another order than they were said in.
        if words.iter().all(|words| words.block.is_some()) {
            words.sort_by_key(|words| words.block);
        }
        let is_live = |words: &Words| live.is_none_or(|live| live.dead(words.node).is_none());
        let (kept, cut): (Vec<_>, Vec<_>) = words.into_iter().partition(is_live);
        let mut ready = Vec::new();
        put_together(self.index, kept, &mut ready);
        put_together(self.index, cut, &mut ready);
        ready
    }
}

fn put_together(index: u64, words: Vec<Words>, ready: &mut Vec<Ready>) {
    let mut whole: Option<Ready> = None;
    let mut speaker = Origin::assistant();
    for words in words {
        let Words { node, spot, id, origin, text, asides, .. } = words;
        for (origin, aside) in asides {
            let message = message(index, spot, id.clone(), origin, aside);
            ready.push(Ready { node: Some(node), message });
        }
        // A message that was cut off or written by the host is so as a whole, whichever line says
        // it.
        if speaker.live && speaker.role == Role::Assistant {
            speaker = origin;
        }
        match &mut whole {
            _ if text.is_empty() => {}
            Some(Ready { message, .. }) => {
                join(&mut message.text, &text);
                message.entry = message.entry.max(Some(spot.entry));
                message.at = message.at.max(spot.at);
            }
            None => {
                let message = message(index, spot, id, Origin::assistant(), text);
                whole = Some(Ready { node: Some(node), message });
            }
        }
    }
    if let Some(mut whole) = whole {
        whole.message.origin = speaker;
        ready.push(whole);
    }
}

impl Ready {
    pub(super) fn is_assistant(&self) -> bool {
        self.message.origin.role == Role::Assistant
    }

    pub(super) fn is_live(&self, live: &Live) -> bool {
        self.node.is_none_or(|node| live.dead(node).is_none())
    }
}
