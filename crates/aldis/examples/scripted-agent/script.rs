//! The script's form.

use serde::Deserialize;

use super::voice::Voice;

/// What an agent does, start by start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    #[serde(default)]
    pub(crate) voice: Voice,
    round: Vec<Round>,
}

/// One start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    #[serde(rename = "do")]
    steps: Vec<Step>,
}

impl Script {
    /// Reads a script.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let script: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if script.round.is_empty() {
            return Err("there is no round".to_owned());
        }
        Ok(script)
    }

    /// Returns the steps of a start, from 1. The last round is repeated.
    pub(crate) fn steps(&self, start: u64) -> &[Step] {
        let place = usize::try_from(start.saturating_sub(1)).unwrap_or(usize::MAX);
        let round = self.round.get(place).or_else(|| self.round.last());
        round.map(|round| &*round.steps).unwrap_or_default()
    }
}

/// One thing to do. Exhaustive: the player knows them all.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    Say(String),
    Tool(Tool),
    Spend(Spend),
    Retry(String),
    Limit(Limit),
    Fail(String),
    Write(String),
    Complain(String),
    Flood(Flood),
    Pause(f64),
    Hang(bool),
    Run(String),
    Leave(String),
    Keep(String),
    Stubborn(bool),
    Exit(u8),
    Crash(i32),
}

/// A tool and what it prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) output: String,
}

/// What something costs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Spend {
    pub(crate) tokens: u64,
    pub(crate) dollars: f64,
}

/// A refusal for some time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    #[serde(default = "limit_words")]
    pub(crate) what: String,
    pub(crate) seconds: u32,
}

fn limit_words() -> String {
    "Rate limit reached".to_owned()
}

/// Much output.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flood {
    pub(crate) bytes: u64,
    #[serde(default = "line_length")]
    pub(crate) line: usize,
}

fn line_length() -> usize {
    80
}
