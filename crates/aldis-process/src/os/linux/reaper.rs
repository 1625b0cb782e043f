//! The reaper: a small process between the supervisor and one agent that loses nothing of its tree.
//!
//! It is the parent of the agent and a child subreaper (`PR_SET_CHILD_SUBREAPER`): a process that
//! is orphaned below it becomes its child, `setsid` or not. So the agent's tree is exactly what is
//! below the reaper, it can wait for any child without taking an exit status from other code, and
//! `ECHILD` means that nothing is left. It ends the tree on request, and also when the supervisor is
//! gone, so an agent does not outlive a killed supervisor. No output passes through it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, ioctl_tiocsctty, kill_process_group,
    set_child_subreaper, setsid, wait,
};
use rustix::termios::tcsetpgrp;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::cgroup::{self, Cgroup};
use super::clock;
use super::message::{self, Inbox, ReaperEvent, ReaperRequest};
use super::tree::{self, Process};
use crate::os::unix::signals::SignalCounter;
use crate::os::{KILL_LIMIT, STRAGGLER_GRACE};
use crate::reaper::ReaperArgs;
use crate::{Exit, Survivor};

/// How long an agent may take to stop when its supervisor is gone.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);
/// How often killing is retried, at first and at most: children may have been born in between.
const KILL_PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// How often suspending looks for children born in the meantime.
const SUSPEND_ROUNDS: usize = 100;
/// How many stops are reported. An agent that stops itself in a loop must not fill the socket, or
/// its exit could not be reported.
const STOPS_REPORTED_MAX: u32 = 100;
/// How often a program that is still open for writing (`ETXTBSY`) is retried, and after how long.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Starts the agent and waits until its whole tree has ended.
pub(crate) fn run(args: &ReaperArgs) -> io::Result<()> {
    close_inherited();
    // Fails if we lead a process group already: then somebody has started us by hand.
    let _session = setsid();
    set_child_subreaper(Some(getpid()))?;
    let control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    // Before the first child, so that no SIGCHLD is missed.
    let children = SignalCounter::new(&[SIGCHLD])?;
    let quit = SignalCounter::new(&[SIGTERM, SIGINT, SIGHUP])?;
    let streams = message::receive_streams(&control)?;
    let mut cgroup = args.cgroup.clone().map(Cgroup::at);
    let leader = match start(args, streams, &mut cgroup) {
        Ok(leader) => leader,
        Err(error) => {
            let error = error.raw_os_error().unwrap_or_default();
            return message::send(&control, &ReaperEvent::Refused { error });
        }
    };
    control.set_nonblocking(true)?;
    let reaper = Reaper {
        control: Some(control),
        inbox: Inbox::default(),
        children,
        quit,
        cgroup,
        leader,
        leader_gone: false,
        suspended: false,
        stopped: Vec::new(),
        stops_reported: 0,
        phase: Phase::Watching,
    };
    reaper.run();
    Ok(())
}

/// Closes descriptors that were inherited by mistake, so that the agent does not inherit them.
fn close_inherited() {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(Result::ok);
    let open: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // One of them was for listing them.
        let _closed = nix::unistd::close(descriptor);
    }
}

/// Starts the agent in its process group and control group.
fn start(
    args: &ReaperArgs,
    [input, output, errors]: [OwnedFd; message::STREAMS],
    cgroup: &mut Option<Cgroup>,
) -> io::Result<i32> {
    let terminal = args.terminal.then(|| output.try_clone()).transpose()?;
    if let Some(terminal) = &terminal {
        ioctl_tiocsctty(terminal)?;
    }
    let (name, arguments) = args.args.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(&args.program);
    command.arg0(name).args(arguments).process_group(0);
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(errors));
    // Children are born into the control group of their parent, so we enter it, spawn and leave:
    // moving the agent afterwards would miss what it forks before.
    let home = cgroup::own();
    if home.is_none() || cgroup.as_ref().is_some_and(|group| group.enter().is_err()) {
        *cgroup = None;
    }
    let spawned = spawn(&mut command);
    if let (Some(_), Some(home)) = (&cgroup, home)
        && Cgroup::at(home).enter().is_err()
    {
        // Killing or freezing the group would now hit the reaper as well.
        *cgroup = None;
    }
    let leader = i32::try_from(spawned?.id()).map_err(|_| io::ErrorKind::InvalidData)?;
    if let (Some(terminal), Some(group)) = (terminal, Pid::from_raw(leader)) {
        tcsetpgrp(&terminal, group)?;
        // It may have used the terminal before it was in the foreground (SIGTTIN, SIGTTOU).
        let _continued = kill_process_group(group, Signal::CONT);
    }
    Ok(leader)
}

