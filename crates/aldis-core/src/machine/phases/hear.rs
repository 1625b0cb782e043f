//! From messages to what the machine needs of them.

use super::event::{Said, SaidMiss, SaidSignal};
use super::state::{State, TokenPolicy};
use crate::message::{Origin, Role};
use crate::redact::redact;
use crate::scan::{Rules, Token, scan_with};
use crate::signal::{Finding, NearMiss, Reason, Signal};
use crate::time::Timestamp;

/// How much of a finding is quoted as evidence.
const QUOTE_MAX: usize = 300;
/// How much of the end of a message is kept.
const CLOSING_MAX: usize = 200;
/// How much is looked at for secrets before it is cut: a key cut in half has no known shape.
const REDACT_MAX: usize = 4_000;

/// One message, as far as the machine cares.
#[derive(Clone, Debug)]
pub struct Utterance<'t> {
    /// What was said.
    pub text: &'t str,
    /// Who said it.
    pub origin: Origin,
    /// When, where that is known.
    pub at: Option<Timestamp>,
    /// Whether it is the agent's final message: only there a near miss is explained.
    pub last: bool,
}

/// Scans messages, oldest first.
///
/// Signals are taken from every message that may signal. Near misses are reported of the final one:
/// what an agent almost said earlier, it has had the chance to say since.
pub fn hear(rules: &Rules, token: &Token, utterances: &[Utterance<'_>]) -> Vec<Said> {
    let mut said = Vec::new();
    for (index, utterance) in (0..).zip(utterances) {
        let Utterance { text, origin, at, last } = utterance;
        for finding in scan_with(rules, text.as_bytes(), origin, token.clone()) {
            match finding {
                Finding::Signal(signal) => said.push(heard(&signal, index, *at, token)),
                Finding::NearMiss(miss) if *last && miss.reason != Reason::UntrustedOrigin => {
                    said.push(missed(&miss, token));
                }
                Finding::NearMiss(_) => {}
            }
        }
    }
    said
}

fn heard(signal: &Signal, message: u64, at: Option<Timestamp>, token: &Token) -> Said {
    let field = |name: &str| signal.fields.get(name)?.as_str().map(str::to_owned);
    let error = field("error").or_else(|| signal.payload.clone());
    Said::Signal(SaidSignal {
        name: signal.name.to_string(),
        meaning: signal.meaning,
        phase: field("phase").map(|phase| phase.to_ascii_lowercase()),
        error: error.map(|error| redact(&error).into_owned()),
        recoverable: field("recoverable").and_then(|value| yes_or_no(&value)),
        message,
        agent: signal.origin.agent.clone().filter(|_| signal.origin.role == Role::Subagent),
        subagent: signal.origin.role == Role::Subagent,
        at,
        line: signal.place.line,
        quote: quote(&signal.raw, token),
        trusted: signal.trusted,
    })
}

/// Returns what a value says; what is neither decides nothing.
fn yes_or_no(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

fn missed(miss: &NearMiss, token: &Token) -> Said {
    Said::NearMiss(SaidMiss {
        name: miss.name.clone(),
        reason: miss.reason.as_str().to_owned(),
        hint: miss.hint(),
        line: miss.place.line,
        // A code that is not the expected one may be another phase's: it is not repeated.
        quote: match miss.reason {
            Reason::WrongToken => miss.name.clone(),
            _ => quote(&miss.raw, token),
        },
    })
}

/// Returns the end of a message, for people who ask why.
pub fn closing_words(text: &str, token: &Token) -> String {
    let text = text.trim();
    let end = text.char_indices().rev().nth(REDACT_MAX).map_or(text, |(at, _)| &text[at..]);
    let text = redact(end);
    let end = match text.char_indices().rev().nth(CLOSING_MAX - 1) {
        Some((at, _)) => format!("…{}", &text[at..]),
        None => text.into_owned(),
    };
    without(end, token)
}

impl State {
    /// Returns which run token the scanner must expect.
    pub fn expected_token(&self) -> Token {
        match (self.config.token, &self.token) {
            (TokenPolicy::Accept, Some(code)) => Token::Accept(code.clone()),
            (TokenPolicy::Require, Some(code)) => Token::Require(code.clone()),
            (TokenPolicy::Accept | TokenPolicy::Off | TokenPolicy::Require, _) => Token::Off,
        }
    }
}

/// The words as evidence: not too long, and without secrets and the run token, which are nobody
/// else's business.
fn quote(raw: &str, token: &Token) -> String {
    let begin: String = raw.chars().take(REDACT_MAX).collect();
    without(redact(&begin).chars().take(QUOTE_MAX).collect(), token)
}

fn without(text: String, token: &Token) -> String {
    match token {
        Token::Accept(code) | Token::Require(code) if !code.is_empty() => {
            text.replace(&**code, "…")
        }
        Token::Accept(_) | Token::Off | Token::Require(_) => text,
    }
}
