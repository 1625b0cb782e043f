//! Taken back is not said: words after a claim, and the tables that judge them.

use std::ops::Range;

use super::claims::Pending;
use super::closers::rest_of_line;
use super::engine::{Engine, Flow, Mask};
use super::tags::TagState;
use super::text::{is_blank, lossy, trim_line_end};
use super::verdict::{LEAD_IN_MAX, RETRACTION_REACH, Words, lower_case};
use super::window::Window;

impl Engine<'_> {
    /// A word that may take claims back.
    #[inline(never)]
    pub(crate) fn on_retraction(&mut self, window: &Window<'_>, at: u64) -> Flow {
        if self.context.fence.is_some() || self.context.comment || self.mask != Mask::None {
            return Flow::On(at);
        }
        let reach = |pending: &Pending| {
            pending.claim
                && !pending.retracted
                && pending.end <= at
                && at - pending.end <= RETRACTION_REACH
        };
        if !self.pending.iter().any(reach) {
            return Flow::On(at);
        }
        match self.is_in_tag(window, at) {
            Some(false) => {}
            Some(true) => return Flow::On(at),
            None => return Flow::Wait,
        }
        // What stands before the last claim is not about it.
        let ends = self.pending.iter().map(|pending| pending.end).chain([self.last_tag_end]);
        let floor = ends.filter(|end| *end <= at).max().unwrap_or(0);
        let Some((before, after)) = sentence_around(window, self.line_start.max(floor), floor, at)
        else {
            return Flow::Wait;
        };
        let start = at - before.len() as u64;
        let follows_claim = |start: u64| {
            let near = |end: u64| end <= start && start - end <= LEAD_IN_MAX;
            let gap = |end: u64| window.slice(end, start).iter().all(u8::is_ascii_whitespace);
            self.pending.iter().any(|pending| near(pending.end) && gap(pending.end))
        };
        let sentence = lossy(window.slice(start, at + after.len() as u64));
        let line_starts = start <= self.line_start;
        // A line that begins with a small letter mostly goes on with the one above.
        let begins = |words: &str| {
            begins_retraction(words)
                && (!words.starts_with(char::is_lowercase)
                    || line_starts && above(window, start).is_empty()
                    || follows_claim(start))
        };
        let words = strip_marks(&sentence);
        let taken_back = match self.body.is_some() {
            true => {
                line_starts && !is_item(&sentence) && begins(words) && !is_in_value(window, start)
            }
            false => begins(words) || says_unfinished(&sentence),
        };
        if taken_back && !self.is_quoted(window, at, None) {
            for pending in self.pending.iter_mut().filter(|pending| reach(pending)) {
                pending.retracted = true;
                self.unsettled -= 1;
            }
            self.due = 0;
        }
        Flow::On(at)
    }

    /// Returns whether a place stands in a tag that is closed on the same line: that is a signal of its
    /// own. `None` if more text is needed.
    fn is_in_tag(&self, window: &Window<'_>, at: u64) -> Option<bool> {
        if self.open_tags == 0 {
            return Some(false);
        }
        let rest = rest_of_line(window, at)?;
        let mut open = self
            .rules
            .families
            .tags
            .iter()
            .filter(|words| matches!(self.tags[words.dialect], TagState::Open { .. }));
        Some(open.any(|words| words.close.find(rest).is_some()))
    }
}

