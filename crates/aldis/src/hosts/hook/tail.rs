//! The end of a transcript: what was said since somebody last looked.
//!
//! Transcripts grow to gigabytes and a hook runs at every stop, so a file is read from its end back to
//! the last known [`TailPosition`] or to the start of the current turn, whatever comes first, and its
//! size does not matter. Hosts write late: [`settle`] waits until the last words are there.

mod facts;
mod open;
mod source;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use aldis_signal::Message;
use aldis_signal::time::Timestamp;
use aldis_transcript::events::ToolAnswer;
use aldis_transcript::{Format, Input, LineSummary, Mark, Reader, summarize, summarize_of_agent};

use self::facts::Facts;
pub(super) use self::source::TailSource;
use self::source::TailWindow;
use super::shipped::Shipped;
use crate::hosts::Host;

/// A place in a transcript up to which everything was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TailPosition {
    /// How many bytes lie before it.
    pub(crate) offset: u64,
    /// What the last of these bytes were, in short.
    pub(crate) digest: u64,
}

impl fmt::Display for TailPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}", self.offset, self.digest)
    }
}

/// A text that names no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no position in a transcript")]
pub(crate) struct BadPosition;

impl FromStr for TailPosition {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Self, BadPosition> {
        let (offset, digest) = text.split_once(':').ok_or(BadPosition)?;
        let offset = offset.parse().map_err(|_| BadPosition)?;
        let digest = u64::from_str_radix(digest, 16).map_err(|_| BadPosition)?;
        Ok(Self { offset, digest })
    }
}

/// How to read a tail.
#[derive(Clone, Copy)]
pub(crate) struct TailOptions<'a> {
    /// The directories in which the file may lie.
    pub(crate) roots: &'a [PathBuf],
    /// The session whose entries count, where entries name one.
    pub(crate) session: Option<&'a str>,
    /// Whether it is the transcript of a sub-agent.
    pub(crate) of_agent: bool,
    /// Says of raw JSON whether it can hold anything of interest; see [`Reader::new`].
    pub(crate) may_matter: &'a dyn Fn(&[u8]) -> bool,
    /// How much to read.
    pub(crate) limits: Limits,
}

impl fmt::Debug for TailOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailOptions")
            .field("roots", &self.roots)
            .field("session", &self.session)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How much of a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The first piece. Each further one doubles what there is.
    pub(crate) piece: u64,
    /// All pieces together.
    pub(crate) most: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { piece: 64 << 10, most: 16 << 20 }
    }
}

/// What the end of a transcript holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// What was said, in order. Entries count lines of the part that was read.
    pub(crate) messages: Vec<Message>,
    /// Whether the main agent used a tool in this part.
    pub(crate) tools_ran: bool,
    /// When the last prompt of a human came, if it is in this part.
    pub(crate) turn_began: Option<Timestamp>,
    /// Whether the agent asked the user something and has no answer.
    pub(crate) asked_user: bool,
    /// The answers to calls of our tools.
    pub(crate) answers: Vec<ToolAnswer>,
    /// Whether the agent spoke after everything that was said to it.
    pub(crate) answered: bool,
    /// Whether the last line is still being written.
    pub(crate) torn: bool,
    /// Whether the part begins later than it should, because there was too much.
    pub(crate) truncated: bool,
    /// Whether the position that was given does not fit this file any more.
    pub(crate) position_void: bool,
    /// Where the next read should start: the end, or the start of a torn last line.
    pub(crate) position: TailPosition,
}

impl Tail {
    /// Returns whether nothing more is to be expected of this turn.
    pub(crate) fn is_settled(&self) -> bool {
        !self.torn && (self.answered || self.asked_user)
    }
}

/// Why a transcript was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TailError {
    /// Old transcripts may be packed.
    #[error("the transcript is compressed")]
    Compressed,
    /// The system said no, or the file became shorter meanwhile.
    #[error("the transcript cannot be read: {0}")]
    Io(#[source] io::Error),
    /// There is no such file.
    #[error("the transcript does not exist")]
    Missing,
    /// A directory, a FIFO, a device.
    #[error("the transcript is not a regular file")]
    NotAFile,
    /// Not where transcripts of this host may lie.
    #[error("the transcript lies outside of the directories that may be read")]
    Outside,
    /// A link, wherever it leads.
    #[error("the transcript is a symbolic link")]
    Symlink,
}

impl TailError {
    /// Returns the stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Compressed => "transcript_compressed",
            Self::Io(_) => "transcript_unreadable",
            Self::Missing => "transcript_missing",
            Self::NotAFile => "transcript_not_a_file",
            Self::Outside => "transcript_outside",
            Self::Symlink => "transcript_symlink",
        }
    }
}

impl From<io::Error> for TailError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::NotADirectory => Self::NotAFile,
            _ => Self::Io(error),
        }
    }
}

