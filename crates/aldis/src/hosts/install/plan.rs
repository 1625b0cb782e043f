//! What would be written: decided in full before the first byte is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Host;
use super::edit::{Document, EMPTY, EditError};
use super::hooks_file;
use super::locations::{Location, Locations, Scope};
use crate::error::CommandError;
use crate::hosts::spec::{Layout, PluginFile, Registration};

/// What happens to one file.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The file as the host knows it.
    pub(crate) path: PathBuf,
    /// The file that is really written: what `path` links to.
    pub(crate) target: PathBuf,
    /// What it holds, if it exists.
    pub(crate) before: Option<Vec<u8>>,
    /// What it will hold, or nothing if it goes away.
    pub(crate) after: Option<Vec<u8>>,
    /// What happens to the copy of it.
    pub(crate) backup: Backup,
    /// Empty folders below this one go away with the file.
    pub(crate) keep: PathBuf,
}

/// What happens to the copy beside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backup {
    /// Stays as it is, or does not exist.
    Leave,
    /// Is written.
    Write,
    /// Is what the file holds again, and goes away.
    Remove,
}

/// What happens to a file, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It is new.
    Created,
    /// It holds something else.
    Changed,
    /// It goes away.
    Deleted,
    /// Nothing.
    Unchanged,
}

impl Change {
    /// Returns what happens.
    pub(crate) fn action(&self) -> Action {
        match (&self.before, &self.after) {
            (None, Some(_)) => Action::Created,
            (Some(_), None) => Action::Deleted,
            (before, after) if before == after => Action::Unchanged,
            _ => Action::Changed,
        }
    }

    /// Returns where the copy is.
    pub(crate) fn backup_path(&self) -> PathBuf {
        backup_path(&self.target)
    }
}

