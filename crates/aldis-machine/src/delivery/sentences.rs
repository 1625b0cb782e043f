//! Small parts of the sentences that people read.

use std::fmt::Display;

/// Returns `1 task` or `2 tasks`.
pub(super) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns `a, b and c`, or `a, b and 3 more` where there are more than `most`.
pub(super) fn listed(items: &[String], most: usize) -> String {
    let shown = items.get(..most.min(items.len())).unwrap_or(items);
    match (shown, items.len() - shown.len()) {
        ([], _) => String::new(),
        ([only], 0) => only.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns a span of seconds as people say it: `45 s`, `15 min`, `3 h`.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..60 | 61..120 => format!("{seconds} s"),
        60 | 120..7_200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h", (seconds + 1_800) / 3_600),
    }
}

/// Returns whoever caused something, from the means by which it came.
pub(super) fn cause(by: &str) -> &str {
    match by.trim() {
        "" => "a human",
        by => by,
    }
}

#[cfg(test)]
mod tests {
    //! Numbers agree with nouns, lists read well.

    use super::*;

    #[test]
    fn numbers_agree_with_nouns() {
        assert_eq!((&*counted(1_u32, "task"), &*counted(0_usize, "task")), ("1 task", "0 tasks"));
        assert_eq!(counted(2_u64, "open question"), "2 open questions");
    }

    #[test]
    fn lists_are_short() {
        let items = |count: usize| (0..count).map(|no| format!("t{no}")).collect::<Vec<_>>();
        for (count, text) in [
            (0, ""),
            (1, "t0"),
            (2, "t0 and t1"),
            (3, "t0, t1 and t2"),
            (5, "t0, t1, t2 and 2 more"),
        ] {
            assert_eq!(listed(&items(count), 3), text);
        }
    }

    #[test]
    fn spans_are_round_where_they_can_be() {
        assert_eq!([span(45), span(60), span(90), span(899)], ["45 s", "1 min", "90 s", "15 min"]);
        assert_eq!([span(7_199), span(7_200), span(86_400)], ["120 min", "2 h", "24 h"]);
    }
}
