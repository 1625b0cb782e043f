//! Every rule is reached, and every sentence it leads to is read by somebody before it changes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;
use crate::proof::{
    ChangeKind, CheckOutput, CheckResult, CheckStatus, FileChange, FileClass, Inspection, OnChange,
    OpinionVerdict, RedFirst,
};
use crate::{Decision, proof};

/// A scenario: its name, the limits it changes, and its events. The work tree is inspected whenever
/// the machine wants that, and nothing has changed there.
type Scenario = (&'static str, fn(&mut Config), Vec<(i64, Event)>);

fn text(text: &str) -> String {
    text.to_owned()
}

fn reported(text: &str) -> Event {
    Event::Reported { signals: reports("chorus", text) }
}

fn by(by: &str) -> String {
    by.to_owned()
}

fn denied() -> Event {
    let [tool, what, cure] =
        ["Bash", "npm test", "allow it: `aldis run --continue 7f3k --allow Bash`"]
            .map(str::to_owned);
    Event::PermissionDenied { tool, what, cure }
}

fn crashed() -> Event {
    Event::Exited(AgentExit { code: Some(42), signal: None, output: text("disk full") })
}

fn checked(passed: bool) -> Event {
    let output = if passed { "" } else { "2 of 118 tests failed" };
    Event::Checked { passed, output: text(output) }
}

fn limited() -> Event {
    Event::Limited { what: text("usage limit reached"), until: Some(at(7_200)) }
}

fn spent(tokens: u64) -> Event {
    Event::Spent(Usage { tokens, micro_dollars: 0 })
}

fn answer() -> Event {
    Event::Answer { id: text("q1"), text: text("Drop it."), by: by("`aldis answer`") }
}

fn reopen() -> Event {
    Event::Reopen { config: Box::default() }
}

const DONE: &str = "<chorus>COMPLETE</chorus>";
const ASKS: &str = "<chorus>NEEDS_HUMAN: keep or drop?</chorus>";

/// How iterations end.
fn iterations() -> Vec<Scenario> {
    let launched = Event::Launched { agent: text("1") };
    let contradiction = Event::Reported {
        signals: reports(
            "pilot",
            "```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"success\":false}\n```\n```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"success\":true}\n```\n",
        ),
    };
    let failed = Event::Reported {
        signals: reports(
            "pilot",
            "```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"success\":false,\"reason\":\"no way\"}\n```\n",
        ),
    };
    let progress = reported("<chorus>PROGRESS: 45</chorus>");
    vec![
        ("done", |_| {}, vec![(1, launched), (2, progress), (3, reported(DONE)), (4, clean())]),
        (
            "checked",
            |config| config.verify = true,
            vec![
                (1, reported(DONE)),
                (2, clean()),
                (3, checked(false)),
                (4, reported(DONE)),
                (5, clean()),
                (6, checked(true)),
            ],
        ),
        (
            "claims that do not hold, until the iterations are used up",
            |config| (config.require_commit, config.max_iterations) = (true, 2),
            vec![(1, reported(DONE)), (2, clean()), (3, clean())],
        ),
        (
            "only near misses",
            |config| config.max_iterations = 1,
            vec![(1, Event::NearMiss { hint: text("write the tag as plain text") }), (2, clean())],
        ),
        ("nothing", |config| config.max_iterations = 1, vec![(1, clean())]),
        ("contradiction", |_| {}, vec![(1, contradiction), (2, clean())]),
        ("blocked", |_| {}, vec![(1, reported("<chorus>BLOCKED: no key</chorus>")), (2, clean())]),
        ("gave up", |_| {}, vec![(1, failed), (2, clean())]),
        (
            "crashed",
            |config| config.max_crashes = 1,
            vec![(1, crashed()), (11, Event::Tick), (12, crashed())],
        ),
        ("not started", |_| {}, vec![(1, Event::LaunchFailed { what: text("no program `x`") })]),
        (
            "the host failed",
            |_| {},
            vec![
                (1, Event::Retrying { what: text("529 overloaded") }),
                (2, Event::HostFailed { what: text("OAuth token has expired") }),
                (3, clean()),
            ],
        ),
        ("denied", |_| {}, vec![(1, denied()), (2, denied()), (3, clean())]),
    ]
}

/// A second opinion that refuses, and then accepts.
fn opinions() -> Vec<(i64, Event)> {
    let inspected = || Event::Inspected(Box::default());
    let passed = || Event::CheckEnded(Box::new(CheckResult::new("", "make", CheckStatus::Passed)));
    let says = |verdict| {
        let opinion = proof::Opinion::new("./judge", verdict, "export.rs has no test");
        Event::OpinionGiven(proof::Opinion { micro_dollars: Some(20_000), ..opinion })
    };
    vec![
        (1, Event::Looked(WorkTree::default())),
        (1, inspected()),
        (2, reported(DONE)),
        (3, clean()),
        (4, inspected()),
        (5, passed()),
        (6, says(OpinionVerdict::Refuse)),
        (7, reported(DONE)),
        (8, clean()),
        (9, inspected()),
        (10, passed()),
        (11, says(OpinionVerdict::Accept)),
    ]
}

/// What checks say, before the work and after a claim.
fn checks() -> Vec<Scenario> {
    let looked = || Event::Looked(WorkTree::default());
    let bent = || {
        let change = FileChange {
            path: text("scripts/test"),
            part: None,
            class: FileClass::Own,
            kind: ChangeKind::Changed,
            before: None,
            after: None,
        };
        Event::Inspected(Box::new(Inspection { changes: vec![change], ..Inspection::default() }))
    };
    let inspected = || Event::Inspected(Box::default());
    let ended = |name: &str, status: CheckStatus| {
        let tail = if status == CheckStatus::Passed { "" } else { "2 of 118 tests failed" };
        let output = CheckOutput { tail: text(tail), ..CheckOutput::default() };
        let result = CheckResult { output, ..CheckResult::new(name, "make", status) };
        Event::CheckEnded(Box::new(result))
    };
    let passed = |name: &str| ended(name, CheckStatus::Passed);
    let claims = || [(2, reported(DONE)), (3, clean())];
    let mut asked =
        vec![(1, looked()), (1, inspected()), (1, passed("build")), (1, passed("unit"))];
    asked.extend(claims());
    asked.extend([(4, bent()), (5, passed("build")), (6, passed("unit")), (7, answer())]);
    let mut refused = vec![(1, looked()), (1, inspected())];
    refused.extend(claims());
    refused.extend([(4, bent()), (5, reported(DONE)), (6, clean()), (7, inspected())]);
    refused.extend([(8, ended("", CheckStatus::Failed)), (9, passed(""))]);
    vec![
        (
            "checks that prove nothing, and a human who is asked",
            |config| {
                let check = |name: &str, needs: &[&str]| proof::Check {
                    name: text(name),
                    needs: needs.iter().map(|need| text(need)).collect(),
                    ..proof::Check::unnamed("make")
                };
                config.proof.checks = vec![check("build", &[]), check("unit", &["build"])];
                config.proof.red_first = RedFirst::Warn;
                config.proof.on_change = Some(OnChange::Ask);
            },
            asked,
        ),
        (
            "a check that was bent, and then is flaky",
            |config| config.proof = proof::Config { repeat: 1, ..proof::Config::unnamed("make") },
            refused,
        ),
        (
            "a second opinion",
            |config| {
                let judge = Some(text("./judge"));
                config.proof = proof::Config { judge, ..proof::Config::unnamed("make") };
            },
            opinions(),
        ),
        (
            "a check that must fail first",
            |config| {
                let red_first = RedFirst::Strict;
                config.proof = proof::Config { red_first, ..proof::Config::unnamed("make") };
            },
            vec![(1, looked()), (1, inspected()), (1, passed(""))],
        ),
    ]
}

/// Limits, and missing progress.
fn limits() -> Vec<Scenario> {
    let resolved = || reported("<chorus>RESOLVED</chorus>");
    vec![
        (
            "waiting for the service",
            |config| config.max_limit_waits = 1,
            vec![
                (1, limited()),
                (2, clean()),
                (7_200, Event::Tick),
                (7_201, limited()),
                (7_202, clean()),
            ],
        ),
        (
            "over budget",
            |config| config.max_tokens = Some(900),
            vec![(1, spent(600)), (2, spent(900)), (3, clean())],
        ),
        (
            "out of time",
            |config| (config.timeout, config.iteration_timeout) = (250, 100),
            vec![(100, Event::Tick), (101, clean()), (250, Event::Tick), (251, clean())],
        ),
        ("still running", |_| {}, vec![(1, reported(DONE)), (31, Event::Tick), (32, clean())]),
        (
            "a merge that is not resolved",
            |config| (config.verify, config.max_attempts) = (true, 1),
            vec![(1, resolved()), (2, clean()), (3, checked(false))],
        ),
        (
            "no progress",
            |config| config.iteration_timeout = 10_000,
            vec![
                (600, Event::Tick),
                (700, Event::Activity),
                (1_900, Event::Tick),
                (5_500, Event::Tick),
                (5_501, clean()),
            ],
        ),
        (
            "the same state again and again",
            |_| {},
            (1..=7)
                .map(|now| (now, reported("<chorus>PROGRESS: 40</chorus>")))
                .chain([(8, clean())])
                .collect(),
        ),
        ("idle iterations", |_| {}, (1..=7).map(|now| (now, clean())).collect()),
    ]
}

/// What humans want, and supervisors that are gone.
fn humans() -> Vec<Scenario> {
    let tell = Event::Tell { text: text("Mind the tests."), by: by("`aldis tell`") };
    vec![
        (
            "a question",
            |_| {},
            vec![(1, reported(ASKS)), (2, clean()), (3, Event::Recovered), (4, answer())],
        ),
        (
            "a question that nobody waits for",
            |config| config.no_wait = true,
            vec![(1, reported(ASKS)), (2, clean()), (3, answer()), (4, reopen())],
        ),
        (
            "a question that is asked again",
            |config| config.no_wait = true,
            vec![(1, reported(ASKS)), (2, clean()), (3, reopen())],
        ),
        (
            "humans",
            |_| {},
            vec![
                (1, tell),
                (2, Event::Pause { by: by("`aldis pause`") }),
                (3, Event::Resume { by: String::new() }),
                (4, Event::Abort { by: by("Ctrl-C") }),
                (5, clean()),
                (6, reopen()),
            ],
        ),
        (
            "aborted while no agent runs",
            |_| {},
            vec![(1, reported(ASKS)), (2, clean()), (3, Event::Abort { by: by("`aldis abort`") })],
        ),
        (
            "a supervisor that was killed",
            |_| {},
            vec![
                (1, Event::Recovered),
                (2, Event::Abort { by: by("Ctrl-C") }),
                (3, Event::Recovered),
            ],
        ),
    ]
}

fn play((name, change, events): Scenario, shown: &mut String, reached: &mut BTreeSet<String>) {
    let _ = writeln!(shown, "# {name}\n");
    let mut state = begun(change);
    for (now, event) in events {
        let outcome = send(&mut state, now, &event);
        for decision in outcome.decisions {
            let Decision { rule, summary, because, remedy, .. } = &decision;
            let _ = writeln!(shown, "{rule}\n  {summary}\n  {because}\n  -> {remedy}");
            reached.insert(decision.rule);
        }
        for effect in outcome.effects {
            match effect {
                Effect::Notice { notice, text } => {
                    let _ = writeln!(shown, "notice {}: {text}", notice.as_str());
                }
                Effect::Ask { id, text, .. } => drop(writeln!(shown, "ask {id}: {text}")),
                _ => {}
            }
        }
    }
    shown.push('\n');
}

#[test]
fn every_sentence() {
    let (mut shown, mut reached) = (String::new(), BTreeSet::new());
    for scenario in iterations().into_iter().chain(checks()).chain(limits()).chain(humans()) {
        play(scenario, &mut shown, &mut reached);
    }
    insta::assert_snapshot!(shown);
    let all: BTreeSet<String> = Rule::ALL.iter().map(|rule| rule.as_str().to_owned()).collect();
    // The first event of every scenario starts the first iteration.
    reached.insert(Rule::IterationStarted.into());
    let missing: Vec<_> = all.difference(&reached).collect();
    assert!(missing.is_empty(), "no scenario reaches {missing:?}");
}

/// Sentences for people: no metaphors of hearing, nothing that did not happen.
#[test]
fn sentences_are_plain() {
    let (mut shown, mut reached) = (String::new(), BTreeSet::new());
    for scenario in iterations().into_iter().chain(checks()).chain(limits()).chain(humans()) {
        play(scenario, &mut shown, &mut reached);
    }
    for word in ["heard", "hear ", "in vain", "whoever", "somebody", "goes on", "told"] {
        assert!(!shown.to_lowercase().contains(word), "{word}");
    }
    for (count, noun) in [("1 iterations", "iteration"), ("1 attempts", "attempt")] {
        assert!(!shown.contains(&format!(" {count}")), "{noun}");
    }
}
