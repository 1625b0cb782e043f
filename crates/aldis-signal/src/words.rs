//! The words of spec 0, rule 8, and the questions that they answer about a sentence.
//!
//! They are one data file for ten languages. Which language a text is written in is not asked: a
//! sentence is compared with all of them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, MatchKind, StartKind};

use crate::codes;

codes! {
    /// What a word tells about the sentence it stands in.
    pub(crate) enum WordKind {
        Sample = "sample",
        Unsampled = "unsampled",
        Condition = "condition",
        Negation = "negation",
        Failure = "failure",
        Future = "future",
        Affirm = "affirm",
        Order = "order",
        Points = "points",
        Over = "over",
        Opener = "opener",
        Void = "void",
        Joins = "joins",
    }
}

/// The entries of a kind, of all languages.
#[derive(Debug, Default)]
struct Entries {
    /// Words and phrases, by the first word.
    phrases: BTreeMap<&'static str, Vec<Vec<&'static str>>>,
    /// Those that begin with a part of a word.
    open: Vec<Vec<&'static str>>,
    /// Those that match anywhere.
    parts: Vec<&'static str>,
}

static FILE: &str = include_str!("words/words.txt");

static ENTRIES: LazyLock<Vec<Entries>> = LazyLock::new(|| {
    let mut all: Vec<Entries> = WordKind::ALL.iter().map(|_| Entries::default()).collect();
    for (kind, _, entries) in lines() {
        let Some(kind) = WordKind::named(kind) else { continue };
        entries.for_each(|entry| all[kind as usize].add(entry));
    }
    all
});

/// Returns kind, language and entries of each line of the file.
fn lines() -> impl Iterator<Item = (&'static str, &'static str, impl Iterator<Item = &'static str>)>
{
    let shown = FILE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    shown.filter_map(|line| {
        let (head, entries) = line.split_once(": ")?;
        let (kind, language) = head.split_once(' ')?;
        Some((kind, language, entries.split(", ")))
    })
}

impl Entries {
    fn add(&mut self, entry: &'static str) {
        let words: Vec<&str> = entry.split(' ').collect();
        if entry.chars().any(lacks_blanks) {
            self.parts.push(entry);
        } else if words[0].contains('*') {
            self.open.push(words);
        } else {
            self.phrases.entry(words[0]).or_default().push(words);
        }
    }

    /// Returns the length of the longest entry that words open with.
    fn opens(&self, words: &[String]) -> Option<usize> {
        let known = words.first().and_then(|first| self.phrases.get(first.as_str()));
        let all = known.into_iter().flatten().chain(&self.open);
        all.filter(|phrase| starts_with(words, phrase)).map(Vec::len).max()
    }
}

/// Returns whether a character belongs to a script in which words are not set apart, or take endings
/// that are not.
fn lacks_blanks(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}')
}

/// A sentence, ready to be asked.
#[derive(Debug)]
pub(crate) struct Sentence {
    text: String,
    words: Vec<String>,
}

impl Sentence {
    /// Reads a sentence. What stands in back-quotes is somebody else's.
    pub(crate) fn new(text: &str) -> Self {
        let text = without_code(text).to_lowercase().replace('’', "'");
        let split = text.split(|c: char| !(c.is_alphanumeric() || "'-_".contains(c)));
        let words =
            split.map(|word| word.trim_matches(['\'', '-'])).filter(|word| !word.is_empty());
        Self { words: words.map(str::to_owned).collect(), text }
    }

    /// Returns whether it holds a word of a kind.
    pub(crate) fn has(&self, kind: WordKind) -> bool {
        let entries = &ENTRIES[kind as usize];
        (0..self.words.len()).any(|at| entries.opens(&self.words[at..]).is_some())
            || !self.text.is_ascii() && entries.parts.iter().any(|part| self.text.contains(part))
    }

