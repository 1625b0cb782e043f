//! The clock by which processes are given their time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the time since the machine was started, including the time it slept.
///
/// Setting the wall clock does not move it. A deadline that is measured with it has passed when a
/// laptop wakes up after it.
pub fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