/// Returns the sentence around a place, in the part before and the part after it, or `None` if more
/// text is needed. A sentence ends with `.`, `!` or `?` and a blank, or with its line, unless that
/// goes on in the next.
fn sentence_around<'w>(
    window: &Window<'w>,
    line_start: u64,
    floor: u64,
    at: u64,
) -> Option<(&'w [u8], &'w [u8])> {
    let from = at.saturating_sub(LEAD_IN_MAX).max(floor);
    let mut line = line_start.max(from);
    while line > from && goes_on(window.slice(from, line - 1), window.slice(line, at + 1)) {
        let above = window.slice(from, line - 1);
        line = from + memchr::memrchr(b'\n', above).map_or(0, |at| at as u64 + 1);
    }
    let before = window.slice(line, at);
    let mut stops = memchr::memrchr3_iter(b'.', b'!', b'?', before);
    let sentence = stops.find_map(|stop| sentence_end(before, stop)).unwrap_or(0);
    let start = sentence.max(after_ellipsis(&before[sentence..]).map_or(0, |at| sentence + at));
    let blanks = before[start..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let end = end_of_sentence(window, line, at)?;
    Some((&before[start + blanks..], window.slice(at, at + end)))
}

/// Returns how far the sentence goes on behind a place in a line, or `None` if that is not known yet.
fn end_of_sentence(window: &Window<'_>, line: u64, at: u64) -> Option<u64> {
    let after = window.slice(at, at + LEAD_IN_MAX);
    let complete = after.len() as u64 == LEAD_IN_MAX || window.last;
    let mut from = 0;
    loop {
        let newline = memchr::memchr(b'\n', &after[from..]).map(|end| from + end);
        let seen = &after[..newline.map_or(after.len(), |end| end + 1)];
        let mut stops = memchr::memchr3_iter(b'.', b'!', b'?', &seen[from..]);
        if let Some(stop) = stops.find(|stop| sentence_end(seen, from + stop).is_some()) {
            return Some((from + stop) as u64 + 1);
        }
        let Some(end) = newline else { return complete.then_some(after.len() as u64) };
        from = end + 1;
        let below = &after[from..];
        if !complete && below.iter().all(|byte| is_blank(*byte)) {
            return None;
        }
        if !goes_on(window.slice(line, at + end as u64), below) {
            return Some(end as u64);
        }
    }
}

/// Returns whether the last line of a text goes on below: nothing ends it, and what follows starts
/// with a small letter.
fn goes_on(text: &[u8], below: &[u8]) -> bool {
    let starts_small =
        below.iter().find(|byte| !is_blank(**byte)).is_some_and(u8::is_ascii_lowercase);
    let line = trim_line_end(&text[memchr::memrchr(b'\n', text).map_or(0, |at| at + 1)..]);
    let is_prose = !line.starts_with(b"#") && !line.starts_with(b">") && !line.starts_with(b"|");
    let ends = line.last().is_none_or(|last| b".!?:;|-=`>".contains(last));
    starts_small && is_prose && !ends
}

/// Returns where the text goes on behind the sentence that a `.`, `!` or `?` ends: with the blank
/// behind it and what it closes.
fn sentence_end(text: &[u8], stop: usize) -> Option<usize> {
    let closed = text[stop + 1..].iter().take_while(|byte| b"*_)]\"'`".contains(byte)).count();
    let blank = stop + 1 + closed;
    text.get(blank).is_some_and(u8::is_ascii_whitespace).then_some(blank + 1)
}

/// Returns where the text goes on behind the last ellipsis that a blank follows.
fn after_ellipsis(text: &[u8]) -> Option<usize> {
    const ELLIPSIS: &str = "… ";
    // Hardly any text holds such a character.
    memchr::memchr(ELLIPSIS.as_bytes()[0], text)?;
    memchr::memmem::rfind(text, ELLIPSIS.as_bytes()).map(|at| at + ELLIPSIS.len())
}

/// Returns the line above the one that starts at `start`, without what cannot be seen at its end.
fn above<'w>(window: &Window<'w>, start: u64) -> &'w [u8] {
    let before = window.slice(start.saturating_sub(LEAD_IN_MAX), start);
    let before = before.strip_suffix(b"\n").unwrap_or(before);
    trim_line_end(&before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..])
}

/// Returns whether the line that starts at `start` belongs to a value that a line above it opens.
fn is_in_value(window: &Window<'_>, start: u64) -> bool {
    let before = window.slice(start.saturating_sub(LEAD_IN_MAX), start);
    let before = before.strip_suffix(b"\n").unwrap_or(before);
    let lines = before.rsplit(|byte| *byte == b'\n').map(trim_line_end);
    lines.take_while(|line| !line.is_empty()).any(|line| line.ends_with(b":"))
}

