//! Small questions about bytes that several parts of the scanner ask.

use std::borrow::Cow;

use crate::visible::is_deceptive;

/// No signal is longer, and no line that is longer holds a signal that must start it.
pub(crate) const SIGNAL_MAX: u64 = 64 * 1024;

/// Returns whether `byte` separates words on a line.
pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Returns a text with what is not UTF-8 replaced.
pub(crate) fn lossy(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// Removes blanks and tabs in front.
pub(crate) fn trim_blanks_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Removes blanks and tabs behind.
pub(crate) fn trim_blanks_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Removes blanks and tabs on both sides.
pub(crate) fn trim_blanks(text: &[u8]) -> &[u8] {
    trim_blanks_end(trim_blanks_start(text))
}

/// Returns whether a name, key or id holds something a human would not see as it is.
pub(crate) fn is_deceptive_text(text: &[u8]) -> bool {
    if text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return false;
    }
    !text.is_ascii() && lossy(text).chars().any(is_deceptive)
        || text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t' && *byte != b'\n')
}

/// Returns whether the whole text is a template that was not filled in: `[task_id]`, `{name}`,
/// `<reason>`, `{{reason}}`, `[0-100]`, `[...]`. A list of numbers or an object of JSON is none.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    // A date that is only its own pattern.
    if text.starts_with("YYYY-MM-DD") || text.starts_with("yyyy-mm-dd") {
        return true;
    }
    if !text.starts_with(['[', '{', '<']) || is_markup(text) {
        return false;
    }
    let inner = [('[', ']'), ('{', '}'), ('<', '>')].into_iter().find_map(|pair| {
        let once = between(text, pair)?;
        Some(between(once, pair).unwrap_or(once))
    });
    inner.is_some_and(|inner| {
        !inner.contains(['[', ']', '{', '}', '<', '>', '"'])
            && (inner.chars().any(char::is_alphabetic) || is_range(inner) || is_ellipsis(inner))
    })
}

/// Returns whether a text in angle brackets is an element with attributes, or one that closes itself.
fn is_markup(text: &str) -> bool {
    text.starts_with('<') && text.contains(['=', '/'])
}

fn between(text: &str, (open, close): (char, char)) -> Option<&str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// Returns whether a text is two numbers with a hyphen or a dash in between.
fn is_range(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let ends = text.split_once(['-', '\u{2013}']);
    ends.is_some_and(|(low, high)| is_number(low.trim()) && is_number(high.trim()))
}

fn is_ellipsis(text: &str) -> bool {
    matches!(text.trim(), "..." | "\u{2026}")
}

/// Returns whether `text` is an id: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
pub(crate) fn is_id(text: &[u8]) -> bool {
    text.len() <= 64
        && text.first().is_some_and(u8::is_ascii_alphanumeric)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

/// Returns whether `text` is a relative path that stays inside the project.
pub(crate) fn is_inner_path(text: &str) -> bool {
    let drive = text.as_bytes().get(1) == Some(&b':');
    !text.is_empty()
        && text.len() <= 1024
        && !text.starts_with(['/', '\\', '~'])
        && !drive
        && !text.contains('\\')
        && !is_deceptive_text(text.as_bytes())
        && text.split('/').all(|part| !part.is_empty() && part != ".." && part != ".")
}

/// Returns `NAME: value` keys as members: `Files Modified` is `files_modified`.
pub(crate) fn snake_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for c in key.trim().chars().flat_map(char::to_lowercase) {
        let joint = matches!(c, ' ' | '-' | '_');
        if !joint || !out.ends_with('_') {
            out.push(if joint { '_' } else { c });
        }
    }
    out
}

/// Returns the number a percentage starts with, clamped: `62%` is 62, `99.9` is 99, `-7` is 0.
pub(crate) fn leading_percent(text: &str) -> Option<u8> {
    let text = text.trim();
    let negative = text.starts_with('-');
    let digits = text.trim_start_matches(['-', '+']);
    if text.len() - digits.len() > 1 {
        return None;
    }
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return None;
    }
    if negative {
        return Some(0);
    }
    // More digits than fit are more than a hundred, unless they are zeros.
    let significant = digits[..length].trim_start_matches('0');
    if significant.len() > 3 {
        return Some(100);
    }
    let value: u16 = significant.parse().unwrap_or(0);
    u8::try_from(value.min(100)).ok()
}
