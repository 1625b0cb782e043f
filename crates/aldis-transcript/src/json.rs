//! What every decoder needs of JSON beside members: strings, moments, and lines that are damaged.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use aldis_signal::time::Timestamp;

/// A line that is not what its format says; skipped and counted by the reader.
#[derive(Debug)]
pub(super) struct Malformed;

impl From<serde_json::Error> for Malformed {
    fn from(_: serde_json::Error) -> Self {
        Self
    }
}

/// Returns whether a line has an escape of half a character.
pub(super) fn has_half_character(line: &[u8]) -> bool {
    may_be_cut(line) && std::str::from_utf8(line).is_ok_and(|json| mended(json).is_some())
}

/// Returns whether there is an escape of half a character: maybe that of both halves.
fn may_be_cut(json: &[u8]) -> bool {
    let mut escapes = memchr::memmem::find_iter(json, b"\\u");
    escapes.any(|at| matches!(json.get(at + 2), Some(b'd' | b'D')))
}

/// Reads a moment: a text like RFC 3339's, or a number of seconds or milliseconds since 1970.
pub(super) fn time(raw: &RawValue) -> Option<Timestamp> {
    if let Some(text) = raw.get().strip_prefix('"') {
        return text.strip_suffix('"')?.parse().ok();
    }
    let number = raw.get().parse::<f64>().ok().filter(|number| number.is_finite())?;
    let millis = if number.abs() < SECONDS_MAX { number * 1000.0 } else { number };
    Some(Timestamp::from_millis(millis as i64))
}

/// As seconds this is the year 5138, as milliseconds 1973: no agent spoke at either.
const SECONDS_MAX: f64 = 1e11;

/// Joins all strings inside a value, without the names of members, by line breaks.
pub(super) fn strings(raw: &RawValue) -> String {
    let mut all = String::new();
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    // A value that was read as raw has been checked, so this cannot fail half-way except for
    // nesting, and then what was found so far is still worth showing.
    let _nesting = Strings(&mut all).deserialize(&mut deserializer);
    all
}

/// Replaces escapes of half a character, which hosts leave behind where they cut a text. Returns
/// `None` if there are none.
pub(super) fn mended(json: &str) -> Option<String> {
    let mut mended = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(backslash) = memchr::memchr(b'\\', json.get(at..)?.as_bytes()) {
        let escape = at + backslash;
        let (length, whole) = match (escaped_unit(json, escape), escaped_unit(json, escape + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, true),
            (Some(0xD800..=0xDFFF), _) => (6, false),
            _ => (2, true),
        };
        at = escape + length;
        if !whole {
            mended += json.get(kept..escape)?;
            mended += "\\ufffd";
            kept = at;
        }
    }
    mended += json.get(kept..)?;
    (kept > 0).then_some(mended)
}

/// Returns the number in `\uXXXX`, if that stands at `at`.
fn escaped_unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

struct Strings<'s>(&'s mut String);

impl<'de> DeserializeSeed<'de> for Strings<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strings<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        if !text.is_empty() {
            if !self.0.is_empty() {
                self.0.push('\n');
            }
            self.0.push_str(text);
        }
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Strings(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<de::IgnoredAny>()?.is_some() {
            map.next_value_seed(Strings(&mut *self.0))?;
        }
        Ok(())
    }
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
            assert_eq!(mended(json).as_deref(), expected, "{json}");
        }
    }
}
