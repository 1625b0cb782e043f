//! The only place that asks for the time.

use std::env;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) use aldis_process::since_boot;
use aldis_signal::time::Timestamp;
use aldis_transcript::events::Zone;

use crate::error::CommandError;
use crate::view::time::zone_name;

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

/// Returns the zone of this machine; universal time if it has none that is known.
pub(crate) fn local_zone() -> Zone {
    zone_name().and_then(|name| Zone::named(&name)).unwrap_or_else(Zone::utc)
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

/// The time of day for something that lasts: taken once, then counted by a clock that no one sets
/// and that goes on while the machine sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyClock {
    began: Timestamp,
    boot: Duration,
}

impl SteadyClock {
    pub(crate) fn start() -> Self {
        Self { began: wall(), boot: since_boot() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.began.after(since_boot().saturating_sub(self.boot))
    }
}
