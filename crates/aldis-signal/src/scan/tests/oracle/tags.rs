//! Tag dialects: opening and closing tags are matched like brackets; a pair counts if no other pair
//! is inside it and it is inside no other.

use super::*;

const OPEN: &str = "<chorus>";
const CLOSE: &str = "</chorus>";
const TYPES: &[&str] =
    &["COMPLETE", "BLOCKED", "NEEDS_HELP", "PROGRESS", "RESOLVED", "NEEDS_HUMAN"];

const TOKENS: &[&str] = &[
    OPEN,
    OPEN,
    CLOSE,
    CLOSE,
    "COMPLETE",
    "BLOCKED",
    ": ",
    ":",
    " ",
    "\n",
    "no key",
    "62%",
    "a < b ",
    "<chorus>COMPLETE</chorus>",
    "<chorus>BLOCKED: no key</chorus>",
    "<chorus>PROGRESS:99.9</chorus>",
    "<chorus> COMPLETE </chorus>",
    "<chorus>complete</chorus>",
    "<chorus>DONE</chorus>",
    "<chorus>NEEDS_HELP: which\none?</chorus>",
    "<chorus>BLOCKED: reason</chorus>",
    "<chorus>BLOCKED: [why]</chorus>",
    "<chorus>COMPLETE now</chorus>",
    "<chorus>BLOCKED: </chorus>",
];

/// Returns the pairs of tags as (start, end) of what is between them.
fn pairs(text: &str) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    let mut out = Vec::new();
    for at in 0..text.len() {
        if text.as_bytes()[at..].starts_with(OPEN.as_bytes()) {
            open.push(at + OPEN.len());
        } else if text.as_bytes()[at..].starts_with(CLOSE.as_bytes()) {
            out.extend(open.pop().map(|start| (start, at)));
        }
    }
    out
}

fn expected(text: &str) -> Vec<Said> {
    let pairs = pairs(text);
    let mut out: Vec<Said> = Vec::new();
    for (start, end) in &pairs {
        let inside = |a: &(usize, usize), b: &(usize, usize)| a.0 > b.0 && a.1 < b.1;
        if pairs
            .iter()
            .any(|other| inside(other, &(*start, *end)) || inside(&(*start, *end), other))
        {
            continue;
        }
        let (name, words) = match text[*start..*end].split_once(':') {
            Some((name, words)) => (name, words.trim()),
            None => (&text[*start..*end], ""),
        };
        let sample = ["reason", "question", "[why]"].contains(&words);
        if TYPES.contains(&name) && !sample {
            let words = (!words.is_empty()).then(|| words.to_owned());
            out.push((name.to_owned(), words, start - OPEN.len()));
        }
    }
    out.sort_by_key(|said| said.2);
    out
}

/// Whole lines of which those in quotation do not count.
fn segment() -> impl Strategy<Value = (String, bool)> {
    let tag = select(&TOKENS[13..]);
    let around = &[
        ("```\n", "\n```"),
        ("````text\n", "\n````"),
        ("~~~\n", "\n~~~"),
        ("  ```\n  ", "\n  ```"),
        ("<!-- ", " -->"),
        ("<!--\n", "\n-->"),
        ("> ", ""),
        ("| ", " |"),
        ("`", "`"),
        ("``", "``"),
        ("\"", "\""),
        ("src/a.rs:12:", ""),
        ("", ""),
        ("", ""),
        ("Well. ", ""),
        ("", " And on."),
        ("- ", ""),
        ("", ""),
    ];
    (tag, 0..around.len()).prop_map(move |(tag, which)| {
        let (before, after) = around[which];
        let counts = which >= 12;
        let tag = if counts { tag.to_owned() } else { tag.replace('\n', " ") };
        (format!("{before}{tag}{after}"), counts)
    })
}

/// Returns whether a pair holds two pairs side by side.
fn has_siblings_inside(text: &str) -> bool {
    let pairs = pairs(text);
    let inside = |a: &(usize, usize), b: &(usize, usize)| a.0 > b.0 && a.1 < b.1;
    pairs.iter().any(|outer| {
        let held = pairs.iter().filter(|pair| inside(pair, outer));
        held.clone().any(|one| held.clone().any(|other| one.1 < other.0))
    })
}

#[test]
fn tags_side_by_side_in_a_closed_tag_are_nested() {
    let text = "<chorus><chorus>COMPLETE</chorus><chorus>COMPLETE</chorus></chorus>";
    assert!(has_siblings_inside(text));
    assert_eq!(taken(&plain_rules("chorus"), text), expected(text));
}

/// The second reader knows no code by indentation.
fn is_indented(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("    "))
}

#[test]
fn indented_tags_are_code() {
    let text = "    <chorus>COMPLETE</chorus>";
    assert!(is_indented(text) && !expected(text).is_empty());
    assert_eq!(taken(&plain_rules("chorus"), text), []);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tags_are_read_alike(tokens in vec(select(TOKENS), 0..16)) {
        let text = tokens.concat();
        prop_assume!(!has_siblings_inside(&text) && !is_indented(&text));
        prop_assert_eq!(taken(&plain_rules("chorus"), &text), expected(&text), "{:?}", text);
    }

    #[test]
    fn quoted_tags_are_not_read(segments in vec(segment(), 0..10)) {
        let mut text = String::new();
        let mut want = Vec::new();
        for (segment, counts) in &segments {
            if *counts {
                let here = expected(segment).into_iter();
                want.extend(here.map(|(name, words, start)| (name, words, start + text.len())));
            }
            text.push_str(segment);
            text.push_str("\n\n");
        }
        prop_assert_eq!(taken(&plain_rules("chorus"), &text), want, "{:?}", text);
    }
}
