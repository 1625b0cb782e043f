//! Moments, as machines see them: given with every event, never asked for.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment in milliseconds since 1970 (UTC). Written and read as RFC 3339.
///
/// ```
/// use aldis_signal::time::Timestamp;
///
/// let at: Timestamp = "2026-03-02T10:00:00Z".parse()?;
/// assert_eq!(at.as_millis(), 1_772_445_600_000);
/// assert_eq!("2026-03-02T11:00:00+01:00".parse::<Timestamp>()?, at);
/// # Ok::<(), aldis_signal::time::BadTimestamp>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// A text that names no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time like 2026-03-02T10:00:00Z")]
pub struct BadTimestamp(String);

impl Timestamp {
    /// Creates a moment from milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns how long after `earlier` this is; nothing when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// Returns the moment `span` later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Returns the moment `span` earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Out of the calendar's range only for times that no clock gives.
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        fmt::Display::fmt(&at, f)
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let at = text.parse::<jiff::Timestamp>().map_err(|_| BadTimestamp(text.to_owned()))?;
        Ok(Self(at.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    //! Reading and writing moments.

    use super::*;

    #[test]
    fn moments_survive_their_text() {
        for text in ["2026-03-02T10:00:00Z", "2026-03-02T10:00:00.123Z", "1969-12-31T23:59:59Z"] {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), text);
        }
        for text in ["yesterday", "", "2026-03-02", "2026-13-02T10:00:00Z"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_never_go_backwards() {
        let early = Timestamp::from_millis(1_000);
        let late = early.after(Duration::from_secs(2));
        assert_eq!(late.since(early), Duration::from_secs(2));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(Timestamp::from_millis(i64::MAX).after(Duration::MAX).as_millis(), i64::MAX);
    }
}
