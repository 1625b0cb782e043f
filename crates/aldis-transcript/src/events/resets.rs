//! Reads when a limit ends, in the forms that hosts print.
//!
//! There are four: an epoch after a bar, RFC 3339, a span (`in 2h24m55s`, `retry-after: 30`), and a
//! clock time, perhaps with its date (`5pm`, `Nov 17, 5am`, `Nov 16th, 2026 5:00 PM`); the last three
//! after a word like *resets* or *try again*. A clock time is in the zone named in parentheses after
//! it, else in the reader's. Zones are looked up in the database that jiff carries inside: no file is
//! read, the result is the same on every machine, and summer time is right. A form or a zone that is
//! not known gives nothing, because a wrong time is worse than none.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use regex::{Captures, Regex};

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
/// use aldis_transcript::events::{Zone, resets_at};
///
/// let now: Timestamp = "2026-11-15T15:30:00Z".parse()?;
/// let text = "You've hit your limit · resets 5pm (Europe/Berlin)";
/// assert_eq!(resets_at(text, now, &Zone::utc()), "2026-11-15T16:00:00Z".parse().ok());
/// # Ok::<(), aldis_signal::time::BadTimestamp>(())
/// ```
pub fn resets_at(text: &str, now: Timestamp, local: &Zone) -> Option<Timestamp> {
    let end = text.char_indices().nth(TEXT_MAX).map_or(text.len(), |(end, _)| end);
    let text = &text[..end];
    let found = epoch(text)
        .or_else(|| first(&STAMP, text, |found| stamp(&found[1])))
        .or_else(|| first(&SPAN, text, |found| Some(now.after(span(&found[1])?))))
        .or_else(|| first(&HEADER, text, |found| Some(now.after(seconds(found[1].parse().ok()?)?))))
        .or_else(|| first(&CLOCK, text, |found| clock(found, now, local)))?;
    (found.since(now) < YEAR).then_some(found)
}

/// Returns what the first match that can be read says.
fn first<T>(
    form: &Option<Regex>,
    text: &str,
    read: impl Fn(&Captures<'_>) -> Option<T>,
) -> Option<T> {
    form.as_ref()?.captures_iter(text).find_map(|found| read(&found))
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

fn stamp(text: &str) -> Option<Timestamp> {
    let at = text.parse::<jiff::Timestamp>().ok()?;
    Some(Timestamp::from_millis(at.as_millisecond()))
}

/// `3 days 6 hours 57 minutes`, `2h24m55s`, `33.2s`.
fn span(text: &str) -> Option<Duration> {
    let parts = PART.as_ref()?.captures_iter(text);
    let parts = parts.map(|part| Some(part[1].parse::<f64>().ok()? * unit(&part[2])?));
    // What follows the last unit that is known is something else.
    let sum = parts.map_while(|part| part).fold(None, |sum, part| Some(sum.unwrap_or(0.0) + part));
    seconds(sum?)
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns how many seconds a unit has.
fn unit(name: &str) -> Option<f64> {
    Some(match &*name.to_ascii_lowercase() {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

/// `5pm`, `3:15 PM (Europe/Berlin)`, `17:05`, `Nov 17, 5am`, `Nov 16th, 2026 5:00 PM`.
fn clock(found: &Captures<'_>, now: Timestamp, local: &Zone) -> Option<Timestamp> {
    let zone = match (found.name("zone"), found.name("short").map(|short| short.as_str())) {
        (Some(name), _) => Zone::named(name.as_str())?,
        (None, Some("UTC" | "GMT" | "Z")) => Zone::utc(),
        // The other short names mean different things to different people.
        (None, Some(_)) => return None,
        (None, None) => local.clone(),
    };
    let number = |name: &str| found.name(name).and_then(|number| number.as_str().parse().ok());
    let (hour, minute): (i8, Option<i8>) = (number("hour")?, number("minute"));
    let hour = match found.name("half").map(|half| half.as_str()) {
        Some("p" | "P") if (1..=12).contains(&hour) => hour % 12 + 12,
        Some(_) if (1..=12).contains(&hour) => hour % 12,
        // A bare number is no time.
        None if minute.is_some() => hour,
        _ => return None,
    };
    let time = Time::new(hour, minute.unwrap_or(0), 0, 0).ok()?;
    let today = zone.civil(now)?.date();
    let Some(month) = found.name("month") else {
        let first = zone.at(today.to_datetime(time))?;
        return if first > now {
            Some(first)
        } else {
            zone.at(today.tomorrow().ok()?.to_datetime(time))
        };
    };
    let month = MONTHS.iter().position(|name| month.as_str().eq_ignore_ascii_case(name))?;
    let year: Option<i16> = found.name("year").and_then(|year| year.as_str().parse().ok());
    let month = i8::try_from(month + 1).ok()?;
    let date = Date::new(year.unwrap_or_else(|| today.year()), month, number("day")?).ok()?;
    let first = zone.at(date.to_datetime(time))?;
    // A day without a year is the next one of that name, or is just over.
    if year.is_none() && now.since(first) > DAY {
        return zone.at(date.checked_add(1.year()).ok()?.to_datetime(time));
    }
    Some(first)
}

static STAMP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    form(
        r"\b(?:resets?|again|until|retry)\b\W{0,3}(?:at\W+)?(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))",
    )
});
static SPAN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    form(
        r"\b(?:resets?|again|retry|retrying|wait)\s+(?:again\s+)?(?:in|after|for)?\s*(?:about\s+)?((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)",
    )
});
static PART: LazyLock<Option<Regex>> = LazyLock::new(|| form(r"(\d+(?:\.\d+)?)\s*([a-z]+)"));
static HEADER: LazyLock<Option<Regex>> =
    LazyLock::new(|| form(r"\bretry-after\W{1,3}(\d+(?:\.\d+)?)(?:\W|$)"));
static CLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    form(concat!(
        r"\b(?:resets?|again)\s+(?:at\s+)?",
        r"(?:(?P<month>[a-z]{3})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,\s*(?P<year>\d{4}))?,?\s+(?:at\s+)?)?",
        r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?:\s?(?P<half>[ap])\.?m\b\.?)?",
        r"(?:\s*\((?P<zone>[a-z][a-z0-9_/+-]*)\)|\s+(?P<short>(?-i:[A-Z]{1,4}))\b)?",
    ))
});

fn form(form: &str) -> Option<Regex> {
    Regex::new(&format!("(?i){form}")).ok()
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Reports are short.
const TEXT_MAX: usize = 2_000;

/// No zone has a longer name.
const NAME_MAX: usize = 64;

const DAY: Duration = Duration::from_secs(86_400);

const YEAR: Duration = Duration::from_secs(366 * 86_400);

#[cfg(test)]
mod tests;
