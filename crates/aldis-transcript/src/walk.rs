//! A quick walk over a line of JSON that is laid out as hosts do: without blanks.
//!
//! Agents say much, and of their lines only a few members are asked for. Whatever is unusual or
//! unsound ends the walk; then the line is read with care. What is walked over is sound.

use std::borrow::Cow;

use super::json::Str;

/// A place in a line.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    line: &'a str,
    at: usize,
    /// How many values are open.
    depth: usize,
}

/// A string as it is written, with its quotes.
#[derive(Clone, Copy, Debug)]
struct Quoted<'a> {
    written: &'a str,
    has_escapes: bool,
}

/// A string that may be missing, `null`, or there once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member<'a>(Option<Option<Quoted<'a>>>);

/// Deeper lines are left to the careful way, which knows a limit too.
const DEPTH_MAX: usize = 32;

impl<'a> Walk<'a> {
    /// Starts at the beginning of a line.
    pub(super) fn start(line: &'a [u8]) -> Option<Self> {
        // Folding without a way out lets the compiler look at many bytes at once.
        let has_controls = line.iter().fold(false, |any, byte| any | (*byte < b' '));
        let line = std::str::from_utf8(line).ok().filter(|_| !has_controls)?;
        Some(Self { line, at: 0, depth: 0 })
    }

    /// Ends the walk: the line must end here too.
    pub(super) fn finish(self) -> Option<()> {
        (self.at == self.line.len()).then_some(())
    }

    /// Walks over an object. `each` is given the name of a member and must walk over its value.
    pub(super) fn members(
        &mut self,
        mut each: impl FnMut(&'a str, &mut Self) -> Option<()>,
    ) -> Option<()> {
        self.list(b'{', b'}', |walk| {
            let name = walk.string()?;
            walk.take(b':').filter(|()| !name.has_escapes)?;
            each(name.inside(), walk)
        })
    }

    /// Walks over a list. `each` must walk over one element.
    pub(super) fn elements(&mut self, each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(b'[', b']', each)
    }

    fn list(
        &mut self,
        open: u8,
        close: u8,
        mut each: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.take(open).filter(|()| self.depth < DEPTH_MAX)?;
        if self.take(close).is_some() {
            return Some(());
        }
        self.depth += 1;
        loop {
            each(self)?;
            if self.take(b',').is_none() {
                self.depth -= 1;
                return self.take(close);
            }
        }
    }

    /// Walks over a string.
    fn string(&mut self) -> Option<Quoted<'a>> {
        let (start, text) = (self.at, self.line.as_bytes());
        self.take(b'"')?;
        let mut has_escapes = false;
        loop {
            self.at = end_or_escape(text, self.at)?;
            if text[self.at] == b'"' {
                self.at += 1;
                let written = &self.line[start..self.at];
                return Some(Quoted { written, has_escapes });
            }
            has_escapes = true;
            self.escape()?;
        }
    }

    fn escape(&mut self) -> Option<()> {
        let length = match self.rest() {
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'\\', b'u', digits @ ..] => {
                let are_digits = digits.get(..4)?.iter().all(u8::is_ascii_hexdigit);
                are_digits.then_some(6)?
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    /// Walks over `null`, if that is here.
    pub(super) fn null(&mut self) -> Option<()> {
        self.word("null")
    }

    /// Walks over a string, or over `null`.
    fn optional_string(&mut self) -> Option<Option<Quoted<'a>>> {
        if self.null().is_some() { Some(None) } else { self.string().map(Some) }
    }

    /// Walks over a number that counts something, or over `null`.
    pub(super) fn count(&mut self) -> Option<u64> {
        if self.null().is_some() {
            return Some(0);
        }
        let start = self.at;
        self.skip()?;
        self.line[start..self.at].parse().ok()
    }

    /// Walks over any value.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.rest().first()? {
            b'"' => self.string().map(drop),
            b'{' => self.members(|_, walk| walk.skip()),
            b'[' => self.elements(Self::skip),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    /// Walks over a number. Those with an exponent are unusual.
    fn number(&mut self) -> Option<()> {
        self.take(b'-');
        let whole = self.digits();
        if whole == 0 || whole > 1 && self.line.as_bytes()[self.at - whole] == b'0' {
            return None;
        }
        if self.take(b'.').is_some() && self.digits() == 0 {
            return None;
        }
        // The careful way refuses numbers that are too large for a float.
        let is_end = !matches!(self.rest().first(), Some(b'e' | b'E'));
        (is_end && whole < 300).then_some(())
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.rest().starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.rest().first() == Some(&byte)).then(|| self.at += 1)
    }

    fn rest(&self) -> &'a [u8] {
        &self.line.as_bytes()[self.at..]
    }
}

