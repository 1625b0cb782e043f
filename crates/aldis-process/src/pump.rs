//! Moves an agent's input and output, for as long as somebody asks what comes next.
//!
//! When nobody takes the output the pipe is full at some time, and then the agent waits.
//! The end of the output is not the end of the agent, nor the other way round: when the agent has
//! ended, some descendant may still hold its output open. Everything that was written until then
//! is read, and what comes later for a short while; then the output is closed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::fcntl_setpipe_size;

use super::message::{Inbox, Report, is_passing};
use super::{Exit, Output, Survivor};
use crate::clock;

/// The most that one piece of output has. Larger ones were tried, and cost as much: what fewer calls
/// save is lost elsewhere.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many full pieces are read from a stream before anything else is looked at.
const FULL_MAX: usize = 16;
/// How long a descendant may hold the output open after the agent has ended.
pub(super) const LEAK_WINDOW: Duration = Duration::from_millis(100);
/// After less than so much the pump rests for a short while, so that an agent that writes line by line
/// does not wake it each time. Nothing is late that matters: the end of the agent ends the rest.
const REST_BELOW: usize = 32 * 1024;
/// How long, if the pipe holds what an agent writes meanwhile, or if it is as small as usual.
const REST: Duration = Duration::from_millis(16);
const REST_SMALL: Duration = Duration::from_millis(4);
/// How long at most while an agent writes so much that nobody can follow: being woken seldom for
/// much costs half of being woken often for little.
const REST_LONGEST: Duration = Duration::from_millis(60);
/// What the pipe shall hold, and that of an agent that writes much. The system may refuse, if there
/// are many.
const PIPE_BYTES: usize = 256 * 1024;
const PIPE_BYTES_MOST: usize = 1024 * 1024;
/// What a terminal may hold that it does not tell about.
const TERMINAL_BYTES: u64 = 128 * 1024;

/// What was waited for.
#[derive(Debug)]
pub(super) enum Next {
    Item(Item),
    /// Nothing has come yet.
    Nothing,
    /// Nothing will come any more.
    Over,
}

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

/// A stream of output.
#[derive(Debug)]
struct Source {
    file: File,
    is_errors: bool,
    terminal: bool,
    /// How much it holds, as far as is known.
    pipe: Option<usize>,
    /// How much came since the last rest began, and when that was.
    burst: usize,
    rested: Duration,
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

/// The streams of one agent and its keeper's reports.
#[derive(Debug)]
pub(super) struct Pump {
    /// The keeper, until it has gone.
    control: Option<UnixStream>,
    inbox: Inbox,
    sources: [Option<Source>; 2],
    feed: Option<Feed>,
    /// What nobody has taken yet.
    items: VecDeque<Item>,
    exited: bool,
    closed: bool,
    /// When the output is closed although somebody holds it.
    leak_until: Option<Duration>,
    /// When reading goes on.
    rest_until: Option<Duration>,
    /// The stream that gave a full piece last, and how many were read without waiting.
    full: Option<usize>,
    full_read: usize,
    /// Memory for the next piece of output.
    buffer: Vec<u8>,
}

impl Pump {
    pub(super) fn new(control: UnixStream, inbox: Inbox, streams: Streams) -> Self {
        let terminal = streams.errors.is_none();
        let source = |file, is_errors| {
            let pipe = fcntl_setpipe_size(&file, PIPE_BYTES).ok();
            let rested = clock::since_boot();
            Source { file, is_errors, terminal, pipe, burst: 0, rested, owed: 0 }
        };
        let errors = streams.errors.map(|errors| source(errors, true));
        let mut pump = Self {
            control: Some(control),
            inbox,
            sources: [Some(source(streams.output, false)), errors],
            feed: streams.input.map(|(file, bytes)| Feed { file, bytes, written: 0 }),
            items: VecDeque::new(),
            exited: false,
            closed: false,
            leak_until: None,
            rest_until: None,
            full: None,
            full_read: 0,
            buffer: Vec::new(),
        };
        // More than the first report may have arrived with it.
        pump.pass_on();
        pump
    }

    /// Takes the memory of a piece back.
    pub(super) fn give_back(&mut self, piece: Vec<u8>) {
        if piece.capacity() > self.buffer.capacity() {
            self.buffer = piece;
        }
    }

