//! What older releases wrote is still read, decided in the same way, and gone on with.
//!
//! `scripts/record-history` made the files in `testdata/histories` with each release's own binary.
//! They are never changed. Where today's machines decide otherwise, [`DIFFERENCES`] says so by name.

mod going_on;
mod journal;
mod release;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use aldis_machine::{Decision, is_same_rule};
use aldis_signal::time::Timestamp;
use serde_json::{Value, json};

use self::journal::{Driver, Journal, journals, versions};
use self::release::Release;
use self::replay::{Replayed, recorded, replay};

/// What is different today, as (file, what). A file is `VERSION/NAME.jsonl`. What is different is one
/// of these, with the number or the key from the file:
///
/// * `decision SEQ: MEMBER`, `decision SEQ: missing`, `decision after SEQ: RULE`;
/// * `effect KEY: MEMBER`, `effect KEY: missing`, `effect after KEY: EFFECT`;
/// * `part KEY: MEMBER`, `part KEY: missing`, `state: MEMBER`, `timer`.
///
/// A `*` stands for any text, so that one line can name what is different everywhere. Every line
/// needs a comment that says why, and a line that names nothing any more has to go.
const DIFFERENCES: &[(&str, &str)] = &[];

#[test]
fn every_history_is_decided_as_it_was() {
    let mut used = BTreeSet::new();
    let mut unlisted = Vec::new();
    for journal in versions().iter().flat_map(|version| journals(version)) {
        for what in differences(&journal, &replay(&journal)) {
            let listed: Vec<usize> = listed(&journal.file, &what).collect();
            if listed.is_empty() {
                unlisted.push(format!("{}: {what}", journal.file));
            }
            used.extend(listed);
        }
    }
    let named = unlisted.join("\n");
    assert_eq!(named, "", "decided otherwise today, and not in DIFFERENCES");
    let lines = DIFFERENCES.iter().enumerate().filter(|(at, _)| !used.contains(at));
    let unused: Vec<_> = lines.map(|(_, line)| line).collect();
    assert!(unused.is_empty(), "the same as it was, take it out of DIFFERENCES: {unused:?}");
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

/// The stored journal leads to what is stored, unless it is known that it does not.
#[track_caller]
fn assert_replays(release: &Release, journal: &Journal) {
    if DIFFERENCES.iter().any(|(file, _)| matches(file, &journal.file)) {
        return;
    }
    let replay = release.project.run(&["replay", &journal.header.run]);
    assert_eq!(replay.code, 0, "{}: {}", journal.file, replay.text());
    assert!(replay.stdout.contains("the same today"), "{}: {}", journal.file, replay.text());
}

/// Says where today's machine is not as recorded.
fn differences(journal: &Journal, now: &Replayed) -> Vec<String> {
    let mut found = Vec::new();
    let then = recorded(journal);
    let names = journal.decisions.iter().map(|decision| decision.seq.to_string());
    compare_all(
        &mut found,
        ("decision", |it| text(&it["rule"]["id"])),
        names,
        (&then.decisions, &now.decisions),
    );
    if journal.header.driver != Driver::Server {
        let kept = journal.effects.iter().filter(|effect| effect.body["effect"] != "wake");
        let names = kept.map(|effect| effect.key.clone());
        compare_all(
            &mut found,
            ("effect", |it| text(&it["effect"])),
            names,
            (&then.effects, &now.effects),
        );
    }
    for (key, part) in &then.parts {
        match now.parts.get(key) {
            Some(now) => compare(&mut found, &format!("part {key}"), part, now),
            None => found.push(format!("part {key}: missing")),
        }
    }
    compare(&mut found, "state", &then.state, &now.state);
    if then.wake != now.wake {
        found.push("timer".to_owned());
    }
    found
}

/// Compares two lists, step by step. `names` are those of the recorded ones.
fn compare_all(
    found: &mut Vec<String>,
    (what, name): (&str, fn(&Value) -> String),
    names: impl Iterator<Item = String>,
    (then, now): (&[(Timestamp, Value)], &[(Timestamp, Value)]),
) {
    let mut then = names.zip(then).peekable();
    let mut last = "the start".to_owned();
    for (at, now) in now {
        while let Some((earlier, _)) = then.next_if(|(_, (recorded, _))| recorded < at) {
            found.push(format!("{what} {earlier}: missing"));
        }
        match then.next_if(|(_, (recorded, _))| recorded == at) {
            Some((key, (_, then))) => {
                compare(found, &format!("{what} {key}"), then, now);
                last = key;
            }
            None => found.push(format!("{what} after {last}: {}", name(now))),
        }
    }
    found.extend(then.map(|(key, _)| format!("{what} {key}: missing")));
}

/// Names the members in which two objects differ.
fn compare(found: &mut Vec<String>, what: &str, then: &Value, now: &Value) {
    let members = [then, now].into_iter().flat_map(|value| value.as_object().unwrap().keys());
    let names: BTreeSet<&String> = members.collect();
    let differing = names.into_iter().filter(|name| {
        then.get(name) != now.get(name)
            && !(*name == "rule" && is_same(&then["rule"], &now["rule"]))
    });
    found.extend(differing.map(|name| format!("{what}: {name}")));
}

/// Whether two decisions have the same rule, whatever its name was.
fn is_same(then: &Value, now: &Value) -> bool {
    let decision = |rule: &Value| {
        let (rule, summary) = (&rule["id"], &rule["summary"]);
        let decision = json!({ "rule": rule, "summary": summary, "because": "", "remedy": "" });
        serde_json::from_value::<Decision>(decision).unwrap()
    };
    is_same_rule(&decision(then), &decision(now))
}

/// The lines of the table that name a difference.
fn listed(file: &str, what: &str) -> impl Iterator<Item = usize> {
    let names = move |(_, (files, whats)): &(usize, &(&str, &str))| {
        matches(files, file) && matches(whats, what)
    };
    DIFFERENCES.iter().enumerate().filter(names).map(|(at, _)| at)
}

/// Whether a text is as a pattern says; `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| matches(rest, text)))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[test]
fn differences_are_found_and_named() {
    let mut journals = journals("v0.1.0");
    journals.retain(|journal| journal.name() == "run-done");
    let journal = &mut journals[0];
    let now = replay(journal);
    assert_eq!(differences(journal, &now), [""; 0]);
    let (first, last) = (journal.decisions[0].seq, journal.decisions.last().unwrap().seq);
    journal.decisions[0].body["summary"] = "Something else".into();
    journal.effects[1].body["more"] = true.into();
    journal.state["state"]["iteration"] = 7.into();
    let key = journal.effects[1].key.clone();
    let named = [
        format!("decision {first}: summary"),
        format!("effect {key}: more"),
        "state: iteration".to_owned(),
    ];
    assert_eq!(differences(journal, &now), named);
    let dropped = journal.decisions.pop().unwrap();
    let before = journal.decisions.last().unwrap().seq;
    let more = format!("decision after {before}: {}", text(&dropped.body["rule"]));
    assert!(differences(journal, &now).contains(&more), "{more}");
    journal.decisions.push(dropped);
    let fewer = Replayed { decisions: now.decisions[1..].to_vec(), ..now };
    let missing = format!("decision {last}: missing");
    assert!(differences(journal, &fewer).contains(&missing), "{missing}");
    for (pattern, text, want) in [
        ("*", "v0.1.0/run-done.jsonl", true),
        ("decision *: summary", "decision 12: summary", true),
        ("decision *: summary", "decision 12: rule", false),
        ("v0.1.0/run-*.jsonl", "v0.1.0/turns-inject.jsonl", false),
        ("decision 1: rule", "decision 12: rule", false),
    ] {
        assert_eq!(matches(pattern, text), want, "{pattern} and {text}");
    }
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
