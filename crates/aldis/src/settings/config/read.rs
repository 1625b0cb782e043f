//! Files with settings: found, read once, and turned into trees.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::tree::{Node, Origin, SourceFile};
use super::{from_toml, from_yaml};
use crate::error::CommandError;
use crate::settings::trust;

/// The names a file with settings may have.
pub(crate) const NAMES: [&str; 3] = ["aldis.toml", "aldis.yaml", "aldis.yml"];
/// The longest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;

/// A text whose places can be named.
pub(super) struct NumberedText<'t> {
    pub(super) text: &'t str,
    file: Arc<SourceFile>,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl<'t> NumberedText<'t> {
    fn new(text: &'t str, file: Arc<SourceFile>) -> Self {
        let after = |(at, byte): (usize, u8)| (byte == b'\n').then_some(at + 1);
        let starts = std::iter::once(0).chain(text.bytes().enumerate().filter_map(after));
        Self { text, file, starts: starts.collect() }
    }
}

impl NumberedText<'_> {
    pub(super) fn origin(&self, line: usize) -> Origin {
        Origin::File { file: Arc::clone(&self.file), line }
    }

    pub(super) fn of_byte(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }
}

/// What is wrong with the form of a file.
pub(super) struct Malformed {
    pub(super) line: usize,
    pub(super) message: String,
}

/// Returns the file with settings in a directory.
///
/// # Errors
///
/// Fails if there are two: nobody could say which one counts.
pub(crate) fn file_in(directory: &Path) -> Result<Option<PathBuf>, CommandError> {
    let mut found = NAMES.iter().filter(|name| directory.join(name).symlink_metadata().is_ok());
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(CommandError::new(format!(
            "`{}` has both `{first}` and `{second}`",
            directory.display()
        ))
        .with_help("keep one of them: settings are read from one file")),
        (first, _) => Ok(first.map(|name| directory.join(name))),
    }
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) tree: Node,
}

impl Document {
    /// Reads a file. Whether it is TOML or YAML is said by its name.
    ///
    /// # Errors
    ///
    /// Fails with the line of what is wrong.
    pub(crate) fn read(path: &Path, of_project: bool) -> Result<Self, CommandError> {
        let text = text(path)?;
        let digest = digest(&trust::place(path), &text);
        let file = Arc::new(SourceFile { path: path.to_owned(), of_project, digest });
        let lines = NumberedText::new(&text, Arc::clone(&file));
        let yaml = path.extension().is_some_and(|name| name == "yaml" || name == "yml");
        let tree = if yaml { from_yaml::parse(&lines) } else { from_toml::parse(&lines) };
        let tree = tree.map_err(|Malformed { line, message }| {
            CommandError::new(format!("`{}` line {line}: {message}", path.display()))
        })?;
        Ok(Self { file, tree })
    }
}

/// Writes a new file with settings, in a directory that has none.
///
/// # Errors
///
/// Fails if there is one, or it cannot be written.
pub(crate) fn create(directory: &Path, text: &str) -> Result<PathBuf, CommandError> {
    if let Some(there) = file_in(directory)? {
        return Err(CommandError::new(format!("`{}` is there already", there.display()))
            .with_help(
                "aldis config check checks it, aldis config show --origin says what counts",
            ));
    }
    let file = directory.join(NAMES[0]);
    fs::create_dir_all(directory)
        .and_then(|()| fs::OpenOptions::new().write(true).create_new(true).open(&file))
        .and_then(|mut new| new.write_all(text.as_bytes()))
        .map_err(|error| CommandError::file(&file, &error))?;
    Ok(file)
}

/// Reads a regular file of a sensible size.
///
/// # Errors
///
/// Fails if it is something else.
pub(crate) fn text(path: &Path) -> Result<String, CommandError> {
    let failed = |error: std::io::Error| CommandError::file(path, &error);
    // Opening a pipe would wait for a writer that never comes.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(CommandError::new(format!("`{}` is not a file", path.display())));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > BYTES_MAX) {
        return Err(CommandError::new(format!("`{}` is too large", path.display()))
            .with_help(format!("at most {BYTES_MAX} bytes are read")));
    }
    String::from_utf8(bytes)
        .map_err(|_| CommandError::new(format!("`{}` is not UTF-8 text", path.display())))
}

/// What a user trusts: this text in this place.
fn digest(place: &Path, text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(place.as_os_str().as_encoded_bytes());
    hash.update([0]);
    hash.update(text);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
