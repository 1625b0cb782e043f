//! Sorts SQLite's errors into those that people can do something about.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::error::StoreError;

pub(super) fn sort(error: &Error, place: &Path, doing: &'static str) -> StoreError {
    let place = place.display().to_string();
    let detail = error.to_string();
    let Some(code) = error.sqlite_error_code() else {
        return match error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => StoreError::Corrupt { place, detail },
            _ => StoreError::Other { place, doing, detail },
        };
    };
    // Growing the index of the log is the one write that SQLite reports without its cause; space is
    // all that it needs.
    let extended = error.sqlite_error().map(|error| error.extended_code);
    if extended == Some(ffi::SQLITE_IOERR_SHMSIZE) {
        return StoreError::Full { place };
    }
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { place },
        ErrorCode::DiskFull => StoreError::Full { place },
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly { place, detail },
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            StoreError::Corrupt { place, detail }
        }
        ErrorCode::SystemIoFailure
        | ErrorCode::CannotOpen
        | ErrorCode::FileLockingProtocolFailed => StoreError::Io { place, doing, detail },
        _ => StoreError::Other { place, doing, detail },
    }
}
