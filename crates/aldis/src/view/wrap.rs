//! Lines that fit a terminal, by the width of what is shown and not by the number of characters.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns how many columns a text takes that has no colours.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Breaks a line into lines of at most so many columns, between words where that is possible. What
/// stands in front of the first word stands in front of each line.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<String> {
    let words = line.trim_start();
    let indent = &line[..line.len() - words.len()];
    let indent = if width(indent) * 2 < columns { indent } else { "" };
    let columns = columns.max(width(indent) + 1);
    let mut lines = Vec::new();
    let mut current = indent.to_owned();
    for word in words.split_inclusive(' ') {
        if width(&current) + width(word.trim_end()) > columns && current.len() > indent.len() {
            lines.push(std::mem::replace(&mut current, indent.to_owned()));
        }
        for c in word.chars() {
            if width(&current) + c.width().unwrap_or(0) > columns && c != ' ' {
                lines.push(std::mem::replace(&mut current, indent.to_owned()));
            }
            current.push(c);
        }
    }
    lines.push(current);
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        for (line, columns, want) in [
            ("one two three", 8, &["one two", "three"][..]),
            ("one two three", 13, &["one two three"]),
            ("  - one two", 8, &["  - one", "  two"]),
            ("abcdefghij k", 4, &["abcd", "efgh", "ij k"]),
            ("漢字漢字", 4, &["漢字", "漢字"]),
            ("", 4, &[""]),
        ] {
            assert_eq!(wrap(line, columns), want, "{line:?} in {columns}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_all_fits(line in "[ a-z漢]{0,60}", columns in 2..30_usize) {
            let lines = wrap(&line, columns);
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&lines.join(" ")), letters(&line));
            for line in lines {
                prop_assert!(width(&line) <= columns, "{line:?}");
            }
        }
    }
}