/// Returns where the first quote or backslash is, from a place on. At first eight bytes are looked at
/// together: most strings are too short for more to pay.
fn end_or_escape(text: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let rest = text.get(from..)?;
    let words = rest.as_chunks().0.get(..SHORT_WORDS).unwrap_or_default();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let [quote, escape] = [b'"', b'\\'].map(|byte| word ^ (ONES * u64::from(byte)));
        // Bytes that are zero now become the largest, and no other of ASCII does but behind those.
        let largest = quote.wrapping_sub(ONES) | escape.wrapping_sub(ONES);
        let found = largest & !word & (ONES << 7);
        if found != 0 {
            return Some(from + index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let at = words.len() * 8;
    memchr::memchr2(b'"', b'\\', &rest[at..]).map(|found| from + at + found)
}

/// How many times eight bytes a short string has.
const SHORT_WORDS: usize = 3;

impl<'a> Quoted<'a> {
    fn inside(self) -> &'a str {
        &self.written[1..self.written.len() - 1]
    }

    fn plain(self) -> Option<&'a str> {
        (!self.has_escapes).then(|| self.inside())
    }

    /// Returns what it says; `None` if it cannot be said.
    fn read(self) -> Option<Str<'a>> {
        if !self.has_escapes {
            return Some(Str(Cow::Borrowed(self.inside())));
        }
        let mut said = String::with_capacity(self.written.len());
        let mut rest = self.inside();
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            said.push_str(&rest[..at]);
            said.push(match rest.as_bytes().get(at + 1)? {
                b'b' => '\x08',
                b'f' => '\x0c',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => return serde_json::from_str(self.written).ok(),
                other => char::from(*other),
            });
            rest = &rest[at + 2..];
        }
        said.push_str(rest);
        Some(Str(Cow::Owned(said)))
    }
}

impl<'a> Member<'a> {
    /// Walks over its value; not if it was there before.
    pub(super) fn take(&mut self, walk: &mut Walk<'a>) -> Option<()> {
        self.0.replace(walk.optional_string()?).is_none().then_some(())
    }

    /// Returns whether there is a string.
    pub(super) fn is_some(&self) -> bool {
        self.0.flatten().is_some()
    }

    /// Returns what it says, if there is one; nothing at all if it cannot be said.
    pub(super) fn read(&self) -> Option<Option<Str<'a>>> {
        self.0.flatten().map_or(Some(None), |quoted| quoted.read().map(Some))
    }

    /// Returns the string if it is written as it reads.
    pub(super) fn plain(&self) -> Option<&'a str> {
        self.0.flatten()?.plain()
    }
}

#[cfg(test)]
mod tests {
    //! What is walked over is what serde reads.

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn walked(line: &str) -> Option<()> {
        let mut walk = Walk::start(line.as_bytes())?;
        walk.skip()?;
        walk.finish()
    }

    #[test]
    fn unsound_lines_end_the_walk() {
        for line in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\"}",
            "01",
            "-",
            "1.",
            ".5",
            "1e5",
            "tru",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\t\"",
            "\"",
            "[1 ]",
            "{}{}",
            "{\"a\\n\":1}",
            "[1}",
            "{\"a\":1]",
        ] {
            assert_eq!(walked(line), None, "{line}");
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(walked(&deep(DEPTH_MAX)), Some(()));
        assert_eq!(walked(&deep(DEPTH_MAX + 1)), None);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1000..1000_i64).prop_map(|n| Value::from(n as f64 / 8.0)),
            any::<String>().prop_map(Value::from),
            "[\"\\\\/a\n\u{1}\u{e9}]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map("[a-z]{0,20}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn sound_lines_are_walked_over(value in any_value()) {
            prop_assert_eq!(walked(&value.to_string()), Some(()));
        }

        #[test]
        fn strings_are_read(text: String, marks in "[\"\\\\/a\n\u{1}\u{e9}]{0,40}") {
            let line = Value::from(format!("{marks}{text}")).to_string();
            let quoted = Walk::start(line.as_bytes()).and_then(|mut walk| walk.string()).unwrap();
            prop_assert_eq!(&*quoted.read().unwrap(), &*format!("{marks}{text}"));
        }

        #[test]
        fn damaged_lines_are_not_walked_over_when_unsound(
            value in any_value(),
            hits in prop::collection::vec((any::<prop::sample::Index>(), 0..128_u8), 0..3),
        ) {
            let mut line = value.to_string().into_bytes();
            for (at, byte) in hits {
                let at = at.index(line.len());
                line[at] = byte;
            }
            if let Ok(line) = String::from_utf8(line)
                && walked(&line).is_some()
            {
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&line).is_ok(), "{line}");
            }
        }
    }
}
