//! Agents as real processes: started, heard, suspended, and ended with everything they started.
//!
//! Between us and each agent stands a small process, the keeper (see `keeper.rs`), which is the
//! subreaper of the agent's tree. What follows from that:
//!
//! - The tree is known exactly, whatever `setsid` and double forks its processes do.
//! - Nobody stays a zombie, and no exit status of our other children is taken by mistake.
//! - If we are killed, the keeper ends the agent. If the keeper is killed too, [`find`] knows the
//!   processes by number and start time, by a mark in their environment and by control group.
//!
//! The agent has no controlling terminal of ours: a Ctrl-C reaches us ([`Interrupts`]), and we
//! decide what it means. Deadlines are the caller's business. Linux only.
//!
//! What is deliberately absent: protection from an agent that means harm. It runs as the same
//! user and could kill us, or hide a process by killing its keeper, clearing the environment and
//! leaving the control group.

mod cgroup;
mod clock;
mod holder;
mod identity;
mod interrupts;
mod keeper;
mod launch;
mod message;
mod pump;
mod terminal;
mod tree;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::ioctl_fionbio;
use serde::{Deserialize, Serialize};

use self::cgroup::Cgroup;
pub use self::clock::since_boot;
pub use self::holder::Holder;
pub use self::identity::{Found, Identity, Orphan, find};
pub use self::interrupts::{Asked, Interrupts};
pub use self::keeper::{Duty, keep};
use self::keeper::{KILL_LIMIT, STRAGGLER_GRACE};
pub use self::launch::{Environment, Input, Launch, StartError};
use self::message::{Inbox, Order, Report};
use self::pump::{Item, Next, Pump, Streams};
use self::tree::Process;

/// The hidden command that makes a keeper of this program.
pub(crate) const KEEPER_COMMAND: &str = "supervised-exec";
/// How long a keeper may take to start the agent.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How much later than agreed the keeper may answer before we do its work.
const KEEPER_SLACK: Duration = Duration::from_secs(1);
/// How often it is looked whether the keeper has ended.
const REAP_PAUSE: Duration = Duration::from_millis(1);
/// The bytes of a mark, before they are written as twice as many digits.
const MARK_BYTES: usize = 16;

/// What an agent does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// It has written to standard output, or to its terminal. At most 64 KiB.
    Stdout(Vec<u8>),
    /// It has written to standard error. At most 64 KiB.
    Stderr(Vec<u8>),
    /// There will be no more output. Comes once, before or after [`Output::Exited`]; if it comes
    /// after, then at most 100 ms and what was still unread later.
    Closed,
    /// The agent has ended; what it has started may still run. Comes once.
    Exited(Exit),
    /// The agent was stopped, and not by [`Agent::suspend`]. [`Agent::resume`] lets it go on.
    Stopped,
}

/// How an agent ended. Nothing is known if its keeper was killed: then it may even still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

/// A process that could not be ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its number.
    pub pid: i32,
    /// The name of its program.
    pub name: String,
}

/// The end of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended, if that was not heard before.
    pub exit: Option<Exit>,
    /// Who could not be ended; there should be nobody.
    pub survivors: Vec<Survivor>,
}

/// A running agent. Dropping it kills it with everything it has started.
#[derive(Debug)]
pub struct Agent {
    identity: Identity,
    keeper: Keeper,
    /// Gone once the agent was ended.
    pump: RefCell<Option<Pump>>,
    exit: Cell<Option<Exit>>,
}

impl Agent {
    /// Starts an agent.
    ///
    /// # Errors
    ///
    /// Fails if the program is missing or cannot be run, or if the system lacks something.
    pub fn start(launch: &Launch) -> Result<Self, StartError> {
        let failed = |error| StartError::from_io(launch, error);
        let mark = mark().map_err(failed)?;
        let variables = launch.environment.resolve(&mark);
        let program = launch.check(&variables)?;
        let Ends { streams, theirs } = Ends::open(launch).map_err(failed)?;
        let group = if launch.control_group { Cgroup::create(&mark) } else { None };
        let keeper = Keeper::start(launch, &program, variables, group).map_err(failed)?;
        let [input, output, errors] = &theirs;
        let borrowed = [input.as_fd(), output.as_fd(), errors.as_fd()];
        match message::send_streams(&keeper.control, borrowed) {
            // It has gone; that it says nothing will tell.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            result => result.map_err(failed)?,
        }
        drop(theirs);

        let mut inbox = Inbox::default();
        let report = keeper.first_report(&mut inbox).map_err(failed)?;
        let (pid, start, grouped) = match report {
            Some(Report::Started { pid, start, grouped }) => (pid, start, grouped),
            Some(Report::Refused { error }) => {
                return Err(StartError::from_number(launch, error));
            }
            _ => {
                let program = launch.program.to_string_lossy().into_owned();
                return Err(StartError::Keeper { program });
            }
        };
        let path = keeper.group.as_ref().map(|group| group.path().to_owned());
        let identity = Identity {
            pid,
            start,
            keeper_pid: keeper.pid(),
            keeper_start: Process::read(keeper.pid()).map_or(0, |process| process.start),
            boot: tree::boot(),
            mark,
            cgroup: path.filter(|_| grouped),
        };
        let control = keeper.control.try_clone().map_err(failed)?;
        let pump = RefCell::new(Some(Pump::new(control, inbox, streams)));
        Ok(Self { identity, keeper, pump, exit: Cell::new(None) })
    }

