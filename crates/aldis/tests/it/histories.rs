//! What older releases wrote is still read, decided in the same way, and gone on with.
//!
//! `scripts/record-history` made the files in `testdata/histories` with each release's own binary.
//! They are never changed. Where today's machines decide otherwise, [`DIFFERENCES`] says so by name.

mod going_on;
mod journal;
mod release;
mod replay;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
/// Rules and members have other names today, and sentences other words; neither is a difference. A
/// `*` stands for any text, so that one line can name what is different everywhere. Every line needs
/// a comment that says why, and a line that names nothing any more has to go.
const DIFFERENCES: &[(&str, &str)] = &[
    // Notes, questions and failures are sentences, and questions have their one line apart.
    ("v0.1.0/delivery-*.jsonl", "part task/*: notes"),
    ("v0.1.0/delivery-*.jsonl", "part task/*: last_failure"),
    ("v0.1.0/delivery-*.jsonl", "state: questions"),
    ("v0.1.0/delivery-*.jsonl", "state: remediation"),
    // How many findings were open after each review and each audit is kept, and the line of a
    // finding is part of it.
    ("v0.1.0/delivery-*.jsonl", "part task/*: ledger"),
    // The last report that did not count is kept.
    ("v0.1.0/delivery-*.jsonl", "part task/*: last_refused"),
    // Decisions that had no evidence have the signal that led to them.
    ("v0.1.0/delivery-served-*.jsonl", "decision *: evidence"),
    // No agent is started before all experts that the planner created were looked for.
    ("v0.1.0/delivery-planned.jsonl", "decision 780: missing"),
    ("v0.1.0/delivery-planned.jsonl", "decision after 782: delivery/agent-started"),
    ("v0.1.0/delivery-planned.jsonl", "effect cftqnrcv/5/2: missing"),
    ("v0.1.0/delivery-planned.jsonl", "effect after cftqnrcv/8/0: dispatch"),
    ("v0.1.0/delivery-planned.jsonl", "state: worked_millis"),
    ("v0.1.0/delivery-served-experts.jsonl", "decision 1094: effects"),
    ("v0.1.0/delivery-served-experts.jsonl", "decision 1097: missing"),
    ("v0.1.0/delivery-served-experts.jsonl", "decision 1099: effects"),
    ("v0.1.0/delivery-served-experts.jsonl", "decision after 1099: delivery/agent-started"),
    ("v0.1.0/delivery-served-experts.jsonl", "state: worked_millis"),
    // A signal about another task is named although the reply holds one that counts.
    ("v0.1.0/delivery-served-refusals.jsonl", "decision after 1206: delivery/signal-refused"),
    ("v0.1.0/delivery-served-refusals.jsonl", "decision 1207: effects"),
    ("v0.1.0/delivery-served-refusals.jsonl", "decision 1207: source"),
    // A checkpoint counts from any role that was asked for one.
    ("v0.1.0/delivery-served-repair.jsonl", "decision after 1060: delivery/unknown-reply"),
    ("v0.1.0/delivery-served-repair.jsonl", "decision 1061: effects"),
    ("v0.1.0/delivery-served-repair.jsonl", "decision 1061: rule"),
    // A checkpoint does not take back that replies held no signal.
    ("v0.1.0/delivery-served-unknown.jsonl", "decision *"),
    ("v0.1.0/delivery-served-unknown.jsonl", "state: interrupted"),
    // The last claim that did not count is kept.
    ("v0.1.0/phases-*.jsonl", "state: last_refused"),
    // What a sub-agent may not report is a rule of its own.
    ("v0.1.0/phases-subagents.jsonl", "decision 47: rule"),
    ("v0.1.0/phases-subagents.jsonl", "decision 48: rule"),
    // Starts are counted, and when progress was recorded last is known.
    ("v0.1.0/run-*.jsonl", "state: starts"),
    ("v0.1.0/run-*.jsonl", "state: progress_recorded_at"),
    // Feedback is given again until an iteration that had it was completed.
    ("v0.1.0/run-*.jsonl", "state: feedback"),
    ("v0.1.0/run-*.jsonl", "state: feedback_given"),
    // An ending knows why the agent was stopped and which claim did not count last.
    ("v0.1.0/run-*.jsonl", "state: stop_because"),
    ("v0.1.0/run-*.jsonl", "state: last_refusal"),
    ("v0.1.0/run-*.jsonl", "state: last_near_miss"),
    // How the work tree was when the run began is kept.
    ("v0.1.0/run-*.jsonl", "state: base_fingerprint"),
    // A refused claim and a failed check are decisions of their own.
    ("v0.1.0/run-*.jsonl", "decision after *: run/claim-refused"),
    ("v0.1.0/run-*.jsonl", "decision after *: run/check-failed"),
    ("v0.1.0/run-*.jsonl", "decision *: evidence"),
    ("v0.1.0/run-resolved.jsonl", "decision 431: rule"),
    ("v0.1.0/run-resolved.jsonl", "decision after 431: run/attempts-used-up"),
    ("v0.1.0/run-served-all.jsonl", "decision 952: *"),
    // So is success after failure in one message.
    ("v0.1.0/run-gave-up.jsonl", "decision after 293: run/contradiction"),
    // A changed work tree is evidence.
    ("v0.1.0/run-no-op.jsonl", "state: monitor"),
    ("v0.1.0/run-required.jsonl", "state: monitor"),
    ("v0.1.0/run-resolved.jsonl", "state: monitor"),
    // A crashed agent is started again, twice.
    ("v0.1.0/run-crashed.jsonl", "decision 245: *"),
    ("v0.1.0/run-crashed.jsonl", "decision 249: *"),
    ("v0.1.0/run-crashed.jsonl", "effect *: missing"),
    ("v0.1.0/run-missing.jsonl", "decision 256: *"),
    ("v0.1.0/run-missing.jsonl", "effect *: missing"),
    ("v0.1.0/run-missing.jsonl", "state: *"),
    // The end of an agent that was stopped by an abort is a decision.
    ("v0.1.0/run-killed-ending.jsonl", "decision after 484: run/aborted"),
    // An iteration that a limit ended is repeated.
    ("v0.1.0/run-limited.jsonl", "state: iteration_unfinished"),
    // Progress that only moves a number is recorded once in ten seconds.
    ("v0.1.0/run-served-all.jsonl", "decision *: missing"),
    // Time in which a stalled run was paused counts.
    ("v0.1.0/run-stagnation-paused.jsonl", "state: waited_ms"),
    // A timeout names who has the next turn.
    ("v0.1.0/turns-*.jsonl", "state: history"),
    // A message that was refused is no activity.
    ("v0.1.0/turns-interrupt.jsonl", "state: agents"),
    // All counters of an adopted channel are shown.
    ("v0.1.0/turns-posted.jsonl", "decision 911: counters"),
];
/// Members of stored states that hold or depend on sentences, and are compared without them.
const REWORDED: &[&str] = &["block_limit", "last_error"];

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