/// Reads the end of a transcript: from `from` on if that still fits the file, else from the start of
/// the current turn.
///
/// # Errors
///
/// When the file cannot or must not be read.
pub(crate) fn read_tail(
    path: &Path,
    host: Host,
    from: Option<TailPosition>,
    options: &TailOptions<'_>,
) -> Result<Tail, TailError> {
    let (mut file, len) = open::open(path, options.roots)?;
    tail_of(&mut file, len, host, from, options)
}

/// Reads the end of a transcript of another machine, as far as it was sent.
///
/// # Errors
///
/// As [`read_tail`].
pub(crate) fn tail_of_shipped(
    shipped: &Shipped,
    host: Host,
    from: Option<TailPosition>,
    options: &TailOptions<'_>,
) -> Result<Tail, TailError> {
    let most = shipped.bytes.len() as u64;
    let options = TailOptions { limits: Limits { most, ..options.limits }, ..*options };
    tail_of(&mut &*shipped, shipped.length(), host, from, &options)
}

/// Reads the last bytes of a transcript, for another machine.
///
/// # Errors
///
/// As [`read_tail`].
pub(crate) fn ship(path: &Path, roots: &[PathBuf], most: u64) -> Result<Shipped, TailError> {
    let (mut file, length) = open::open(path, roots)?;
    let offset = length.saturating_sub(most);
    let mut bytes = vec![0; usize::try_from(length - offset).unwrap_or_default()];
    TailSource::read_exact_at(&mut file, &mut bytes, offset)?;
    Ok(Shipped { offset, bytes })
}

/// Reads a transcript until its end has arrived: for a second and a half, as long as it is not
/// `is_whole`: the agent's last words are missing, or the answer to a call, or the file itself, which
/// some hosts write for the first time when the first turn is nearly over.
///
/// A long turn takes a while to read, so it is read again only when the file has changed, a few
/// times at once and then when the time is over.
///
/// # Errors
///
/// When reading fails.
pub(crate) fn settle<E>(
    mut read: impl FnMut() -> Result<Option<Tail>, E>,
    is_whole: impl Fn(Option<&Tail>) -> bool,
    length: impl Fn() -> u64,
    mut sleep: impl FnMut(Duration),
) -> Result<Option<Tail>, E> {
    let mut known = length();
    let mut tail = read()?;
    let mut reads = 1;
    for pause in 1..=SETTLE_PAUSES {
        if is_whole(tail.as_ref()) {
            break;
        }
        sleep(SETTLE_PAUSE);
        let now = length();
        if now != known && (reads < SETTLE_READS || pause == SETTLE_PAUSES) {
            (known, reads) = (now, reads + 1);
            tail = read()?;
        }
    }
    Ok(tail)
}

/// Returns the first time in a transcript: when its session began.
pub(crate) fn first_time(path: &Path, host: Host, roots: &[PathBuf]) -> Option<Timestamp> {
    let (mut file, length) = open::open(path, roots).ok()?;
    let mut head = vec![0; usize::try_from(length).unwrap_or(HEAD_MAX).min(HEAD_MAX)];
    file.read_exact_at(&mut head, 0).ok()?;
    let format = format_of(host, &head);
    head.split(|byte| *byte == b'\n').find_map(|line| summarize(format, line, None).at)
}

fn format_of(host: Host, bytes: &[u8]) -> Format {
    match host.spec().transcripts.formats {
        [only] => *only,
        [] => Input::Auto.resolve(bytes),
        forms => Input::Host(forms).resolve(bytes),
    }
}

fn tail_of(
    source: &mut dyn TailSource,
    len: u64,
    host: Host,
    from: Option<TailPosition>,
    options: &TailOptions<'_>,
) -> Result<Tail, TailError> {
    let known = match from {
        Some(from) if from.fits(source, len)? => Some(from),
        _ => None,
    };
    let mut part = TailPart::new(TailWindow::at_end(source, len), host, options);
    match known {
        Some(from) => part.read_from(from.offset)?,
        None => part.read_turn()?,
    }
    part.finish(from.is_some() && known.is_none())
}

/// The lines at the end of a file.
struct TailPart<'a, 's> {
    window: TailWindow<'s>,
    host: Host,
    format: Option<Format>,
    options: &'a TailOptions<'a>,
    /// Where in the window the first line that counts starts.
    begin: usize,
    /// Where the last whole line ends, counted from the end of the window, which stays where it is.
    end: Option<usize>,
    /// What is known of the lines, last one first.
    summaries: Vec<LineSummary>,
    truncated: bool,
}

impl<'a, 's> TailPart<'a, 's> {
    fn new(window: TailWindow<'s>, host: Host, options: &'a TailOptions<'a>) -> Self {
        Self {
            window,
            host,
            format: None,
            options,
            begin: 0,
            end: None,
            summaries: Vec::new(),
            truncated: false,
        }
    }

