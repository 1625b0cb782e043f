//! Mentioned is not said, taken back is not said: small word tables, not understanding.
//!
//! A claim that the text around it only talks about ends runs too early; a claim that is refused is
//! asked for once more, with the reason quoted. The tables therefore lean towards refusing. They are
//! documented in `docs/near-misses.md` and scored on labelled examples.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::window::Window;

/// How far back a lead-in reaches, and how far a sentence goes on.
pub(crate) const LEAD_IN_MAX: u64 = 300;

/// How far after a claim its retraction is looked for. Later words are about something else, and a
/// claim becomes certain at last.
pub(crate) const RETRACTION_REACH: u64 = 4 * 1024;

/// What stands around a claim.
#[derive(Debug, Default)]
pub(crate) struct Surroundings<'w> {
    /// What stands before it on its line, or the last line before that shows anything.
    pub(crate) lead_in: Cow<'w, str>,
    /// Whether the lead-in stands on the claim's line or directly above it.
    pub(crate) adjacent: bool,
    /// What follows on its line.
    pub(crate) rest: Cow<'w, str>,
}

impl Surroundings<'_> {
    /// Returns a copy that outlives the text.
    pub(crate) fn into_owned(self) -> Surroundings<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Surroundings {
            lead_in: owned(self.lead_in),
            adjacent: self.adjacent,
            rest: owned(self.rest),
        }
    }

    /// Returns whether the text around only talks about the claim.
    pub(crate) fn mention(&self) -> bool {
        if !may_mention(self.lead_in.as_bytes()) && !may_mention(self.rest.as_bytes()) {
            return false;
        }
        let sentences = sentences(&self.lead_in);
        let continuation = continuation(&self.rest);
        let (last, finished) = match sentences.split_last() {
            Some((last, finished)) => (*last, finished),
            None => ("", &[][..]),
        };
        let open = !last.is_empty() && !ends_sentence(last) && (self.adjacent || ends_colon(last));
        let opened = match (open, continuation) {
            (true, Some(more)) => mentions(&format!("{last} {more}"), true),
            (true, None) => mentions(last, true),
            (false, Some(more)) => mentions(more, true) || mentions(last, false),
            (false, None) => mentions(last, false),
        };
        opened || finished.iter().any(|sentence| mentions(sentence, false))
    }
}

/// What words start with that make a sentence be about the claim. None is longer than
/// [`STEM_MAX`].
const STEMS: [&str; 21] = [
    "print", "output", "emit", "repl", "respond", "say", "said", "writ", "wrote", "send", "sent",
    "claim", "end", "finish", "clos", "marker", "signal", "tag", "promise", "block", "line",
];
const STEM_MAX: u64 = 7;

/// Returns whether a text holds the start of any word that makes a sentence be about the claim.
/// Most texts do not, and need no closer look.
fn may_mention(text: &[u8]) -> bool {
    static FINDER: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(STEMS).ok());
    FINDER.as_ref().is_none_or(|stems| stems.is_match(text))
}

/// A stretch of text that is known not to be about saying anything. It grows as claims follow each
/// other, so that text around several of them is looked at once.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    from: u64,
    to: u64,
}

impl Silence {
    /// Returns whether nothing between `from` and `to` can make a claim a mention.
    pub(crate) fn covers(&mut self, window: &Window<'_>, from: u64, to: u64) -> bool {
        let from = from.max(window.base());
        // A stem may have been cut off at the end.
        let known = self.to.saturating_sub(STEM_MAX - 1);
        let joins = (self.from..=known.max(self.from)).contains(&from);
        let unknown = if joins { from.max(known) } else { from };
        if may_mention(window.slice(unknown, to)) {
            return false;
        }
        self.from = if joins { self.from } else { from };
        self.to = if joins { self.to.max(to) } else { to };
        true
    }
}

/// Returns whether a sentence is about saying the claim, and not saying it now.
fn mentions(sentence: &str, open: bool) -> bool {
    let lower = lower_case(sentence);
    let words = Words::new(&lower);
    let about = match open {
        true => words.utters() || words.has_noun(true),
        false => words.has_noun(false) && words.utters(),
    };
    about && (words.is_sample() || words.negates() || words.is_future() && !words.excuses())
}

/// Four or more words on a line before a tag, since the last tag, ending in a word or a comma.
pub(crate) fn is_mid_sentence(before: &str) -> bool {
    let before = before.trim_end();
    let ends = before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == ',');
    ends && before.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
        >= 4
}

/// What follows on the line belongs to the sentence if it goes on with a lower-case letter.
fn continuation(rest: &str) -> Option<&str> {
    let words = rest.strip_prefix([' ', '\t'])?.trim_start();
    words.starts_with(char::is_lowercase).then(|| sentences(words).first().copied().unwrap_or(""))
}

/// Splits after `.`, `!` and `?` that a blank or the end follows.
fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let ends = matches!(byte, b'.' | b'!' | b'?')
            && bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace());
        if ends {
            out.push(text[start..=at].trim());
            start = at + 1;
        }
    }
    out.push(text[start..].trim());
    out.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    out
}

