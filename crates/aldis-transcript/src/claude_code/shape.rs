//! Recognises lines that are laid out like one that was read before.
//!
//! Most of a transcript's bytes are of no interest, but its entries still have to be counted and
//! linked. Claude Code writes the same members in the same order, so after one line has been parsed
//! the next of its kind is known by comparing what stands before its content and after its id: the
//! ids are then at known places. A line that differs in any way is parsed.

use std::borrow::Cow;
use std::collections::VecDeque;

use memchr::memmem;
use serde_json::value::RawValue;

use super::entry::{ENTRIES, Record, Said};
use crate::blocks::{Calls, is_agent};
use crate::json::Str;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Assistant,
    Other,
}

/// The layouts seen last.
#[derive(Debug)]
pub(super) struct Shapes {
    known: VecDeque<Shape>,
    meta: memmem::Finder<'static>,
    team: memmem::Finder<'static>,
    next_block: memmem::Finder<'static>,
}

#[derive(Debug)]
struct Shape {
    kind: Kind,
    sidechain: bool,
    session: u32,
    /// From behind the parent's id to the message's id or the start of the content.
    head: Vec<u8>,
    /// From behind the message's id to the name of the first block's type.
    opening: Vec<u8>,
    /// How long the timestamp is that follows the entry's id.
    stamp: usize,
    /// From behind the timestamp to the end.
    tail: Vec<u8>,
}

/// A recognised line.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) kind: Kind,
    pub(super) sidechain: bool,
    pub(super) session: u32,
    pub(super) parent: &'a [u8],
    pub(super) uuid: &'a [u8],
    /// Of an assistant's line.
    pub(super) message_id: &'a [u8],
    pub(super) call: Option<KnownCall<'a>>,
}

/// The tool call a line consists of.
#[derive(Debug)]
pub(super) struct KnownCall<'a> {
    id: &'a [u8],
    name: &'a [u8],
    path: &'a [u8],
}

impl KnownCall<'_> {
    /// Remembers the call, or only that of an agent.
    pub(super) fn note(&self, calls: &mut Calls, agents_only: bool) {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let name = text(self.name);
        if !agents_only || is_agent(name) {
            calls.note_path(text(self.id), name, text(self.path));
        }
    }
}

