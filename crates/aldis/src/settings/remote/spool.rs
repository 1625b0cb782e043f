//! What a server elsewhere has not taken yet: one file each, few and short, delivered by whoever reaches
//! the server next.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Remote, RemoteError};
use crate::error::CommandError;
use crate::failures;
use crate::settings::clock::Stopwatch;
use crate::settings::secret;

/// Where they wait, in the state directory.
const DIRECTORY: &str = "remote-spool";
/// How many wait at most, and how long each may be: the oldest are given up first.
const FILES_MAX: usize = 200;
const LENGTH_MAX: usize = 1 << 20;
/// How many are delivered at once.
const BATCH: usize = 20;

/// Something that waits.
#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    v: u32,
    /// For which server.
    server: String,
    /// Where it is sent.
    path: String,
    body: Value,
}

/// Puts something there. Returns how many older ones had to be given up for it.
///
/// # Errors
///
/// Fails if it is too long or cannot be written.
pub(crate) fn put(
    state: &Path,
    remote: &Remote,
    (path, body): (&str, &Value),
    name: &str,
) -> io::Result<usize> {
    let (server, path) = (remote.to_string(), path.to_owned());
    let text = serde_json::to_vec(&Waiting { v: 1, server, path, body: body.clone() })?;
    if text.len() > LENGTH_MAX {
        return Err(io::Error::other(format!("it is longer than {LENGTH_MAX} bytes")));
    }
    let directory = state.join(DIRECTORY);
    failures::create(&directory)?;
    let mut known = files(state);
    let surplus = (known.len() + 1).saturating_sub(FILES_MAX);
    known.truncate(surplus);
    for file in &known {
        fs::remove_file(file)?;
    }
    let file = directory.join(format!("{name}.json"));
    let part = file.with_extension("part");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut written = options.open(&part)?;
    written.write_all(&text)?;
    written.sync_all()?;
    fs::rename(&part, &file)?;
    Ok(surplus)
}

/// Delivers what waits for this server, the oldest first, until one cannot be delivered now or the time is
/// over. Returns what the server refused for good: that is given up.
pub(crate) fn deliver(state: &Path, remote: &Remote, patience: Duration) -> Vec<String> {
    let (mut refused, watch) = (Vec::new(), Stopwatch::start());
    for file in files(state).into_iter().take(BATCH) {
        let left = patience.saturating_sub(watch.elapsed());
        if left.is_zero() {
            break;
        }
        let Some(waiting) = read(&file) else {
            refused.push(format!("`{}` cannot be read", file.display()));
            let _gone = fs::remove_file(&file);
            continue;
        };
        if waiting.server != remote.to_string() {
            continue;
        }
        match remote.post::<Value>(&waiting.path, &late(waiting.body), left) {
            Err(error) if error.passes() => break,
            Err(error @ (RemoteError::Refused { .. } | RemoteError::Strange { .. })) => {
                refused.push(error.to_string());
            }
            Err(RemoteError::Silent { .. }) | Ok(_) => {}
        }
        // Delivered, or given up. Whoever delivers at the same time is recognised by its id.
        let _gone = fs::remove_file(&file);
    }
    refused
}

/// Returns a name for something that waits from now on, after all that wait already.
///
/// # Errors
///
/// Fails if the system gives no random numbers.
pub(crate) fn name(now: Timestamp) -> Result<String, CommandError> {
    let random = |error| CommandError::new(format!("the system gives no random numbers: {error}"));
    let key = secret::key().map_err(random)?;
    Ok(format!("{:014}-{}", now.as_millis().max(0), key.get(..16).unwrap_or(&key)))
}

/// Returns how many wait.
pub(crate) fn count(state: &Path) -> usize {
    files(state).len()
}

/// What is delivered now happened some time ago.
fn late(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.insert("late".to_owned(), Value::Bool(true));
    }
    body
}

/// Those that wait, the oldest first: their names begin with a time.
fn files(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state.join(DIRECTORY)).into_iter().flatten().flatten();
    let is_whole = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_whole).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Option<Waiting> {
    let length = fs::symlink_metadata(file).ok().filter(fs::Metadata::is_file)?.len();
    let text = (length <= LENGTH_MAX as u64).then(|| fs::read(file).ok()).flatten()?;
    serde_json::from_slice(&text).ok().filter(|waiting: &Waiting| waiting.v == 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_are_given_up_first() {
        let state = tempfile::tempdir().unwrap();
        let remote = Remote::new("http://127.0.0.1:1", "t".to_owned()).unwrap();
        let put = |number: usize| {
            put(state.path(), &remote, ("/v1/hooks", &json!({})), &format!("{number:04}")).unwrap()
        };
        let given_up: usize = (0..FILES_MAX + 3).map(put).sum();
        assert_eq!((given_up, count(state.path())), (3, FILES_MAX));
        assert!(files(state.path())[0].ends_with("0003.json"));
        let long = json!({ "text": "x".repeat(LENGTH_MAX) });
        assert!(super::put(state.path(), &remote, ("/v1/hooks", &long), "9999").is_err());
        // Nobody is there: everything waits on.
        assert_eq!(deliver(state.path(), &remote, Duration::from_secs(5)), Vec::<String>::new());
        assert_eq!(count(state.path()), FILES_MAX);
    }
}
