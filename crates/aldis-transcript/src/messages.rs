//! Messages: items put together into what was said, each with its origin.
//!
//! Hosts write a message as a whole, block by block or in pieces, and some write it again at the
//! end. This fold is the same for all of them; what differs is in the items.

mod calls;
mod context;
mod copies;
mod open;
mod versions;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use calls::Calls;
pub(crate) use context::Source;
use context::{Context, Where};
use copies::Copies;
use open::OpenMessage;
use versions::Versions;

use super::content::{path, text_of};
use super::history::{Added, History, Live};
use super::item::{Call, CallResult, Channels, Decode, Entry, Item, Part, Text, tool};
use super::members::{Raw, member_strings, strings};
use super::out::{EntryPos, Out, message};
use aldis_signal::message::{Message, Origin, Role};

/// The messages of one input.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    calls: Calls,
    /// The message that may go on, by channel.
    open: HashMap<String, OpenMessage>,
    history: History,
    /// Whether messages wait for the end of the input, where it is not followed.
    holds_back: bool,
    held: Vec<Held>,
    /// The last messages that are complete and hold nothing of interest.
    quiet: VecDeque<OpenMessage>,
    copies: Copies,
    /// Whether the format has copies at all.
    repeats: bool,
    versions: Versions,
    /// Ids of messages that were taken back.
    removed: HashSet<String>,
    /// Whether the main agent has spoken.
    has_agent_text: bool,
}

/// What waits for the end of the input, where it is known what is live.
#[derive(Debug)]
enum Held {
    Message(Option<u32>, Message),
    /// A message of the agent: which of its parts are live is known at the end.
    Parts(OpenMessage),
}

impl Messages {
    pub(crate) fn new(decoder: &dyn Decode) -> Self {
        let (holds_back, repeats) = (decoder.holds_back(), decoder.repeats());
        Self { holds_back, repeats, ..Self::default() }
    }

    /// Says that the lines to come are the end of a file, and of which session they should be.
    pub(crate) fn begin_late(&mut self, session: Option<&str>) {
        self.history.begin_late(session);
        self.copies.is_blind = true;
    }

    /// Returns whether an agent was called, whose result can signal.
    pub(crate) fn has_agents(&self) -> bool {
        self.calls.has_agents()
    }

    /// Takes in one entry.
    pub(crate) fn take(&mut self, line: Source<'_>, entry: Entry<'_>, out: &mut Out<'_>) {
        let words = entry.items.iter().find_map(|item| match item {
            Item::Text(text) => Some(&*text.text),
            _ => None,
        });
        let words = words.unwrap_or_default();
        let added = entry.link.as_ref().map(|link| self.history.add(link, words));
        let (node, version_of) = match added {
            Some(Added::Copy) => return,
            Some(Added::New(node)) => (Some(node), None),
            Some(Added::Version { node, of }) => (Some(node), Some(of)),
            // What lines say that are no entries goes with the entry before them.
            None => (self.history.latest(), None),
        };
        let may_change = entry.link.as_ref().is_some_and(|link| link.is_version);
        if let Some(node) = node.filter(|_| may_change) {
            self.versions.add(node, version_of);
        }
        let pos = EntryPos { entry: line.number, at: entry.at };
        let mut context = Context {
            line: line.bytes,
            at: Where { node, pos },
            wanted: line.wanted,
            id: entry.id.as_deref(),
            channel: &entry.channel,
            is_side: entry.is_side,
            agent: entry.agent.as_deref(),
            cwd: &entry.cwd,
            version_of,
            index: None,
        };
        for item in entry.items {
            self.item(&mut context, item, out);
        }
        if let (Some(node), Some(index), true) = (node, context.index, may_change) {
            self.versions.indices.insert(node, index);
        }
    }

