//! What the generator promises: the same seed, the same samples; twins; neutral filler.

use std::collections::BTreeMap;

use super::*;

#[test]
fn the_same_seed_gives_the_same_samples() {
    assert!(samples(7, 400).eq(samples(7, 400)));
    assert!(!samples(7, 400).eq(samples(8, 400)));
}

#[test]
fn every_phenomenon_has_both_twins() {
    let all = phenomena();
    assert!(all.len() >= 40, "only {} phenomena", all.len());
    let mut names: Vec<_> = all.iter().map(|phenomenon| phenomenon.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "two phenomena share a name");
    let mut rng = Rng::new(1);
    for phenomenon in &all {
        for genuine in [true, false] {
            for _ in 0..50 {
                let sample = phenomenon.sample(&mut rng, genuine);
                assert_eq!(!sample.genuine.is_empty(), genuine, "{sample:?}");
            }
        }
    }
}

#[test]
fn every_dialect_is_heard_and_unheard() {
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for sample in samples(3, 5_000) {
        *counts.entry((sample.dialect, sample.genuine.is_empty())).or_default() += 1;
    }
    assert_eq!(counts.len(), 2 * claims::ALL.len());
    assert!(counts.values().all(|&count| count >= 50), "{counts:?}");
}

/// Filler decides nothing: no names of signals, nothing left open, no words that take back.
#[test]
fn filler_is_neutral() {
    let mut rng = Rng::new(11);
    for _ in 0..2_000 {
        let text = format!(
            "{}\n\n{}\n\n{}",
            filler::before(&mut rng),
            filler::piece(&mut rng),
            filler::after(&mut rng)
        );
        for word in [
            "fail",
            "broken",
            " red",
            "not ",
            "n't",
            "incomplete",
            "premature",
            "Wait",
            "Actually",
            "Sorry",
            "Oops",
            "COMPLETE",
            "SIGNAL",
            "READY",
            "<chorus",
            "TURN_",
            "<!--",
            "\n---\n",
        ] {
            assert!(!text.contains(word), "filler holds `{word}`: {text}");
        }
        let fences = text.lines().filter(|line| line.starts_with("```")).count();
        assert_eq!(fences % 2, 0, "filler leaves a fence open: {text}");
        assert_eq!(text.matches('`').count() % 2, 0, "filler leaves code open: {text}");
    }
}