/// Returns whether a sentence starts with a list mark.
fn is_item(sentence: &str) -> bool {
    ["- ", "* ", "+ ", "• "].iter().any(|mark| sentence.starts_with(mark))
}

/// Removes what does not belong to the words: list marks, emphasis, the marks of a heading, symbols
/// that cry for attention. What stands in quotation marks is left as it is: somebody else says it.
fn strip_marks(sentence: &str) -> &str {
    let quotes = ['"', '\'', '`', '“', '‘', '«', '„', '>', '|'];
    sentence.trim_start_matches(|c: char| !c.is_alphanumeric() && !quotes.contains(&c))
}

/// Words that, in any text after a claim, may take it back. A superset that a closer look decides.
pub(crate) const RETRACTION_LITERALS: &[&str] = &[
    "Correction",
    "Wait",
    "Actually",
    "Sorry",
    "Oops",
    "Scratch that",
    "On second",
    "Hold on",
    "CORRECTION",
    "WAIT",
    "ACTUALLY",
    "SORRY",
    "OOPS",
    "SCRATCH THAT",
    "ON SECOND",
    "HOLD ON",
    "wait,",
    ", wait",
    "\ncorrection",
    "\nwait",
    "\nactually",
    "\nsorry",
    "\noops",
    "\nscratch that",
    "\non second",
    "\nhold on",
    "omplete",
    "OMPLETE",
    "done",
    "DONE",
    "nished",
    "too soon",
    "TOO SOON",
    "emature",
    "fail",
    "FAIL",
    "Failing",
    "roken",
    " red",
    " RED",
    "*red",
    "ot pass",
    "n't pass",
];

const OPENERS: &[&str] = &[
    "correction",
    "wait",
    "actually",
    "sorry",
    "oops",
    "scratch that",
    "on second thought",
    "hold on",
];

/// What may be said before an opener.
const SIGHS: &[&str] = &["oh", "no", "hmm", "hm", "ah"];

/// Returns whether a sentence begins by taking something back: the opener, then punctuation or the
/// end of the line.
fn begins_retraction(words: &str) -> bool {
    let first = words.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let sighs = SIGHS.iter().any(|sigh| sigh.eq_ignore_ascii_case(first));
    let words = match sighs {
        true => words[first.len()..].trim_start_matches([',', '.', '…', ' ']),
        false => words,
    };
    OPENERS.iter().any(|opener| {
        let Some(head) = words.get(..opener.len()) else { return false };
        let rest = words[opener.len()..].trim_start_matches(['*', '_']);
        head.eq_ignore_ascii_case(opener) && (rest.is_empty() || ends_opener(rest))
    })
}

/// Returns whether punctuation follows. A hyphen only joins words: `Wait-free`.
fn ends_opener(rest: &str) -> bool {
    let joins = rest.starts_with('-') && rest[1..].starts_with(char::is_alphanumeric);
    let rest = rest.trim_start_matches([' ', '\t']);
    !joins && (rest.is_empty() || rest.starts_with(PUNCTUATION))
}

const PUNCTUATION: [char; 12] = [',', '.', ':', ';', '!', '?', '…', '-', '–', '—', '\n', '\r'];

/// Returns whether a sentence says that the work is unfinished after all.
fn says_unfinished(sentence: &str) -> bool {
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
        let mut checks = (0..self.0.len()).filter(|at| is_check(self.0[*at]));
        checks.any(|check| {
            let from = check.saturating_sub(2);
            let fails = (check + 1..self.0.len()).any(|at| {
                // What does not pass is denied to pass, and nothing more.
                let said = if self.0[at].starts_with("pass") { check } else { at };
                self.is_failing_at(at)
                    && !self.any_of(CONDITIONS, from..at)
                    && !self.denies(check, said)
                    && !self.is_conditional(at)
            });
            let there_are = check > 0
                && matches!(self.0[check - 1], "failing" | "broken" | "red")
                && (self.any_of(&["there", "have", "has"], 0..check) || self.remains(check))
                && !self.denies(check, check);
            (fails || there_are) && !self.any_of(&["if"], 0..check)
        })
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
