//! What an agent wrote, but for secrets of known shapes, in files that do not grow for ever.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::path::{Path, PathBuf};

use aldis_signal::redact::Redactor;
use aldis_store::RunId;
use serde::{Deserialize, Serialize};

/// How large a file becomes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Shorter pieces end a burst: then nothing is held back any more.
const BURST: usize = 32 * 1024;
/// What is written at once, and where in the file: the system is quickest with whole blocks.
const BLOCK: u64 = 4 * 1024;
/// How long a line may become before it is written in parts.
const LINE_MAX: usize = 64 * 1024;
/// How many files are kept, the one being written included.
const FILES_MAX: usize = 4;
/// Says which agent worked on what, a line for each, where a run has several.
const AGENTS: &str = "agents.jsonl";

/// Returns where the logs of all runs are.
pub(crate) fn all(state: &Path) -> PathBuf {
    state.join("logs")
}

/// An agent of a run, as its log is found and labelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LoggedAgent {
    /// Its number; a run with one agent has none.
    pub(crate) agent: Option<u64>,
    pub(crate) role: String,
    pub(crate) task: Option<String>,
}

impl LoggedAgent {
    /// Returns the agents of a run, in the order of their starts.
    pub(crate) fn all_of(state: &Path, run: &RunId) -> Vec<Self> {
        let directory = all(state).join(run.as_str());
        let alone = Self::default();
        let one = alone.files(state, run).next().is_some_and(|file| file.exists());
        let text = fs::read_to_string(directory.join(AGENTS)).unwrap_or_default();
        let several = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        one.then_some(alone).into_iter().chain(several).collect()
    }

    /// Returns the places of its log, from the file being written to the oldest.
    pub(crate) fn files(&self, state: &Path, run: &RunId) -> impl Iterator<Item = PathBuf> {
        let (directory, name) = (all(state).join(run.as_str()), self.file_name());
        (0..FILES_MAX).map(move |number| directory.join(numbered(&name, number)))
    }

    fn file_name(&self) -> String {
        self.agent.map_or_else(|| "agent.log".to_owned(), |agent| format!("agent-{agent}.log"))
    }

    /// Notes who it is. Its output is kept also where that fails.
    fn note(&self, directory: &Path) {
        let Ok(line) = serde_json::to_string(self) else { return };
        let noted = append(&directory.join(AGENTS))
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        drop(noted);
    }
}

/// Opens what a supervisor in the background prints: its own words, not those of its agents.
pub(crate) fn of_supervisor(state: &Path, run: &RunId) -> io::Result<File> {
    let directory = all(state).join(run.as_str());
    create_private(&directory)?;
    append(&directory.join("supervisor.log"))
}

/// Makes a directory for its owner alone.
fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}.{number}") }
}

/// The log of one run. A log that cannot be written is no reason to end a run.
#[derive(Debug)]
pub(crate) struct OutputLog {
    directory: PathBuf,
    name: String,
    file: Option<File>,
    written: u64,
    /// What waits for the rest of its block.
    held: Vec<u8>,
    bytes_max: u64,
    /// The line that is not complete yet.
    rest: Vec<u8>,
    redactor: Redactor,
}

impl OutputLog {
    /// Opens the log of a run within the state directory, readable by its owner alone.
    pub(crate) fn open(state: &Path, run: &RunId) -> Self {
        Self::of_agent(state, run, &LoggedAgent::default())
    }

    /// Opens the log of one of several agents of a run.
    pub(crate) fn of_agent(state: &Path, run: &RunId, agent: &LoggedAgent) -> Self {
        let directory = all(state).join(run.as_str());
        let name = agent.file_name();
        let _there = create_private(&directory);
        let mut log = Self {
            directory,
            name,
            file: None,
            written: 0,
            held: Vec::new(),
            bytes_max: BYTES_MAX,
            rest: Vec::new(),
            redactor: Redactor::default(),
        };
        log.reopen();
        if agent.agent.is_some() {
            agent.note(&log.directory);
        }
        log
    }

