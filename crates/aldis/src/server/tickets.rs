//! What works once: links to log in, and links of notices. In the store, so that of two servers that are
//! asked at the same moment one takes it.

use std::fs;
use std::path::Path;

use aldis_signal::time::Timestamp;
use aldis_store::{Store, StoreError, Ticket};

use crate::settings::tokens::hash;

/// Links to log in: those that are there can be used.
pub(crate) const LOGINS: OneTime = OneTime { kind: "login", directory: "serve.logins" };
/// Links of notices: those that are there were used.
pub(super) const USED: OneTime = OneTime { kind: "used", directory: "serve.used" };

/// Things that work once, of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneTime {
    kind: &'static str,
    /// Where an older version kept them.
    directory: &'static str,
}

impl OneTime {
    /// Puts one there until a time. Returns whether it was not there before.
    pub(crate) fn put(
        self,
        store: &dyn Store,
        secret: &str,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.put_hash(store, hash(secret), until, now)
    }

    fn put_hash(
        self,
        store: &dyn Store,
        key: String,
        until: Timestamp,
        created: Timestamp,
    ) -> Result<bool, StoreError> {
        let (kind, body) = (self.kind.to_owned(), String::new());
        store.put_ticket(&Ticket { kind, key, created, until, body })
    }

    /// Takes one away. Returns whether it was there, and its time was not over.
    pub(super) fn take(
        self,
        store: &dyn Store,
        secret: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let taken = store.take_ticket(self.kind, &hash(secret))?;
        Ok(taken.is_some_and(|ticket| ticket.until > now))
    }

    /// Whether one is there.
    pub(super) fn has(self, store: &dyn Store, secret: &str) -> Result<bool, StoreError> {
        Ok(store.ticket(self.kind, &hash(secret))?.is_some())
    }

    /// Takes over what an older version kept in files named by hashes, once. One that cannot be read is
    /// not worth a server that does not start.
    pub(super) fn take_over(
        self,
        state: &Path,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let directory = state.join(self.directory);
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let until = fs::read_to_string(entry.path()).ok();
            let until = until.and_then(|text| text.trim().parse().ok()).map(Timestamp::from_millis);
            if let (Ok(key), Some(until)) = (entry.file_name().into_string(), until)
                && until > now
            {
                self.put_hash(store, key, until, now)?;
            }
        }
        if let Err(error) = fs::remove_dir_all(&directory)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "files of an older version cannot be deleted");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use aldis_store::{MemoryStore, Tickets as _};

    use super::*;

    #[test]
    fn each_works_once_and_not_for_ever() {
        let store = MemoryStore::new();
        let at = Timestamp::from_millis;
        let put = |secret, until, now| LOGINS.put(&store, secret, at(until), at(now)).unwrap();
        let take = |secret, now| LOGINS.take(&store, secret, at(now)).unwrap();
        assert!(!take("a", 0), "there is none");
        assert!(put("a", 10, 0));
        assert!(!put("a", 10, 0));
        assert!(LOGINS.has(&store, "a").unwrap() && !LOGINS.has(&store, "b").unwrap());
        assert!(!USED.has(&store, "a").unwrap(), "of another kind");
        assert!(take("a", 9));
        assert!(!take("a", 9));
        put("a", 10, 0);
        assert!(!take("a", 10), "its time is over");
        put("b", 10, 0);
        put("c", 20, 15);
        assert!(!LOGINS.has(&store, "b").unwrap(), "cleared");
        let kept = store.tickets("login", 9).unwrap();
        assert!(kept.len() == 1 && kept[0].key.len() == 64, "only hashes: {kept:?}");
    }

    #[test]
    fn the_files_of_an_older_version_are_taken_over_once() {
        let (state, store) = (tempfile::tempdir().unwrap(), MemoryStore::new());
        let directory = state.path().join("serve.used");
        fs::create_dir(&directory).unwrap();
        for (secret, until) in [("a", "10"), ("old", "3"), ("broken", "x")] {
            fs::write(directory.join(hash(secret)), until).unwrap();
        }
        for _ in 0..2 {
            USED.take_over(state.path(), &store, Timestamp::from_millis(5)).unwrap();
        }
        let has = |secret| USED.has(&store, secret).unwrap();
        assert!(has("a") && !has("old") && !has("broken") && !directory.exists());
    }
}