    /// Returns who the agent is, for finding it again.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Waits for what the agent does next, at most so long. While nobody asks, an agent that
    /// writes much has to wait, and so has one that is to read much.
    ///
    /// After both [`Output::Closed`] and [`Output::Exited`] there is nothing to wait for.
    pub fn next(&self, timeout: Duration) -> Option<Output> {
        match self.pump.borrow_mut().as_mut()?.next(timeout) {
            Next::Item(Item::Output(output)) => {
                self.note(&output);
                Some(output)
            }
            // The keeper was told to end by somebody else. The end will say who survived.
            Next::Item(Item::Ended(_)) | Next::Nothing => None,
            Next::Over => {
                // Or whoever asks in a loop would be busy doing nothing.
                thread::sleep(timeout);
                None
            }
        }
    }

    /// Takes the memory of a piece of output back, for the next one.
    pub fn give_back(&self, piece: Vec<u8>) {
        if let Some(pump) = self.pump.borrow_mut().as_mut() {
            pump.give_back(piece);
        }
    }

    fn note(&self, output: &Output) {
        if let Output::Exited(exit) = output {
            self.exit.set(Some(*exit));
        }
    }

    /// Asks the agent to stop, as Ctrl-C in a terminal does. A suspended agent goes on for that.
    pub fn interrupt(&self) {
        self.keeper.order(Order::Interrupt);
    }

    /// Suspends the agent and everything it has started.
    pub fn suspend(&self) {
        self.keeper.order(Order::Suspend);
    }

    /// Lets a suspended agent go on, or one that was stopped otherwise.
    pub fn resume(&self) {
        self.keeper.order(Order::Resume);
    }

    /// Ends the agent and everything it has started: asks, and kills whoever is left after the
    /// time of grace. What outlives the agent itself gets at most a quarter of a second.
    ///
    /// Output that was not taken is lost; see [`Agent::end_hearing`].
    pub fn end(self, grace: Duration) -> Ended {
        self.end_hearing(grace, |_| ())
    }

    /// Does what [`Agent::end`] does, and passes on what the agent does meanwhile.
    pub fn end_hearing(mut self, grace: Duration, hear: impl FnMut(Output)) -> Ended {
        self.finish(grace, hear)
    }

    fn finish(&mut self, grace: Duration, mut hear: impl FnMut(Output)) -> Ended {
        let mut survivors = None;
        if let Some(mut pump) = self.pump.take() {
            let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
            self.keeper.order(Order::End { grace: millis });
            let limit = grace.saturating_add(STRAGGLER_GRACE + KILL_LIMIT + KEEPER_SLACK);
            let until = since_boot().saturating_add(limit);
            loop {
                match pump.next(until.saturating_sub(since_boot())) {
                    Next::Item(Item::Output(output)) => {
                        self.note(&output);
                        hear(output);
                    }
                    Next::Item(Item::Ended(left)) => survivors = Some(left),
                    Next::Nothing | Next::Over => break,
                }
            }
        }
        let survivors = match survivors {
            Some(none) if none.is_empty() => none,
            // The keeper could not do it, or is not there to do it.
            _ => identity::sweep(&self.identity),
        };
        self.keeper.dismiss(KEEPER_SLACK);
        Ended { exit: self.exit.get(), survivors }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.pump.get_mut().is_some() {
            self.finish(Duration::ZERO, drop);
        }
    }
}

/// The keeper's process, our way to talk to it, and the group that it may have used.
#[derive(Debug)]
struct Keeper {
    child: Child,
    control: UnixStream,
    group: Option<Cgroup>,
}

