//! Finds the places of a text that a secret may be near.
//!
//! Everything that is kept passes here, and hardly any of it is a secret. So what no secret can be
//! without is looked for first, all at once, and what follows it is looked at before anything is
//! compared with the shapes: building those takes longer than all else that a hook does.

use std::sync::LazyLock;

use super::PRIVATE_KEY;
use crate::find::{HitKinds, Literal, LiteralSet};
use crate::visible::unseen_from;

/// Walks over the places of a text that a secret may be near.
pub(super) struct Suspects<'t> {
    text: &'t [u8],
    /// The next of each kind, if there is one.
    next: [Option<usize>; 2],
}

/// Finds the first place of a kind, from a place on.
type Search = fn(&[u8], usize) -> Option<usize>;

const SEARCHES: [Search; 2] = [mark_from, unseen_from];

impl<'t> Suspects<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self { text, next: SEARCHES.map(|search| search(text, 0)) }
    }

    /// Returns the first place at or behind `from`.
    pub(super) fn next(&mut self, from: usize) -> Option<usize> {
        for (next, search) in self.next.iter_mut().zip(SEARCHES) {
            if next.is_some_and(|at| at < from) {
                *next = search(self.text, from);
            }
        }
        self.next.iter().flatten().min().copied()
    }
}

fn mark_from(text: &[u8], from: usize) -> Option<usize> {
    let mut from = from;
    loop {
        let hit = MARKS.find(text, from, text.len())?;
        if may_be_secret(text, hit.start) {
            return Some(hit.start);
        }
        from = hit.start + 1;
    }
}

/// Whether what stands at a mark may have a shape: most marks stand in ordinary words and addresses.
/// What is broken up by invisible characters need not be recognised: those are suspects themselves.
fn may_be_secret(text: &[u8], at: usize) -> bool {
    if let Some(address) = text[at..].strip_prefix(ADDRESS.as_bytes()) {
        return may_be_address(address);
    }
    let is_name = |(name, mark): &(&str, usize)| {
        let from = at.saturating_sub(*mark);
        let word = text.get(from..from + name.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    };
    WORDS.iter().any(|word| word.stands(text, at)) || NAMES.iter().any(is_name)
}

/// Whether an address may hold a password, or be one of those that are as good as one.
fn may_be_address(address: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/:@".contains(byte);
    let part = |text: &[u8]| text.iter().position(ends).unwrap_or(text.len());
    let user = part(address);
    if address.get(user) == Some(&b':') {
        let password = &address[user + 1..];
        return password.get(part(password)) == Some(&b'@');
    }
    HOOKS.iter().any(|hook| address.starts_with(hook.as_bytes()))
}

/// Whether secrets that begin with one of [`WORDS`] may hold a byte.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-+/".contains(&byte)
}

/// What the shapes begin with, or hold.
static MARKS: LazyLock<LiteralSet> = LazyLock::new(|| {
    let words = WORDS.iter().map(|word| &word.text[word.mark..]).chain([ADDRESS]);
    let names = NAMES.iter().flat_map(|(name, mark)| cases(&name[*mark..*mark + NAME_MARK]));
    let words = words.map(str::to_owned);
    LiteralSet::new(words.chain(names).map(|mark| Literal::new(&mark, HitKinds::LINE)).collect())
});

/// What a secret holds.
#[derive(Debug)]
struct Word {
    text: &'static str,
    /// Where the part of it begins that is looked for: one whose first three letters are rare, and so
    /// are the mixtures of them with those of others, which the search takes for them.
    mark: usize,
    /// How many letters follow at least.
    least: usize,
    /// Whether a secret begins with it.
    begins: bool,
}

impl Word {
    const fn new(text: &'static str, mark: usize, least: usize) -> Self {
        Self { text, mark, least, begins: true }
    }

    const fn inside(text: &'static str, mark: usize, least: usize) -> Self {
        Self { text, mark, least, begins: false }
    }

