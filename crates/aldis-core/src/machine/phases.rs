//! The order of a workflow's phases, and the signal that ends each.
//!
//! ```
//! use aldis_core::machine::phases::{SkipFlags, expected_signal, next_phase};
//!
//! assert_eq!(expected_signal("qa"), Some("QA_COMPLETE"));
//! let flags = SkipFlags { qa: true, review: true, ..SkipFlags::default() };
//! assert_eq!(next_phase("execution", flags), Some("reflect"));
//! ```

/// The phases in order, each with the signal that ends it.
const PHASES: &[(&str, &str)] = &[
    ("expansion", "EXPANSION_COMPLETE"),
    ("init", "INIT_COMPLETE"),
    ("planning", "PLANNING_COMPLETE"),
    ("execution", "EXECUTION_COMPLETE"),
    ("qa", "QA_COMPLETE"),
    ("review", "REVIEW_COMPLETE"),
    ("fix", "FIX_COMPLETE"),
    ("check", "CHECK_COMPLETE"),
    ("reflect", "REFLECT_COMPLETE"),
];

/// What follows the last phase.
pub const COMPLETE: &str = "complete";

/// Phases that a run leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipFlags {
    /// Leaves out `qa`.
    pub qa: bool,
    /// Leaves out `review`, `fix` and `check`.
    pub review: bool,
    /// Leaves out `reflect`.
    pub reflect: bool,
}

impl SkipFlags {
    fn skips(self, phase: &str) -> bool {
        match phase {
            "qa" => self.qa,
            "review" | "fix" | "check" => self.review,
            "reflect" => self.reflect,
            _ => false,
        }
    }
}

/// Returns the signal that ends `phase`; `None` for phases that no signal ends.
pub fn expected_signal(phase: &str) -> Option<&'static str> {
    PHASES.iter().find(|(name, _)| *name == phase).map(|(_, signal)| *signal)
}

/// Returns the phase after `phase` that is not skipped, [`COMPLETE`] after the last; `None` for
/// phases that are not known.
pub fn next_phase(phase: &str, skip: SkipFlags) -> Option<&'static str> {
    let at = PHASES.iter().position(|(name, _)| *name == phase)?;
    let later = PHASES[at + 1..].iter().map(|(name, _)| *name);
    let mut later = later.filter(|name| !skip.skips(name));
    Some(later.next().unwrap_or(COMPLETE))
}

#[cfg(test)]
mod tests {
    //! The seed's order, and its skip flags.

    use super::*;

    #[test]
    fn phases_follow_each_other() {
        let none = SkipFlags::default();
        let all = SkipFlags { qa: true, review: true, reflect: true };
        for (phase, skip, want) in [
            ("expansion", none, Some("init")),
            ("init", none, Some("planning")),
            ("execution", none, Some("qa")),
            ("execution", SkipFlags { qa: true, ..none }, Some("review")),
            ("execution", SkipFlags { qa: true, review: true, ..none }, Some("reflect")),
            ("execution", all, Some("complete")),
            ("check", SkipFlags { reflect: true, ..none }, Some("complete")),
            ("reflect", none, Some("complete")),
            ("complete", none, None),
            ("failed", none, None),
            ("nonsense", none, None),
        ] {
            assert_eq!(next_phase(phase, skip), want, "after {phase} with {skip:?}");
        }
    }

    #[test]
    fn every_phase_has_a_signal_of_its_dialect() {
        let caw = crate::Dialect::builtin("caw").unwrap();
        for (phase, signal) in PHASES {
            assert_eq!(expected_signal(phase), Some(*signal));
            let def = caw.signal(signal).unwrap();
            assert_eq!(def.expect.get("PHASE").map(String::as_str), Some(*phase));
        }
        assert_eq!(expected_signal("complete"), None);
    }
}
