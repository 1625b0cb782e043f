//! Every form in which a limit was seen to announce its end.

use proptest::prelude::*;

use super::*;

/// A Sunday afternoon; in Berlin it is half past four.
const NOW: &str = "2026-11-15T15:30:00Z";

/// Texts and the moments they name, read in New York (UTC-5) where they name no zone.
const FORMS: [(&str, &str); 58] = [
    // Claude Code.
    ("Claude AI usage limit reached|1794787200", "2026-11-16T00:00:00Z"),
    ("Claude AI usage limit reached|1794787200000", "2026-11-16T00:00:00Z"),
    ("You've hit your limit · resets 5pm (Europe/Berlin)", "2026-11-15T16:00:00Z"),
    ("You've hit your limit · resets 4pm (Europe/Berlin)", "2026-11-16T15:00:00Z"),
    ("You've hit your session limit · resets 2:10pm (America/Chicago)", "2026-11-15T20:10:00Z"),
    ("You've hit your limit · resets 1:30am (Asia/Dhaka)", "2026-11-15T19:30:00Z"),
    ("You've hit your session limit · resets 3:45pm", "2026-11-15T20:45:00Z"),
    (
        "You've hit your weekly limit · resets Nov 17, 5am (America/Sao_Paulo)",
        "2026-11-17T08:00:00Z",
    ),
    (
        "You've hit your weekly limit · resets Nov 20 at 1pm (Asia/Seoul) (429)",
        "2026-11-20T04:00:00Z",
    ),
    ("You've hit your limit · resets Jan 4, 9pm (Africa/Johannesburg)", "2027-01-04T19:00:00Z"),
    ("5-hour limit reached ∙ resets 5am", "2026-11-16T10:00:00Z"),
    (
        "Claude usage limit reached. Your limit will reset at 3pm (America/New_York).",
        "2026-11-15T20:00:00Z",
    ),
    ("Limits will reset at 9:30 AM. View your usage details.", "2026-11-16T14:30:00Z"),
    ("Approaching usage limit resets at 2am.", "2026-11-16T07:00:00Z"),
    ("resets at 3:15pm", "2026-11-15T20:15:00Z"),
    ("resets 5pm (UTC)", "2026-11-15T17:00:00Z"),
    ("resets 5pm UTC", "2026-11-15T17:00:00Z"),
    ("resets 12am (UTC)", "2026-11-16T00:00:00Z"),
    ("resets 12pm (UTC)", "2026-11-16T12:00:00Z"),
    ("resets 17:05 (Europe/Berlin)", "2026-11-15T16:05:00Z"),
    ("resets 5 p.m. (Europe/Berlin)", "2026-11-15T16:00:00Z"),
    ("resets 3:15\u{202f}PM", "2026-11-15T20:15:00Z"),
    // Summer time there, though it is winter now.
    ("resets Jul 4, 9am (Europe/Berlin)", "2027-07-04T07:00:00Z"),
    // Stamps.
    ("resets 2026-11-16T05:00:00Z", "2026-11-16T05:00:00Z"),
    ("Resets at 2026-11-16T05:00:00.5+01:00.", "2026-11-16T04:00:00.500Z"),
    (r#"{"reset_at":"2026-11-16T05:00:00Z"}"#, ""),
    // Spans.
    ("try again in 20 minutes", "2026-11-15T15:50:00Z"),
    ("Please try again in 1h 30m", "2026-11-15T17:00:00Z"),
    ("try again in 45 seconds.", "2026-11-15T15:30:45Z"),
    ("Please try again in 6m0s.", "2026-11-15T15:36:00Z"),
    ("Please retry in 33.25s.", "2026-11-15T15:30:33.250Z"),
    (
        "send a request to your admin or try again in 3 days 6 hours 57 minutes.",
        "2026-11-18T22:27:00Z",
    ),
    ("try again in 1 day, 2 hours and 3 minutes", "2026-11-16T17:33:00Z"),
    ("Your quota will reset after 2h24m55s.", "2026-11-15T17:54:55Z"),
    (
        "Attempt 1 failed: x. Your quota will reset after 2s.. Retrying after 5197ms...",
        "2026-11-15T15:30:02Z",
    ),
    ("rate limited (retry-after: 30)", "2026-11-15T15:30:30Z"),
    ("available again in about 2 hours", "2026-11-15T17:30:00Z"),
    // Codex and Cursor.
    ("purchase more credits or try again at 3:28 PM.", "2026-11-15T20:28:00Z"),
    ("or try again at Nov 16th, 2026 5:00 PM.", "2026-11-16T22:00:00Z"),
    ("Try again at Dec 1st, 2026 12:30 AM.", "2026-12-01T05:30:00Z"),
    // Not known: no time is better than a wrong one.
    ("resets 5pm (PST)", ""),
    ("resets 5pm PT", ""),
    ("resets 5pm (Mars/Olympus)", ""),
    ("Try again later, in a while", ""),
    ("gave up after 3 attempts", ""),
    ("resets at 25:61, or 13pm, or Feb 30, or 2031-01-01T00:00:00Z", ""),
    // Other forms: weekdays, dates without a time, words, and times without a zone.
    ("You've hit your weekly limit · resets Mon 12:00am", ""),
    ("You've hit your weekly limit · resets Sun 9am", ""),
    ("You've hit your weekly limit · resets Sunday 11am", ""),
    ("You've hit your weekly limit · resets Nov 19", ""),
    ("resets at noon (UTC)", ""),
    ("resets at midnight", ""),
    ("resets tomorrow at 9am (UTC)", ""),
    ("resets at 2026-11-16 05:00:00", ""),
    ("resets at 2026-11-16 05:00 UTC", ""),
    ("Retry-After: Mon, 16 Nov 2026 07:28:00 GMT", ""),
    ("You've hit your usage limit. Try again Nov 18.", ""),
    ("Usage will reset when your monthly cycle ends on 11/23/2026.", ""),
];

#[test]
fn forms_are_read() {
    let now = NOW.parse().unwrap();
    let local = Zone::named("America/New_York").unwrap();
    let read = |text: &str| resets_at(text, now, &local).map(|at| at.to_string());
    let mut wrong = Vec::new();
    for (text, want) in FORMS {
        let want = (!want.is_empty()).then(|| want.parse::<Timestamp>().unwrap().to_string());
        let found = read(text);
        if found != want {
            wrong.push(format!("{text}: {found:?}, not {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn zones() {
    let now = NOW.parse().unwrap();
    let at = |zone: &Zone| resets_at("resets 5pm", now, zone).unwrap().to_string();
    assert_eq!(at(&Zone::fixed(3_600)), "2026-11-15T16:00:00Z");
    assert_eq!(at(&Zone::fixed(-3_600 * 5)), "2026-11-15T22:00:00Z");
    assert_eq!(at(&Zone::named("Europe/Berlin").unwrap()), at(&Zone::fixed(3_600)));
    assert_eq!(Zone::fixed(i32::MAX), Zone::utc());
    assert_eq!(Zone::named("nowhere"), None);
    assert_eq!(Zone::named(&"x/".repeat(1_000)), None);
}

proptest! {
    #[test]
    fn any_text_is_taken(text in "(resets|try again|after|in|at| |[0-9]{1,14}|[:/.|()-]|[ap]m|Mon|Nov|\\PC){0,12}", millis in any::<i64>()) {
        let now = Timestamp::from_millis(millis);
        let found = resets_at(&text, now, &Zone::fixed(7_200));
        prop_assert!(found.is_none_or(|at| at.since(now) < YEAR));
    }
}