    /// Whether a secret may stand where the mark was found.
    fn stands(&self, text: &[u8], at: usize) -> bool {
        let Some(start) = at.checked_sub(self.mark) else { return false };
        let Some(rest) = text[start..].strip_prefix(self.text.as_bytes()) else { return false };
        let letters = rest.iter().take(self.least).take_while(|byte| is_letter(**byte));
        let before = start.checked_sub(1).map_or(b' ', |before| text[before]);
        let is_inside = before.is_ascii_alphanumeric() || before == b'_';
        letters.count() == self.least && !(self.begins && is_inside)
    }
}

const WORDS: [Word; 20] = [
    Word::new("sk-", 0, 19),
    Word::new("AIza", 0, 35),
    Word::new("hf_", 0, 30),
    Word::new("AKIA", 1, 16),
    Word::new("ASIA", 1, 16),
    Word::new("gho_", 1, 36),
    Word::new("ghp_", 0, 36),
    Word::new("ghr_", 1, 36),
    Word::new("ghs_", 1, 36),
    Word::new("ghu_", 1, 36),
    Word::new("github_pat_", 5, 22),
    Word::new("glpat-", 0, 20),
    Word::new("npm_", 1, 36),
    Word::new("pypi-", 2, 50),
    Word::new("xox", 0, 12),
    Word::inside("k_live_", 0, 16),
    Word::inside("k_test_", 1, 16),
    Word::new("whsec_", 0, 24),
    Word::inside(".eyJ", 1, 8),
    Word::inside(PRIVATE_KEY, 2, 0),
];

/// Words before a secret, whose letters may be capitals, and where the part of them is that is looked
/// for: every choice of capitals is a mark of its own.
const NAMES: [(&str, usize); 2] = [("bearer", 3), ("aws_se", 1)];
/// How long that part is.
const NAME_MARK: usize = 3;

/// What all addresses have.
const ADDRESS: &str = "://";
/// How those go on that nobody else may know.
const HOOKS: [&str; 2] = ["hooks.slack.com/", "discord"];

/// Returns a word with every choice of small and capital letters.
fn cases(word: &str) -> Vec<String> {
    word.chars().fold(vec![String::new()], |begun, letter| {
        let mut choices = vec![letter, letter.to_ascii_uppercase()];
        choices.dedup();
        begun.iter().flat_map(|start| choices.iter().map(move |c| format!("{start}{c}"))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_written_in_every_case() {
        assert_eq!(cases("a_b"), ["a_b", "a_B", "A_b", "A_B"]);
    }

    #[test]
    fn ordinary_text_is_not_suspect() {
        for text in [
            "the task-list-of-the-whole-company-is-long",
            "https://example.org:8080/a@b and http://localhost:3000",
            "rerun the renderer; rows_se; laws_",
            "sk-learn, npm_config_registry, xoxo, test.eyJ",
            "ssh://git@example.org/a.git",
            "[31mred \u{e9}\u{2026}",
        ] {
            assert_eq!(Suspects::of(text.as_bytes()).next(0), None, "{text}");
        }
    }

    #[test]
    fn every_word_is_found_with_enough_letters_behind_it() {
        for word in &WORDS {
            let found = |letters: usize| {
                let text = format!("see {}{} there", word.text, "x".repeat(letters));
                Suspects::of(text.as_bytes()).next(0)
            };
            assert_eq!(found(word.least), Some(4 + word.mark), "{word:?}");
            let fewer = word.least.checked_sub(1);
            assert_eq!(fewer.and_then(found), None, "{word:?}");
        }
    }

    #[test]
    fn places_come_in_order_and_each_kind_is_found() {
        let text = b"http://a.b ftp://u:pw@h PRIVATE KEY \x08 Aws_Session BEARER";
        let mut suspects = Suspects::of(text);
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = suspects.next(from) {
            found.push(at);
            from = at + 1;
        }
        assert_eq!(found, [14, 26, 36, 39, 53]);
    }
}
