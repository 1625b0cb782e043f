//! The files a server needs beside the database: its lock, its token, its address.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::CommandError;
use crate::settings::secret;
use crate::settings::store::StorePlace;

/// Who holds this is the only server of its directory.
const LOCK: &str = "serve.lock";
/// What clients must know.
const TOKEN: &str = "serve.token";
/// Where clients find the server.
const ADDRESS: &str = "serve.address";
/// The shortest token, in characters: 128 bits in hexadecimal.
const TOKEN_MIN: usize = 32;

/// A directory that this server has to itself.
#[derive(Debug)]
pub(super) struct ServerDirectory {
    directory: PathBuf,
    /// Locked as long as this lives.
    _lock: File,
}

impl ServerDirectory {
    /// Makes sure that no other server uses the directory.
    pub(super) fn claim(directory: &Path, store: &StorePlace) -> Result<Self, CommandError> {
        store.prepare(directory)?;
        let path = directory.join(LOCK);
        let lock = private(&path, OpenOptions::new().write(true).create(true).truncate(false))?;
        if lock.try_lock().is_err() {
            let message = format!("another server uses `{}`", directory.display());
            return Err(CommandError::new(message)
                .with_help("stop it, or choose another directory: --state-dir DIR"));
        }
        Ok(Self { directory: directory.to_owned(), _lock: lock })
    }

    /// Returns the token that every request needs, made on the first call.
    pub(super) fn token(&self) -> Result<String, CommandError> {
        let path = self.directory.join(TOKEN);
        if !path.exists() {
            let random =
                |error| CommandError::new(format!("the system gives no random numbers: {error}"));
            let token = secret::key().map_err(random)?;
            let mut file = private(&path, OpenOptions::new().write(true).create_new(true))?;
            let written = writeln!(file, "{token}").and_then(|()| file.sync_all());
            written.map_err(|error| CommandError::file(&path, &error))?;
        }
        let mut text = String::new();
        let mut file = private(&path, OpenOptions::new().read(true))?;
        file.read_to_string(&mut text).map_err(|error| CommandError::file(&path, &error))?;
        let token = text.trim().to_owned();
        if token.len() < TOKEN_MIN {
            let message = format!("`{}` holds no token", path.display());
            return Err(CommandError::new(message).with_help("delete it; a new one is made"));
        }
        Ok(token)
    }

    /// Writes down where the server is.
    pub(super) fn announce(&self, address: &str) -> Result<(), CommandError> {
        let path = self.directory.join(ADDRESS);
        let mut options = OpenOptions::new();
        let mut file = private(&path, options.write(true).create(true).truncate(true))?;
        writeln!(file, "{address}").map_err(|error| CommandError::file(&path, &error))
    }
}

/// Returns the address of the server that uses a directory, if one does.
pub(crate) fn running(directory: &Path) -> Option<String> {
    let lock = File::open(directory.join(LOCK)).ok()?;
    // A server that was killed leaves its address behind, but no lock.
    if lock.try_lock().is_ok() {
        return None;
    }
    let address = fs::read_to_string(directory.join(ADDRESS)).ok()?;
    Some(address.trim().to_owned())
}

impl Drop for ServerDirectory {
    fn drop(&mut self) {
        // An address that leads nowhere is found out soon enough.
        fs::remove_file(self.directory.join(ADDRESS)).ok();
    }
}

/// Opens a file that only its owner may read. One that others may read, or that leads elsewhere, is
/// refused.
fn private(path: &Path, options: &mut OpenOptions) -> Result<File, CommandError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(path).map_err(|error| CommandError::file(path, &error))?;
        let found = file.metadata().map_err(|error| CommandError::file(path, &error))?;
        if found.mode() & 0o077 != 0 || !found.is_file() {
            let message = format!("`{}` can be read by others", path.display());
            return Err(CommandError::new(message).with_help("chmod 600, or delete it"));
        }
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path).map_err(|error| CommandError::file(path, &error))
}
