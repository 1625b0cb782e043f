//! When to try again: twice as long each time, up to a limit, and never all at the same moment.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The first pause, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);
/// What is older than this is given up when an attempt fails.
pub(super) const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns how long to wait after so many failures. A receiver that says how long it wants to be left
/// alone is left alone, within reason.
pub(super) fn pause(failures: u32, asked: Option<Duration>) -> Duration {
    if let Some(asked) = asked {
        return asked.min(PAUSE_MAX);
    }
    let most = PAUSE_MIN.saturating_mul(1 << failures.min(20)).min(PAUSE_MAX);
    // Equal jitter: half of it is fixed. The hasher's keys are random.
    let share = RandomState::new().hash_one(failures) as u32;
    most / 2 + (most / 2).mul_f64(f64::from(share) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    //! Pauses grow, end somewhere, and differ.

    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_with_jitter() {
        for (failures, most) in [(0, 1), (1, 2), (5, 32), (11, 2_048), (12, 3_600), (99, 3_600)] {
            let most = Duration::from_secs(most);
            let pauses: Vec<Duration> = (0..50).map(|_| pause(failures, None)).collect();
            assert!(pauses.iter().all(|it| (most / 2..=most).contains(it)), "{pauses:?}");
            assert!(pauses.iter().any(|it| *it != pauses[0]), "{pauses:?}");
        }
        let asked = |seconds| pause(3, Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!((asked(0), asked(90), asked(86_400)), (0, 90, 3_600));
    }
}