    fn item(&mut self, context: &mut Context<'_>, item: Item<'_>, out: &mut Out<'_>) {
        match item {
            Item::Text(text) => self.text(context, text, out),
            Item::Prompt { by, text } => {
                self.copies.is_blind &= by.role != Role::User;
                self.answered(context, out);
                if context.wanted.others() {
                    self.emit(context, by, || text.into_owned(), out);
                }
            }
            Item::Call(call) => self.call(context, &call, out),
            Item::Result(result) => self.result(context, &result, out),
            Item::Counted => self.answered(context, out),
            Item::Thought(thought) => {
                self.index(context, out);
                self.show(context, tool("thinking"), thought, strings, out);
            }
            Item::Record { by, value } => {
                let filter = out.may_matter;
                let value = value.map_or(context.line, |value| value.bytes());
                if filter(value) {
                    self.emit(context, by, || member_strings(value, filter), out);
                }
            }
            Item::Start { id } => {
                self.close(context.channel, out);
                let by = context.place(Origin::assistant());
                let open = OpenMessage::unfinished(id.map(Cow::into_owned), by);
                self.open.insert(context.channel.into(), open);
            }
            Item::Stop => {
                if let Some(open) = self.open.get_mut(context.channel) {
                    open.is_unfinished = false;
                }
            }
            Item::Close(channels) => {
                self.close_these(context.channel, channels, out);
                self.confirm_copies(out);
            }
            Item::Turn => {
                self.confirm_copies(out);
                self.copies.begin_turn();
            }
            Item::Abort(channels) => self.abort(context.channel, channels),
            Item::Removed { id } => drop(self.removed.insert(id.into_owned())),
            Item::Rewind(rewind) => {
                self.close_these("", Channels::All, out);
                self.confirm_copies(out);
                self.history.rewind(&rewind);
            }
            Item::Session(_)
            | Item::Usage(_)
            | Item::Denied { .. }
            | Item::Retry { .. }
            | Item::Trouble(_)
            | Item::Interrupted
            | Item::Compacted
            | Item::End { .. } => {}
        }
    }

    /// Takes words of the agent.
    fn text(&mut self, context: &mut Context<'_>, text: Text<'_>, out: &mut Out<'_>) {
        let Text { by, part, text, .. } = text;
        let by = context.place(by);
        match part {
            Part::Whole => {
                // Pieces that came before it are copies.
                let before = self.open.remove(context.channel);
                if let Some(before) = before.filter(|open| open.is_complete) {
                    self.give(before, out);
                }
                let mut open = OpenMessage::new(context.id.map(str::to_owned), by);
                open.index = Some(self.index(context, out));
                open.add(&text, None, context.at);
                open.matters = context.wanted.matters();
                self.give(open, out);
            }
            Part::Block { place, is_last } => {
                let open = self.block_of(context, by, out);
                open.is_unfinished &= !is_last;
                open.add(&text, place, context.at);
                open.matters |= context.wanted.matters();
                if is_last && out.following {
                    self.close(context.channel, out);
                }
            }
            Part::Piece { of } => {
                let open = self.draft_of(context, by, out);
                if !open.is_complete {
                    open.append(&of, &text, context.at);
                    // What the filter looks for may be split over pieces.
                    open.matters = true;
                }
            }
            Part::Version { of } => {
                let open = self.draft_of(context, by, out);
                open.replace(&of, &text, context.at);
                open.matters |= context.wanted.matters();
            }
            Part::Copy => self.copies.note_copy(context, by, text.into_owned()),
            Part::Outcome => {
                if !self.has_agent_text {
                    self.text(context, Text::new(by, Part::Whole, text), out);
                }
            }
        }
    }

    /// Returns the message that a block belongs to. Pieces that came before it are copies.
    fn block_of(
        &mut self,
        context: &mut Context<'_>,
        by: Origin,
        out: &mut Out<'_>,
    ) -> &mut OpenMessage {
        let open = self.open.get(context.channel);
        let goes_on = |open: &OpenMessage| {
            open.is_complete && context.id.is_some() && open.id.as_deref() == context.id
        };
        if !open.is_some_and(goes_on) {
            let mut new = OpenMessage::new(context.id.map(str::to_owned), by.clone());
            match self.open.remove(context.channel) {
                Some(before) if before.is_complete => self.give(before, out),
                Some(draft) => new.is_unfinished = draft.is_unfinished,
                None => {}
            }
            new.is_complete = true;
            new.index = Some(self.index(context, out));
            self.open.insert(context.channel.into(), new);
        }
        let open = self.open.entry(context.channel.into()).or_default();
        context.index = open.index;
        open.set_origin(by);
        open
    }