impl Keeper {
    fn start(
        launch: &Launch,
        program: &Path,
        variables: Vec<(OsString, OsString)>,
        group: Option<Cgroup>,
    ) -> io::Result<Self> {
        let (control, socket) = UnixStream::pair()?;
        // Not by its path: the file may have been replaced since we were started.
        let own = || PathBuf::from("/proc/self/exe");
        let mut command = Command::new(launch.keeper.clone().unwrap_or_else(own));
        command.arg0("aldis").arg(KEEPER_COMMAND).arg("--program").arg(program);
        if launch.terminal {
            command.arg("--terminal");
        }
        if let Some(group) = &group {
            command.arg("--cgroup").arg(group.path());
        }
        command.arg("--").arg(&launch.program).args(&launch.args);
        command.env_clear().envs(variables).current_dir(&launch.cwd);
        command.stdin(OwnedFd::from(socket)).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => Ok(Self { child, control, group }),
            Err(error) => {
                if let Some(group) = group {
                    group.remove();
                }
                Err(error)
            }
        }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    /// Waits until it has started the agent or could not. Returns nothing if it has gone.
    fn first_report(&self, inbox: &mut Inbox) -> io::Result<Option<Report>> {
        self.control.set_read_timeout(Some(START_LIMIT))?;
        let until = since_boot() + START_LIMIT;
        let report = loop {
            let open = inbox.fill(&self.control)?;
            let report = inbox.next();
            if report.is_some() || !open || since_boot() >= until {
                break report;
            }
        };
        self.control.set_nonblocking(true)?;
        Ok(report)
    }

    fn order(&self, order: Order) {
        // One that has gone has nothing left to do; one that does not listen is swept away.
        let _sent = message::send(&self.control, &order);
    }

    /// Waits until it has ended, kills it if that takes too long, and tidies up.
    fn dismiss(&mut self, limit: Duration) {
        let until = since_boot() + limit;
        while matches!(self.child.try_wait(), Ok(None)) {
            if since_boot() >= until {
                // Fails if it has just ended.
                let _killed = self.child.kill();
                let _status = self.child.wait();
                break;
            }
            thread::sleep(REAP_PAUSE);
        }
        if let Some(group) = self.group.take() {
            group.remove();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.order(Order::End { grace: 0 });
        }
        // Without us it ends by itself, unless it never got as far as listening.
        let _shut = self.control.shutdown(Shutdown::Both);
        self.dismiss(KILL_LIMIT + KEEPER_SLACK);
    }
}

/// Both ends of the agent's streams.
#[derive(Debug)]
struct Ends {
    streams: Streams,
    theirs: [OwnedFd; message::STREAMS],
}

impl Ends {
    fn open(launch: &Launch) -> io::Result<Self> {
        if launch.terminal { Self::terminal(&launch.input) } else { Self::pipes(&launch.input) }
    }

    fn terminal(input: &Input) -> io::Result<Self> {
        let (ours, theirs) = terminal::open()?;
        ioctl_fionbio(&ours, true)?;
        let input = match input {
            Input::Empty => None,
            Input::Text(text) => {
                Some((File::from(ours.try_clone()?), terminal::typed(text.clone())))
            }
        };
        let streams = Streams { output: File::from(ours), errors: None, input };
        Ok(Self { streams, theirs: [theirs.try_clone()?, theirs.try_clone()?, theirs] })
    }

    fn pipes(input: &Input) -> io::Result<Self> {
        let (output, their_output) = io::pipe()?;
        let (errors, their_errors) = io::pipe()?;
        let (input, their_input) = match input {
            Input::Empty => (None, OwnedFd::from(File::open("/dev/null")?)),
            Input::Text(text) => {
                let (theirs, ours) = io::pipe()?;
                (Some((unblocked(ours)?, text.clone())), theirs.into())
            }
        };
        let (output, errors) = (unblocked(output)?, Some(unblocked(errors)?));
        let streams = Streams { output, errors, input };
        Ok(Self { streams, theirs: [their_input, their_output.into(), their_errors.into()] })
    }
}

/// Makes a file of our end of a pipe that never makes us wait. The other end is not affected.
fn unblocked(end: impl Into<OwnedFd>) -> io::Result<File> {
    let end = end.into();
    ioctl_fionbio(&end, true)?;
    Ok(File::from(end))
}

/// Makes a mark that no other process has.
fn mark() -> io::Result<String> {
    let mut bytes = [0; MARK_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
