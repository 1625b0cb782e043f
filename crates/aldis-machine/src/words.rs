//! Other people's words in our texts: quoted so that they cannot break out of their place.

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

fn cut(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}
