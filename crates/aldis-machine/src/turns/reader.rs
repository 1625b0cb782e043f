//! Reads an agent's message: what of it is shown, and whether it ends the turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::config::{AutoDetect, Config};
use crate::words::cut;
use crate::{Evidence, Miss};
use aldis_signal::dialect::{Dialect, Syntax};
use aldis_signal::message::Origin;
use aldis_signal::parser::Parser;
use aldis_signal::scan::{Rules, Token, scan};
use aldis_signal::signal::Finding;

/// How much of a finding is quoted as evidence.
const QUOTE_MAX: usize = 300;
/// How many near misses of one message are kept.
const NEAR_MISSES_MAX: usize = 8;
/// What may stand before a completion phrase in its sentence without changing what it says.
const LEAD_INS: [&str; 12] = [
    "all",
    "everything is",
    "everything's",
    "i am",
    "i am all",
    "i'm",
    "i'm all",
    "it is",
    "it's",
    "it's all",
    "we are",
    "we're",
];

/// One message, as the machine takes it: what is shown, and whether it ends the turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncomingMessage {
    /// The message without the keyword at its end.
    pub display: String,
    /// The keyword that ends the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Evidence>,
    /// What looked like it and was not.
    #[serde(default, alias = "missed", skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<Evidence>,
    /// Whether its last sentence is nothing but a completion phrase.
    #[serde(default, alias = "phrase", skip_serializing_if = "std::ops::Not::not")]
    pub completion_phrase: bool,
    /// Whether it ends with closing punctuation.
    #[serde(default, alias = "closed", skip_serializing_if = "std::ops::Not::not")]
    pub punctuated: bool,
}

/// Reads messages as a channel's configuration wants them read.
#[derive(Debug)]
pub struct MessageReader {
    rules: Rules,
    parser: Option<Parser>,
    phrases: Vec<String>,
}

impl MessageReader {
    /// Makes a reader for a channel. The configuration should have passed its check: a keyword that
    /// cannot be one is never found.
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

    /// Reads one message of an agent.
    pub fn read(&self, text: &str) -> IncomingMessage {
        let mut message = IncomingMessage::default();
        for finding in scan(&self.rules, text.as_bytes(), &Origin::assistant()) {
            match finding {
                Finding::Signal(signal) => {
                    let (quote, line) = (cut(&signal.raw, QUOTE_MAX), signal.place.line);
                    message.signal = Some(Evidence::signal(&signal.name, quote, line, signal.via));
                }
                Finding::NearMiss(miss) if message.near_misses.len() < NEAR_MISSES_MAX => {
                    let seen = Miss::new(&miss, QUOTE_MAX, &Token::Off);
                    message.near_misses.push(Evidence::near_miss(&seen));
                }
                Finding::NearMiss(_) => {}
            }
        }
        let stripper = self.parser.as_ref().filter(|_| message.signal.is_some());
        message.display = stripper.map_or_else(|| text.to_owned(), |parser| parser.strip(text));
        message.punctuated = is_punctuated(&message.display);
        message.completion_phrase = self.ends_with_phrase(&message.display);
        message
    }

    /// Whether the last sentence is a completion phrase, with a lead-in or without. A question is
    /// none, and neither is a phrase among other words, such as "not done".
    fn ends_with_phrase(&self, text: &str) -> bool {
        let Some(sentence) = last_sentence(text) else { return false };
        self.phrases.iter().any(|phrase| {
            let lead = sentence.strip_suffix(&**phrase);
            lead.is_some_and(|lead| lead.is_empty() || is_lead_in(lead))
        })
    }
}

/// Whether the words before a phrase, with the space between them, only lead into it.
fn is_lead_in(lead: &str) -> bool {
    let words = lead.trim_end_matches(' ');
    words.len() < lead.len() && LEAD_INS.contains(&words)
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

/// The last sentence without its punctuation, in small letters; `None` if it is a question.
fn last_sentence(text: &str) -> Option<String> {
    let sentence = text.trim_end_matches(|c: char| c.is_whitespace() || ends_sentence(c));
    if text[sentence.len()..].contains(['?', '？']) {
        return None;
    }
    let start = sentence.rfind(|c: char| ends_sentence(c) || c == '\n');
    let after = start.and_then(|at| sentence.get(at..)).map_or(sentence, |rest| {
        rest.trim_start_matches(|c: char| ends_sentence(c) || c.is_whitespace())
    });
    Some(plain(after))
}

fn plain(words: &str) -> String {
    words.trim().to_lowercase().replace('\u{2019}', "'")
}

fn is_punctuated(text: &str) -> bool {
    let around = |c: char| c.is_whitespace() || "\"')]*_`\u{201d}\u{2019}".contains(c);
    text.trim_end_matches(around).ends_with(ends_sentence)
}

fn ends_sentence(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？')
}
