//! `[proof]` and `[[proof.check]]`: what makes a claim count.

use std::fmt;

use aldis_machine::proof::{Check, Config, OnChange, RedFirst};
use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::table::{Setting, table};
use super::values::{Count, Seconds};

/// The name of `[run] verify` beside checks that have names.
const VERIFY: &str = "verify";

table! {
    /// `[proof]`
    struct Proof sets Config, usually Config::default();
    own {
        check: Vec<CheckTable> = Vec::new(),
        #[schemars(with = "Option<String>", extend("enum" = ["allow", "refuse", "ask", null]))]
        on_change: Option<OnChange> = None,
        red_first: RedFirstSetting = RedFirstSetting(RedFirst::Off),
        judge: Option<String> = None,
    }
    sets {
        protect: Vec<String> = protect,
        clean: bool = clean,
        baseline: bool = baseline,
        repeat: Count<0, 100> = repeat,
        timeout: Option<Seconds<1>> = timeout,
    }
}

/// `[[proof.check]]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckTable {
    /// Its name: letters, digits, `-`, `_` and `.`
    pub(crate) name: String,
    /// The command, for a shell; it passes with exit code 0
    pub(crate) command: String,
    /// The checks that must pass before this one runs
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// The JUnit report that the command writes, from which its tests are counted
    #[serde(default)]
    pub(crate) junit: Option<String>,
}

impl Proof {
    /// Returns what is checked: the checks with names, and `[run] verify` after them.
    pub(crate) fn config(&self, verify: Option<&str>) -> Config {
        let mut config =
            Config { on_change: self.on_change, red_first: self.red_first.0, ..Config::default() };
        self.set(&mut config);
        config.judge.clone_from(&self.judge);
        let named = self.check.iter().cloned().map(|table| {
            let CheckTable { name, command, needs, junit } = table;
            Check { name, command, needs, junit }
        });
        config.checks = named.collect();
        if let Some(verify) = verify {
            let mut check = Check::unnamed(verify);
            if !config.checks.is_empty() {
                VERIFY.clone_into(&mut check.name);
            }
            config.checks.push(check);
        }
        config
    }
}

/// `true`, `false`, or `strict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "bool", extend("type" = ["boolean", "string"], "enum" = [true, false, "strict"]))]
pub(crate) struct RedFirstSetting(pub(crate) RedFirst);

impl Serialize for RedFirstSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            RedFirst::Off => serializer.serialize_bool(false),
            RedFirst::Warn => serializer.serialize_bool(true),
            RedFirst::Strict => serializer.serialize_str("strict"),
        }
    }
}

impl<'de> Deserialize<'de> for RedFirstSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RedFirstVisitor;

        impl Visitor<'_> for RedFirstVisitor {
            type Value = RedFirstSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or `strict`")
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<RedFirstSetting, E> {
                Ok(RedFirstSetting(if on { RedFirst::Warn } else { RedFirst::Off }))
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<RedFirstSetting, E> {
                match word {
                    "strict" => Ok(RedFirstSetting(RedFirst::Strict)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                }
            }
        }

        deserializer.deserialize_any(RedFirstVisitor)
    }
}
