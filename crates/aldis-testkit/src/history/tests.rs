//! A sound history, and each kind of error planted in it.

use serde_json::json;

use super::*;

/// One task: its developer is lost once, then developer, critic and auditor report, and it is merged.
fn sound() -> History {
    let finished = |agent: u64, fence: u64| {
        json!({"event": "worker", "agent": agent, "fence": fence,
               "report": {"event": "finished", "agent": agent}})
    };
    let claimed = |agent: u64, fence: u64| json!({"event": "claimed", "agent": agent, "worker": "w", "fence": fence});
    let bodies = [
        (1, json!({"event": "start", "start": {"plan": {"tasks": [{"id": "t"}]}}})),
        (2, json!({"event": "begin"})),
        (3, claimed(1, 1)),
        (4, claimed(1, 2)),
        (5, json!({"event": "tell", "text": "hurry"})),
        (6, finished(1, 1)),
        (7, finished(1, 2)),
        (8, claimed(2, 1)),
        (9, finished(2, 1)),
        (10, claimed(3, 1)),
        (11, finished(3, 1)),
        (12, json!({"event": "merged", "task": "t", "ok": true})),
    ];
    let events =
        (1..).zip(bodies).map(|(seq, (revision, body))| HistoryEvent { seq, revision, body });
    let decided = |revision, rule: &str| HistoryDecision {
        revision,
        rule: rule.to_owned(),
        task: Some("t".to_owned()),
    };
    History {
        tasks: vec!["t".to_owned()],
        events: events.collect(),
        decisions: vec![
            decided(4, "delivery/worker-lost"),
            decided(6, "delivery/late-signal"),
            decided(7, "delivery/ready-for-review"),
            decided(9, "delivery/review-passed"),
            decided(11, "delivery/merge-started"),
            decided(12, COMPLETE),
        ],
        acknowledged: vec!["hurry".to_owned()],
    }
}

/// The violations of the sound history after this was done to it.
fn after(plant: impl FnOnce(&mut History)) -> Vec<Violation> {
    let mut history = sound();
    plant(&mut history);
    history.check()
}

#[test]
fn a_sound_history_has_no_violations() {
    assert_eq!(after(|_| {}), []);
}

#[test]
fn every_planted_error_is_found() {
    let task = || "t".to_owned();
    let twice =
        after(|it| it.decisions.push(HistoryDecision { revision: 12, ..it.decisions[5].clone() }));
    assert_eq!(twice, [Violation::Completed(task(), 2)]);
    let never = after(|it| drop(it.decisions.pop()));
    assert_eq!(never, [Violation::Completed(task(), 0)]);
    let lost = after(|it| it.events[4].body["text"] = json!("other"));
    assert_eq!(lost, [Violation::Lost("hurry".to_owned(), 0)]);
    let gap = after(|it| drop(it.events.remove(4)));
    assert_eq!(gap, [Violation::Gap(5), Violation::Lost("hurry".to_owned(), 0)]);
    // The result of the worker that lost the agent counted, and so did that of its successor.
    let late = after(|it| it.decisions[1].rule = "delivery/ready-for-review".to_owned());
    assert_eq!(late, [Violation::Unfounded(6, "delivery/ready-for-review".to_owned())]);
    // Two workers had one agent under the same number.
    let same = after(|it| it.events[3].body["fence"] = json!(1));
    assert!(same.contains(&Violation::OldClaim(1, 1)), "{same:?}");
    let unclaimed = after(|it| it.events[7].body["agent"] = json!(9));
    assert!(unclaimed.contains(&Violation::NoClaim(2, 1)), "{unclaimed:?}");
    let second = after(|it| {
        it.decisions.push(HistoryDecision {
            revision: 8,
            rule: "delivery/review-passed".to_owned(),
            task: Some(task()),
        });
    });
    assert_eq!(second, [Violation::Unfounded(8, "delivery/review-passed".to_owned())]);
}
