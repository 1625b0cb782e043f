//! JSON lines that are safe to look at.
//!
//! JSON lets most characters stand unescaped, and people look at JSON on terminals. Characters that
//! [`display`](crate::view::display) would not show as they are are therefore written as `\u` escapes:
//! the same value for every parser, and nothing for a terminal to obey.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

use crate::view::display::{Showing, showing};

/// Writes one value on a line of its own.
pub(crate) fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Escaping))?;
    out.write_all(b"\n")
}

/// Compact JSON with escapes for whatever is not printable.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut start = 0;
        for (at, c) in fragment.char_indices() {
            if c.is_ascii_graphic() || showing(c) != Showing::Symbol {
                continue;
            }
            writer.write_all(fragment.get(start..at).unwrap_or_default().as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            start = at + c.len_utf8();
        }
        writer.write_all(fragment.get(start..).unwrap_or_default().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_line(&mut out, &text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        assert_eq!(written("a\u{9b}b\u{202e}c\u{e0041}"), "\"a\\u009bb\\u202ec\\udb40\\udc41\"\n");
        assert_eq!(written("\x1b\n\"\\ü"), "\"\\u001b\\n\\\"\\\\ü\"\n");
    }

    proptest::proptest! {
        #[test]
        fn says_the_same_to_a_parser(text: String) {
            let line = written(&text);
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), Value::String(text));
            assert!(line.trim_end().chars().all(|c| showing(c) != Showing::Symbol), "{line:?}");
        }
    }
}
