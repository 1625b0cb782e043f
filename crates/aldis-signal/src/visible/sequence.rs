//! What terminals do with escape sequences: show other text, or less of it.

/// The text behind an escape character, as far as it is one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence<'t> {
    /// `[`, parameters, a letter that says what is done. Cut off if there is no letter.
    Control { parameters: &'t [u8], what: Option<u8> },
    /// A title, a link, data for the terminal: words that are not shown, up to a bell, another escape or
    /// the end of the line.
    Words,
    /// A few characters that end with this one.
    Short(u8),
    /// Nothing follows.
    Lone,
}

impl<'t> Sequence<'t> {
    /// Reads what follows an escape character, and how long it is.
    fn read(text: &'t [u8]) -> (Self, usize) {
        match text.first() {
            None => (Self::Lone, 0),
            Some(b'[') => {
                let end = text[1..].iter().position(|byte| (0x40..=0x7E).contains(byte));
                let length = end.map_or(text.len(), |end| end + 2);
                let parameters = &text[1..end.map_or(text.len(), |end| end + 1)];
                let what = end.and_then(|end| text.get(end + 1)).copied();
                (Self::Control { parameters, what }, length)
            }
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                let end = text.iter().position(|byte| matches!(byte, 0x07 | 0x1B | b'\n'));
                let belongs = |end: usize| end + usize::from(text[end] == 0x07);
                (Self::Words, end.map_or(text.len(), belongs))
            }
            Some(_) => {
                let between = text.iter().take_while(|byte| (b' '..=b'/').contains(byte)).count();
                match text.get(between) {
                    Some(what) => (Self::Short(*what), between + 1),
                    None => (Self::Lone, between),
                }
            }
        }
    }

    /// Returns whether it hides what was shown before, or will be. Colours that do not conceal were
    /// removed before.
    fn hides(self) -> bool {
        match self {
            Self::Control { what: None, .. } => true,
            Self::Control { what: Some(b'm'), parameters } => sgr_conceals(parameters),
            // Questions to the terminal, the cursor's looks, pasting.
            Self::Control { what: Some(b'n' | b'q'), .. } => false,
            Self::Control { what: Some(b'h' | b'l'), parameters: b"?25" | b"?2004" } => false,
            Self::Control { .. } => true,
            // A reset, the cursor put back, moved to another line.
            Self::Short(what) => matches!(what, b'c' | b'8' | b'D' | b'E' | b'M'),
            Self::Words | Self::Lone => false,
        }
    }
}

/// Returns how many bytes of a text belong to the sequence that an escape before it begins.
pub(super) fn sequence_length(text: &[u8]) -> usize {
    Sequence::read(text).1
}

/// Returns whether a terminal showing these lines would hide some of them: NUL, a bare CR, a
/// backspace, cursor movement, erasing, concealed text.
pub(crate) fn hides_text(lines: &[u8]) -> bool {
    let mut rest = lines;
    while let Some(at) = first_control(rest) {
        let tail = &rest[at + 1..];
        match rest[at] {
            b'\r' if tail.is_empty() || tail[0] == b'\n' => rest = tail,
            0x1B if !Sequence::read(tail).0.hides() => rest = tail,
            _ => return true,
        }
    }
    false
}

/// Returns the first control that may hide text.
fn first_control(text: &[u8]) -> Option<usize> {
    let first = memchr::memchr3(0, b'\r', 0x1B, text);
    let backspace = memchr::memchr(8, &text[..first.unwrap_or(text.len())]);
    backspace.or(first)
}

/// Returns whether what follows a text on its line belongs to a sequence that shows nothing.
pub(crate) fn is_swallowed_after(text: &[u8]) -> bool {
    let line = &text[memchr::memrchr(b'\n', text).map_or(0, |at| at + 1)..];
    let Some(escape) = memchr::memrchr(0x1B, line) else { return false };
    let (sequence, length) = Sequence::read(&line[escape + 1..]);
    let ended = line.last() == Some(&0x07);
    sequence == Sequence::Words && escape + 1 + length == line.len() && !ended
}

/// Returns whether a text ends with a whole sequence.
pub(crate) fn ends_with_sequence(text: &[u8]) -> bool {
    memchr::memrchr(0x1B, text).is_some_and(|escape| {
        let behind = &text[escape + 1..];
        let (sequence, length) = Sequence::read(behind);
        length == behind.len() && !matches!(sequence, Sequence::Lone | Sequence::Words)
    })
}

/// Returns a line without its sequences.
pub(crate) fn without_sequences(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(0x1B, rest) {
        out.extend_from_slice(&rest[..at]);
        let (_, length) = Sequence::read(&rest[at + 1..]);
        rest = &rest[at + 1 + length..];
    }
    out.extend_from_slice(rest);
    out
}

/// Returns whether the parameters of a colour sequence switch visibility off.
pub(crate) fn sgr_conceals(parameters: &[u8]) -> bool {
    sgr_codes(parameters).any(|code| code == b"8")
}

/// Returns whether the parameters of a colour sequence switch visibility on again.
pub(crate) fn sgr_reveals(parameters: &[u8]) -> bool {
    sgr_codes(parameters).any(|code| matches!(code, b"" | b"28"))
}

/// Returns the codes of a colour sequence without noughts in front, and without what belongs to them:
/// the shades behind a colon, the colours `5;n` or `2;r;g;b` that 38, 48 and 58 take.
fn sgr_codes(parameters: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut parts = parameters.split(|byte| *byte == b';');
    std::iter::from_fn(move || {
        let part = parts.next()?;
        let number = part.split(|byte| *byte == b':').next().unwrap_or(part);
        let noughts = number.iter().take_while(|byte| **byte == b'0').count();
        let code = &number[noughts..];
        if matches!(code, b"38" | b"48" | b"58") && number.len() == part.len() {
            match parts.next() {
                Some(b"5") => drop(parts.next()),
                Some(b"2") => drop(parts.by_ref().take(3).count()),
                _ => {}
            }
        }
        Some(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_that_conceal() {
        for (parameters, conceals, reveals) in [
            ("8", true, false),
            ("1;08", true, false),
            ("008", true, false),
            ("", false, true),
            ("0", false, true),
            ("000", false, true),
            ("28", false, true),
            ("1;0;8", true, true),
            ("4:0", false, false),
            ("38:2::1:2:0", false, false),
            ("38:2::1:2:8", false, false),
            ("38;5;8", false, false),
            ("38;2;8;0;8", false, false),
            ("38;5;8;8", true, false),
            ("38:5:1;8", true, false),
        ] {
            let codes = parameters.as_bytes();
            assert_eq!((sgr_conceals(codes), sgr_reveals(codes)), (conceals, reveals), "{codes:?}");
        }
    }

    #[test]
    fn sequences_are_taken_out_whole() {
        for (line, expected) in [
            ("a\x1b[2Kb", "ab"),
            ("\x1b(Ba", "a"),
            ("\x1bca", "a"),
            ("\x1b]0;title\x07a", "a"),
            ("\x1b]8;;x\x1b\\a\x1b]8;;\x1b\\b", "ab"),
            ("\x1bPdata", ""),
            ("a\x1b", "a"),
            ("a\x1b[1;", "a"),
        ] {
            assert_eq!(without_sequences(line.as_bytes()), expected.as_bytes(), "{line:?}");
        }
    }
}
