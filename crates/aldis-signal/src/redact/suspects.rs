//! Whether a secret may be in a text.
//!
//! Everything that is kept passes here, and hardly any of it is a secret. So what no secret can be
//! without is looked for first, all at once, and what follows it is looked at before anything is
//! compared with the shapes: building those takes longer than all else that a hook does.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input};

use super::PRIVATE_KEY;
use crate::visible::has_unseen;

/// Returns whether a secret may be in a text.
pub(super) fn is_suspect(text: &[u8]) -> bool {
    has_mark(text) || has_unseen(text)
}

fn has_mark(text: &[u8]) -> bool {
    let Some(marks) = &*MARKS else { return false };
    let mut from = 0;
    while let Some(hit) = marks.find(Input::new(text).range(from..)) {
        let may_be_secret = match WORDS.get(hit.pattern().as_usize()) {
            Some(word) => word.stands(text, hit.start()),
            None => text[hit.start()] != b':' || may_be_address(&text[hit.end()..]),
        };
        if may_be_secret {
            return true;
        }
        from = hit.start() + 1;
    }
    false
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

/// What the shapes begin with, or hold, in any case.
static MARKS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let marks = WORDS.iter().map(|word| word.text).chain(NAMES).chain([ADDRESS]);
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(marks).ok()
});

/// What a secret holds.
#[derive(Debug)]
struct Word {
    text: &'static str,
    /// How many letters follow at least.
    least: usize,
    /// Whether a secret begins with it.
    begins: bool,
}

impl Word {
    const fn new(text: &'static str, least: usize) -> Self {
        Self { text, least, begins: true }
    }

    const fn inside(text: &'static str, least: usize) -> Self {
        Self { text, least, begins: false }
    }

    /// Whether a secret may stand where the word was found. What is broken up by invisible characters need
    /// not be recognised: those are suspects themselves.
    fn stands(&self, text: &[u8], at: usize) -> bool {
        let Some(rest) = text[at..].strip_prefix(self.text.as_bytes()) else { return false };
        let letters = rest.iter().take(self.least).take_while(|byte| is_letter(**byte));
        let before = at.checked_sub(1).map_or(b' ', |before| text[before]);
        let is_inside = before.is_ascii_alphanumeric() || before == b'_';
        letters.count() == self.least && !(self.begins && is_inside)
    }
}

const WORDS: [Word; 20] = [
    Word::new("sk-", 19),
    Word::new("AIza", 35),
    Word::new("hf_", 30),
    Word::new("AKIA", 16),
    Word::new("ASIA", 16),
    Word::new("gho_", 36),
    Word::new("ghp_", 36),
    Word::new("ghr_", 36),
    Word::new("ghs_", 36),
    Word::new("ghu_", 36),
    Word::new("github_pat_", 22),
    Word::new("glpat-", 20),
    Word::new("npm_", 36),
    Word::new("pypi-", 50),
    Word::new("xox", 12),
    Word::inside("k_live_", 16),
    Word::inside("k_test_", 16),
    Word::new("whsec_", 24),
    Word::inside(".eyJ", 8),
    Word::inside(PRIVATE_KEY, 0),
];

/// Words before a secret, whose letters may be capitals.
const NAMES: [&str; 2] = ["bearer", "aws_se"];

/// What all addresses have.
const ADDRESS: &str = "://";
/// How those go on that nobody else may know.
const HOOKS: [&str; 2] = ["hooks.slack.com/", "discord"];

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(!is_suspect(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn every_word_is_found_with_enough_letters_behind_it() {
        for word in &WORDS {
            let found = |letters: usize| {
                let text = format!("see {}{} there", word.text, "x".repeat(letters));
                is_suspect(text.as_bytes())
            };
            assert!(found(word.least), "{word:?}");
            let fewer = word.least.checked_sub(1);
            assert!(!fewer.is_some_and(found), "{word:?}");
        }
    }

    #[test]
    fn each_kind_is_found() {
        for text in ["ftp://u:pw@h", "PRIVATE KEY", "\x08", "Aws_Session", "BEARER"] {
            assert!(is_suspect(text.as_bytes()), "{text:?}");
        }
        assert!(!is_suspect(b"http://a.b"));
    }
}