/// Retries `ETXTBSY`: a program just written may still be open for writing in a forked child of
/// another thread.
fn spawn(command: &mut Command) -> io::Result<process::Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                thread::sleep(BUSY_PAUSE);
            }
            result => return result,
        }
    }
    command.spawn()
}

/// What the reaper is doing. Times are by [`clock::since_boot`].
#[derive(Clone, Copy, Debug)]
enum Phase {
    Watching,
    Asking { until: Duration },
    Killing { until: Duration, pause: Duration },
}

#[derive(Debug)]
struct Reaper {
    /// The supervisor, until it has closed the socket.
    control: Option<UnixStream>,
    inbox: Inbox,
    children: SignalCounter,
    quit: SignalCounter,
    cgroup: Option<Cgroup>,
    leader: i32,
    leader_gone: bool,
    suspended: bool,
    /// What suspending has stopped, where there is no control group to freeze.
    stopped: Vec<Process>,
    stops_reported: u32,
    phase: Phase,
}

impl Reaper {
    fn run(mut self) {
        let start = Process::read(self.leader).map_or(0, |process| process.start);
        let grouped = self.cgroup.is_some();
        self.report(&ReaperEvent::Started { pid: self.leader, start, grouped });
        loop {
            self.children.take();
            let empty = self.reap();
            let now = clock::since_boot();
            match self.phase {
                Phase::Watching => {}
                _ if empty => break,
                Phase::Asking { until } if now >= until => {
                    let until = now + KILL_LIMIT;
                    self.phase = Phase::Killing { until, pause: KILL_PAUSE.0 };
                    self.kill();
                }
                Phase::Asking { .. } => {}
                Phase::Killing { until, .. } if now >= until => break,
                Phase::Killing { until, pause } => {
                    let pause = (pause * 2).min(KILL_PAUSE.1);
                    self.phase = Phase::Killing { until, pause };
                    self.kill();
                }
            }
            self.wait_for_event();
            self.handle_requests();
        }
        let survivors = survivors(&self.tree());
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        self.report(&ReaperEvent::Ended { survivors });
    }

    /// Waits for exited children without blocking. Returns whether none is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) => self.note(pid.as_raw_nonzero().get(), status),
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    fn note(&mut self, pid: i32, status: WaitStatus) {
        if pid != self.leader {
            return;
        }
        if status.stopped() {
            if !self.suspended && self.stops_reported < STOPS_REPORTED_MAX {
                self.stops_reported += 1;
                self.report(&ReaperEvent::Stopped);
            }
            return;
        }
        self.leader_gone = true;
        if let Phase::Asking { until } = &mut self.phase {
            *until = (*until).min(clock::since_boot() + STRAGGLER_GRACE);
        }
        let exit = Exit { code: status.exit_status(), signal: status.terminating_signal() };
        self.report(&ReaperEvent::Exited(exit));
    }

    /// Sleeps until a child changes, a request arrives or a deadline passes.
    fn wait_for_event(&self) {
        let timeout = match self.phase {
            Phase::Watching => None,
            Phase::Asking { until } => Some(until.saturating_sub(clock::since_boot())),
            Phase::Killing { pause, .. } => Some(pause),
        };
        let mut sources = vec![
            PollFd::new(self.children.arrivals(), PollFlags::IN),
            PollFd::new(self.quit.arrivals(), PollFlags::IN),
        ];
        sources.extend(self.control.as_ref().map(|control| PollFd::new(control, PollFlags::IN)));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // EINTR is an event as well.
        let _ready = poll(&mut sources, timeout.as_ref());
    }

