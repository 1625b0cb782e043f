//! The rules by which machines decide: enums with a stable id for each.

/// Defines the rules of a machine, each with its stable id: one for each situation in which
/// something is decided. A rule is part of every decision that is stored and shown, so its id is
/// public and never changes its meaning. `docs/rules.md` lists them for people.
macro_rules! rules {
    ($($(#[$about:meta])* $variant:ident = $id:literal,)*) => {
        aldis_signal::codes! {
            /// Why something was decided: one rule for one situation.
            pub enum Rule { $($(#[$about])* $variant = $id,)* }
        }

        impl Rule {
            /// Returns the rule of a stored decision, whatever version stored it.
            pub fn of_stored(rule: &str, summary: &str) -> Option<Self> {
                rule_of_0_1_0(rule, summary).or_else(|| Self::named(rule))
            }
        }

        impl From<Rule> for String {
            fn from(rule: Rule) -> Self {
                rule.as_str().to_owned()
            }
        }

        /// Returns today's rule for one that 0.1.0 stored. Its ids stood for several situations, which
        /// the summary of the decision tells apart.
        pub fn rule_of_0_1_0(rule: &str, summary: &str) -> Option<Rule> {
            crate::rules::renamed(rule, summary).and_then(Rule::named)
        }
    };
}

pub(crate) use rules;

/// Returns what a rule of 0.1.0 is called today.
pub(crate) fn renamed(rule: &str, summary: &str) -> Option<&'static str> {
    let rows = include_str!("rules_0_1_0.txt").lines().filter(|line| !line.starts_with('#'));
    let mut rows = rows.filter_map(|line| {
        let mut cells = line.split('|').map(str::trim);
        Some((cells.next()?, cells.next()?, cells.next()?))
    });
    let fits = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => summary.ends_with(end),
        (None, Some(beginning)) => summary.starts_with(beginning),
        (None, None) => summary == pattern,
    };
    let row = rows.find(|(old, pattern, _)| *old == rule && fits(pattern));
    row.map(|(_, _, today)| today)
}
