//! JSON objects, member by member.
//!
//! Hosts' lines are read as what they are: members with names, most of which nobody asks for. A
//! cursor finds where each value ends; what is in it is parsed when somebody wants it.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memchr;

use super::json::{Malformed, mended, time};
use super::out::join;
use aldis_signal::time::Timestamp;

/// A value as it is written. Where it ends is known; the rest is checked when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// Returns the value as it is written.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the value as it is written, as text.
    pub(crate) fn as_written(self) -> Cow<'a, str> {
        lossy(self.0)
    }

    fn parse<T: std::str::FromStr>(self) -> Option<T> {
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }
}

/// The members of an object, in order. Reading one checks that no member is given twice: hosts
/// never write that, and which of the two counts would differ from reader to reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members<'a>(Vec<(&'a [u8], Raw<'a>)>);

impl<'a> Members<'a> {
    /// Reads an object.
    pub(crate) fn of_bytes(object: &'a [u8]) -> Result<Self, Malformed> {
        let mut members = Self::default();
        members.collect(object).ok_or(Malformed)?;
        if members.has_duplicate() { Err(Malformed) } else { Ok(members) }
    }

    /// Reads a member that must be an object.
    pub(crate) fn of(raw: Raw<'a>) -> Result<Self, Malformed> {
        Self::of_bytes(raw.0)
    }

    /// Reads a member that may be an object; anything else has no members.
    pub(crate) fn lenient(raw: Raw<'a>) -> Self {
        Self::of(raw).unwrap_or_default()
    }

    /// Reads an object of which the end may be missing: the last member may have no value then.
    pub(crate) fn before_cut(bytes: &'a [u8]) -> Self {
        let mut members = Self::default();
        let _cut = members.collect(bytes);
        members
    }

    /// Collects members as they come, so that those before an error are known.
    fn collect(&mut self, object: &'a [u8]) -> Option<()> {
        let mut cursor = Cursor { json: object, at: 0 };
        cursor.open(b'{')?;
        self.0.reserve(16);
        while let Some(name) = cursor.next(b'}', Cursor::string)? {
            self.0.push((name, Raw(b"null")));
            cursor.take(b':')?;
            let value = cursor.value()?;
            if let Some(member) = self.0.last_mut() {
                member.1 = value;
            }
        }
        cursor.finish()
    }

    fn has_duplicate(&self) -> bool {
        if self.0.len() > FEW {
            let names: HashSet<_> = self.0.iter().map(|(name, _)| name).collect();
            return names.len() < self.0.len();
        }
        let mut rest = &*self.0;
        while let [(name, _), later @ ..] = rest {
            if later.iter().any(|(other, _)| is_same(other, name)) {
                return true;
            }
            rest = later;
        }
        false
    }

    /// Returns all members.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> {
        self.0.iter().map(|(name, value)| (String::from_utf8_lossy(name), *value))
    }

    /// Returns the value of a member, be it `null`.
    pub(crate) fn member(&self, name: &str) -> Option<Raw<'a>> {
        self.0.iter().find(|(known, _)| is_same(known, name.as_bytes())).map(|(_, value)| *value)
    }

    /// Returns whether there is such a member, be it `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    /// Returns the value of a member that is not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.member(name).filter(|value| value.0 != b"null")
    }

    /// Returns the value of the first of these members that is there and not `null`.
    pub(crate) fn any(&self, names: &[&str]) -> Option<Raw<'a>> {
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

    /// As [`object`](Self::object), for a member that must be an object if it is there.
    pub(crate) fn strict(&self, name: &str) -> Result<Self, Malformed> {
        self.get(name).map_or_else(|| Ok(Self::default()), Self::of)
    }

    /// Returns the elements of a member that is a list, or the one value that it is.
    pub(crate) fn list(&self, name: &str) -> Vec<Raw<'a>> {
        self.get(name).map(elements).unwrap_or_default()
    }

    /// Returns whether a member is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.member(name).is_some_and(|value| value.0 == b"true")
    }

    /// Returns a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.member(name)?.parse().filter(|number: &f64| number.is_finite())
    }

    /// Returns a number that counts something.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let exact = self.member(name)?.parse();
        exact.or_else(|| {
            self.number(name).filter(|number| *number >= 0.0).map(|number| number as u64)
        })
    }

    /// Returns a number that may be negative, such as an exit code.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.member(name)?.parse()
    }

    /// Returns a moment.
    pub(crate) fn time(&self, name: &str) -> Option<Timestamp> {
        time(self.get(name)?)
    }
}

