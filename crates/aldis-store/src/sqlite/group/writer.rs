//! The thread that writes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::sqlite::statements::Statements;
use crate::sqlite::{SqliteStore, error, files, retire, schema};

/// Where an answer goes. Dropping it without a call is an error to the caller.
pub(super) type OnReply<I, T> = Box<dyn FnOnce(I, Result<T, StoreError>) + Send>;

/// The largest group: it bounds how long the first of it waits for the last.
const GROUP_MAX: usize = 512;
/// From this size on a group is answered by another thread.
const MANY: usize = 8;
/// How often, and how long, the writer waits for a group to grow.
const NAPS: usize = 4;
const NAP: Duration = Duration::from_micros(100);
/// From so many pages on the log is copied back while there is work: seldom, because pages that change
/// often are then copied once for many changes.
const BUSY_LOG: u64 = 16_384;
/// Of so many pages the writer copies the last itself, so that it can begin the log anew.
const BUSY_REST: u64 = 2_048;
/// Beyond this the writer waits for nobody.
const BUSY_LOG_MAX: u64 = 4 * BUSY_LOG;
/// After so long without work the log is copied back as after any single write.
const IDLE_AFTER: Duration = Duration::from_millis(200);
/// What the writer remembers of the tables, in KiB: the channels of a busy server.
const SETTINGS: &str = "PRAGMA cache_size = -65536;";
const DOING: &str = "write a group of steps";

