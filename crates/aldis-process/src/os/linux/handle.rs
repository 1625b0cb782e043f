//! The supervisor's side of the reaper: its process, the socket to it, and the control group.

use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::REAPER_SLACK;
use super::cgroup::Cgroup;
use super::clock::since_boot;
use super::message::{self, Inbox, ReaperEvent, ReaperRequest, STREAMS};
use super::tree::Process;
use crate::os::KILL_LIMIT;
use crate::{Launch, REAPER_COMMAND};

/// How long a reaper may take to start the agent.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How often it is checked meanwhile whether somebody has stopped the reaper, and how often it is
/// continued before we give up: an agent could stop it again and again.
const START_CHECK: Duration = Duration::from_millis(50);
const START_CONTINUES: u32 = 3;
/// How often the exit of the reaper is polled.
const REAP_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct ReaperHandle {
    child: Child,
    pub(super) control: UnixStream,
    pub(super) group: Option<Cgroup>,
}

impl ReaperHandle {
    pub(super) fn start(
        launch: &Launch,
        program: &Path,
        variables: Vec<(OsString, OsString)>,
        group: Option<Cgroup>,
    ) -> io::Result<Self> {
        let (control, socket) = UnixStream::pair()?;
        // Not by its path: the file may have been replaced since we were started.
        let own = || PathBuf::from("/proc/self/exe");
        let mut command = Command::new(launch.reaper.clone().unwrap_or_else(own));
        command.arg0("aldis").arg(REAPER_COMMAND).arg("--program").arg(program);
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

    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    /// Passes the agent's streams to the reaper.
    pub(super) fn send_streams(&self, streams: &[OwnedFd; STREAMS]) -> io::Result<()> {
        match message::send_streams(&self.control, streams.each_ref().map(OwnedFd::as_fd)) {
            // The reaper has exited; that no event comes will tell.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// Waits until the reaper has started the agent or could not. Returns nothing if it has exited,
    /// if it takes too long, or if somebody keeps stopping it.
    pub(super) fn first_event(&self, inbox: &mut Inbox) -> io::Result<Option<ReaperEvent>> {
        self.control.set_read_timeout(Some(START_CHECK))?;
        let until = since_boot() + START_LIMIT;
        let mut continues = 0;
        let event = loop {
            let open = inbox.fill(&self.control)?;
            let event = inbox.next();
            if event.is_some() || !open || since_boot() >= until || continues > START_CONTINUES {
                break event;
            }
            continues += u32::from(self.resume_if_stopped());
        };
        self.control.set_nonblocking(true)?;
        Ok(event)
    }

    /// Continues the reaper if somebody has stopped it. Returns whether that was so.
    pub(super) fn resume_if_stopped(&self) -> bool {
        let stopped = Process::read(self.pid()).filter(Process::is_stopped_by_signal);
        stopped.iter().for_each(|process| process.signal(Signal::CONT));
        stopped.is_some()
    }

    pub(super) fn request(&self, request: ReaperRequest) {
        self.resume_if_stopped();
        // A reaper that has exited has nothing left to do; one that hangs is swept away.
        let _sent = message::send(&self.control, &request);
    }

    /// Waits until the reaper has exited, kills it if that takes too long, and removes the group.
    pub(super) fn dismiss(&mut self, limit: Duration) {
        let until = since_boot() + limit;
        while matches!(self.child.try_wait(), Ok(None)) {
            if since_boot() >= until {
                // Fails if it has just exited.
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

impl Drop for ReaperHandle {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.request(ReaperRequest::End { grace: 0 });
        }
        // End of file makes a reaper exit, unless it never got as far as reading.
        let _shut = self.control.shutdown(Shutdown::Both);
        self.dismiss(KILL_LIMIT + REAPER_SLACK);
    }
}
