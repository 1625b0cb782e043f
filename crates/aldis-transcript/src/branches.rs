//! Messages of files whose entries name their parents, held back until the live branch is known.

use std::fmt;

use super::chain::{Chain, Entry, Parent, key, print};
use super::json::Malformed;
use super::out::{Host, Line, Out};
use aldis_signal::message::Message;

/// Reads the lines of a file whose entries name their parents.
pub(super) trait Entries: fmt::Debug {
    /// Reads one line, like [`Host::line`]; an entry is made known to `branches`.
    fn read(
        &mut self,
        line: Line<'_>,
        branches: &mut Branches,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed>;

    /// Says what has waited for a line that did not come.
    fn flush(&mut self, _out: &mut Out<'_>) {}
}

/// Reader of such a file.
#[derive(Debug, Default)]
pub(super) struct Branching<R> {
    reader: R,
    branches: Branches,
}

impl<R: Entries> Host for Branching<R> {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let (read, messages) = heard(out, |out| self.reader.read(line, &mut self.branches, out));
        self.branches.hold(messages, out);
        read
    }

    fn begin_late(&mut self, _session: Option<&str>) {
        self.branches.chain.begin_late(0);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        let ((), messages) = heard(out, |out| self.reader.flush(out));
        self.branches.hold(messages, out);
        self.branches.finish(out);
    }
}

/// The entries of a file, and what they said.
#[derive(Debug, Default)]
pub(super) struct Branches {
    chain: Chain,
    /// The line of each entry.
    lines: Vec<u64>,
    held: Vec<Message>,
}

/// What a line says about its place in the conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) parent: Option<&'a str>,
    /// Typed by a human.
    pub(super) typed: bool,
    /// Written about the conversation: it may be a parent, but does not say which branch is live.
    pub(super) beside: bool,
}

impl Branches {
    /// Adds an entry; returns whether it is new. What lines say that are no entries goes with the
    /// entry before them.
    pub(super) fn enter(&mut self, line: Line<'_>, link: Link<'_>) -> bool {
        let hash = |id: &str| key(id.as_bytes());
        let entry = Entry {
            key: link.id.map_or(0, hash),
            parent: link.parent.map_or(Parent::Before, |id| Parent::Key(hash(id))),
            print: print(line.bytes),
            session: 0,
            sidechain: false,
            meta: link.beside,
            team: false,
            typed: link.typed,
        };
        let is_new = self.chain.add(&entry).is_some();
        if is_new {
            self.lines.push(line.number);
        }
        is_new
    }

    /// Holds messages back, unless they are wanted as they come.
    fn hold(&mut self, messages: Vec<Message>, out: &mut Out<'_>) {
        if out.following {
            messages.into_iter().for_each(|message| out.say(message));
        } else {
            self.held.extend(messages);
        }
    }

    /// Gives out what was held back.
    fn finish(&mut self, out: &mut Out<'_>) {
        let live = std::mem::take(&mut self.chain).live();
        for mut message in std::mem::take(&mut self.held) {
            let before = self.lines.partition_point(|line| Some(*line) <= message.entry);
            let node = before.checked_sub(1).and_then(|node| u32::try_from(node).ok());
            if let Some(node) = node {
                live.settle(node, &mut message);
            }
            out.say(message);
        }
    }
}

/// Reads a line and returns what it says instead of giving it out.
fn heard<R>(out: &mut Out<'_>, read: impl FnOnce(&mut Out<'_>) -> R) -> (R, Vec<Message>) {
    let mut messages = Vec::new();
    let mut sink = |message| messages.push(message);
    let mut inner = Out { sink: &mut sink, utterances: &mut *out.utterances, ..*out };
    let result = read(&mut inner);
    (result, messages)
}
