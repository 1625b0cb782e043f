//! The embedded database: one file per user, shared by every process of that user.

mod error;
mod files;
pub(crate) mod group;
mod labels;
mod leases;
mod outbox;
#[cfg(test)]
mod plans;
mod prune;
mod read;
mod schema;
mod statements;
mod tickets;
mod transfer;
mod watch;
mod workers;
mod write;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use self::files::Files;
use self::statements::Statements;
use self::watch::Watch;
use crate::claim::{Claim, ClaimRequest, PendingCount};
use crate::cursor::{ChangeStamp, Continuity, Cursor};
use crate::error::{CommitError, LeaseError, StoreError};
use crate::gate::{Gate, Turns};
use crate::record::{
    Decision, DecisionFilter, Effect, EffectFilter, Event, Lease, Loaded, Prune, Run, RunFilter,
    RunSummary, StoreSize, Timer,
};
use crate::step::{Committed, Revision, RunId, Step};
use crate::store::{Store, Turn};
use crate::worker::WorkerRecord;

/// Older ones can damage a write-ahead log that several processes share.
const OLDEST_LIBRARY: i32 = 3_051_003;
/// Connections kept for the next caller. Each concurrent reader needs one, a writer another.
const IDLE_MAX: usize = 32;

/// Runs in `aldis.db` in a directory of the user's own.
///
/// Any number of threads and processes may have it open. Writers queue at a file lock; readers wait
/// for nobody. Leaving the process without dropping this is safe at any moment: a write-ahead log
/// that was left behind is read by whoever comes next.
#[derive(Debug)]
pub struct SqliteStore {
    files: Files,
    gate: Gate,
    turns: Turns,
    watch: Watch,
    idle: Mutex<Vec<Connection>>,
}

impl SqliteStore {
    /// Returns whether there is a database in `dir`, without creating one.
    pub fn exists(dir: &Path) -> bool {
        Files::of(dir).is_ok_and(|files| files.db.exists())
    }