/// Compares names. Most differ in their length or first letter.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.first() == other.first() && one == other
}

/// A place in JSON.
struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Passes over the bracket that opens an object or a list.
    fn open(&mut self, bracket: u8) -> Option<()> {
        self.take(bracket)
    }

    /// Reads the next element of an object or a list, whose first one follows its bracket and the
    /// others a comma; nothing at its end.
    fn next<T>(&mut self, bracket: u8, read: impl Fn(&mut Self) -> Option<T>) -> Option<Option<T>> {
        self.skip_blanks();
        if self.json.get(self.at) == Some(&bracket) {
            self.at += 1;
            return Some(None);
        }
        let is_first = matches!(self.json[..self.at].trim_ascii_end().last(), Some(b'{' | b'['));
        if !is_first {
            self.take(b',')?;
        }
        self.skip_blanks();
        read(self).map(Some)
    }

    /// The value must end here.
    fn finish(mut self) -> Option<()> {
        self.skip_blanks();
        (self.at == self.json.len()).then_some(())
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.json.get(self.at) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        (self.json.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// Passes over a string and returns what is between its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            self.at += memchr(b'"', self.json.get(self.at..)?)?;
            let inside = &self.json[start..self.at];
            self.at += 1;
            // A quote is part of the string if an odd number of backslashes stands before it.
            let backslashes = inside.iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes % 2 == 0 {
                return Some(inside);
            }
        }
    }

    /// Passes over any value.
    fn value(&mut self) -> Option<Raw<'a>> {
        self.skip_blanks();
        let start = self.at;
        match self.json.get(start)? {
            b'"' => drop(self.string()?),
            b'{' | b'[' => self.skip_nested()?,
            _ => self.skip_scalar()?,
        }
        (self.at > start).then(|| Raw(&self.json[start..self.at]))
    }

    fn skip_scalar(&mut self) -> Option<()> {
        let rest = &self.json[self.at..];
        let end = rest.iter().position(|byte| b",]} \t\n\r".contains(byte)).unwrap_or(rest.len());
        let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let scalar = &rest[..end];
        let is_word = matches!(scalar, b"true" | b"false" | b"null");
        self.at += end;
        (is_word || scalar.iter().all(is_number)).then_some(())
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.json.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            match depth {
                0 => return Some(()),
                DEPTH_MAX => return None,
                _ => {}
            }
        }
    }
}

/// Returns a value that is a string, borrowed unless it has escapes. Broken characters are replaced.
pub(crate) fn string(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let inside = raw.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr(b'\\', inside).is_none() {
        return Some(lossy(inside));
    }
    let whole = serde_json::from_slice(raw.0).ok();
    whole.or_else(|| serde_json::from_str(&mended(&raw.as_written())).ok()).map(Cow::Owned)
}

/// Joins all strings inside a value, without the names of members, by line breaks.
pub(crate) fn strings(raw: Raw<'_>) -> String {
    let mut all = String::new();
    let mut cursor = Cursor { json: raw.0, at: 0 };
    while let Some(quote) = memchr(b'"', &raw.0[cursor.at..]) {
        cursor.at += quote;
        let start = cursor.at;
        let Some(inside) = cursor.string() else { break };
        let text = Raw(&raw.0[start..cursor.at]);
        let is_name = cursor.take(b':').is_some();
        if !is_name {
            // One with an escape that is none is worth showing as it is.
            join(&mut all, &string(text).unwrap_or_else(|| lossy(inside)));
        }
    }
    all
}

/// As [`String::from_utf8_lossy`], which is slower on sound text.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Splits content into its elements: those of a list, or the one value there is.
pub(crate) fn elements(raw: Raw<'_>) -> Vec<Raw<'_>> {
    if raw.0.starts_with(b"[") { list(raw.0).unwrap_or_default() } else { vec![raw] }
}

/// Splits a list into its elements.
pub(crate) fn list(list: &[u8]) -> Result<Vec<Raw<'_>>, Malformed> {
    let mut elements = Vec::new();
    let mut cursor = Cursor { json: list, at: 0 };
    let mut read = || {
        cursor.open(b'[')?;
        while let Some(element) = cursor.next(b']', Cursor::value)? {
            elements.push(element);
        }
        Some(())
    };
    read().and_then(|()| cursor.finish()).ok_or(Malformed)?;
    Ok(elements)
}

