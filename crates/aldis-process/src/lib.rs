//! Agents as operating-system processes: started, read, suspended, and ended with everything they
//! started.
//!
//! This file is the portable API and its contract; `os.rs` selects the implementation.
//!
//! # What holds
//!
//! - An agent ends with its whole process tree: [`Agent::end`] and dropping an [`Agent`] leave
//!   nothing running, or say what survived.
//! - Output is read in bounded memory, with back-pressure: an agent that nobody reads blocks.
//! - The agent has no controlling terminal of ours. A Ctrl-C reaches us ([`Interrupts`]), and the
//!   caller decides what it means for the agent.
//! - After a crash of the supervisor, [`find`] and [`find_marked`] tell whether anything of an agent
//!   is left, and never mistake another process with the same number for it.
//!
//! How strong the first and the last promise are depends on the system. On Linux a small process
//! stands between us and each agent, the reaper (`os/linux/reaper.rs`), a child subreaper: the tree
//! is known exactly, whatever `setsid` and double forks its processes do, nobody stays a zombie, no
//! exit status of our other children is taken by mistake, and if we are killed the reaper ends the
//! agent. Elsewhere `os/portable.rs` promises less, and says what.
//!
//! # What is deliberately absent
//!
//! Deadlines are the caller's business. There is no protection from an agent that means harm: it
//! runs as the same user and could kill us, or hide a process by killing its reaper, clearing the
//! environment and leaving control group and session.

mod background;
mod bounded;
mod identity;
mod launch;
mod lease;
mod mark;
mod os;
mod reader;
mod reaper;
mod space;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::background::Background;
pub use self::bounded::{
    BoundedError, BoundedOutput, Cancellation, run_bounded, run_bounded_with_input, run_cancellable,
};
pub use self::identity::{Found, Identity, Orphan, find, find_marked};
pub use self::launch::{Environment, Input, Launch, StartError, Supervision};
pub use self::lease::{LeaseHolder, Liveness, NotALeaseHolder};
pub use self::mark::{InvalidMark, Mark};
pub use self::os::Interrupts;
pub use self::reaper::{REAPER_COMMAND, ReaperArgs, run_reaper};

/// What an agent does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// It has written to standard output, or to its terminal. At most 64 KiB.
    Stdout(Vec<u8>),
    /// It has written to standard error. At most 64 KiB.
    Stderr(Vec<u8>),
    /// There will be no more output. Comes once, before or after [`Output::Exited`]; if after, then
    /// at most 100 ms and what was still unread later.
    Closed,
    /// The agent has exited; its descendants may still run. Comes once.
    Exited(Exit),
    /// The agent was stopped, and not by [`Agent::suspend`]. [`Agent::resume`] continues it.
    Stopped,
}

/// How an agent ended. Both are absent if its reaper was killed: then it may even still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, if it exited by itself.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
}

/// The signals received since [`Interrupts::take`] was last called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalCounts {
    /// Ctrl-C (`SIGINT`): once means stop, twice means stop at once.
    pub interrupt: usize,
    /// From the system (`SIGTERM`, `SIGHUP`): there may not be much time.
    pub terminate: usize,
}

/// A process that could not be ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its process number.
    pub pid: i32,
    /// The name of its program.
    pub name: String,
}

/// The end of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it exited, if that is known.
    pub exit: Option<Exit>,
    /// Processes that could not be ended; normally none.
    pub survivors: Vec<Survivor>,
}

/// A running agent. Dropping it kills it with everything it has started.
#[derive(Debug)]
pub struct Agent {
    process: Box<dyn os::Supervised>,
}

impl Agent {
    /// Starts an agent.
    ///
    /// # Errors
    ///
    /// Fails if the program is missing or cannot be run, or if the system lacks something. Then
    /// nothing of it is left running.
    pub fn start(launch: &Launch) -> Result<Self, StartError> {
        let process = os::start(launch)?;
        tracing::info!(pid = process.identity().pid, program = ?launch.program, "agent started");
        Ok(Self { process })
    }

    /// Returns how to recognise the agent, for finding it again.
    pub fn identity(&self) -> &Identity {
        self.process.identity()
    }

    /// Waits for what the agent does next, at most this long. Back-pressure: while nobody calls
    /// this, an agent that writes much blocks, and so does one that reads much input.
    ///
    /// After both [`Output::Closed`] and [`Output::Exited`] there is nothing to wait for.
    pub fn next(&self, timeout: Duration) -> Option<Output> {
        self.process.next(timeout)
    }

    /// Asks the agent to stop, as Ctrl-C in a terminal does. A suspended agent is resumed first.
    pub fn interrupt(&self) {
        self.process.interrupt();
    }

    /// Suspends the agent and everything it has started.
    pub fn suspend(&self) {
        self.process.suspend();
    }

    /// Resumes a suspended agent, or one that was stopped otherwise.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends the agent and everything it has started: asks (`SIGTERM`), and kills what is left after
    /// the grace period. Once the agent itself has exited, its descendants get at most a quarter of
    /// a second.
    ///
    /// Output that was not taken is lost; see [`Agent::end_with`].
    pub fn end(self, grace: Duration) -> Ended {
        self.end_with(grace, drop)
    }

    /// Does what [`Agent::end`] does, and passes on what the agent does meanwhile.
    pub fn end_with(mut self, grace: Duration, mut on_output: impl FnMut(Output)) -> Ended {
        let pid = self.identity().pid;
        let ended = self.process.end(grace, &mut on_output);
        let Ended { exit, survivors } = &ended;
        if survivors.is_empty() {
            tracing::info!(pid, ?exit, "agent ended");
        } else {
            tracing::warn!(pid, ?exit, ?survivors, "processes of the agent could not be ended");
        }
        ended
    }
}

/// Makes writing beyond the file size limit (`ulimit -f`) fail with an error instead of killing this
/// process with `SIGXFSZ`. Programs that are started afterwards are not affected.
pub fn ignore_file_size_signal() {
    os::ignore_file_size_signal();
}

/// Returns the name of this machine, in characters that fit into a word.
pub fn host_name() -> String {
    lease::printable(&os::host_name())
}

/// Returns the time since the machine was started, including the time it slept.
///
/// Setting the wall clock does not move it, and a deadline measured with it has passed when a laptop
/// wakes up after it. Where the system does not tell, it counts from some moment of this process, so
/// values of different processes must not be compared.
pub fn since_boot() -> Duration {
    os::since_boot()
}
