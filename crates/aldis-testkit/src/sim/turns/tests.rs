//! The simulator of channels against the machine, and against itself.

use super::*;
use crate::sim::{Report, Subject, run};

/// A planted bug is found within so many events.
const FOUND_WITHIN: u64 = 40_000;

fn options(seed: u64, events: u64) -> Options {
    Options { subject: Subject::Turns(None), ..Options::new(seed, events) }
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
        let report = simulated(&Options { jobs: 2, faults, ..options(seed, 20_000) });
        assert_holds(&report);
        assert!(report.tally.events >= 20_000, "{report:?}");
        assert!(report.tally.ends > 0 && report.tally.replayed > 0, "{report:?}");
        assert!((report.tally.faults > 0) == faults, "{report:?}");
    }
}

#[test]
fn nothing_is_violated_in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::Sqlite(directory.path().to_owned());
    let report = simulated(&Options { backend, ..options(2_000_000, 1_000) });
    assert_holds(&report);
    assert!(report.tally.events >= 1_000 && report.tally.faults > 0, "{report:?}");
}

#[test]
fn the_model_the_keeper_and_sqlite_agree() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = Backend::Sqlite(directory.path().to_owned());
    for (backend, events) in [(Backend::Memory, 4_000), (sqlite, 500)] {
        let options = Options { backend: Backend::Model, ..options(3_000_000, events) };
        let model = simulated(&options);
        assert_holds(&model);
        let driven = simulated(&Options { backend, ..options });
        assert_holds(&driven);
        assert_eq!((driven.hash, driven.tally), (model.hash, model.tally));
    }
}

#[test]
fn a_seed_is_a_world() {
    let one = simulated(&options(4_000_000, 4_000));
    let again = simulated(&Options { jobs: 2, ..options(4_000_000, 4_000) });
    assert_eq!(one.hash, again.hash);
    assert_ne!(one.hash, simulated(&options(4_000_001, 4_000)).hash);
}

#[test]
fn planted_bugs_are_found() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let subject = Subject::Turns(Some(bug));
        let planted = Options { backend: Backend::Model, subject, ..options(1, FOUND_WITHIN) };
        if simulated(&planted).violation.is_none() {
            missed.push(bug);
        }
    }
    assert_eq!(missed, [], "planted and not found");
}
