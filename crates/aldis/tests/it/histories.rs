//! What older releases wrote is still read and gone on with.
//!
//! `scripts/record-history` made the files in `testdata/histories` with each release's own binary.
//! They are never changed. That they are decided as they were is tested where decisions are made, in
//! `aldis-engine`.

mod going_on;
mod journal;
mod release;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use serde_json::Value;

use self::journal::{Journal, journals, versions};
use self::release::Release;

/// Returns a project with the database of this release, as it was written.
#[cfg(target_os = "linux")]
pub(crate) fn unpacked(version: &str) -> crate::phases::project::Project {
    Release::new(version).project
}

/// Histories that reach less than this do not protect what they are kept for.
#[test]
fn histories_reach_every_rule_event_and_effect() {
    let mut found: BTreeMap<String, [BTreeSet<String>; 3]> = BTreeMap::new();
    for journal in journals("v0.1.0") {
        let [rules, events, effects] = found.entry(journal.header.machine.clone()).or_default();
        events.extend(journal.events.iter().map(|event| event.kind.clone()));
        for decision in &journal.decisions {
            rules.insert(text(&decision.body["rule"]));
            let listed = decision.body["effects"].as_array();
            effects.extend(listed.into_iter().flatten().map(|effect| text(&effect["effect"])));
        }
        let performed = journal.effects.iter().filter(|effect| effect.body["effect"].is_string());
        effects.extend(performed.map(|effect| text(&effect.body["effect"])));
    }
    for (machine, rules, events, effects) in REACHED {
        let found = found.remove(*machine).unwrap();
        for (what, found, wanted) in [
            ("rules", &found[0], rules),
            ("events", &found[1], events),
            ("effects", &found[2], effects),
        ] {
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            let wanted: Vec<&str> = wanted.split(' ').collect();
            assert_eq!(found, wanted, "{what} of {machine}");
        }
    }
    assert_eq!(found.len(), 0, "other machines");
}

#[test]
fn the_database_of_every_release_is_read() {
    for version in versions() {
        let release = Release::new(&version);
        let listed = release.project.run(&["status", "--json"]);
        assert_eq!(listed.code, 0, "{}", listed.text());
        let all = release.project.run(&["status", "--all", "--json"]);
        assert_eq!((all.code, &*all.stderr), (0, ""), "{}", all.text());
        assert_eq!(all.json().len(), release.journals.len(), "{version}");
        let half = release.journals.len() / 2;
        let (one, other) = release.journals.split_at(half);
        thread::scope(|scope| {
            for journals in [one, other] {
                let release = &release;
                scope.spawn(move || journals.iter().for_each(|run| assert_known(release, run)));
            }
        });
    }
}

/// All that is asked about a run is answered.
fn assert_known(release: &Release, journal: &Journal) {
    let (file, id) = (&journal.file, &*journal.header.run);
    let status = release.project.run(&["status", id, "--json"]);
    assert_eq!((status.code, status.json().len()), (0, 1), "{file}: {}", status.text());
    if let Some(active) = status.json()[0].get("active") {
        assert_eq!(active, journal.header.active, "{file}");
    }
    let log = release.project.run(&["log", id, "--json", "--lines", "100000"]);
    assert_eq!(log.code, 0, "{file}: {}", log.text());
    assert_eq!(log.json().len(), journal.decisions.len(), "{file}");
    let decided = !journal.decisions.is_empty();
    let why = release.project.run(&["why", id, "--json"]);
    assert_eq!(why.code, i32::from(!decided), "{file}: {}", why.text());
    assert_eq!(why.json().len(), usize::from(decided), "{file}");
    assert_replays(release, journal);
}

/// `aldis replay` says that today's machine does the same, or what it does otherwise.
#[track_caller]
fn assert_replays(release: &Release, journal: &Journal) {
    let file = &journal.file;
    let done = release.project.run(&["replay", &journal.header.run]);
    let same = done.stdout.contains("the same today");
    assert_eq!((done.code, &*done.stderr), (i32::from(!same), ""), "{file}: {}", done.text());
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The rules, events and effects of each machine when 0.1.0 was released, all of them.
const REACHED: &[(&str, &str, &str, &str)] = &[
    (
        "delivery",
        "delivery/abort delivery/also delivery/answer delivery/audit-failed delivery/begin \
         delivery/budget delivery/checkpoint delivery/complete delivery/conflict \
         delivery/dispatch delivery/end delivery/expanded delivery/expert delivery/failed \
         delivery/incomplete delivery/late delivery/limit delivery/merge delivery/merge-failed \
         delivery/pause delivery/plan delivery/question delivery/ready delivery/recover \
         delivery/refused delivery/remediation delivery/reopen delivery/resume \
         delivery/review-failed delivery/review-passed delivery/stagnation delivery/timeout \
         delivery/unknown delivery/used-up",
        "abort active answer begin expert_checked finished heard limited merged pause recovered \
         reopen resume spent start tick waiting worked",
        "ask check_expert dispatch end finish merge notice request wake",
    ),
    (
        "phases",
        "phases/3 phases/4 phases/5 phases/6 phases/7 phases/cancel phases/cap phases/hold \
         phases/listen phases/resume phases/start phases/state",
        "adopt cancel edited interrupted prompt responded resume session_end session_start start \
         stop stop_failed subagent_stop",
        "allow block context write_view",
    ),
    (
        "run",
        "run/1 run/2 run/3 run/4 run/5 run/6 run/abort run/answer run/budget run/grace run/limit \
         run/listen run/pause run/recover run/reopen run/resume run/stagnation/abort \
         run/stagnation/none run/stagnation/pause run/stagnation/warn run/timeout",
        "abort answer begin checked exited heard launched limited looked missed pause recovered \
         refused reopen resume retrying spent start tick worked",
        "ask check continue end finish keep_work look notice start suspend",
    ),
    (
        "turns",
        "turns/added turns/adopted turns/answer turns/closed turns/configured turns/crashed \
         turns/free turns/grace turns/held turns/inject turns/interrupt turns/late turns/next \
         turns/not_active turns/parallel turns/paused turns/phrase turns/recovery turns/removed \
         turns/resumed turns/said turns/signal turns/silence turns/start turns/timeout \
         turns/unanswered",
        "add adopt close configure crashed human next pause recovered remove resume said start \
         wake",
        "deliver notify post warn",
    ),
];