    /// Reads everything from an offset on, or as much of it as is allowed.
    fn read_from(&mut self, offset: u64) -> Result<(), TailError> {
        let earliest = self.window.start.saturating_sub(self.options.limits.most);
        self.truncated = earliest > offset;
        self.window.extend_back_to(earliest.max(offset))?;
        let complete = !self.truncated;
        self.summarize_back(self.window.bytes.len(), complete, |_| false);
        Ok(())
    }

    /// Reads back to the last prompt of a human, or as far as is allowed.
    fn read_turn(&mut self) -> Result<(), TailError> {
        let earliest = self.window.start.saturating_sub(self.options.limits.most);
        let mut piece = self.options.limits.piece.max(1);
        // The part of the window before this was not looked at yet.
        let mut unseen = 0;
        loop {
            let start = self.window.start.saturating_sub(piece).max(earliest);
            unseen += usize::try_from(self.window.start - start).unwrap_or(usize::MAX);
            self.window.extend_back_to(start)?;
            let begins = |line: &LineSummary| line.marks.contains(&Mark::Prompt);
            let (found, seen) = self.summarize_back(unseen, start == 0, begins);
            unseen = seen;
            if found || start == 0 {
                return Ok(());
            }
            if start == earliest {
                self.truncated = true;
                return Ok(());
            }
            piece = self.window.bytes.len() as u64;
        }
    }

    /// Looks at the lines before `to`, last one first, until one is `wanted`; returns whether one
    /// was, and where the line begins that was looked at last.
    fn summarize_back(
        &mut self,
        to: usize,
        from_start: bool,
        wanted: impl Fn(&LineSummary) -> bool,
    ) -> (bool, usize) {
        let mut to = to;
        if self.end.is_none() {
            let Some(end) = self.whole_lines(from_start) else {
                return (false, self.window.bytes.len());
            };
            to = end;
        }
        let format = self.format();
        while to > 0 {
            // The newline that ends the line is not the one that ends the line before it.
            let before = self.window.bytes.get(..to - 1).unwrap_or_default();
            let begin = match memchr::memrchr(b'\n', before) {
                Some(newline) => newline + 1,
                None if from_start => 0,
                None => break,
            };
            let line = self.window.bytes.get(begin..to).unwrap_or_default();
            let seen = match self.options.of_agent {
                true => summarize_of_agent(format, line, self.options.session),
                false => summarize(format, line, self.options.session),
            };
            let found = wanted(&seen);
            self.summaries.push(seen);
            to = begin;
            if found {
                self.begin = to;
                return (true, to);
            }
        }
        self.begin = to;
        (false, to)
    }

    /// Finds the end of the last whole line, if the window holds the start of the last one. A last
    /// line without its newline is whole if it is whole JSON.
    fn whole_lines(&mut self, from_start: bool) -> Option<usize> {
        let bytes = &*self.window.bytes;
        let newline = memchr::memrchr(b'\n', bytes).map(|newline| newline + 1);
        let start = newline.or_else(|| from_start.then_some(0))?;
        let last = bytes.get(start..).unwrap_or_default();
        let whole = last.is_empty() || is_json(last);
        let end = if whole { bytes.len() } else { start };
        self.end = Some(bytes.len() - end);
        Some(end)
    }

    fn format(&mut self) -> Format {
        *self.format.get_or_insert_with(|| format_of(self.host, &self.window.bytes))
    }

    fn finish(mut self, position_void: bool) -> Result<Tail, TailError> {
        let format = self.format();
        let len = self.window.bytes.len();
        let end = len - self.end.unwrap_or(len);
        let mut facts = Facts::default();
        self.summaries.iter().rev().for_each(|line| facts.add(line));
        let mut messages = Vec::new();
        let mut sink = |message| messages.push(message);
        let mut reader =
            Reader::new(format).with_filter(self.options.may_matter).late(self.options.session);
        reader.push(self.window.bytes.get(self.begin..end).unwrap_or_default(), &mut sink);
        reader.finish(&mut sink);
        let position = self.window.position(self.window.start + end as u64)?;
        Ok(Tail {
            messages,
            tools_ran: facts.tools_ran,
            turn_began: facts.turn_began,
            asked_user: facts.asked_user(),
            answers: facts.answers,
            answered: facts.answered,
            torn: end < len,
            truncated: self.truncated,
            position_void,
            position,
        })
    }
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

const SETTLE_PAUSE: Duration = Duration::from_millis(50);
const SETTLE_PAUSES: u32 = 30;
const SETTLE_READS: u32 = 4;
/// How much of a file is searched for its first time.
const HEAD_MAX: usize = 256 << 10;

#[cfg(test)]
mod tests;
