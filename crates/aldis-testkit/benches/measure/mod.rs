//! Times contenders in turn, so that a busy machine disturbs all of them alike.
//!
//! Times are processor times: what else runs on the machine changes them little. Compare the
//! figures of one run with each other, not with those of another.

use std::hint::black_box;
use std::io::{self, Write as _};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Something that is timed. It returns what one go cost.
pub(crate) type Contender<'a> = Box<dyn FnMut() -> io::Result<Duration> + 'a>;

/// Runs every contender once untimed, then all of them in turn; returns the median of each.
pub(crate) fn medians(
    rounds: usize,
    contenders: &mut [Contender<'_>],
) -> io::Result<Vec<Duration>> {
    let mut costs = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, costs) in contenders.iter_mut().zip(&mut costs) {
            let cost = contender()?;
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    Ok(costs.into_iter().map(median).collect())
}

/// Returns the processor time of this thread that `work` takes. Its result is dropped when the clock
/// has stopped, as other harnesses do it: that is up to whoever gets it.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> io::Result<Duration> {
    let start = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    let result = black_box(work());
    let end = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    drop(result);
    Ok(Duration::from(end).saturating_sub(Duration::from(start)))
}

/// The bars of a benchmark, and whether all were met.
#[derive(Debug, Default)]
pub(crate) struct Bars {
    rows: Vec<(String, String, bool)>,
}

impl Bars {
    /// Adds a bar, what was measured, and whether that is enough.
    pub(crate) fn add(&mut self, bar: &str, measured: String, met: bool) {
        self.rows.push((bar.to_owned(), measured, met));
    }

    /// Prints them. With `--check` on the command line a bar that was not met is a failure.
    pub(crate) fn report(self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "\n| bar | measured | |\n|---|---|---|")?;
        for (bar, measured, met) in &self.rows {
            let verdict = if *met { "met" } else { "**not met**" };
            writeln!(out, "| {bar} | {measured} | {verdict} |")?;
        }
        let missed = self.rows.iter().any(|(_, _, met)| !met);
        if missed && std::env::args().any(|argument| argument == "--check") {
            return Err(io::Error::other("a bar was not met"));
        }
        Ok(())
    }
}

fn median(mut costs: Vec<Duration>) -> Duration {
    costs.sort_unstable();
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}
