//! Claude Code's transcript files (and those of hosts that copied the form).
//!
//! One line holds one content block, lines of one message share its id, and branches that were
//! rewound stay in the file. What is live is known only at the end, so messages are held back until
//! then; of lines that hold nothing of interest only their place in the chain is kept.

mod chain;
mod entry;
mod shape;

use std::collections::VecDeque;

use chain::{Chain, Entry, Live, Parent, key};
use entry::{Record, Said};
use shape::{Kind, Known, Shapes};

use super::blocks::{self, Calls, Spoken};
use super::json::{Malformed, member_strings};
use super::out::{Host, Line, Out, Spot, join, message};
use crate::message::{Message, Origin, Role};

/// Reader of one transcript file.
#[derive(Debug)]
pub(super) struct ClaudeCode {
    chain: Chain,
    shapes: Shapes,
    calls: Calls,
    /// The messages whose lines are still coming: one of the agent, some of sub-agents.
    open: Vec<Group>,
    /// The agent's last messages that hold nothing of interest.
    recent: VecDeque<Group>,
    ready: Vec<Ready>,
    /// The id of the entry before, as it is and hashed: it is the next one's parent.
    last: (Vec<u8>, u128),
}

/// The lines of one assistant message.
#[derive(Debug)]
struct Group {
    /// The message's id, hashed; 0 if it has none.
    key: u128,
    sidechain: bool,
    index: u64,
    /// Its first entry: a message is live if it began on the live branch.
    node: u32,
    matters: bool,
    /// Its lines that may hold text.
    parts: Vec<Part>,
}

/// What is kept of a line until its message is complete.
#[derive(Debug)]
enum Part {
    /// Its number and bytes: it says nothing of interest, but others of its message may.
    Line(u64, Vec<u8>),
    Said(Box<Words>),
}

/// What one line says.
#[derive(Debug)]
struct Words {
    spot: Spot,
    id: Option<String>,
    origin: Origin,
    text: String,
    asides: Vec<(Origin, String)>,
}

impl Words {
    fn read(
        number: u64,
        record: &Record<'_>,
        said: &Said<'_>,
        calls: &mut Calls,
        out: &Out<'_>,
    ) -> Self {
        let spoken = record.spoken(said, calls, out.may_matter);
        Self::new(number, record, said, spoken)
    }

    fn new<M, C>(number: u64, record: &Record<'_, M>, said: &Said<'_, C>, spoken: Spoken) -> Self {
        let place = |(origin, aside)| (record.place(origin), aside);
        Self {
            spot: record.spot(number),
            id: said.id.as_ref().or(record.uuid.as_ref()).map(|id| id.to_owned()),
            origin: record.place(record.speaker(said)),
            text: spoken.text,
            asides: spoken.asides.into_iter().map(place).collect(),
        }
    }
}

/// A message that waits for the end of the file.
#[derive(Debug)]
struct Ready {
    node: Option<u32>,
    message: Message,
}

impl ClaudeCode {
    pub(super) fn new() -> Self {
        Self {
            chain: Chain::default(),
            shapes: Shapes::new(),
            calls: Calls::default(),
            open: Vec::new(),
            recent: VecDeque::new(),
            ready: Vec::new(),
            last: (Vec::new(), 0),
        }
    }

