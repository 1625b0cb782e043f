//! The receipts of one run: files in a directory of the run's name, in the order of their numbers.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use aldis_store::{Effect, RunId};

use super::canonical::canonical;
use super::key::{make_directory, open, remove_leftovers, sync_directory};
use crate::error::CommandError;
use crate::view::wire::receipt::SealedReceipt;

/// Where they are in the state directory.
const DIRECTORY: &str = "receipts";
/// Held by whoever adds one.
const LOCK: &str = ".lock";
/// The longest receipt that is read.
const FILE_MAX: u64 = 16 << 20;

/// The receipts of a run.
pub(crate) struct Chain {
    directory: PathBuf,
}

/// The receipts of a run, while nobody else adds one.
pub(super) struct LockedChain {
    chain: Chain,
    _lock: File,
}

/// A file of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceiptFile {
    pub(crate) name: Name,
    pub(crate) path: PathBuf,
}

/// How the file of a receipt is called: by its number, and by the step and the effect that wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) number: u64,
    pub(crate) revision: u64,
    pub(crate) effect: u64,
}

impl Name {
    /// The name of what an effect wants, without its number: its key is `RUN/REVISION/receipt/NUMBER`.
    pub(super) fn of_effect(effect: &Effect) -> Option<Self> {
        let mut parts = effect.key.rsplit('/');
        let effect = parts.next()?.parse().ok()?;
        let revision = parts.nth(1)?.parse().ok()?;
        Some(Self { number: 0, revision, effect })
    }

    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".json")?.split('-').map(str::parse::<u64>);
        let mut next = || parts.next()?.ok();
        let name = Self { number: next()?, revision: next()?, effect: next()? };
        parts.next().is_none().then_some(name)
    }

    fn file(self) -> String {
        format!("{:05}-{}-{}.json", self.number, self.revision, self.effect)
    }

    /// Returns whether both are of the same effect.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        (self.revision, self.effect) == (other.revision, other.effect)
    }
}

impl Chain {
    /// The receipts of a run.
    pub(crate) fn of(state: &Path, run: &RunId) -> Self {
        Self { directory: all(state).join(run.as_str()) }
    }

    /// Returns them, the first one first.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub(crate) fn entries(&self) -> Result<Vec<ReceiptFile>, CommandError> {
        let listed = match fs::read_dir(&self.directory) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(CommandError::file(&self.directory, &error)),
        };
        let entry = |entry: fs::DirEntry| {
            let name = Name::parse(entry.file_name().to_str()?)?;
            Some(ReceiptFile { name, path: entry.path() })
        };
        let mut entries: Vec<ReceiptFile> = listed.flatten().filter_map(entry).collect();
        entries.sort_unstable_by_key(|entry| entry.name);
        Ok(entries)
    }

    /// Waits until nobody else adds a receipt.
    pub(super) fn lock(self) -> Result<LockedChain, CommandError> {
        let failed = |error: io::Error| CommandError::file(&self.directory, &error);
        make_directory(&self.directory).map_err(failed)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.directory.join(LOCK))
            .map_err(failed)?;
        lock.lock().map_err(failed)?;
        remove_leftovers(&self.directory);
        Ok(LockedChain { chain: self, _lock: lock })
    }
}

impl LockedChain {
    pub(super) fn entries(&self) -> Result<Vec<ReceiptFile>, CommandError> {
        self.chain.entries()
    }

    /// Adds a receipt. It is durable when this returns.
    pub(super) fn append(&self, name: &Name, sealed: &SealedReceipt) -> Result<(), CommandError> {
        let directory = &self.chain.directory;
        let path = directory.join(name.file());
        let failed = |error: io::Error| CommandError::file(&path, &error);
        let text = canonical(sealed)?;
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        writeln!(file, "{text}").and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist_noclobber(&path).map_err(|error| failed(error.error))?;
        sync_directory(directory).map_err(failed)?;
        // The names of the directories above are new only once.
        let above = directory.parent().into_iter().chain(directory.parent().and_then(Path::parent));
        above.take(2).try_for_each(sync_directory).map_err(failed)
    }
}

/// Where the receipts of all runs are.
pub(crate) fn all(state: &Path) -> PathBuf {
    state.join(DIRECTORY)
}

/// Returns the runs that have receipts.
pub(crate) fn runs(state: &Path) -> Vec<RunId> {
    let listed = fs::read_dir(all(state)).into_iter().flatten().flatten();
    let mut runs: Vec<RunId> =
        listed.filter_map(|entry| RunId::new(entry.file_name().to_str()?).ok()).collect();
    runs.sort_unstable();
    runs
}

/// Reads a receipt as it is kept.
///
/// # Errors
///
/// Fails if it is no file of reasonable length.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let failed = |error: io::Error| CommandError::file(path, &error);
    let file = open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(CommandError::new(format!("`{}` is no file", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Reads what a receipt says, without asking whether it is genuine.
///
/// # Errors
///
/// Fails if it cannot be read.
pub(crate) fn parse(path: &Path) -> Result<SealedReceipt, CommandError> {
    let broken = |error| CommandError::new(format!("`{}`: {error}", path.display()));
    serde_json::from_slice(&read(path)?).map_err(broken)
}

#[cfg(test)]
mod tests {
    //! Names lead back to the effects that wanted them.

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let name = Name { number: 3, revision: 17, effect: 0 };
        assert_eq!(name.file(), "00003-17-0.json");
        assert_eq!(Name::parse(&name.file()), Some(name));
        for other in [".lock", ".tmpx", "1-2.json", "1-2-3-4.json", "a-2-3.json", "1-2-3.json.bak"]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
