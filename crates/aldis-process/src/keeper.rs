//! The keeper: a small process between us and one agent, so that nothing of the agent is lost.
//!
//! It is the parent of the agent and a subreaper: whoever is orphaned below it becomes its child,
//! `setsid` or not. So the agent's tree is exactly what is below the keeper; it can reap anybody
//! without taking an exit status from somebody else; and when the system says that it has no
//! children, nobody is left. It ends the tree when we tell it to, and also when we are gone: an
//! agent does not outlive a killed supervisor. No output passes through it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
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
use super::interrupts::Counter;
use super::message::{self, Inbox, Order, Report};
use super::tree::{self, Process};
use super::{Exit, Survivor};
use crate::clock;

/// How long an agent may take to stop when its supervisor has gone.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);
/// How long what the agent leaves behind may take to stop, once it has ended itself.
pub(super) const STRAGGLER_GRACE: Duration = Duration::from_millis(250);
/// How long killing may take. Only a process stuck in the kernel takes longer.
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(5);
/// How often killing is tried again, at first and at most: new children may have been born.
const KILL_PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// How often suspending looks for children born in the meantime.
const SUSPEND_ROUNDS: usize = 100;
/// How often it is told that the agent was stopped. One that plays with it must not fill the
/// socket, or its end could not be told.
const STOPS_TOLD_MAX: u32 = 100;
/// How often a program that is being written is tried again, and after how long.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// What the keeper is told on its command line. The rest is inherited: directory, environment.
#[derive(Debug)]
pub struct Duty {
    /// Whether the streams are a terminal.
    pub terminal: bool,
    /// The control group to start the agent in.
    pub cgroup: Option<PathBuf>,
    /// The program.
    pub program: PathBuf,
    /// Its name for itself and its arguments.
    pub args: Vec<OsString>,
}

/// Starts the agent and keeps it until it and all its descendants have ended.
///
/// # Errors
///
/// Fails if standard input is not the socket of a supervisor.
pub fn keep(duty: &Duty) -> io::Result<()> {
    close_inherited();
    // Fails if we lead a group already: then somebody has started us by hand.
    let _session = setsid();
    set_child_subreaper(Some(getpid()))?;
    let control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    // Before the first child, so that none is missed.
    let children = Counter::new(&[SIGCHLD])?;
    let quit = Counter::new(&[SIGTERM, SIGINT, SIGHUP])?;
    let streams = message::receive_streams(&control)?;
    let mut cgroup = duty.cgroup.clone().map(Cgroup::at);
    let leader = match start(duty, streams, &mut cgroup) {
        Ok(leader) => leader,
        Err(error) => {
            let error = error.raw_os_error().unwrap_or_default();
            return message::send(&control, &Report::Refused { error });
        }
    };
    control.set_nonblocking(true)?;
    let keeper = Keeper {
        control: Some(control),
        inbox: Inbox::default(),
        children,
        quit,
        cgroup,
        leader,
        leader_gone: false,
        suspended: false,
        stopped: Vec::new(),
        stops_told: 0,
        phase: Phase::Watching,
    };
    keeper.run();
    Ok(())
}

/// Closes what we have inherited by the carelessness of others, so that the agent does not.
fn close_inherited() {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(Result::ok);
    let open: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // One of them was for listing them.
        let _closed = nix::unistd::close(descriptor);
    }
}

/// Starts the agent in its group.
fn start(
    duty: &Duty,
    [input, output, errors]: [OwnedFd; message::STREAMS],
    cgroup: &mut Option<Cgroup>,
) -> io::Result<i32> {
    let terminal = duty.terminal.then(|| output.try_clone()).transpose()?;
    if let Some(terminal) = &terminal {
        ioctl_tiocsctty(terminal)?;
    }
    let (name, args) = duty.args.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(&duty.program);
    command.arg0(name).args(args).process_group(0);
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(errors));
    // Children are born into the group of their parent: nothing can slip out in between.
    let home = cgroup::own();
    if home.is_none() || cgroup.as_ref().is_some_and(|group| group.enter().is_err()) {
        *cgroup = None;
    }
    let spawned = spawn(&mut command);
    if let (Some(_), Some(home)) = (&cgroup, home)
        && Cgroup::at(home).enter().is_err()
    {
        // Killing or freezing the group would now hit us as well.
        *cgroup = None;
    }
    let leader = i32::try_from(spawned?.id()).map_err(|_| io::ErrorKind::InvalidData)?;
    if let (Some(terminal), Some(group)) = (terminal, Pid::from_raw(leader)) {
        tcsetpgrp(&terminal, group)?;
        // It may have asked for the terminal before it was in the foreground.
        let _continued = kill_process_group(group, Signal::CONT);
    }
    Ok(leader)
}

