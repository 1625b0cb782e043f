//! Requests to stop: Ctrl-C, a closed terminal, a polite kill.

use std::io;

use crate::os;

/// Counts the signals that ask this process to stop, which then no longer end it.
///
/// When it is dropped they are no longer counted, and still do not end the process.
#[derive(Debug)]
pub struct Interrupts {
    signals: os::Interrupts,
}

/// The signals received since [`Interrupts::take`] was last called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalCounts {
    /// Ctrl-C (`SIGINT`): once means stop, twice means stop at once.
    pub interrupt: usize,
    /// From the system (`SIGTERM`, `SIGHUP`): there may not be much time.
    pub terminate: usize,
}

impl Interrupts {
    /// Starts counting.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptors left.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signals: os::Interrupts::listen()? })
    }

    /// Returns the signals received since the last call. Where the system does not count (Windows),
    /// several of a kind between two calls are one.
    pub fn take(&self) -> SignalCounts {
        self.signals.take()
    }
}
