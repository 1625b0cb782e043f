//! Waits until anybody commits: this process is woken at once, other processes are noticed by looking.
//!
//! SQLite tells nobody about a commit, but `PRAGMA data_version` shows a connection that never
//! writes whether somebody else has. One thread looks for all that wait, every 2 ms at first and then
//! less and less often, up to every 50 ms, until it sees a change.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::SqliteStore;
use crate::cursor::ChangeStamp;
use crate::error::StoreError;

const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// How long a thread waits at once whose time is not limited.
const LONG: Duration = Duration::from_secs(3_600);
const DOING: &str = "look for changes";

#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Counts the commits of all other connections. Opened by the first who asks.
    connection: Option<Connection>,
    /// How many connections there were: each counts from somewhere else.
    connections: u64,
    stamp: ChangeStamp,
    /// Whether one of those who wait looks for all of them.
    looking: bool,
    pause: Duration,
}

impl Watch {
    /// Wakes whoever waits, after a commit in this process.
    pub(super) fn wake(&self) {
        // Behind the lock: a thread that has looked and does not wait yet would miss it.
        drop(self.state());
        self.woken.notify_all();
    }

    pub(super) fn change(&self, store: &SqliteStore) -> Result<ChangeStamp, StoreError> {
        let mut state = self.state();
        self.look(store, &mut state)?;
        Ok(state.stamp)
    }

    pub(super) fn wait(
        &self,
        store: &SqliteStore,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.state();
        self.look(store, &mut state)?;
        let mut looks = false;
        let result = loop {
            let left = deadline.map_or(LONG, |at| at.saturating_duration_since(Instant::now()));
            if state.stamp != *after || left.is_zero() {
                break Ok(state.stamp);
            }
            looks |= !std::mem::replace(&mut state.looking, true);
            let pause = if looks { state.pause.min(left) } else { left };
            let waited = self.woken.wait_timeout(state, pause);
            let (guard, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if !looks {
                continue;
            }
            if timed_out.timed_out() {
                state.pause = (2 * state.pause).min(PAUSE_MAX);
            }
            if let Err(error) = self.look(store, &mut state) {
                break Err(error);
            }
        };
        if looks {
            // Somebody else looks from now on.
            state.looking = false;
            self.woken.notify_all();
        }
        result
    }

    /// Looks once, and wakes the others if something has changed.
    fn look(&self, store: &SqliteStore, state: &mut State) -> Result<(), StoreError> {
        let connection = match state.connection.take() {
            Some(connection) => connection,
            None => {
                state.connections += 1;
                store.connect()?
            }
        };
        let version = connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)))
            .map_err(|error| super::error::sort(&error, &store.files.db, DOING))?;
        // After an error it is closed: what it remembers need not be what is stored.
        state.connection = Some(connection);
        let stamp = ChangeStamp::of(state.connections, version.unsigned_abs());
        if stamp != std::mem::replace(&mut state.stamp, stamp) {
            state.pause = PAUSE_MIN;
            self.woken.notify_all();
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
