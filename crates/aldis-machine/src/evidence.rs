//! Words of agents as evidence: short, and without secrets and run tokens, which are nobody else's
//! business.

use serde::{Deserialize, Serialize};

use aldis_signal::redact::redact;
use aldis_signal::scan::Token;
use aldis_signal::signal::{NearMiss, Reason};

/// How much is looked at for secrets before it is cut: a key cut in half has no known shape.
const REDACT_MAX: usize = 4_000;

/// Something that looked like a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// The signal it resembles.
    pub name: String,
    /// Why it does not count.
    pub reason: String,
    /// What to write instead.
    pub hint: String,
    /// The line in its message.
    #[serde(default)]
    pub line: u64,
    /// The words, cut to a reasonable length.
    #[serde(default)]
    pub quote: String,
}

impl Miss {
    /// Takes over what is known of a near miss, with at most `most` letters of its words.
    pub(crate) fn new(miss: &NearMiss, most: usize, token: &Token) -> Self {
        Self {
            name: miss.name.to_string(),
            reason: miss.reason.as_str().to_owned(),
            hint: miss.hint(),
            line: miss.place.line,
            // A code that is not the expected one may be somebody else's: it is not repeated.
            quote: match miss.reason {
                Reason::WrongToken => miss.name.to_string(),
                _ => beginning(&miss.raw, most, token),
            },
        }
    }
}

/// The first words of a text.
pub(crate) fn beginning(text: &str, most: usize, token: &Token) -> String {
    let begin = text.char_indices().nth(REDACT_MAX).map_or(text, |(at, _)| &text[..at]);
    let clean = without_token(&redact(begin), token);
    match clean.char_indices().nth(most) {
        Some((at, _)) => clean[..at].to_owned(),
        None => clean,
    }
}

/// The last words of a text.
pub(crate) fn ending(text: &str, most: usize, token: &Token) -> String {
    let end = text.char_indices().rev().nth(REDACT_MAX).map_or(text, |(at, _)| &text[at..]);
    let clean = without_token(&redact(end), token);
    match clean.char_indices().rev().nth(most - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &clean[at..]),
        _ => clean,
    }
}

fn without_token(text: &str, token: &Token) -> String {
    match token {
        Token::Accept(code) | Token::Require(code) if !code.is_empty() => {
            text.replace(&**code, "…")
        }
        Token::Accept(_) | Token::Off | Token::Require(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    //! What is kept of an agent's words.

    use super::*;

    #[test]
    fn words_are_short_and_keep_no_secrets() {
        let key = format!("ghp_{}", "x".repeat(36));
        let token = Token::Require("k7qz".to_owned());
        for (text, begin, end) in [
            ("all done".to_owned(), "all done", "all done"),
            ("0123456789abcdef".to_owned(), "0123456789", "…6789abcdef"),
            ("0123456789".to_owned(), "0123456789", "0123456789"),
            ("k7qz".to_owned(), "…", "…"),
            (key, "[redacted]", "[redacted]"),
        ] {
            assert_eq!(beginning(&text, 10, &token), begin, "{text}");
            assert_eq!(ending(&text, 10, &token), end, "{text}");
        }
    }
}
