//! The vectors find and count what plain code finds and counts.

use proptest::prelude::*;

use super::super::prefilter::{Kinds, Prefilter, buckets};
use super::*;

/// Few letters, so that literals and parts of them are everywhere.
const LETTERS: &str = "[abC\n`~< \u{1b}é]{0,400}";

fn literals() -> impl Strategy<Value = Vec<Literal>> {
    let text = prop::collection::vec("[abC\n`~<]{3,5}|[abC\n`~<]{6,12}", 1..20);
    text.prop_map(|texts| texts.iter().map(|text| Literal::new(text, Kinds::LINE)).collect())
}

/// Finds the same by comparing every literal with every place.
fn slowly(literals: &[Literal], text: &[u8], from: usize, to: usize) -> Vec<(usize, usize)> {
    let (mut all, mut at) = (Vec::new(), from);
    while at < to {
        let literal = literals.iter().find(|literal| text[at..].starts_with(&literal.text));
        match literal {
            Some(literal) => {
                all.push((at, at + literal.text.len()));
                at += literal.text.len();
            }
            None => at += 1,
        }
    }
    all
}

proptest! {
    #[test]
    fn every_literal_is_found_where_it_starts(
        given in literals(), text in LETTERS, enough in 1..100_usize,
        cut in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        // What stands at the very end is found as well.
        let text = [text.as_bytes(), &given[0].text].concat();
        let text = text.as_slice();
        let (left, right) = (cut.0.index(text.len() + 1), cut.1.index(text.len() + 1));
        let (from, to) = (left.min(right), left.max(right));
        let numbered = buckets::arranged(&given, BUCKETS);
        let Some(vectors) = Vectors::new(&numbered) else { return Ok(()) };
        let lines = |to: usize| count_newlines(&text[from..to]);
        let expected = Seen { newlines: lines(to), escape: text[from..to].contains(&0x1B) };
        for vectors in [Vectors { wide: false, ..vectors.clone() }, vectors] {
            let (mut all, mut counts) = (Vec::new(), Vec::new());
            let (mut at, mut resume, mut seen) = (from, from, Seen::default());
            while at < to {
                let swept = vectors.sweep_and_see::<true>(text, (at, to), enough, |hit, counted| {
                    if hit.start >= resume {
                        all.push((hit.start, hit.end));
                        counts.push((seen.newlines + counted.newlines, lines(counted.to)));
                        resume = hit.end;
                    }
                    resume
                });
                seen += swept.seen;
                at = swept.to;
            }
            prop_assert!(counts.iter().all(|(counted, lines)| counted == lines), "{:?}", counts);
            prop_assert_eq!(&all, &slowly(&numbered, text, from, to));
            prop_assert_eq!(seen, expected);
            all.clear();
            vectors.sweep_and_see::<false>(text, (from, text.len()), usize::MAX, |hit, _| {
                all.push((hit.start, hit.end));
                hit.end
            });
            prop_assert_eq!(&all, &slowly(&numbered, text, from, text.len()));
        }
    }

    #[test]
    fn sweeping_finds_what_searching_again_and_again_finds(given in literals(), text in LETTERS) {
        let filter = Prefilter::new(given);
        let text = text.as_bytes();
        let mut swept = Vec::new();
        filter.sweep(text, 0, text.len(), |hit| {
            swept.push((hit.start, hit.end));
            hit.end
        });
        let (mut searched, mut from) = (Vec::new(), 0);
        while let Some(hit) = filter.find(text, from, text.len()) {
            searched.push((hit.start, hit.end));
            from = hit.end;
        }
        prop_assert_eq!(swept, searched);
    }
}

#[test]
fn newlines_are_counted_in_texts_of_any_length() {
    let text: Vec<u8> = (0..40_000_u32).map(|n| if n % 7 < 5 { b'\n' } else { b'x' }).collect();
    for length in (0..300).chain([64 * 255 - 1, 64 * 255, 64 * 255 + 1, 33_000, text.len()]) {
        let counted = text[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(newlines(&text[..length]), counted, "{length}");
        assert_eq!(count_newlines(&text[..length]), counted, "{length}");
    }
    assert_eq!(newlines(&[b'\n'; 40_000]), 40_000);
}

proptest! {
    #[test]
    fn key_lines_are_found_at_any_place(
        text in "([AZ@a`é: \n]|\n|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa){0,150}", marks in "[`~A-]{3}",
    ) {
        let (text, marks) = (text.as_bytes(), [0, 1, 2].map(|at| marks.as_bytes()[at]));
        for from in 0..=text.len() {
            let text = &text[from..];
            let expected = keys::look_for_key_line(text, marks);
            prop_assert_eq!(find_key_line(text, marks), expected);
            if is_supported() {
                prop_assert_eq!(avx2::find_key_line(text, marks), expected);
            }
        }
    }

    #[test]
    fn plain_text_is_what_consists_of_plain_bytes(
        text in "[a~ \n\t]{300,600}", odd in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut text = text.into_bytes();
        if let Some((at, byte)) = odd {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        let blocks = text.as_chunks().0;
        let expected = blocks.iter().take_while(|block| block.iter().all(is_plain)).count();
        prop_assert_eq!(plain_blocks(blocks), expected);
        prop_assert_eq!(count_plain_blocks(blocks), expected);
    }
}

#[test]
fn an_escape_is_seen_wherever_it_stands() {
    let literals = [Literal::new("never", Kinds::LINE)];
    let Some(vectors) = Vectors::new(&literals) else { return };
    for vectors in [Vectors { wide: false, ..vectors.clone() }, vectors] {
        for at in 0..300 {
            let mut text = [b'x'; 300];
            text[at] = 0x1B;
            assert!(
                vectors
                    .sweep_and_see::<true>(&text, (0, 300), usize::MAX, |hit, _| hit.end)
                    .seen
                    .escape,
                "{at}"
            );
        }
    }
}

#[test]
fn a_long_literal_is_compared_to_its_end() {
    let literals =
        ["a long one", "a long way", "a lot"].map(|text| Literal::new(text, Kinds::LINE));
    let needles = Needles::new(&literals);
    for (text, end) in [
        ("a long one, two", Some(10)),
        ("a long way", Some(10)),
        ("a long wa", None),
        ("a long win", None),
        ("a lot", Some(5)),
        ("a lo", None),
        ("", None),
    ] {
        assert_eq!(needles.hit_at(text.as_bytes(), 0).map(|hit| hit.end), end, "{text}");
    }
}