fn ends_sentence(sentence: &str) -> bool {
    sentence.trim_end_matches(['*', '_', '"', ')', '`']).ends_with(['.', '!', '?'])
}

fn ends_colon(sentence: &str) -> bool {
    sentence.trim_end_matches(['*', '_', '"', ')', '`']).ends_with(':')
}

fn lower_case(sentence: &str) -> String {
    sentence.to_lowercase().replace('’', "'")
}

/// A sentence as lower-case words.
struct Words<'s>(Vec<&'s str>);

impl<'s> Words<'s> {
    fn new(lower: &'s str) -> Self {
        let words = lower
            .split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '-'))
            .map(|word| word.trim_matches(['\'', '-']))
            .filter(|word| !word.is_empty());
        Self(words.collect())
    }

    fn has(&self, table: &[&str]) -> bool {
        self.0.iter().any(|word| table.contains(word))
    }

    /// Returns whether the words of one of the phrases follow each other.
    fn says(&self, phrases: &[&[&str]]) -> bool {
        phrases.iter().any(|phrase| self.0.windows(phrase.len()).any(|words| words == *phrase))
    }

    fn utters(&self) -> bool {
        let ends_with = |pair: &[&str]| ENDING.contains(&pair[0]) && pair[1] == "with";
        self.has(UTTERING) || self.0.windows(2).any(ends_with)
    }

    fn has_noun(&self, open: bool) -> bool {
        let qualified =
            |pair: &[&str]| QUALIFIERS.contains(&pair[0]) && LOOSE_NOUNS.contains(&pair[1]);
        self.has(NOUNS) || self.has(LOOSE_NOUNS) && (open || self.0.windows(2).any(qualified))
    }

    fn is_sample(&self) -> bool {
        let cited = |words: &[&str]| {
            matches!(words[0], "as" | "per") && words[1] == "the" && FORMATS.contains(&words[2])
        };
        self.has(SAMPLES)
            || self.has(FORMATS) && !self.0.windows(3).any(cited)
            || self.says(&[&["for", "reference"], &["looks", "like"], &["look", "like"]])
    }

    fn negates(&self) -> bool {
        self.has(NEGATIONS) || self.0.iter().any(|word| word.ends_with("n't"))
    }

    fn is_future(&self) -> bool {
        self.has(FUTURE)
            || self.0.iter().any(|word| word.ends_with("'ll") || word.ends_with("'d"))
            || self.says(FUTURE_PHRASES)
            || self.is_told()
    }

    /// Returns whether somebody is told, asked or reminded to say it.
    fn is_told(&self) -> bool {
        self.0.iter().enumerate().any(|(at, word)| {
            // "As you asked me to" is a reason to say it now.
            let person = || match &self.0[at + 1..] {
                [person, "to", rest @ ..] if PERSONS.contains(person) => {
                    let soon = &rest[..rest.len().min(4)];
                    !self.0[..at].contains(&"as") && Words(soon.to_vec()).utters()
                }
                _ => false,
            };
            TELLING.contains(word) && (self.0.get(at + 1) == Some(&"to") || person())
        })
    }

    fn excuses(&self) -> bool {
        self.has(&["now", "hereby", "here's"])
            || self.says(&[&["here", "is"], &["here", "it", "is"]])
    }
}

const UTTERING: &[&str] = &[
    "print",
    "prints",
    "printed",
    "printing",
    "output",
    "outputs",
    "outputted",
    "outputting",
    "emit",
    "emits",
    "emitted",
    "emitting",
    "reply",
    "replies",
    "replied",
    "replying",
    "respond",
    "responds",
    "responded",
    "responding",
    "say",
    "says",
    "said",
    "saying",
    "write",
    "writes",
    "wrote",
    "written",
    "writing",
    "send",
    "sends",
    "sent",
    "sending",
    "claim",
    "claims",
    "claimed",
    "claiming",
];
const ENDING: &[&str] = &[
    "end",
    "ends",
    "ended",
    "ending",
    "finish",
    "finishes",
    "finished",
    "finishing",
    "close",
    "closes",
    "closed",
    "closing",
];
const NOUNS: &[&str] = &[
    "marker",
    "markers",
    "signal",
    "signals",
    "tag",
    "tags",
    "promise",
    "promises",
    "sentinel",
    "sentinels",
];
const LOOSE_NOUNS: &[&str] = &["block", "blocks", "line", "lines"];
const QUALIFIERS: &[&str] = &["completion", "status", "exit", "final", "signal"];
const SAMPLES: &[&str] = &["example", "examples", "sample", "samples", "expected"];
const FORMATS: &[&str] = &["format", "formats", "template", "templates"];
const NEGATIONS: &[&str] = &["not", "never", "cannot", "without"];
const FUTURE: &[&str] = &[
    "will", "would", "must", "should", "shall", "until", "once", "when", "if", "before", "pending",
];
const FUTURE_PHRASES: &[&[&str]] = &[
    &["going", "to"],
    &["about", "to"],
    &["to", "be"],
    &["only", "after"],
    &["as", "soon", "as"],
    &["next", "step"],
];
const TELLING: &[&str] = &[
    "tell",
    "tells",
    "told",
    "ask",
    "asks",
    "asked",
    "say",
    "says",
    "said",
    "remember",
    "remembers",
];
const PERSONS: &[&str] =
    &["me", "us", "you", "it", "him", "her", "them", "everyone", "everybody", "agents"];

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
    "OOPS",
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
    "emature",
    "fail",
    "FAIL",
    "roken",
    " red",
    "*red",
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

