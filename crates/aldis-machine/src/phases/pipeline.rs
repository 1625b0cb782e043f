//! Pipelines as data: phases in order, the signal that ends each, the flag that skips it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use aldis_signal::dialect::Dialect;
use aldis_signal::signal::Meaning;

/// What follows the last phase.
pub const COMPLETE: &str = "complete";
/// Where a run is that gave up.
pub const FAILED: &str = "failed";

/// One phase of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its name, as prompts and files show it.
    pub name: String,
    /// The signal that ends it; without one, any signal of the dialect that means `done` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What it is for and what it leaves behind, for the prompt.
    #[serde(default)]
    pub purpose: String,
    /// The flag that leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
}

/// Phases in order, and the dialect in which agents report that they are complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// The dialect that agents write.
    pub dialect: String,
    /// The signal that ends the whole run, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

/// What is wrong with a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// No phase at all.
    #[error("a pipeline needs at least one phase")]
    Empty,
    /// Too many phases.
    #[error("a pipeline has at most {PHASES_MAX} phases, not {0}")]
    TooMany(usize),
    /// A name that is taken, or that means an end.
    #[error("two phases are named `{0}`, or the name is reserved")]
    Name(String),
    /// A name that cannot stand in a file or a prompt.
    #[error("`{0}` cannot name a phase; use 1 to 64 letters, digits, `-` or `_`")]
    Malformed(String),
    /// A signal the dialect does not have.
    #[error("dialect `{dialect}` has no signal `{signal}`")]
    Signal {
        /// The dialect.
        dialect: String,
        /// The signal.
        signal: String,
    },
    /// No phase could ever be ended in this dialect.
    #[error("dialect `{0}` has no signal that means `done`")]
    NothingEnds(String),
}

/// The longest pipeline.
const PHASES_MAX: usize = 64;

/// Name, signal, skip flag and purpose. The purpose names what the phase leaves behind.
#[rustfmt::skip]
const CAW: &[(&str, &str, &str, &str)] = &[
    ("expansion", "EXPANSION_COMPLETE", "", "Analyse the requirements of the task, and write down everything that they imply."),
    ("init", "INIT_COMPLETE", "", "Prepare the work: create the folder `.caw/` for the notes of the later phases, install what is missing, and make sure that the project builds and its tests run."),
    ("planning", "PLANNING_COMPLETE", "", "Write the plan to `task_plan.md`: the steps, their order, and how to check each."),
    ("execution", "EXECUTION_COMPLETE", "", "Carry out every step of `task_plan.md`."),
    ("qa", "QA_COMPLETE", "skip_qa", "Run the QA loop: build, test and fix until everything passes."),
    ("review", "REVIEW_COMPLETE", "skip_review", "Review the whole change, and write down every finding for the fix phase."),
    ("fix", "FIX_COMPLETE", "skip_review", "Fix every finding of the review."),
    ("check", "CHECK_COMPLETE", "skip_review", "Check that the result complies with the task and with `task_plan.md`."),
    ("reflect", "REFLECT_COMPLETE", "skip_reflect", "Complete the Ralph Loop: look back at the run, and write down what to keep and what to improve."),
];

impl Pipeline {
    /// Returns caw's nine phases.
    pub fn caw() -> Self {
        let phase = |&(name, signal, skip, purpose): &(&str, &str, &str, &str)| Phase {
            name: name.to_owned(),
            signal: Some(signal.to_owned()),
            purpose: purpose.to_owned(),
            skip: Some(skip.to_owned()).filter(|skip| !skip.is_empty()),
        };
        Self {
            name: "caw".to_owned(),
            dialect: "caw".to_owned(),
            finish: Some("AUTO_COMPLETE".to_owned()),
            phases: CAW.iter().map(phase).collect(),
        }
    }

    /// Returns a loop: one phase, which any signal of a dialect that means `done` ends. The dialect
    /// is named as a person would: `chorus`, `promise=ALL TESTS PASS`.
    pub fn looping(dialect: &str) -> Self {
        let phase =
            Phase { name: "work".to_owned(), signal: None, purpose: String::new(), skip: None };
        Self {
            name: "loop".to_owned(),
            dialect: dialect.to_owned(),
            finish: None,
            phases: vec![phase],
        }
    }

    /// Returns the same phases for agents that write another dialect: any signal of it that means
    /// `done` ends the current phase.
    #[must_use]
    pub fn in_dialect(mut self, dialect: &str) -> Self {
        if self.dialect != dialect {
            dialect.clone_into(&mut self.dialect);
            self.finish = None;
            self.phases.iter_mut().for_each(|phase| phase.signal = None);
        }
        self
    }

