//! What hosts' lines say, in the words of none of them.
//!
//! Each host has one decoder that turns a line into [`Entry`]s; messages, host events and line
//! summaries are folds over their items. What a host writes is therefore understood in one place.

mod origin;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

pub(crate) use self::origin::{INTERRUPTED, host, is_feedback, system, tool, user};
use super::ending::Form;
use super::events::trouble::{self, Kind};
use super::history::{EntryStanding, Link, Rewind};
use super::json::Malformed;
use super::members::{Members, Raw, list};
use aldis_signal::message::{Origin, Role};
use aldis_signal::signal::CALL_ID;
use aldis_signal::time::Timestamp;

/// What a line says, if it is in the host's form.
pub(crate) type Decoded<'a> = Result<Vec<Entry<'a>>, Malformed>;

/// Reads the lines of one format.
pub(crate) trait Decode: fmt::Debug {
    /// Decodes one line. Must change nothing before it knows that the line is well formed. Of what
    /// is not `wanted`, only the agent's own words need be decoded.
    fn decode<'a>(&mut self, line: &Members<'a>, wanted: &Wanted<'_>) -> Decoded<'a>;

    /// Returns whether lines repeat what others said, in [`Part::Copy`].
    fn repeats(&self) -> bool {
        false
    }

    /// Returns whether a later line can take back what earlier ones said: then messages wait for
    /// the end of the file.
    fn holds_back(&self) -> bool {
        false
    }
}

/// Decodes a line, which may be a list of lines, and gives each entry with the line it is on.
pub(crate) fn decode_line(
    decoder: &mut dyn Decode,
    line: &[u8],
    wanted: &Wanted<'_>,
    each: &mut dyn FnMut(Entry<'_>, &[u8]),
) -> Result<(), Malformed> {
    if line.starts_with(b"[") {
        let elements = list(line)?.into_iter();
        let results = elements.map(|line| decode_line(decoder, line.bytes(), wanted, each));
        // One bad element does not make the others bad.
        return results.fold(Ok(()), Result::and);
    }
    let entries = decoder.decode(&Members::of_bytes(line)?, wanted)?;
    entries.into_iter().for_each(|entry| each(entry, line));
    Ok(())
}

/// What is asked for beside the agent's own words.
pub(crate) struct Wanted<'w> {
    line: &'w [u8],
    filter: &'w dyn Fn(&[u8]) -> bool,
    /// Only what may signal is asked for.
    signals_only: bool,
    /// An agent was called: its result may signal.
    has_agents: bool,
    /// Somebody wants to know what happened, and so all of every line.
    is_whole: bool,
    matters: Cell<Option<bool>>,
}

impl<'w> Wanted<'w> {
    /// `filter` says of raw JSON whether it can hold anything of interest.
    pub(crate) fn new(line: &'w [u8], filter: &'w dyn Fn(&[u8]) -> bool) -> Self {
        Self {
            line,
            filter,
            signals_only: false,
            has_agents: false,
            is_whole: false,
            matters: Cell::new(None),
        }
    }

    /// Leaves out what cannot signal: of results, all if no agent was called.
    pub(crate) fn signals_only(self, has_agents: bool) -> Self {
        Self { signals_only: true, has_agents, ..self }
    }

    /// Asks for all of every line.
    pub(crate) fn whole(self) -> Self {
        Self { is_whole: true, ..self }
    }

    /// Returns whether all of every line is asked for.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns whether the line can hold anything of interest. Asked once.
    pub(crate) fn matters(&self) -> bool {
        let matters = self.matters.get().unwrap_or_else(|| (self.filter)(self.line));
        self.matters.set(Some(matters));
        matters
    }

    /// Returns whether texts of others than the agent are asked for, and may be of interest.
    pub(crate) fn others(&self) -> bool {
        (!self.signals_only || self.has_agents) && self.matters()
    }
}

impl fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted").field("matters", &self.matters).finish_non_exhaustive()
    }
}

/// What one line says, or one of several entries on it.
#[derive(Debug, Default)]
pub(crate) struct Entry<'a> {
    pub(crate) at: Option<Timestamp>,
    /// The host's id for the message or the record.
    pub(crate) id: Option<Cow<'a, str>>,
    /// Which of several conversations on one stream this is. Messages that come in parts are put
    /// together per channel.
    pub(crate) channel: Cow<'a, str>,
    /// Whether this is part of a sub-agent's conversation.
    pub(crate) is_side: bool,
    /// The agent, where the host names one.
    pub(crate) agent: Option<Cow<'a, str>>,
    /// Where the agent works: paths are shown relative to it.
    pub(crate) cwd: Cow<'a, str>,
    /// Its place in the conversation, in formats that hold messages back.
    pub(crate) link: Option<Link<'a>>,
    pub(crate) items: Vec<Item<'a>>,
}

