//! From messages to what the machine needs of them.

use super::event::{Said, SaidSignal};
use super::state::{State, TokenPolicy};
use crate::Miss;
use crate::evidence::{beginning, ending};
use aldis_signal::message::{Origin, Role};
use aldis_signal::redact::redact;
use aldis_signal::scan::{Rules, Token, scan_with};
use aldis_signal::signal::{Finding, Reason, Signal, Via};
use aldis_signal::time::Timestamp;

/// How much of a finding is quoted as evidence.
const QUOTE_MAX: usize = 300;
/// How many near misses are kept, beside the last.
const MISSES_MAX: usize = 32;
/// How much of the end of a message is kept.
const CLOSING_MAX: usize = 200;

/// One message, as far as the machine cares.
#[derive(Clone, Debug)]
pub struct Utterance<'t> {
    /// What was said.
    pub text: &'t str,
    /// Who said it.
    pub origin: Origin,
    /// When, where that is known.
    pub at: Option<Timestamp>,
    /// Whether its place shows that it is new; see [`SaidSignal::new_by_position`].
    pub new_by_position: bool,
    /// Whether it is the agent's final message: only there a near miss is explained.
    pub last: bool,
}

/// Scans messages, oldest first.
///
/// Signals are taken from every message that may signal. Near misses are reported of the final one:
/// what an agent almost said earlier, it has had the chance to say since. What a message repeats
/// right away is kept once, and of many near misses the first ones and the last: a model that
/// repeats itself must not fill the journal.
pub fn hear(rules: &Rules, token: &Token, utterances: &[Utterance<'_>]) -> Vec<Said> {
    let mut said = Vec::new();
    let (mut misses, mut last_miss) = (0, None);
    for (index, utterance) in (0..).zip(utterances) {
        let Utterance { text, origin, last, .. } = utterance;
        for finding in scan_with(rules, text.as_bytes(), origin, token.clone()) {
            match finding {
                Finding::Signal(signal) => {
                    let signal = heard(&signal, index, utterance, token);
                    if !matches!(said.last(), Some(Said::Signal(it)) if repeats(it, &signal)) {
                        said.push(Said::Signal(signal));
                    }
                }
                Finding::NearMiss(miss) if *last && miss.reason != Reason::UntrustedOrigin => {
                    misses += 1;
                    if misses <= MISSES_MAX {
                        said.push(Said::NearMiss(Miss::new(&miss, QUOTE_MAX, token)));
                    } else {
                        last_miss = Some(miss);
                    }
                }
                Finding::NearMiss(_) => {}
            }
        }
    }
    said.extend(last_miss.map(|miss| Said::NearMiss(Miss::new(&miss, QUOTE_MAX, token))));
    said
}

/// Whether a signal says once more what the one before it said.
fn repeats(before: &SaidSignal, signal: &SaidSignal) -> bool {
    let words = |it: &SaidSignal| (it.message, it.meaning, it.recoverable, it.subagent, it.trusted);
    let names = |it: &SaidSignal| {
        [Some(it.name.clone()), it.phase.clone(), it.error.clone(), it.agent.clone()]
    };
    words(before) == words(signal) && names(before) == names(signal)
}

fn heard(signal: &Signal, message: u64, utterance: &Utterance<'_>, token: &Token) -> SaidSignal {
    let field = |name: &str| signal.fields.get(name)?.as_str().map(str::to_owned);
    let error = field("error").or_else(|| signal.payload.clone());
    SaidSignal {
        name: signal.name.to_string(),
        meaning: signal.meaning,
        phase: field("phase").map(|phase| phase.to_ascii_lowercase()),
        error: error.map(|error| redact(&error).into_owned()),
        recoverable: field("recoverable").and_then(|value| yes_or_no(&value)),
        message,
        agent: signal.origin.agent.clone().filter(|_| signal.origin.role == Role::Subagent),
        subagent: signal.origin.role == Role::Subagent,
        at: utterance.at,
        new_by_position: utterance.new_by_position,
        line: signal.place.line,
        quote: beginning(&signal.raw, QUOTE_MAX, token),
        trusted: signal.via == Via::Token,
        via: signal.via,
    }
}

/// Returns what a value says; what is neither decides nothing.
fn yes_or_no(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

/// Returns the end of a message, for people who ask why.
pub fn closing_words(text: &str, token: &Token) -> String {
    ending(text.trim(), CLOSING_MAX, token)
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
