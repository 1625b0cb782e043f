//! The fallback for systems without an implementation of their own: process groups on Unix, job
//! objects on Windows.
//!
//! It promises less than `os/linux`:
//!
//! - There is no reaper. A supervisor that is killed leaves its agents running, until whoever takes
//!   the run over finds and ends them ([`find`]).
//! - The tree is the session that the agent leads, whoever carries its mark in the environment, and
//!   their descendants. A process that leaves the session, loses its parent and clears its
//!   environment is lost.
//! - Processes outside of the group are signalled by number. A number that was reused in the moment
//!   between looking and signalling hits another process.
//! - After a crash an agent is recognised by number and start time in seconds.
//! - No terminal, no control group. Descriptors that we have inherited by mistake are inherited on.
//! - On Windows nothing can be asked to stop and nothing can be suspended: interrupting, suspending
//!   and resuming do nothing, and ending kills at once.

mod members;
#[cfg(any(not(target_os = "linux"), test))]
mod system;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use process_wrap::std::ChildWrapper;

use self::members::ProcessMembers;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::system::{host_name, liveness, pid_space, run_reaper, since_boot, start_time};
#[cfg(unix)]
use self::unix::{Request, poll, request, set_name};
#[cfg(windows)]
use self::windows::{Request, poll, request, set_name};
use super::{KILL_LIMIT, Remains, STRAGGLER_GRACE, Supervised};
use crate::reader::{self, Drain, OutputPiece, OutputStream};
use crate::{
    Ended, Exit, Found, Identity, Input, Launch, Mark, Orphan, Output, StartError, Survivor,
};

/// How often the exit of the agent is polled.
const POLL: Duration = Duration::from_millis(10);
/// How often it is polled whether the processes of the agent have exited.
const PAUSE: Duration = Duration::from_millis(20);

/// Starts an agent.
pub(crate) fn start(launch: &Launch) -> Result<Box<dyn Supervised>, StartError> {
    Ok(Box::new(Agent::start(launch)?))
}

/// Looks for what is left of an agent.
pub(crate) fn find(identity: &Identity) -> Found {
    match identity.started_at {
        Some(_) => Traces::of(identity).find(),
        // Whether the mark can be read depends on the system, so that none is seen tells nothing.
        None => match Traces::marked(&identity.mark).find() {
            Found::Gone => Found::Unknown,
            found => found,
        },
    }
}

/// Looks for processes that carry a mark.
#[cfg(not(target_os = "linux"))]
pub(crate) fn find_marked(mark: &Mark) -> Found {
    Traces::marked(mark).find()
}

#[derive(Debug)]
struct Agent {
    identity: Identity,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    child: Box<dyn ChildWrapper>,
    /// Absent once the output is closed.
    pieces: Option<Receiver<OutputPiece>>,
    /// How many streams are open.
    open: usize,
    /// What was not taken yet.
    outputs: VecDeque<Output>,
    exit: Option<Exit>,
    /// Decides when the output is closed after the exit.
    drain: Option<Drain>,
    suspended: bool,
    ended: bool,
}

impl Agent {
    fn start(launch: &Launch) -> Result<Self, StartError> {
        if launch.terminal {
            return Err(StartError::NotSupported { what: "a terminal for agents" });
        }
        let failed = |error| StartError::from_io(launch, error);
        let mark = launch.mark.clone().map_or_else(Mark::random, Ok).map_err(failed)?;
        let variables = launch.environment.resolve(&mark, launch.owner.as_ref());
        let program = launch.check(&variables)?;
        let mut command = Command::new(program);
        set_name(&mut command, &launch.program);
        command.args(&launch.args).env_clear().envs(variables).current_dir(&launch.cwd);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match launch.input {
            Input::Empty => Stdio::null(),
            Input::Text(_) => Stdio::piped(),
        });
        let child = super::contain(command).spawn();
        let child = child.map_err(|error| StartError::from_spawn(launch, error))?;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        let identity = Identity::here(pid, members::start_time(pid), mark);
        let state = State {
            child,
            pieces: None,
            open: 2,
            outputs: VecDeque::new(),
            exit: None,
            drain: None,
            suspended: false,
            ended: false,
        };
        // From here on a failure drops the agent, which ends it.
        let mut agent = Self { identity, state: RefCell::new(state) };
        agent.state.get_mut().connect(&launch.input).map_err(failed)?;
        Ok(agent)
    }

    fn traces(&self) -> Traces {
        // Its number is not reused while we have not waited for it, and neither is its session.
        Traces { session: Some(self.identity.pid), ..Traces::of(&self.identity) }
    }
}