/// One thing that a line says.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    /// The agent's own words, or words that the host wrote in its place.
    Text(Text<'a>),
    /// Something said to the agent: a prompt, hook feedback, a summary.
    Prompt { by: Origin, text: Cow<'a, str> },
    /// The agent calls a tool.
    Call(Call<'a>),
    /// A call is answered.
    Result(CallResult<'a>),
    /// A part of the conversation that nobody asks for: it is only counted.
    Counted,
    /// Hidden reasoning.
    Thought(Raw<'a>),
    /// Something beside the conversation, of which the strings are shown: this value, or all of the
    /// line.
    Record { by: Origin, value: Option<Raw<'a>> },
    /// The session's name.
    Session(Cow<'a, str>),
    /// What something cost.
    Usage(Usage<'a>),
    /// The host denied the agent a permission.
    Denied { tool: Cow<'a, str>, what: Cow<'a, str> },
    /// The host met an error and tries again by itself.
    Retry { what: Cow<'a, str>, until: Option<Until> },
    /// The host met an error.
    Trouble(Trouble<'a>),
    /// The host's own last word.
    End { verdict: Verdict, what: Option<Cow<'a, str>> },
    /// A message begins of which pieces follow.
    Start { id: Option<Cow<'a, str>> },
    /// All pieces of the channel's message have come.
    Stop,
    /// The messages of these channels are complete; copies that wait are no copies.
    Close(Channels<'a>),
    /// A turn begins: what was said before it is no copy of what is said in it.
    Turn,
    /// The messages of these channels of which only pieces came will never be complete.
    Abort(Channels<'a>),
    /// A message was taken back.
    Removed { id: Cow<'a, str> },
    /// Part of the conversation was taken back.
    Rewind(Rewind<'a>),
    /// Somebody interrupted the agent.
    Interrupted,
    /// The host replaced the conversation by a summary.
    Compacted,
}

/// Which channels of a stream.
#[derive(Debug)]
pub(crate) enum Channels<'a> {
    /// The entry's own.
    Own,
    /// This one.
    Named(Cow<'a, str>),
    All,
}

/// Words of an agent.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) by: Origin,
    pub(crate) part: Part<'a>,
    pub(crate) text: Cow<'a, str>,
    /// Said on the way to an answer.
    pub(crate) is_interim: bool,
    /// The host explains an error in the agent's name: no sign of work.
    pub(crate) is_excuse: bool,
}

impl<'a> Text<'a> {
    pub(crate) fn new(by: Origin, part: Part<'a>, text: Cow<'a, str>) -> Self {
        Self { by, part, text, is_interim: false, is_excuse: false }
    }

    /// Returns whether these words only repeat others.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.part, Part::Copy | Part::Outcome)
    }
}

/// How words relate to the message that they are part of.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// They are all of it.
    Whole,
    /// They are one block of the message with the entry's id; its place, if it is named, and
    /// whether it is the last one.
    Block { place: Option<u64>, is_last: bool },
    /// They follow the piece before directly, in this part of the message.
    Piece { of: Cow<'a, str> },
    /// They take the place of this part of the message.
    Version { of: Cow<'a, str> },
    /// They repeat what was said in this turn; where nothing said them, they count.
    Copy,
    /// They repeat what was said last; where nothing was said at all, they count.
    Outcome,
}

/// A call of a tool.
#[derive(Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    /// What the tool was told, for the file or address that it is about.
    pub(crate) about: Option<Raw<'a>>,
    /// What the tool was told, where it is told here.
    pub(crate) input: Option<Raw<'a>>,
    /// Its id is the stream's own, and not the one by which the host knows the call.
    pub(crate) is_numbered: bool,
}

/// The answer to a call.
#[derive(Debug, Default)]
pub(crate) struct CallResult<'a> {
    /// The id of the call.
    pub(crate) id: Cow<'a, str>,
    /// The tool, where the answer names it.
    pub(crate) name: Cow<'a, str>,
    pub(crate) content: Option<Raw<'a>>,
    /// The host's own record of the answer, which may say more.
    pub(crate) copy: Option<Raw<'a>>,
    pub(crate) is_error: bool,
    /// The call was not run: a person or the host refused.
    pub(crate) is_refused: bool,
    /// The command still runs.
    pub(crate) is_left_running: bool,
    /// More of this answer follows.
    pub(crate) is_partial: bool,
    /// The exit code of a command, where a member names it.
    pub(crate) exit_code: Option<i64>,
    /// How the text says how a command ended, where it does.
    pub(crate) form: Option<Form>,
    /// The host's name for the sub-agent that answers.
    pub(crate) agent: Option<Cow<'a, str>>,
}

impl CallResult<'_> {
    /// Returns the ids of ours in the answer.
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for raw in [self.content, self.copy].into_iter().flatten() {
            let bytes = raw.bytes();
            for at in memchr::memmem::find_iter(bytes, CALL_ID).take(IDS_MAX) {
                let tail = &bytes[at + CALL_ID.len()..];
                let end = tail.iter().position(|byte| !byte.is_ascii_alphanumeric());
                let tail = String::from_utf8_lossy(&tail[..end.unwrap_or(tail.len())]);
                let id = format!("{CALL_ID}{tail}");
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        ids
    }
}

/// How many ids of one answer are looked at.
const IDS_MAX: usize = 16;

/// Tokens and millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) tokens: u64,
    pub(crate) micro_dollars: u64,
}

/// What a host says about costs.
#[derive(Debug)]
pub(crate) enum Usage<'a> {
    /// All that the process has cost so far.
    Total(Cost),
    /// What one part costs; it may be told again, with more.
    Part(Cow<'a, str>, Cost),
}

/// An error that a host reports.
#[derive(Debug)]
pub(crate) struct Trouble<'a> {
    pub(crate) kind: Kind,
    pub(crate) what: Cow<'a, str>,
    pub(crate) until: Option<Until>,
    /// May be about something else, and counts only where an error came before it.
    pub(crate) is_doubtful: bool,
}

/// When a host tries again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    At(Timestamp),
    /// So many milliseconds from now.
    In(f64),
}

/// How a host ended in its own view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Success,
    /// It names no errors at its end, so one that came before it counts.
    Unknown,
    Failure,
}

impl<'a> Entry<'a> {
    /// Makes an entry of a few items.
    pub(crate) fn of(at: Option<Timestamp>, items: Vec<Item<'a>>) -> Self {
        Self { at, items, ..Self::default() }
    }

    /// Returns what the entry means for the conversation, as far as its items tell.
    pub(crate) fn standing(&self) -> EntryStanding {
        match self.items.iter().any(Item::is_typed) {
            true => EntryStanding::Typed,
            false => EntryStanding::Spoken,
        }
    }

    /// Makes the conversation of this agent the main one.
    pub(crate) fn turn_to(&mut self, agent: &str) {
        self.is_side = self.agent.as_deref() != Some(agent);
        if let Some(link) = &mut self.link {
            link.standing = match (self.is_side, link.standing) {
                (true, _) => EntryStanding::Side,
                (false, EntryStanding::Side) => EntryStanding::Spoken,
                (false, standing) => standing,
            };
        }
    }
}

impl<'a> Item<'a> {
    /// A whole message of the agent.
    pub(crate) fn whole(text: impl Into<Cow<'a, str>>) -> Self {
        Self::text(Part::Whole, text)
    }

    /// Words of the agent.
    pub(crate) fn text(part: Part<'a>, text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(Text::new(Origin::assistant(), part, text.into()))
    }

    /// Something a user says, or somebody in a user's name.
    pub(crate) fn prompt(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        Self::Prompt { by: user(&text), text }
    }

    /// Returns whether this is a prompt that a human typed.
    pub(crate) fn is_typed(&self) -> bool {
        matches!(self, Self::Prompt { by, .. } if by.role == Role::User)
    }

    /// An error that is told by its words alone.
    pub(crate) fn error(what: impl Into<Cow<'a, str>>) -> Self {
        let what = what.into();
        Self::trouble(trouble::kind(&what), what, None)
    }

    /// An error whose kind is known.
    pub(crate) fn trouble(kind: Kind, what: impl Into<Cow<'a, str>>, until: Option<Until>) -> Self {
        Self::Trouble(Trouble { kind, what: what.into(), until, is_doubtful: false })
    }

    /// A line beside the conversation.
    pub(crate) fn record(by: Origin) -> Self {
        Self::Record { by, value: None }
    }

    /// A call that is told here with its input.
    pub(crate) fn call(id: Cow<'a, str>, name: Cow<'a, str>, input: Option<Raw<'a>>) -> Self {
        Self::Call(Call { id, name, about: input, input, ..Call::default() })
    }

    /// The host's last word, of which it says no more.
    pub(crate) fn end(verdict: Verdict) -> Self {
        Self::End { verdict, what: None }
    }

    /// The host's last word: it failed.
    pub(crate) fn failed(what: Cow<'a, str>) -> Self {
        Self::End { verdict: Verdict::Failure, what: Some(what) }
    }

    /// The end of what the entry's channel said.
    pub(crate) fn close() -> Self {
        Self::Close(Channels::Own)
    }
}

impl Cost {
    /// Adds up members of these names.
    pub(crate) fn of_tokens(usage: &Members<'_>, names: &[&str]) -> Self {
        let counts = names.iter().filter_map(|name| usage.count(name));
        Self { tokens: counts.fold(0, u64::saturating_add), micro_dollars: 0 }
    }

    /// Adds a price in dollars.
    pub(crate) fn with_dollars(self, dollars: Option<f64>) -> Self {
        let dollars = dollars.filter(|dollars| *dollars > 0.0).unwrap_or(0.0);
        // A float that is too large becomes the largest integer.
        Self { micro_dollars: (dollars * 1e6).round() as u64, ..self }
    }

    /// Returns the larger of each.
    pub(crate) fn at_least(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            micro_dollars: self.micro_dollars.max(other.micro_dollars),
        }
    }

    pub(crate) fn plus(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            micro_dollars: self.micro_dollars.saturating_add(more.micro_dollars),
        }
    }
}

/// Members of usage records that do not overlap, as Claude Code and its relatives spell them.
pub(crate) const CLAUDE_TOKENS: [&str; 8] = [
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
];
