//! Sentences that say that the work is unfinished, or that a check fails: small word tables.

use std::ops::Range;

use super::verdict::{Words, lower_case};

/// Returns whether a sentence says that the work is unfinished after all.
pub(super) fn says_unfinished(sentence: &str) -> bool {
    let lower = lower_case(sentence);
    let words = Words::new(&lower);
    let excused = words.has(EXCUSED) || words.says(EXCUSED_PHRASES);
    // What is denied in one part of the sentence is not what another part says.
    let is_unfinished = || match lower.contains(';') {
        true => lower.split(';').any(|part| Words::new(part).is_unfinished()),
        false => words.is_unfinished(),
    };
    words.takes_back_itself() || !excused && (is_unfinished() || words.has_failing_check())
}

const EXCUSED: &[&str] =
    &["unrelated", "pre-existing", "preexisting", "upstream", "previous", "was", "were"];
const EXCUSED_PHRASES: &[&[&str]] =
    &[&["on", "main"], &["on", "the", "main"], &["on", "master"], &["used", "to"]];
const CHECKS: &[&str] = &[
    "test",
    "tests",
    "build",
    "builds",
    "check",
    "checks",
    "typecheck",
    "lint",
    "lints",
    "linter",
    "linting",
    "ci",
];
const DENIALS: &[&str] =
    &["no", "none", "nothing", "not", "never", "zero", "0", "without", "cannot", "neither", "nor"];
/// What is only possible is not said to be so.
const SUPPOSED: &[&str] = &["would", "should", "could", "must", "may", "might"];
const CONDITIONS: &[&str] = &["if", "when", "whenever", "unless", "until", "case"];
/// What a test that fails without it proves.
const REMEDIES: &[&str] = &["fix", "change", "changes", "patch"];
/// What stands between a check and the state it is in.
const BEING: &[&str] =
    &["is", "are", "be", "remain", "remains", "stay", "stays", "keep", "keeps", "went", "turned"];
/// What is passed on, rather than passed.
const OBJECTS: &[&str] = &["a", "an", "the", "its", "any", "this", "that", "it", "them", "through"];
const ADVERBS: &[&str] = &["still", "now", "again", "also", "all", "both", "always"];

