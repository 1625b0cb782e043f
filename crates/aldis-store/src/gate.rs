//! One writer at a time, in arrival order: a file lock between processes, a condition variable
//! between threads.
//!
//! SQLite's own busy handler sleeps and tries again, so under load the unlucky wait for seconds.
//! The kernel queues those who wait for a file lock and wakes the next one at once.
//!
//! One gate stands in front of every write. [`Turns`] are gates as well, one for each run: whoever
//! holds a turn passes the first gate like everybody else, and nobody holds that one for long.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::StoreError;
use crate::step::RunId;
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

#[cfg(feature = "postgres")]
impl Inside<'_> {
    /// Returns whether the thread has entered once only.
    pub(crate) fn is_first(&self) -> bool {
        self.gate.state().depth == 1
    }
}

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

/// The turns of runs: each run has one of a fixed number of gates, so that few are ever created.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Where the lock files are; none when there are no other processes.
    dir: Option<PathBuf>,
    gates: [OnceLock<Gate>; Self::GATES as usize],
}

impl Turns {
    /// A promise between processes: never change it.
    const GATES: u64 = 64;

    /// Creates turns between the threads of this process.
    pub(crate) fn local() -> Self {
        Self { dir: None, gates: [const { OnceLock::new() }; Self::GATES as usize] }
    }

    /// Creates turns between all processes that use the same directory.
    pub(crate) fn files(dir: PathBuf) -> Self {
        Self { dir: Some(dir), ..Self::local() }
    }

    /// Returns the number of the gate of a run, the same in every process.
    #[cfg(feature = "postgres")]
    pub(crate) fn number(run: &RunId) -> i32 {
        i32::try_from(gate_of(run) % Self::GATES).unwrap_or_default()
    }

    /// Waits for the turn of a run.
    pub(crate) fn enter(&self, run: &RunId) -> Result<Inside<'_>, StoreError> {
        let number = gate_of(run) % Self::GATES;
        let gate = &self.gates[number as usize];
        if let (None, Some(dir)) = (gate.get(), &self.dir) {
            create_dir(dir)
                .map_err(|error| StoreError::from_io(&error, dir, "create the directory"))?;
        }
        let open = || match &self.dir {
            Some(dir) => Gate::file(dir.join(format!("{number:02}.lock"))),
            None => Gate::local(),
        };
        gate.get_or_init(open).enter()
    }
}

/// FNV-1a: the same in every process of every version.
fn gate_of(run: &RunId) -> u64 {
    let hash = run.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

fn create_dir(dir: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
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
    fn every_version_finds_the_same_turn() {
        let gates = ["a", "auto-7f3a", "general"]
            .map(|id| gate_of(&RunId::new(id).unwrap()) % Turns::GATES);
        assert_eq!(gates, [0, 26, 29]);
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
