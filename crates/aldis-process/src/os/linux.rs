//! Agents on Linux: subreaper, pidfd, control group, marks in the environment, `/proc`.

mod cgroup;
mod clock;
mod handle;
mod message;
mod pump;
mod reaper;
mod remains;
mod streams;
mod terminal;
mod tree;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::Duration;

use self::cgroup::Cgroup;
pub(crate) use self::clock::since_boot;
use self::handle::ReaperHandle;
use self::message::{Inbox, ReaperEvent, ReaperRequest};
use self::pump::{Item, Next, Pump};
pub(crate) use self::reaper::run as run_reaper;
pub(crate) use self::remains::find;
use self::streams::StreamPairs;
use self::tree::Process;
pub(crate) use self::tree::boot;
use super::{KILL_LIMIT, STRAGGLER_GRACE, Supervised};
use crate::{Ended, Exit, Identity, Launch, Output, StartError};

/// How much later than agreed the reaper may answer before we do its work.
const REAPER_SLACK: Duration = Duration::from_secs(1);
/// The bytes of a mark, before they are written as twice as many digits.
const MARK_BYTES: usize = 16;

/// Starts an agent.
pub(crate) fn start(launch: &Launch) -> Result<Box<dyn Supervised>, StartError> {
    Ok(Box::new(Agent::start(launch)?))
}

/// Returns when a process was started, in clock ticks since the boot.
pub(crate) fn process_start(pid: i32) -> Option<u64> {
    Process::read(pid).map(|process| process.start)
}

/// Whether this very process is alive.
pub(crate) fn is_alive(pid: i32, start: u64) -> bool {
    Process::same(pid, start).is_some_and(|process| process.is_alive())
}

#[derive(Debug)]
struct Agent {
    identity: Identity,
    reaper: ReaperHandle,
    /// Absent once the agent was ended.
    pump: RefCell<Option<Pump>>,
    exit: Cell<Option<Exit>>,
}

impl Agent {
    fn start(launch: &Launch) -> Result<Self, StartError> {
        let failed = |error| StartError::from_io(launch, error);
        let mark = mark().map_err(failed)?;
        let variables = launch.environment.resolve(&mark);
        let program = launch.check(&variables)?;
        let StreamPairs { ours, theirs } = StreamPairs::open(launch).map_err(failed)?;
        let group = if launch.control_group { Cgroup::create(&mark) } else { None };
        let reaper = ReaperHandle::start(launch, &program, variables, group).map_err(failed)?;
        let [input, output, errors] = &theirs;
        let borrowed = [input.as_fd(), output.as_fd(), errors.as_fd()];
        match message::send_streams(&reaper.control, borrowed) {
            // The reaper has exited; that no event comes will tell.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            result => result.map_err(failed)?,
        }
        drop(theirs);

        let mut inbox = Inbox::default();
        let event = reaper.first_event(&mut inbox).map_err(failed)?;
        let (pid, start, grouped) = match event {
            Some(ReaperEvent::Started { pid, start, grouped }) => (pid, start, grouped),
            Some(ReaperEvent::Refused { error }) => {
                let error = io::Error::from_raw_os_error(error);
                return Err(StartError::from_spawn(launch, error));
            }
            _ => {
                let program = launch.program.to_string_lossy().into_owned();
                return Err(StartError::Reaper { program });
            }
        };
        let path = reaper.group.as_ref().map(|group| group.path().to_owned());
        let identity = Identity {
            pid,
            start,
            reaper_pid: reaper.pid(),
            reaper_start: process_start(reaper.pid()).unwrap_or_default(),
            boot: boot(),
            mark,
            cgroup: path.filter(|_| grouped),
        };
        let control = reaper.control.try_clone().map_err(failed)?;
        let pump = RefCell::new(Some(Pump::new(control, inbox, ours)));
        Ok(Self { identity, reaper, pump, exit: Cell::new(None) })
    }

    fn note_exit(&self, output: &Output) {
        if let Output::Exited(exit) = output {
            self.exit.set(Some(*exit));
        }
    }
}

impl Supervised for Agent {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn next(&self, timeout: Duration) -> Option<Output> {
        match self.pump.borrow_mut().as_mut()?.next(timeout) {
            Next::Item(Item::Output(output)) => {
                self.note_exit(&output);
                Some(output)
            }
            // The reaper was told to end by somebody else. Ending the agent returns the survivors.
            Next::Item(Item::Ended(_)) | Next::Nothing => None,
            Next::Over => {
                // Or a caller that asks in a loop would spin.
                thread::sleep(timeout);
                None
            }
        }
    }

    fn recycle(&self, piece: Vec<u8>) {
        if let Some(pump) = self.pump.borrow_mut().as_mut() {
            pump.recycle(piece);
        }
    }

    fn interrupt(&self) {
        self.reaper.request(ReaperRequest::Interrupt);
    }

    fn suspend(&self) {
        self.reaper.request(ReaperRequest::Suspend);
    }

    fn resume(&self) {
        self.reaper.request(ReaperRequest::Resume);
    }

    fn end(&mut self, grace: Duration, on_output: &mut dyn FnMut(Output)) -> Ended {
        let mut survivors = None;
        if let Some(mut pump) = self.pump.take() {
            let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
            self.reaper.request(ReaperRequest::End { grace: millis });
            let limit = grace.saturating_add(STRAGGLER_GRACE + KILL_LIMIT + REAPER_SLACK);
            let until = since_boot().saturating_add(limit);
            loop {
                match pump.next(until.saturating_sub(since_boot())) {
                    Next::Item(Item::Output(output)) => {
                        self.note_exit(&output);
                        on_output(output);
                    }
                    Next::Item(Item::Ended(left)) => survivors = Some(left),
                    Next::Nothing | Next::Over => break,
                }
            }
        }
        let survivors = match survivors {
            Some(none) if none.is_empty() => none,
            // The reaper could not do it, or is not there to do it.
            _ => remains::sweep(&self.identity),
        };
        self.reaper.dismiss(REAPER_SLACK);
        Ended { exit: self.exit.get(), survivors }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.pump.get_mut().is_some() {
            self.end(Duration::ZERO, &mut drop);
        }
    }
}

/// Makes a mark that no other process has.
fn mark() -> io::Result<String> {
    let mut bytes = [0; MARK_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
