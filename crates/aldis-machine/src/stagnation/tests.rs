//! The cases of the collection, and what people complain about.

use serde_json::Value;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
}

fn state(phase: &str, progress: u8, iteration: u32) -> Observation {
    Observation::State {
        phase: phase.to_owned(),
        progress: Some(progress),
        iteration,
        fingerprint: None,
    }
}

/// Plays observations and returns the level after each.
fn levels(config: Config, script: &[(i64, Observation)]) -> Vec<&'static str> {
    let mut monitor = Monitor::new(at(0), config);
    script
        .iter()
        .map(|(seconds, observation)| {
            monitor.observe(at(*seconds), observation);
            monitor.level().as_str()
        })
        .collect()
}

#[test]
fn the_cases_of_the_collection_hold() {
    let text = include_str!("../../../../testdata/conformance/cases.jsonl");
    let mut count = 0;
    for case in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let Some(wanted) = case["expect"].get("levels") else { continue };
        let config: Config = serde_json::from_value(case["given"]["config"].clone()).unwrap();
        let script: Vec<(i64, Observation)> = case["given"]["states"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let number = |at: usize| row[at].as_u64().unwrap();
                let progress = u8::try_from(number(1)).unwrap();
                let iteration = u32::try_from(number(2)).unwrap();
                (row[3].as_i64().unwrap(), state(row[0].as_str().unwrap(), progress, iteration))
            })
            .collect();
        assert_eq!(
            serde_json::to_value(levels(config, &script)).unwrap(),
            *wanted,
            "{}",
            case["id"]
        );
        count += 1;
    }
    assert!(count >= 5, "only {count} cases");
}

#[test]
fn silence_is_caught_by_the_clock() {
    let script = [0, 599, 600, 1_199, 1_200, 9_999].map(|at| (at, Observation::Tick));
    let got = levels(Config::supervised(), &script);
    assert_eq!(got, ["none", "none", "warn", "warn", "pause", "pause"]);
}

#[test]
fn a_long_test_run_with_tool_events_is_no_stagnation() {
    let script: Vec<_> = (0..60).map(|minute| (minute * 60, Observation::Evidence)).collect();
    assert!(levels(Config::supervised(), &script).iter().all(|level| *level == "none"));
}

#[test]
fn waiting_stops_the_clock() {
    let script = [
        (0, state("IMPL", 50, 1)),
        (500, Observation::Waiting),
        (9_000, Observation::Tick),
        (10_000, Observation::Awake),
        (10_050, Observation::Tick),
        (10_099, Observation::Tick),
        (10_100, Observation::Tick),
    ];
    let got = levels(Config::supervised(), &script);
    assert_eq!(got, ["none", "none", "none", "none", "none", "none", "warn"]);
}

#[test]
fn oscillating_progress_is_no_progress() {
    let script: Vec<_> = (0..30)
        .map(|step| (step * 60, state("IMPL", 40 + 10 * u8::from(step % 2 == 0), 1)))
        .collect();
    assert_eq!(levels(Config::supervised(), &script).last(), Some(&"pause"));
}

#[test]
fn counting_iterations_is_no_progress() {
    // The agent counts up, the work stands still.
    let script: Vec<_> = (1..=7)
        .flat_map(|count| {
            [
                (count, state("IMPL", 50, u32::try_from(count).unwrap())),
                (count, Observation::IterationEnded { iteration: u32::try_from(count).unwrap() }),
            ]
        })
        .collect();
    let got = levels(Config::supervised(), &script);
    // The first iteration had evidence: the state was new.
    let after: Vec<&str> = got.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(after, ["none", "none", "none", "warn", "warn", "pause", "pause"]);
}

#[test]
fn a_human_resets_everything() {
    let mut script: Vec<_> = (0..7).map(|step| (step, state("IMPL", 50, 1))).collect();
    script.push((8, Observation::Human));
    script.push((9, state("IMPL", 50, 1)));
    let got = levels(Config::supervised(), &script);
    assert_eq!(&got[6..], ["abort", "none", "none"]);
}

#[test]
fn each_change_is_reported_once() {
    let mut monitor = Monitor::new(at(0), Config::supervised());
    let changes: Vec<_> = (0..10)
        .filter_map(|step| monitor.observe(at(step), &state("IMPL", 50, 1)))
        .map(|c| c.to)
        .collect();
    assert_eq!(changes, [Level::Warn, Level::Pause, Level::Abort]);
    let back = monitor.observe(at(20), &state("VERIFY", 60, 1)).unwrap();
    assert_eq!((back.from, back.to), (Level::Abort, Level::None));
}

#[test]
fn nothing_is_watched_unless_enabled() {
    let script: Vec<_> = (0..20).map(|step| (step * 1_000, state("IMPL", 50, 1))).collect();
    assert!(levels(Config::default(), &script).iter().all(|level| *level == "none"));
}

#[test]
fn legitimate_polling_changes_the_tree() {
    let script: Vec<_> = (0..10)
        .map(|step| {
            let fingerprint = Some(format!("tree-{step}"));
            let state = Observation::State {
                phase: "IMPL".into(),
                progress: Some(50),
                iteration: 1,
                fingerprint,
            };
            (step * 300, state)
        })
        .collect();
    assert!(levels(Config::supervised(), &script).iter().all(|level| *level == "none"));
}

#[test]
fn repetitions_that_were_joined_count_each() {
    for (times, level) in
        [(2, "none"), (3, "warn"), (5, "pause"), (7, "abort"), (u32::MAX, "abort")]
    {
        let mut monitor = Monitor::new(at(0), Config::supervised());
        monitor.observe_times(at(1), &state("IMPL", 50, 1), times);
        assert_eq!(monitor.level().as_str(), level, "{times}");
        assert_eq!(monitor.cause(at(1)).is_some(), level != "none", "{times}");
        monitor.observe_times(at(2), &state("IMPL", 60, 1), 1);
        assert_eq!(monitor.level(), Level::None, "progress ends it");
    }
}
