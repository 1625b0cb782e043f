//! A few worlds of every machine, and bugs that must be found.

use super::*;

fn held(options: &Options) -> Report {
    let report = run(options, &|_| ());
    if let Some(Violation { seed, broken, trace }) = &report.violation {
        panic!("seed {seed}: {broken:?}\n{}", trace.join("\n"));
    }
    report
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for machine in MACHINES {
        let options = Options::new(machine, 1, 2_000);
        let first = held(&options);
        assert!(first.tally.faults > 0 && first.tally.ends > 0, "{machine:?} {first:?}");
        let second = held(&Options { jobs: 2, ..options });
        assert_eq!((first.hash, first.tally), (second.hash, second.tally), "{machine:?}");
    }
}
