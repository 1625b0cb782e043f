//! Links in notices that open one thing that needs a person, and nothing else: signed, and valid for a
//! while. Whoever makes a notice signs; the server that uses the same state directory checks.
//!
//! What is signed stands behind `#`: neither servers on the way nor programs that look at links get it.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{Store, Ticket};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::Sha256;

use super::secret;

/// Where a server writes down where it is reached, and the key of its links.
const FILE: &str = "serve.links.json";
/// The kind of the ticket with the key that all servers of a store share, and how long it holds.
const KIND: &str = "link_key";
const FOR_EVER: i64 = 1 << 53;
/// How long a link is valid.
const LIFETIME: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// The longest link that is looked at.
const TOKEN_MAX: usize = 1_000;

/// Where a server is reached, and what only we know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ItemLinks {
    /// `https://aldis.example.org`, without a path.
    pub(crate) base: String,
    key: String,
}

/// What a link opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ItemScope {
    /// Of this run,
    #[serde(rename = "r")]
    pub(crate) run: String,
    /// the thing of this kind,
    #[serde(rename = "n")]
    pub(crate) need: String,
    /// about this task of a delivery,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// that came up then,
    #[serde(rename = "a")]
    pub(crate) at: Timestamp,
    /// until then.
    #[serde(rename = "u")]
    pub(crate) until: Timestamp,
}

impl ItemLinks {
    /// Reads what the last server of this directory wrote down; nothing if there was none.
    pub(crate) fn read(state: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(state.join(FILE)).ok()?).ok()
    }

    /// Writes down where a server is reached. Links of earlier servers, and of others of the same store,
    /// stay valid: their key is the store's.
    ///
    /// # Errors
    ///
    /// Fails if the store does, the file cannot be written, or the system gives no random numbers.
    pub(crate) fn publish(state: &Path, store: &dyn Store, base: String) -> io::Result<Self> {
        let key = match Self::read(state) {
            Some(known) => known.key,
            None => secret::key().map_err(io::Error::other)?,
        };
        let (created, until) = (Timestamp::from_millis(0), Timestamp::from_millis(FOR_EVER));
        let [kind, name] = [KIND, "1"].map(str::to_owned);
        store
            .put_ticket(&Ticket { kind, key: name, created, until, body: key.clone() })
            .map_err(io::Error::other)?;
        let shared = store.ticket(KIND, "1").map_err(io::Error::other)?;
        let key = shared.map_or(key, |shared| shared.body);
        let links = Self { base, key };
        // A file of its own for its owner alone, put in place as a whole.
        let mut file = tempfile::NamedTempFile::new_in(state)?;
        file.write_all(&serde_json::to_vec(&links)?)?;
        file.persist(state.join(FILE)).map_err(|error| error.error)?;
        Ok(links)
    }

    /// Returns the page of a run, for those who are logged in.
    pub(crate) fn run(&self, run: &str) -> String {
        format!("{}/runs/{run}", self.base)
    }

    /// Returns a link to something that came up in a run at a time.
    pub(crate) fn item(&self, run: &str, need: &str, task: Option<&str>, at: Timestamp) -> String {
        let scope = ItemScope {
            run: run.to_owned(),
            need: need.to_owned(),
            task: task.map(str::to_owned),
            at,
            until: at.after(LIFETIME),
        };
        format!("{}/answer#{}", self.base, self.sign(&scope))
    }

    fn sign(&self, scope: &ItemScope) -> String {
        let payload = URL_SAFE_NO_PAD.encode(json!(scope).to_string());
        let signature = self.mac(&payload).map(|mac| mac.finalize().into_bytes());
        format!("{payload}.{}", URL_SAFE_NO_PAD.encode(signature.unwrap_or_default()))
    }

    /// Returns what a link opens, unless it is not ours or its time is over.
    pub(crate) fn check(&self, token: &str, now: Timestamp) -> Option<ItemScope> {
        if token.len() > TOKEN_MAX {
            return None;
        }
        let (payload, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.mac(payload)?.verify_slice(&signature).ok()?;
        let scope: ItemScope =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
        (scope.until > now).then_some(scope)
    }

    /// Nothing if there is no key, which no link can then be checked with.
    fn mac(&self, payload: &str) -> Option<Hmac<Sha256>> {
        let key = Some(self.key.as_bytes()).filter(|key| !key.is_empty())?;
        let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
        mac.update(b"aldis item link 1:");
        mac.update(payload.as_bytes());
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use aldis_store::MemoryStore;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
    }

    fn token(link: &str) -> &str {
        link.split_once('#').unwrap().1
    }

    #[test]
    fn a_link_opens_what_it_was_made_for_until_its_time_is_over() {
        let (state, store) = (tempfile::tempdir().unwrap(), MemoryStore::new());
        let links =
            ItemLinks::publish(state.path(), &store, "https://a.example".to_owned()).unwrap();
        let link = links.item("7f3k", "question", Some("task-1"), at(0));
        assert!(link.starts_with("https://a.example/answer#"), "{link}");
        let scope = links.check(token(&link), at(60)).unwrap();
        assert_eq!(
            (&*scope.run, &*scope.need, scope.task.as_deref()),
            ("7f3k", "question", Some("task-1"))
        );
        let day = 24 * 60 * 60;
        for (seconds, valid) in [(3 * day - 1, true), (3 * day, false), (400 * day, false)] {
            assert_eq!(links.check(token(&link), at(seconds)).is_some(), valid, "{seconds}");
        }
    }

    #[test]
    fn links_outlive_their_server_and_nobody_else_makes_them() {
        let (state, store) = (tempfile::tempdir().unwrap(), MemoryStore::new());
        let first =
            ItemLinks::publish(state.path(), &store, "https://a.example".to_owned()).unwrap();
        let link = first.item("7f3k", "question", None, at(0));
        let second =
            ItemLinks::publish(state.path(), &store, "https://b.example".to_owned()).unwrap();
        assert!(second.check(token(&link), at(1)).is_some());
        let elsewhere = tempfile::tempdir().unwrap();
        let other = ItemLinks::publish(
            elsewhere.path(),
            &MemoryStore::new(),
            "https://a.example".to_owned(),
        )
        .unwrap();
        assert!(other.check(token(&link), at(1)).is_none());
        // Of another server of the same store it is ours.
        let replica = tempfile::tempdir().unwrap();
        let replica =
            ItemLinks::publish(replica.path(), &store, "https://c.example".to_owned()).unwrap();
        assert!(replica.check(token(&link), at(1)).is_some());
        let (payload, signature) = token(&link).split_once('.').unwrap();
        let mut scope = second.check(token(&link), at(1)).unwrap();
        "other".clone_into(&mut scope.run);
        let forged = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&scope).unwrap());
        for wrong in [
            String::new(),
            ".".to_owned(),
            format!("{payload}."),
            format!(".{signature}"),
            format!("{forged}.{signature}"),
            format!("{payload}.{}", &signature[1..]),
            "x".repeat(10_000),
        ] {
            assert!(second.check(&wrong, at(1)).is_none(), "{wrong}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let (state, store) = (tempfile::tempdir().unwrap(), MemoryStore::new());
        ItemLinks::publish(state.path(), &store, "https://a.example".to_owned()).unwrap();
        let mode = fs::metadata(state.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}
