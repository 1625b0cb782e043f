//! Trailer dialects: the keyword ends the message.

use super::*;

const WORD: &str = "TURN_COMPLETE";

const ENDS: &[&str] = &[
    "TURN_COMPLETE",
    "Done. TURN_COMPLETE",
    "Done.TURN_COMPLETE",
    "(TURN_COMPLETE",
    "Done:TURN_COMPLETE",
    "NOT_TURN_COMPLETE",
    "XTURN_COMPLETE",
    "9TURN_COMPLETE",
    "TURN_COMPLETED",
    "TURN_COMPLETE.",
    "turn_complete",
    "TURN COMPLETE",
    "**TURN_COMPLETE**",
    "`TURN_COMPLETE`",
    "> TURN_COMPLETE",
    "| TURN_COMPLETE",
    "  TURN_COMPLETE",
    "TURN_COMPLETE TURN_COMPLETE",
];

const TAILS: &[&str] =
    &["", "", "", "\n", " ", "\t\n", "\r\n", "\n\n \n", "\u{200b}", "\u{feff}\n", "!"];

fn expected(text: &str) -> Vec<Said> {
    let blank = |c: char| " \t\r\n\u{200b}\u{feff}".contains(c);
    let kept = text.trim_end_matches(blank);
    let Some(before) = kept.strip_suffix(WORD) else { return Vec::new() };
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Vec::new();
    }
    let all = lines(kept);
    let quoting = |line: &Line<'_>| line.quoted || line.text.starts_with(['>', '|']);
    if all.last().is_some_and(quoting) {
        return Vec::new();
    }
    vec![(WORD.to_owned(), None, before.len())]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn trailers_are_read_alike(
        parts in vec(prop_oneof![owned(AROUND), owned(ENDS)], 0..8),
        end in select(ENDS),
        tail in select(TAILS),
        crlf in any::<bool>(),
    ) {
        let mut parts = parts;
        parts.push(end.to_owned());
        let text = joined(&parts, crlf, false) + tail;
        prop_assert_eq!(taken(&plain_rules("turn"), &text), expected(&text), "{:?}", text);
    }
}
