//! The first lines of an input: which of them decides, if any.
//!
//! Hosts, and the tools that start them, print notices before their first JSON line. An agent that
//! writes about a host shows a line of JSON among its words. What stands around that line tells the
//! two apart.

use super::of_value;
use crate::Format;
use crate::hosts::decoder;
use crate::item::{Entry, Item, Wanted, decode_line};
use crate::lines::trim;

/// How much is known of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// Nothing more will be: a last line that is cut must do.
    All,
    /// More comes: a line that may yet be doubted, or that has no end, is waited for.
    MoreComes,
    /// More may come, but not soon: only a line that has no end is waited for.
    WholeLines,
}

/// Returns the format and where the line starts that decides it, else how many of the bytes are text
/// whatever follows them.
pub(super) fn decide(head: &[u8], known: Completeness) -> Result<(Format, usize), usize> {
    // Mostly the first line is enough, and nothing behind it needs to be looked at.
    let first = lines(head).next().filter(|line| line.is_whole && line.is_object);
    if let Some(line) = first
        && let Some(format) = line.format()
        && !line.has_words(format)
    {
        return Ok((format, line.start));
    }
    Opening::of(head).decide(known)
}

/// The first lines with anything in them.
#[derive(Debug, Default)]
struct Opening<'a> {
    /// One more than may decide.
    lines: Vec<Line<'a>>,
    /// How many there are in all, and how many of those begin as JSON.
    all: usize,
    objects: usize,
    is_last_object: bool,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    start: usize,
    text: &'a [u8],
    /// Whether its end has come.
    pub(super) is_whole: bool,
    pub(super) is_object: bool,
    /// Whether it stands in a code fence that prose has opened.
    is_fenced: bool,
}

impl<'a> Opening<'a> {
    fn of(head: &'a [u8]) -> Self {
        let mut opening = Self { length: head.len(), ..Self::default() };
        let mut is_fenced = false;
        for line in lines(head) {
            opening.all += 1;
            opening.objects += usize::from(line.is_object);
            opening.is_last_object = line.is_object;
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

    fn decide(&self, known: Completeness) -> Result<(Format, usize), usize> {
        let (mut has_prose, mut objects) = (false, self.objects);
        for (number, line) in self.lines.iter().take(LINES_MAX).enumerate() {
            if !line.is_object {
                has_prose = true;
                continue;
            }
            let next = self.lines.get(number + 1);
            let mostly_json = 2 * objects >= self.all - number;
            objects -= 1;
            let goes_on = next.is_none_or(|next| next.is_object) && mostly_json;
            if has_prose && (!goes_on || line.is_fenced) {
                continue;
            }
            if !line.is_whole && known != Completeness::All {
                return Err(line.start);
            }
            let Some(format) = line.format() else { continue };
            // Words in a line that has no company are shown, not written.
            let has_words = line.has_words(format);
            let has_company =
                self.all == 1 || self.objects > 1 && mostly_json && self.is_last_object;
            let may_be_shown = has_words && (known == Completeness::MoreComes || !has_company);
            if (has_prose || may_be_shown) && next.is_none() && known == Completeness::MoreComes {
                return Err(line.start);
            }
            if has_words && !has_company {
                has_prose = true;
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
    pub(super) fn format(&self) -> Option<Format> {
        of_value(self.text, !self.is_whole)
    }

    /// Returns whether somebody says something in this line. A host that fails at once leaves a line
    /// without words, and then its complaints.
    fn has_words(&self, format: Format) -> bool {
        let mut has_words = false;
        let mut each = |entry: Entry<'_>, _: &[u8]| {
            has_words |= entry.items.iter().any(|item| match item {
                Item::Text(text) => !text.text.is_empty(),
                Item::Prompt { text, .. } => !text.is_empty(),
                _ => false,
            });
        };
        let wanted = Wanted::new(self.text, &|_| true);
        if let Some(mut decoder) = decoder(format) {
            let _malformed = decode_line(&mut *decoder, self.text, &wanted, &mut each);
        }
        has_words
    }
}

/// Splits into lines, without blank ones.
pub(super) fn lines(head: &[u8]) -> impl Iterator<Item = Line<'_>> {
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

/// How many lines may come before one that decides: package managers print many.
const LINES_MAX: usize = 100;
