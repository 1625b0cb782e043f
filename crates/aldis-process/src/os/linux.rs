//! Agents on Linux: subreaper, pidfd, control group, marks in the environment, `/proc`.

mod cgroup;
mod clock;
mod handle;
mod message;
mod pump;
mod reaper;
mod remains;
mod space;
mod streams;
mod terminal;
mod tree;

use std::cell::{Cell, RefCell};
use std::io;
use std::thread;
use std::time::Duration;

use self::cgroup::Cgroup;
pub(crate) use self::clock::since_boot;
use self::handle::ReaperHandle;
use self::message::{Inbox, ReaperEvent, ReaperRequest};
use self::pump::{Item, Next, Pump};
pub(crate) use self::reaper::run as run_reaper;
use self::remains::Traces;
pub(crate) use self::remains::{find, find_marked};
pub(crate) use self::space::{host_name, liveness, pid_space, start_time};
use self::streams::StreamPairs;
use super::{KILL_LIMIT, STRAGGLER_GRACE, Supervised};
use crate::space::StartTime;
use crate::{Ended, Exit, Identity, Launch, Mark, Output, StartError};

/// How much later than agreed the reaper may answer before we do its work.
const REAPER_SLACK: Duration = Duration::from_secs(1);
/// How often it is checked whether somebody has stopped the reaper: while the agent works, and while
/// it is being ended.
const REAPER_CHECK: Duration = Duration::from_secs(1);
const REAPER_CHECK_ENDING: Duration = Duration::from_millis(100);

/// Starts an agent.
pub(crate) fn start(launch: &Launch) -> Result<Box<dyn Supervised>, StartError> {
    Ok(Box::new(Agent::start(launch)?))
}

#[derive(Debug)]
struct Agent {
    identity: Identity,
    reaper: ReaperHandle,
    /// Absent once the agent was ended.
    pump: RefCell<Option<Pump>>,
    exit: Cell<Option<Exit>>,
    /// When it was last checked whether the reaper is stopped.
    checked: Cell<Duration>,
}

impl Agent {
    fn start(launch: &Launch) -> Result<Self, StartError> {
        let failed = |error| StartError::from_io(launch, error);
        let mark = launch.mark.clone().map_or_else(Mark::random, Ok).map_err(failed)?;
        let variables = launch.environment.resolve(&mark, launch.owner.as_ref());
        let program = launch.check(&variables)?;
        let streams = StreamPairs::open(launch).map_err(failed)?;
        let group = if launch.control_group { Cgroup::create(&mark) } else { None };
        let reaper = ReaperHandle::start(launch, &program, variables, group).map_err(failed)?;
        let connected = connect(launch, &reaper, mark.clone(), streams);
        let (identity, pump) = connected.inspect_err(|_| {
            // The reaper may have been killed or stopped after it has started the agent and before it
            // could report that. A number that it did not report is found by mark and session.
            Traces::marked(mark).with_reaper(reaper.pid(), reaper.group.clone()).sweep();
        })?;
        let (pump, checked) = (RefCell::new(Some(pump)), Cell::new(since_boot()));
        Ok(Self { identity, reaper, pump, exit: Cell::new(None), checked })
    }

    fn note_exit(&self, output: &Output) {
        if let Output::Exited(exit) = output {
            self.exit.set(Some(*exit));
        }
    }

    /// Continues a reaper that somebody has stopped: it could not report the exit of the agent.
    fn check_reaper(&self) {
        let now = since_boot();
        if now.saturating_sub(self.checked.get()) >= REAPER_CHECK {
            self.checked.set(now);
            self.reaper.resume_if_stopped();
        }
    }
}

/// Hands the streams to the reaper and waits until it has started the agent.
fn connect(
    launch: &Launch,
    reaper: &ReaperHandle,
    mark: Mark,
    streams: StreamPairs,
) -> Result<(Identity, Pump), StartError> {
    let failed = |error| StartError::from_io(launch, error);
    let StreamPairs { ours, theirs } = streams;
    reaper.send_streams(&theirs).map_err(failed)?;
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
    let reaper_start = match start_time(reaper.pid()) {
        Some(StartTime::Ticks(ticks)) => Some(ticks),
        _ => None,
    };
    let group = reaper.group.as_ref().filter(|_| grouped);
    let identity = Identity {
        reaper_pid: Some(reaper.pid()),
        reaper_start,
        cgroup: group.map(|group| group.path().to_owned()),
        ..Identity::here(pid, Some(StartTime::Ticks(start)), mark)
    };
    let control = reaper.control.try_clone().map_err(failed)?;
    Ok((identity, Pump::new(control, inbox, ours)))
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
            Next::Item(Item::Ended(_)) => None,
            Next::Nothing => {
                self.check_reaper();
                None
            }
            Next::Over => {
                // Or a caller that asks in a loop would spin.
                thread::sleep(timeout);
                None
            }
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
                let left = until.saturating_sub(since_boot());
                match pump.next(left.min(REAPER_CHECK_ENDING)) {
                    Next::Item(Item::Output(output)) => {
                        self.note_exit(&output);
                        on_output(output);
                    }
                    Next::Item(Item::Ended(left)) => survivors = Some(left),
                    Next::Nothing if left > Duration::ZERO => {
                        self.reaper.resume_if_stopped();
                    }
                    Next::Nothing | Next::Over => break,
                }
            }
        }
        let survivors = match survivors {
            Some(none) if none.is_empty() => none,
            // The reaper could not do it, or is not there to do it.
            _ => Traces::of(&self.identity).with_reaper(self.reaper.pid(), None).sweep(),
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