/// `aldis replay` finds what is stored, or only such differences as are known.
#[track_caller]
fn assert_replays(release: &Release, journal: &Journal) {
    let file = &journal.file;
    let done = release.project.run(&["replay", &journal.header.run]);
    if done.code == 0 {
        assert!(done.stdout.contains("the same today"), "{file}: {}", done.text());
        return;
    }
    assert_eq!((done.code, &*done.stderr), (1, ""), "{file}: {}", done.text());
    if replay(journal).looks > 0 {
        return;
    }
    let of_file: Vec<&str> = DIFFERENCES
        .iter()
        .filter(|(files, _)| matches(files, file))
        .map(|(_, what)| *what)
        .collect();
    for line in done.stdout.lines() {
        if let Some(members) = line.strip_prefix("the state differs: ") {
            let known = |member: &str| {
                let whole = ["run", "tasks"].contains(&member);
                whole
                    || REWORDED.contains(&member)
                    || of_file.iter().any(|what| matches(what, &format!("state: {member}")))
            };
            let unknown = members.split(", ").find(|member| !known(member));
            assert_eq!(unknown, None, "{file}: {}", done.text());
        } else {
            let listed = of_file.iter().any(|what| what.starts_with("decision"));
            assert!(listed, "{file}: {}", done.text());
        }
    }
}

