//! What every decoder needs of JSON beside members: moments, and lines that are damaged.

use std::borrow::Cow;

use super::members::Raw;
use aldis_signal::time::Timestamp;

/// A line that is not what its format says; skipped and counted by the reader.
#[derive(Debug)]
pub(super) struct Malformed;

impl From<serde_json::Error> for Malformed {
    fn from(_: serde_json::Error) -> Self {
        Self
    }
}

/// Reads a moment: a text like RFC 3339's, or a number of seconds or milliseconds since 1970.
pub(super) fn time(raw: Raw<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(raw.bytes()).ok()?;
    if let Some(text) = text.strip_prefix('"') {
        return text.strip_suffix('"')?.parse().ok();
    }
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    let millis = if number.abs() < SECONDS_MAX { number * 1000.0 } else { number };
    Some(Timestamp::from_millis(millis as i64))
}

/// As seconds this is the year 5138, as milliseconds 1973: no agent spoke at either.
const SECONDS_MAX: f64 = 1e11;

/// Replaces escapes of half a character, which hosts leave behind where they cut a text.
pub(super) fn mended(json: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(backslash) = memchr::memchr(b'\\', json.as_bytes().get(at..).unwrap_or_default())
    {
        let escape = at + backslash;
        let (length, is_whole) = match (escaped_unit(json, escape), escaped_unit(json, escape + 6))
        {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, true),
            (Some(0xD800..=0xDFFF), _) => (6, false),
            _ => (2, true),
        };
        at = escape + length;
        if !is_whole {
            mended += &json[kept..escape];
            mended += "\\ufffd";
            kept = at;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    mended += &json[kept..];
    Cow::Owned(mended)
}

/// Returns the number in `\uXXXX`, if that stands at `at`.
fn escaped_unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_is_replaced() {
        for (json, expected) in [
            (r#""plain \n \ud83d\ude00""#, None),
            (r#""\ud83d""#, Some(r#""\ufffd""#)),
            (r#""\uDE00\ud83d\ude00 b""#, Some(r#""\ufffd\ud83d\ude00 b""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\\ud83d""#, None),
            (r#""\\\ud83dé""#, Some(r#""\\\ufffdé""#)),
            (r#""\u+d83""#, None),
            (r#""\ud83"#, None),
            (r#""\"#, None),
        ] {
            assert_eq!(mended(json), expected.unwrap_or(json), "{json}");
        }
    }
}