    /// Opens the database in `dir`, creating and migrating what is missing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsafe`] when the directory or a file in it is a symbolic link or somebody
    /// else's; [`StoreError::NewerSchema`]; [`StoreError::OldLibrary`]; and what the system says.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        if rusqlite::version_number() < OLDEST_LIBRARY {
            return Err(StoreError::OldLibrary { version: rusqlite::version() });
        }
        let files = Files::of(dir)?;
        let gate = Gate::file(files.lock.clone());
        let turns = Turns::files(files.turns.clone());
        let (watch, idle) = (Watch::default(), Mutex::default());
        let store = Self { files, gate, turns, watch, idle };
        let connection = store.connect()?;
        store.idle().push(connection);
        Ok(store)
    }

    /// Opens the database in `dir`, as [`open`](Self::open) does, and returns the version of its schema
    /// before and after.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn migrate(dir: &Path) -> Result<(u32, u32), StoreError> {
        let files = Files::of(dir)?;
        let before = match files.prepare()? {
            true => 0,
            false => {
                let sort = |error| error::sort(&error, &files.db, "open the database");
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
                let connection = Connection::open_with_flags(&files.db, flags).map_err(sort)?;
                schema::version(&connection).map_err(sort)?
            }
        };
        Self::open(dir)?;
        Ok((before, schema::KNOWN))
    }

    /// Leaves without tidying up, for a process that has answered and wants to be gone.
    ///
    /// The last one to close a database usually copies the write-ahead log back into it, which
    /// costs about as much as everything else that a hook does. Committed steps are durable either
    /// way, and the log is copied back when it has grown.
    pub fn abandon(self) {
        self.retire_idle();
    }

    /// Reads every page and reports the first thing that is wrong. Slow; for doctors, not for hooks.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] with the first finding.
    pub fn check(&self) -> Result<(), StoreError> {
        let finding = self.with("check the database", |connection| {
            connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))
        })?;
        if finding == "ok" { Ok(()) } else { Err(self.corrupt(finding)) }
    }

    /// Lends a connection to `work`, and takes it back unless it may have seen a failing disk: after a
    /// failed write or sync, what the connection remembers need not be what is stored.
    fn with<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let mut connection = idle.map_or_else(|| self.connect(), Ok)?;
        let result =
            work(&mut connection).map_err(|error| error::sort(&error, &self.files.db, doing));
        if let Err(error) = &result {
            tracing::debug!(doing, %error, "the store failed");
        }
        match &result {
            Err(error) if !self.still_trusts(error) => retire(connection),
            _ => self.take_back(connection),
        }
        result
    }

    fn take_back(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    /// Returns whether a connection can be used again after this, and closes those that nobody uses
    /// if not.
    fn still_trusts(&self, error: &StoreError) -> bool {
        let harmless = matches!(error, StoreError::Busy { .. } | StoreError::Other { .. });
        if !harmless {
            self.retire_idle();
        }
        harmless
    }

    /// Does `work` in a transaction of its own, behind the gate. When it refuses something, it has
    /// changed nothing.
    fn write<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Statements<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let _inside = self.gate.enter()?;
        let result = self.with(doing, |connection| {
            let transaction = write::begin(connection)?;
            let result = work(&mut Statements::new(&transaction))?;
            transaction.commit()?;
            Ok(result)
        })?;
        self.watch.wake();
        self.keep_log_short(files::LOG_MAX);
        Ok(result)
    }

    /// Copies the log back if it is longer than `most` bytes. The caller is behind the gate.
    fn keep_log_short(&self, most: u64) {
        if self.files.log_length() > most {
            // What was written is durable with or without this, and the next writer tries again.
            self.with("shorten the log", |connection| schema::shorten_log(connection)).ok();
        }
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let sort = |error| error::sort(&error, &self.files.db, "open the database");
        let created = self.files.prepare()?;
        // Whoever finds an empty file waits for the one that is filling it: SQLite does not wait
        // while the journal mode of a file is changed.
        let _inside = if created { Some(self.gate.enter()?) } else { None };
        // No mutex inside SQLite: a connection is lent to one thread at a time.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.files.db, flags).map_err(sort)?;
        // Before anything else: a newer schema need not even be readable.
        let found = schema::version(&connection).map_err(sort)?;
        if found > schema::KNOWN {
            let location = self.location();
            return Err(StoreError::NewerSchema { location, found, known: schema::KNOWN });
        }
        if found < schema::KNOWN {
            let _inside = self.gate.enter()?;
            schema::migrate(&mut connection, schema::MIGRATIONS)
                .map_err(sort)?
                .map_err(|finding| self.corrupt(finding.to_owned()))?;
        }
        connection.execute_batch(schema::SETTINGS).map_err(sort)?;
        Ok(connection)
    }

    fn retire_idle(&self) {
        let idle = std::mem::take(&mut *self.idle());
        idle.into_iter().for_each(retire);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn location(&self) -> String {
        self.files.db.display().to_string()
    }

    /// The thread that writes is gone.
    fn gone(&self) -> StoreError {
        let detail = "the writer has stopped".to_owned();
        StoreError::Other { location: self.location(), doing: "write", detail }
    }

    fn corrupt(&self, detail: String) -> StoreError {
        StoreError::Corrupt { location: self.location(), detail }
    }
}

/// Closes a connection without touching the disk again.
fn retire(connection: Connection) {
    // If this cannot be set, closing only does more than it should.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).ok();
    drop(connection);
}