    /// Takes a line that holds nothing of interest and whose ids are known without parsing.
    fn known(&mut self, line: Line<'_>, known: &Known<'_>, out: &mut Out<'_>) {
        let own = key(known.uuid);
        let entry = Entry {
            key: own,
            parent: Parent::Key(if self.last.0 == known.parent {
                self.last.1
            } else {
                key(known.parent)
            }),
            print: shape::print(line.bytes, false),
            session: known.session,
            sidechain: known.sidechain,
            meta: false,
            team: false,
            typed: false,
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(known.uuid);
        self.last.1 = own;
        let Some(node) = self.chain.add(&entry) else { return };
        match known.kind {
            Kind::Assistant => {
                let id = key(known.message_id);
                let group = self.group(id, known.sidechain, node, out);
                match &known.call {
                    Some(call) => call.note(&mut self.calls, out.signals_only),
                    None => group.parts.push(Part::Line(line.number, line.bytes.to_vec())),
                }
            }
            Kind::Other => {
                out.utter();
            }
        }
    }

    /// Parses a line. Apart from the quick path, which must not pay for its large frame.
    #[inline(never)]
    fn parsed(
        &mut self,
        line: Line<'_>,
        matters: bool,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        if matters && self.at_once(line, out).is_some() {
            return Ok(());
        }
        let (record, said) = Record::read(line.bytes)?;
        if record.is_entry() {
            self.entry(line, &record, &said, matters, out);
            if !matters {
                self.shapes.learn(line.bytes, &record, &said);
            }
        } else if matters {
            self.metadata(line, &record, out);
        }
        Ok(())
    }

    /// Takes a line of the agent's that matters, if it can be read in one go.
    fn at_once(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let (record, said, content) = Record::read_at_once(line.bytes, out.signals_only)?;
        let entry = record.entry(false, shape::print(line.bytes, true), self.chain.is_empty());
        if let Some(node) = self.chain.add(&entry) {
            let spoken = blocks::read_words(&content, &mut self.calls);
            let part = Part::Said(Box::new(Words::new(line.number, &record, &said, spoken)));
            self.add_part(&entry, node, &said, (part, true), out);
        }
        Some(())
    }

    /// Takes an entry of the conversation.
    fn entry(
        &mut self,
        line: Line<'_>,
        record: &Record<'_>,
        said: &Said<'_>,
        matters: bool,
        out: &mut Out<'_>,
    ) {
        // The same line has the same print, also where results begin to matter half-way.
        let whole = matters && (record.is_assistant() || !out.signals_only);
        let print = shape::print(line.bytes, whole);
        let entry = record.entry(record.is_typed(said), print, self.chain.is_empty());
        let Some(node) = self.chain.add(&entry) else { return };
        if record.is_assistant() {
            let part = match matters || out.following {
                true => {
                    let words = Words::read(line.number, record, said, &mut self.calls, out);
                    Part::Said(Box::new(words))
                }
                false => {
                    record.spoken(said, &mut self.calls, &|_| false);
                    Part::Line(line.number, line.bytes.to_vec())
                }
            };
            self.add_part(&entry, node, said, (part, matters), out);
            return;
        }
        if out.following {
            self.close_all(|group| group.sidechain == entry.sidechain, out);
        }
        let index = out.utter();
        if !matters {
            return;
        }
        let texts = match &*record.kind {
            "user" | "tool_result" => record.user(said, &mut self.calls, out.may_matter),
            _ => {
                let text = member_strings(line.bytes, out.may_matter).unwrap_or_default();
                vec![(record.recorder(), text)]
            }
        };
        let id = record.uuid.as_ref().map(|uuid| uuid.to_owned());
        for (origin, text) in texts {
            let message =
                message(index, record.spot(line.number), id.clone(), record.place(origin), text);
            self.give(Some(node), message, out);
        }
    }

    /// Adds a line of the agent's to its message.
    fn add_part<C>(
        &mut self,
        entry: &Entry,
        node: u32,
        said: &Said<'_, C>,
        (part, matters): (Part, bool),
        out: &mut Out<'_>,
    ) {
        let id = said.id.as_ref().map_or(0, |id| key(id.as_bytes()));
        let group = self.group(id, entry.sidechain, node, out);
        group.matters |= matters;
        group.parts.push(part);
        if out.following && said.stop_reason.is_some() {
            self.close_all(|group| group.key == id, out);
        }
    }

    /// Takes a record beside the conversation. It has no place in the count.
    fn metadata(&mut self, line: Line<'_>, record: &Record<'_>, out: &mut Out<'_>) {
        let text = member_strings(line.bytes, out.may_matter).unwrap_or_default();
        let message =
            message(*out.utterances, record.spot(line.number), None, record.recorder(), text);
        self.give(None, message, out);
    }

    /// Returns the group a line belongs to. A new message of the agent ends the one before it.
    fn group(&mut self, key: u128, sidechain: bool, node: u32, out: &mut Out<'_>) -> &mut Group {
        let same = |group: &Group| group.key == key && key != 0 && group.sidechain == sidechain;
        let at = self.open.iter().position(same).unwrap_or_else(|| {
            let old = |group: &Group| group.sidechain == sidechain;
            if !sidechain || self.open.iter().filter(|group| old(group)).count() >= OPEN_MAX {
                self.close_all(old, out);
            }
            let index = out.utter();
            let parts = Vec::new();
            self.open.push(Group { key, sidechain, index, node, matters: false, parts });
            self.open.len() - 1
        });
        &mut self.open[at]
    }

    fn close_all(&mut self, which: impl Fn(&Group) -> bool, out: &mut Out<'_>) {
        while let Some(at) = self.open.iter().position(&which) {
            let group = self.open.remove(at);
            self.close(group, out);
        }
    }

    fn close(&mut self, group: Group, out: &mut Out<'_>) {
        if group.matters || out.following {
            for ready in self.messages(group, out) {
                self.give(ready.node, ready.message, out);
            }
        } else if !group.sidechain && !group.parts.is_empty() {
            if self.recent.len() >= RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back(group);
        }
    }

    /// Puts a group's lines together: its text as one message, and what else is in it.
    fn messages(&mut self, group: Group, out: &Out<'_>) -> Vec<Ready> {
        let Group { index, node, parts, .. } = group;
        let mut ready = Vec::new();
        let mut text = String::new();
        let mut speech: Option<(Spot, Option<String>, Origin)> = None;
        for part in parts {
            let words = match part {
                Part::Said(words) => *words,
                Part::Line(number, bytes) => {
                    // Such a line was well formed or only looked so, and then it says nothing.
                    let Ok((record, said)) = Record::read(&bytes) else { continue };
                    Words::read(number, &record, &said, &mut self.calls, out)
                }
            };
            let Words { spot, id, origin, text: spoken, asides } = words;
            for (origin, aside) in asides {
                let message = message(index, spot, id.clone(), origin, aside);
                ready.push(Ready { node: Some(node), message });
            }
            if spoken.is_empty() {
                continue;
            }
            match text.is_empty() {
                true => text = spoken,
                false => join(&mut text, &spoken),
            }
            // A message that was cut off or written by the host is so as a whole.
            let origin = match speech.take() {
                Some((_, _, before)) if !before.may_signal() && !before.sidechain => before,
                _ => origin,
            };
            speech = Some((spot, id, origin));
        }
        if let Some((spot, id, origin)) = speech {
            let message = message(index, spot, id, origin, text);
            ready.push(Ready { node: Some(node), message });
        }
        ready
    }

    /// Whether a line that says nothing may still decide which branch is live.
    fn may_branch(&mut self, known: &Known<'_>) -> bool {
        known.kind == Kind::Other && self.chain.may_branch(known.parent)
    }

    fn give(&mut self, node: Option<u32>, message: Message, out: &mut Out<'_>) {
        if out.following {
            out.say(message);
        } else {
            self.ready.push(Ready { node, message });
        }
    }

    /// Adds the last live message of the agent if it was left out for holding nothing of interest:
    /// misspelled signals are looked for there.
    fn add_last(&mut self, live: &Live, out: &Out<'_>) {
        let is_speech = |ready: &Ready| ready.message.origin.may_signal() && ready.is_assistant();
        let last = self.ready.iter().filter(|ready| is_speech(ready) && ready.is_live(live));
        let last = last.map(|ready| ready.message.index).max();
        for group in std::mem::take(&mut self.recent).into_iter().rev() {
            if last.is_some_and(|last| group.index < last) {
                return;
            }
            let found = self.messages(group, out).into_iter();
            if let Some(found) = found.filter(is_speech).find(|ready| ready.is_live(live)) {
                self.ready.push(found);
                return;
            }
        }
    }
}

impl Host for ClaudeCode {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        if out.following {
            return self.parsed(line, (out.may_matter)(line.bytes), out);
        }
        // Of results only those of sub-agents can signal.
        let results_matter = !out.signals_only || self.calls.has_agents();
        let known = if results_matter { None } else { self.shapes.recognise(line.bytes) };
        if let Some(known) = &known
            && known.kind == Kind::Other
            && !self.may_branch(known)
        {
            self.known(line, known, out);
            return Ok(());
        }
        let matters = (out.may_matter)(line.bytes);
        if !matters {
            if shape::is_metadata(line.bytes) {
                return Ok(());
            }
            let known = known.or_else(|| self.shapes.recognise(line.bytes));
            if let Some(known) = known
                && !self.may_branch(&known)
            {
                self.known(line, &known, out);
                return Ok(());
            }
        }
        self.parsed(line, matters, out)
    }

