//! Tells formats apart by their first lines.
//!
//! The hosts' forms share member names, so a line is told by a table of what it must and must not
//! have, the most telling rows first. A line that fits no row decides nothing and the next is asked.
//!
//! Both mistakes cost. A transcript that is taken for text makes prompts and tool results the agent's
//! own words; an answer that shows a host's line and is taken for a transcript is not read at all.

mod opening;
mod table;

use serde::de::IgnoredAny;

use self::opening::{Completeness, decide, lines};
use self::table::{CUT, LINES, Row};
use super::Format;
use super::lines::trim;
use super::members::Members;

/// Returns the format of an input, given its first bytes (64 KiB are plenty).
///
/// The first line that is a JSON object of a known form decides, unless it is only shown: a line
/// that holds anybody's words stands among others of its kind, or alone. After lines that are no
/// JSON, a line decides only where most of what follows is JSON too. Anything else is text: an
/// answer of an agent may well show JSON.
///
/// ```
/// use aldis_transcript::{Format, detect};
///
/// assert_eq!(detect(b"{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n"), Format::CodexExec);
/// assert_eq!(detect(b"All tests pass.\n"), Format::Text);
/// ```
pub fn detect(head: &[u8]) -> Format {
    let whole = trim(head);
    let first = whole.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let of_lines = || decide(head, Completeness::All).ok().map(|found| found.0);
    // A bracket alone on its line begins a document that is laid out for people.
    let found = match trim(first) {
        b"{" | b"[" => of_value(whole, true).or_else(of_lines),
        _ => of_lines().or_else(|| of_value(whole, true)),
    };
    found.unwrap_or(Format::Text)
}

/// Returns the format of an input that still comes, once its first bytes tell, and how many of them
/// are text whatever follows. A `silent` input is not waited for where a line has told enough.
pub(super) fn so_far(head: &[u8], silent: bool) -> (Option<Format>, usize) {
    let known = if silent { Completeness::WholeLines } else { Completeness::MoreComes };
    match decide(head, known) {
        Ok((format, start)) => (Some(format), start),
        Err(text) => (None, text),
    }
}

/// Returns the format of the first whole line that is in one of these forms.
pub(super) fn of_host(head: &[u8], forms: &[Format]) -> Option<Format> {
    let whole = lines(head).filter(|line| line.is_whole && line.is_object);
    whole.filter_map(|line| line.format()).find(|format| forms.contains(format))
}

/// Returns the format of one value: an object, or a list of a host's lines as `--output-format json`
/// prints with `--verbose`. If its end may be missing, the members before the cut tell: a prompt may
/// be longer than what is looked at, and were it taken for text, it would be the agent's words.
fn of_value(bytes: &[u8], may_be_cut: bool) -> Option<Format> {
    if bytes.starts_with(b"[") {
        return elements(bytes).find_map(|element| of_value(element, may_be_cut));
    }
    if let Ok(members) = Members::of_bytes(bytes) {
        return find(LINES, &members, true);
    }
    if !may_be_cut || !is_cut(bytes) {
        return None;
    }
    let members = Members::before_cut(bytes);
    // What a line lacks may come behind the cut.
    find(LINES, &members, false).or_else(|| find(CUT, &members, true))
}

fn find(rows: &[Row], members: &Members<'_>, is_whole: bool) -> Option<Format> {
    let kind = members.text("type");
    let mut rows = rows.iter().filter(|row| is_whole || row.without.is_empty());
    rows.find(|row| row.fits(kind.as_deref(), members)).map(|row| row.format)
}

/// Splits a list of objects. The last one may be cut.
fn elements(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        let end = match values.next() {
            Some(Ok(_)) => values.byte_offset().min(rest.len()),
            // One that is broken or cut is all there is.
            _ => rest.len(),
        };
        let element;
        (element, rest) = rest.split_at(end);
        element.starts_with(b"{").then_some(element)
    })
}

/// Returns whether the end of a value is missing, and nothing else is wrong with it.
fn is_cut(bytes: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    matches!(values.next(), Some(Err(error)) if error.is_eof())
}

#[cfg(test)]
mod tests;