/// One write that waits.
pub(super) trait WriteJob: Send {
    /// Writes it as part of a transaction, and keeps the result until that is durable.
    fn write(&mut self, statements: &mut Statements<'_>) -> rusqlite::Result<()>;

    /// Answers with the result of the write.
    fn answer(self: Box<Self>);

    /// Answers with an error.
    fn fail(self: Box<Self>, error: StoreError);
}

/// A write with what it needs and what came of it. Whoever handed the input over gets it back.
pub(super) struct Write<I, T> {
    pub(super) input: I,
    pub(super) work: WriteFn<I, T>,
    pub(super) written: Option<T>,
    pub(super) reply: OnReply<I, T>,
}

pub(super) type WriteFn<I, T> = fn(&mut Statements<'_>, &I) -> rusqlite::Result<T>;

impl<I: Send, T: Send> WriteJob for Write<I, T> {
    fn write(&mut self, statements: &mut Statements<'_>) -> rusqlite::Result<()> {
        self.written = Some((self.work)(statements, &self.input)?);
        Ok(())
    }

    fn answer(self: Box<Self>) {
        // Always there: a group is answered after all of it was written.
        if let Some(written) = self.written {
            (self.reply)(self.input, Ok(written));
        }
    }

    fn fail(self: Box<Self>, error: StoreError) {
        (self.reply)(self.input, Err(error));
    }
}

/// Writes a job in a transaction of its own, and answers it.
fn alone(store: &SqliteStore, mut job: Box<dyn WriteJob>) {
    match store.write(DOING, |statements| job.write(statements)) {
        Ok(()) => job.answer(),
        Err(error) => job.fail(error),
    }
}

/// A group that is durable.
pub(super) type JobGroup = Vec<Box<dyn WriteJob>>;

/// Those who do for the writer what others need not wait for.
pub(super) struct Helpers {
    /// Answers large groups: waking a hundred threads takes as long as writing dozens of steps.
    pub(super) answers: Sender<JobGroup>,
    /// Copies the log back, beside the writer.
    pub(super) copier: SyncSender<()>,
}

/// Writes until nobody can ask any more.
pub(super) fn work(store: &SqliteStore, waiting: &Receiver<Box<dyn WriteJob>>, helpers: &Helpers) {
    while let Ok(first) = waiting.recv() {
        let left = match store.connect() {
            Ok(connection) => {
                let left = Writer::new(store, &connection, helpers).serve(first, waiting);
                retire(connection);
                left
            }
            Err(_) => vec![first],
        };
        // Retried one by one, so that only the job at fault gets the error.
        left.into_iter().for_each(|job| alone(store, job));
    }
}

/// The writer and its own connection: nobody else writes, so that what it remembers of the tables
/// stays true from one group to the next.
struct Writer<'s, 'c> {
    store: &'s SqliteStore,
    helpers: &'s Helpers,
    connection: &'c Connection,
    statements: Statements<'c>,
    /// How large the next group should be: half as large as the last.
    wanted: usize,
    /// From how many pages on the log is to be copied back.
    copy_from: u64,
}

impl<'s, 'c> Writer<'s, 'c> {
    fn new(store: &'s SqliteStore, connection: &'c Connection, helpers: &'s Helpers) -> Self {
        // Without it pages are read more often; that is all.
        connection.execute_batch(SETTINGS).ok();
        let statements = Statements::new(connection);
        Self { store, helpers, connection, statements, wanted: 0, copy_from: BUSY_LOG }
    }

    /// Writes what comes, `first` first, until nobody can ask any more or something fails. Returns
    /// those who have no answer yet and of whom nothing is written.
    fn serve(
        mut self,
        first: Box<dyn WriteJob>,
        waiting: &Receiver<Box<dyn WriteJob>>,
    ) -> JobGroup {
        let (mut next, mut tidy) = (Some(first), true);
        loop {
            if let Some(first) = next.take() {
                let group = self.gather(first, waiting);
                match self.write(group) {
                    Ok(()) => tidy = false,
                    Err(left) => return left,
                }
            }
            match waiting.recv_timeout(IDLE_AFTER) {
                Ok(job) => next = Some(job),
                Err(RecvTimeoutError::Timeout) if tidy => {}
                Err(RecvTimeoutError::Timeout) => match self.tidy_up() {
                    Ok(done) => tidy = done,
                    Err(error) => return self.give_up(&error, Vec::new()),
                },
                Err(RecvTimeoutError::Disconnected) => return Vec::new(),
            }
        }
    }

    /// Takes what waits. Those who were answered a moment ago are back in a moment: after a large group
    /// they get the time, because a small one costs the disk as much.
    fn gather(
        &mut self,
        first: Box<dyn WriteJob>,
        waiting: &Receiver<Box<dyn WriteJob>>,
    ) -> JobGroup {
        let mut group = vec![first];
        for nap in 0..=NAPS {
            group.extend(waiting.try_iter().take(GROUP_MAX - group.len()));
            if group.len() >= self.wanted || nap == NAPS {
                break;
            }
            thread::sleep(NAP);
        }
        self.wanted = group.len() / 2;
        group
    }

    /// Writes a group durably and answers everybody in it, unless something fails.
    fn write(&mut self, mut group: JobGroup) -> Result<(), JobGroup> {
        let store = self.store;
        let Ok(_inside) = store.gate.enter() else { return Err(group) };
        match self.attempt(&mut group) {
            Ok(Ok(())) => {
                store.watch.wake();
                self.answer(group);
            }
            // The disk failed during the commit: whether it is there is unknown to all of them.
            Ok(Err(error)) => {
                store.retire_idle();
                for job in group {
                    job.fail(error::sort(&error, &store.files.db, DOING));
                }
                return Err(Vec::new());
            }
            // A statement failed: nothing is written.
            Err(error) => return Err(self.give_up(&error, group)),
        }
        // What was written is durable with or without this, and it is tried again.
        self.copy_log().map_err(|error| self.give_up(&error, Vec::new()))
    }

    /// Has the log copied back if it is long. The helper copies most of it while the writer goes on, again
    /// and again until little is left.
    fn copy_log(&mut self) -> rusqlite::Result<()> {
        let (length, left) = schema::log_pages(self.connection)?;
        if length <= BUSY_LOG {
            self.copy_from = BUSY_LOG;
        }
        if length <= self.copy_from {
            return Ok(());
        }
        if left > BUSY_REST && length <= BUSY_LOG_MAX {
            // One that is at it already begins again afterwards.
            self.helpers.copier.try_send(()).ok();
            return Ok(());
        }
        // While somebody reads in the log it cannot begin anew: no reason to try after every group.
        self.copy_from = length + BUSY_REST;
        schema::copy_log(self.connection)
    }

    /// Writes all in one transaction. The inner result is that of the commit.
    fn attempt(&mut self, group: &mut JobGroup) -> rusqlite::Result<rusqlite::Result<()>> {
        // Unchecked, because the statements borrow the connection too: nothing else begins one.
        let transaction =
            Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate)?;
        for job in group {
            job.write(&mut self.statements)?;
        }
        Ok(transaction.commit())
    }

    fn answer(&self, group: JobGroup) {
        if group.len() < MANY {
            return answer(group);
        }
        if let Err(SendError(group)) = self.helpers.answers.send(group) {
            answer(group);
        }
    }

    /// Empties the log; returns whether there is no need to try again.
    fn tidy_up(&self) -> rusqlite::Result<bool> {
        let store = self.store;
        if store.files.log_length() > files::LOG_MAX
            && let Ok(_inside) = store.gate.enter()
        {
            // With its own connection, which would forget everything if another one did this.
            schema::shorten_log(self.connection)?;
        }
        Ok(store.files.log_length() <= files::LOG_MAX)
    }

    /// Something failed: other connections may be as bad as this one. Returns those who are left.
    fn give_up(&self, error: &rusqlite::Error, left: JobGroup) -> JobGroup {
        self.store.still_trusts(&error::sort(error, &self.store.files.db, DOING));
        left
    }
}

/// Copies the log back as often as it is asked to.
pub(super) fn copy(store: &SqliteStore, asked: &Receiver<()>) {
    for () in asked {
        // The writer asks again, and in the end does it itself.
        store.with("copy the log back", |connection| schema::copy_log(connection)).ok();
    }
}

/// Answers everybody in a group.
pub(super) fn answer(group: JobGroup) {
    group.into_iter().for_each(WriteJob::answer);
}
