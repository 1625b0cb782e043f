//! Marks: how the processes of one agent are recognised by their environment.

use std::env;
use std::fmt;
use std::io;
use std::process::Command;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::launch::MARK_VARIABLE;

/// The bytes of a mark, before they are written as twice as many digits.
const MARK_BYTES: usize = 16;
/// Separates the marks of an agent within an agent.
const SEPARATOR: char = ':';

/// A value that every process of one agent carries in its environment, and no other process does.
///
/// It can be chosen and stored before the agent is started ([`Launch::mark`](crate::Launch::mark)).
/// Then [`find_marked`](crate::find_marked) finds the agent also if the supervisor was killed between
/// starting it and storing its [`Identity`](crate::Identity).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mark(String);

impl Mark {
    /// Makes a mark that no other agent has.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random numbers.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; MARK_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(hex(&bytes)))
    }

    /// Returns the mark for a key that is stored anyway and unique among all agents, such as the
    /// idempotency key of the effect that starts the agent. The same key gives the same mark.
    pub fn derive(key: &str) -> Self {
        Self(hex(&Sha256::digest(key)[..MARK_BYTES]))
    }

    /// Returns the mark as text: 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Lets a program carry this mark, beside those that we carry, so that
    /// [`find_marked`](crate::find_marked) finds it when whoever started it was killed.
    pub fn put_on(&self, command: &mut Command) {
        let outer = env::var_os(MARK_VARIABLE).map(|outer| outer.to_string_lossy().into_owned());
        command.env(MARK_VARIABLE, self.below(outer.as_deref()));
    }

    /// Returns the value of the variable for an agent that is started by a process with this one.
    pub(crate) fn below(&self, outer: Option<&str>) -> String {
        outer.map_or_else(|| self.0.clone(), |outer| format!("{outer}{SEPARATOR}{self}"))
    }

    /// Whether the value of the variable contains this mark.
    pub(crate) fn is_in(&self, value: &str) -> bool {
        value.split(SEPARATOR).any(|mark| mark == self.0)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Mark> for String {
    fn from(mark: Mark) -> Self {
        mark.0
    }
}

impl TryFrom<String> for Mark {
    type Error = InvalidMark;

    /// Anything but a whole mark is refused: an empty one would be in every environment.
    fn try_from(text: String) -> Result<Self, InvalidMark> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits && text.len() == 2 * MARK_BYTES { Ok(Self(text)) } else { Err(InvalidMark) }
    }
}

/// A text is not a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mark has {} lower-case hexadecimal digits", 2 * MARK_BYTES)]
pub struct InvalidMark;

/// Writes bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    //! Marks as texts and in environments.

    use super::*;

    #[test]
    fn only_whole_marks_are_read() {
        let mark = Mark::random().unwrap();
        assert_eq!(Mark::try_from(mark.to_string()), Ok(mark.clone()));
        assert_ne!(mark, Mark::random().unwrap());
        for wrong in ["", "0", &"0".repeat(31), &"0".repeat(33), &"F".repeat(32), &":".repeat(32)] {
            assert_eq!(Mark::try_from(wrong.to_owned()), Err(InvalidMark), "{wrong}");
        }
        assert!(serde_json::from_str::<Mark>("\"\"").is_err());
    }

    #[test]
    fn a_key_always_gives_the_same_mark() {
        assert_eq!(Mark::derive("run/1"), Mark::derive("run/1"));
        assert_ne!(Mark::derive("run/1"), Mark::derive("run/2"));
        assert_eq!(Mark::derive("run/1").as_str().len(), 2 * MARK_BYTES);
    }

    #[test]
    fn nested_agents_carry_both_marks() {
        let (outer, inner) = (Mark::derive("outer"), Mark::derive("inner"));
        let value = inner.below(Some(&outer.below(None)));
        assert!(outer.is_in(&value) && inner.is_in(&value));
        assert!(!inner.is_in(outer.as_str()));
        assert!(!Mark::derive("other").is_in(&value));
    }
}