impl Shapes {
    pub(super) fn new() -> Self {
        Self {
            known: VecDeque::new(),
            meta: memmem::Finder::new(br#""isMeta":t"#),
            team: memmem::Finder::new(br#""teamName":"#),
            next_block: memmem::Finder::new(br#"},{"type":""#),
        }
    }

    /// Returns the ids of a line of known layout.
    pub(super) fn recognise<'a>(&mut self, line: &'a [u8]) -> Option<Known<'a>> {
        let (parent, rest) = line.strip_prefix(PARENT)?.split_at_checked(ID_LEN)?;
        let rest = rest.strip_prefix(b"\"")?;
        let mut shapes = self.known.iter().enumerate();
        let (at, known) =
            shapes.find_map(|(at, shape)| Some((at, self.fits(shape, parent, rest)?)))?;
        // Common layouts rise to the front.
        if at > 0 {
            self.known.swap(at, at / 2);
        }
        is_plain(parent).then_some(known)
    }

    /// Remembers the layout of a line that was parsed and has nothing special about it.
    pub(super) fn learn(&mut self, line: &[u8], record: &Record<'_>, said: &Said<'_>) {
        if let Some(shape) = Shape::of(line, record, said) {
            self.known.truncate(SHAPES_MAX - 1);
            self.known.push_front(shape);
        }
    }

    fn fits<'a>(&self, shape: &Shape, parent: &'a [u8], rest: &'a [u8]) -> Option<Known<'a>> {
        let body = rest.strip_prefix(&*shape.head)?.strip_suffix(&*shape.tail)?;
        let (body, stamp) = body.split_at_checked(body.len().checked_sub(shape.stamp)?)?;
        let body = body.strip_suffix(STAMP)?;
        let (body, uuid) = body.split_at_checked(body.len().checked_sub(ID_LEN)?)?;
        let body = body.strip_suffix(UUID)?;
        if !is_plain(uuid) || !is_plain(stamp) {
            return None;
        }
        let Shape { kind, sidechain, session, .. } = *shape;
        let mut known =
            Known { kind, sidechain, session, parent, uuid, message_id: b"", call: None };
        match kind {
            Kind::Assistant => {
                let end = memchr::memchr2(b'"', b'\\', body)?;
                known.message_id = &body[..end];
                known.call = self.call(body[end..].strip_prefix(&*shape.opening)?)?;
            }
            Kind::Other if is_result(body) => {}
            Kind::Other => {
                let window = &body[body.len().saturating_sub(FLAGS_WINDOW)..];
                if self.meta.find(window).or_else(|| self.team.find(window)).is_some() {
                    return None;
                }
            }
        }
        Some(known)
    }

    /// Returns the one tool call of an assistant's line, given the line from its first block's type;
    /// `Some(None)` if that is something else, `None` if the line has to be parsed.
    #[expect(clippy::option_option, reason = "unknown, none and one are three answers")]
    fn call<'a>(&self, block: &'a [u8]) -> Option<Option<KnownCall<'a>>> {
        let Some(rest) = block.strip_prefix(br#"tool_use","id":""#) else { return Some(None) };
        if self.next_block.find(rest).is_some() {
            return None;
        }
        let (id, rest) = plain_until_quote(rest)?;
        let (name, rest) = plain_until_quote(rest.strip_prefix(br#"","name":""#)?)?;
        let path = rest.strip_prefix(br#"","input":{"file_path":""#);
        let path = path.and_then(plain_until_quote).map_or(&[][..], |(path, _)| path);
        Some(Some(KnownCall { id, name, path }))
    }
}

impl Shape {
    fn of(line: &[u8], record: &Record<'_>, said: &Said<'_>) -> Option<Self> {
        let parent = record.parent_uuid?.get();
        if !line.starts_with(PARENT) || parent.len() != ID_LEN + 2 || record.is_special(said) {
            return None;
        }
        let head_start = PARENT.len() + ID_LEN + 1;
        let (kind, head_end) = match &*record.kind {
            "assistant" => (Kind::Assistant, offset(line, said.id.as_ref()?)?),
            "system" => (Kind::Other, offset(line, &record.kind)? + record.kind.len()),
            _ => (
                Kind::Other,
                raw_offset(line, record.message.or(record.attachment)?)?.checked_add(1)?,
            ),
        };
        let mut opening = Vec::new();
        if kind == Kind::Assistant {
            let content = raw_offset(line, said.content?)? + BLOCK.len();
            let id_end = head_end + said.id.as_ref()?.len();
            opening = line.get(id_end..content).filter(|part| part.ends_with(BLOCK))?.to_vec();
        }
        let uuid = record.uuid.as_ref()?;
        let uuid_at = offset(line, uuid)?;
        let stamp = record.timestamp.as_ref()?;
        let stamp_at = offset(line, stamp)?;
        let tail_at = stamp_at + stamp.len();
        let in_order = head_end < uuid_at && uuid_at + uuid.len() + STAMP.len() == stamp_at;
        if uuid.len() != ID_LEN || !in_order || head_end - head_start.min(head_end) > HEAD_MAX {
            return None;
        }
        if !line[..uuid_at].ends_with(UUID) || !line[..stamp_at].ends_with(STAMP) {
            return None;
        }
        let (head, tail) = (line.get(head_start..head_end)?, line.get(tail_at..)?);
        // What is taken over from one line to the next must stand in the parts that are compared.
        let fixed =
            |part: &[u8]| [head, tail].iter().any(|side| memmem::find(side, part).is_some());
        let model = kind == Kind::Other || memmem::find(head, br#""model":""#).is_some();
        if !fixed(br#""isSidechain":"#) || !fixed(br#""sessionId":""#) || !model {
            return None;
        }
        Some(Self {
            kind,
            sidechain: record.is_sidechain.unwrap_or_default(),
            session: record.session_key(),
            head: head.to_vec(),
            opening,
            stamp: stamp.len(),
            tail: tail.to_vec(),
        })
    }
}

/// Returns whether a line is a record beside the conversation, as told by how it starts.
pub(super) fn is_metadata(line: &[u8]) -> bool {
    let Some((kind, _)) = line.strip_prefix(br#"{"type":""#).and_then(plain_until_quote) else {
        return false;
    };
    // A line of an unknown type may still be some entry's parent.
    let start = &line[..line.len().min(IDS_WITHIN)];
    line.ends_with(b"}")
        && !ENTRIES.iter().any(|entry| entry.as_bytes() == kind)
        && memmem::find(start, b"\"parentUuid\"").is_none()
}

/// Returns whether a line ends in the id of the call it answers: nothing else is said of a result.
fn is_result(body: &[u8]) -> bool {
    let rest = body.strip_suffix(b"\"");
    let source = rest.and_then(|rest| rest.split_at_checked(rest.len().checked_sub(ID_LEN)?));
    source.is_some_and(|(rest, id)| rest.ends_with(SOURCE) && is_plain(id))
}

/// Returns whether a string has neither escapes nor an end in it. Ids are short: looking at all of
/// one without a branch is quicker than a search.
fn is_plain(bytes: &[u8]) -> bool {
    let ends = |bytes: &[u8]| {
        bytes.iter().fold(false, |found, byte| found | (*byte == b'"') | (*byte == b'\\'))
    };
    // Vectors do not end where an id does: the last one overlaps.
    match bytes.last_chunk::<16>() {
        Some(last) => {
            !bytes.as_chunks::<16>().0.iter().fold(ends(last), |any, part| any | ends(part))
        }
        None => !ends(bytes),
    }
}

/// Returns a string without escapes and what follows it. What is no text is left to the parser.
fn plain_until_quote(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', bytes).filter(|end| bytes[*end] == b'"')?;
    let (string, rest) = bytes.split_at(end);
    let is_text = string.is_ascii() || std::str::from_utf8(string).is_ok();
    is_text.then_some((string, rest))
}

/// Returns where in its line a string stands; `None` if it had escapes and is a copy.
fn offset(line: &[u8], part: &Str<'_>) -> Option<usize> {
    let Cow::Borrowed(text) = part.0 else { return None };
    address(line, text)
}

fn raw_offset(line: &[u8], raw: &RawValue) -> Option<usize> {
    address(line, raw.get())
}

fn address(line: &[u8], text: &str) -> Option<usize> {
    let at = (text.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    (at + text.len() <= line.len()).then_some(at)
}

const PARENT: &[u8] = br#"{"parentUuid":""#;
const UUID: &[u8] = br#","uuid":""#;
const STAMP: &[u8] = br#"","timestamp":""#;
const BLOCK: &[u8] = br#"[{"type":""#;
const SOURCE: &[u8] = br#","sourceToolAssistantUUID":""#;
const ID_LEN: usize = 36;
/// How far into a line that begins with its type its ids stand.
const IDS_WITHIN: usize = 160;
const HEAD_MAX: usize = 1024;
const FLAGS_WINDOW: usize = 512;
const SHAPES_MAX: usize = 16;

#[cfg(test)]
mod tests;