/// Returns whether a sentence begins by taking something back: the opener, then punctuation or the
/// end of the line.
pub(crate) fn begins_retraction(sentence: &str) -> bool {
    let text = sentence.trim_start_matches(['*', '_', ' ', '\t', '~']);
    OPENERS.iter().any(|opener| {
        let Some(head) = text.get(..opener.len()) else { return false };
        let rest = text[opener.len()..].trim_start_matches(['*', '_']);
        head.eq_ignore_ascii_case(opener) && (rest.is_empty() || ends_opener(rest))
    })
}

fn ends_opener(rest: &str) -> bool {
    let dash = |text: &str| text.starts_with(['-', '–', '—']);
    rest.starts_with([',', '.', ':', ';', '!', '?', '…', '\n', '\r'])
        || dash(rest) && !rest.chars().nth(1).is_some_and(char::is_alphanumeric)
        || dash(rest.trim_start_matches(' ')) && rest.starts_with(' ')
        || rest.trim_end_matches([' ', '\t']).is_empty()
}

/// Returns whether a sentence says that the work is unfinished after all.
pub(crate) fn says_unfinished(sentence: &str) -> bool {
    let lower = lower_case(sentence);
    let words = Words::new(&lower);
    let excused = words.has(EXCUSED) || words.says(&[&["on", "main"], &["used", "to"]]);
    words.takes_back_itself() || !excused && (words.is_unfinished() || words.has_failing_check())
}

const EXCUSED: &[&str] =
    &["unrelated", "pre-existing", "preexisting", "upstream", "previous", "was", "were"];
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
    &["no", "none", "nothing", "not", "never", "zero", "0", "without", "cannot"];
/// What is only possible is not said to be so.
const SUPPOSED: &[&str] = &["would", "should", "could", "must", "may", "might"];
const CONDITIONS: &[&str] = &["if", "when", "whenever", "unless", "until"];
/// What stands between a check and the state it is in.
const BEING: &[&str] =
    &["is", "are", "be", "remain", "remains", "stay", "stays", "keep", "keeps", "went", "turned"];
const ADVERBS: &[&str] = &["still", "now", "again", "also", "all", "both", "always"];

impl Words<'_> {
    /// Words about the claim itself, for which it does not matter when it was made.
    fn takes_back_itself(&self) -> bool {
        self.says(&[&["spoke", "too", "soon"], &["was", "premature"], &["were", "premature"]])
    }

    fn is_unfinished(&self) -> bool {
        let finished = |next: &&str| matches!(*next, "complete" | "done" | "finished");
        let negated = self.0.iter().enumerate().any(|(at, word)| {
            (*word == "not" || word.ends_with("n't"))
                && !matches!(self.0.get(at + 1), Some(&("only" | "just")))
                && !self.0[..at].contains(&"if")
                && self.0[at + 1..].iter().take(5).any(finished)
        });
        let incomplete = |pair: &[&str]| {
            let is = matches!(pair[0], "is" | "are" | "remains" | "remain" | "still");
            (is || pair[0].ends_with("'s") || pair[0].ends_with("'re")) && pair[1] == "incomplete"
        };
        negated
            || self.0.windows(2).any(incomplete)
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
                self.is_failing_at(at)
                    && !self.any_of(CONDITIONS, from..at)
                    && !self.denies(check, at)
            });
            let there_are = check > 0
                && matches!(self.0[check - 1], "failing" | "broken" | "red")
                && self.any_of(&["there", "have", "has"], 0..check)
                && !self.denies(check, check);
            (fails || there_are) && !self.any_of(&["if"], 0..check)
        })
    }

    /// Returns whether the word at a place says that what stands before it fails.
    fn is_failing_at(&self, at: usize) -> bool {
        let adverb = |word: &&&str| ADVERBS.contains(*word) || word.ends_with("ly");
        let before = self.0[..at].iter().rev().find(|word| !adverb(word)).copied().unwrap_or("");
        match self.0[at] {
            "fail" | "fails" => !SUPPOSED.contains(&before),
            "failing" | "broken" | "red" => {
                let is = before.ends_with("'s") || before.ends_with("'re");
                is || BEING.contains(&before) || is_check(before)
            }
            _ => false,
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

/// Returns whether a word names a check, by itself or as the end of another: `type-check`.
fn is_check(word: &str) -> bool {
    let word = word.strip_suffix("'s").unwrap_or(word);
    CHECKS.contains(&word.rsplit('-').next().unwrap_or(word))
}