    fn begin_late(&mut self, session: Option<&str>) {
        let session = session.map_or(0, entry::session_key);
        self.chain.begin_late(session);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.close_all(|_| true, out);
        let live = std::mem::take(&mut self.chain).live();
        self.add_last(&live, out);
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_by_key(|ready| (ready.message.index, ready.message.entry));
        for mut ready in ready {
            if let Some(why) = ready.dead(&live) {
                let origin = &mut ready.message.origin;
                origin.live = false;
                if origin.role == Role::Assistant && origin.detail.is_none() {
                    origin.detail = Some(why.into());
                }
            }
            out.say(ready.message);
        }
    }
}

impl Ready {
    fn is_assistant(&self) -> bool {
        self.message.origin.role == Role::Assistant
    }

    fn is_live(&self, live: &Live) -> bool {
        self.dead(live).is_none()
    }

    fn dead(&self, live: &Live) -> Option<&'static str> {
        let node = self.node?;
        match self.message.origin.role {
            Role::Subagent | Role::Tool => live.result_dead(node),
            Role::Assistant | Role::Host | Role::System | Role::User => live.dead(node),
        }
    }
}

/// Sub-agents that talk at the same time.
const OPEN_MAX: usize = 8;
/// The last messages may turn out to be dead, so a few more than one are kept.
const RECENT_MAX: usize = 8;
