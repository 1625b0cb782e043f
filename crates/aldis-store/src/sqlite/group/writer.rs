//! The thread that writes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use aldis_core::time::Timestamp;
use rusqlite::{Connection, Transaction};

use crate::error::{CommitError, StoreError};
use crate::sqlite::{SqliteStore, error, files, retire, schema, write};
use crate::step::{Committed, Step};

/// Where an answer goes. Nobody waits for more than one.
pub(super) type Reply<T> = SyncSender<T>;

/// The largest group: it bounds how long the first of it waits for the last.
const GROUP_MAX: usize = 512;
/// How many pages of the log may wait to be copied back while there is work: copying costs as much
/// as hundreds of steps.
const BUSY_LOG_MAX: u64 = 4_096;
/// After so long without work the log is copied back as after any single write.
const IDLE_AFTER: Duration = Duration::from_millis(200);
/// What the writer remembers of the tables, in KiB: the channels of a busy server.
const SETTINGS: &str = "PRAGMA cache_size = -65536;";
const DOING: &str = "write a group of steps";

/// One write that waits.
#[derive(Debug)]
pub(super) enum Job {
    /// An effect was performed.
    Done { key: String, reply: Reply<Result<bool, StoreError>> },
    /// An effect failed.
    Failed {
        key: String,
        next: Option<Timestamp>,
        error: String,
        reply: Reply<Result<bool, StoreError>>,
    },
    /// A machine stepped.
    Step { step: Box<Step>, reply: Reply<Result<Committed, CommitError>> },
}

/// What a write came to, before it is durable.
enum Written {
    Effect(bool),
    Step(Result<Committed, CommitError>),
}

/// Writes until nobody can ask any more.
pub(super) fn work(store: &SqliteStore, waiting: &Receiver<Job>) {
    let mut writer = Writer { store, own: None };
    let mut tidy = true;
    loop {
        let first = match waiting.recv_timeout(IDLE_AFTER) {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) if tidy => continue,
            Err(RecvTimeoutError::Timeout) => {
                tidy = writer.tidy_up();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        tidy = false;
        let mut group = vec![first];
        group.extend(waiting.try_iter().take(GROUP_MAX - 1));
        writer.write(group);
    }
}

/// The writer and its own connection: nobody else writes, so that what it remembers of the tables
/// stays true from one group to the next.
struct Writer<'s> {
    store: &'s SqliteStore,
    own: Option<Connection>,
}

impl Writer<'_> {
    /// Writes a group durably and answers everybody in it.
    fn write(&mut self, group: Vec<Job>) {
        let store = self.store;
        let Ok(_inside) = store.gate.enter() else {
            // The same will befall each alone, and then each hears of it.
            return group.into_iter().for_each(|job| job.alone(store));
        };
        match self.with(DOING, |connection| attempt(connection, &group)) {
            Ok((written, Ok(()))) => {
                for (job, written) in group.into_iter().zip(written) {
                    job.answer(written);
                }
            }
            // The disk failed during the commit: whether it is there is unknown to all of them.
            Ok((_, Err(error))) => {
                self.own.take().into_iter().for_each(retire);
                store.retire_idle();
                for job in group {
                    job.fail(error::sort(&error, &store.files.db, DOING));
                }
            }
            // A statement failed: nothing is written, and whose fault it was shows alone.
            Err(_) => group.into_iter().for_each(|job| job.alone(store)),
        }
        // What was written is durable with or without this, and it is tried again.
        self.with("copy the log back", |connection| schema::copy_log(connection, BUSY_LOG_MAX))
            .ok();
    }

    /// Empties the log; returns whether there is no need to try again.
    fn tidy_up(&mut self) -> bool {
        let store = self.store;
        if store.files.log_length() > files::LOG_MAX
            && let Ok(_inside) = store.gate.enter()
        {
            // With its own connection, which would forget everything if another one did this.
            self.with("shorten the log", |connection| schema::shorten_log(connection)).ok();
        }
        store.files.log_length() <= files::LOG_MAX
    }

    fn with<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let Self { store, own } = self;
        let fresh = own.is_none();
        store.with_own(own, doing, |connection| {
            if fresh {
                connection.execute_batch(SETTINGS)?;
            }
            work(connection)
        })
    }
}

/// Writes all in one transaction. The inner result is that of the commit.
fn attempt(
    connection: &mut Connection,
    group: &[Job],
) -> rusqlite::Result<(Vec<Written>, rusqlite::Result<()>)> {
    let transaction = write::begin(connection)?;
    let written: rusqlite::Result<Vec<Written>> =
        group.iter().map(|job| job.write(&transaction)).collect();
    Ok((written?, transaction.commit()))
}

impl Job {
    fn write(&self, transaction: &Transaction<'_>) -> rusqlite::Result<Written> {
        match self {
            Self::Done { key, .. } => {
                write::effect_done(transaction, key, None).map(Written::Effect)
            }
            Self::Failed { key, next, error, .. } => {
                write::effect_failed(transaction, key, *next, error).map(Written::Effect)
            }
            Self::Step { step, .. } => write::step_within(transaction, step).map(Written::Step),
        }
    }

    /// Takes the way of a single write.
    fn alone(self, store: &SqliteStore) {
        use crate::store::Store as _;
        match self {
            Self::Done { key, reply } => tell(&reply, store.effect_done(&key)),
            Self::Failed { key, next, error, reply } => {
                tell(&reply, store.effect_failed(&key, next, &error));
            }
            Self::Step { step, reply } => tell(&reply, store.commit(&step)),
        }
    }

    fn answer(self, written: Written) {
        match (self, written) {
            (Self::Done { reply, .. } | Self::Failed { reply, .. }, Written::Effect(changed)) => {
                tell(&reply, Ok(changed));
            }
            (Self::Step { reply, .. }, Written::Step(result)) => tell(&reply, result),
            // Each job is zipped with what it wrote itself. Dropping the reply is an error to whoever
            // waits.
            (Self::Done { .. } | Self::Failed { .. } | Self::Step { .. }, _) => {}
        }
    }

    fn fail(self, error: StoreError) {
        match self {
            Self::Done { reply, .. } | Self::Failed { reply, .. } => tell(&reply, Err(error)),
            Self::Step { reply, .. } => tell(&reply, Err(error.into())),
        }
    }
}

/// Answers, unless nobody waits any more.
fn tell<T>(reply: &Reply<T>, answer: T) {
    reply.send(answer).ok();
}