    /// Waits for what comes next, at most so long.
    pub(super) fn next(&mut self, timeout: Duration) -> Next {
        let until = clock::since_boot().saturating_add(timeout);
        loop {
            if let Some(item) = self.items.pop_front() {
                return Next::Item(item);
            }
            if self.closed && self.control.is_none() {
                return Next::Over;
            }
            let has_waited = clock::since_boot() >= until;
            self.turn(until);
            if has_waited && self.items.is_empty() {
                return Next::Nothing;
            }
        }
    }

    /// Waits until something can be done, and does it.
    fn turn(&mut self, until: Duration) {
        let ready = self.more().unwrap_or_else(|| self.wait(until));
        if ready.control {
            self.hear();
        }
        if ready.feed {
            self.feed();
        }
        for (index, is_ready) in ready.sources.into_iter().enumerate() {
            if is_ready {
                self.read(index);
            }
        }
        if self.leak_until.is_some_and(|until| clock::since_boot() >= until) {
            self.give_up();
        }
        if !self.closed && self.sources.iter().all(Option::is_none) {
            self.closed = true;
            self.items.push_back(Item::Output(Output::Closed));
        }
    }

    /// Returns the stream that gave a full piece, which has most likely more: asking costs as much as
    /// trying. Not for ever: others want to be looked at, too.
    fn more(&mut self) -> Option<Ready> {
        let index = self.full.take().filter(|_| self.full_read < FULL_MAX);
        self.full_read = if index.is_some() { self.full_read + 1 } else { 0 };
        let index = index?;
        Some(Ready { sources: [index == 0, index == 1], ..Ready::default() })
    }

