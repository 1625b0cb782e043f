//! Moves an agent's input and output, in one thread and bounded memory.
//!
//! When nobody takes the output the pump waits, then the pipe is full, then the agent waits.
//! The end of the output is not the end of the agent, nor the other way round: when the agent has
//! ended, some descendant may still hold its output open. Everything that was written until then
//! is read, and what comes later for a short while; then the output is closed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::pipe::fcntl_setpipe_size;

use super::message::{Inbox, Report, is_passing};
use super::{Exit, Output, Survivor};
use crate::clock;

/// The most that one piece of output has.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many pieces wait for whoever takes them.
const CHUNKS_WAITING: usize = 16;
/// How long a descendant may hold the output open after the agent has ended.
pub(super) const LEAK_WINDOW: Duration = Duration::from_millis(100);
/// After less than so much the pump rests, so that an agent that writes line by line does not wake
/// it each time. Nothing is late that matters: the end of the agent ends the rest.
const REST_BELOW: usize = 32 * 1024;
/// How long, if the pipe holds what an agent writes meanwhile, or if it is as small as usual.
const REST: Duration = Duration::from_millis(16);
const REST_SMALL: Duration = Duration::from_millis(4);
/// What the pipe shall hold. The system may refuse, if there are many.
const PIPE_BYTES: usize = 256 * 1024;
/// What a terminal may hold that it does not tell about.
const TERMINAL_BYTES: u64 = 128 * 1024;

/// What comes out of the pump.
#[derive(Debug)]
pub(super) enum Item {
    Output(Output),
    /// The keeper says that it is over.
    Ended(Vec<Survivor>),
}

/// Our ends of the agent's streams. None of them may block.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) output: File,
    /// On a terminal there is only one.
    pub(super) errors: Option<File>,
    /// Where input goes, and what.
    pub(super) input: Option<(File, Vec<u8>)>,
}

/// Starts pumping.
pub(super) fn start(
    control: UnixStream,
    inbox: Inbox,
    streams: Streams,
) -> io::Result<(Receiver<Item>, JoinHandle<()>)> {
    let (items, taken) = sync_channel(CHUNKS_WAITING);
    let terminal = streams.errors.is_none();
    let source = |file, is_errors| {
        let is_large = fcntl_setpipe_size(&file, PIPE_BYTES).is_ok();
        let rest = if is_large { REST } else { REST_SMALL };
        // A terminal holds too little to wait for more.
        let rest = if terminal { Duration::ZERO } else { rest };
        Source { file, is_errors, terminal, rest, owed: 0 }
    };
    let sources = [Some(source(streams.output, false)), streams.errors.map(|f| source(f, true))];
    let pump = Pump {
        control: Some(control),
        inbox,
        sources,
        feed: streams.input.map(|(file, bytes)| Feed { file, bytes, written: 0 }),
        items,
        exited: false,
        closed: false,
        leak_until: None,
        rest_until: None,
        buffer: vec![0; CHUNK_BYTES],
    };
    // An error of the pump is that nobody listens any more.
    let thread = thread::Builder::new().name("agent".to_owned()).spawn(move || drop(pump.run()))?;
    Ok((taken, thread))
}

/// A stream of output.
#[derive(Debug)]
struct Source {
    file: File,
    is_errors: bool,
    terminal: bool,
    /// How long to rest after little output.
    rest: Duration,
    /// How many bytes were there when the agent ended and are not read yet.
    owed: u64,
}

/// The rest of the input.
#[derive(Debug)]
struct Feed {
    file: File,
    bytes: Vec<u8>,
    written: usize,
}

/// Nobody takes what comes out.
type Unheard = SendError<Item>;

#[derive(Debug)]
struct Pump {
    /// The keeper, until it has gone.
    control: Option<UnixStream>,
    inbox: Inbox,
    sources: [Option<Source>; 2],
    feed: Option<Feed>,
    items: SyncSender<Item>,
    exited: bool,
    closed: bool,
    /// When the output is closed although somebody holds it.
    leak_until: Option<Duration>,
    /// When reading goes on.
    rest_until: Option<Duration>,
    buffer: Vec<u8>,
}

impl Pump {
    fn run(mut self) -> Result<(), Unheard> {
        // More than the first report may have arrived with it.
        self.pass_on()?;
        loop {
            if !self.closed && self.sources.iter().all(Option::is_none) {
                self.closed = true;
                self.items.send(Item::Output(Output::Closed))?;
            }
            if self.closed && self.control.is_none() {
                return Ok(());
            }
            let ready = self.wait();
            if ready.control {
                self.hear()?;
            }
            if ready.feed {
                self.feed();
            }
            for (index, is_ready) in ready.sources.into_iter().enumerate() {
                if is_ready {
                    self.read(index)?;
                }
            }
            if self.leak_until.is_some_and(|until| clock::since_boot() >= until) {
                self.give_up()?;
            }
        }
    }

