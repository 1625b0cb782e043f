//! Both ends of the agent's standard streams: pipes, or a pseudo-terminal.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::ioctl_fionbio;

use super::message::STREAMS;
use super::pump::Streams;
use super::terminal;
use crate::{Input, Launch};

#[derive(Debug)]
pub(super) struct StreamPairs {
    pub(super) ours: Streams,
    /// Input, output and errors.
    pub(super) theirs: [OwnedFd; STREAMS],
}

impl StreamPairs {
    pub(super) fn open(launch: &Launch) -> io::Result<Self> {
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
        let ours = Streams { output: File::from(ours), errors: None, input };
        Ok(Self { ours, theirs: [theirs.try_clone()?, theirs.try_clone()?, theirs] })
    }

    fn pipes(input: &Input) -> io::Result<Self> {
        let (output, their_output) = io::pipe()?;
        let (errors, their_errors) = io::pipe()?;
        let (input, their_input) = match input {
            Input::Empty => (None, OwnedFd::from(File::open("/dev/null")?)),
            Input::Text(text) => {
                let (theirs, ours) = io::pipe()?;
                (Some((nonblocking(ours)?, text.clone())), theirs.into())
            }
        };
        let (output, errors) = (nonblocking(output)?, Some(nonblocking(errors)?));
        let ours = Streams { output, errors, input };
        Ok(Self { ours, theirs: [their_input, their_output.into(), their_errors.into()] })
    }
}

/// Makes our end of a pipe non-blocking. The other end is a description of its own and stays as is.
fn nonblocking(end: impl Into<OwnedFd>) -> io::Result<File> {
    let end = end.into();
    ioctl_fionbio(&end, true)?;
    Ok(File::from(end))
}
