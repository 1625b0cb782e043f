//! What would be written: decided in full before the first byte is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Host;
use super::edit::{self, Document, EditError};
use super::hooks_file;
use super::locations::{Location, Locations, Scope};
use super::server::ServerPart;
use crate::error::CommandError;
use crate::hosts::spec::{Layout, PluginFile, Registration};

/// What happens to one file.
#[derive(Clone, Debug)]
pub(crate) struct InstallChange {
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

impl InstallChange {
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

/// Plans a registration, of the hook and, unless it is not wanted, of the MCP server.
pub(crate) fn install(
    locations: &Locations,
    host: Host,
    location: &Location,
    program: &str,
    with_server: bool,
) -> Result<Vec<InstallChange>, CommandError> {
    let mut changes = Vec::new();
    for RegisteredFile { path, parts } in files(locations, host, location) {
        let parts: Vec<RegisteredPart> =
            parts.into_iter().filter(|it| with_server || it.is_hook()).collect();
        if parts.is_empty() {
            continue;
        }
        let mut change = inspect_file(locations, location, &path)?;
        if let [RegisteredPart::Plugin(file)] = &*parts {
            own(file, &change)?;
        }
        let before = change.before.as_deref();
        let after = with_parts(host, &parts, program, before);
        let after = after.map_err(|error| invalid(&change.path, &error))?;
        let is_foreign = before.is_some_and(|before| {
            before != after && parts.iter().all(|it| it.program(host, before).is_none())
        });
        if is_foreign && parts.iter().all(|part| !matches!(part, RegisteredPart::Plugin(_))) {
            change.backup = Backup::Write;
        }
        change.after = Some(after);
        changes.push(change);
    }
    Ok(changes)
}

/// Plans the removal of a registration.
pub(crate) fn uninstall(
    locations: &Locations,
    host: Host,
    location: &Location,
) -> Result<Vec<InstallChange>, CommandError> {
    let mut changes = Vec::new();
    for RegisteredFile { path, parts } in files(locations, host, location) {
        let mut change = inspect_file(locations, location, &path)?;
        match &*parts {
            [RegisteredPart::Plugin(file)] => {
                if own(file, &change).is_ok() {
                    change.after = None;
                }
            }
            parts if is_shared(locations, host, location.scope, &path, parts) => {}
            parts => remove_parts(host, parts, &mut change)?,
        }
        changes.push(change);
    }
    Ok(changes)
}

/// A file, and what a registration puts into it.
struct RegisteredFile {
    path: PathBuf,
    parts: Vec<RegisteredPart>,
}

/// One thing that a registration puts into a file.
enum RegisteredPart {
    Hooks(&'static Layout),
    Plugin(&'static PluginFile),
    Server(ServerPart),
}

impl RegisteredPart {
    fn is_hook(&self) -> bool {
        !matches!(self, Self::Server(_))
    }

    fn add(&self, host: Host, program: &str, before: Option<&[u8]>) -> Result<Vec<u8>, EditError> {
        match self {
            Self::Hooks(layout) => edit::changed(before, |document| {
                hooks_file::add(host.name(), layout, program, document)
            }),
            Self::Plugin(file) => Ok((file.render)(program).into_bytes()),
            Self::Server(part) => part.add(program, before),
        }
    }

    /// Returns the program that is called, where the part is in the file.
    fn program(&self, host: Host, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Hooks(_) => {
                let document = Document::parse(bytes).ok()?;
                let found = hooks_file::find(host.name(), &document).ok()?;
                found.current.into_iter().next().map(|entry| entry.program)
            }
            Self::Plugin(_) => None,
            Self::Server(part) => part.program(bytes).ok().flatten(),
        }
    }

    fn remove(&self, host: Host, before: &[u8]) -> Result<Vec<u8>, EditError> {
        match self {
            Self::Hooks(_) => {
                let document = Document::parse(before)?;
                Ok(hooks_file::remove(host.name(), document)?.text().into_bytes())
            }
            Self::Plugin(_) => Ok(before.to_owned()),
            Self::Server(part) => part.remove(before),
        }
    }
}

/// The files of a registration, each once.
fn files(locations: &Locations, host: Host, location: &Location) -> Vec<RegisteredFile> {
    let mut files: Vec<RegisteredFile> = Vec::new();
    for (index, path) in location.files.iter().enumerate() {
        let part = match &host.spec().registration {
            Registration::Entries(layout) => RegisteredPart::Hooks(layout),
            Registration::Plugin { files, .. } => match files.get(index) {
                Some(file) => RegisteredPart::Plugin(file),
                None => continue,
            },
        };
        files.push(RegisteredFile { path: path.clone(), parts: vec![part] });
    }
    for (path, part) in locations.server_parts(host, location.scope) {
        let part = RegisteredPart::Server(part);
        match files.iter_mut().find(|file| file.path == path) {
            Some(file) => file.parts.push(part),
            None => files.push(RegisteredFile { path, parts: vec![part] }),
        }
    }
    files
}

/// Whether another host that calls the hook reads the same server from this file.
fn is_shared(
    locations: &Locations,
    host: Host,
    scope: Scope,
    path: &Path,
    parts: &[RegisteredPart],
) -> bool {
    let calls = |other: Host| {
        let hooks = locations.all_of(other).into_iter().flat_map(|location| location.files);
        hooks.filter_map(|file| read(&file).ok().flatten()).any(|bytes| has_hooks(other, &bytes))
    };
    parts.iter().all(|part| !part.is_hook())
        && Host::all().iter().copied().filter(|other| *other != host).any(|other| {
            let theirs = locations.server_parts(other, scope);
            theirs.iter().any(|(theirs, _)| theirs == path) && calls(other)
        })
}

/// Whether a file holds hooks of ours for a host.
fn has_hooks(host: Host, bytes: &[u8]) -> bool {
    match &host.spec().registration {
        Registration::Entries(layout) => {
            RegisteredPart::Hooks(layout).program(host, bytes).is_some()
        }
        Registration::Plugin { files, .. } => {
            let text = String::from_utf8_lossy(bytes);
            files.iter().any(|file| text.contains(file.mark))
        }
    }
}

/// Reads a file and finds out what it really is.
fn inspect_file(
    locations: &Locations,
    location: &Location,
    path: &Path,
) -> Result<InstallChange, CommandError> {
    let target = resolve(path).map_err(|error| CommandError::file(path, &error))?;
    let in_project = location.scope != Scope::User && path.starts_with(&location.root);
    if in_project {
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
    let keep = match &locations.home {
        _ if in_project => &location.root,
        Some(home) if path.starts_with(home) => home,
        _ => location.root.parent().unwrap_or(&location.root),
    };
    Ok(InstallChange {
        path: path.to_owned(),
        target,
        after: before.clone(),
        before,
        backup: Backup::Leave,
        keep: keep.to_owned(),
    })
}

fn remove_parts(
    host: Host,
    parts: &[RegisteredPart],
    change: &mut InstallChange,
) -> Result<(), CommandError> {
    let wrong = |error: EditError| invalid(&change.path, &error);
    let Some(before) = &change.before else { return Ok(()) };
    let mut after = before.clone();
    for part in parts.iter().rev() {
        after = part.remove(host, &after).map_err(wrong)?;
    }
    let mut programs = parts.iter().filter_map(|part| part.program(host, before));
    let Some(program) = programs.next() else { return Ok(()) };

    let path = backup_path(&change.target);
    let backup = read(&path).map_err(|error| CommandError::file(&path, &error))?;
    // Where the file is exactly what a registration made of the copy, or of nothing, that is what
    // it becomes again. The server may not have been part of it.
    let hooks = parts.iter().take_while(|part| part.is_hook()).count();
    let replays = [parts, parts.get(..hooks).unwrap_or_default()].into_iter().any(|parts| {
        with_parts(host, parts, &program, backup.as_deref()).is_ok_and(|it| it == *before)
    });
    if replays {
        change.backup = if backup.is_some() { Backup::Remove } else { Backup::Leave };
        change.after = backup;
        return Ok(());
    }
    let keep = backup.is_some() || !hooks_file::is_idle(&String::from_utf8_lossy(&after));
    change.backup = if backup.is_none() && keep { Backup::Write } else { Backup::Leave };
    change.after = keep.then_some(after);
    Ok(())
}

fn with_parts(
    host: Host,
    parts: &[RegisteredPart],
    program: &str,
    before: Option<&[u8]>,
) -> Result<Vec<u8>, EditError> {
    let mut after = before.map(<[u8]>::to_owned);
    for part in parts {
        after = Some(part.add(host, program, after.as_deref())?);
    }
    Ok(after.unwrap_or_default())
}

/// Refuses to touch a file that somebody else put where ours belongs.
fn own(file: &PluginFile, change: &InstallChange) -> Result<(), CommandError> {
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
