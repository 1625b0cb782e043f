//! How a machine names its rules: one for each situation in which something is decided.
//!
//! A rule is part of every decision that is stored and shown, so its id is public and never changes
//! its meaning. `docs/rules.md` lists them for people.

/// Defines the rules of a machine, each with its stable id.
macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $id:literal,)*) => {
        /// Why something was decided: one rule for one situation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule { $($(#[$doc])* $variant,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the stable id.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }
        }

        impl From<Rule> for String {
            fn from(rule: Rule) -> Self {
                rule.as_str().to_owned()
            }
        }
    };
}

pub(crate) use rules;
