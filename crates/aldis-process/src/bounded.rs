//! Runs an external program to its end, with a deadline: git, checks, notice commands.
//!
//! Not for agents: what the program leaves in the background when it exits in time is not ended, as
//! a notice command may want that.

use std::fmt;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use process_wrap::std::ChildWrapper;

use crate::os::{self, KILL_LIMIT};
use crate::reader::{self, Drain, OutputPiece, OutputStream};

/// How often the exit is polled, at first and at most.
const POLL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// How long a program has to stop by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// What a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedOutput {
    /// How it exited.
    pub status: ExitStatus,
    /// The beginning of its standard output.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub stderr: Vec<u8>,
    /// Whether one of the two was longer than the limit.
    pub truncated: bool,
}

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoundedError {
    /// It could not be started.
    #[error("failed to start `{program}`: {error}")]
    Start {
        /// As it was given.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// It was still running at the deadline, and was killed with its process group.
    #[error("`{program}` was killed: it did not end within {}", Seconds(*limit))]
    TimedOut {
        /// As it was given.
        program: String,
        /// How long it was allowed to run.
        limit: Duration,
        /// The beginning of its standard output.
        stdout: Vec<u8>,
        /// The beginning of its standard error.
        stderr: Vec<u8>,
    },
    /// Nobody wants its result any more: it was killed with its process group.
    #[error("`{program}` was cancelled")]
    Cancelled {
        /// As it was given.
        program: String,
    },
    /// The system does not say how it exited.
    #[error("failed to wait for `{program}`: {error}")]
    Wait {
        /// As it was given.
        program: String,
        /// What the system said.
        error: io::Error,
    },
}

/// Ends programs before their deadline, those that are started later at once. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Ends the programs, with their process groups. There is no way back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs a program to its end, at most this long, and keeps at most so many bytes of each stream.
///
/// It gets no input and none of our terminal: it leads a session and process group of its own (on
/// Windows a job object). At the deadline the group is asked to stop, and killed soon after. A
/// descendant that holds the output open after the program has exited is not waited for. Time in
/// which the machine sleeps does not count, as the program sleeps as well.
///
/// # Errors
///
/// Fails if it cannot be started, or does not end in time.
pub fn run_bounded(
    command: Command,
    limit: Duration,
    output_limit: usize,
) -> Result<BoundedOutput, BoundedError> {
    run(command, None, (limit, output_limit), &Cancellation::default())
}

/// Does what [`run_bounded`] does, and ends the program when another thread says so.
///
/// # Errors
///
/// Fails if it cannot be started, does not end in time, or is cancelled.
pub fn run_cancellable(
    command: Command,
    limit: Duration,
    output_limit: usize,
    cancellation: &Cancellation,
) -> Result<BoundedOutput, BoundedError> {
    run(command, None, (limit, output_limit), cancellation)
}

/// Does what [`run_bounded`] does for a program that reads this input.
///
/// # Errors
///
/// Fails if it cannot be started, or does not end in time.
pub fn run_bounded_with_input(
    command: Command,
    input: Vec<u8>,
    limit: Duration,
    output_limit: usize,
) -> Result<BoundedOutput, BoundedError> {
    run(command, Some(input), (limit, output_limit), &Cancellation::default())
}

fn run(
    mut command: Command,
    input: Option<Vec<u8>>,
    (limit, output_limit): (Duration, usize),
    cancellation: &Cancellation,
) -> Result<BoundedOutput, BoundedError> {
    let program = command.get_program().to_string_lossy().into_owned();
    if cancellation.is_cancelled() {
        return Err(BoundedError::Cancelled { program });
    }
    let deadline = Instant::now() + limit;
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = os::contain(command).spawn().and_then(|child| Running::new(child, input));
    let mut running = match started {
        Ok(running) => running,
        Err(error) => return Err(BoundedError::Start { program, error }),
    };
    let exit = running.watch(deadline, output_limit, cancellation);
    let Collected { stdout, stderr, truncated } = std::mem::take(&mut running.collected);
    match exit {
        Ok(Some(status)) => Ok(BoundedOutput { status, stdout, stderr, truncated }),
        Ok(None) if cancellation.is_cancelled() => Err(BoundedError::Cancelled { program }),
        Ok(None) => {
            tracing::debug!(program, ?limit, "killed: it did not end in time");
            Err(BoundedError::TimedOut { program, limit, stdout, stderr })
        }
        Err(error) => Err(BoundedError::Wait { program, error }),
    }
}

#[derive(Debug, Default)]
struct Collected {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    truncated: bool,
}

impl Collected {
    fn add(&mut self, stream: OutputStream, bytes: &[u8], limit: usize) {
        let kept = match stream {
            OutputStream::Output => &mut self.stdout,
            OutputStream::Errors => &mut self.stderr,
        };
        let room = limit.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
        self.truncated |= room < bytes.len();
    }
}

/// A program that runs. Dropping it kills it with its group, unless its exit was seen.
#[derive(Debug)]
struct Running {
    child: Box<dyn ChildWrapper>,
    pieces: Option<Receiver<OutputPiece>>,
    collected: Collected,
    exited: bool,
}

impl Running {
    fn new(child: Box<dyn ChildWrapper>, input: Option<Vec<u8>>) -> io::Result<Self> {
        let collected = Collected::default();
        let mut running = Self { child, pieces: None, collected, exited: false };
        let child = &mut running.child;
        if let (Some(pipe), Some(input)) = (child.stdin().take(), input) {
            reader::feed(pipe, input)?;
        }
        if let (Some(output), Some(errors)) = (child.stdout().take(), child.stderr().take()) {
            running.pieces = Some(reader::read_both(output, errors)?);
        }
        Ok(running)
    }

    /// Collects output until the program has exited. Returns nothing if the deadline came first, or
    /// nobody wants it any more.
    fn watch(
        &mut self,
        deadline: Instant,
        limit: usize,
        cancellation: &Cancellation,
    ) -> io::Result<Option<ExitStatus>> {
        let (mut status, mut drain, mut open, mut pause) = (None, None::<Drain>, 2, POLL.0);
        loop {
            let now = Instant::now();
            if status.is_none() {
                status = self.child.try_wait()?;
                drain = status.map(|_| Drain::new(now));
                self.exited = status.is_some();
            }
            if status.is_some() && (open == 0 || drain.as_ref().is_some_and(|it| it.is_over(now))) {
                return Ok(status);
            }
            if status.is_none() && (now >= deadline || cancellation.is_cancelled()) {
                return Ok(None);
            }
            let left = match &drain {
                Some(drain) => drain.patience(now),
                None => deadline.saturating_duration_since(now).min(pause),
            };
            match self.next(left, open > 0) {
                Some(OutputPiece::Data(stream, bytes)) => {
                    drain.iter_mut().for_each(|drain| drain.note(Instant::now(), bytes.len()));
                    self.collected.add(stream, &bytes, limit);
                }
                Some(OutputPiece::End) => (open, pause) = (open - 1, POLL.0),
                None => pause = (pause * 2).min(POLL.1),
            }
        }
    }

    fn next(&self, timeout: Duration, open: bool) -> Option<OutputPiece> {
        let received = self.pieces.as_ref().filter(|_| open).map(|it| it.recv_timeout(timeout));
        match received {
            Some(Ok(piece)) => Some(piece),
            Some(Err(RecvTimeoutError::Timeout)) => None,
            Some(Err(RecvTimeoutError::Disconnected)) | None => {
                thread::sleep(timeout);
                None
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exited {
            return;
        }
        // Asked first: git, for one, then takes its lock files with it.
        os::terminate(&*self.child);
        let asked = Instant::now() + GRACE;
        while Instant::now() < asked && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(POLL.0);
        }
        // Fails if nobody is left.
        let _killed = self.child.start_kill();
        let until = Instant::now() + KILL_LIMIT;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(POLL.0);
        }
    }
}

/// Shows a duration as `5 s` or `0.2 s`.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}
