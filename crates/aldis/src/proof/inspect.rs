//! Inspects a project before its checks run: what is pinned, what changed, and where they run.

use std::path::{Path, PathBuf};

use aldis_machine::proof::{Config, Inspection, Stage};

use super::clean::CleanPlace;
use super::environment;
use super::pins::Pins;

/// What is to be inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectRequest {
    /// Where the project is.
    pub directory: PathBuf,
    /// What is checked, and what must not change.
    pub config: Config,
    /// At the start files are pinned, at a claim they are compared.
    pub stage: Stage,
    /// The commit to check out.
    pub commit: Option<String>,
    /// Whether what was pinned before stays pinned as it was then.
    pub keep: bool,
    /// What was pinned before.
    pub pins: Option<Pins>,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// For the machine.
    pub inspection: Inspection,
    /// What is pinned from now on, if that was done.
    pub pins: Option<Pins>,
    /// Where the checks run.
    pub place: PathBuf,
    /// The current commit, where it was asked for.
    pub head: Option<String>,
    /// Whether there are changes that are not committed, where that was asked for.
    pub dirty: bool,
}

impl Inspected {
    /// Nothing could be inspected.
    pub(crate) fn failed(problem: String, place: PathBuf) -> Self {
        let inspection = Inspection { problem: Some(problem), ..Inspection::default() };
        Self { inspection, pins: None, place, head: None, dirty: false }
    }
}

/// Inspects a project; in a clean checkout if a commit is named. What is the same in the `accepted`
/// project did not change.
pub(crate) fn inspect(
    request: &InspectRequest,
    accepted: Option<&Path>,
    clean: &CleanPlace,
) -> Inspected {
    let environment = environment::look();
    let seen = Inspection { environment, clean: request.commit.clone(), ..Inspection::default() };
    let (place, looked) = match &request.commit {
        None => (request.directory.clone(), look(request, &request.directory, accepted)),
        Some(commit) => match clean.make(&request.directory, commit) {
            Ok(place) => {
                let looked = look(request, &place, accepted);
                (place, looked)
            }
            Err(problem) => (request.directory.clone(), Err(problem)),
        },
    };
    match looked {
        Ok((inspection, pins)) => {
            let Inspection { pinned, changes, more_changes, .. } = inspection;
            let inspection = Inspection { pinned, changes, more_changes, ..seen };
            Inspected { inspection, pins, place, head: None, dirty: false }
        }
        Err(problem) => {
            let inspection = Inspection { problem: Some(problem), ..seen };
            Inspected { inspection, ..Inspected::failed(String::new(), place) }
        }
    }
}

fn look(
    request: &InspectRequest,
    place: &Path,
    accepted: Option<&Path>,
) -> Result<(Inspection, Option<Pins>), String> {
    let InspectRequest { config, stage, commit, keep, pins, .. } = request;
    match (stage, pins) {
        (Stage::Claim, Some(pins)) => {
            let (changes, more_changes) = pins.compare(place, config, accepted)?;
            Ok((Inspection { changes, more_changes, ..Inspection::default() }, None))
        }
        (Stage::Start, pins) => pin(config, commit, pins.as_ref().filter(|_| *keep), place),
        (Stage::Claim, None) => pin(config, commit, None, place),
    }
}

fn pin(
    config: &Config,
    commit: &Option<String>,
    kept: Option<&Pins>,
    place: &Path,
) -> Result<(Inspection, Option<Pins>), String> {
    let pins = Pins::take(place, config, kept)?;
    let pinned = Some(pins.summary(config, commit.clone())?);
    Ok((Inspection { pinned, ..Inspection::default() }, Some(pins)))
}