    /// Returns whether it opens with a word of a kind.
    pub(crate) fn opens_with(&self, kind: WordKind) -> bool {
        let entries = &ENTRIES[kind as usize];
        entries.opens(&self.words).is_some()
            || entries.parts.iter().any(|part| self.text.starts_with(part))
    }

    /// Returns whether a word of a kind is all there is.
    pub(crate) fn is(&self, kind: WordKind) -> bool {
        let entries = &ENTRIES[kind as usize];
        let shown = self.text.trim_matches(|c: char| !c.is_alphanumeric());
        !self.words.is_empty() && entries.opens(&self.words) == Some(self.words.len())
            || entries.parts.contains(&shown)
    }

    /// Returns whether it shows a form: words that do are taken out by the phrases that excuse them.
    pub(crate) fn shows_sample(&self) -> bool {
        if !self.has(WordKind::Sample) {
            return false;
        }
        let excuses = &ENTRIES[WordKind::Unsampled as usize];
        let mut words = Vec::new();
        let mut at = 0;
        while let Some(word) = self.words.get(at) {
            match excuses.opens(&self.words[at..]) {
                Some(length) => at += length,
                None => {
                    words.push(word.clone());
                    at += 1;
                }
            }
        }
        let text = if words.len() < self.words.len() { words.join(" ") } else { self.text.clone() };
        Self { text, words }.has(WordKind::Sample)
    }

    /// Returns whether there is no word in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

fn starts_with(words: &[String], phrase: &[&str]) -> bool {
    words.len() >= phrase.len() && words.iter().zip(phrase).all(|(word, entry)| fits(word, entry))
}

fn fits(word: &str, entry: &str) -> bool {
    match (entry.strip_prefix('*'), entry.strip_suffix('*')) {
        (Some(end), _) => word.len() > end.len() && word.ends_with(end),
        (None, Some(start)) => word.starts_with(start),
        (None, None) => word == entry,
    }
}

/// Finds an opener where it starts, in any case.
static OPENERS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let openers = lines().filter(|(kind, ..)| matches!(*kind, "opener" | "void"));
    let words = openers.flat_map(|(.., entries)| entries);
    // Only the case of ASCII letters is folded by the search.
    let cased = words.flat_map(|word| [capitalised(word), word.to_uppercase(), word.to_owned()]);
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest);
    builder.kind(Some(AhoCorasickKind::DFA)).start_kind(StartKind::Anchored);
    builder.build(cased).ok()
});

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// No opener is longer.
pub(crate) const OPENER_MAX: u64 = 64;

/// What ends a line, a sentence or the mark of an item, or is the first byte of what does: behind
/// nothing else may a sentence begin.
const BREAKS: [[u8; 3]; 4] = [*b"\n.>", *b"!?)", *b"]]]", [0xE2, 0xE3, 0xEF]];

/// Returns where the first word stands that may open a retraction: it may begin a sentence, and
/// punctuation or the end of a line follows it.
pub(crate) fn find_opener(text: &[u8]) -> Option<usize> {
    let behind = BREAKS.iter().filter_map(|[one, two, three]| {
        let mut breaks = memchr::memchr3_iter(*one, *two, *three, text);
        breaks.find_map(|at| opener_from(text, at + 1))
    });
    opener_from(text, 0).into_iter().chain(behind).min()
}

/// Returns where an opener stands before which there are only marks. Behind the next break another
/// call looks.
fn opener_from(text: &[u8], from: usize) -> Option<usize> {
    for at in from..text.len() {
        let byte = text[at];
        let starts = byte.is_ascii_alphanumeric() || byte >= 0xC0;
        if starts && is_opener(&text[at..]) {
            return Some(at);
        }
        let ends = byte != b' ' && BREAKS.as_flattened().contains(&byte);
        if ends || byte.is_ascii_alphanumeric() {
            return None;
        }
    }
    None
}

/// Returns whether a sentence opens with a retraction.
pub(crate) fn opens_retraction(sentence: &str) -> bool {
    is_opener(sentence.as_bytes())
}