impl State {
    fn connect(&mut self, input: &Input) -> std::io::Result<()> {
        if let (Some(pipe), Input::Text(text)) = (self.child.stdin().take(), input) {
            reader::feed(pipe, text.clone())?;
        }
        if let (Some(output), Some(errors)) =
            (self.child.stdout().take(), self.child.stderr().take())
        {
            self.pieces = Some(reader::read_both(output, errors)?);
        }
        Ok(())
    }

    /// Waits for what comes next, at most this long.
    fn next(&mut self, timeout: Duration) -> Option<Output> {
        let until = Instant::now() + timeout;
        loop {
            self.poll_child();
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            let now = Instant::now();
            let left = until.saturating_duration_since(now);
            if self.pieces.is_none() && self.exit.is_some() {
                // Or a caller that asks in a loop would spin.
                thread::sleep(left);
                return None;
            }
            let patience = self.drain.as_ref().map_or(POLL, |drain| drain.patience(now));
            self.receive(left.min(POLL).min(patience));
            if left.is_zero() {
                self.poll_child();
                return self.outputs.pop_front();
            }
        }
    }

    /// Takes one piece of output, and closes the output when it is complete.
    fn receive(&mut self, timeout: Duration) {
        let Some(pieces) = &self.pieces else {
            thread::sleep(timeout);
            return;
        };
        match pieces.recv_timeout(timeout) {
            Ok(OutputPiece::Data(stream, bytes)) => {
                self.drain.iter_mut().for_each(|drain| drain.note(Instant::now(), bytes.len()));
                self.outputs.push_back(match stream {
                    OutputStream::Output => Output::Stdout(bytes),
                    OutputStream::Errors => Output::Stderr(bytes),
                });
            }
            Ok(OutputPiece::End) => self.open = self.open.saturating_sub(1),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.open = 0,
        }
        let over = self.drain.as_ref().is_some_and(|drain| drain.is_over(Instant::now()));
        if self.open == 0 || over {
            self.pieces = None;
            self.outputs.push_back(Output::Closed);
        }
    }

    /// Notices that the agent has exited or was stopped.
    fn poll_child(&mut self) {
        if self.exit.is_some() {
            return;
        }
        match poll(&mut *self.child) {
            Some(Output::Exited(exit)) => {
                self.exit = Some(exit);
                self.drain = Some(Drain::new(Instant::now()));
                self.outputs.push_back(Output::Exited(exit));
            }
            Some(output) if !self.suspended => self.outputs.push_back(output),
            Some(_) | None => {}
        }
    }

    /// Asks the group for something, and whoever has left it.
    fn request(&self, traces: &Traces, wanted: Request) {
        request(&*self.child, wanted);
        if let Some(signal) = wanted.signal() {
            traces.members().outside_of_session().signal(signal);
        }
    }

    fn resume(&mut self, traces: &Traces) {
        self.suspended = false;
        self.request(traces, Request::Continue);
    }
}

impl Supervised for Agent {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn next(&self, timeout: Duration) -> Option<Output> {
        self.state.borrow_mut().next(timeout)
    }

    fn interrupt(&self) {
        let mut state = self.state.borrow_mut();
        state.resume(&self.traces());
        request(&*state.child, Request::Interrupt);
    }

    fn suspend(&self) {
        let mut state = self.state.borrow_mut();
        state.suspended = true;
        state.request(&self.traces(), Request::Stop);
    }

    fn resume(&self) {
        self.state.borrow_mut().resume(&self.traces());
    }

