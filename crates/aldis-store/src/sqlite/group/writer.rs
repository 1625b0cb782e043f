//! The thread that writes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use aldis_core::time::Timestamp;
use rusqlite::{Connection, Transaction};

use crate::error::{CommitError, StoreError};
use crate::sqlite::{SqliteStore, error, files, write};
use crate::step::{Committed, Step};

/// Where an answer goes. Nobody waits for more than one.
pub(super) type Reply<T> = SyncSender<T>;

/// The largest group: it bounds how long the first of it waits for the last.
const GROUP_MAX: usize = 512;
/// How long the log may be while there is work: copying it back costs as much as hundreds of steps.
const BUSY_LOG_MAX: u64 = 16 << 20;
/// After so long without work the log is copied back as after any single write.
const IDLE_AFTER: Duration = Duration::from_millis(200);
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
    let mut tidy = true;
    loop {
        let first = match waiting.recv_timeout(IDLE_AFTER) {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) if tidy => continue,
            Err(RecvTimeoutError::Timeout) => {
                tidy = shorten(store, files::LOG_MAX);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        tidy = false;
        let mut group = vec![first];
        group.extend(waiting.try_iter().take(GROUP_MAX - 1));
        write_group(store, group);
    }
}

/// Writes a group durably and answers everybody in it.
fn write_group(store: &SqliteStore, group: Vec<Job>) {
    let Ok(_inside) = store.gate.enter() else {
        // The same will befall each alone, and then each hears of it.
        return group.into_iter().for_each(|job| job.alone(store));
    };
    match store.with(DOING, |connection| attempt(connection, &group)) {
        Ok((written, Ok(()))) => {
            for (job, written) in group.into_iter().zip(written) {
                job.answer(written);
            }
        }
        // The disk failed during the commit: whether it is there is unknown to all of them.
        Ok((_, Err(error))) => {
            store.retire_idle();
            for job in group {
                job.fail(error::sort(&error, &store.files.db, DOING));
            }
        }
        // A statement failed: nothing is written, and whose fault it was shows alone.
        Err(_) => group.into_iter().for_each(|job| job.alone(store)),
    }
    store.keep_log_short(BUSY_LOG_MAX);
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

/// Copies the log back; returns whether there is no need to try again.
fn shorten(store: &SqliteStore, most: u64) -> bool {
    if let Ok(_inside) = store.gate.enter() {
        store.keep_log_short(most);
    }
    store.files.log_length() <= most
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