    /// Sleeps until something can be done.
    fn wait(&mut self) -> Ready {
        let now = clock::since_boot();
        self.rest_until = self.rest_until.filter(|until| *until > now);
        let resting = self.rest_until.is_some();
        let until = [self.leak_until, self.rest_until].into_iter().flatten().min();
        let timeout = until.map(|until| until.saturating_sub(now));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut polled = Vec::with_capacity(4);
        polled.extend(self.control.as_ref().map(|socket| PollFd::new(socket, PollFlags::IN)));
        polled.extend(self.feed.as_ref().map(|feed| PollFd::new(&feed.file, PollFlags::OUT)));
        let sources = self.sources.iter().flatten().filter(|_| !resting);
        polled.extend(sources.map(|source| PollFd::new(&source.file, PollFlags::IN)));
        if poll(&mut polled, timeout.as_ref()).is_err() {
            return Ready::default();
        }
        let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
        let mut take = |there: bool| there && ready.next().unwrap_or(false);
        Ready {
            control: take(self.control.is_some()),
            feed: take(self.feed.is_some()),
            sources: [&self.sources[0], &self.sources[1]]
                .map(|source| take(source.is_some() && !resting)),
        }
    }

    /// Reads what the keeper reports.
    fn hear(&mut self) -> Result<(), Unheard> {
        let Some(control) = &self.control else { return Ok(()) };
        let open = self.inbox.fill(control).unwrap_or(false);
        self.pass_on()?;
        if !open {
            self.control = None;
            // Without its keeper nobody can say how an agent ended, or whether.
            self.note_exit(Exit { code: None, signal: None })?;
        }
        Ok(())
    }

    fn pass_on(&mut self) -> Result<(), Unheard> {
        while let Some(report) = self.inbox.next() {
            match report {
                Report::Started { .. } | Report::Refused { .. } => {}
                Report::Stopped => self.items.send(Item::Output(Output::Stopped))?,
                Report::Exited(exit) => self.note_exit(exit)?,
                Report::Ended { survivors } => self.items.send(Item::Ended(survivors))?,
            }
        }
        Ok(())
    }

    fn note_exit(&mut self, exit: Exit) -> Result<(), Unheard> {
        if self.exited {
            return Ok(());
        }
        self.exited = true;
        self.feed = None;
        self.rest_until = None;
        self.leak_until = Some(clock::since_boot() + LEAK_WINDOW);
        for source in self.sources.iter_mut().flatten() {
            let told = ioctl_fionread(&source.file).unwrap_or_default();
            source.owed = if source.terminal { told.max(TERMINAL_BYTES) } else { told };
        }
        self.items.send(Item::Output(Output::Exited(exit)))
    }

    /// Reads once from a stream. Returns whether there may be more.
    fn read(&mut self, index: usize) -> Result<bool, Unheard> {
        let Some(source) = &mut self.sources[index] else { return Ok(false) };
        match source.file.read(&mut self.buffer) {
            Ok(length) if length > 0 => {
                source.owed = source.owed.saturating_sub(length as u64);
                if length < REST_BELOW && !self.exited {
                    self.rest_until = Some(clock::since_boot() + source.rest);
                }
                let bytes = self.buffer[..length].to_vec();
                let output =
                    if source.is_errors { Output::Stderr(bytes) } else { Output::Stdout(bytes) };
                self.items.send(Item::Output(output))?;
                Ok(true)
            }
            Err(error) if is_passing(&error) => Ok(error.kind() == io::ErrorKind::Interrupted),
            // A terminal that nobody has open any more fails instead of ending.
            Ok(_) | Err(_) => {
                self.sources[index] = None;
                Ok(false)
            }
        }
    }

    /// Reads what was written before the agent ended, and closes the streams.
    fn give_up(&mut self) -> Result<(), Unheard> {
        for index in 0..self.sources.len() {
            while self.sources[index].as_ref().is_some_and(|source| source.owed > 0)
                && self.read(index)?
            {}
            self.sources[index] = None;
        }
        self.leak_until = None;
        Ok(())
    }

    /// Writes what the agent is ready to read.
    fn feed(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        match feed.file.write(&feed.bytes[feed.written..]) {
            Ok(length) if length > 0 => feed.written += length,
            Err(error) if is_passing(&error) => return,
            // It does not want to know.
            Ok(_) | Err(_) => feed.written = feed.bytes.len(),
        }
        if feed.written == feed.bytes.len() {
            self.feed = None;
        }
    }
}

#[derive(Debug, Default)]
struct Ready {
    control: bool,
    feed: bool,
    sources: [bool; 2],
}
