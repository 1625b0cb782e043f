//! What we and the keeper of an agent say to each other: lines of JSON on a socket.
//!
//! The first thing sent is no line but the three streams of the agent, as descriptors, so that
//! nothing has to be inherited that some other child could inherit as well.

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

use super::{Exit, Survivor};

/// The longest line either side accepts.
const LINE_MAX: usize = 64 * 1024;
/// How many streams are handed over: input, output and errors.
pub(super) const STREAMS: usize = 3;

/// What we want of the keeper.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Ask the agent to stop, as Ctrl-C does.
    Interrupt,
    /// Stop everything where it is.
    Suspend,
    /// Let everything go on.
    Resume,
    /// End everything, politely for so many milliseconds.
    End { grace: u64 },
}

/// What the keeper tells us.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The agent runs, in its own control group or not.
    Started { pid: i32, start: u64, grouped: bool },
    /// The system refused to run the program, with this error number.
    Refused { error: i32 },
    /// The agent itself has ended.
    Exited(Exit),
    /// The agent was stopped, and not by us.
    Stopped,
    /// Nobody is left, or these are. The last report.
    Ended { survivors: Vec<Survivor> },
}

/// Writes one line.
pub(super) fn send(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Gathers lines out of what arrives.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Reads what has arrived. Returns false when the other side has gone.
    pub(super) fn fill(&mut self, mut socket: &UnixStream) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        match socket.read(&mut buffer) {
            Ok(0) => Ok(false),
            Ok(length) if self.bytes.len() + length <= LINE_MAX => {
                self.bytes.extend_from_slice(&buffer[..length]);
                Ok(true)
            }
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
            Err(error) if is_passing(&error) => Ok(true),
            // It has gone without reading everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes the next line. One that nobody understands is skipped.
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

/// Whether trying again will do.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Hands the streams of the agent over.
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

/// Takes the streams of the agent.
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
