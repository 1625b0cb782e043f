//! Megabytes for benchmarks: plain agent text, host transcripts, and inputs that hurt.
//!
//! The number of genuine signals is known by construction here too, so that a benchmark can refuse
//! to time a scanner that finds something else.

mod adversarial;
mod transcript;

pub use self::adversarial::{ADVERSARIAL, Adversarial, adversarial};
pub use self::transcript::{BulkTranscript, claude_transcript};
use super::{Expected, Rng, claims, filler};

/// Dialects whose signals may stand anywhere in a long text. The first must be pilot's: as long as
/// there is one of its own, the `EXIT_SIGNAL:` line in ralph's block is not read as its old form.
const ROTATION: &[&str] =
    &["pilot", "chorus", "caw", "delivery", "promise", "ralphex", "event", "axiom", "ralph-status"];

/// One long message.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The message.
    pub text: String,
    /// The signals in it, in text order, each with its dialect.
    pub signals: Vec<(&'static str, Expected)>,
}

/// Near misses as they occur in agents' text: names in prose, quoted signals, other spellings.
pub(super) const BAIT: &[&str] = &[
    "The enum has the variants QA_COMPLETED, REVIEW_STARTED and NOT_READY_FOR_REVIEWS.",
    "In the docs `<chorus>COMPLETE</chorus>` and `SIGNAL: AUTO_COMPLETE` are explained.",
    "```text\n---\nSIGNAL: QA_COMPLETE\nPHASE: qa\nSTATUS: complete\n---\n```",
    "```yaml\nREADY_FOR_REVIEW: task-1\nAUDIT_PASSED: task-1\n```",
    "> <promise>COMPLETE</promise>",
    "The column ready_for_review is a boolean; turn_complete is its twin.",
    "docs/signals.md:12:READY_FOR_REVIEW: task-1\ndocs/signals.md:13:<<<RALPHEX:ALL_TASKS_DONE>>>",
    "<!-- <axiom>COMPLETE</axiom> -->",
    "| <event topic=\"build.done\">x</event> | TURN_COMPLETE |",
    "  AUDIT_PASSED: task-9",
];

/// How far near misses are apart, in bytes: two for each signal of the usual text.
const BAIT_EVERY: usize = 25_000;

/// Makes agent-like plain text of about `bytes` bytes (prose, code, diffs, logs, markdown, near
/// misses), with a genuine signal of a rotating dialect about every `signal_every` bytes.
pub fn agent_text(bytes: usize, signal_every: Option<usize>, seed: u64) -> Bulk {
    let mut rng = Rng::new(seed);
    let mut text = String::with_capacity(bytes + 4096);
    let mut signals = Vec::new();
    let mut due = signal_every.unwrap_or(usize::MAX);
    let mut bait_due = 0;
    while text.len() < bytes {
        if text.len() >= due {
            let dialect = ROTATION[signals.len() % ROTATION.len()];
            let claim = claims::done(&mut rng, dialect);
            text.push_str(&filler::lead(&mut rng));
            text.push_str("\n\n");
            text.push_str(&claim.text);
            signals.push((dialect, claim.expected));
            due = due.saturating_add(signal_every.unwrap_or(usize::MAX));
        } else if text.len() >= bait_due {
            text.push_str(rng.pick(BAIT));
            bait_due = text.len() + BAIT_EVERY;
        } else {
            text.push_str(&filler::long_piece(&mut rng));
        }
        text.push_str("\n\n");
    }
    Bulk { text, signals }
}

#[cfg(test)]
mod tests;
