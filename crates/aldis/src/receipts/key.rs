//! The key of receipts: a file of the state directory that only its owner may read, and that no
//! repository ever sees.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::canonical::hex;
use crate::error::CommandError;
use crate::settings::secret;

const FILE: &str = "receipts.key";
/// What is signed begins with it, so that no other use of the key can be mistaken for a receipt.
const DOMAIN: &[u8] = b"aldis receipt 1\n";
/// What the name of a key is made of.
const NAME: &[u8] = b"aldis receipt key\n";
/// The hexadecimal digits of a key, and of its name.
const LENGTH: usize = 64;
const NAME_LENGTH: usize = 16;

/// What signs receipts.
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// Returns the key of this state directory; it is made where there is none.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read or made, or if others could read it.
    pub(crate) fn of(state: &Path) -> Result<Self, CommandError> {
        if let Some(key) = Self::read(state)? {
            return Ok(key);
        }
        make(state)?;
        Self::read(state)?.ok_or_else(|| CommandError::new("the key of receipts is gone again"))
    }

    /// Returns the key of this state directory, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or if others could read it.
    pub(crate) fn read(state: &Path) -> Result<Option<Self>, CommandError> {
        let path = state.join(FILE);
        let failed = |error: io::Error| CommandError::file(&path, &error);
        let wrong = |what: &str, help: &str| {
            Err(CommandError::new(format!("`{}` {what}", path.display())).with_help(help))
        };
        let file = match open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return wrong("is no file", "move it away; the next receipt makes a new key");
        }
        #[cfg(unix)]
        if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0 {
            return wrong("can be read by others", "make it yours alone: chmod 600 FILE");
        }
        let mut text = String::new();
        file.take(2 * LENGTH as u64).read_to_string(&mut text).map_err(failed)?;
        let text = text.trim();
        if text.len() != LENGTH || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return wrong("holds no key", "restore it from a backup, or move it away");
        }
        Ok(Some(Self(text.as_bytes().to_vec())))
    }

    /// Returns which key it is, for people and receipts.
    pub(crate) fn name(&self) -> String {
        let mut name = self.tag(NAME, b"").map(|tag| hex(&tag)).unwrap_or_default();
        name.truncate(NAME_LENGTH);
        name
    }

    /// Signs a receipt in its canonical form.
    pub(crate) fn sign(&self, canonical: &str) -> Option<String> {
        Some(hex(&self.tag(DOMAIN, canonical.as_bytes())?))
    }

    /// Returns whether this is the signature of a receipt in its canonical form.
    pub(crate) fn signed(&self, canonical: &str, mac: &str) -> bool {
        let Some(own) = self.sign(canonical) else { return false };
        let differs = own.bytes().zip(mac.bytes()).fold(0, |all, (own, other)| all | (own ^ other));
        own.len() == mac.len() && differs == 0
    }

    fn tag(&self, domain: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        // A key of any length is taken.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(domain);
        mac.update(bytes);
        Some(mac.finalize().into_bytes().to_vec())
    }
}

/// Makes a key unless somebody else does at the same time: the first one stays.
fn make(state: &Path) -> Result<(), CommandError> {
    let path = state.join(FILE);
    let failed = |error: io::Error| CommandError::file(&path, &error);
    let random = |error| CommandError::new(format!("the system gives no random numbers: {error}"));
    let key = secret::key().map_err(random)?;
    make_directory(state).map_err(failed)?;
    // For its owner alone, and put in place as a whole.
    let mut file = tempfile::NamedTempFile::new_in(state).map_err(failed)?;
    writeln!(file, "{key}").and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    match file.persist_noclobber(&path) {
        Ok(_) => sync_directory(state).map_err(failed),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error.error)),
    }
}

/// Makes a directory for its owner alone.
pub(super) fn make_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Makes new names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Opens a file for reading, through no link and without waiting for anybody.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    options.open(path)
}

/// Removes what a process that was killed left half-written.
pub(super) fn remove_leftovers(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".tmp") {
            // Whoever comes next tries again.
            let _removed = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    //! The key is made once, is private, and is never followed through a link.

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_key_is_made_once_and_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        assert!(Key::read(&state).unwrap().is_none());
        let (first, second) = (Key::of(&state).unwrap(), Key::of(&state).unwrap());
        assert_eq!((first.name().len(), first.name()), (NAME_LENGTH, second.name()));
        let file = state.join(FILE);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mac = first.sign("{}").unwrap();
        assert!(second.signed("{}", &mac) && !second.signed("{} ", &mac));
        assert!(!second.signed("{}", &mac.to_uppercase()) && !second.signed("{}", ""));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Key::read(&state).is_err());
        let moved = state.join("moved");
        fs::rename(&file, &moved).unwrap();
        fs::set_permissions(&moved, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&moved, &file).unwrap();
        assert!(Key::of(&state).is_err());
    }
}
