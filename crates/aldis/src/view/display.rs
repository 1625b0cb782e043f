//! Agents' bytes made harmless for a terminal.
//!
//! A terminal obeys what it is sent: sequences that set the clipboard, the title or the cursor,
//! controls that reverse the direction of text, characters that take no room. Whatever an agent,
//! a transcript or a dialect file says passes an allow-list here before a person sees it: printable
//! Unicode, and where lines are kept LF and TAB. Everything else becomes a visible symbol.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// Returns the text for several lines of output: LF and TAB stay.
pub(crate) fn lines(text: &str) -> String {
    neutral(text, true)
}

/// Returns the text for a place inside one line of output: LF and TAB become symbols too.
pub(crate) fn line(text: &str) -> String {
    neutral(text, false)
}

/// Like [`line`], cut to about `most` characters.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((cut, _)) => line(text.get(..cut).unwrap_or(text)) + "…",
        None => line(text),
    }
}

/// Returns a text of several lines as one line, cut to about `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Shows a number of bytes: `1.1 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// How a character may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Showing {
    /// As it is.
    Plain,
    /// As it is, but only a few in a row: they pile up on the character before.
    Combining,
    /// Only as a symbol.
    Symbol,
}

/// Returns how a character may be shown. LF and TAB are symbols here.
pub(crate) fn showing(c: char) -> Showing {
    // The standard library escapes all that is not printable, and marks that combine.
    let printable = matches!(c, '\'' | '"' | '\\') || c.escape_debug().len() == 1;
    if printable && !is_blank_letter(c) {
        Showing::Plain
    } else if c.width() == Some(0) && !is_ignorable(c) {
        Showing::Combining
    } else {
        Showing::Symbol
    }
}

/// Writes the visible symbol of a character that is not shown as it is.
fn push_symbol(out: &mut String, c: char) {
    match c {
        '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        '\x7f' => out.push('␡'),
        // Writing to a string cannot fail.
        _ => drop(write!(out, "<U+{:04X}>", u32::from(c))),
    }
}

fn neutral(text: &str, keep_lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        if keep_lines && matches!(c, '\n' | '\t') {
            out.push(c);
            marks = 0;
            continue;
        }
        match showing(c) {
            Showing::Plain => {
                out.push(c);
                marks = 0;
            }
            Showing::Combining if marks < MARKS_MAX => {
                out.push(c);
                marks += 1;
            }
            Showing::Combining if marks == MARKS_MAX => {
                out.push('…');
                marks += 1;
            }
            Showing::Combining => {}
            Showing::Symbol => {
                push_symbol(&mut out, c);
                marks = 0;
            }
        }
    }
    out
}

/// Letters by their category that are drawn as nothing.
fn is_blank_letter(c: char) -> bool {
    matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// Characters without width that do not combine with anything visible.
fn is_ignorable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Combining marks in a row that are shown; honest writing rarely has more than two.
const MARKS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_a_terminal_would_obey() {
        let table = [
            ("plain, ünïcode and 漢字", "plain, ünïcode and 漢字"),
            ("quotes ' \" \\", "quotes ' \" \\"),
            ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
            ("a\u{7f}b\u{9b}c", "a␡b<U+009B>c"),
            ("user\u{202e}// admin\u{2069}", "user<U+202E>// admin<U+2069>"),
            ("zero\u{200b}width\u{feff}", "zero<U+200B>width<U+FEFF>"),
            ("tag\u{e0041}", "tag<U+E0041>"),
            ("\u{200c}\u{200d}\u{fe0f}\u{ad}", "<U+200C><U+200D><U+FE0F><U+00AD>"),
            ("blank\u{3164}", "blank<U+3164>"),
            ("e\u{301}", "e\u{301}"),
            ("\r\0", "␍␀"),
        ];
        for (given, shown) in table {
            assert_eq!(line(given), shown, "{given:?}");
        }
    }

    #[test]
    fn keeps_lines_only_where_asked() {
        assert_eq!(lines("a\n\tb"), "a\n\tb");
        assert_eq!(line("a\n\tb"), "a␊␉b");
    }

    #[test]
    fn piles_are_cut() {
        let pile = format!("a{}b", "\u{301}".repeat(500));
        assert_eq!(line(&pile), format!("a{}…b", "\u{301}".repeat(4)));
    }

    #[test]
    fn excerpts_end_in_an_ellipsis() {
        assert_eq!(excerpt("abcdef", 3), "abc…");
        assert_eq!(excerpt("abc", 3), "abc");
    }

    #[test]
    fn hostile_texts_become_harmless() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/display");
        let mut seen = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            for c in lines(&text).chars() {
                let control = c.is_control() && c != '\n' && c != '\t';
                let bidi = matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
                assert!(!control && !bidi, "{}: {c:?}", path.display());
            }
            seen += 1;
        }
        assert!(seen >= 12, "{seen} texts");
    }

    proptest::proptest! {
        #[test]
        fn nothing_passes_that_a_terminal_obeys(text: String) {
            let shown = lines(&text);
            for c in shown.chars() {
                assert!(c == '\n' || c == '\t' || showing(c) != Showing::Symbol, "{c:?}");
            }
            assert!(!line(&text).contains(['\n', '\t']));
        }
    }
}
