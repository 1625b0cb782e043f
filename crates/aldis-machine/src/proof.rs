//! Proof of done: checks that an agent cannot bend.
//!
//! Three things say whether a claim to be done holds: what the checks said ([`CheckResult`]), what of
//! their files changed since the work began ([`FileChange`]), and the policy ([`Config`]). One pure
//! function, [`judge`], makes a [`Verdict`] of them, with a named [`Rule`] for each reason.
//!
//! [`Proof`] is the sequence: it says what to do next (inspect the files, run a check, judge) and
//! takes what came of it. A second opinion can refuse what the checks accept. Every machine that has claims checked drives the same sequence.

mod config;
mod opinion;
mod record;
mod round;
mod verdict;
mod words;

#[cfg(test)]
mod tests;

pub use config::{Check, Config, OnChange, RedFirst};
pub use opinion::{Opinion, OpinionVerdict};
pub use record::{
    ChangeKind, CheckOutput, CheckResult, CheckStatus, Environment, FileChange, FileClass,
    Inspection, Pinned, TestCounts,
};
pub use round::{Claim, Proof, Round, Stage, Step};
pub use verdict::{Acceptance, Finding, Rule, Verdict, Weight, judge};
pub(crate) use words::{capital, evidence, opinion as opinion_evidence};
