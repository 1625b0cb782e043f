//! What is checked before a claim counts, and what is done about files that changed.

use serde::{Deserialize, Serialize};

use crate::limits::settings;
use aldis_signal::codes;

/// How long the name of a check is.
const NAME_MAX: usize = 64;

/// One check: a command that must end with exit code 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name; empty for the only check, which needs none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The command, for a shell.
    pub command: String,
    /// The checks that must pass before this one runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The file into which the command writes a JUnit report, from which its tests are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub junit: Option<String>,
}

impl Check {
    /// The only check, without a name.
    pub fn unnamed(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// How sentences call it: `the check`, or `the check 'unit'`.
    pub fn title(&self) -> String {
        title(&self.name)
    }
}

/// Whether a letter may stand in the name of a check: names stand in sentences and in file names.
fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

/// How sentences call the check of this name.
pub(super) fn title(name: &str) -> String {
    match name {
        "" => "the check".to_owned(),
        name => format!("the check `{name}`"),
    }
}

codes! {
    /// What is done about a pinned file that changed.
    pub enum OnChange {
        /// The claim counts; the change is named.
        Allow = "allow",
        /// The claim is refused.
        Refuse = "refuse",
        /// A human is asked, once every check has passed.
        Ask = "ask",
    }
}

codes! {
    /// Whether a check must fail before the work starts.
    #[derive(Default)]
    pub enum RedFirst {
        /// It is not looked at.
        #[default]
        Off = "off",
        /// The checks run before the work starts; if all pass, the run says that they prove nothing.
        Warn = "warn",
        /// The same, and the run does not start.
        Strict = "strict",
    }
}

settings! {
    /// What makes a claim to be done count.
    pub struct Config {
        /// The checks, in order.
        checks: Vec<Check> = Vec::new();
        /// Patterns of files that are pinned beside those of which the checks are made.
        protect: Vec<String> = Vec::new();
        /// What is done about a pinned file that changed; `None` for the usual: a check's own file
        /// and a protected one are refused, other test files are named.
        on_change: Option<OnChange> = None;
        /// Whether checks run in a clean checkout of the claimed commit.
        clean: bool = false;
        /// Whether a check must fail before the work starts.
        red_first: RedFirst = RedFirst::Off;
        /// Whether the checks run before the work starts, so that tests can be counted.
        baseline: bool = false;
        /// How often a check that failed is run again.
        repeat: u32 = 0;
        /// A command that gives a second opinion about a claim that nothing refuses: it can refuse, and
        /// without a check a human is asked, too.
        judge: Option<String> = None;
        /// Seconds per check; `None` for as long as an iteration.
        timeout: Option<u64> = None, limit;
    }
}

impl Config {
    /// One check without a name.
    pub fn unnamed(command: impl Into<String>) -> Self {
        Self { checks: vec![Check::unnamed(command)], ..Self::default() }
    }

    /// Returns whether nothing was set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether anything speaks for or against a claim.
    pub fn is_active(&self) -> bool {
        !self.checks.is_empty() || !self.protect.is_empty() || self.judge.is_some()
    }

    /// Whether the checks run before the work starts.
    pub fn runs_at_start(&self) -> bool {
        !self.checks.is_empty() && (self.baseline || self.red_first != RedFirst::Off)
    }

    /// Returns the check of this name.
    pub fn check_named(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// Checks that names are told apart, that needs are names of other checks, and that no check
    /// waits for itself.
    ///
    /// # Errors
    ///
    /// Says what does not fit, as a clause.
    pub fn validate(&self) -> Result<(), String> {
        for (at, check) in self.checks.iter().enumerate() {
            let title = check.title();
            if check.name.len() > NAME_MAX || !check.name.chars().all(is_plain) {
                return Err(format!(
                    "the name of a check has letters, digits, `-`, `_` and `.`, at most {NAME_MAX}: \
                     `{}` does not fit",
                    check.name.escape_default()
                ));
            }
            if check.command.trim().is_empty() {
                return Err(format!("{title} has no command"));
            }
            if check.name.is_empty() && self.checks.len() > 1 {
                return Err("a check needs a name where there are several".to_owned());
            }
            if self.checks[..at].iter().any(|other| other.name == check.name) {
                return Err(format!("there are two checks named `{}`", check.name));
            }
            let unknown = check.needs.iter().find(|need| self.check_named(need).is_none());
            if let Some(need) = unknown {
                return Err(format!("{title} needs `{need}`, and there is no such check"));
            }
        }
        match self.unreachable() {
            Some(check) => Err(format!("{} needs itself, by way of others", check.title())),
            None => Ok(()),
        }
    }

    /// A check that can never run because its needs form a circle.
    fn unreachable(&self) -> Option<&Check> {
        let mut reached: Vec<&str> = Vec::new();
        // Each round reaches one more check at least, or none can be reached any more.
        for _ in &self.checks {
            for check in &self.checks {
                let ready = check.needs.iter().all(|need| reached.contains(&&**need));
                if ready && !reached.contains(&&*check.name) {
                    reached.push(&check.name);
                }
            }
        }
        self.checks.iter().find(|check| !reached.contains(&&*check.name))
    }
}
