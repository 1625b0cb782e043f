//! Failures on command, at the moments at which real disks have them.

use std::collections::BTreeMap;

use crate::error::StoreError;

/// A failure to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Before or after the write took effect.
    pub when: When,
    /// What is reported.
    pub kind: FaultKind,
}

/// Whether the write happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It did not.
    Before,
    /// It did, and the caller gets an error: the unknown outcome.
    After,
}

/// What a failed write reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// [`StoreError::Busy`].
    Busy,
    /// [`StoreError::Full`].
    Full,
    /// [`StoreError::Io`].
    Io,
    /// [`StoreError::ReadOnly`].
    ReadOnly,
}

impl FaultKind {
    pub(super) fn error(self) -> StoreError {
        let location = "the memory store".to_owned();
        let detail = "as commanded".to_owned();
        match self {
            Self::Busy => StoreError::Busy { location },
            Self::Full => StoreError::Full { location },
            Self::Io => StoreError::Io { location, doing: "write", detail },
            Self::ReadOnly => StoreError::ReadOnly { location, detail },
        }
    }
}

/// The failures to come, by the number of the write they hit.
#[derive(Debug, Default)]
pub(super) struct Faults {
    writes: u64,
    planned: BTreeMap<u64, Fault>,
}

impl Faults {
    pub(super) fn plan(&mut self, nth: u64, fault: Fault) {
        self.planned.insert(self.writes.saturating_add(nth), fault);
    }

    /// Counts a write and returns how it fails, if it does.
    pub(super) fn next_write(&mut self) -> Option<Fault> {
        self.writes += 1;
        self.planned.remove(&self.writes)
    }
}
