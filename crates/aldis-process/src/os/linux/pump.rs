//! Moves an agent's input and output with `poll`, on the thread of whoever asks what comes next.
//!
//! Memory is bounded by back-pressure: while nobody takes output the pipe fills up, and the agent
//! blocks. End of file is not the exit of the agent, nor the other way round: after the exit some
//! descendant may still hold the pipe open. Everything written before the exit is read, and what
//! comes later for a short while; then the output counts as closed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::fcntl_setpipe_size;

use super::clock;
use super::message::{Inbox, ReaperEvent};
use crate::os::LEAK_WINDOW;
use crate::os::unix::is_transient;
use crate::{Exit, Output, Survivor};

/// The size of the read buffer. Larger ones were measured and cost as much: what fewer system calls
/// save is lost in cache misses.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many full buffers are read from one stream before the other sources are polled.
const FULL_MAX: usize = 16;
/// After a burst smaller than this the pump pauses reading for a moment (batching), so that an agent
/// that writes line by line does not wake it for each line. The exit of the agent ends the pause.
const PAUSE_BELOW: usize = 32 * 1024;
/// The length of that pause with an enlarged pipe, and with one of the default size.
const PAUSE: Duration = Duration::from_millis(16);
const PAUSE_SMALL: Duration = Duration::from_millis(4);
/// The longest pause while an agent writes more than can be read: few wake-ups for much cost half of
/// many wake-ups for little.
const PAUSE_LONGEST: Duration = Duration::from_millis(60);
/// The wanted capacity of a pipe, and of the pipe of an agent that writes much. The system refuses
/// when the user's limit for pipes is reached.
const PIPE_BYTES: usize = 256 * 1024;
const PIPE_BYTES_MOST: usize = 1024 * 1024;
/// What a terminal may buffer without showing it in `FIONREAD`.
const TERMINAL_BYTES: u64 = 128 * 1024;

/// The result of waiting.
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
    /// The reaper has ended the tree, apart from these survivors.
    Ended(Vec<Survivor>),
}

/// Our ends of the agent's streams, all non-blocking.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) output: File,
    /// Absent on a terminal.
    pub(super) errors: Option<File>,
    /// The input pipe, and what to write to it.
    pub(super) input: Option<(File, Vec<u8>)>,
}

/// A stream of output.
#[derive(Debug)]
struct PumpSource {
    file: File,
    is_errors: bool,
    terminal: bool,
    /// Its capacity, if it could be enlarged.
    pipe: Option<usize>,
    /// How much was read since the last pause began, and when that was.
    burst: usize,
    paused_at: Duration,
    /// How many bytes were in the pipe when the agent exited and are not read yet.
    owed: u64,
}

/// The rest of the input.
#[derive(Debug)]
struct PendingInput {
    file: File,
    bytes: Vec<u8>,
    written: usize,
}

/// The streams of one agent and the events of its reaper.
#[derive(Debug)]
pub(super) struct Pump {
    /// The reaper, until it has closed the socket.
    control: Option<UnixStream>,
    inbox: Inbox,
    sources: [Option<PumpSource>; 2],
    feed: Option<PendingInput>,
    /// What was not taken yet.
    items: VecDeque<Item>,
    exited: bool,
    closed: bool,
    /// When the output counts as closed although a descendant holds the pipe.
    leak_until: Option<Duration>,
    /// When the pause ends.
    pause_until: Option<Duration>,
    /// The stream that filled the buffer last, and how many buffers were read without polling.
    full: Option<usize>,
    full_read: usize,
    /// The buffer for the next read.
    buffer: Vec<u8>,
}

impl Pump {
    pub(super) fn new(control: UnixStream, inbox: Inbox, streams: Streams) -> Self {
        let terminal = streams.errors.is_none();
        let source = |file, is_errors| {
            let pipe = fcntl_setpipe_size(&file, PIPE_BYTES).ok();
            let paused_at = clock::since_boot();
            PumpSource { file, is_errors, terminal, pipe, burst: 0, paused_at, owed: 0 }
        };
        let errors = streams.errors.map(|errors| source(errors, true));
        let mut pump = Self {
            control: Some(control),
            inbox,
            sources: [Some(source(streams.output, false)), errors],
            feed: streams.input.map(|(file, bytes)| PendingInput { file, bytes, written: 0 }),
            items: VecDeque::new(),
            exited: false,
            closed: false,
            leak_until: None,
            pause_until: None,
            full: None,
            full_read: 0,
            buffer: Vec::new(),
        };
        // More than the first event may have arrived with it.
        pump.handle_events();
        pump
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
            self.read_events();
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

    /// Returns the stream that filled the buffer, which most likely has more: polling costs as much
    /// as reading. Bounded, so that the other sources are not starved.
    fn more(&mut self) -> Option<Ready> {
        let index = self.full.take().filter(|_| self.full_read < FULL_MAX);
        self.full_read = if index.is_some() { self.full_read + 1 } else { 0 };
        let index = index?;
        Some(Ready { sources: [index == 0, index == 1], ..Ready::default() })
    }

    /// Sleeps until something can be done, but not for longer than `until`.
    fn wait(&mut self, until: Duration) -> Ready {
        let now = clock::since_boot();
        self.pause_until = self.pause_until.filter(|until| *until > now);
        let paused = self.pause_until.is_some();
        let until = [self.leak_until, self.pause_until].into_iter().flatten().fold(until, Ord::min);
        let timeout = Timespec::try_from(until.saturating_sub(now)).ok();
        let mut polled = Vec::with_capacity(4);
        polled.extend(self.control.as_ref().map(|socket| PollFd::new(socket, PollFlags::IN)));
        polled.extend(self.feed.as_ref().map(|feed| PollFd::new(&feed.file, PollFlags::OUT)));
        let sources = self.sources.iter().flatten().filter(|_| !paused);
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
                .map(|source| take(source.is_some() && !paused)),
        }
    }

