//! What our sentences are made of: quotations that cannot break out of their place, spans of time,
//! and numbers that agree with their nouns.

use std::fmt::Write as _;

/// Text of several lines as a block quotation, which no line of it can leave.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for line in cut(text.trim(), most).lines() {
        let _ = writeln!(shown, "> {}", clean(line));
    }
    shown
}

/// Text as one quoted line.
pub(crate) fn inline(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = clean(cut(&words.join(" "), most)).replace(['"', '`'], "'");
    format!("\"{text}\"")
}

/// Without what could hide or move text.
fn clean(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// The beginning of a text.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

/// A span of time for people: `45 s`, `10 min`, `1 h 30 min`, `3 days`.
pub(crate) fn duration(seconds: u64) -> String {
    const HOUR: u64 = 60 * 60;
    const DAY: u64 = 24 * HOUR;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..HOUR => format!("{} min", seconds / 60),
        HOUR..172_800 => match seconds % HOUR / 60 {
            0 => format!("{} h", seconds / HOUR),
            minutes => format!("{} h {minutes} min", seconds / HOUR),
        },
        _ => format!("{} days", seconds / DAY),
    }
}

/// A number and its noun: `1 iteration`, `2 iterations`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    //! Numbers as people read them.

    use super::*;

    #[test]
    fn numbers_agree_with_nouns() {
        for (seconds, shown) in [
            (0, "0 s"),
            (1, "1 s"),
            (119, "119 s"),
            (120, "2 min"),
            (3_599, "59 min"),
            (3_600, "1 h"),
            (5_400, "1 h 30 min"),
            (86_400, "24 h"),
            (172_799, "47 h 59 min"),
            (172_800, "2 days"),
        ] {
            assert_eq!(duration(seconds), shown, "{seconds}");
        }
        for (count, shown) in [(0, "0 turns"), (1, "1 turn"), (2, "2 turns")] {
            assert_eq!(counted(count, "turn"), shown);
        }
    }
}
