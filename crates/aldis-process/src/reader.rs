//! Reads and feeds pipes on threads: the way that works on every system.
//!
//! Memory is bounded by the channel: while nobody takes pieces the threads block, then the pipe fills
//! up, and then the program blocks. A thread ends when the last holder of the pipe closes it, which
//! may be a descendant of the program long after its exit; by then nobody waits for it.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::os::LEAK_WINDOW;

/// The size of the read buffer, and the longest piece.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many pieces may wait to be taken.
const PIECES_MAX: usize = 4;
/// What a program may have written before its exit and was not taken yet: pieces that wait, one in
/// the hands of each thread, and the largest pipe that an unprivileged user can have.
const UNREAD_MAX: usize = (PIECES_MAX + 1) * CHUNK_BYTES + 1024 * 1024;

/// Which stream a piece is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Output,
    Errors,
}

/// What comes from a stream.
#[derive(Debug)]
pub(crate) enum OutputPiece {
    Data(OutputStream, Vec<u8>),
    /// End of file, or an error: there will be no more data.
    End,
}

/// Reads two pipes on a thread each.
pub(crate) fn read_both(
    output: impl Read + Send + 'static,
    errors: impl Read + Send + 'static,
) -> io::Result<Receiver<OutputPiece>> {
    let (sender, receiver) = sync_channel(PIECES_MAX);
    let other = sender.clone();
    thread::Builder::new().spawn(move || read(OutputStream::Output, output, &sender))?;
    thread::Builder::new().spawn(move || read(OutputStream::Errors, errors, &other))?;
    Ok(receiver)
}

/// Writes text to a pipe on a thread, and closes it.
pub(crate) fn feed(mut input: impl Write + Send + 'static, text: Vec<u8>) -> io::Result<()> {
    // A program need not read what it is given.
    thread::Builder::new().spawn(move || input.write_all(&text)).map(drop)
}

fn read(stream: OutputStream, mut pipe: impl Read, sender: &SyncSender<OutputPiece>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let piece = match pipe.read(&mut buffer) {
            Ok(length) if length > 0 => OutputPiece::Data(stream, buffer[..length].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => OutputPiece::End,
        };
        let is_end = matches!(piece, OutputPiece::End);
        // Fails when nobody wants more.
        if sender.send(piece).is_err() || is_end {
            return;
        }
    }
}

/// Decides when the output of a program that has exited counts as complete, although a descendant
/// holds the pipe open: when nothing comes for a moment, or more has come than the program itself can
/// have written.
#[derive(Debug)]
pub(crate) struct Drain {
    exited: Instant,
    last: Instant,
    taken: usize,
}

impl Drain {
    pub(crate) fn new(exited: Instant) -> Self {
        Self { exited, last: exited, taken: 0 }
    }

    pub(crate) fn note(&mut self, now: Instant, bytes: usize) {
        self.last = now;
        self.taken = self.taken.saturating_add(bytes);
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let since = |moment: Instant| now.saturating_duration_since(moment);
        since(self.last) >= LEAK_WINDOW
            || since(self.exited) >= LEAK_WINDOW && self.taken >= 2 * UNREAD_MAX
    }

    /// Returns how long to wait for more.
    pub(crate) fn patience(&self, now: Instant) -> Duration {
        LEAK_WINDOW.saturating_sub(now.saturating_duration_since(self.last))
    }
}

#[cfg(test)]
mod tests {
    //! When output counts as complete.

    use super::*;

    #[test]
    fn output_is_complete_when_nothing_comes_or_too_much() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut drain = Drain::new(start);
        assert!(!drain.is_over(at(99)) && drain.is_over(at(100)));
        drain.note(at(90), 10);
        assert!(!drain.is_over(at(189)) && drain.is_over(at(190)));
        assert_eq!(drain.patience(at(150)), Duration::from_millis(40));
        drain.note(at(95), 2 * UNREAD_MAX);
        assert!(!drain.is_over(at(99)), "the moment is always waited for");
        assert!(drain.is_over(at(100)));
    }
}