    /// Returns the message that a piece belongs to.
    fn draft_of(
        &mut self,
        context: &Context<'_>,
        by: Origin,
        out: &mut Out<'_>,
    ) -> &mut OpenMessage {
        let is_other =
            |open: &OpenMessage| context.id.is_some() && open.id.as_deref() != context.id;
        if self.open.get(context.channel).is_some_and(is_other) {
            self.close(context.channel, out);
        }
        let open = self.open.entry(context.channel.into());
        let open = open.or_insert_with(|| OpenMessage::new(context.id.map(str::to_owned), by));
        open.is_unfinished = true;
        open
    }

    fn call(&mut self, context: &mut Context<'_>, call: &Call<'_>, out: &mut Out<'_>) {
        // Whoever wants signals alone is not told what results are about.
        let about = call.about.filter(|_| !out.signals_only);
        self.calls.note(&call.id, &call.name, &path(about));
        let Some(input) = call.input else { return };
        self.index(context, out);
        let name = if call.name.is_empty() { "a tool" } else { &call.name };
        self.show(context, tool(format!("input of {name}")), input, strings, out);
    }

    fn result(&mut self, context: &mut Context<'_>, result: &CallResult<'_>, out: &mut Out<'_>) {
        self.answered(context, out);
        let mut by = self.calls.result(&result.id, &result.name, context.cwd);
        let is_agents = by.role == Role::Subagent;
        if is_agents && let Some(agent) = &result.agent {
            by.agent = Some(agent.to_string());
        }
        // An agent that failed has said nothing: this is the host's word.
        if is_agents && result.is_error {
            by = tool("a sub-agent's error");
        }
        let matters = |raw: &Raw<'_>| (out.may_matter)(raw.bytes());
        if let Some(content) = result.content.filter(matters) {
            self.emit(context, by, || text_of(content), out);
        } else if let Some(copy) = result.copy.filter(matters) {
            // Only what a sub-agent answered is its word; the copy also holds what it was asked.
            let by = if is_agents { tool("record of a sub-agent") } else { by };
            self.emit(context, by, || strings(copy), out);
        }
    }

    /// Something came back to the agent: where the input is followed, what it said is complete.
    fn answered(&mut self, context: &mut Context<'_>, out: &mut Out<'_>) {
        if out.following {
            self.close(context.channel, out);
        }
        self.index(context, out);
    }