impl Words<'_> {
    /// Words about the claim itself, for which it does not matter when it was made.
    fn takes_back_itself(&self) -> bool {
        let soon: &[&[&str]] = &[&["spoke", "too", "soon"], &["spoken", "too", "soon"]];
        self.says(soon) || self.says(&[&["was", "premature"], &["were", "premature"]])
    }

    fn is_unfinished(&self) -> bool {
        let negated = self.0.iter().enumerate().any(|(at, word)| {
            is_negation(word)
                && !matches!(self.0.get(at + 1), Some(&("only" | "just")))
                && !self.0[..at].contains(&"if")
                && reaches_finished(&self.0[at + 1..])
        });
        let incomplete = |(at, pair): (usize, &[&str])| {
            let is = matches!(pair[0], "is" | "are" | "remains" | "remain" | "still");
            let is = is || pair[0].ends_with("'s") || pair[0].ends_with("'re");
            is && pair[1] == "incomplete" && !self.any_of(&["if", "no", "none", "nothing"], 0..at)
        };
        negated
            || self.0.windows(2).enumerate().any(incomplete)
            || self.says(&[&["still", "fails"], &["still", "fail"], &["still", "failing"]])
            || self.has(&["premature", "prematurely"])
    }

    /// Returns whether a check is said to fail: "CI is red", "two tests still fail", "there are
    /// failing tests"; not "a test for the broken link", "if CI fails", "no test fails".
    fn has_failing_check(&self) -> bool {
        let mut last = None;
        (0..self.0.len()).any(|at| {
            if is_check(self.0[at]) {
                last = Some(at);
                return self.has_failing_before(at);
            }
            // Of several, the last is what fails.
            last.is_some_and(|check| self.fails(check, at))
        })
    }

    /// Returns whether the word at a place says that a check before it fails.
    fn fails(&self, check: usize, at: usize) -> bool {
        // What does not pass is denied to pass, and nothing more.
        let said = if self.0[at].starts_with("pass") { check } else { at };
        self.is_failing_at(at)
            && !self.any_of(CONDITIONS, check.saturating_sub(2)..at)
            && !self.denies(check, said)
            && !self.is_conditional(at)
            && !self.any_of(&["if"], 0..check)
    }

    /// Returns whether there are said to be checks that fail: "there are two failing tests".
    fn has_failing_before(&self, check: usize) -> bool {
        check > 0
            && matches!(self.0[check - 1], "failing" | "broken" | "red")
            && (self.any_of(&["there", "have", "has"], 0..check) || self.remains(check))
            && !self.denies(check, check)
            && !self.any_of(&["if"], 0..check)
    }

    /// Returns whether the failing checks at a place are left over or counted: "two failing tests
    /// remain", "failing tests: 3".
    fn remains(&self, check: usize) -> bool {
        match self.0.get(check + 1) {
            Some(&("remain" | "remains" | "left")) => true,
            Some(next) => check == 1 && is_count(next),
            None => false,
        }
    }

    /// Returns whether the word at a place says that what stands before it fails.
    fn is_failing_at(&self, at: usize) -> bool {
        let adverb = |word: &&&str| ADVERBS.contains(*word) || word.ends_with("ly");
        let mut said = self.0[..at].iter().rev().filter(|word| !adverb(word)).copied();
        let (before, earlier) = (said.next().unwrap_or(""), said.next().unwrap_or(""));
        match self.0[at] {
            "fail" | "fails" => !SUPPOSED.contains(&before),
            "failing" | "broken" | "red" => {
                let is = before.ends_with("'s") || before.ends_with("'re");
                let has_been = before == "been" && earlier != "had";
                let counted = is_count(before) && earlier != "from";
                is || has_been || counted || BEING.contains(&before) || is_check(before)
            }
            "pass" | "passing" => {
                let is_object = |next: &&str| OBJECTS.contains(next);
                is_negation(before) && !self.0.get(at + 1).is_some_and(is_object)
            }
            _ => false,
        }
    }

    /// Returns whether what fails at a place fails only where something is not so: "fails without the
    /// fix", "will fail if"; or how often it fails is counted: "failing: 0".
    fn is_conditional(&self, at: usize) -> bool {
        match &self.0[at + 1..] {
            ["if" | "unless" | "0" | "none" | "zero", ..] => true,
            ["without", "it"] => true,
            ["without" | "before", rest @ ..] => {
                rest.iter().take(3).any(|word| REMEDIES.contains(word))
            }
            _ => self.0.first() == Some(&"should"),
        }
    }

    /// Returns whether what a check is said to do is denied, of it or in what is said.
    fn denies(&self, check: usize, to: usize) -> bool {
        let words = &self.0[check.saturating_sub(3)..to];
        words.iter().any(|word| DENIALS.contains(word) || word.ends_with("n't"))
            || self.any_of(&["none"], 0..check)
    }

    fn any_of(&self, table: &[&str], range: Range<usize>) -> bool {
        self.0[range].iter().any(|word| table.contains(word))
    }
}

/// Returns whether what is negated is being finished: nothing else is said in between.
fn reaches_finished(words: &[&str]) -> bool {
    let other = |word: &&&str| {
        matches!(**word, "and" | "but" | "so" | "because" | "then" | "until" | "before")
    };
    let mut near = words.iter().take(NEGATION_REACH).take_while(|word| !other(word)).enumerate();
    near.any(|(at, word)| match *word {
        "complete" | "done" | "finished" => true,
        // Further away it is mostly said of something that has been.
        "completed" => at < 3,
        _ => false,
    })
}

fn is_negation(word: &str) -> bool {
    word == "not" || word.ends_with("n't")
}

/// Returns whether a word is a number other than nought.
fn is_count(word: &str) -> bool {
    !matches!(word, "" | "0") && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// How many words after a negation it is still about.
const NEGATION_REACH: usize = 8;

/// Returns whether a word names a check, by itself or as the end of another: `type-check`.
fn is_check(word: &str) -> bool {
    let word = word.strip_suffix("'s").unwrap_or(word);
    CHECKS.contains(&word.rsplit('-').next().unwrap_or(word))
}
