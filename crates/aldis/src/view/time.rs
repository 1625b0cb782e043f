//! Times as people read them: local, and relative where somebody looks at what happens now. Programs
//! get RFC 3339 in universal time.

use std::env;
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use regex::{Captures, Regex};

/// The zone of this machine, read once: it does not change while a command runs. Tests are in universal
/// time wherever they run.
static LOCAL: LazyLock<TimeZone> = LazyLock::new(|| {
    let zone = zone_name()
        .filter(|_| !cfg!(test))
        .and_then(|name| TimeZoneDatabase::bundled().get(&name).ok());
    zone.unwrap_or(TimeZone::UTC)
});

/// Returns the name of this machine's zone: what `TZ` says, else where the system's link points.
pub(crate) fn zone_name() -> Option<String> {
    let named = env::var("TZ").ok().filter(|name| !name.is_empty());
    let linked = || {
        let link = fs::read_link("/etc/localtime").ok()?;
        Some(link.to_string_lossy().split_once("zoneinfo/")?.1.to_owned())
    };
    named.map(|name| name.trim_start_matches(':').to_owned()).or_else(linked)
}

/// A moment to the second: `2026-03-02 10:00:04`.
pub(crate) fn local(at: Timestamp) -> String {
    written(at, "%Y-%m-%d %H:%M:%S")
}

/// The time of day: `10:00:04`.
pub(crate) fn clock_time(at: Timestamp) -> String {
    written(at, "%H:%M:%S")
}

/// A moment within a day of another is its time of day; else it has its date.
pub(crate) fn moment(now: Timestamp, at: Timestamp) -> String {
    let apart = if at > now { at.since(now) } else { now.since(at) };
    if apart < DAY { clock_time(at) } else { local(at) }
}

/// A sentence with its moments in this machine's zone: machines have no zone, and say them in universal
/// time.
pub(crate) fn localized(now: Timestamp, sentence: &str) -> String {
    let Some(stamp) = STAMP.as_ref() else { return sentence.to_owned() };
    let local = |found: &Captures<'_>| {
        found[0].parse().map_or_else(|_| found[0].to_owned(), |at| moment(now, at))
    };
    stamp.replace_all(sentence, local).into_owned()
}

/// RFC 3339, in universal time.
static STAMP: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\b").ok());
const DAY: Duration = Duration::from_secs(86_400);

/// A moment in this machine's zone, in a form of `strftime`.
pub(crate) fn written(at: Timestamp, format: &str) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(moment) => moment.to_zoned(LOCAL.clone()).strftime(format).to_string(),
        Err(_) => at.to_string(),
    }
}

/// The beginning of a day in this machine's zone: `2026-03-02`.
pub(crate) fn local_day(text: &str) -> Option<Timestamp> {
    let day: jiff::civil::Date = text.parse().ok()?;
    let start = day.to_zoned(LOCAL.clone()).ok()?;
    Some(Timestamp::from_millis(start.timestamp().as_millisecond()))
}

/// A moment as seen from now: `3 minutes ago`, `in 6 seconds`.
pub(crate) fn relative(now: Timestamp, at: Timestamp) -> String {
    if at > now { format!("in {}", rough(at.since(now))) } else { ago(now, at) }
}

/// How long ago something was: `3 minutes ago`.
pub(crate) fn ago(now: Timestamp, at: Timestamp) -> String {
    format!("{} ago", rough(now.since(at)))
}

/// A span as people say it.
pub(crate) fn rough(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=119 => counted(seconds, "second"),
        120..=7_199 => counted(seconds / 60, "minute"),
        7_200..=172_799 => counted(seconds / 3_600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

/// Minutes and seconds; hours where there are some.
pub(crate) fn elapsed(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

/// A limit of time, as short as it can be said: `2 h`, `90 min`.
pub(crate) fn short(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds > 0 && seconds % 3_600 == 0 => format!("{} h", seconds / 3_600),
        seconds if seconds > 0 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// A number with its noun: `1 agent`, `2 agents`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_to_the_second() {
        for at in ["2026-03-02T10:00:00Z", "2026-03-02T10:00:00.45Z", "2026-03-02T10:00:00.999Z"] {
            assert_eq!(local(at.parse().unwrap()), "2026-03-02 10:00:00");
        }
    }

    #[test]
    fn sentences_have_the_times_of_this_machine() {
        let now = "2026-03-02T10:00:00Z".parse().unwrap();
        for (sentence, want) in [
            ("since 2026-03-02T09:58:00.123Z, twice", "since 09:58:00, twice"),
            ("until 2026-03-04T09:58:00Z.", "until 2026-03-04 09:58:00."),
            ("no 2026-13-02T09:58:00Z at all", "no 2026-13-02T09:58:00Z at all"),
            ("x2026-03-02T09:58:00Z", "x2026-03-02T09:58:00Z"),
        ] {
            assert_eq!(localized(now, sentence), want);
        }
    }

    #[test]
    fn spans_are_rough() {
        for (seconds, want) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7_200, "2 hours"),
            (172_800, "2 days"),
        ] {
            assert_eq!(rough(Duration::from_secs(seconds)), want);
        }
    }
}