    fn end(&mut self, grace: Duration, on_output: &mut dyn FnMut(Output)) -> Ended {
        let traces = self.traces();
        let state = self.state.get_mut();
        if state.ended {
            return Ended { exit: state.exit, survivors: Vec::new() };
        }
        state.ended = true;
        if !grace.is_zero() && Request::Terminate.signal().is_some() {
            state.request(&traces, Request::Terminate);
            // A stopped process cannot react to SIGTERM.
            state.resume(&traces);
            wait_for_end(state, &traces, grace, on_output);
        }
        let survivors = kill(state, &traces, on_output);
        // What is in the pipes was written before the end.
        while state.exit.is_some() && state.pieces.is_some() {
            state.next(POLL).into_iter().for_each(&mut *on_output);
        }
        state.outputs.drain(..).for_each(&mut *on_output);
        // Only now its number may be reused.
        let _status = state.child.try_wait();
        Ended { exit: state.exit, survivors }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end(Duration::ZERO, &mut drop);
    }
}

/// Passes output on until nothing of the agent is left, or the grace period is over.
fn wait_for_end(
    state: &mut State,
    traces: &Traces,
    grace: Duration,
    on_output: &mut dyn FnMut(Output),
) {
    let mut until = Instant::now() + grace;
    let mut looked = Instant::now();
    while Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        let before = state.exit;
        state.next(left.min(PAUSE)).into_iter().for_each(&mut *on_output);
        if state.exit.is_none() {
            continue;
        }
        if before.is_none() {
            until = until.min(Instant::now() + STRAGGLER_GRACE);
        } else if looked.elapsed() < PAUSE {
            continue;
        }
        if traces.members().is_empty() {
            return;
        }
        looked = Instant::now();
    }
}

/// Kills everything of an agent. Returns the survivors.
fn kill(state: &mut State, traces: &Traces, on_output: &mut dyn FnMut(Output)) -> Vec<Survivor> {
    let until = Instant::now() + KILL_LIMIT;
    loop {
        // Fails when the group is empty.
        let _killed = state.child.start_kill();
        let left = traces.members();
        left.kill();
        state.poll_child();
        if left.is_empty() && state.exit.is_some() {
            return Vec::new();
        }
        if Instant::now() >= until {
            return left.survivors();
        }
        state.next(PAUSE / 4).into_iter().for_each(&mut *on_output);
    }
}

/// By what the processes of an agent are recognised.
#[derive(Clone, Debug)]
struct Traces {
    /// Its process, by number and start time.
    process: Option<(i32, u64)>,
    /// The session that it leads, if the number is known to be that of no other one.
    session: Option<i32>,
    mark: Mark,
}

impl Traces {
    fn of(identity: &Identity) -> Self {
        let process = identity.started_at.map(|start| (identity.pid, start));
        Self { process, session: None, mark: identity.mark.clone() }
    }

    fn marked(mark: &Mark) -> Self {
        Self { process: None, session: None, mark: mark.clone() }
    }

    fn members(&self) -> ProcessMembers {
        ProcessMembers::find(self.process, self.session, &self.mark)
    }

    fn find(self) -> Found {
        if self.members().is_empty() {
            return Found::Gone;
        }
        Found::Alive(Orphan { remains: Box::new(self) })
    }
}

impl Remains for Traces {
    fn end(&self, grace: Duration) -> Vec<Survivor> {
        for wanted in [Request::Terminate, Request::Continue] {
            wanted.signal().into_iter().for_each(|signal| self.members().signal(signal));
        }
        let asked = Request::Terminate.signal().is_some();
        let grace = if asked { grace } else { Duration::ZERO };
        let (start, limit) = (Instant::now(), grace.saturating_add(KILL_LIMIT));
        loop {
            let left = self.members();
            if left.is_empty() {
                return Vec::new();
            }
            if start.elapsed() >= limit {
                return left.survivors();
            }
            if start.elapsed() >= grace {
                left.kill();
            }
            thread::sleep(PAUSE);
        }
    }
}