impl Action {
    /// Returns the word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Unchanged => "unchanged",
        }
    }

    /// Returns the word where nothing has happened yet.
    pub(crate) fn planned(self) -> &'static str {
        match self {
            Self::Created => "would create",
            Self::Changed => "would change",
            Self::Deleted => "would delete",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Plans a registration.
pub(crate) fn install(
    locations: &Locations,
    host: Host,
    location: &Location,
    program: &str,
) -> Result<Vec<Change>, CommandError> {
    changes(locations, host, location, |change, part| match part {
        FilePart::Entries(layout) => add_entries(host.name(), layout, program, change),
        FilePart::Plugin(file) => {
            own(file, change)?;
            change.after = Some((file.render)(program).into_bytes());
            Ok(())
        }
    })
}

/// Plans the removal of a registration.
pub(crate) fn uninstall(
    locations: &Locations,
    host: Host,
    location: &Location,
) -> Result<Vec<Change>, CommandError> {
    changes(locations, host, location, |change, part| match part {
        FilePart::Entries(layout) => remove_entries(host.name(), layout, change),
        FilePart::Plugin(file) => {
            if own(file, change).is_ok() {
                change.after = None;
            }
            Ok(())
        }
    })
}

/// What one file of a registration is.
enum FilePart<'a> {
    Entries(&'a Layout),
    Plugin(&'a PluginFile),
}

fn changes(
    locations: &Locations,
    host: Host,
    location: &Location,
    decide: impl Fn(&mut Change, FilePart<'_>) -> Result<(), CommandError>,
) -> Result<Vec<Change>, CommandError> {
    let mut changes = Vec::new();
    for (index, path) in location.files.iter().enumerate() {
        let mut change = inspect_file(locations, location, path)?;
        match &host.spec().registration {
            Registration::Entries(layout) => decide(&mut change, FilePart::Entries(layout))?,
            Registration::Plugin { files, .. } => {
                let Some(file) = files.get(index) else { continue };
                decide(&mut change, FilePart::Plugin(file))?;
            }
        }
        changes.push(change);
    }
    Ok(changes)
}

/// Reads a file and finds out what it really is.
fn inspect_file(
    locations: &Locations,
    location: &Location,
    path: &Path,
) -> Result<Change, CommandError> {
    let target = resolve(path).map_err(|error| CommandError::file(path, &error))?;
    if location.scope != Scope::User {
        let root = fs::canonicalize(&location.root).unwrap_or_else(|_| location.root.clone());
        if !target.starts_with(&root) {
            return Err(CommandError::new(format!(
                "`{}` leads out of the project, to `{}`",
                locations.shown(path),
                target.display()
            ))
            .with_help("use --user, or make it a file of the project"));
        }
    }
    let before = read(&target).map_err(|error| CommandError::file(path, &error))?;
    let keep = match location.scope {
        Scope::User => match &locations.home {
            Some(home) if location.root.starts_with(home) => home,
            _ => location.root.parent().unwrap_or(&location.root),
        },
        Scope::Project | Scope::Local => &location.root,
    };
    Ok(Change {
        path: path.to_owned(),
        target,
        after: before.clone(),
        before,
        backup: Backup::Leave,
        keep: keep.to_owned(),
    })
}

fn add_entries(
    host: &str,
    layout: &Layout,
    program: &str,
    change: &mut Change,
) -> Result<(), CommandError> {
    let wrong = |error: EditError| invalid(&change.path, &error);
    let before = change.before.as_deref();
    let after = with_entries(host, layout, program, before).map_err(wrong)?;
    if before.is_some_and(|before| before != after) && !has_entries(host, before) {
        change.backup = Backup::Write;
    }
    change.after = Some(after);
    Ok(())
}

fn remove_entries(host: &str, layout: &Layout, change: &mut Change) -> Result<(), CommandError> {
    let wrong = |error: EditError| invalid(&change.path, &error);
    let Some(before) = &change.before else { return Ok(()) };
    let document = Document::parse(before).map_err(wrong)?;
    let found = hooks_file::find(host, &document).map_err(wrong)?;
    let Some(entry) = found.current.first() else { return Ok(()) };

    let path = backup_path(&change.target);
    let backup = read(&path).map_err(|error| CommandError::file(&path, &error))?;
    // Where the file is exactly what a registration made of the copy, or of nothing, that is what
    // it becomes again.
    let replay = with_entries(host, layout, &entry.program, backup.as_deref());
    if replay.is_ok_and(|replay| replay == *before) {
        change.backup = if backup.is_some() { Backup::Remove } else { Backup::Leave };
        change.after = backup;
        return Ok(());
    }
    let document = hooks_file::remove(host, document).map_err(wrong)?;
    let keep = backup.is_some() || !hooks_file::is_idle(&document);
    change.backup = if backup.is_none() && keep { Backup::Write } else { Backup::Leave };
    change.after = keep.then(|| document.text().into_bytes());
    Ok(())
}

fn with_entries(
    host: &str,
    layout: &Layout,
    program: &str,
    before: Option<&[u8]>,
) -> Result<Vec<u8>, EditError> {
    let document = Document::parse(before.unwrap_or(EMPTY.as_bytes()))?;
    let untouched = document.text();
    hooks_file::add(host, layout, program, &document)?;
    match before {
        // A blank file stays blank where nothing was added.
        Some(before) if document.text() == untouched => Ok(before.to_owned()),
        _ => Ok(document.text().into_bytes()),
    }
}

fn has_entries(host: &str, bytes: Option<&[u8]>) -> bool {
    let document = bytes.and_then(|bytes| Document::parse(bytes).ok());
    let found = document.and_then(|document| hooks_file::find(host, &document).ok());
    found.is_some_and(|found| !found.current.is_empty())
}

/// Refuses to touch a file that somebody else put where ours belongs.
fn own(file: &PluginFile, change: &Change) -> Result<(), CommandError> {
    let Some(before) = &change.before else { return Ok(()) };
    if String::from_utf8_lossy(before).contains(file.mark) {
        return Ok(());
    }
    Err(CommandError::new(format!("`{}` was not written by aldis", change.path.display()))
        .with_help("move it away and run the command again"))
}

fn invalid(path: &Path, error: &EditError) -> CommandError {
    CommandError::new(format!("`{}` {error}", path.display()))
        .with_help("correct the file; nothing was changed")
}

/// Returns the file that a path leads to, which need not exist.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut missing = Vec::new();
    let mut existing = path.to_owned();
    loop {
        match fs::canonicalize(&existing) {
            Ok(found) => return Ok(missing.iter().rev().fold(found, |path, name| path.join(name))),
            // A link to nothing must not be taken for nothing.
            Err(error) if existing.symlink_metadata().is_ok() => return Err(error),
            Err(error) => {
                let Some(name) = existing.file_name() else { return Err(error) };
                missing.push(name.to_owned());
                if !existing.pop() {
                    return Err(error);
                }
            }
        }
    }
}

/// Reads a regular file of sensible size, or nothing if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("larger than any settings file, 16 MiB"));
    }
    fs::read(path).map(Some)
}

fn backup_path(target: &Path) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push(BACKUP_SUFFIX);
    PathBuf::from(path)
}

const BACKUP_SUFFIX: &str = ".aldis-backup";
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
