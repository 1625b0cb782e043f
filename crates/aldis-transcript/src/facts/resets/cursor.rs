//! Reads the pieces of a time, one after the other.
//!
//! A span, a day or a time that is not there leaves the cursor where it was.

use std::time::Duration;

use jiff::civil::{Date, DateTime, Time, Weekday};

use super::Zone;
use aldis_signal::time::Timestamp;

/// Which day, where one is named.
pub(super) enum Day {
    Next(Weekday),
    Tomorrow,
    Date { date: Date, year: bool },
}

/// What is left of a text in lower case.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t>(pub(super) &'t str);

impl<'t> Cursor<'t> {
    fn take(&mut self, length: usize) -> &'t str {
        let (head, rest) = self.0.split_at(length);
        self.0 = rest;
        head
    }

    pub(super) fn skip(&mut self) {
        let mut rest = self.0.chars();
        rest.next();
        self.0 = rest.as_str();
    }

    pub(super) fn blanks(&mut self) {
        self.0 = self.0.trim_start_matches(|c: char| c.is_whitespace() || "·∙•:=\"'".contains(c));
    }

    pub(super) fn separators(&mut self) {
        self.0 = self.0.trim_start_matches([' ', ',']);
        let mut next = *self;
        if matches!(next.word(), Some("at")) {
            next.blanks();
            *self = next;
        }
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let rest = self.0.strip_prefix(prefix);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    pub(super) fn word(&mut self) -> Option<&'t str> {
        let length = self.0.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.0.len());
        (length > 0).then(|| self.take(length))
    }

    fn digits(&mut self) -> Option<&'t str> {
        let length = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        (1..=DIGITS_MAX).contains(&length).then(|| self.take(length))
    }

    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.digits()?.parse().ok()
    }

    /// `3 days 6 hours 57 minutes`, `2h24m55s`, `1h 30m`, `33.2s`; bare seconds in a header.
    pub(super) fn span(&mut self, header: bool) -> Option<Duration> {
        let start = *self;
        let mut sum = None;
        loop {
            let before = *self;
            let part = self.span_part();
            let Some(part) = part else {
                *self = before;
                break;
            };
            sum = Some(sum.unwrap_or(0.0) + part);
            self.0 = self.0.trim_start_matches([' ', ',']);
            let mut next = *self;
            if next.word() == Some("and") {
                next.blanks();
                *self = next;
            }
        }
        if sum.is_none() && header {
            sum = self.decimal().filter(|_| self.is_bare());
        }
        let span = sum.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if span.is_none() {
            *self = start;
        }
        span
    }

    fn span_part(&mut self) -> Option<f64> {
        let number = self.decimal()?;
        self.0 = self.0.trim_start_matches(' ');
        let unit = match self.word()? {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => return None,
        };
        Some(number * unit)
    }

    fn decimal(&mut self) -> Option<f64> {
        let whole = self.digits()?;
        let mut next = *self;
        if next.eat(".")
            && let Some(part) = next.digits()
        {
            *self = next;
            return format!("{whole}.{part}").parse().ok();
        }
        whole.parse().ok()
    }

    /// Returns whether a number before this stands alone: it counts nothing and is no clock time.
    fn is_bare(self) -> bool {
        let next = self.0.trim_start_matches(' ');
        !self.0.starts_with([':', '-', '/']) && !next.starts_with(|c: char| c.is_alphanumeric())
    }

    /// `2026-11-16T05:00:00Z`, also with a blank, without seconds, or without an offset.
    pub(super) fn stamp(&mut self, local: &Zone) -> Option<Timestamp> {
        let is_part = |c: char| c.is_ascii_digit() || "-:.+tz".contains(c);
        let mut length = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
        // A date and a time with a blank between them.
        if length == 10 && self.0[length..].starts_with(' ') {
            let rest = &self.0[11..];
            let clock = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            length += if clock >= 5 { 1 + clock } else { 0 };
        }
        let text = self.0[..length].trim_end_matches(['.', ':', '-']).to_ascii_uppercase();
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            self.take(text.len());
            return Some(Timestamp::from_millis(at.as_millisecond()));
        }
        let civil: DateTime = (text.len() >= 10).then(|| text.parse().ok())??;
        let mut rest = *self;
        rest.take(text.len());
        rest.zone(local)?.at(civil)
    }

    pub(super) fn day(&mut self, now: Timestamp, local: &Zone) -> Option<Day> {
        let start = *self;
        let day = self.slashes();
        let day = day.or_else(|| {
            *self = start;
            self.named_day(now, local)
        });
        let day = day.or_else(|| {
            *self = start;
            self.number_first(now, local)
        });
        if day.is_none() {
            *self = start;
        }
        day
    }

    /// `9/23/2026`, as Americans write it.
    fn slashes(&mut self) -> Option<Day> {
        let month = self.number()?;
        let day = self.eat("/").then(|| self.number())??;
        let year = self.eat("/").then(|| self.number())??;
        Some(Day::Date { date: Date::new(year, month, day).ok()?, year: true })
    }

    fn named_day(&mut self, now: Timestamp, local: &Zone) -> Option<Day> {
        let word = self.word()?;
        if word == "tomorrow" {
            return Some(Day::Tomorrow);
        }
        if let Some(weekday) = WEEKDAYS.iter().position(|day| named(word, day)) {
            // A weekday before a date says nothing more.
            let mut next = *self;
            next.separators();
            let start = next;
            let date = next.number_first(now, local).or_else(|| {
                next = start;
                next.named_day(now, local).filter(|day| matches!(day, Day::Date { .. }))
            });
            if date.is_some() {
                *self = next;
                return date;
            }
            let number = i8::try_from(weekday).ok()?;
            return Some(Day::Next(Weekday::from_monday_zero_offset(number).ok()?));
        }
        let month = month(word)?;
        self.0 = self.0.trim_start_matches([' ', '.']);
        let day = self.number()?;
        let _ordinal = ["st", "nd", "rd", "th"].iter().any(|suffix| self.eat(suffix));
        self.date(month, day, now, local)
    }

    /// `21 Oct 2026`, as in headers.
    fn number_first(&mut self, now: Timestamp, local: &Zone) -> Option<Day> {
        let day = self.number()?;
        self.0 = self.0.trim_start_matches([' ', '.']);
        let month = month(self.word()?)?;
        self.date(month, day, now, local)
    }

    /// Puts a date together with the year after it, if there is one.
    fn date(&mut self, month: i8, day: i8, now: Timestamp, local: &Zone) -> Option<Day> {
        let mut next = *self;
        next.0 = next.0.trim_start_matches([' ', ',']);
        let year = next.digits().filter(|year| year.len() == 4).and_then(|year| year.parse().ok());
        if year.is_some() {
            *self = next;
        }
        let this = local.civil(now)?.year();
        let date = Date::new(year.unwrap_or(this), month, day).ok()?;
        Some(Day::Date { date, year: year.is_some() })
    }

    /// `5pm`, `3:15 p.m.`, `17:05`, `17:05:30`, `noon`, `midnight`.
    pub(super) fn time(&mut self) -> Option<Time> {
        let start = *self;
        let time = self.clock().or_else(|| {
            *self = start;
            match self.word()? {
                "noon" => Some(Time::constant(12, 0, 0, 0)),
                "midnight" => Some(Time::midnight()),
                _ => None,
            }
        });
        if time.is_none() {
            *self = start;
        }
        time
    }

    fn clock(&mut self) -> Option<Time> {
        let hour: i8 = self.number()?;
        let mut minute = None;
        let mut second = 0;
        if self.eat(":") {
            minute = Some(self.number()?);
            if self.eat(":") {
                second = self.number()?;
            }
        }
        let mut next = *self;
        next.0 = next.0.trim_start_matches([' ', '\u{202f}', '\u{a0}']);
        let half = next.half();
        if half.is_some() {
            *self = next;
        }
        let hour = match half {
            Some(late) if (1..=12).contains(&hour) => hour % 12 + if late { 12 } else { 0 },
            Some(_) => return None,
            // A bare number is no time.
            None => minute.map(|_| hour)?,
        };
        Time::new(hour, minute.unwrap_or(0), second, 0).ok()
    }

    /// Returns whether it is the second half of the day.
    fn half(&mut self) -> Option<bool> {
        for (text, late) in [("a.m.", false), ("p.m.", true), ("am", false), ("pm", true)] {
            let mut next = *self;
            if next.eat(text) && !next.0.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                *self = next;
                return Some(late);
            }
        }
        None
    }

    /// `(Europe/Berlin)`, `UTC`, or none: the local one. Nothing for one that is not known.
    pub(super) fn zone(&mut self, local: &Zone) -> Option<Zone> {
        self.0 = self.0.trim_start_matches(' ');
        if self.0.starts_with('(') && self.0[1..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            let end = self.0.find(')')?;
            let name = self.take(end + 1);
            return Zone::named(&name[1..end]);
        }
        match self.word() {
            Some("utc" | "gmt" | "z") => Some(Zone::utc()),
            Some(word) if ABBREVIATIONS.contains(&word) => None,
            _ => Some(local.clone()),
        }
    }
}

/// Returns whether a word is a name or its first letters, three at least.
fn named(word: &str, name: &str) -> bool {
    word.len() >= 3 && name.starts_with(word)
}

/// Returns the number of a month.
fn month(word: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|month| named(word, month))?;
    i8::try_from(place + 1).ok()
}

const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Zones by names that mean different things to different people, or that change with summer.
const ABBREVIATIONS: [&str; 14] =
    ["pt", "pst", "pdt", "mt", "mst", "mdt", "ct", "cst", "cdt", "et", "est", "edt", "cet", "cest"];

/// The most digits of a number that means anything.
const DIGITS_MAX: usize = 13;