/// Says where today's machine is not as recorded.
fn differences(journal: &Journal, now: &Replayed) -> Vec<String> {
    let mut found = Vec::new();
    let then = recorded(journal);
    let names = journal.decisions.iter().map(|decision| decision.seq.to_string());
    compare_all(&mut found, ("decision", Kind::Decision), names, (&then.decisions, &now.decisions));
    if journal.header.driver != Driver::Server {
        let kept = journal.effects.iter().filter(|effect| effect.body["effect"] != "wake");
        let names = kept.map(|effect| effect.key.clone());
        compare_all(&mut found, ("effect", Kind::Effect), names, (&then.effects, &now.effects));
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
    (what, kind): (&str, Kind),
    names: impl Iterator<Item = String>,
    (then, now): (&[Dated], &[Dated]),
) {
    let mut then: VecDeque<(String, &Dated)> = names.zip(then).collect();
    let mut now: VecDeque<&Dated> = now.iter().collect();
    let mut last = "the start".to_owned();
    while let (Some((key, (at, then_body))), Some((now_at, now_body))) = (then.front(), now.front())
    {
        let of_step = |(other, _): &&Dated| other == at;
        let came_later = |(_, body): &Dated| kind.is_same(then_body, body);
        let went_before = |(_, (_, body)): &(String, &Dated)| kind.is_same(body, now_body);
        let is_same = at == now_at && kind.is_same(then_body, now_body);
        let is_more = !is_same && now.iter().copied().take_while(of_step).any(came_later);
        let mut rest = then.iter().take_while(|(_, (other, _))| other == at);
        if now_at < at || is_more {
            found.push(format!("{what} after {last}: {}", kind.name(now_body)));
            now.pop_front();
        } else if now_at > at || !is_same && rest.any(went_before) {
            found.push(format!("{what} {key}: missing"));
            then.pop_front();
        } else {
            compare(found, &format!("{what} {key}"), then_body, now_body);
            last.clone_from(key);
            then.pop_front();
            now.pop_front();
        }
    }
    found.extend(then.iter().map(|(key, _)| format!("{what} {key}: missing")));
    found.extend(now.iter().map(|(_, now)| format!("{what} after {last}: {}", kind.name(now))));
}

/// A decision or an effect with the time of its step.
type Dated = (Timestamp, Value);

/// What is compared one by one.
#[derive(Clone, Copy)]
enum Kind {
    Decision,
    Effect,
}

impl Kind {
    fn name(self, value: &Value) -> String {
        match self {
            Self::Decision => text(&value["rule"]["id"]),
            Self::Effect => text(&value["effect"]),
        }
    }

    fn is_same(self, then: &Value, now: &Value) -> bool {
        match self {
            Self::Decision => is_same(&then["rule"], &now["rule"]),
            Self::Effect => then["effect"] == now["effect"] && then["notice"] == now["notice"],
        }
    }
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
    let unlisted = |journal: &Journal, now: &Replayed| -> Vec<String> {
        let found = differences(journal, now).into_iter();
        found.filter(|what| listed(&journal.file, what).next().is_none()).collect()
    };
    assert_eq!(unlisted(journal, &now), [""; 0]);
    let (first, last) = (journal.decisions[0].seq, journal.decisions.last().unwrap().seq);
    journal.decisions[0].body["counters"] = json!({ "iteration": 7 });
    journal.effects[1].body["iteration"] = 7.into();
    journal.state["state"]["iteration"] = 7.into();
    let key = journal.effects[1].key.clone();
    let named = [
        format!("decision {first}: counters"),
        format!("effect {key}: iteration"),
        "state: iteration".to_owned(),
    ];
    assert_eq!(unlisted(journal, &now), named);
    journal.decisions[0].body["rule"] = "run/abort".into();
    let otherwise = format!("decision {first}: rule");
    assert!(unlisted(journal, &now).contains(&otherwise), "{otherwise}");
    let dropped = journal.decisions.pop().unwrap();
    let before = journal.decisions.last().unwrap().seq;
    let more = format!("decision after {before}: run/done");
    assert!(unlisted(journal, &now).contains(&more), "{more}");
    journal.decisions.push(dropped);
    let fewer = now.decisions.len() - 1;
    let fewer = Replayed { decisions: now.decisions[..fewer].to_vec(), ..now };
    let missing = format!("decision {last}: missing");
    assert!(unlisted(journal, &fewer).contains(&missing), "{missing}");
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
