//! Reads a file at any place, and from its end.

use std::fs::File;
use std::io;

use super::{TailError, TailPosition};

/// What can be read at any place.
pub(in crate::hosts::hook) trait TailSource {
    /// Fills a buffer from an offset on; an end before that is an error.
    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

#[cfg(unix)]
impl TailSource for File {
    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }
}

#[cfg(not(unix))]
impl TailSource for File {
    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::{Read as _, Seek as _};
        self.seek(io::SeekFrom::Start(offset))?;
        self.read_exact(buffer)
    }
}

/// The last bytes of a source, as far as they were wanted.
pub(super) struct TailWindow<'s> {
    source: &'s mut dyn TailSource,
    /// Where in the source the bytes start.
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
}

impl<'s> TailWindow<'s> {
    /// Starts with nothing, at the end.
    pub(super) fn at_end(source: &'s mut dyn TailSource, len: u64) -> Self {
        Self { source, start: len, bytes: Vec::new() }
    }

    /// Puts the bytes from `start` on before those that are there.
    pub(super) fn extend_back_to(&mut self, start: u64) -> Result<(), TailError> {
        let more = usize::try_from(self.start.saturating_sub(start)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; more.saturating_add(self.bytes.len())];
        let (head, rest) = bytes.split_at_mut(more);
        self.source.read_exact_at(head, start)?;
        rest.copy_from_slice(&self.bytes);
        (self.bytes, self.start) = (bytes, start);
        Ok(())
    }

    /// Returns the position at an offset.
    pub(super) fn position(&mut self, offset: u64) -> Result<TailPosition, TailError> {
        TailPosition::of(self.source, offset)
    }
}

impl TailPosition {
    /// Reads what a position keeps of the bytes before it.
    pub(super) fn of(source: &mut dyn TailSource, offset: u64) -> Result<Self, TailError> {
        let mut before = [0; DIGESTED];
        let len = offset.min(DIGESTED as u64);
        let before = before.get_mut(..usize::try_from(len).unwrap_or_default());
        let before = before.unwrap_or_default();
        source.read_exact_at(before, offset - len)?;
        Ok(Self { offset, digest: digest(before) })
    }

    /// Returns whether the bytes before this position are still what they were.
    pub(super) fn fits(self, source: &mut dyn TailSource, len: u64) -> Result<bool, TailError> {
        Ok(self.offset <= len && Self::of(source, self.offset)? == self)
    }
}

/// FNV-1a, because it must be the same in every build: positions are kept in files. It guards against
/// files that were written anew, not against forgers, who could write the transcript itself.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How many bytes before it a position depends on: a few lines have ids and times in them.
const DIGESTED: usize = 1024;
