//! Signals as far as a supervised run needs them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::evidence::beginning;
use crate::trust::{self, Rank, RankedReport};
use crate::words::cut;
use crate::{Evidence, Refusal};
use aldis_signal::dialect::{Dialect, Syntax};
use aldis_signal::redact::redact;
use aldis_signal::scan::Token;
use aldis_signal::signal::{MERGE_RESOLVED, Meaning, Signal, Via};

/// How much of a signal is quoted as evidence.
const QUOTE_MAX: usize = 300;
/// How much of a signal's payload is kept. A question this long is still answered by a human.
const TEXT_MAX: usize = 16_000;
/// How many suggested answers are kept, and how much of each.
const OPTIONS_MAX: usize = 20;
const OPTION_MAX: usize = 200;

/// A signal that the supervised agent reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSignal {
    /// Its name in its dialect.
    pub name: String,
    /// Its meaning in any dialect.
    pub meaning: Meaning,
    /// Its payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answers that its question suggests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What the agent would do without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
    /// The phase it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The percentage that its dialect gives to the phase.
    #[serde(default, alias = "implied", skip_serializing_if = "Option::is_none")]
    pub phase_progress: Option<u8>,
    /// The agent's own count of iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Whether it claims that there was nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_op: bool,
    /// The number of its message: signals of one message can contradict each other.
    #[serde(default)]
    pub message: u64,
    /// Its text, cut to a reasonable length.
    #[serde(default)]
    pub quote: String,
    /// The line in the message.
    #[serde(default)]
    pub line: u64,
    /// How it came.
    #[serde(default, skip_serializing_if = "Via::is_said")]
    pub via: Via,
}

impl RunSignal {
    /// Takes over what a signal says, without its secrets; `message` tells messages apart.
    pub fn new(signal: &Signal, message: u64) -> Self {
        let field = |name: &str| signal.fields.get(name)?.as_str().map(str::to_owned);
        let text = signal.payload.clone().or_else(|| field("reason")).or_else(|| field("message"));
        let phase = field("phase");
        let option = |text: &str| cut(&redact(text), OPTION_MAX).to_owned();
        let options = signal.fields.get("options").and_then(Value::as_array);
        let options = options.into_iter().flatten().filter_map(Value::as_str);
        Self {
            name: signal.name.to_string(),
            meaning: signal.meaning,
            text: text.map(|text| cut(&redact(&text), TEXT_MAX).to_owned()),
            options: options.take(OPTIONS_MAX).map(option).collect(),
            default: field("default").as_deref().map(option),
            progress: signal.progress,
            phase_progress: phase.as_deref().and_then(|it| phase_progress(&signal.dialect, it)),
            phase,
            iteration: signal.fields.get("iteration").and_then(count),
            no_op: signal.fields.get("no_op").is_some_and(|value| *value == Value::Bool(true)),
            message,
            quote: beginning(&signal.raw, QUOTE_MAX, &Token::Off),
            line: signal.place.line,
            via: signal.via,
        }
    }

    /// Returns whether it claims that a merge is resolved.
    pub(super) fn resolves_merge(&self) -> bool {
        self.meaning == Meaning::Done && self.name == MERGE_RESOLVED
    }

    /// Returns whether it reports the same as another one, wherever they stand.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        let reported = |signal: &Self| (signal.progress, signal.iteration, signal.no_op);
        self.name == other.name
            && self.meaning == other.meaning
            && self.text == other.text
            && self.phase == other.phase
            && reported(self) == reported(other)
    }

    /// Returns it as a decision shows it.
    fn evidence(&self) -> Evidence {
        Evidence::signal(&self.name, &self.quote, self.line, self.via)
    }
}

/// Returns how each of the signals of one attempt stands. All are about the work of the run.
pub(super) fn ranks(signals: &[RunSignal]) -> Vec<Rank> {
    let claims: Vec<RankedReport<'_>> = signals
        .iter()
        .map(|RunSignal { name, meaning, via, .. }| RankedReport {
            subject: ("", ""),
            name,
            meaning: *meaning,
            via: *via,
        })
        .collect();
    trust::ranks(&claims)
}

/// Returns them as a decision shows them: which of them do not count beside a stronger one, too.
pub(super) fn evidence(signals: &[RunSignal]) -> Vec<Evidence> {
    let shown = |(signal, rank): (&RunSignal, Rank)| match rank {
        Rank::Outranked(_) => signal.evidence().refused(Refusal::Outranked.as_str()),
        Rank::Counts | Rank::Repeats => signal.evidence(),
    };
    signals.iter().zip(ranks(signals)).map(shown).collect()
}

/// Says which of them do not count beside a stronger one, as a clause.
pub(super) fn outranked(signals: &[RunSignal]) -> Option<String> {
    let why = |(signal, rank): (&RunSignal, Rank)| match rank {
        Rank::Outranked(by) => {
            Some(format!("{} does not count: {}", signal.name, trust::outranked(by)))
        }
        Rank::Counts | Rank::Repeats => None,
    };
    signals.iter().zip(ranks(signals)).filter_map(why).next_back()
}

/// Returns the percentage that a built-in dialect gives to a phase.
fn phase_progress(dialect: &str, phase: &str) -> Option<u8> {
    let Syntax::Fence(fence) = &Dialect::builtin(dialect)?.syntax else { return None };
    fence.implied_progress.get(phase).or_else(|| fence.implied_progress.get("*")).copied()
}

fn count(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}
