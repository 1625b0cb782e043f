//! What a project's `aldis.toml` says, beside its dialects.
//!
//! Unknown keys are refused with a suggestion: a misspelled limit must not silently be no limit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aldis_core::machine::phases::{self, AfterTransition, MAX_ITERATIONS, Pipeline, TokenPolicy};
use serde::{Deserialize, Deserializer, de};

use crate::error::CommandError;
use crate::project::Place;

/// The file.
pub(crate) const FILE: &str = "aldis.toml";
/// The longest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;
/// How unlike a key may be and still be suggested.
const SUGGEST_DISTANCE: usize = 3;

/// The settings of a project.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// How phases run.
    pub(crate) phases: Phases,
    /// How signals are heard.
    pub(crate) signals: Signals,
    /// The user's own pipelines.
    pipelines: BTreeMap<String, PipelineTable>,
    /// Read elsewhere, by the catalogue of dialects.
    #[serde(rename = "dialects")]
    _dialects: toml::Table,
}

/// `[phases]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Phases {
    /// Which pipeline `aldis auto start` uses.
    pub(crate) pipeline: String,
    /// What follows a completed phase.
    pub(crate) after_transition: AfterTransition,
    /// Seconds of silence that make a run stale.
    #[serde(deserialize_with = "seconds")]
    pub(crate) stale_after: u64,
    /// Refusals per phase.
    #[serde(deserialize_with = "iterations")]
    pub(crate) max_iterations: u32,
    /// Whether prompts show the counters.
    pub(crate) verbose: bool,
    /// Whether the agent is to decide for itself.
    pub(crate) no_questions: bool,
    /// Whether the review asks for three verdicts.
    pub(crate) parallel_validation: bool,
}

impl Default for Phases {
    fn default() -> Self {
        let usual = phases::Config::default();
        Self {
            pipeline: "caw".to_owned(),
            after_transition: usual.after_transition,
            stale_after: usual.stale_after,
            max_iterations: MAX_ITERATIONS.2,
            verbose: false,
            no_questions: false,
            parallel_validation: false,
        }
    }
}

/// `[signals]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Signals {
    /// What is done about run tokens.
    pub(crate) token: TokenPolicy,
}

/// `[pipelines.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PipelineTable {
    #[serde(default = "caw")]
    dialect: String,
    #[serde(default)]
    finish: Option<String>,
    phases: Vec<phases::Phase>,
}

fn caw() -> String {
    "caw".to_owned()
}

impl Settings {
    /// Loads the settings of the project around `place`; the usual ones where it has none.
    ///
    /// # Errors
    ///
    /// Fails with the line of what is wrong.
    pub(crate) fn load(place: &Place) -> Result<Self, CommandError> {
        match place.inside().map(|directory| directory.join(FILE)).find(|file| file.is_file()) {
            Some(file) => Self::read(&file),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &PathBuf) -> Result<Self, CommandError> {
        let length = fs::metadata(path).map_err(|error| CommandError::file(path, &error))?.len();
        if length > BYTES_MAX {
            return Err(CommandError::new(format!("`{}` is too large", path.display())));
        }
        let text = fs::read_to_string(path).map_err(|error| CommandError::file(path, &error))?;
        toml::from_str(&text).map_err(|error| explain(path, &text, &error))
    }

    /// Returns the pipeline of this name.
    ///
    /// # Errors
    ///
    /// Fails with the names there are.
    pub(crate) fn pipeline(&self, name: &str) -> Result<Pipeline, CommandError> {
        if let Some(table) = self.pipelines.get(name) {
            let PipelineTable { dialect, finish, phases } = table.clone();
            return Ok(Pipeline { name: name.to_owned(), dialect, finish, phases });
        }
        if name == "caw" {
            return Ok(Pipeline::caw());
        }
        let names: Vec<&str> =
            std::iter::once("caw").chain(self.pipelines.keys().map(String::as_str)).collect();
        Err(CommandError::new(format!("there is no pipeline `{name}`"))
            .with_help(format!("the pipelines are {}", names.join(", "))))
    }

    /// Returns what a run starts with where nothing else is said.
    pub(crate) fn phases_config(&self) -> phases::Config {
        phases::Config {
            skip: Default::default(),
            verbose: self.phases.verbose,
            no_questions: self.phases.no_questions,
            parallel_validation: self.phases.parallel_validation,
            after_transition: self.phases.after_transition,
            stale_after: self.phases.stale_after,
            token: self.signals.token,
        }
    }
}

/// A number of seconds, or a number with a unit: `90m`, `2h`.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Span {
        Seconds(u64),
        Text(String),
    }
    let wrong = || de::Error::custom("expected a span of time such as `90m` or `2h`, not 0");
    let seconds = match Span::deserialize(deserializer)? {
        Span::Seconds(seconds) => Some(seconds),
        Span::Text(text) => span(&text),
    };
    seconds.filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

