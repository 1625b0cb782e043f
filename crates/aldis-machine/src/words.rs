//! What our sentences are made of: quotations that cannot break out of their place, spans of time,
//! and numbers that agree with their nouns.

use std::borrow::Borrow;
use std::fmt::{Display, Write as _};

/// Text of several lines as it was written, each line quoted, so that none of it can be taken for
/// text of ours.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    let text = text.trim_matches(['\r', '\n']).trim_end();
    let shown = cut(text, most);
    let mut block = String::new();
    for line in shown.lines() {
        // Tabs are indentation.
        let line = line.chars().filter(|letter| *letter == '\t' || !letter.is_control());
        let _ = writeln!(block, "> {}", line.collect::<String>());
    }
    match text[shown.len()..].chars().count() {
        0 => {}
        more => drop(writeln!(block, "> [{more} more characters are left out]")),
    }
    block
}

/// Adds a paragraph to a prompt.
pub(crate) fn paragraph(text: &mut String, paragraph: impl Display) {
    let _ = writeln!(text, "{paragraph}\n");
}

/// Adds a list to a prompt, below what leads to it; nothing where the list is empty.
pub(crate) fn list<T: Display>(
    text: &mut String,
    lead: impl Display,
    items: impl IntoIterator<Item = T>,
) {
    let mut items = items.into_iter().peekable();
    if items.peek().is_some() {
        paragraph(text, lead);
        for item in items {
            let _ = writeln!(text, "- {item}");
        }
        text.push('\n');
    }
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
    let seconds = if seconds < 120 { seconds } else { (seconds + 30) / 60 * 60 };
    match seconds {
        0..60 | 61..120 => format!("{seconds} s"),
        60 | 120..HOUR => format!("{} min", seconds / 60),
        HOUR..172_800 => match seconds % HOUR / 60 {
            0 => format!("{} h", seconds / HOUR),
            minutes => format!("{} h {minutes} min", seconds / HOUR),
        },
        _ => format!("{} days", seconds / DAY),
    }
}

/// An amount of money, in millionths of a dollar.
pub(crate) fn dollars(micro: u64) -> String {
    let cents = micro.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// A number and its noun: `1 iteration`, `2 iterations`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `a, b and c`, or `a, b and 3 more` where there are more than `most`.
pub(crate) fn listed<S: Borrow<str>>(items: &[S], most: usize) -> String {
    let shown = items.get(..most.min(items.len())).unwrap_or(items);
    match (shown, items.len() - shown.len()) {
        ([], _) => String::new(),
        ([only], 0) => only.borrow().to_owned(),
        ([first @ .., last], 0) => format!("{} and {}", first.join(", "), last.borrow()),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether nothing was counted. By reference, for serde.
pub(crate) fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

/// Whether a human's answer accepts what was asked.
pub(crate) fn accepts(answer: &str) -> bool {
    let word = answer.trim().trim_end_matches(['.', '!']).to_ascii_lowercase();
    ["accept", "accepted", "allow", "ok", "y", "yes"].contains(&&*word)
}

/// FNV-1a: tells texts apart; not for secrets.
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whoever caused something, from the means by which it came.
pub(crate) fn cause(by: &str) -> &str {
    if by.trim().is_empty() { "a human" } else { by.trim() }
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
            (60, "1 min"),
            (61, "61 s"),
            (119, "119 s"),
            (120, "2 min"),
            (899, "15 min"),
            (3_599, "1 h"),
            (3_600, "1 h"),
            (5_400, "1 h 30 min"),
            (86_400, "24 h"),
            (172_799, "2 days"),
            (172_800, "2 days"),
        ] {
            assert_eq!(duration(seconds), shown, "{seconds}");
        }
        for (count, shown) in [(0_u64, "0 turns"), (1, "1 turn"), (2, "2 turns")] {
            assert_eq!(counted(count, "turn"), shown);
        }
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
}
