//! The only place that asks for the time.

use std::env;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aldis_core::time::Timestamp;

use crate::error::CommandError;

/// Fixes the clock of the short-lived commands, for tests and for replaying a case.
const NOW_VARIABLE: &str = "ALDIS_NOW";

/// Returns the current time, or the one that `ALDIS_NOW` says.
///
/// # Errors
///
/// Fails if the variable names no moment.
pub(crate) fn now() -> Result<Timestamp, CommandError> {
    let Some(fixed) = env::var_os(NOW_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(wall());
    };
    fixed.to_string_lossy().parse().map_err(|error| {
        CommandError::new(format!("{NOW_VARIABLE}: {error}")).with_help("unset it to use the clock")
    })
}

/// Returns what the machine's clock says.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A clock for a process that lives long: it starts with the machine's time and then only runs
/// forward. Setting the machine's clock moves no deadline; where the system can tell, time during
/// which the machine slept counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady {
    began: Timestamp,
    uptime: Duration,
}

impl Steady {
    pub(crate) fn start() -> Self {
        Self { began: wall(), uptime: uptime() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.began.after(uptime().saturating_sub(self.uptime))
    }
}

/// How long the machine has been up, asleep or awake.
#[cfg(target_os = "linux")]
fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

/// How long this process has been awake.
#[cfg(not(target_os = "linux"))]
fn uptime() -> Duration {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGAN.elapsed()
}

/// Measures how long something took.
#[derive(Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
