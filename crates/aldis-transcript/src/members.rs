//! JSON objects, member by member.
//!
//! Hosts' lines are read as what they are: members with names, most of which nobody asks for. What
//! is asked for is taken by name; big members stay raw until somebody wants them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{Malformed, has_half_character, strings, time};
use aldis_signal::time::Timestamp;

/// The members of an object, in order. Reading one checks that no member is given twice: hosts
/// never write that, and which of the two counts would differ from reader to reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads a line for its texts.
    pub(crate) fn of_line(line: &'a [u8]) -> Result<Self, Malformed> {
        if has_half_character(line) {
            return Err(Malformed);
        }
        Self::of_bytes(line)
    }

    /// Reads a line for its shape alone: half a character in a text does not matter.
    pub(crate) fn of_bytes(line: &'a [u8]) -> Result<Self, Malformed> {
        let mut members = Self::default();
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        deserializer.deserialize_map(Collect(&mut members.0))?;
        deserializer.end()?;
        if members.has_duplicate() { Err(Malformed) } else { Ok(members) }
    }

    /// Reads a member that must be an object.
    pub(crate) fn of(raw: &'a RawValue) -> Result<Self, Malformed> {
        Self::of_bytes(raw.get().as_bytes())
    }

    /// Reads a member that may be an object; anything else has no members.
    pub(crate) fn lenient(raw: &'a RawValue) -> Self {
        // The error of a long string that is no object would quote all of it.
        if raw.get().starts_with('{') { Self::of(raw).unwrap_or_default() } else { Self::default() }
    }

    /// Reads an object of which the end may be missing: the last member may have no value then.
    pub(crate) fn before_cut(bytes: &'a [u8]) -> Self {
        let mut members = Self::default();
        // Ends with an error where the object is cut.
        let _cut =
            serde_json::Deserializer::from_slice(bytes).deserialize_map(Collect(&mut members.0));
        members
    }

    fn has_duplicate(&self) -> bool {
        let names = self.0.iter().map(|(name, _)| name);
        if self.0.len() <= FEW {
            return names
                .clone()
                .enumerate()
                .any(|(at, name)| names.clone().skip(at + 1).any(|other| other == name));
        }
        names.collect::<HashSet<_>>().len() < self.0.len()
    }

    /// Returns all members.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Returns the value of a member, be it `null`.
    pub(crate) fn member(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Returns whether there is such a member, be it `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    /// Returns the value of a member that is not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.member(name).filter(|value| value.get() != "null")
    }

    /// Returns the value of the first of these members that is there and not `null`.
    pub(crate) fn any(&self, names: &[&str]) -> Option<&'a RawValue> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Returns the value of a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.member(name)?)
    }

    /// Returns the first of these members that is a string.
    pub(crate) fn any_text(&self, names: &[&str]) -> Option<Cow<'a, str>> {
        names.iter().find_map(|name| self.text(name))
    }

    /// Returns a string, or nothing where there is none.
    pub(crate) fn str(&self, name: &str) -> Cow<'a, str> {
        self.text(name).unwrap_or_default()
    }

    /// Returns the members of a member that is an object.
    pub(crate) fn object(&self, name: &str) -> Self {
        self.member(name).map(Members::lenient).unwrap_or_default()
    }

    /// Returns the elements of a member that is a list, or the one value that it is.
    pub(crate) fn list(&self, name: &str) -> Vec<&'a RawValue> {
        self.get(name).map(elements).unwrap_or_default()
    }

    /// Returns whether a member is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.member(name).is_some_and(|value| value.get() == "true")
    }

    /// Returns a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.member(name)?.get().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Returns a number that counts something.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let exact = self.member(name)?.get().parse().ok();
        exact.or_else(|| {
            self.number(name).filter(|number| *number >= 0.0).map(|number| number as u64)
        })
    }

    /// Returns a moment.
    pub(crate) fn time(&self, name: &str) -> Option<Timestamp> {
        time(self.get(name)?)
    }
}

/// Collects members as they come, so that those before an error are known.
struct Collect<'m, 'a>(&'m mut Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Visitor<'de> for Collect<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<&RawValue>()? {
            self.0.push((string(name).unwrap_or_default(), RawValue::NULL));
            let value = map.next_value()?;
            if let Some(member) = self.0.last_mut() {
                member.1 = value;
            }
        }
        Ok(())
    }
}

/// Returns a value that is a string, borrowed unless it has escapes.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

/// Splits content into its elements: those of a list, or the one value there is.
pub(crate) fn elements(raw: &RawValue) -> Vec<&RawValue> {
    if raw.get().starts_with('[') {
        return serde_json::from_str(raw.get()).unwrap_or_default();
    }
    vec![raw]
}

/// Joins the strings of those members of an object that matter, without ids and kinds: the rest of
/// a host's record (working directory, account, timings) is nobody's business.
pub(crate) fn member_strings(value: &[u8], matters: &dyn Fn(&[u8]) -> bool) -> String {
    let Ok(members) = Members::of_bytes(value) else {
        return serde_json::from_slice(value).map(strings).unwrap_or_default();
    };
    let texts = members
        .iter()
        .filter(|(name, value)| !UNSAID.contains(name) && matters(value.get().as_bytes()));
    let texts = texts.map(|(_, value)| strings(value)).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n")
}

/// Members of records that say what a record is, not what it says.
const UNSAID: [&str; 7] = ["type", "id", "call_id", "status", "name", "uuid", "parentUuid"];

/// Up to so many members are compared with each other.
const FEW: usize = 24;
