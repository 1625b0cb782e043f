//! The protocol between supervisor and reaper: one JSON object per line on a Unix socket.
//!
//! The first message is not a line but the three streams of the agent, passed as descriptors
//! (`SCM_RIGHTS`), so that no inheritable descriptor exists that another child could inherit too.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::os::unix::is_transient;
use crate::{Exit, Survivor};

/// The longest line either side accepts.
const LINE_MAX: usize = 64 * 1024;
/// How many streams are passed: input, output and errors.
pub(super) const STREAMS: usize = 3;

/// What the supervisor wants from the reaper.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReaperRequest {
    /// Send SIGINT to the agent's process group, as Ctrl-C does.
    Interrupt,
    /// Stop every process of the tree.
    Suspend,
    /// Continue every process of the tree.
    Resume,
    /// End the tree: SIGTERM, then SIGKILL after this many milliseconds.
    End { grace: u64 },
}

/// What the reaper reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReaperEvent {
    /// The agent runs; `grouped` says whether in a control group of its own.
    Started { pid: i32, start: u64, grouped: bool },
    /// The system refused to run the program, with this error number.
    Refused { error: i32 },
    /// The agent itself has exited. Descendants may still run.
    Exited(Exit),
    /// The agent was stopped, and not on our request.
    Stopped,
    /// The tree has ended, apart from these survivors. The last event.
    Ended { survivors: Vec<Survivor> },
}

/// Writes one line.
pub(super) fn send(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Assembles lines from what arrives.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Reads what has arrived. Returns false when the other side has closed the socket.
    pub(super) fn fill(&mut self, mut socket: &UnixStream) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        match socket.read(&mut buffer) {
            Ok(0) => Ok(false),
            Ok(length) if self.bytes.len() + length <= LINE_MAX => {
                self.bytes.extend_from_slice(&buffer[..length]);
                Ok(true)
            }
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
            Err(error) if is_transient(&error) => Ok(true),
            // The other side exited without reading everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes the next line. Lines that do not parse are skipped.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        while let Some(end) = memchr::memchr(b'\n', &self.bytes) {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            if let Ok(message) = serde_json::from_slice(&line) {
                return Some(message);
            }
        }
        None
    }
}

/// Passes the streams of the agent to the reaper.
pub(super) fn send_streams(
    socket: &UnixStream,
    streams: [BorrowedFd<'_>; STREAMS],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    if !buffer.push(SendAncillaryMessage::ScmRights(&streams)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(socket.as_fd(), &[IoSlice::new(b"\n")], &mut buffer, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the streams of the agent.
pub(super) fn receive_streams(socket: &UnixStream) -> io::Result<[OwnedFd; STREAMS]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let slices = &mut [IoSliceMut::new(&mut byte)];
    recvmsg(socket.as_fd(), slices, &mut buffer, RecvFlags::CMSG_CLOEXEC)?;
    let mut streams = Vec::new();
    for message in buffer.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            streams.extend(received);
        }
    }
    streams.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}
