//! Pure state machines: `(state, now, event) -> effects`, and the reason for each.
//!
//! A machine never reads a clock or a file. Whoever drives it hands over events with their time,
//! makes the step durable and then performs the effects. Given the same events it takes the same
//! steps, so a journal can be replayed.

mod accessors;
pub mod calls;
pub mod delivery;
pub(crate) mod evidence;
pub(crate) mod limits;
mod machine;
pub mod phases;
pub mod proof;
mod rules;
pub mod run;
pub mod stagnation;
mod trust;
pub mod turns;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use aldis_signal::codes;
use aldis_signal::signal::Via;

pub use evidence::Miss;
pub use machine::{
    Begun, HumanCommand, Machine, NotPossible, Outcome, StartError, Summary, Urgency,
};

/// Why a machine did what it did: the rule, what it rests on, and what a human can do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The rule that fired: `run/iterations-used-up`. `docs/rules.md` lists them.
    pub rule: String,
    /// The task it is about, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What was decided, as one short sentence in the past tense.
    pub summary: String,
    /// Why this rule applied.
    pub because: String,
    /// What was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The counters after the decision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// What happens next, or what to do.
    pub remedy: String,
}

impl Decision {
    /// A decision by a rule, without its reasons.
    pub(crate) fn new(
        rule: impl Into<String>,
        summary: impl Into<String>,
        counters: BTreeMap<String, u64>,
    ) -> Self {
        let (because, evidence) = (String::new(), Vec::new());
        let (rule, summary) = (rule.into(), summary.into());
        let (task, remedy) = (None, "nothing to do".to_owned());
        Self { rule, task, summary, because, evidence, counters, remedy }
    }

    /// Says why the rule applied.
    pub(crate) fn because(&mut self, because: impl Into<String>) -> &mut Self {
        self.because = because.into();
        self
    }

    /// Says what it rests on.
    pub(crate) fn seen(&mut self, evidence: impl IntoIterator<Item = Evidence>) -> &mut Self {
        self.evidence = evidence.into_iter().collect();
        self
    }

    /// Says how a counter stands.
    pub(crate) fn count(&mut self, name: &str, count: impl TryInto<u64>) -> &mut Self {
        self.counters.insert(name.to_owned(), count.try_into().unwrap_or(u64::MAX));
        self
    }

    /// Says what happens next, or what to do; otherwise there is nothing to do.
    pub(crate) fn next(&mut self, remedy: impl Into<String>) -> &mut Self {
        self.remedy = remedy.into();
        self
    }
}

/// One thing a decision rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// `signal`, `near_miss`, `refused`, `said`, `output` (of a check or a crashed agent), `check` (how
    /// it ended), `finding` (what speaks against a claim; `reason` is its rule) or `message` (of a
    /// human).
    pub what: String,
    /// The signal's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why it does not count, as a stable code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The words themselves, cut to a reasonable length.
    pub quote: String,
    /// Where in its message, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The sub-agent that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How a signal came.
    #[serde(default, skip_serializing_if = "Via::is_said")]
    pub via: Via,
}

impl Evidence {
    /// Words of somebody, without a signal.
    pub(crate) fn new(what: &str, quote: impl Into<String>) -> Self {
        Self { what: what.to_owned(), quote: quote.into(), ..Self::default() }
    }

    /// A signal.
    pub(crate) fn signal(name: &str, quote: &str, line: u64, via: Via) -> Self {
        let name = Some(name.to_owned());
        Self { name, line: Some(line), via, ..Self::new("signal", quote) }
    }

    /// Something that looked like one.
    pub(crate) fn near_miss(miss: &Miss) -> Self {
        let (name, reason) = (Some(miss.name.clone()), Some(miss.reason.clone()));
        Self { name, reason, line: Some(miss.line), ..Self::new("near_miss", &*miss.quote) }
    }

    /// Says why it does not count.
    pub(crate) fn refused(self, reason: &str) -> Self {
        Self { what: "refused".to_owned(), reason: Some(reason.to_owned()), ..self }
    }

    /// Says which agent it comes from.
    pub(crate) fn by_agent(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }
}

codes! {
    /// A refusal by a machine of a well-formed signal. The codes are stable.
    pub enum Refusal {
        /// Success and failure about one subject in one message.
        Contradictory = "contradictory",
        /// Said before the state it would change began.
        LateSignal = "late_signal",
        /// A completion of another phase than the current one.
        OutOfOrder = "out_of_order",
        /// What came in a stronger way in the same turn says something else about the same subject.
        Outranked = "outranked",
        /// Said by someone who may not.
        RoleNotAllowed = "role_not_allowed",
        /// A view file was changed from outside.
        StateEdited = "state_edited",
        /// About something else than the agent was started for.
        SubjectMismatch = "subject_mismatch",
        /// A phase that began in this very message has a code the agent cannot know.
        WrongToken = "wrong_token",
    }
}
