//! Positions in a listing, opaque to callers: each backend orders its rows in its own way.

use std::fmt;
use std::str::FromStr;

/// The position of a decision among those of all runs: where a reader goes on, or a page ends.
///
/// Compare cursors for equality only. They have no order that a caller could compute: a backend
/// whose transactions commit out of order needs more than one number. The text is stable, so that a
/// client can keep it and come back with it.
///
/// ```
/// use aldis_store::Cursor;
///
/// let cursor: Cursor = "17".parse()?;
/// assert_eq!(cursor.to_string(), "17");
/// assert!("seventeen".parse::<Cursor>().is_err());
/// # Ok::<(), aldis_store::BadCursor>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The transaction, where numbers alone do not give the order of commits; else 0.
    transaction: u64,
    number: u64,
}

impl Cursor {
    /// Before the first decision.
    pub const START: Self = Self { transaction: 0, number: 0 };

    /// A position that one number describes.
    pub(crate) fn of(number: u64) -> Self {
        Self { transaction: 0, number }
    }

    /// A position that the number of a transaction and a number describe.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_transaction(transaction: u64, number: u64) -> Self {
        Self { transaction, number }
    }

    /// Both numbers, for backends that have both.
    #[cfg(feature = "postgres")]
    pub(crate) fn pair(self) -> (u64, u64) {
        (self.transaction, self.number)
    }

    /// The number, for backends that have nothing else. A cursor of another backend is behind
    /// everything.
    pub(crate) fn number(self) -> u64 {
        if self.transaction == 0 { self.number } else { u64::MAX }
    }
}

/// The position of a run in a list: where the next page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageCursor(Cursor);

impl PageCursor {
    pub(crate) fn of(number: u64) -> Self {
        Self(Cursor::of(number))
    }

    pub(crate) fn number(self) -> u64 {
        self.0.number()
    }
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for PageCursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        text.parse().map(Self)
    }
}

/// A text that is no cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cursor; use one that a listing returned")]
pub struct BadCursor(String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transaction {
            0 => write!(f, "{}", self.number),
            transaction => write!(f, "{transaction}-{}", self.number),
        }
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let (transaction, number) = text.split_once('-').unwrap_or(("0", text));
        // `parse` alone would take a sign.
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = [transaction, number].map(|part| part.parse().ok().filter(|_| digits(part)));
        match parsed {
            [Some(transaction), Some(number)] => Ok(Self { transaction, number }),
            _ => Err(BadCursor(text.to_owned())),
        }
    }
}

/// Whether a reader that goes on after a cursor misses something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// Every decision after the cursor is there.
    Complete,
    /// Decisions after the cursor were pruned.
    Pruned,
    /// The cursor is not of this store.
    Unknown,
}

/// What a store had seen of its own changes at some moment. Two that differ say that something was
/// written in between; they mean nothing to another store object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeStamp(u64, u64);

impl ChangeStamp {
    pub(crate) fn of(source: u64, count: u64) -> Self {
        Self(source, count)
    }
}

#[cfg(test)]
mod tests {
    //! What can be read back, and nothing else.

    use super::*;

    #[test]
    fn the_text_of_a_cursor_is_a_cursor() {
        for text in ["0", "17", "18446744073709551615", "8-0", "8-15"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        assert_eq!("0".parse(), Ok(Cursor::START));
        for bad in ["", "+1", "-1", "1-", "1.5", "1-2-3", " 1", "x", "18446744073709551616"] {
            assert_eq!(bad.parse::<Cursor>(), Err(BadCursor(bad.to_owned())));
        }
    }
}
