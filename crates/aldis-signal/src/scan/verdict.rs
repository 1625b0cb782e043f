//! Mentioned is not said: small word tables, not understanding.
//!
//! A claim that the text around it only talks about ends runs too early; a claim that is refused is
//! asked for once more, with the reason quoted. The tables therefore lean towards refusing. They are
//! documented in `docs/near-misses.md` and scored on labelled examples.

use std::borrow::Cow;

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
            (true, Some(more)) => mention(&format!("{last} {more}"), true),
            (true, None) => mention(last, true),
            (false, Some(more)) => mention(more, true).or_else(|| mention(last, false)),
            (false, None) => mention(last, false),
        };
        // "I was told to print it when all is done. Here it is:"
        let is_due = || Words::new(&lower_case(last)).excuses();
        opened.is_some()
            || finished.iter().any(|sentence| match mention(sentence, false) {
                Some(Mention::Planned) => !is_due(),
                Some(Mention::Other) => true,
                None => false,
            })
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
    static LETTERS: [[u32; 256]; 3] = [stems_with(0), stems_with(1), stems_with(2)];
    text.windows(3).enumerate().any(|(at, letters)| {
        let stems = |index: usize| LETTERS[index][usize::from(letters[index])];
        let stems = stems(0) & stems(1) & stems(2);
        stems != 0 && starts_stem(stems, &text[at..])
    })
}

/// Returns whether a text starts with one of the stems, which are given as bits.
fn starts_stem(stems: u32, text: &[u8]) -> bool {
    let mut stems = (0..STEMS.len()).filter(|index| stems >> index & 1 == 1);
    stems.any(|index| {
        let stem = STEMS[index].as_bytes();
        text.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem))
    })
}

/// Returns the stems that have a letter at a place, in any case.
const fn stems_with(place: usize) -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < STEMS.len() {
        let letter = STEMS[index].as_bytes()[place];
        table[letter as usize] |= 1 << index;
        table[letter.to_ascii_uppercase() as usize] |= 1 << index;
        index += 1;
    }
    table
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

/// How a sentence is about saying the claim, and not saying it now.
enum Mention {
    /// As a sample, or to deny it.
    Other,
    /// In the future, or on a condition.
    Planned,
}

/// Returns how a sentence is about saying the claim, if it is.
fn mention(sentence: &str, open: bool) -> Option<Mention> {
    let lower = lower_case(sentence);
    let words = Words::new(&lower);
    let about = match open {
        true => words.utters() || words.has_noun(true),
        false => words.has_noun(false) && words.utters(),
    };
    match about {
        true if words.is_sample() || words.negates() => Some(Mention::Other),
        true if words.is_future() && !words.excuses() => Some(Mention::Planned),
        _ => None,
    }
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

pub(super) fn lower_case(sentence: &str) -> String {
    sentence.to_lowercase().replace('’', "'")
}

/// A sentence as lower-case words.
pub(super) struct Words<'s>(pub(super) Vec<&'s str>);

impl<'s> Words<'s> {
    pub(super) fn new(lower: &'s str) -> Self {
        // `main.yml` is one word: the name of a file.
        let words = lower
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '-' | '.')))
            .map(|word| word.trim_matches(['\'', '-', '.']))
            .filter(|word| !word.is_empty());
        Self(words.collect())
    }

    pub(super) fn has(&self, table: &[&str]) -> bool {
        self.0.iter().any(|word| table.contains(word))
    }

    /// Returns whether the words of one of the phrases follow each other.
    pub(super) fn says(&self, phrases: &[&[&str]]) -> bool {
        phrases.iter().any(|phrase| self.0.windows(phrase.len()).any(|words| words == *phrase))
    }

    fn utters(&self) -> bool {
        // "End with", "end my message with".
        let ends_with = |at: usize| {
            let next = self.0[at + 1..].iter().take(4);
            ENDING.contains(&self.0[at]) && next.into_iter().any(|word| *word == "with")
        };
        self.has(UTTERING) || (0..self.0.len()).any(ends_with)
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
