//! Where bytes come from: files and streams, read once, in pieces, or followed as they grow.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::CommandError;
use crate::io::Io;
use crate::view::progress::Progress;

/// How long a followed text must be silent to count as one finished message.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// What came next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// So many bytes at the front of the buffer, at least one.
    Bytes(usize),
    /// There will be no more.
    End,
    /// Nothing for [`PAUSE`]. Said once for each silence.
    Pause,
    /// The file was cut short or replaced; what follows is its new beginning.
    Restart,
}

/// An open input.
pub(crate) struct InputSource {
    /// What the user called it; `-` is standard input.
    pub(crate) path: PathBuf,
    kind: SourceKind,
    /// How much of a file was read, where that is shown.
    progress: Option<Progress>,
}

enum SourceKind {
    Following(Following),
    Once(Box<dyn Read>),
    Stream { chunks: Receiver<io::Result<Vec<u8>>>, silent: bool },
}

impl std::fmt::Debug for SourceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Following(_) => "Following",
            Self::Once(_) => "Once",
            Self::Stream { .. } => "Stream",
        })
    }
}

impl InputSource {
    /// Opens an input.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist, cannot be opened or is a directory.
    pub(crate) fn open(io: &mut Io, path: &Path, follow: bool) -> Result<Self, CommandError> {
        let kind = if path == Path::new("-") {
            let stdin = mem::replace(&mut io.stdin, Box::new(io::empty()));
            if follow { stream(stdin) } else { SourceKind::Once(stdin) }
        } else {
            let failed = |error| CommandError::file(path, &error);
            let file = File::open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(CommandError::new(format!("`{}` is a directory", path.display()))
                    .with_help("name the files in it"));
            }
            match (follow, metadata.is_file()) {
                (false, _) => SourceKind::Once(Box::new(file)),
                (true, true) => {
                    SourceKind::Following(Following { file, metadata, read: 0, polls: 0 })
                }
                (true, false) => stream(Box::new(file)),
            }
        };
        Ok(Self { path: path.to_owned(), kind, progress: None })
    }

    /// Shows on standard error how much of a file was read.
    pub(crate) fn show_progress(&mut self) {
        let file = self.path.metadata().ok().filter(Metadata::is_file);
        let name = self.path.display().to_string();
        self.progress = file.map(|file| Progress::bytes(&name, file.len()));
    }

    /// Waits for the next piece. Pieces of an input that is read once fill the buffer.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read on.
    pub(crate) fn next(&mut self, buffer: &mut [u8]) -> Result<Next, CommandError> {
        let next = match &mut self.kind {
            SourceKind::Following(following) => following.next(&self.path, buffer),
            SourceKind::Once(reader) => fill(reader, buffer).map(Next::from_count),
            SourceKind::Stream { chunks, silent } => next_chunk(chunks, silent, buffer),
        };
        if let (Some(progress), Ok(Next::Bytes(count))) = (&mut self.progress, &next) {
            progress.advance(*count as u64);
        }
        next.map_err(|error| CommandError::file(&self.path, &error))
    }

    /// Checks the first bytes of the input: compressed ones would be searched in vain.
    ///
    /// # Errors
    ///
    /// Fails if they are those of a compressed file, such as Codex makes of old rollouts.
    pub(crate) fn check(&self, head: &[u8]) -> Result<(), CommandError> {
        let Some((_, tool)) = COMPRESSED.iter().find(|(magic, _)| head.starts_with(magic)) else {
            return Ok(());
        };
        let error = format!("`{}` is compressed by {tool}", self.path.display());
        let help = format!("decompress it: `{tool} -dc FILE | aldis scan`");
        Err(CommandError::new(error).with_help(help))
    }
}

impl Next {
    fn from_count(count: usize) -> Self {
        if count == 0 { Self::End } else { Self::Bytes(count) }
    }
}

fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A regular file that may grow.
struct Following {
    file: File,
    metadata: Metadata,
    read: u64,
    /// Looks in vain since the last bytes.
    polls: u32,
}

impl Following {
    fn next(&mut self, path: &Path, buffer: &mut [u8]) -> io::Result<Next> {
        loop {
            match self.file.read(buffer) {
                Ok(0) => {}
                Ok(count) => {
                    self.read += count as u64;
                    self.polls = 0;
                    return Ok(Next::Bytes(count));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if self.was_replaced(path) {
                self.file = File::open(path)?;
                self.metadata = self.file.metadata()?;
                (self.read, self.polls) = (0, 0);
                return Ok(Next::Restart);
            }
            self.polls = self.polls.saturating_add(1);
            if self.polls == POLLS_IN_PAUSE + 1 {
                return Ok(Next::Pause);
            }
            thread::sleep(POLL);
        }
    }

    /// Whether the path now leads to less than was read, or to another file. A file that is gone
    /// for the moment is not replaced yet.
    fn was_replaced(&self, path: &Path) -> bool {
        let Ok(now) = fs::metadata(path) else { return false };
        now.is_file() && (now.len() < self.read || !is_same_file(&now, &self.metadata))
    }
}

#[cfg(unix)]
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    one.created().ok() == other.created().ok()
}

/// Reads a stream on a thread of its own, because a read cannot be told to give up after a pause.
fn stream(mut reader: Box<dyn Read + Send>) -> SourceKind {
    let (sender, chunks) = sync_channel(CHUNKS_WAITING_MAX);
    thread::spawn(move || {
        let mut buffer = vec![0; STREAM_CHUNK];
        loop {
            let chunk = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(buffer.get(..count).unwrap_or_default().to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = chunk.is_err();
            if sender.send(chunk).is_err() || failed {
                return;
            }
        }
    });
    SourceKind::Stream { chunks, silent: true }
}

fn next_chunk(
    chunks: &Receiver<io::Result<Vec<u8>>>,
    silent: &mut bool,
    buffer: &mut [u8],
) -> io::Result<Next> {
    let received = if *silent {
        chunks.recv().map_err(|_| RecvTimeoutError::Disconnected)
    } else {
        chunks.recv_timeout(PAUSE)
    };
    match received {
        Ok(chunk) => {
            let chunk = chunk?;
            *silent = false;
            // The thread's buffer is no larger than any that is passed here.
            let count = chunk.len().min(buffer.len());
            buffer.iter_mut().zip(&chunk).for_each(|(to, from)| *to = *from);
            Ok(Next::from_count(count))
        }
        Err(RecvTimeoutError::Timeout) => {
            *silent = true;
            Ok(Next::Pause)
        }
        Err(RecvTimeoutError::Disconnected) => Ok(Next::End),
    }
}

/// The first bytes of compressed files, and who reads them.
const COMPRESSED: [(&[u8], &str); 2] =
    [(&[0x28, 0xB5, 0x2F, 0xFD], "zstd"), (&[0x1F, 0x8B], "gzip")];

const STREAM_CHUNK: usize = 64 * 1024;
const CHUNKS_WAITING_MAX: usize = 16;
const POLL: Duration = Duration::from_millis(200);
const POLLS_IN_PAUSE: u32 = (PAUSE.as_millis() / POLL.as_millis()) as u32;
