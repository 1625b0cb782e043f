//! The first lines of an input: which of them decides, if any.
//!
//! Hosts, and the tools that start them, print notices before their first JSON line. An agent that
//! writes about a host shows a line of JSON among its words. What follows that line tells the two
//! apart.

use super::{guess, judge};
use crate::Format;
use crate::lines::trim;
use crate::members::Members;

/// Returns whether a value begins with a bracket alone on its line, as documents for people do.
pub(super) fn is_laid_out(whole: &[u8]) -> bool {
    let line = whole.split(|byte| *byte == b'\n').next().unwrap_or_default();
    matches!(trim(line), b"{" | b"[")
}

/// How much is known of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Nothing more will be: a last line that is cut must do.
    AllThereIs,
    /// More comes: a line that may yet be doubted, or that has no end, is waited for.
    MoreComes,
    /// More may come, but not soon: only a line that has no end is waited for.
    WholeLines,
}

/// Returns the format and where the line starts that decides it, else how many of the bytes are text
/// whatever follows them.
pub(super) fn decide(head: &[u8], ask: Ask) -> Result<(Format, usize), usize> {
    // Mostly the first line is enough, and nothing behind it needs to be looked at.
    let first = lines(head).next().filter(|line| line.is_whole && line.is_object);
    if let Some(line) = first
        && let Some(format) = line.format()
        && !line.is_anonymous()
    {
        return Ok((format, line.start));
    }
    Opening::of(head).decide(ask)
}

/// The first lines with anything in them.
#[derive(Debug)]
struct Opening<'a> {
    /// One more than may decide.
    lines: Vec<Line<'a>>,
    /// How many there are in all, and how many of those begin as JSON.
    all: usize,
    objects: usize,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    start: usize,
    text: &'a [u8],
    /// Whether its end has come.
    is_whole: bool,
    is_object: bool,
    /// Whether it stands in a code fence that prose has opened.
    is_fenced: bool,
}

impl<'a> Opening<'a> {
    fn of(head: &'a [u8]) -> Self {
        let mut opening = Self { lines: Vec::new(), all: 0, objects: 0, length: head.len() };
        let mut is_fenced = false;
        for line in lines(head) {
            opening.all += 1;
            opening.objects += usize::from(line.is_object);
            if opening.lines.len() <= LINES_MAX {
                opening.lines.push(Line { is_fenced, ..line });
            } else if opening.objects == 0 {
                // Nothing can decide any more, so nothing needs to be counted.
                break;
            }
            is_fenced ^= line.text.starts_with(b"```") || line.text.starts_with(b"~~~");
        }
        opening
    }

    fn decide(&self, ask: Ask) -> Result<(Format, usize), usize> {
        let (mut prose, mut objects) = (false, self.objects);
        for (number, line) in self.lines.iter().take(LINES_MAX).enumerate() {
            if !line.is_object {
                prose = true;
                continue;
            }
            let next = self.lines.get(number + 1);
            let goes_on = next.is_none_or(|next| next.is_object)
                && 2 * objects >= self.all - number
                && !line.is_fenced;
            let is_last_object = objects == 1;
            objects -= 1;
            if prose && !goes_on {
                continue;
            }
            if !line.is_whole && ask != Ask::AllThereIs {
                return Err(line.start);
            }
            let Some(format) = line.format() else { continue };
            let doubtful = prose || is_last_object && line.is_anonymous();
            if doubtful && next.is_none() && ask == Ask::MoreComes {
                return Err(line.start);
            }
            if doubtful && !goes_on {
                prose = true;
                continue;
            }
            return Ok((format, line.start));
        }
        if self.lines.len() > LINES_MAX {
            Ok((Format::Text, self.length))
        } else {
            Err(self.length)
        }
    }
}

impl Line<'_> {
    fn format(&self) -> Option<Format> {
        judge(self.text).ok().or_else(|| guess(self.text).filter(|_| !self.is_whole))
    }

    /// Returns whether an object names neither a session nor a speaker, as no host's first line
    /// does. Such a first line is an agent's own if nothing but prose follows. Any other decides
    /// alone, also before prose: a host that fails at once leaves one line, perhaps the prompt, and
    /// then its complaints, and a claim taken from those would end a run, while one that is missed
    /// in an answer that begins like a transcript is only asked for again.
    fn is_anonymous(&self) -> bool {
        let members = Members::of_bytes(self.text).ok();
        members.is_some_and(|members| !NAMING.iter().any(|name| members.has(name)))
    }
}

/// Splits into lines, without blank ones.
fn lines(head: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut end = 0;
    let lines = head.split_inclusive(|byte| *byte == b'\n').map(move |bytes| {
        let (start, text, is_whole) = (end, trim(bytes), bytes.ends_with(b"\n"));
        end += bytes.len();
        let is_object = begins_object(text, is_whole);
        Line { start, text, is_whole, is_object, is_fenced: false }
    });
    lines.filter(|line| !line.text.is_empty())
}

/// Returns whether a line is an object or a list of objects, as far as its first bytes tell.
fn begins_object(line: &[u8], is_whole: bool) -> bool {
    let inside: &[u8] = match line.first() {
        Some(b'{') => b"\"}",
        Some(b'[') => b"{",
        _ => return false,
    };
    let next = line.get(1..).unwrap_or_default().trim_ascii_start().first();
    next.map_or(!is_whole, |next| inside.contains(next))
}

/// The members by which hosts' lines name a session, an entry, a time or a speaker.
const NAMING: [&str; 17] = [
    "data",
    "event",
    "id",
    "item",
    "jsonrpc",
    "message",
    "part",
    "payload",
    "properties",
    "role",
    "sessionID",
    "sessionId",
    "session_id",
    "thread_id",
    "timestamp",
    "ts",
    "uuid",
];

/// How many lines may come before one that decides: package managers print many.
const LINES_MAX: usize = 100;
