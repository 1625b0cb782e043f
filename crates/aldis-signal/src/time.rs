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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// A text that names no moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTimestamp(String);

impl fmt::Display for BadTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a time like 2026-03-02T10:00:00Z", self.0)
    }
}

impl std::error::Error for BadTimestamp {}

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

/// The first millisecond behind the year 9999, and that of the year 0: what the text form can say.
const END: i64 = 253_402_300_800_000;
const START: i64 = -62_167_219_200_000;
const DAY: i64 = 86_400_000;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Beyond the calendar only for times that no clock gives.
        let at = self.0.clamp(START, END - 1);
        let (year, month, day) = civil(at.div_euclid(DAY));
        let seconds = at.rem_euclid(DAY) / 1_000;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        let fraction = format!("{:03}", at.rem_euclid(1_000));
        match fraction.trim_end_matches('0') {
            "" => f.write_str("Z"),
            fraction => write!(f, ".{fraction}Z"),
        }
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        parse(text).map(Self).ok_or_else(|| BadTimestamp(text.to_owned()))
    }
}

/// Reads RFC 3339. A leap second is the last one of its minute.
fn parse(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (millis, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(fraction) => {
            let (fraction, zone) = fraction.split_at(digits(fraction));
            let millis = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
            (if fraction.is_empty() { return None } else { millis }, zone)
        }
    };
    let offset = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign @ ("+" | "-"), zone) => {
            let [hours, minutes] = numbers(zone, ':', [2, 2])?;
            let offset = (hours <= 23 && minutes <= 59).then_some(hours * 60 + minutes)?;
            if sign == "+" { offset } else { -offset }
        }
        _ => return None,
    };
    let days = days(year, month, day);
    let exists = hour <= 23 && minute <= 59 && second <= 60 && civil(days) == (year, month, day);
    let seconds = (days * 24 + hour) * 3_600 + (minute - offset) * 60 + second.min(59);
    let at: i64 = seconds * 1_000 + millis;
    (exists && (START..END).contains(&at)).then_some(at)
}

/// Reads numbers of so many digits with a sign between them.
fn numbers<const N: usize>(text: &str, sign: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut found = [0; N];
    let mut parts = text.split(sign);
    for (number, length) in found.iter_mut().zip(lengths) {
        let digits = parts.next().filter(|part| part.len() == length)?;
        *number =
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

/// Days from the start of an era of 400 years, which begins with March so that its leap days come last,
/// to 1970-01-01.
const EPOCH: i64 = 719_468;
const ERA: i64 = 146_097;

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year.div_euclid(400) * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH
}

/// Returns year, month and day so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let of_era = days.rem_euclid(ERA);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + days.div_euclid(ERA) * 400 + i64::from(month <= 2), month, day)
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
        for text in [
            "yesterday",
            "",
            "2026-03-02",
            "2026-13-02T10:00:00Z",
            "2026-02-29T10:00:00Z",
            "1900-02-29T10:00:00Z",
            "2026-03-02T24:00:00Z",
            "2026-03-02T10:60:00Z",
            "2026-03-02T10:00:61Z",
            "2026-03-02T10:00:00",
            "2026-03-02T10:00:00.Z",
            "2026-03-02T10:00:00+24:00",
            "2026-03-02T10:00:00Z ",
            "2026-3-2T10:00:00Z",
            "+026-03-02T10:00:00Z",
            "2026\u{2013}03-02T10:00:00Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn other_forms_of_a_moment() {
        for (text, plain) in [
            ("2026-03-02t11:30:00+01:30", "2026-03-02T10:00:00Z"),
            ("2026-03-01 23:00:00-11:00", "2026-03-02T10:00:00Z"),
            ("2024-02-29T00:00:00.1z", "2024-02-29T00:00:00.1Z"),
            ("2000-02-29T23:59:60Z", "2000-02-29T23:59:59Z"),
            ("2026-03-02T10:00:00.123456789Z", "2026-03-02T10:00:00.123Z"),
        ] {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), plain, "{text}");
        }
        for (millis, plain) in [
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), plain);
        }
    }

    #[test]
    fn every_day_has_one_date() {
        let mut last = civil(START / DAY - 1);
        for day in START / DAY..END / DAY {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
            let next = match last {
                (_, _, last) if date == last + 1 => {
                    (year, month) == (civil(day - 1).0, civil(day - 1).1)
                }
                (last_year, 12, 31) => (year, month, date) == (last_year + 1, 1, 1),
                (last_year, last_month, 28..) => {
                    (year, month, date) == (last_year, last_month + 1, 1)
                }
                _ => false,
            };
            assert!(next, "{last:?} is followed by {:?}", civil(day));
            last = (year, month, date);
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
