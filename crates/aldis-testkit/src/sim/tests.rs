//! A few worlds of every machine, and bugs that must be found.

use super::*;

/// What is lost may show anywhere.
const ANY: &[&str] = &[];

/// Simulates, and expects that everything holds.
fn held(options: &SimOptions) -> SimReport {
    let report = run(options, &|_| ());
    if let Some(Violation { seed, broken, trace }) = &report.violation {
        panic!("{:?}, seed {seed}: {broken:?}\n{}", options.machine, trace.join("\n"));
    }
    report
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for machine in MACHINES {
        let options = SimOptions::new(machine, 1, 3_000);
        let first = held(&options);
        assert!(first.tally.faults > 0 && first.tally.ends > 0, "{machine:?} {first:?}");
        let second = held(&SimOptions { jobs: 2, ..options });
        assert_eq!((first.hash, first.tally), (second.hash, second.tally), "{machine:?}");
    }
}

#[test]
fn nothing_goes_wrong_where_nothing_fails() {
    for machine in MACHINES {
        let report = held(&SimOptions { faults: false, ..SimOptions::new(machine, 7, 800) });
        assert_eq!(report.tally.faults, 0);
    }
}

#[test]
fn a_world_is_the_same_in_sqlite() {
    for machine in MACHINES {
        let directory = tempfile::tempdir().unwrap();
        let memory = SimOptions::new(machine, 20, 800);
        let backend = Backend::Sqlite(directory.path().to_owned());
        let sqlite = held(&SimOptions { backend, ..memory.clone() });
        assert_eq!(held(&memory).hash, sqlite.hash, "{machine:?}");
    }
}

/// One world each.
#[test]
fn what_was_violated_once_holds() {
    for (machine, seed) in [
        // Ctrl-C twice while an agent is ending.
        (Machine::Delivery, 46),
        // A task whose checks were pinned first kept the next one from their file.
        (Machine::Delivery, 5_168),
        // A check whose work tree could not be made, and one that was due when its delivery ended.
        (Machine::Delivery, 2_000_172),
        (Machine::Delivery, 2_000_500),
        // An answer while a run is taken over.
        (Machine::Run, 1_120),
        // A worker that came as the delivery ended was never told to leave, by the simulator.
        (Machine::Fleet, 1_000_036),
        (Machine::Fleet, 2_000_011),
    ] {
        held(&SimOptions::new(machine, seed, 1));
    }
}

#[test]
fn planted_bugs_are_found() {
    for (machine, bug, found) in [
        (Machine::Run, Bug::CheckAlwaysPasses, &["done_only_with_a_passed_check"][..]),
        (Machine::Run, Bug::LeftoverNotEnded, &["one_process_at_a_time"]),
        (Machine::Run, Bug::LostCommit, ANY),
        (Machine::Run, Bug::StartedTwice, &["one_process_at_a_time"]),
        (
            Machine::Delivery,
            Bug::LeftoverNotEnded,
            &["one_agent_per_task", "limits_hold", "no_agent_outlives_its_run"],
        ),
        (Machine::Delivery, Bug::StartedTwice, &["one_agent_per_task", "limits_hold"]),
        (Machine::Fleet, Bug::LostCommit, ANY),
        (
            Machine::Fleet,
            Bug::SameFence,
            &[
                "every_delivery_ends",
                "nothing_runs_before_its_claim_is_committed",
                "the_journal_is_sound",
            ],
        ),
        (Machine::Fleet, Bug::DoneWhenClaimed, &["every_delivery_ends"]),
        (Machine::Turns, Bug::ForgottenSource, &["a_repeat_has_the_first_answer"]),
        (Machine::Turns, Bug::LostCommit, ANY),
        (Machine::Phases, Bug::LostCommit, ANY),
    ] {
        let report =
            run(&SimOptions { bug: Some(bug), ..SimOptions::new(machine, 1, 20_000) }, &|_| ());
        let violation = report.violation.map(|violation| violation.broken);
        let name = violation.as_ref().map_or("nothing", |broken| broken.invariant);
        let is_expected = found.contains(&name) || found.is_empty() && violation.is_some();
        assert!(is_expected, "{machine:?} {bug:?}: {violation:?}");
    }
}
