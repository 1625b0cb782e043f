//! Scans messages for what the machine needs of them.

use super::event::{PhaseFinding, PhaseSignal};
use super::state::State;
use crate::Miss;
use crate::evidence::{beginning, ending};
use aldis_signal::message::{Origin, Role};
use aldis_signal::redact::redact;
use aldis_signal::scan::{Rules, Scan, Token};
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
pub struct AgentMessage<'t> {
    /// Its text.
    pub text: &'t str,
    /// Who wrote it.
    pub origin: Origin,
    /// When, where that is known.
    pub at: Option<Timestamp>,
    /// Whether its position shows that it is new; see [`PhaseSignal::new_by_position`].
    pub new_by_position: bool,
    /// Whether it is the agent's final message: only there a near miss is explained.
    pub is_final: bool,
}

/// Scans messages, oldest first.
///
/// Signals are taken from every message that may signal. Near misses are reported of the final one:
/// an agent that almost reported something earlier has had the chance to report it since. A signal
/// that a message repeats right away is kept once, and of many near misses the first ones and the
/// last: a model that repeats itself must not fill the journal.
pub fn scan_messages(
    rules: &Rules,
    token: &Token,
    messages: &[AgentMessage<'_>],
) -> Vec<PhaseFinding> {
    let mut findings = Vec::new();
    let (mut misses, mut last_miss) = (0, None);
    for (index, message) in (0..).zip(messages) {
        let AgentMessage { text, origin, is_final, .. } = message;
        let scan = Scan::new(rules).origin((*origin).clone()).token(token.clone());
        for finding in scan.run(text.as_bytes()) {
            match finding {
                Finding::Signal(signal) => {
                    let signal = phase_signal(&signal, index, message, token);
                    let last = findings.last();
                    if !matches!(last, Some(PhaseFinding::Signal(it)) if repeats(it, &signal)) {
                        findings.push(PhaseFinding::Signal(signal));
                    }
                }
                Finding::NearMiss(miss) if *is_final && miss.reason != Reason::UntrustedOrigin => {
                    misses += 1;
                    if misses <= MISSES_MAX {
                        findings.push(PhaseFinding::NearMiss(Miss::new(&miss, QUOTE_MAX, token)));
                    } else {
                        last_miss = Some(miss);
                    }
                }
                Finding::NearMiss(_) => {}
            }
        }
    }
    findings.extend(last_miss.map(|it| PhaseFinding::NearMiss(Miss::new(&it, QUOTE_MAX, token))));
    findings
}

/// Returns what an agent reported by a call, as the message after these findings.
pub fn call_finding(signal: &Signal, after: &[PhaseFinding], at: Timestamp) -> PhaseFinding {
    let last = after.iter().filter_map(|finding| Some(finding.signal()?.message)).max();
    let origin = signal.origin.clone();
    let message =
        AgentMessage { text: "", origin, at: Some(at), new_by_position: false, is_final: false };
    let index = last.map_or(0, |last| last.saturating_add(1));
    PhaseFinding::Signal(phase_signal(signal, index, &message, &Token::Off))
}

/// Whether a signal reports once more what the one before it reported.
fn repeats(before: &PhaseSignal, signal: &PhaseSignal) -> bool {
    let facts =
        |it: &PhaseSignal| (it.message, it.meaning, it.recoverable, it.subagent, it.trusted);
    let names = |it: &PhaseSignal| {
        [Some(it.name.clone()), it.phase.clone(), it.error.clone(), it.agent.clone()]
    };
    facts(before) == facts(signal) && names(before) == names(signal)
}

fn phase_signal(
    signal: &Signal,
    index: u64,
    message: &AgentMessage<'_>,
    token: &Token,
) -> PhaseSignal {
    let field = |name: &str| signal.fields.get(name)?.as_str().map(str::to_owned);
    let error = field("error").or_else(|| signal.payload.clone());
    PhaseSignal {
        name: signal.name.to_string(),
        meaning: signal.meaning,
        phase: field("phase").map(|phase| phase.to_ascii_lowercase()),
        error: error.map(|error| redact(&error).into_owned()),
        recoverable: field("recoverable").and_then(|value| yes_or_no(&value)),
        message: index,
        agent: signal.origin.agent.clone().filter(|_| signal.origin.role == Role::Subagent),
        subagent: signal.origin.role == Role::Subagent,
        at: message.at,
        new_by_position: message.new_by_position,
        line: signal.place.line,
        quote: beginning(&signal.raw, QUOTE_MAX, token),
        trusted: signal.via == Via::Token,
        via: signal.via,
    }
}

/// Reads a yes or no; anything else is neither.
fn yes_or_no(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

/// Returns the end of a message, for people who ask why.
pub fn closing_text(text: &str, token: &Token) -> String {
    ending(text.trim(), CLOSING_MAX, token)
}

impl State {
    /// Returns which run token the scanner must expect.
    pub fn expected_token(&self) -> Token {
        self.setup.config.token.expects(self.token.clone())
    }
}