    /// Gives out the text of a value if it matters.
    fn show(
        &mut self,
        context: &Context<'_>,
        by: Origin,
        value: Raw<'_>,
        text: impl Fn(Raw<'_>) -> String,
        out: &mut Out<'_>,
    ) {
        if (out.may_matter)(value.bytes()) {
            self.emit(context, by, || text(value), out);
        }
    }

    /// Gives out a text that is no message of the agent's own.
    fn emit(
        &mut self,
        context: &Context<'_>,
        by: Origin,
        text: impl FnOnce() -> String,
        out: &mut Out<'_>,
    ) {
        let by = context.place(by);
        if out.signals_only && !by.may_signal() {
            return;
        }
        let index = context.index.unwrap_or(*out.count);
        let id = context.id.map(str::to_owned);
        let message = message(index, context.at.pos, id, by, text());
        self.hold(context.at.node, message, out);
    }

    /// Returns the index of an entry, which is counted now unless it is already.
    fn index(&self, context: &mut Context<'_>, out: &mut Out<'_>) -> u64 {
        let known = context.version_of.and_then(|of| self.versions.indices.get(&of)).copied();
        *context.index.get_or_insert_with(|| known.unwrap_or_else(|| out.next_index()))
    }

    fn hold(&mut self, node: Option<u32>, mut message: Message, out: &mut Out<'_>) {
        if self.holds_back && !out.following {
            self.held.push(Held::Message(node, message));
        } else if !node.is_some_and(|node| self.versions.is_given_out(node, &message)) {
            self.mark_removed(&mut message);
            out.emit(message);
        }
    }

    fn mark_removed(&self, message: &mut Message) {
        if message.id.as_ref().is_some_and(|id| self.removed.contains(id)) {
            message.origin = message.origin.clone().dead("removed");
        }
    }

    /// Gives out a message that is complete.
    fn give(&mut self, mut open: OpenMessage, out: &mut Out<'_>) {
        if open.is_empty() {
            return;
        }
        open.index.get_or_insert_with(|| out.next_index());
        self.has_agent_text |= !open.origin.sidechain;
        if self.repeats {
            self.copies.note_said(&open.text());
        }
        if !self.holds_back || out.following {
            for (node, message) in open.messages(None) {
                self.hold(node, message, out);
            }
        } else if open.matters {
            self.held.push(Held::Parts(open));
        } else if !open.origin.sidechain {
            if self.quiet.len() >= QUIET_MAX {
                self.quiet.pop_front();
            }
            self.quiet.push_back(open);
        }
    }

    fn close(&mut self, channel: &str, out: &mut Out<'_>) {
        if let Some(open) = self.open.remove(channel) {
            self.give(open, out);
        }
    }

    fn close_these(&mut self, own: &str, channels: Channels<'_>, out: &mut Out<'_>) {
        match channels {
            Channels::Own => self.close(own, out),
            Channels::Named(channel) => self.close(&channel, out),
            Channels::All => {
                let mut all: Vec<OpenMessage> =
                    std::mem::take(&mut self.open).into_values().collect();
                all.sort_by_key(|open| (open.index.unwrap_or(u64::MAX), open.entry()));
                all.into_iter().for_each(|open| self.give(open, out));
            }
        }
    }

    fn abort(&mut self, own: &str, channels: Channels<'_>) {
        match channels {
            Channels::Own => self.open.get_mut(own).into_iter().for_each(OpenMessage::abort),
            Channels::Named(name) => {
                self.open.get_mut(&*name).into_iter().for_each(OpenMessage::abort);
            }
            Channels::All => self.open.values_mut().for_each(OpenMessage::abort),
        }
    }

    /// Takes copies at their word where nothing else said what they say.
    fn confirm_copies(&mut self, out: &mut Out<'_>) {
        for pending in self.copies.take_unconfirmed() {
            let mut open = OpenMessage::new(pending.id, pending.by);
            open.index = Some(out.next_index());
            open.matters = true;
            open.add(&pending.text, None, pending.at);
            self.give(open, out);
        }
    }

    /// Gives out what was held back.
    pub(crate) fn finish(&mut self, out: &mut Out<'_>) {
        self.close_these("", Channels::All, out);
        self.confirm_copies(out);
        let live = std::mem::take(&mut self.history).live();
        let mut all = Vec::new();
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Message(node, message) => all.push((node, message)),
                Held::Parts(open) => all.extend(open.messages(Some(&live))),
            }
        }
        let is_replaced =
            |node: &Option<u32>| node.is_some_and(|node| self.versions.replaced.contains(&node));
        all.retain(|(node, _)| !is_replaced(node));
        self.add_last(&mut all, &live);
        all.sort_by_key(|(_, message)| (message.index, message.entry));
        for (node, mut message) in all {
            if let Some(node) = node {
                live.mark(node, &mut message);
            }
            self.mark_removed(&mut message);
            out.emit(message);
        }
    }

    /// Adds the last live message of the agent if it was left out for holding nothing of interest:
    /// misspelled signals are looked for there.
    fn add_last(&mut self, all: &mut Vec<(Option<u32>, Message)>, live: &Live) {
        let counts = |(node, message): &(Option<u32>, Message)| {
            message.origin.role == Role::Assistant
                && message.origin.may_signal()
                && node.is_none_or(|node| live.dead(node).is_none())
        };
        let last = all.iter().filter(|found| counts(found)).map(|(_, message)| message.index).max();
        for open in std::mem::take(&mut self.quiet).into_iter().rev() {
            if last.is_some_and(|last| open.index.is_some_and(|index| index < last)) {
                return;
            }
            if let Some(found) = open.messages(Some(live)).into_iter().find(counts) {
                all.push(found);
                return;
            }
        }
    }
}

/// The last messages may turn out to be dead, so a few more than one are kept.
const QUIET_MAX: usize = 8;
