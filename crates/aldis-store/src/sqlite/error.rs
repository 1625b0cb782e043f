//! Sorts SQLite's errors into those that people can do something about.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::error::StoreError;

pub(super) fn sort(error: &Error, location: &Path, doing: &'static str) -> StoreError {
    let location = location.display().to_string();
    let detail = error.to_string();
    let Some(code) = error.sqlite_error_code() else {
        return match error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => StoreError::Corrupt { location, detail },
            _ => StoreError::Other { location, doing, detail },
        };
    };
    // Growing the index of the log is the one write that SQLite reports without its cause; space is
    // all that it needs.
    let extended = error.sqlite_error().map(|error| error.extended_code);
    if extended == Some(ffi::SQLITE_IOERR_SHMSIZE) {
        return StoreError::Full { location };
    }
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { location },
        ErrorCode::DiskFull => StoreError::Full { location },
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            StoreError::ReadOnly { location, detail }
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            StoreError::Corrupt { location, detail }
        }
        ErrorCode::SystemIoFailure
        | ErrorCode::CannotOpen
        | ErrorCode::FileLockingProtocolFailed => StoreError::Io { location, doing, detail },
        _ => StoreError::Other { location, doing, detail },
    }
}
