//! The simulator against the machine, and against itself.

use super::*;

/// A planted bug is found within so many events.
const FOUND_WITHIN: u64 = 200_000;

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
        let report = simulated(&Options { jobs: 2, faults, ..Options::new(seed, 150_000) });
        assert_holds(&report);
        assert!(report.worlds >= 300 && report.tally.events >= 150_000, "{report:?}");
        assert!(report.tally.successes > 0 && report.tally.replayed > 0, "{report:?}");
        assert!(report.tally.scanned > 0 && report.tally.written > 0, "{report:?}");
        assert!((report.tally.faults > 0) == faults, "{report:?}");
    }
}

#[test]
fn nothing_is_violated_in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::Sqlite(directory.path().join("state"));
    let report = simulated(&Options { backend, ..Options::new(2_000_000, 2_000) });
    assert_holds(&report);
    assert!(report.tally.events >= 2_000 && report.tally.faults > 0, "{report:?}");
}

#[test]
fn the_model_the_driver_and_sqlite_agree() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = Backend::Sqlite(directory.path().join("state"));
    for (backend, events) in [(Backend::Memory, 20_000), (sqlite, 1_000)] {
        let options = Options { backend: Backend::Model, ..Options::new(3_000_000, events) };
        let model = simulated(&options);
        assert_holds(&model);
        let driven = simulated(&Options { backend, ..options });
        assert_holds(&driven);
        assert_eq!((driven.hash, driven.tally), (model.hash, model.tally));
    }
}

#[test]
fn a_seed_is_a_world() {
    let one = simulated(&Options::new(4_000_000, 10_000));
    let again = simulated(&Options { jobs: 2, ..Options::new(4_000_000, 10_000) });
    assert_eq!(one.hash, again.hash);
    assert_ne!(one.hash, simulated(&Options::new(4_000_001, 10_000)).hash);
}

#[test]
fn planted_bugs_are_found() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let planted = Options {
            subject: Subject::Phases(Some(bug)),
            backend: Backend::Model,
            ..Options::new(1, FOUND_WITHIN)
        };
        let report = simulated(&planted);
        if report.violation.is_none() {
            missed.push(bug);
        }
    }
    assert_eq!(missed, [], "planted and not found");
}
