//! The simulator against the delivery machine, and against itself.

use super::super::{Report, Subject, run};
use super::*;

/// A planted bug is found within so many events.
const FOUND_WITHIN: u64 = 20_000;

fn options(seed: u64, events: u64) -> Options {
    Options { subject: Subject::Delivery(None), ..Options::new(seed, events) }
}

fn simulated(options: &Options) -> Report {
    run(options, &|_| {})
}

#[track_caller]
fn assert_holds(report: &Report) {
    let Some(Violation { seed, broken, trace }) = &report.violation else { return };
    panic!("seed {seed}: {}: {}\n{}", broken.invariant, broken.detail, trace.join("\n"));
}

#[test]
fn nothing_is_violated_in_memory() {
    for (seed, faults) in [(1, true), (1_000_000, false)] {
        let report = simulated(&Options { jobs: 2, faults, ..options(seed, 50_000) });
        assert_holds(&report);
        let tally = report.tally;
        assert!(report.worlds >= 100 && tally.ends == tally.runs, "{report:?}");
        assert!(tally.successes > 0 && tally.replayed > 0, "{report:?}");
        assert!(tally.scanned > 0 && tally.written > 0, "{report:?}");
        assert!((tally.faults > 0) == faults, "{report:?}");
    }
}

#[test]
fn nothing_is_violated_in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::Sqlite(directory.path().join("state"));
    let report = simulated(&Options { backend, ..options(2_000_000, 1_500) });
    assert_holds(&report);
    assert!(report.tally.faults > 0, "{report:?}");
}

#[test]
fn plain_values_and_real_stores_agree() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = Backend::Sqlite(directory.path().join("state"));
    for (backend, events) in [(Backend::Memory, 10_000), (sqlite, 1_000)] {
        let options = Options { backend: Backend::Model, ..options(3_000_000, events) };
        let plain = simulated(&options);
        assert_holds(&plain);
        let stored = simulated(&Options { backend, ..options });
        assert_holds(&stored);
        assert_eq!((stored.hash, stored.tally), (plain.hash, plain.tally));
    }
}

#[test]
fn a_seed_is_a_world() {
    let one = simulated(&options(4_000_000, 10_000));
    let again = simulated(&Options { jobs: 2, ..options(4_000_000, 10_000) });
    assert_eq!(one.hash, again.hash);
    assert_ne!(one.hash, simulated(&options(4_000_001, 10_000)).hash);
}

#[test]
fn planted_bugs_are_found() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let planted = Options {
            subject: Subject::Delivery(Some(bug)),
            backend: Backend::Model,
            ..options(1, FOUND_WITHIN)
        };
        if simulated(&planted).violation.is_none() {
            missed.push(bug);
        }
    }
    assert_eq!(missed, [], "planted and not found");
}
