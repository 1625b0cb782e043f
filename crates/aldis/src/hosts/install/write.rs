//! Writes files so that a reader sees the old or the new one, never a part of either.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::path::Path;

use similar::TextDiff;

use super::plan::{Action, Backup, InstallChange, read};
use crate::error::CommandError;

/// Carries a change out.
pub(crate) fn perform(change: &InstallChange) -> Result<(), CommandError> {
    if change.action() == Action::Unchanged {
        return Ok(());
    }
    let failed = |error: io::Error| CommandError::file(&change.path, &error);
    // Whoever wrote in the meantime must not lose it.
    if read(&change.target).map_err(failed)? != change.before {
        return Err(CommandError::new(format!(
            "`{}` was changed by somebody else in this moment",
            change.path.display()
        ))
        .with_help("run the command again"));
    }
    if let (Backup::Write, Some(before)) = (change.backup, &change.before) {
        replace(&change.backup_path(), before, mode(&change.target)).map_err(failed)?;
    }
    match &change.after {
        Some(after) => replace(&change.target, after, mode(&change.target)).map_err(failed)?,
        None => remove(&change.target, &change.keep).map_err(failed)?,
    }
    if change.backup == Backup::Remove {
        fs::remove_file(change.backup_path()).map_err(failed)?;
    }
    tracing::info!(file = %change.target.display(), action = ?change.action(), "changed");
    Ok(())
}

/// Returns the change as a unified diff.
pub(crate) fn diff(change: &InstallChange, name: &str) -> String {
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let (before, after) = (text(&change.before), text(&change.after));
    let old = if change.before.is_some() { name } else { "/dev/null" };
    let new = if change.after.is_some() { name } else { "/dev/null" };
    TextDiff::from_lines(&before, &after).unified_diff().header(old, new).to_string()
}

fn replace(path: &Path, bytes: &[u8], mode: Permissions) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".aldis-").suffix(".tmp").permissions(mode.clone());
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if path.exists() {
        // The mask for new files does not apply to one that has its mode already.
        file.as_file().set_permissions(mode)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync(folder)
}

fn remove(path: &Path, keep: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    let keep = fs::canonicalize(keep).unwrap_or_else(|_| keep.to_owned());
    for folder in path.ancestors().skip(1) {
        // A folder that is not empty stays, and so does all above it.
        if !folder.starts_with(&keep) || folder == keep || fs::remove_dir(folder).is_err() {
            return sync(folder);
        }
    }
    Ok(())
}

/// Makes a rename or removal in a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(unix)]
fn mode(path: &Path) -> Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().map_or_else(|_| Permissions::from_mode(0o666), |meta| meta.permissions())
}

#[cfg(not(unix))]
fn mode(path: &Path) -> Permissions {
    let permissions = |path: &Path| path.metadata().map(|meta| meta.permissions());
    // Every process has a file of its own program.
    permissions(path)
        .or_else(|_| permissions(&std::env::current_exe()?))
        .unwrap_or_else(|_| unreachable!())
}
