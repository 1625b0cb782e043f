//! Being asked to stop: Ctrl-C, a closed terminal, a polite kill.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use super::message::is_passing;

/// Counts the signals that ask this process to stop, which then no longer end it.
///
/// When it is dropped they are no longer counted, and still do not end the process.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: Counter,
    terminate: Counter,
}

/// How often we were asked since we last looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// By Ctrl-C (`SIGINT`): once to stop, twice to stop at once.
    pub interrupt: usize,
    /// By the system (`SIGTERM`, `SIGHUP`): there may not be much time.
    pub terminate: usize,
}

impl Interrupts {
    /// Starts counting.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptors left.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: Counter::new(&[SIGINT])?,
            terminate: Counter::new(&[SIGTERM, SIGHUP])?,
        })
    }

    /// Returns how often we were asked since the last call.
    pub fn take(&self) -> Asked {
        Asked { interrupt: self.interrupt.take(), terminate: self.terminate.take() }
    }
}

/// Counts the arrivals of some signals, without a moment in which one could be missed.
#[derive(Debug)]
pub(super) struct Counter {
    arrivals: UnixStream,
    ids: Vec<SigId>,
}

impl Counter {
    pub(super) fn new(signals: &[i32]) -> io::Result<Self> {
        let (arrivals, write) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        let mut counter = Self { arrivals, ids: Vec::new() };
        for signal in signals {
            counter.ids.push(pipe::register(*signal, write.try_clone()?)?);
        }
        Ok(counter)
    }

    /// Becomes readable when one arrives.
    pub(super) fn arrivals(&self) -> &UnixStream {
        &self.arrivals
    }

    pub(super) fn take(&self) -> usize {
        let mut count = 0;
        let mut buffer = [0; 64];
        loop {
            match (&self.arrivals).read(&mut buffer) {
                Ok(0) => return count,
                Ok(length) => count += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return count,
                Err(error) if is_passing(&error) => {}
                Err(_) => return count,
            }
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            unregister(id);
        }
    }
}
