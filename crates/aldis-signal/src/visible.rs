//! What a reader sees of bytes: the one place that knows terminal sequences and unseen characters.
//!
//! `offsets` takes colours out of a stream and maps offsets back to what was received; `sequence`
//! says what a sequence does. The functions here are about characters, and about whole texts.

pub(crate) mod offsets;
pub(crate) mod sequence;

use std::borrow::Cow;
use std::ops::Range;

use self::sequence::sequence_length;

/// Returns whether a character takes no room and can be overlooked.
///
/// ```
/// assert!(aldis_signal::visible::is_zero_width('\u{200b}'));
/// assert!(!aldis_signal::visible::is_zero_width('a'));
/// ```
pub fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{00AD}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}')
}

/// Returns whether a reader does not see a character: controls that are no white space, and those of no
/// width.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r') || is_zero_width(c)
}

/// Returns whether a character changes how its neighbours are seen.
pub(crate) fn is_deceptive(c: char) -> bool {
    is_zero_width(c)
        || c.is_control() && c != '\t' && c != '\n'
        || matches!(c, '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2028}' | '\u{2029}'
            | '\u{2066}'..='\u{2069}' | '\u{E0000}'..='\u{E007F}' | '\u{0300}'..='\u{036F}')
}

/// Removes what may stand unseen at the end of a line: blanks, the CR of a CRLF, and characters of no
/// width.
pub(crate) fn trim_line_end(mut line: &[u8]) -> &[u8] {
    loop {
        line = match line {
            [rest @ .., b' ' | b'\t' | b'\r'] => rest,
            [rest @ .., first, second, third] if *first >= 0xE0 => {
                match is_zero_width_bytes(&[*first, *second, *third]) {
                    true => rest,
                    false => return line,
                }
            }
            [rest @ .., 0xC2, 0xAD] => rest,
            _ => return line,
        };
    }
}

fn is_zero_width_bytes(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.chars().next()).is_some_and(is_zero_width)
}

/// Returns a text without what cannot be seen at its end: white space, characters of no width, colours.
pub(crate) fn trim_unseen_end(mut text: &str) -> &str {
    loop {
        text = text.trim_end_matches(|c: char| c.is_whitespace() || is_zero_width(c));
        match without_colour(text) {
            Some(rest) => text = rest,
            None => return text,
        }
    }
}

/// Returns what stands before a colour sequence at the end of a text.
pub(crate) fn without_colour(text: &str) -> Option<&str> {
    let parameter = |c: char| c.is_ascii_digit() || c == ';' || c == ':';
    text.strip_suffix('m')?.trim_end_matches(parameter).strip_suffix("\x1b[")
}

/// What a reader sees of a text, and where it stands in it.
///
/// ```
/// use aldis_signal::visible::Visible;
///
/// let visible = Visible::of("\x1b[1mDone\x1b[0m\u{200b}.");
/// assert_eq!(visible.text(), "Done.");
/// assert_eq!(visible.place(0..4), 4..8);
/// ```
#[derive(Debug)]
pub struct Visible<'t> {
    text: Cow<'t, str>,
    /// Where each byte comes from; empty if everything is visible.
    from: Vec<usize>,
}

impl<'t> Visible<'t> {
    /// Takes out terminal sequences and what has no width.
    pub fn of(text: &'t str) -> Self {
        if !has_unseen(text.as_bytes()) {
            return Self { text: Cow::Borrowed(text), from: Vec::new() };
        }
        let mut visible = String::with_capacity(text.len());
        let mut from = Vec::with_capacity(text.len());
        let mut read = 0;
        for (at, letter) in text.char_indices() {
            if at < read {
                continue;
            }
            if letter == '\x1b' {
                read = at + 1 + sequence_length(&text.as_bytes()[at + 1..]);
            } else if !is_unseen(letter) {
                visible.push(letter);
                from.extend(at..at + letter.len_utf8());
            }
        }
        Self { text: Cow::Owned(visible), from }
    }

    /// Returns what is visible.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns where a part of what is visible stands in the whole text.
    pub fn place(&self, part: Range<usize>) -> Range<usize> {
        let last = part.end.saturating_sub(1);
        match (self.from.get(part.start), self.from.get(last)) {
            (Some(start), Some(last)) => *start..last + 1,
            _ => part,
        }
    }
}

/// Returns whether there is a character that a reader does not see.
pub(crate) fn has_unseen(text: &[u8]) -> bool {
    (0..text.len()).any(|at| may_be_unseen(text[at]) && is_unseen_at(text, at))
}

/// Returns whether an unseen character may start with a byte.
fn may_be_unseen(byte: u8) -> bool {
    let control = byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    control || matches!(byte, 0x7F | 0xC2 | 0xE1 | 0xE2 | 0xEF)
}

fn is_unseen_at(text: &[u8], at: usize) -> bool {
    let mut chunks = text[at..text.len().min(at + 4)].utf8_chunks();
    let letter = chunks.next().and_then(|chunk| chunk.valid().chars().next());
    letter.is_some_and(is_unseen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_are_found_in_bytes_as_in_text() {
        let letters = ('\0'..='\u{2fff}').chain(['\u{feff}', '\u{fffd}', '\u{10ffff}']);
        for letter in letters {
            let text = format!("é{letter}é");
            assert_eq!(has_unseen(text.as_bytes()), is_unseen(letter), "{letter:?}");
            let line = format!("é{letter}");
            let gone = is_zero_width(letter) || " \t\r".contains(letter);
            assert_eq!(trim_line_end(line.as_bytes()).len() == 2, gone, "{letter:?}");
        }
        assert!(!has_unseen(b"\xe2\x80\xc2\xff"));
    }

    #[test]
    fn places_are_those_of_the_whole_text() {
        for (text, seen, place) in [
            ("a\x1b[1mb\u{200b}c", "abc", 0..10),
            ("\x1b]0;t\x07ab", "ab", 6..8),
            ("plain", "plain", 0..5),
            ("\x1bé!", "!", 3..4),
        ] {
            let visible = Visible::of(text);
            assert_eq!(visible.text, seen);
            assert_eq!(visible.place(0..visible.text.len()), place, "{text:?}");
        }
    }
}
