//! Whether a signal stands on its own on its line: a question of form, the same in every language
//! (spec 0, rule 8 a).

use crate::structure::line::item_content;
use crate::words::{Sentence, WordKind};

/// More words than this before an arrow, or that say it is over, are a sentence.
const WORDS_MAX: usize = 3;

/// Returns whether a signal that has this before and behind it on its line stands on its own.
pub(super) fn stands(before: &str, after: &str) -> bool {
    stands_behind(before) && stands_before(after)
}

/// Returns whether what stands before a signal lets it begin.
fn stands_behind(before: &str) -> bool {
    let Some(words) = without_list_mark(before.trim_start()) else { return false };
    let words = words.trim_end_matches(is_around);
    let last = last_sentence(words);
    if words.is_empty() || last.is_empty() || words.chars().all(is_symbol_or_blank) {
        return true;
    }
    let Some(end) = words.chars().next_back() else { return true };
    if matches!(end, ':' | '：') || is_symbol(end) && !is_arrow(end) {
        return true;
    }
    let count = last.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    let plain =
        last.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || "'’-,*_".contains(c));
    (1..=WORDS_MAX).contains(&count)
        && (ends_in_arrow(last) || plain && Sentence::new(last).is(WordKind::Over))
}

/// Removes the mark of a list item, with a ticked box; `None` if its box is not ticked.
pub(super) fn without_list_mark(line: &str) -> Option<&str> {
    let words = line[item_content(line.as_bytes()).unwrap_or(0)..].trim_start();
    match words.get(..3) {
        Some("[ ]") => None,
        Some("[x]" | "[X]") => Some(words[3..].trim_start()),
        _ => Some(words),
    }
}

/// Returns what follows the last sentence that is finished.
pub(super) fn last_sentence(text: &str) -> &str {
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | '…' => {
                next.is_none_or(|next| next.is_whitespace() || is_around(next))
            }
            _ => is_emoji(c) && !text[start..at].trim().is_empty(),
        };
        if ends {
            start = at + c.len_utf8();
        }
    }
    text[start..].trim_matches(is_around)
}

/// Returns whether what stands behind a signal lets it end.
fn stands_before(after: &str) -> bool {
    let directly = after.trim_start_matches(['*', '_']);
    match directly.chars().next() {
        Some('?' | '？') => return false,
        Some('.' | '!' | '。' | '！' | '…') => return true,
        _ => {}
    }
    let rest = directly.trim_start_matches(is_around);
    let Some(first) = rest.chars().next() else { return true };
    if is_symbol(first) || rest.chars().all(|c| !c.is_alphanumeric()) {
        return true;
    }
    let spaced = rest.len() < directly.len();
    spaced && (first.is_uppercase() || first.is_numeric())
}

/// White space and emphasis.
fn is_around(c: char) -> bool {
    c.is_whitespace() || matches!(c, '*' | '_')
}

fn is_symbol_or_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '*' | '_') || is_symbol(c)
}

/// Emoji, arrows, bullets, check marks: never ASCII operators, nor punctuation.
fn is_symbol(c: char) -> bool {
    is_emoji(c)
        || is_arrow(c)
        || matches!(c, '\u{2022}' | '\u{00B7}' | '\u{2023}' | '\u{25A0}'..='\u{25FF}')
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}'
        | '\u{FE0F}' | '\u{200D}')
}

fn is_arrow(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21FF}' | '\u{27F0}'..='\u{27FF}' | '\u{2900}'..='\u{297F}' | '➜' | '➔' | '➡')
}

/// Returns whether words end in an arrow or a dash.
fn ends_in_arrow(words: &str) -> bool {
    let end = words.trim_end_matches(is_around);
    end.ends_with(['-', '–', '—'])
        || end.ends_with("->")
        || end.ends_with("=>")
        || end.ends_with(is_arrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_stand_before() {
        for before in [
            "",
            "- ",
            "* ",
            "+ ",
            "1. ",
            "2) ",
            "- [x] ",
            "**",
            "✅ ",
            "→ ",
            "• ",
            "All green. ",
            "All green! **",
            "Done: ",
            "**Status:** ",
            "Status -> ",
            "Result — ",
            "Done ",
            "All done ",
            "Tests pass 🎉 ",
            "完了しました。",
            "完了：",
            "It works. Finished ",
            "- Status: ",
            "Task complete ",
        ] {
            assert!(stands_behind(before), "{before:?}");
        }
    }

    #[test]
    fn what_may_not() {
        for before in [
            "I will print ",
            "- [ ] ",
            "not ",
            "x = ",
            "a != ",
            "$ echo ",
            "3. Output ",
            "path/",
            "-",
            "We do not use ",
            "I have now finished and say ",
            "see (",
            "# ",
            "one two three four -> ",
            "テストが通れば",
            "No ",
            "done != ",
            "done = ",
            "done/",
        ] {
            assert!(!stands_behind(before), "{before:?}");
        }
    }

    #[test]
    fn what_may_follow() {
        for after in [
            "",
            ".",
            "!",
            " ",
            "**",
            "**.",
            " All green.",
            " 3 tests",
            " ✅ all good",
            "。",
            "! and",
        ] {
            assert!(stands_before(after), "{after:?}");
        }
        for after in [
            "?",
            "？",
            " would be a lie.",
            ", I hope",
            " 済み",
            "s",
            " (not yet)",
            " - or not",
            " と書く",
        ] {
            assert!(!stands_before(after), "{after:?}");
        }
    }
}