fn span(text: &str) -> Option<u64> {
    let at = text.find(|letter: char| !letter.is_ascii_digit())?;
    let unit = match &text[at..] {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    text[..at].parse::<u64>().ok()?.checked_mul(unit)
}

fn iterations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let (least, most, _) = MAX_ITERATIONS;
    let asked = i64::deserialize(deserializer)?;
    u32::try_from(asked).ok().filter(|asked| (least..=most).contains(asked)).ok_or_else(|| {
        de::Error::custom(format!("expected {least} to {most}; {asked} is not unlimited"))
    })
}

/// Says what is wrong, where, and what was probably meant.
fn explain(path: &Path, text: &str, error: &toml::de::Error) -> CommandError {
    let line = error
        .span()
        .map(|span| 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count());
    let message = error.message().lines().next().unwrap_or_default();
    let place = match line {
        Some(line) => format!("`{}` line {line}", path.display()),
        None => format!("`{}`", path.display()),
    };
    let failed = CommandError::new(format!("{place}: {message}"));
    match suggestion(message) {
        Some(known) => failed.with_help(format!("did you mean `{known}`?")),
        None => failed,
    }
}

/// The known key nearest to the unknown one that a message names first.
fn suggestion(message: &str) -> Option<&str> {
    let mut named = message.split('`').skip(1).step_by(2);
    let unknown = named.next().filter(|_| message.starts_with("unknown field"))?;
    let distance = |known: &str| strsim::levenshtein(unknown, known);
    named
        .map(|known| (distance(known), known))
        .min()
        .filter(|(far, _)| *far <= SUGGEST_DISTANCE)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    //! What is accepted, and how mistakes are explained.

    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        fs::write(&file, text).unwrap();
        Settings::read(&file).map_err(|error| match error {
            CommandError::Failed { message, help } => {
                let message = message.split(": ").skip(1).collect::<Vec<_>>().join(": ");
                let line = file.display().to_string().len();
                let _ = line;
                format!("{message} / {}", help.unwrap_or_default())
            }
            CommandError::Closed => unreachable!("reading writes nothing"),
        })
    }

    #[test]
    fn settings_have_defaults_and_limits() {
        let usual = read("").unwrap();
        assert_eq!((usual.phases.max_iterations, usual.phases.stale_after), (20, 7200));
        let set = read("[phases]\nstale_after = \"90m\"\nmax_iterations = 5\nafter_transition = \"stop\"\n[signals]\ntoken = \"require\"\n[dialects.x]\n").unwrap();
        assert_eq!((set.phases.max_iterations, set.phases.stale_after), (5, 5400));
        assert_eq!(set.signals.token, TokenPolicy::Require);
    }

    #[test]
    fn mistakes_are_explained() {
        let wrong = read("[phases]\nmax_iteration = 5\n").unwrap_err();
        assert!(wrong.contains("did you mean `max_iterations`?"), "{wrong}");
        for text in [
            "[phases]\nmax_iterations = 0\n",
            "[phases]\nmax_iterations = 51\n",
            "[phases]\nstale_after = 0\n",
            "[phases]\nstale_after = \"soon\"\n",
            "turn_timeout_seconds = 0\n",
            "[[on_signal]]\nname = \"COMPLETE\"\nrun = \"id\"\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn own_pipelines_stand_beside_the_built_in_one() {
        let settings = read(
            "[pipelines.small]\nphases = [{ name = \"do\", signal = \"EXECUTION_COMPLETE\" }]\n",
        )
        .unwrap();
        assert_eq!(settings.pipeline("small").unwrap().phases.len(), 1);
        assert_eq!(settings.pipeline("caw").unwrap().phases.len(), 9);
        assert!(settings.pipeline("large").is_err());
    }
}
