//! What is wrong with a line that no recogniser took: a second look, only where near misses are
//! wanted.
//!
//! Everything here is a pure function of one line and one dialect. Misspelled names, which no literal
//! finds, are looked for in [`spelling`], at the end of the message alone.

pub(crate) mod spelling;

use std::sync::Arc;

use self::spelling::{known, meant};
use super::draft::{Defect, Read};
use super::text::{is_blank, is_deceptive_text, is_placeholder, lossy};
use super::window::Line;
use crate::dialect::syntax::{block, fence, line, status};
use crate::dialect::{Dialect, Syntax};
use crate::signal::Reason;
use crate::visible::is_zero_width;
use crate::visible::sequence::without_sequences;

/// Says what is wrong with a line that looks like a signal of a dialect and is none.
pub(super) fn line(dialect: &Dialect, line: Line<'_>) -> Option<Defect> {
    match &dialect.syntax {
        Syntax::Block(block) => key_line(dialect, block, line),
        Syntax::Line(syntax) => named_line(dialect, syntax, line),
        Syntax::Fence(fence) => hidden_json(fence, line),
        Syntax::Status(status) => opening_line(dialect, status, line),
        Syntax::Tag(_) | Syntax::Trailer(_) => None,
    }
}

/// Says with which signal a line begins that is longer than any.
pub(super) fn long_line(dialect: &Dialect, line: Line<'_>) -> Option<Defect> {
    let (name, end) = match &dialect.syntax {
        Syntax::Line(syntax) => {
            let name = match syntax.read(dialect, line) {
                Read::Parsed(draft, _) => draft.name,
                Read::Malformed(defect, _) => defect.name,
                Read::NotMine | Read::NeedMore => return None,
            };
            let end = name.len();
            (name, end)
        }
        Syntax::Block(block) => {
            let (_, name, end) =
                find_keys(&block.key, line.seen).next().filter(|key| key.0 == 0)?;
            (known(dialect, name)?.name.clone(), end)
        }
        Syntax::Fence(fence) => {
            let bare = fence.bare.as_ref().filter(|bare| line.seen.starts_with(bare.as_bytes()))?;
            (dialect.signals.first()?.name.clone(), bare.len())
        }
        Syntax::Status(_) | Syntax::Tag(_) | Syntax::Trailer(_) => return None,
    };
    Some(Defect::new(Reason::TooLong, name, (line.start, line.start + end as u64)))
}

/// `KEY: NAME` with something wrong about it, or among other words.
fn key_line(dialect: &Dialect, block: &block::Syntax, line: Line<'_>) -> Option<Defect> {
    let text = line.seen;
    let range = (line.start, line.seen_end());
    let mut keys = find_keys(&block.key, text);
    let Some(first) = keys.next() else {
        let seen = line.text.contains(&0x1B).then(|| without_sequences(text))?;
        let def = block.value(&seen).and_then(|name| known(dialect, name))?;
        return Some(Defect::new(Reason::Hidden, def.name.clone(), range));
    };
    let mut all = std::iter::once(first).chain(keys);
    let named = all.find_map(|(at, name, end)| Some((at, known(dialect, name)?, end)));
    if let Some((at, def, end)) = named {
        return Some(out_of_place(&def.name, line, (at, end)));
    }
    let value = block.value(text).filter(|value| first.0 == 0 && !value.is_empty())?;
    let written = lossy(value);
    if let Some((name, reason)) = meant(dialect, &written) {
        return Some(Defect::new(reason, name, range));
    }
    let reason = if is_deceptive_text(value) || !value.is_ascii() {
        Reason::Hidden
    } else if is_placeholder(&written) {
        Reason::Placeholder
    } else if written.contains(' ') {
        return None;
    } else {
        Reason::UnknownName
    };
    let shown = if first.1.is_empty() { value } else { first.1 };
    Some(Defect::new(reason, lossy(shown), range))
}

/// The name of a line signal that starts its line only for a reader, or stands elsewhere in it.
fn named_line(dialect: &Dialect, syntax: &line::Syntax, line: Line<'_>) -> Option<Defect> {
    if line.text.contains(&0x1B) {
        let seen = without_sequences(line.text);
        let Read::Parsed(draft, _) = syntax.read(dialect, line.with_text(&seen)) else {
            return None;
        };
        return Some(Defect::new(Reason::Hidden, draft.name, (line.start, line.seen_end())));
    }
    let (def, at) = syntax.mention(dialect, line.seen)?;
    Some(out_of_place(&def.name, line, (at, at + def.name.len())))
}

/// A bare object of JSON but for what cannot be seen of it.
fn hidden_json(fence: &fence::Syntax, line: Line<'_>) -> Option<Defect> {
    let plain = line.seen.is_ascii() && !line.seen.contains(&0x1B);
    let bare = fence.bare.as_ref().filter(|_| !plain)?;
    let shown = without_sequences(line.seen);
    let shown = lossy(&shown);
    let shown = shown.trim_matches(|c: char| c.is_whitespace() || is_zero_width(c));
    let is_json = shown.starts_with(bare.as_str()) && shown.ends_with('}');
    let range = (line.start, line.seen_end());
    is_json.then(|| Defect::new(Reason::Hidden, &*fence.default_name, range))
}

/// The opening of a status block among other words.
fn opening_line(dialect: &Dialect, status: &status::Syntax, line: Line<'_>) -> Option<Defect> {
    let at = memchr::memmem::find(line.seen, status.open.as_bytes())?;
    let name = dialect.signals.first().map(|def| def.name.clone()).unwrap_or_default();
    Some(out_of_place(&name, line, (at, at + status.open.len())))
}

/// A name that stands in its line where it should start it.
fn out_of_place(name: &Arc<str>, line: Line<'_>, (at, end): (usize, usize)) -> Defect {
    let range = (line.start + at as u64, line.start + end as u64);
    Defect::new(misplaced(&line.text[..at]), name.clone(), range)
}

/// Says what is wrong with a name that does not start its line.
fn misplaced(prefix: &[u8]) -> Reason {
    let decoration = b" \t#*_>-+`\"'.)([]~0123456789";
    if prefix.is_empty() {
        Reason::NotWholeLine
    } else if prefix.iter().all(|byte| is_blank(*byte)) {
        Reason::Indented
    } else if prefix.iter().all(|byte| decoration.contains(byte)) {
        Reason::Decorated
    } else {
        Reason::NotWholeLine
    }
}

/// Finds every `KEY:` in any case, the word behind it, and where that ends.
fn find_keys<'t>(key: &str, text: &'t [u8]) -> impl Iterator<Item = (usize, &'t [u8], usize)> {
    memchr::memchr_iter(b':', text).filter_map(move |colon| {
        let at = colon.checked_sub(key.len())?;
        let whole = at == 0 || !(text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
        if !whole || !text[at..colon].eq_ignore_ascii_case(key.as_bytes()) {
            return None;
        }
        // What makes the key bold ends behind its colon.
        let skipped = |byte: &u8| is_blank(*byte) || at > 0 && matches!(byte, b'*' | b'`');
        let start = text[colon + 1..].iter().position(|byte| !skipped(byte));
        let rest = &text[start.map_or(text.len(), |start| colon + 1 + start)..];
        let length = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
        let name = &rest[..length.unwrap_or(rest.len())];
        Some((at, name, text.len() - rest.len() + name.len()))
    })
}
