//! The few JSON shapes that every host's reader needs.
//!
//! Lines are read into small typed structs: unknown members are skipped, a member given twice makes
//! the line malformed, and big members stay raw until somebody wants them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
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

/// Reads one JSON value for its words. One with half a character is malformed as a whole, so that no
/// part of it is passed over silently: the reader mends it and tries again.
pub(super) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    match may_be_cut(bytes) && std::str::from_utf8(bytes).is_ok_and(|json| mended(json).is_some()) {
        true => Err(Malformed),
        false => parse_shape(bytes),
    }
}

/// Reads one JSON value for what kind of value it is.
pub(super) fn parse_shape<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    Ok(serde_json::from_slice(bytes)?)
}

/// Returns whether there is an escape of half a character: maybe that of both halves.
fn may_be_cut(json: &[u8]) -> bool {
    let mut escapes = memchr::memmem::find_iter(json, b"\\u");
    escapes.any(|at| matches!(json.get(at + 2), Some(b'd' | b'D')))
}

/// Reads a raw member as a struct whose members are all optional; anything else is its default.
pub(super) fn lenient<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    // The error of a long string that is no object would quote all of it.
    let object = raw.filter(|raw| !raw.get().starts_with('"'));
    object.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// A string that borrows from its line unless it has escapes, also inside an `Option`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Str<'a>(pub(super) Cow<'a, str>);

impl Str<'_> {
    /// Returns the string as one that outlives its line.
    pub(super) fn to_owned(&self) -> String {
        self.0.clone().into_owned()
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(text.into())))
            }
        }
        deserializer.deserialize_str(Borrow)
    }
}

/// For `deserialize_with`: tells a member that is `null` from one that is missing.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
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

/// Splits content into its blocks: a list's elements, or the one value there is.
pub(super) fn blocks(raw: &RawValue) -> Vec<&RawValue> {
    if raw.get().starts_with('[') {
        return serde_json::from_str(raw.get()).unwrap_or_default();
    }
    vec![raw]
}

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

/// Joins the strings of those top-level members that matter: the rest of a host's record (working
/// directory, account, timings) is nobody's business.
pub(super) fn member_strings(
    line: &[u8],
    matters: &dyn Fn(&[u8]) -> bool,
) -> Result<String, Malformed> {
    let members: Vec<Member<'_>> = parse::<Members<'_>>(line)?.0;
    let texts = members
        .iter()
        .filter(|member| matters(member.1.get().as_bytes()))
        .map(|member| strings(member.1))
        .filter(|text| !text.is_empty());
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// The top-level members of an object, in order.
#[derive(Debug, Default)]
pub(super) struct Members<'a>(pub(super) Vec<Member<'a>>);

/// A name and its raw value.
pub(super) type Member<'a> = (Str<'a>, &'a RawValue);

impl<'a> Members<'a> {
    /// Reads an object of which the end may be missing: the last member may have no value then.
    pub(super) fn before_cut(bytes: &'a [u8]) -> Self {
        struct Collect<'m, 'a>(&'m mut Vec<Member<'a>>);
        impl<'de> Visitor<'de> for Collect<'_, 'de> {
            type Value = ();

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                while let Some(name) = map.next_key()? {
                    self.0.push((name, RawValue::NULL));
                    let value = map.next_value()?;
                    if let Some(member) = self.0.last_mut() {
                        member.1 = value;
                    }
                }
                Ok(())
            }
        }
        let mut members = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        // It ends with an error where the object is cut.
        let _cut = deserializer.deserialize_map(Collect(&mut members));
        Self(members)
    }

    /// Returns the value of a member.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|member| &*member.0 == name).map(|member| member.1)
    }

    /// Returns whether there is such a member.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the value of a member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<Str<'a>> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
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
