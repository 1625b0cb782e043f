//! Tells people and programs what happens in a run, and never holds it up.
//!
//! Each sink has a thread and a short queue of its own: a slow one delays nobody, and a dead one
//! loses notices, not the run. What an agent said is data everywhere: it is redacted, made harmless,
//! and handed over as an argument, a variable or a JSON string, never as part of a command.

mod processes;
pub(crate) mod signature;
pub(crate) mod webhook;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use aldis_signal::redact;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use self::processes::{Command, Desktop};
use self::webhook::Webhook;
use crate::error::CommandError;
use crate::settings::clock;
use crate::settings::config::{Notify, Sink};
use crate::settings::notice_kind::Kind;
use crate::view::display;

/// How many notices wait for a slow sink before more are dropped.
const QUEUE: usize = 64;
/// How long the last notices may take once the run is over.
const FINAL_WAIT: Duration = Duration::from_secs(15);
/// How many characters of a text are told.
const TEXT_MAX: usize = 4_000;

/// One notice.
#[derive(Clone, Debug)]
pub struct Message {
    /// Names it for good: told again after a crash, it has the same name.
    pub id: String,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// The run.
    pub(crate) run: String,
    /// The name of the project's directory.
    pub(crate) project: String,
    /// What it is about.
    pub(crate) kind: Kind,
    /// The words.
    pub(crate) text: String,
}

impl Message {
    /// A notice about a run of a project. `effect` is the key of the effect that wants it told.
    pub(crate) fn new(effect: &str, at: Timestamp, run: &RunId, project: &Path) -> Self {
        let project = project.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (id, run) = (effect.replace('/', "-"), run.to_string());
        Self { id, at, run, project, kind: Kind::RunEnded, text: String::new() }
    }

    /// Says what it is about.
    pub(crate) fn about(self, kind: Kind, text: String) -> Self {
        Self { kind, text, ..self }
    }
}

/// Something that can be told.
trait Deliver: Send + 'static {
    /// Tells it, within a bounded time.
    fn deliver(&self, message: &Message) -> Result<(), String>;
}

/// Those who are told.
pub(crate) struct Notices {
    settings: Notify,
    workers: Vec<Worker>,
    problems: Receiver<String>,
    /// Kept so that problems of our own can be added.
    report: mpsc::Sender<String>,
}

struct Worker {
    sink: Sink,
    queue: SyncSender<Message>,
    /// Closed when the worker has told all it had.
    done: Receiver<()>,
}

impl Notices {
    /// Gets everybody ready who is to be told. Commands run in `directory`.
    ///
    /// # Errors
    ///
    /// Fails if a sink cannot work as it is set.
    pub(crate) fn new(settings: &Notify, directory: &Path) -> Result<Self, CommandError> {
        let (report, problems) = mpsc::channel();
        let mut workers = Vec::new();
        if settings.desktop {
            workers.push(Worker::start(Sink::Desktop, Desktop, report.clone()));
        }
        if let Some(command) = &settings.command {
            let command = Command { command: command.clone(), directory: directory.to_owned() };
            workers.push(Worker::start(Sink::Command, command, report.clone()));
        }
        if let Some(webhook) = Webhook::new(settings)? {
            workers.push(Worker::start(Sink::Webhook, webhook, report.clone()));
        }
        Ok(Self { settings: settings.clone(), workers, problems, report })
    }

    /// Returns whether a notice is for the terminal, and rings its bell if so.
    pub(crate) fn ring(&self, kind: Kind) -> bool {
        let wanted = self.settings.terminal && self.includes(kind, Sink::Terminal);
        let mut terminal = std::io::stderr();
        if wanted && terminal.is_terminal() {
            // Whoever cannot hear it can still read.
            let _rung = terminal.write_all(b"\x07").and_then(|()| terminal.flush());
        }
        wanted
    }

    /// Tells everybody else who wants to know.
    pub(crate) fn tell(&self, message: &Message) {
        let text = display::lines(&redact::redact(&message.text));
        let text = match text.char_indices().nth(TEXT_MAX) {
            Some((cut, _)) => text.get(..cut).unwrap_or_default().to_owned() + "…",
            None => text,
        };
        let message = Message { text, ..message.clone() };
        for worker in &self.workers {
            if self.includes(message.kind, worker.sink)
                && worker.queue.try_send(message.clone()).is_err()
            {
                let what = format!("{}: too many notices wait; one was dropped", worker.sink);
                let _told = self.report.send(what);
            }
        }
    }

    /// Returns what went wrong since it was last asked.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.problems.try_iter().collect()
    }

    /// Gives the last notices a little time. Returns what went wrong.
    pub(crate) fn finish(self) -> Vec<String> {
        self.finish_within(FINAL_WAIT)
    }

    fn finish_within(self, most: Duration) -> Vec<String> {
        let Self { workers, problems, report, .. } = self;
        drop(report);
        let watch = clock::Stopwatch::start();
        let (queues, waits): (Vec<_>, Vec<_>) =
            workers.into_iter().map(|worker| (worker.queue, (worker.sink, worker.done))).unzip();
        // A worker ends when nobody can tell it anything any more.
        drop(queues);
        let mut late = Vec::new();
        for (sink, done) in waits {
            let left = most.saturating_sub(watch.elapsed());
            if let Err(mpsc::RecvTimeoutError::Timeout) = done.recv_timeout(left) {
                late.push(format!("{sink}: the last notices may not have arrived"));
            }
        }
        problems.try_iter().chain(late).collect()
    }

    fn includes(&self, kind: Kind, sink: Sink) -> bool {
        self.settings.events.of(kind).includes(sink)
    }
}

impl Worker {
    fn start(sink: Sink, deliver: impl Deliver, report: mpsc::Sender<String>) -> Self {
        let (queue, messages) = mpsc::sync_channel::<Message>(QUEUE);
        let (finished, done) = mpsc::channel();
        let _thread = thread::spawn(move || {
            let _finished = finished;
            for message in messages {
                if let Err(problem) = deliver.deliver(&message) {
                    // Nobody is left to hear it once the run is over.
                    let _told = report.send(format!("{sink}: {problem}"));
                }
            }
        });
        Self { sink, queue, done }
    }
}

#[cfg(test)]
mod tests;
