//! Whether the run that a state file tells of may be taken over.
//!
//! Other tools start a run by writing `.caw/auto-state.json`. A repository can bring such a file
//! along, and its task would then be told to whoever works there. So a file that does not name the
//! session counts only if it was plainly written in it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use aldis_process::run_bounded;
use aldis_signal::time::Timestamp;
use aldis_store::Store;
use serde_json::Value;

use super::live;
use super::state_file::{self, ReadOutcome, SHOWN_NAME};
use crate::hosts::hook::auto_state::AutoStateFile;
use crate::settings::project::Place;

/// Why a state file is not adopted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Obstacle {
    /// It names another session.
    #[error("it belongs to session {0}")]
    OtherSession(String),
    /// A time in it has yet to come.
    #[error("it holds a time in the future, {0}")]
    FutureTime(Timestamp),
    /// It came with the repository.
    #[error("git tracks it")]
    Tracked,
    /// Whether it came with the repository cannot be told.
    #[error("git did not say whether it tracks it")]
    Unknown,
}

/// Looks for a reason not to adopt a state file, whoever stops.
pub(crate) fn obstacle(project: &Path, text: &str, now: Timestamp) -> Option<Obstacle> {
    if let Some(time) = latest_time(text).filter(|time| *time > now) {
        return Some(Obstacle::FutureTime(time));
    }
    match is_tracked(project) {
        Some(false) => None,
        Some(true) => Some(Obstacle::Tracked),
        None => Some(Obstacle::Unknown),
    }
}

/// Returns whether the file was changed after a session began.
pub(crate) fn changed_since(project: &Path, session_began: Option<Timestamp>) -> bool {
    let changed = fs::symlink_metadata(project.join(SHOWN_NAME)).and_then(|it| it.modified()).ok();
    let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed = changed.and_then(|time| i64::try_from(time.as_millis()).ok());
    changed.map(Timestamp::from_millis).zip(session_began).is_some_and(|(at, began)| at >= began)
}

/// Says for people that a project's state file wants a run that the store does not have, and why it
/// gets none.
pub(crate) fn explain(store: Option<&dyn Store>, place: &Place, now: Timestamp) -> Option<String> {
    let live = store.map(|store| live::live(store, place, None));
    if live.is_some_and(|live| live.is_ok_and(|live| live.is_some())) {
        return None;
    }
    let (project, text) = place.inside().find_map(|project| match state_file::read(project) {
        ReadOutcome::Text(text) => Some((project, text)),
        ReadOutcome::Absent | ReadOutcome::Refused(_) => None,
    })?;
    let view = AutoStateFile::parse(&text).ok().filter(AutoStateFile::is_active)?;
    let obstacle = match view.session() {
        Some(session) => Some(Obstacle::OtherSession(session)),
        None => obstacle(project, &text, now),
    };
    Some(match obstacle {
        Some(why) => format!("`{SHOWN_NAME}` says that a run is active; it is not adopted: {why}"),
        None => format!(
            "`{SHOWN_NAME}` says that a run is active; a session that began before the file was \
             changed adopts it at its next stop"
        ),
    })
}

/// The latest time anywhere in the file.
fn latest_time(text: &str) -> Option<Timestamp> {
    fn of(value: &Value) -> Option<Timestamp> {
        match value {
            Value::String(text) => text.parse().ok(),
            Value::Array(items) => items.iter().filter_map(of).max(),
            Value::Object(members) => members.values().filter_map(of).max(),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }
    of(&serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?)
}

/// Asks git whether it tracks the state file of a directory; `None` if it does not say.
fn is_tracked(directory: &Path) -> Option<bool> {
    let holds_git = |place: &Path| fs::symlink_metadata(place.join(".git")).is_ok();
    if !directory.ancestors().take(ANCESTORS_MAX).any(holds_git) {
        return Some(false);
    }
    let mut command = Command::new("git");
    // Listing one name runs nothing of the repository's; a monitor would be.
    command
        .args(["-c", "core.fsmonitor=false", "--no-optional-locks", "ls-files"])
        .args(["--error-unmatch", "--", SHOWN_NAME])
        .current_dir(directory)
        .env("GIT_TERMINAL_PROMPT", "0");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    match run_bounded(command, GIT_DEADLINE, 0).ok()?.status.code() {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    }
}

/// How far up a repository is looked for.
const ANCESTORS_MAX: usize = 64;
/// How long git may take.
const GIT_DEADLINE: Duration = Duration::from_millis(500);