/// A program just written may still be open for writing in a child of somebody else.
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

/// What the keeper is doing. Times are by [`clock::since_boot`].
#[derive(Clone, Copy, Debug)]
enum Phase {
    Watching,
    Asking { until: Duration },
    Killing { until: Duration, pause: Duration },
}

#[derive(Debug)]
struct Keeper {
    /// The supervisor, until it has gone.
    control: Option<UnixStream>,
    inbox: Inbox,
    children: Counter,
    quit: Counter,
    cgroup: Option<Cgroup>,
    leader: i32,
    leader_gone: bool,
    suspended: bool,
    /// Whom suspending has stopped, where there is no group to freeze.
    stopped: Vec<Process>,
    stops_told: u32,
    phase: Phase,
}

impl Keeper {
    fn run(mut self) {
        let start = Process::read(self.leader).map_or(0, |process| process.start);
        let grouped = self.cgroup.is_some();
        self.report(&Report::Started { pid: self.leader, start, grouped });
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
            self.wait_for_news();
            self.obey();
        }
        let survivors = survivors(&self.tree());
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        self.report(&Report::Ended { survivors });
    }

    /// Collects whoever has ended. Returns whether nobody is left.
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
            if !self.suspended && self.stops_told < STOPS_TOLD_MAX {
                self.stops_told += 1;
                self.report(&Report::Stopped);
            }
            return;
        }
        self.leader_gone = true;
        if let Phase::Asking { until } = &mut self.phase {
            *until = (*until).min(clock::since_boot() + STRAGGLER_GRACE);
        }
        let exit = Exit { code: status.exit_status(), signal: status.terminating_signal() };
        self.report(&Report::Exited(exit));
    }

    /// Sleeps until a child, the supervisor or the time has something to say.
    fn wait_for_news(&self) {
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
        // An interruption is news as well.
        let _ready = poll(&mut sources, timeout.as_ref());
    }

    fn obey(&mut self) {
        if self.quit.take() > 0 {
            self.end(ORPHAN_GRACE);
        }
        let Some(control) = &self.control else { return };
        let open = self.inbox.fill(control).unwrap_or(false);
        while let Some(order) = self.inbox.next() {
            match order {
                Order::Interrupt => self.interrupt(),
                Order::Suspend => self.suspend(),
                Order::Resume => self.resume(),
                Order::End { grace } => self.end(Duration::from_millis(grace)),
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
            // As a terminal does it. The leader is not reaped, so the number is its own.
            Some(group) => drop(kill_process_group(group, Signal::INT)),
            None => self.tree().iter().for_each(|process| process.signal(Signal::INT)),
        }
    }

    fn suspend(&mut self) {
        self.suspended = true;
        if self.cgroup.as_ref().is_some_and(|group| group.freeze(true).is_ok()) {
            return;
        }
        // Children born while we look are found by looking again.
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

    /// Lets everything go on that we have suspended, or else everything that is stopped.
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

    /// Asks everybody to stop, and sets the time after which nobody is asked.
    fn end(&mut self, grace: Duration) {
        let grace = if self.leader_gone { grace.min(STRAGGLER_GRACE) } else { grace };
        let wanted = clock::since_boot() + grace;
        match &mut self.phase {
            Phase::Watching => self.phase = Phase::Asking { until: wanted },
            // Asking twice is asking for haste.
            Phase::Asking { until } => *until = wanted.min(*until),
            Phase::Killing { .. } => return,
        }
        if grace.is_zero() {
            return;
        }
        self.tree().iter().for_each(|process| process.signal(Signal::TERM));
        // Whoever is stopped cannot stop by himself.
        self.resume();
        self.tree()
            .iter()
            .filter(|process| process.is_stopped())
            .for_each(|process| process.signal(Signal::CONT));
    }

    fn kill(&self) {
        if let Some(group) = &self.cgroup {
            // Before Linux 5.14 the walk below is all there is.
            let _killed = group.kill();
        }
        self.tree().iter().for_each(|process| process.signal(Signal::KILL));
    }

    fn tree(&self) -> Vec<Process> {
        tree::below(&[getpid().as_raw_nonzero().get()], &tree::all())
    }

    /// Tells the supervisor, who may have gone.
    fn report(&self, report: &Report) {
        if let Some(control) = &self.control {
            let _sent = message::send(control, report);
        }
    }
}

/// Names those who live.
pub(super) fn survivors(processes: &[Process]) -> Vec<Survivor> {
    processes
        .iter()
        .filter(|process| process.is_alive())
        .map(|process| Survivor { pid: process.pid, name: process.name() })
        .collect()
}