    /// Appends what was written, whole lines at a time: a secret may come in pieces.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        let in_burst = bytes.len() >= BURST;
        if !self.rest.is_empty() {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            let (line, more) = bytes.split_at(end);
            self.rest.extend_from_slice(line);
            bytes = more;
            if line.ends_with(b"\n") || self.rest.len() > LINE_MAX {
                self.write_rest();
            }
        }
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(end);
        self.write_lines(lines);
        self.rest.extend_from_slice(rest);
        if self.rest.len() > LINE_MAX {
            self.write_rest();
        }
        if !in_burst {
            self.flush();
        }
    }

    fn write_rest(&mut self) {
        let mut rest = std::mem::take(&mut self.rest);
        self.write_lines(&rest);
        rest.clear();
        self.rest = rest;
    }

    fn write_lines(&mut self, lines: &[u8]) {
        if !lines.is_empty() {
            let clean = self.redactor.lines(lines);
            self.append(&clean);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.written + self.held.len() as u64 >= self.bytes_max {
            self.flush();
            self.rotate();
        }
        let there = self.written + (self.held.len() + bytes.len()) as u64;
        let whole = (there / BLOCK * BLOCK).saturating_sub(self.written);
        // What is held back never reaches the end of its block.
        let whole = usize::try_from(whole).unwrap_or_default().saturating_sub(self.held.len());
        let (now, later) = bytes.split_at(whole.min(bytes.len()));
        if !now.is_empty() {
            self.put(now);
        }
        self.held.extend_from_slice(later);
    }

    /// Writes what is held back. For whoever hears nothing more for a while.
    pub(crate) fn flush(&mut self) {
        self.put(&[]);
    }

    /// Writes what is held back, and more.
    fn put(&mut self, more: &[u8]) {
        if let Some(file) = &mut self.file {
            let mut slices = [IoSlice::new(&self.held), IoSlice::new(more)];
            // A full disk must not end the run; the store says it when it matters.
            let _kept = write_all(file, &mut slices);
            self.written += (self.held.len() + more.len()) as u64;
        }
        self.held.clear();
    }

    fn rotate(&mut self) {
        self.file = None;
        let name = |number: usize| self.directory.join(numbered(&self.name, number));
        // A file that another takes the place of is first written to the disk by some systems.
        let _gone = fs::remove_file(name(FILES_MAX - 1));
        for number in (0..FILES_MAX - 1).rev() {
            let _moved = fs::rename(name(number), name(number + 1));
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        let opened = || -> io::Result<(File, u64)> {
            let file = append(&self.directory.join(&self.name))?;
            let written = file.metadata()?.len();
            Ok((file, written))
        };
        if let Ok((file, written)) = opened() {
            (self.file, self.written) = (Some(file), written);
        }
    }
}

/// Writes all of some pieces.
fn write_all(file: &mut File, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Those that are empty need no call.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.write_vectored(pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut pieces, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Drop for OutputLog {
    fn drop(&mut self) {
        self.write_rest();
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    //! Files that give way to newer ones.

    use super::*;

    #[test]
    fn old_files_give_way() {
        let state = tempfile::tempdir().unwrap();
        let run = RunId::new("r1").unwrap();
        let mut log = OutputLog::open(state.path(), &run);
        log.bytes_max = 10;
        for number in 0..10 {
            log.write(format!("line {number} is long enough\n").as_bytes());
        }
        let directory = state.path().join("logs/r1");
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(read("agent.log"), "line 9 is long enough\n");
        assert_eq!(read("agent.log.3"), "line 6 is long enough\n");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), FILES_MAX);
        // A run that goes on appends.
        drop(log);
        OutputLog::open(state.path(), &run).write(b"more\n");
        assert_eq!(read("agent.log"), "line 9 is long enough\nmore\n");
    }

    #[test]
    fn secrets_are_left_out_also_in_pieces() {
        let state = tempfile::tempdir().unwrap();
        let run = RunId::new("r1").unwrap();
        let mut log = OutputLog::open(state.path(), &run);
        let text = format!("key: ghp_{}\nplain \u{fffd}", "x".repeat(36));
        text.as_bytes().chunks(7).for_each(|piece| log.write(piece));
        log.write(b"\xff\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\nlast");
        drop(log);
        let kept = fs::read(state.path().join("logs/r1/agent.log")).unwrap();
        let key = b"[redacted]\n".repeat(3);
        let wanted =
            [&b"key: [redacted]\nplain \xef\xbf\xbd\xff\n"[..], &key, &b"last"[..]].concat();
        assert_eq!(kept, wanted, "{}", String::from_utf8_lossy(&kept));
    }

    #[test]
    fn bursts_are_kept_whole_and_end_with_a_short_piece_or_a_pause() {
        let state = tempfile::tempdir().unwrap();
        let run = RunId::new("r1").unwrap();
        let mut log = OutputLog::open(state.path(), &run);
        let secret = format!("ghp_{}", "x".repeat(36));
        let line = format!("{}\n", "plain ".repeat(20));
        let text = format!("{}{secret}\n{line}", line.repeat(3_000));
        let wanted = text.replace(&secret, "[redacted]");
        let kept = || fs::read(state.path().join("logs/r1/agent.log")).unwrap();
        for piece in text.as_bytes().chunks(BURST) {
            log.write(piece);
            assert!(wanted.as_bytes().starts_with(&kept()));
        }
        assert_eq!(kept(), wanted.as_bytes());
        let more = line.repeat(BURST / line.len() + 1);
        log.write(more.as_bytes());
        log.flush();
        assert_eq!(kept(), [wanted, more].concat().as_bytes());
    }

    #[test]
    fn a_log_that_cannot_be_written_is_done_without() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut log = OutputLog::open(file.path(), &RunId::new("r1").unwrap());
        log.write(b"x");
        assert!(log.file.is_none());
    }
}
