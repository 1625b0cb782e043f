//! Finds the transcripts that hosts left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use aldis_signal::time::Timestamp;
use aldis_transcript::{Format, Input};

use crate::error::CommandError;
use crate::hosts::Host;
use crate::hosts::install::locations::Locations;

/// A file that may be a transcript.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    /// Whose, where the place tells.
    pub(crate) host: Option<Host>,
    /// Whether it was named, and not only found in a folder.
    pub(crate) is_named: bool,
    /// In bytes.
    pub(crate) size: u64,
}

impl Candidate {
    /// What is known of it before it is read.
    pub(crate) fn input(&self) -> Input {
        self.host.map_or(Input::Auto, |host| Input::Host(host.spec().transcripts.formats))
    }
}

/// What was found, and what could not be looked at.
#[derive(Debug, Default)]
pub(crate) struct FoundTranscripts {
    pub(crate) files: Vec<Candidate>,
    pub(crate) unread: Vec<CommandError>,
    /// The folders that were looked into.
    pub(crate) places: Vec<PathBuf>,
}

/// Finds the transcripts of all hosts that were written since a moment.
///
/// # Errors
///
/// Fails if it is not known where to look.
pub(crate) fn everywhere(since: Option<Timestamp>) -> Result<FoundTranscripts, CommandError> {
    let locations = Locations::new()?;
    let mut found = FoundTranscripts::default();
    for host in Host::known() {
        let spec = host.spec();
        let Ok(root) = locations.user_folder(&spec.settings) else { continue };
        for below in spec.transcripts.sessions {
            let folder = root.join(below);
            if folder.is_dir() {
                found.walk(&folder, Some(host), since, 0);
                found.places.push(folder);
            }
        }
    }
    if locations.home.is_none() && found.places.is_empty() {
        return Err(CommandError::new("the home directory is not known").with_help("set HOME"));
    }
    Ok(found)
}

/// Takes files as they are, and looks into folders.
pub(crate) fn named(paths: &[PathBuf]) -> FoundTranscripts {
    let mut found = FoundTranscripts::default();
    for path in paths {
        match path.metadata() {
            Ok(there) if there.is_dir() => {
                found.walk(path, None, None, 0);
                found.places.push(path.clone());
            }
            Ok(there) => {
                let (path, size) = (path.clone(), there.len());
                let host = owner(&path);
                found.files.push(Candidate { path, host, is_named: true, size });
            }
            Err(error) => found.unread.push(CommandError::file(path, &error)),
        }
    }
    found
}

/// Returns the host whose folder a file lies in.
fn owner(path: &Path) -> Option<Host> {
    let is_in = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
    let mut all = Host::known();
    all.find(|host| host.spec().transcripts.folder.is_some_and(is_in))
}

/// Returns the name that people use for who writes this format.
pub(crate) fn title(host: Option<Host>, format: Format) -> String {
    let writes = |host: &Host| {
        let spec = host.spec();
        let headless = spec.headless.is_some_and(|headless| headless.output == format);
        headless || spec.transcripts.formats.contains(&format)
    };
    let host = host.or_else(|| Host::known().find(writes));
    host.map_or_else(|| format.to_string(), |host| host.title().to_owned())
}

impl FoundTranscripts {
    fn walk(&mut self, folder: &Path, host: Option<Host>, since: Option<Timestamp>, depth: usize) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.unread.push(CommandError::file(folder, &error)),
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // A link could lead out of the folder, or round in a circle.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEPTH_MAX {
                self.walk(&path, host, since, depth + 1);
            } else if kind.is_file() && may_be_transcript(&path) {
                let Ok(there) = entry.metadata() else { continue };
                let written =
                    there.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let is_old = since.zip(written).is_some_and(|(since, written)| {
                    // A file is not older than its last line.
                    Timestamp::from_millis(0).after(written).after(SLACK) < since
                });
                if !is_old {
                    let host = host.or_else(|| owner(&path));
                    let size = there.len();
                    self.files.push(Candidate { path, host, is_named: false, size });
                }
            }
        }
    }
}

/// Returns whether a file has a name that hosts give to transcripts. Old rollouts are compressed; they
/// are named, not passed over.
fn may_be_transcript(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl")
        || name.ends_with(".jsonl.zst")
        || name.starts_with("session-") && name.ends_with(".json")
}

/// Folders by project, date and session.
const DEPTH_MAX: usize = 8;
/// Clocks of file systems are coarse.
const SLACK: Duration = Duration::from_secs(5);