    /// Checks the pipeline against its dialect.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self, dialect: &Dialect) -> Result<(), PipelineError> {
        if self.phases.is_empty() {
            return Err(PipelineError::Empty);
        }
        if self.phases.len() > PHASES_MAX {
            return Err(PipelineError::TooMany(self.phases.len()));
        }
        let mut names = BTreeSet::from([COMPLETE, FAILED]);
        for phase in &self.phases {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if phase.name.is_empty() || phase.name.len() > 64 || !phase.name.bytes().all(plain) {
                return Err(PipelineError::Malformed(phase.name.clone()));
            }
            if !names.insert(&phase.name) {
                return Err(PipelineError::Name(phase.name.clone()));
            }
        }
        let signals = self.phases.iter().filter_map(|phase| phase.signal.as_ref());
        for signal in signals.chain(&self.finish) {
            if dialect.signal(signal).is_none() {
                let (dialect, signal) = (self.dialect.clone(), signal.clone());
                return Err(PipelineError::Signal { dialect, signal });
            }
        }
        let ends = dialect.signals.iter().any(|signal| signal.meaning == Meaning::Done);
        if !ends && self.phases.iter().any(|phase| phase.signal.is_none()) {
            return Err(PipelineError::NothingEnds(self.dialect.clone()));
        }
        Ok(())
    }

    /// Returns the phase of this name.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// Returns the phase that this signal ends.
    pub fn ended_by(&self, signal: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.signal.as_deref() == Some(signal))
    }

    /// Returns the first phase that is not skipped.
    pub fn first(&self, skipped: &BTreeSet<String>) -> &str {
        self.phases.iter().find(|phase| !phase.is_skipped(skipped)).map_or(COMPLETE, |p| &p.name)
    }

    /// Returns the phase after `phase` that is not skipped, [`COMPLETE`] after the last; `None` for
    /// phases it does not have.
    pub fn next(&self, phase: &str, skipped: &BTreeSet<String>) -> Option<&str> {
        let at = self.phases.iter().position(|other| other.name == phase)?;
        let mut later = self.phases[at + 1..].iter().filter(|phase| !phase.is_skipped(skipped));
        Some(later.next().map_or(COMPLETE, |phase| &phase.name))
    }

    /// Returns the flags that can be set.
    pub fn flags(&self) -> BTreeSet<&str> {
        self.phases.iter().filter_map(|phase| phase.skip.as_deref()).collect()
    }
}

impl Phase {
    /// Returns whether it is left out where these flags are set.
    pub(super) fn is_skipped(&self, skipped: &BTreeSet<String>) -> bool {
        self.skip.as_ref().is_some_and(|flag| skipped.contains(flag))
    }
}

#[cfg(test)]
mod tests {
    //! The seed's order, its skip flags, and what is wrong with a pipeline.

    use super::*;

    #[test]
    fn phases_follow_each_other() {
        let pipeline = Pipeline::caw();
        for (phase, skipped, want) in [
            ("expansion", "", Some("init")),
            ("init", "", Some("planning")),
            ("execution", "", Some("qa")),
            ("execution", "skip_qa", Some("review")),
            ("execution", "skip_qa skip_review", Some("reflect")),
            ("execution", "skip_qa skip_review skip_reflect", Some("complete")),
            ("check", "skip_reflect", Some("complete")),
            ("reflect", "", Some("complete")),
            ("complete", "", None),
            ("failed", "", None),
            ("nonsense", "", None),
        ] {
            let flags = skipped.split_whitespace().map(str::to_owned).collect();
            assert_eq!(pipeline.next(phase, &flags), want, "after {phase} with {skipped}");
        }
    }

    #[test]
    fn every_phase_has_a_signal_of_its_dialect() {
        let caw = Dialect::builtin("caw").unwrap();
        Pipeline::caw().check(caw).unwrap();
        for (phase, signal, ..) in CAW {
            let def = caw.signal(signal).unwrap();
            assert_eq!(def.expect.get("PHASE").map(String::as_str), Some(*phase));
        }
    }

    #[test]
    fn another_dialect_ends_phases_by_meaning() {
        let chorus = Dialect::builtin("chorus").unwrap();
        let pipeline = Pipeline::caw().in_dialect("chorus");
        pipeline.check(chorus).unwrap();
        assert!(pipeline.phases.iter().all(|phase| phase.signal.is_none()));
        assert_eq!(pipeline.finish, None);
    }

    #[test]
    fn pipelines_are_checked() {
        let caw = Dialect::builtin("caw").unwrap();
        let turn = Dialect::builtin("turn").unwrap();
        let broken = |change: &dyn Fn(&mut Pipeline)| {
            let mut pipeline = Pipeline::caw();
            change(&mut pipeline);
            pipeline.check(caw).unwrap_err()
        };
        assert_eq!(broken(&|p| p.phases.clear()), PipelineError::Empty);
        let many = broken(&|p| p.phases = vec![p.phases[0].clone(); 65]);
        assert_eq!(many, PipelineError::TooMany(65));
        assert_eq!(broken(&|p| p.phases[1].name = "qa".into()), PipelineError::Name("qa".into()));
        let reserved = broken(&|p| p.phases[1].name = "complete".into());
        assert_eq!(reserved, PipelineError::Name("complete".into()));
        let path = broken(&|p| p.phases[1].name = "../x".into());
        assert_eq!(path, PipelineError::Malformed("../x".into()));
        let unknown = broken(&|p| p.phases[1].signal = Some("NOPE".into()));
        assert!(matches!(unknown, PipelineError::Signal { .. }), "{unknown}");
        let silent = Pipeline::caw().in_dialect("turn").check(turn).unwrap_err();
        assert_eq!(silent, PipelineError::NothingEnds("turn".into()));
    }
}
