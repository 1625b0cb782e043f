//! The log of hook calls, for whoever wonders whether a host calls and what it is told.
//!
//! Off unless `ALDIS_HOOK_LOG=1` stands in the environment of the host. One JSON line for each call,
//! in the state directory; nothing that an agent wrote is in it.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use serde::Serialize;

use crate::failures;
use crate::hosts::Host;

const VARIABLE: &str = "ALDIS_HOOK_LOG";
const FILE: &str = "hook.jsonl";

/// One call of the hook.
#[derive(Debug, Serialize)]
pub(crate) struct CallRecord {
    at: String,
    host: &'static str,
    /// What the host reported, where that was understood.
    pub(crate) event: Option<&'static str>,
    /// The run that took a step.
    pub(crate) run: Option<String>,
    /// What the host was told.
    pub(crate) answer: Option<&'static str>,
    took_ms: u64,
    error: Option<String>,
}

impl CallRecord {
    /// Begins the record of a call, if a log is kept.
    pub(crate) fn begin(at: Timestamp, host: Host) -> Option<Self> {
        is_on().then(|| Self {
            at: at.to_string(),
            host: host.name(),
            event: None,
            run: None,
            answer: None,
            took_ms: 0,
            error: None,
        })
    }

    /// Writes it. There is nobody left to tell if that fails.
    pub(crate) fn write(mut self, state_dir: &Path, took: Duration, error: Option<&str>) {
        self.took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.error = error.map(str::to_owned);
        failures::append(state_dir, FILE, &self);
    }
}

/// Returns where calls are logged, if they are.
pub(crate) fn place(state_dir: &Path) -> Option<PathBuf> {
    is_on().then(|| state_dir.join(FILE))
}

fn is_on() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == "1" || value == "true")
}
