//! Counting signals without a window in which one could be missed: the self-pipe technique.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use super::is_transient;
use crate::SignalCounts;

/// Counts the signals that ask this process to stop, which then no longer end it.
///
/// When it is dropped they are no longer counted, and still do not end the process.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: SignalCounter,
    terminate: SignalCounter,
}

impl Interrupts {
    /// Starts counting.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptors left.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: SignalCounter::new(&[SIGINT])?,
            terminate: SignalCounter::new(&[SIGTERM, SIGHUP])?,
        })
    }

    /// Returns the signals received since the last call. Where the system does not count (Windows),
    /// several of a kind between two calls are one.
    pub fn take(&self) -> SignalCounts {
        SignalCounts { interrupt: self.interrupt.take(), terminate: self.terminate.take() }
    }
}

/// Counts arrivals of some signals: the handler writes one byte for each into a socket pair.
#[derive(Debug)]
pub(crate) struct SignalCounter {
    arrivals: UnixStream,
    ids: Vec<SigId>,
}

impl SignalCounter {
    pub(crate) fn new(signals: &[i32]) -> io::Result<Self> {
        let (arrivals, write) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        let mut counter = Self { arrivals, ids: Vec::new() };
        for signal in signals {
            counter.ids.push(pipe::register(*signal, write.try_clone()?)?);
        }
        Ok(counter)
    }

    /// Becomes readable when a signal arrives.
    #[cfg(target_os = "linux")]
    pub(crate) fn arrivals(&self) -> &UnixStream {
        &self.arrivals
    }

    /// Returns how many have arrived since the last call.
    pub(crate) fn take(&self) -> usize {
        let mut count = 0;
        let mut buffer = [0; 64];
        loop {
            match (&self.arrivals).read(&mut buffer) {
                Ok(0) => return count,
                Ok(length) => count += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return count,
                Err(error) if is_transient(&error) => {}
                Err(_) => return count,
            }
        }
    }
}

impl Drop for SignalCounter {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            unregister(id);
        }
    }
}
