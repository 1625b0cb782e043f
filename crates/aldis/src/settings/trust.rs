//! Which files of repositories the user has trusted, each exactly as it was then.
//!
//! A repository's file may name commands. They run only after the user has said so for that place
//! and that content; any change makes it another file. What was trusted is kept with the rest of the
//! user's state, where no repository can write.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::error::CommandError;
use crate::settings::config::SourceFile;
use crate::settings::home;

/// The directory of the records.
const DIRECTORY: &str = "trust";

/// The files that were trusted.
#[derive(Debug)]
pub(crate) struct Trusted {
    directory: PathBuf,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustRecord {
    /// Format version.
    v: u32,
    /// Where the file was.
    pub(crate) path: PathBuf,
    /// The digest of its place and content.
    pub(crate) digest: String,
    /// When the user trusted it.
    pub(crate) at: Timestamp,
}

impl Trusted {
    /// Finds the records of the user.
    ///
    /// # Errors
    ///
    /// Fails if nothing says where the user's state is.
    pub(crate) fn of_user(state_dir: Option<&Path>) -> Result<Self, CommandError> {
        Ok(Self { directory: home::state_directory(state_dir)?.join(DIRECTORY) })
    }

    /// Returns whether a file is trusted as it was read.
    pub(crate) fn includes(&self, file: &SourceFile) -> bool {
        self.read(&self.record(&file.digest)).is_some_and(|record| record.digest == file.digest)
    }

    /// Trusts a file as it was read.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be written down.
    pub(crate) fn add(&self, file: &SourceFile, now: Timestamp) -> Result<(), CommandError> {
        let digest = file.digest.clone();
        let record = TrustRecord { v: 1, path: place(&file.path), digest, at: now };
        let path = self.record(&file.digest);
        self.write(&path, &record).map_err(|error| CommandError::file(&path, &error))
    }

    /// Takes back the trust in every version of a file. Returns how many there were.
    ///
    /// # Errors
    ///
    /// Fails if a record cannot be removed.
    pub(crate) fn revoke(&self, path: &Path) -> Result<usize, CommandError> {
        let path = place(path);
        let mut count = 0;
        for record in self.list()?.into_iter().filter(|record| record.path == path) {
            let file = self.record(&record.digest);
            fs::remove_file(&file).map_err(|error| CommandError::file(&file, &error))?;
            count += 1;
        }
        Ok(count)
    }

    /// Returns what is trusted, by place and time.
    ///
    /// # Errors
    ///
    /// Fails if the records cannot be read.
    pub(crate) fn list(&self) -> Result<Vec<TrustRecord>, CommandError> {
        let failed = |error: &io::Error| CommandError::file(&self.directory, error);
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| failed(&error))?,
        };
        let mut records = Vec::new();
        for entry in entries {
            records.extend(self.read(&entry.map_err(|error| failed(&error))?.path()));
        }
        records.sort_by(|one, other| (&one.path, one.at).cmp(&(&other.path, other.at)));
        Ok(records)
    }

    fn record(&self, digest: &str) -> PathBuf {
        self.directory.join(format!("{digest}.json"))
    }

    /// Reads a record. One that says something else than its name is none.
    fn read(&self, path: &Path) -> Option<TrustRecord> {
        let record: TrustRecord = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        (self.record(&record.digest) == path && record.v == 1).then_some(record)
    }

    fn write(&self, path: &Path, record: &TrustRecord) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.directory)?;
        let mut file = NamedTempFile::new_in(&self.directory)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

/// A file's place, also if it is gone. One that is a symbolic link has a place of its own: trust in a
/// file of one project is none in a link to it from another.
pub(crate) fn place(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return absolute;
    };
    fs::canonicalize(folder).map_or_else(|_| absolute.clone(), |folder| folder.join(name))
}

#[cfg(test)]
mod tests {
    //! Exactly what was trusted is trusted.

    use super::*;
    use crate::settings::config::Document;

    #[test]
    fn a_change_of_place_or_content_is_another_file() {
        let root = tempfile::tempdir().unwrap();
        let trusted = Trusted { directory: root.path().join("state/trust") };
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::write(&path, text).unwrap();
            Document::read(&path, true).unwrap().file
        };
        let now = Timestamp::from_millis(1_000);
        let first = write("one.toml", "[run]\nverify = \"make test\"\n");
        assert!(!trusted.includes(&first));
        trusted.add(&first, now).unwrap();
        assert!(trusted.includes(&first));
        assert!(!trusted.includes(&write("one.toml", "[run]\nverify = \"make test; id\"\n")));
        assert!(!trusted.includes(&write("two.toml", "[run]\nverify = \"make test\"\n")));
        assert!(trusted.includes(&write("one.toml", "[run]\nverify = \"make test\"\n")));

        assert_eq!(trusted.list().unwrap().len(), 1);
        assert_eq!(trusted.revoke(&root.path().join("two.toml")).unwrap(), 0);
        fs::remove_file(root.path().join("one.toml")).unwrap();
        assert_eq!(
            trusted.revoke(&fs::canonicalize(root.path()).unwrap().join("one.toml")).unwrap(),
            1
        );
        assert!(!trusted.includes(&first));
    }

    #[test]
    fn records_that_were_tampered_with_count_for_nothing() {
        let root = tempfile::tempdir().unwrap();
        let trusted = Trusted { directory: root.path().to_owned() };
        let path = root.path().join("x.toml");
        fs::write(&path, "").unwrap();
        let file = Document::read(&path, true).unwrap().file;
        for text in
            ["", "{}", "{\"v\":1,\"path\":\"x\",\"digest\":\"00\",\"at\":\"2026-03-02T10:00:00Z\"}"]
        {
            fs::write(trusted.record(&file.digest), text).unwrap();
            assert!(!trusted.includes(&file), "{text}");
            assert_eq!(trusted.list().unwrap(), [], "{text}");
        }
    }
}