    /// Reads the events of the reaper.
    fn read_events(&mut self) {
        let Some(control) = &self.control else { return };
        let open = self.inbox.fill(control).unwrap_or(false);
        self.handle_events();
        if !open {
            self.control = None;
            // Only the parent of a process learns its exit status.
            self.note_exit(Exit { code: None, signal: None });
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.inbox.next() {
            match event {
                ReaperEvent::Started { .. } | ReaperEvent::Refused { .. } => {}
                ReaperEvent::Stopped => self.items.push_back(Item::Output(Output::Stopped)),
                ReaperEvent::Exited(exit) => self.note_exit(exit),
                ReaperEvent::Ended { survivors } => self.items.push_back(Item::Ended(survivors)),
            }
        }
    }

    fn note_exit(&mut self, exit: Exit) {
        if self.exited {
            return;
        }
        self.exited = true;
        self.feed = None;
        self.pause_until = None;
        self.leak_until = Some(clock::since_boot() + LEAK_WINDOW);
        for source in self.sources.iter_mut().flatten() {
            let queued = ioctl_fionread(&source.file).unwrap_or_default();
            source.owed = if source.terminal { queued.max(TERMINAL_BYTES) } else { queued };
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
                // A short read has emptied the pipe.
                if length < CHUNK_BYTES && !self.exited {
                    let now = clock::since_boot();
                    self.pause_until = Some(now + source.pause(now));
                }
                if length == CHUNK_BYTES {
                    self.full = Some(index);
                }
                // A small piece is copied, so that a queue of them does not hold large buffers.
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
            // A terminal without any opener fails (EIO) instead of ending.
            Ok(_) | Err(_) => {
                self.sources[index] = None;
                false
            }
        }
    }

    /// Reads what was written before the agent exited, and closes the streams.
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
            Err(error) if is_transient(&error) => return,
            // The agent has closed its input.
            Ok(_) | Err(_) => feed.written = feed.bytes.len(),
        }
        if feed.written == feed.bytes.len() {
            self.feed = None;
        }
    }
}

impl PumpSource {
    /// Returns how long to pause now that the pipe is nearly empty: after a large burst until the pipe
    /// will be half full, so that the agent does not block.
    fn pause(&mut self, now: Duration) -> Duration {
        let burst = std::mem::take(&mut self.burst);
        let took = now.saturating_sub(std::mem::replace(&mut self.paused_at, now));
        // A terminal buffers too little for a pause.
        if self.terminal {
            return Duration::ZERO;
        }
        let Some(mut pipe) = self.pipe else { return PAUSE_SMALL };
        if burst < PAUSE_BELOW {
            return PAUSE;
        }
        if pipe < PIPE_BYTES_MOST {
            pipe = fcntl_setpipe_size(&self.file, PIPE_BYTES_MOST).unwrap_or(pipe);
            self.pipe = Some(pipe);
        }
        took.mul_f64(pipe as f64 / 2.0 / burst as f64).min(PAUSE_LONGEST)
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
    //! How long the pump pauses, and that no source is starved.

    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn pauses_depend_on_how_much_comes() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        let mut now = Duration::from_secs(100);
        let mut source = source(read);
        let mut pause = |source: &mut PumpSource, burst, after| {
            source.burst = burst;
            now += Duration::from_millis(after);
            source.pause(now)
        };
        assert_eq!(pause(&mut source, 100, 1), PAUSE);
        assert_eq!(source.pipe, Some(PIPE_BYTES), "little needs no more room");
        // 100 MB/s: so long that half of the pipe is full then.
        let short = pause(&mut source, 1_600_000, 16);
        let pipe = source.pipe.unwrap();
        assert!(pipe >= PIPE_BYTES, "{pipe}");
        let filled = short.as_secs_f64() * 100e6;
        assert!((filled - pipe as f64 / 2.0).abs() < 1_000.0, "{filled} of {pipe}");
        // After silence, or at a slow pace: no longer than nobody notices.
        assert_eq!(pause(&mut source, 64 * 1024, 5_000), PAUSE_LONGEST);
        source.pipe = None;
        assert_eq!(pause(&mut source, 1_600_000, 16), PAUSE_SMALL);
        source.terminal = true;
        assert_eq!(pause(&mut source, 100, 1), Duration::ZERO);
    }

    #[test]
    fn full_pieces_are_not_read_for_ever() {
        let (control, _reaper) = UnixStream::pair().unwrap();
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

    fn source(read: OwnedFd) -> PumpSource {
        let (is_errors, terminal, pipe) = (false, false, Some(PIPE_BYTES));
        let paused_at = Duration::from_secs(100);
        PumpSource { file: read.into(), is_errors, terminal, pipe, burst: 0, paused_at, owed: 0 }
    }
}