    fn handle_requests(&mut self) {
        if self.quit.take() > 0 {
            self.end(ORPHAN_GRACE);
        }
        let Some(control) = &self.control else { return };
        let open = self.inbox.fill(control).unwrap_or(false);
        while let Some(request) = self.inbox.next() {
            match request {
                ReaperRequest::Interrupt => self.interrupt(),
                ReaperRequest::Suspend => self.suspend(),
                ReaperRequest::Resume => self.resume(),
                ReaperRequest::End { grace } => self.end(Duration::from_millis(grace)),
            }
        }
        if !open {
            self.control = None;
            self.end(ORPHAN_GRACE);
        }
    }

    fn interrupt(&mut self) {
        self.resume();
        match Pid::from_raw(self.leader).filter(|_| !self.leader_gone) {
            // As a terminal does. The leader is not reaped yet, so its number is not reused.
            Some(group) => drop(kill_process_group(group, Signal::INT)),
            None => self.tree().iter().for_each(|process| process.signal(Signal::INT)),
        }
    }

    fn suspend(&mut self) {
        self.suspended = true;
        if self.cgroup.as_ref().is_some_and(|group| group.freeze(true).is_ok()) {
            return;
        }
        // Children born while we look are found by the next round.
        for _ in 0..SUSPEND_ROUNDS {
            let new: Vec<Process> = self
                .tree()
                .into_iter()
                .filter(|process| process.is_alive() && !process.is_stopped())
                .filter(|process| !self.stopped.iter().any(|known| known.pid == process.pid))
                .collect();
            if new.is_empty() {
                return;
            }
            new.iter().for_each(|process| process.signal(Signal::STOP));
            self.stopped.extend(new);
        }
    }

    /// Continues what [`Reaper::suspend`] has stopped, or else everything that is stopped.
    fn resume(&mut self) {
        if let Some(group) = &self.cgroup {
            let _thawed = group.freeze(false);
        }
        let mut stopped = std::mem::take(&mut self.stopped);
        if !self.suspended {
            stopped = self.tree().into_iter().filter(Process::is_stopped).collect();
        }
        self.suspended = false;
        stopped.iter().for_each(|process| process.signal(Signal::CONT));
    }

    /// Sends SIGTERM to the tree, and sets the deadline for SIGKILL.
    fn end(&mut self, grace: Duration) {
        let grace = if self.leader_gone { grace.min(STRAGGLER_GRACE) } else { grace };
        let wanted = clock::since_boot() + grace;
        match &mut self.phase {
            Phase::Watching => self.phase = Phase::Asking { until: wanted },
            // A second request may only shorten the grace period.
            Phase::Asking { until } => *until = wanted.min(*until),
            Phase::Killing { .. } => return,
        }
        if grace.is_zero() {
            return;
        }
        self.tree().iter().for_each(|process| process.signal(Signal::TERM));
        // A stopped process cannot react to SIGTERM.
        self.resume();
        self.tree()
            .iter()
            .filter(|process| process.is_stopped())
            .for_each(|process| process.signal(Signal::CONT));
    }

    fn kill(&self) {
        if let Some(group) = &self.cgroup {
            // Fails before Linux 5.14; the tree walk below then does it alone.
            let _killed = group.kill();
        }
        self.tree().iter().for_each(|process| process.signal(Signal::KILL));
    }

    fn tree(&self) -> Vec<Process> {
        tree::below(&[getpid().as_raw_nonzero().get()], &tree::all())
    }

    /// Tells the supervisor, which may be gone.
    fn report(&self, event: &ReaperEvent) {
        if let Some(control) = &self.control {
            let _sent = message::send(control, event);
        }
    }
}

/// Names the processes that are still alive.
pub(super) fn survivors(processes: &[Process]) -> Vec<Survivor> {
    processes
        .iter()
        .filter(|process| process.is_alive())
        .map(|process| Survivor { pid: process.pid, name: process.name() })
        .collect()
}
