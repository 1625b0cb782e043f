//! Reads when a limit ends, in the words of hosts and services.
//!
//! The forms that were met: an epoch after a bar, RFC 3339, a span (`in 2h24m55s`, `retry-after: 30`),
//! a clock time with or without a day (`5pm`, `Mon 12:00am`, `Sep 6 at 1pm`, `Nov 16th, 2026 5:00 PM`,
//! `9/23/2026`), each after a word like *resets* or *try again*. A clock time is in the zone named in
//! parentheses after it, else in the reader's. Zones are looked up in the database that jiff carries
//! inside: no file is read, the result is the same on every machine, and summer time is right; a
//! table of offsets would be wrong for half of the year. A form or a zone that is not known gives
//! nothing, because a wrong time is worse than none.

mod cursor;

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{DateTime, Time};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use cursor::{Cursor, Day};

use aldis_signal::time::Timestamp;

/// Where clock times belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Universal time.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Returns the zone so many seconds east of Greenwich; universal time if that is no zone.
    pub fn fixed(seconds_east: i32) -> Self {
        Offset::from_seconds(seconds_east)
            .map_or_else(|_| Self::utc(), |at| Self(at.to_time_zone()))
    }

    /// Returns the zone of a name like `Europe/Berlin`.
    pub fn named(name: &str) -> Option<Self> {
        if name.len() > NAME_MAX {
            return None;
        }
        TimeZoneDatabase::bundled().get(name).ok().map(Self)
    }

    fn at(&self, civil: DateTime) -> Option<Timestamp> {
        let at = self.0.to_timestamp(civil).ok()?;
        Some(Timestamp::from_millis(at.as_millisecond()))
    }

    fn civil(&self, at: Timestamp) -> Option<DateTime> {
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        Some(self.0.to_datetime(at))
    }
}

/// Returns when a limit ends, given what a host says about it, when it says so, and the zone of
/// clock times that name none.
///
/// A time of day that is past is tomorrow's. A moment more than a year away is a mistake.
///
/// ```
/// use aldis_signal::time::Timestamp;
/// use aldis_transcript::facts::{Zone, resets_at};
///
/// let now: Timestamp = "2026-11-15T15:30:00Z".parse()?;
/// let text = "You've hit your limit · resets 5pm (Europe/Berlin)";
/// assert_eq!(resets_at(text, now, &Zone::utc()), "2026-11-15T16:00:00Z".parse().ok());
/// # Ok::<(), aldis_signal::time::BadTimestamp>(())
/// ```
pub fn resets_at(text: &str, now: Timestamp, local: &Zone) -> Option<Timestamp> {
    let end = text.char_indices().nth(TEXT_MAX).map_or(text.len(), |(end, _)| end);
    let text = text[..end].to_ascii_lowercase();
    let found = epoch(&text).or_else(|| {
        let mut rest = Cursor(&text);
        while !rest.0.is_empty() {
            let Some(word) = rest.word() else {
                rest.skip();
                continue;
            };
            if ANCHORS.contains(&word)
                && let Some(at) = moment(rest, word, now, local)
            {
                return Some(at);
            }
        }
        None
    })?;
    (found.since(now) < YEAR).then_some(found)
}

/// `Claude AI usage limit reached|1747123200`.
fn epoch(text: &str) -> Option<Timestamp> {
    let (before, after) = text.split_once('|')?;
    before.ends_with("limit reached").then_some(())?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let number = digits.parse::<i64>().ok()?;
    match digits.len() {
        10 => Some(Timestamp::from_millis(number.saturating_mul(1_000))),
        13 => Some(Timestamp::from_millis(number)),
        _ => None,
    }
}

/// Reads what follows a word that announces a time.
fn moment(mut at: Cursor<'_>, anchor: &str, now: Timestamp, local: &Zone) -> Option<Timestamp> {
    let mut header = anchor == "after";
    loop {
        at.blanks();
        let start = at;
        match at.word() {
            Some("after") => header = true,
            Some(word) if FILLERS.contains(&word) => {}
            _ => {
                at = start;
                break;
            }
        }
    }
    if let Some(span) = at.span(header) {
        return Some(now.after(span));
    }
    if let Some(stamp) = at.stamp(local) {
        return Some(stamp);
    }
    let day = at.day(now, local);
    at.separators();
    let time = at.time();
    let zone = at.zone(local)?;
    let today = zone.civil(now)?;
    match (day, time) {
        (None, None) => None,
        (None, Some(time)) => {
            let first = zone.at(today.date().to_datetime(time))?;
            if first > now {
                return Some(first);
            }
            zone.at(today.date().tomorrow().ok()?.to_datetime(time))
        }
        (Some(Day::Next(weekday)), time) => {
            let time = time.unwrap_or(Time::midnight());
            let date = today.date();
            let days = i64::from(date.weekday().until(weekday));
            let first = zone.at(date.checked_add(days.days()).ok()?.to_datetime(time))?;
            if first > now {
                return Some(first);
            }
            zone.at(date.checked_add((days + 7).days()).ok()?.to_datetime(time))
        }
        (Some(Day::Tomorrow), time) => {
            let time = time.unwrap_or(Time::midnight());
            zone.at(today.date().tomorrow().ok()?.to_datetime(time))
        }
        (Some(Day::Date { date, year }), time) => {
            let time = time.unwrap_or(Time::midnight());
            let first = zone.at(date.to_datetime(time))?;
            // A day without a year is the next one of that name, or is just over.
            if !year && now.since(first) > DAY {
                return zone.at(date.checked_add(1.year()).ok()?.to_datetime(time));
            }
            Some(first)
        }
    }
}

/// Words that announce when something ends.
const ANCHORS: [&str; 13] = [
    "reset",
    "resets",
    "resetting",
    "again",
    "retry",
    "retrying",
    "after",
    "available",
    "until",
    "wait",
    "ends",
    "refill",
    "resume",
];

/// Words between those and the time.
const FILLERS: [&str; 16] = [
    "at",
    "on",
    "in",
    "after",
    "about",
    "approximately",
    "around",
    "by",
    "will",
    "be",
    "please",
    "again",
    "the",
    "is",
    "your",
    "today",
];

/// Reports are short.
const TEXT_MAX: usize = 2_000;

/// No zone has a longer name.
const NAME_MAX: usize = 64;

const DAY: Duration = Duration::from_secs(86_400);

const YEAR: Duration = Duration::from_secs(366 * 86_400);

#[cfg(test)]
mod tests;