    /// Sleeps until something can be done, but not for longer than `until`.
    fn wait(&mut self, until: Duration) -> Ready {
        let now = clock::since_boot();
        self.rest_until = self.rest_until.filter(|until| *until > now);
        let resting = self.rest_until.is_some();
        let until = [self.leak_until, self.rest_until].into_iter().flatten().fold(until, Ord::min);
        let timeout = Timespec::try_from(until.saturating_sub(now)).ok();
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
    fn hear(&mut self) {
        let Some(control) = &self.control else { return };
        let open = self.inbox.fill(control).unwrap_or(false);
        self.pass_on();
        if !open {
            self.control = None;
            // Without its keeper nobody can say how an agent ended, or whether.
            self.note_exit(Exit { code: None, signal: None });
        }
    }

    fn pass_on(&mut self) {
        while let Some(report) = self.inbox.next() {
            match report {
                Report::Started { .. } | Report::Refused { .. } => {}
                Report::Stopped => self.items.push_back(Item::Output(Output::Stopped)),
                Report::Exited(exit) => self.note_exit(exit),
                Report::Ended { survivors } => self.items.push_back(Item::Ended(survivors)),
            }
        }
    }

    fn note_exit(&mut self, exit: Exit) {
        if self.exited {
            return;
        }
        self.exited = true;
        self.feed = None;
        self.rest_until = None;
        self.leak_until = Some(clock::since_boot() + LEAK_WINDOW);
        for source in self.sources.iter_mut().flatten() {
            let told = ioctl_fionread(&source.file).unwrap_or_default();
            source.owed = if source.terminal { told.max(TERMINAL_BYTES) } else { told };
        }
        self.items.push_back(Item::Output(Output::Exited(exit)));
    }

    /// Reads once from a stream. Returns whether there may be more.
    fn read(&mut self, index: usize) -> bool {
        let Some(source) = &mut self.sources[index] else { return false };
        self.buffer.clear();
        self.buffer.reserve_exact(CHUNK_BYTES);
        match rustix::io::read(&source.file, spare_capacity(&mut self.buffer)) {
            Ok(length) if length > 0 => {
                source.owed = source.owed.saturating_sub(length as u64);
                source.burst += length;
                // Less than was asked for is all that there was.
                if length < CHUNK_BYTES && !self.exited {
                    let now = clock::since_boot();
                    self.rest_until = Some(now + source.rest(now));
                }
                if length == CHUNK_BYTES {
                    self.full = Some(index);
                }
                // What is little is not worth so much memory, should it wait somewhere.
                let is_much = length >= CHUNK_BYTES / 4;
                let bytes =
                    if is_much { std::mem::take(&mut self.buffer) } else { self.buffer.clone() };
                let output =
                    if source.is_errors { Output::Stderr(bytes) } else { Output::Stdout(bytes) };
                self.items.push_back(Item::Output(output));
                true
            }
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            // A terminal that nobody has open any more fails instead of ending.
            Ok(_) | Err(_) => {
                self.sources[index] = None;
                false
            }
        }
    }

    /// Reads what was written before the agent ended, and closes the streams.
    fn give_up(&mut self) {
        for index in 0..self.sources.len() {
            while self.sources[index].as_ref().is_some_and(|source| source.owed > 0)
                && self.read(index)
            {}
            self.sources[index] = None;
        }
        self.leak_until = None;
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

impl Source {
    /// Returns how long to rest, now that nearly everything was read: until the pipe will be half
    /// full, if much has come, so that the agent need not wait.
    fn rest(&mut self, now: Duration) -> Duration {
        let burst = std::mem::take(&mut self.burst);
        let took = now.saturating_sub(std::mem::replace(&mut self.rested, now));
        // A terminal holds too little to wait for more.
        if self.terminal {
            return Duration::ZERO;
        }
        let Some(mut pipe) = self.pipe else { return REST_SMALL };
        if burst < REST_BELOW {
            return REST;
        }
        if pipe < PIPE_BYTES_MOST {
            pipe = fcntl_setpipe_size(&self.file, PIPE_BYTES_MOST).unwrap_or(pipe);
            self.pipe = Some(pipe);
        }
        took.mul_f64(pipe as f64 / 2.0 / burst as f64).min(REST_LONGEST)
    }
}

#[derive(Debug, Default)]
struct Ready {
    control: bool,
    feed: bool,
    sources: [bool; 2],
}

#[cfg(test)]
mod tests {
    //! How long the pump rests.

    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn rests_depend_on_how_much_comes() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        let mut now = Duration::from_secs(100);
        let mut source = source(read);
        let mut rest = |source: &mut Source, burst, after| {
            source.burst = burst;
            now += Duration::from_millis(after);
            source.rest(now)
        };
        assert_eq!(rest(&mut source, 100, 1), REST);
        assert_eq!(source.pipe, Some(PIPE_BYTES), "little needs no more room");
        // 100 MB/s: so long that half of the pipe is full then.
        let short = rest(&mut source, 1_600_000, 16);
        let pipe = source.pipe.unwrap();
        assert!(pipe >= PIPE_BYTES, "{pipe}");
        let filled = short.as_secs_f64() * 100e6;
        assert!((filled - pipe as f64 / 2.0).abs() < 1_000.0, "{filled} of {pipe}");
        // After silence, or at a slow pace: no longer than nobody notices.
        assert_eq!(rest(&mut source, 64 * 1024, 5_000), REST_LONGEST);
        source.pipe = None;
        assert_eq!(rest(&mut source, 1_600_000, 16), REST_SMALL);
        source.terminal = true;
        assert_eq!(rest(&mut source, 100, 1), Duration::ZERO);
    }

    #[test]
    fn full_pieces_are_not_read_for_ever() {
        let (control, _keeper) = UnixStream::pair().unwrap();
        let (output, _write) = rustix::pipe::pipe().unwrap();
        let streams = Streams { output: output.into(), errors: None, input: None };
        let mut pump = Pump::new(control, Inbox::default(), streams);
        let mut more = |full: Option<usize>| {
            pump.full = full;
            pump.more().map(|ready| ready.sources)
        };
        for _ in 0..FULL_MAX {
            assert_eq!(more(Some(0)), Some([true, false]));
        }
        assert_eq!(more(Some(0)), None, "others are looked at");
        assert_eq!(more(Some(1)), Some([false, true]));
        assert_eq!(more(None), None);
    }

    fn source(read: OwnedFd) -> Source {
        let (is_errors, terminal, pipe) = (false, false, Some(PIPE_BYTES));
        let rested = Duration::from_secs(100);
        Source { file: read.into(), is_errors, terminal, pipe, burst: 0, rested, owed: 0 }
    }
}