impl Store for SqliteStore {
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.with("read a run", |connection| read::run(connection, id))
    }

    fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        self.with("read a run", |connection| read::load(connection, id))
    }

    fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError> {
        self.with("read runs", |connection| read::loaded(connection, filter))
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.with("list runs", |connection| read::list(connection, filter))
    }

    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        self.with("count runs", |connection| read::count_runs(connection, filter))
    }

    fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.with("find runs", |connection| read::find(connection, prefix, limit))
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        loop {
            let written = self.write("write a step", |statements| write::step(statements, step))?;
            if let Some(committed) = written? {
                return Ok(committed);
            }
            self.write("delete an old run", |statements| {
                prune::finish(statements, &step.run, &mut { prune::ROWS })
            })?;
        }
    }

    fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.with("read events", |connection| read::events(connection, run, after, limit))
    }

    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError> {
        self.with("find an event", |connection| read::event_by_source(connection, run, source))
    }

    fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        self.with("read decisions", |connection| read::decisions(connection, filter))
    }

    fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        self.decisions_within(run, after, limit, usize::MAX)
    }

    fn decisions_within(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        self.with("read decisions", |connection| {
            read::decisions_within(connection, run, after, limit, bytes)
        })
    }

    fn decisions_of(&self, run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError> {
        self.with("read decisions", |connection| read::decisions_of(connection, run, revision))
    }

    fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError> {
        self.with("read decisions", |connection| read::continuity(connection, after))
    }

    fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        self.with("read the outbox", |connection| read::pending_effects(connection, filter))
    }

    fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        self.with("read the outbox", |connection| read::effect(connection, key))
    }

    fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError> {
        self.with("count effects", |connection| read::pending_count(connection))
    }

    fn effects_done(
        &self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError> {
        self.write("close effects", |statements| {
            outbox::effects_done(statements, run, fence, keys)
        })?
    }

    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.write("claim effects", |statements| outbox::claim(statements, request))
    }

    fn keep(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        self.write("keep claims", |statements| outbox::keep(statements, claims, now, ttl))
    }

    fn done(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.write("close an effect", |statements| outbox::done(statements, claim))
    }

    fn failed(
        &self,
        claim: &Claim,
        next: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.write("postpone an effect", |statements| {
            outbox::failed(statements, claim, next, error)
        })
    }

    fn trim_lane(
        &self,
        lane: &str,
        keep: usize,
        now: Timestamp,
        error: &str,
    ) -> Result<usize, StoreError> {
        self.write("trim a lane", |statements| outbox::trim(statements, lane, keep, now, error))
    }

    fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
        self.with("read timers", |connection| read::due_timers(connection, now, limit))
    }

    fn next_timer(&self) -> Result<Option<Timestamp>, StoreError> {
        self.with("read timers", |connection| read::next_timer(connection))
    }

    fn change(&self) -> Result<ChangeStamp, StoreError> {
        self.watch.change(self)
    }

    fn wait_for_change(
        &self,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        self.watch.wait(self, after, timeout)
    }

    fn acquire_lease(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.write("acquire a lease", |statements| {
            leases::acquire(statements, run, holder, now, ttl)
        })?
    }

    fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.write("renew a lease", |statements| leases::renew(statements, lease, now, ttl))?
    }

    fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError> {
        self.write("release a lease", |statements| leases::release(statements, lease))
    }

    fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError> {
        self.write("end a lease", |statements| leases::end(statements, run, fence))
    }

    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError> {
        Ok(Box::new(self.turns.enter(run)?))
    }

    fn announce(
        &self,
        name: &str,
        body: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        self.write("announce a worker", |statements| {
            workers::announce(statements, (name, body), now, ttl)
        })
    }

    fn withdraw(&self, name: &str) -> Result<bool, StoreError> {
        self.write("withdraw a worker", |statements| workers::withdraw(statements, name))
    }

    fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.with("list workers", |connection| workers::all(connection))
    }

    fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError> {
        let mut gone = Vec::new();
        for _ in 0..prune::TRANSACTIONS {
            let limit = prune.limit - gone.len();
            let (batch, more) = self.write("delete old runs", |statements| {
                prune::batch(statements, prune.ended_before, limit)
            })?;
            gone.extend(batch);
            if !more {
                break;
            }
        }
        for _ in 0..prune::TRANSACTIONS {
            if !self.write("give space back", prune::give_back)? {
                break;
            }
        }
        tracing::debug!(runs = gone.len(), "old runs deleted");
        Ok(gone)
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.write("write a probe", write::probe)
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        let size = self.with("measure the database", |connection| read::size(connection))?;
        Ok(StoreSize { log_bytes: self.files.log_length(), ..size })
    }
}
