//! Claude Code's transcript files (and those of hosts that copied the form).
//!
//! One line holds one content block, lines of one message share its id, and branches that were
//! rewound stay in the file. What is live is known only at the end, so messages are held back until
//! then; of lines that hold nothing of interest only their place in the chain is kept.

mod entry;
mod group;
mod shape;

use std::collections::VecDeque;

use entry::{Record, Said};
use group::{Group, Part, Ready, Words};
use shape::{Kind, Known, Shapes};

use super::blocks::{self, Calls};
use super::chain::{Chain, Entry, Live, Parent, key, print};
use super::json::{Malformed, member_strings};
use super::out::{Host, Line, Out, message};
use aldis_signal::message::Message;

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
    /// Its messages that are complete: which of their lines are live is known at the end.
    complete: Vec<Group>,
    ready: Vec<Ready>,
    /// The id of the entry before, as it is and hashed: it is the next one's parent.
    last: (Vec<u8>, u128),
}

impl ClaudeCode {
    pub(super) fn new() -> Self {
        Self {
            chain: Chain::default(),
            shapes: Shapes::new(),
            calls: Calls::default(),
            open: Vec::new(),
            recent: VecDeque::new(),
            complete: Vec::new(),
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
            print: match known.kind {
                Kind::Assistant => UNHEARD_AGENT,
                Kind::Other => UNHEARD,
            },
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
                let group = self.group(id, known.sidechain, out);
                match &known.call {
                    Some(call) => call.note(&mut self.calls, out.signals_only),
                    None => group.parts.push(Part::Line(node, line.number, line.bytes.to_vec())),
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
            return Ok(());
        }
        if record.uuid.is_some() {
            self.chain.add(&record.entry(false, UNHEARD, self.chain.is_empty()));
        }
        if matters {
            self.metadata(line, &record, out);
        }
        Ok(())
    }

    /// Takes a line of the agent's that matters, if it can be read in one go.
    fn at_once(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let (record, said, content) = Record::read_at_once(line.bytes, out.signals_only)?;
        let spoken = blocks::read_words(&content, &mut self.calls);
        let print = print(spoken.text.as_bytes());
        let entry = record.entry(false, print, self.chain.is_empty());
        if let Some(node) = self.chain.add(&entry) {
            let words = Words::new((node, line.number), &record, &said, spoken);
            self.add_part(&entry, &said, (Part::Said(Box::new(words)), true), out);
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
        if record.is_assistant() {
            self.assistant(line, record, said, matters, out);
            return;
        }
        // The same line has the same print, also where results begin to matter half-way.
        let words = record.message.filter(|_| matters && !out.signals_only);
        let print = words.map_or(UNHEARD, |words| print(words.get().as_bytes()));
        let entry = record.entry(record.is_typed(said), print, self.chain.is_empty());
        let Some(node) = self.chain.add(&entry) else { return };
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

    /// Takes a line of the agent's.
    fn assistant(
        &mut self,
        line: Line<'_>,
        record: &Record<'_>,
        said: &Said<'_>,
        matters: bool,
        out: &mut Out<'_>,
    ) {
        let kept = matters || out.following;
        let wanted = |raw: &[u8]| kept && (out.may_matter)(raw);
        let spoken = record.spoken(said, &mut self.calls, &wanted);
        let print = if matters { print(spoken.text.as_bytes()) } else { UNHEARD_AGENT };
        let entry = record.entry(false, print, self.chain.is_empty());
        let Some(node) = self.chain.add(&entry) else { return };
        let part = match kept {
            true => Part::Said(Box::new(Words::new((node, line.number), record, said, spoken))),
            false => Part::Line(node, line.number, line.bytes.to_vec()),
        };
        self.add_part(&entry, said, (part, matters), out);
    }

    /// Adds a line of the agent's to its message.
    fn add_part<C>(
        &mut self,
        entry: &Entry,
        said: &Said<'_, C>,
        (part, matters): (Part, bool),
        out: &mut Out<'_>,
    ) {
        let id = said.id.as_ref().map_or(0, |id| key(id.as_bytes()));
        let group = self.group(id, entry.sidechain, out);
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
    fn group(&mut self, key: u128, sidechain: bool, out: &mut Out<'_>) -> &mut Group {
        let same = |group: &Group| group.key == key && key != 0 && group.sidechain == sidechain;
        let at = self.open.iter().position(same).unwrap_or_else(|| {
            let old = |group: &Group| group.sidechain == sidechain;
            if !sidechain || self.open.iter().filter(|group| old(group)).count() >= OPEN_MAX {
                self.close_all(old, out);
            }
            let index = out.utter();
            let parts = Vec::new();
            self.open.push(Group { key, sidechain, index, matters: false, parts });
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
        if out.following {
            for ready in group.messages(&mut self.calls, out, None) {
                out.say(ready.message);
            }
        } else if group.matters {
            self.complete.push(group.read(&mut self.calls, out));
        } else if !group.sidechain && !group.parts.is_empty() {
            if self.recent.len() >= RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back(group);
        }
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
            let found = group.messages(&mut self.calls, out, Some(live)).into_iter();
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
        for group in std::mem::take(&mut self.complete) {
            self.ready.extend(group.messages(&mut self.calls, out, Some(&live)));
        }
        self.add_last(&live, out);
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_by_key(|ready| (ready.message.index, ready.message.entry));
        for Ready { node, mut message } in ready {
            if let Some(node) = node {
                live.settle(node, &mut message);
            }
            out.say(message);
        }
    }
}

/// The prints of lines that say nothing of interest: what one id says twice there need not be told
/// apart, only who says it.
const UNHEARD: u32 = 0;
const UNHEARD_AGENT: u32 = 1;
/// Sub-agents that talk at the same time.
const OPEN_MAX: usize = 8;
/// The last messages may turn out to be dead, so a few more than one are kept.
const RECENT_MAX: usize = 8;
