//! One writer at a time, in arrival order: a file lock between processes, a condition variable
//! between threads.
//!
//! SQLite's own busy handler sleeps and tries again, so under load the unlucky wait for seconds.
//! The kernel queues those who wait for a file lock and wakes the next one at once.

use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::StoreError;
use crate::store::Turn;

/// Where writers queue.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The file that is locked; none when there are no other processes.
    path: Option<PathBuf>,
    state: Mutex<State>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct State {
    owner: Option<ThreadId>,
    /// How often the owner has entered.
    depth: usize,
    /// Opened by the first to enter: who only reads needs no lock.
    file: Option<File>,
}

/// Being inside the gate.
#[derive(Debug)]
pub(crate) struct Inside<'a> {
    gate: &'a Gate,
    /// Only the thread that entered may leave.
    bound: PhantomData<*const ()>,
}

impl Turn for Inside<'_> {}

impl Gate {
    /// Creates a gate between the threads of this process.
    pub(crate) fn local() -> Self {
        Self { path: None, state: Mutex::default(), free: Condvar::new() }
    }

    /// Creates a gate between all processes that use the same file.
    pub(crate) fn file(path: PathBuf) -> Self {
        Self { path: Some(path), ..Self::local() }
    }

    /// Waits for the way to be free. The owner passes at once.
    pub(crate) fn enter(&self) -> Result<Inside<'_>, StoreError> {
        let me = thread::current().id();
        let mut state = self.state();
        while state.owner.is_some_and(|owner| owner != me) {
            state = self.free.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.owner = Some(me);
        state.depth += 1;
        let first = state.depth == 1;
        drop(state);
        // From here on `inside` cleans up, also when locking fails.
        let inside = Inside { gate: self, bound: PhantomData };
        if first {
            self.lock_file()?;
        }
        Ok(inside)
    }

    /// Returns whether this thread is inside.
    pub(crate) fn is_mine(&self) -> bool {
        self.state().owner == Some(thread::current().id())
    }

    fn lock_file(&self) -> Result<(), StoreError> {
        let Some(path) = &self.path else { return Ok(()) };
        let known = self.state().file.take();
        let locked = known.map_or_else(|| open(path), Ok).and_then(|file| {
            lock(&file)?;
            Ok(file)
        });
        let file =
            locked.map_err(|error| StoreError::from_io(&error, path, "take the writers' lock"))?;
        self.state().file = Some(file);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.depth -= 1;
        if state.depth == 0 {
            // Closing the file unlocks it too, should unlocking fail.
            state.file = state.file.take().filter(|file| file.unlock().is_ok());
            state.owner = None;
            self.gate.free.notify_one();
        }
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            // A signal that is handled elsewhere is no reason to leave the queue.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Exclusion and re-entry.

    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_thread_at_a_time_and_the_owner_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gate.lock");
        // Two gates on one file behave like two processes.
        for gates in [[Gate::local(), Gate::local()], [Gate::file(path.clone()), Gate::file(path)]]
        {
            let between_gates = gates[0].path.is_some();
            let inside = [AtomicUsize::new(0), AtomicUsize::new(0)];
            thread::scope(|scope| {
                for number in 0..8 {
                    let which = if between_gates { number % 2 } else { 0 };
                    let (gate, inside) = (&gates[which], &inside[0]);
                    scope.spawn(move || {
                        for _ in 0..200 {
                            let _outer = gate.enter().unwrap();
                            let _inner = gate.enter().unwrap();
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                    });
                }
            });
            assert_eq!(gates[0].state().depth, 0);
            assert_eq!(gates[0].state().owner, None);
        }
    }

    #[test]
    fn a_gate_that_cannot_lock_stays_usable() {
        let directory = tempfile::tempdir().unwrap();
        let gate = Gate::file(directory.path().join("missing/gate.lock"));
        for _ in 0..2 {
            assert!(matches!(gate.enter(), Err(StoreError::Io { .. })));
            assert_eq!(gate.state().owner, None);
        }
    }
}