fn is_opener(text: &[u8]) -> bool {
    let Some(openers) = &*OPENERS else { return false };
    let found = openers.find(Input::new(text).anchored(Anchored::Yes));
    found.is_some_and(|found| ends_opener(&text[found.end()..]))
}

/// Returns whether punctuation or the end of a line follows. A hyphen only joins words: `Wait-free`.
fn ends_opener(rest: &[u8]) -> bool {
    const PUNCTUATION: &str = ",.:;!?…、。，：；！？—–\r\n";
    let marks = rest.iter().take_while(|byte| b"*_ \t".contains(byte)).count();
    let spaced = &rest[marks..];
    let blank = matches!(rest.first(), Some(b' ' | b'\t'));
    let dash = spaced.strip_prefix(b"-").is_some_and(|rest| blank || rest.starts_with(b"-"));
    let near = spaced[..spaced.len().min(4)].utf8_chunks().next();
    let next = near.and_then(|chunk| chunk.valid().chars().next());
    dash || next.is_none_or(|c| PUNCTUATION.contains(c))
}

/// Removes what stands between pairs of back-quotes.
fn without_code(text: &str) -> String {
    let mut parts = text.split('`').collect::<Vec<_>>();
    // Without its partner the last one quotes nothing.
    let rest = if parts.len() % 2 == 0 { parts.pop() } else { None };
    let mut shown: Vec<&str> = parts.into_iter().step_by(2).collect();
    shown.extend(rest);
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_file_is_in_order() {
        let languages = ["en", "de", "fr", "es", "pt", "it", "ja", "zh", "ko", "ru"];
        let mut seen = BTreeSet::new();
        for (kind, language, entries) in lines() {
            let entries: Vec<&str> = entries.collect();
            assert!(WordKind::named(kind).is_some(), "{kind}");
            assert!(languages.contains(&language), "{language}");
            assert!(seen.insert((kind, language)), "{kind} {language} is given twice");
            assert!(entries.len() <= 20, "{kind} {language} has {} entries", entries.len());
            for entry in entries {
                assert_eq!(entry, entry.trim().to_lowercase(), "{kind} {language}");
                let long = !entry.chars().any(lacks_blanks) || entry.chars().count() >= 2;
                assert!(long, "{kind} {language}: {entry} is too short");
            }
        }
        for kind in WordKind::ALL.iter().map(|kind| kind.as_str()) {
            let all = languages.iter().filter(|language| seen.contains(&(kind, **language)));
            assert!(kind == "unsampled" || all.count() == languages.len(), "{kind}");
        }
    }

    #[test]
    fn words_match_whole() {
        for (text, kind, want) in [
            ("It does not work", WordKind::Negation, true),
            ("It doesn’t work", WordKind::Negation, true),
            ("A knotty note", WordKind::Negation, false),
            ("He’ll say it", WordKind::Future, true),
            ("Only after that", WordKind::Condition, true),
            ("After that only", WordKind::Condition, false),
            ("まだ失敗しています", WordKind::Failure, true),
            ("See `if` there", WordKind::Condition, false),
            ("A lone ` and if", WordKind::Condition, true),
        ] {
            assert_eq!(Sentence::new(text).has(kind), want, "{text}");
        }
    }

    #[test]
    fn a_sample_word_can_be_excused() {
        for (text, want) in [
            ("Example:", true),
            ("In the expected format:", false),
            ("The format, in the format, is", true),
            ("Done", false),
        ] {
            assert_eq!(Sentence::new(text).shows_sample(), want, "{text}");
        }
    }

    #[test]
    fn openers_are_followed_by_punctuation() {
        for (text, want) in [
            ("Wait, no", true),
            ("Wait", true),
            ("Wait - no", true),
            ("Wait-free queues", false),
            ("Wait for it", false),
            ("訂正：テスト", true),
            ("On second thought, no", true),
        ] {
            assert_eq!(opens_retraction(text), want, "{text}");
        }
    }
}
