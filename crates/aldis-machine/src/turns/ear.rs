//! From an agent's words to what the machine needs of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::config::{AutoDetect, Config};
use crate::Evidence;
use aldis_signal::dialect::{Dialect, Syntax};
use aldis_signal::message::Origin;
use aldis_signal::parser::Parser;
use aldis_signal::scan::{Rules, scan};
use aldis_signal::signal::Finding;

/// How much of a finding is quoted as evidence.
const QUOTE_MAX: usize = 300;
/// How many near misses of one message are kept.
const MISSES_MAX: usize = 8;

/// One message, as the machine takes it: what is shown, and whether it ends the turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heard {
    /// The message without the keyword at its end.
    pub display: String,
    /// The keyword that ends the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Evidence>,
    /// What looked like it and was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Evidence>,
    /// Whether its last sentence is nothing but a completion phrase.
    #[serde(default, skip_serializing_if = "is_false")]
    pub phrase: bool,
    /// Whether it ends with closing punctuation.
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Hears messages as a channel's configuration wants them heard.
#[derive(Debug)]
pub struct Ear {
    rules: Rules,
    parser: Option<Parser>,
    phrases: Vec<String>,
}

impl Ear {
    /// Makes an ear for a channel. The configuration should have passed its check: a keyword that
    /// cannot be one is never heard.
    pub fn new(config: &Config) -> Self {
        let dialect = dialect(config).map(Arc::new);
        let AutoDetect { enabled, completion_phrases, .. } = &config.auto_detect;
        let phrases = completion_phrases.iter().filter(|_| *enabled);
        Self {
            rules: Rules::new(dialect.clone()),
            parser: dialect.map(Parser::new),
            phrases: phrases.map(|phrase| plain(phrase)).collect(),
        }
    }

    /// Hears one message of an agent.
    pub fn hear(&self, text: &str) -> Heard {
        let mut heard = Heard::default();
        for finding in scan(&self.rules, text.as_bytes(), &Origin::assistant()) {
            match finding {
                Finding::Signal(signal) => {
                    heard.signal = Some(Evidence {
                        what: "signal".to_owned(),
                        name: Some(signal.name.to_string()),
                        quote: signal.raw.chars().take(QUOTE_MAX).collect(),
                        line: Some(signal.place.line),
                        via: signal.via,
                        ..Evidence::default()
                    });
                }
                Finding::NearMiss(miss) if heard.missed.len() < MISSES_MAX => {
                    heard.missed.push(Evidence {
                        what: "near_miss".to_owned(),
                        name: Some(miss.name.to_string()),
                        reason: Some(miss.reason.as_str().to_owned()),
                        quote: miss.raw.chars().take(QUOTE_MAX).collect(),
                        line: Some(miss.place.line),
                        ..Evidence::default()
                    });
                }
                Finding::NearMiss(_) => {}
            }
        }
        let stripper = self.parser.as_ref().filter(|_| heard.signal.is_some());
        heard.display = stripper.map_or_else(|| text.to_owned(), |parser| parser.strip(text));
        heard.closed = is_closed(&heard.display);
        heard.phrase = self.phrases.contains(&last_sentence(&heard.display));
        heard
    }
}

/// The built-in dialect with the channel's words.
fn dialect(config: &Config) -> Option<Dialect> {
    let mut dialect = Dialect::builtin("turn")?.with_word(&config.keyword).ok()?;
    if let Syntax::Trailer(trailer) = &mut dialect.syntax {
        trailer.case_sensitive = config.case_sensitive;
        trailer.require_at_end = config.require_at_end;
        trailer.alternative_signals.clone_from(&config.alternative_signals);
    }
    Some(dialect)
}

/// The last sentence without its punctuation, in small letters.
fn last_sentence(text: &str) -> String {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || ends_sentence(c));
    let start = text.rfind(|c: char| ends_sentence(c) || c == '\n');
    let after = start.and_then(|at| text.get(at..)).map_or(text, |rest| {
        rest.trim_start_matches(|c: char| ends_sentence(c) || c.is_whitespace())
    });
    plain(after)
}

fn plain(words: &str) -> String {
    words.trim().to_lowercase().replace('\u{2019}', "'")
}

fn is_closed(text: &str) -> bool {
    let around = |c: char| c.is_whitespace() || "\"')]*_`\u{201d}\u{2019}".contains(c);
    text.trim_end_matches(around).ends_with(ends_sentence)
}

fn ends_sentence(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？')
}