/// Joins the strings of those members of an object that matter, without ids and kinds: the rest of
/// a host's record (working directory, account, timings) is nobody's business.
pub(crate) fn member_strings(value: &[u8], matters: &dyn Fn(&[u8]) -> bool) -> String {
    let Ok(members) = Members::of_bytes(value) else { return strings(Raw(value)) };
    let texts =
        members.iter().filter(|(name, value)| !UNSAID.contains(&&**name) && matters(value.0));
    let texts = texts.map(|(_, value)| strings(value)).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n")
}

/// Members of records that say what a record is, not what it says.
const UNSAID: [&str; 7] = ["type", "id", "call_id", "status", "name", "uuid", "parentUuid"];

/// Up to so many members are compared with each other.
const FEW: usize = 24;

/// Deeper values are malformed.
const DEPTH_MAX: usize = 128;

#[cfg(test)]
mod tests {
    //! The cursor beside a parser.

    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;
    use crate::tests::{SAMPLES, sample};

    /// Compares an object with what a parser makes of it.
    fn check(object: &[u8]) {
        let Ok(parsed) = serde_json::from_slice::<Map<String, Value>>(object) else { return };
        let Ok(members) = Members::of_bytes(object) else {
            let names: Vec<_> = Members::before_cut(object).iter().map(|(name, _)| name).collect();
            let mut known = HashSet::new();
            assert!(!names.iter().all(|name| known.insert(name)), "{names:?}");
            return;
        };
        for (name, value) in members.iter() {
            let name: String = serde_json::from_str(&format!("\"{name}\"")).unwrap();
            let value: Value = serde_json::from_slice(value.bytes()).unwrap();
            assert_eq!(parsed.get(&name), Some(&value), "{name}");
            if let (Value::String(text), Some(raw)) = (&value, members.member(&name)) {
                assert_eq!(string(raw).as_deref(), Some(&**text));
            }
            if let (Value::Array(all), Some(raw)) = (&value, members.member(&name)) {
                assert_eq!(elements(raw).len(), all.len());
            }
        }
    }

    #[test]
    fn samples_are_split_as_a_parser_does() {
        for (path, _) in SAMPLES {
            sample(path).split(|byte| *byte == b'\n').for_each(check);
        }
    }

    #[test]
    fn what_is_no_object_is_malformed() {
        let deep = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        for (text, is_sound) in [
            ("{}", true),
            (r#" { "a" : 1 , "b" : [ ] } "#, true),
            (r#"{"a":"\\\"","b":"\\"}"#, true),
            (r#"{"a":1,"a":2}"#, false),
            (r#"{"a":1}{"#, false),
            (r#"{"a":1,}"#, false),
            (r#"{"a":1 "b":2}"#, false),
            (r#"{"a"}"#, false),
            (r#"{"a":}"#, false),
            (r#"{"a":"\"}"#, false),
            (r#"{"a":b","c":1}"#, false),
            ("[]", false),
            ("", false),
            (&deep(100), true),
            (&deep(1_000_000), false),
        ] {
            assert_eq!(Members::of_bytes(text.as_bytes()).is_ok(), is_sound, "{text:.60}");
        }
        let many: Vec<_> = (0..2 * FEW).map(|n| format!(r#""{n}":0"#)).collect();
        let object = format!("{{{}}}", many.join(","));
        assert!(Members::of_bytes(object.as_bytes()).is_ok());
        let twice = object.replace(r#""7""#, r#""8""#);
        assert!(Members::of_bytes(twice.as_bytes()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn any_text_is_split_as_a_parser_does(text in r#"\{("[ab]?(\\["\\n])?":|[{}\[\]:,"\\ ]|1|null|"a","b"){0,12}\}?"#) {
            check(text.as_bytes());
        }

        #[test]
        fn any_bytes_are_taken(bytes: Vec<u8>) {
            check(&bytes);
            let _list = list(&bytes);
        }
    }
}
