//! The table is what the documentation shows, and a call decides what the same signal in a text does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::delivery::{self, AgentReply};
use crate::phases::{PhaseFinding, Pipeline, Stop, call_finding, scan_messages};
use crate::run::{self, RunSignal};
use crate::{Decision, Evidence};
use aldis_signal::message::Origin;
use aldis_signal::scan::{Rules, Token, scan};
use aldis_signal::signal::Finding;
use aldis_signal::time::Timestamp;

#[test]
fn the_documentation_shows_the_table() {
    let page = include_str!("../../../../docs/mcp.md");
    for row in TABLE {
        let roles: Vec<&str> = row.roles.iter().map(|role| role.label()).collect();
        let roles = if roles.is_empty() { "everybody".to_owned() } else { roles.join(", ") };
        let when = if row.when.is_empty() { String::new() } else { format!(" ({})", row.when) };
        let line = format!(
            "| {} | {roles} | `{}`{when} | {} |",
            row.machine,
            row.tool,
            row.becomes.label()
        );
        assert_eq!(page.matches(&line).count(), 1, "docs/mcp.md has one row {line}");
    }
    let rows = page.lines().filter(|line| {
        ["| run |", "| phases |", "| delivery |"].iter().any(|start| line.starts_with(start))
    });
    assert_eq!(rows.count(), TABLE.len(), "docs/mcp.md has a row that is not in the table");
}

#[test]
fn every_signal_of_the_table_is_one_of_its_dialect() {
    for row in TABLE {
        let (dialect, name) = match (row.machine, row.becomes) {
            (RUN, Becomes::Named(name)) => (RUN_DIALECT, name),
            (DELIVERY, Becomes::Named(name) | Becomes::Verdict(name, _)) => (DIALECT, name),
            _ => continue,
        };
        let signal = Dialect::builtin(dialect).unwrap().signal(name);
        let signal = signal.unwrap_or_else(|| panic!("{name} is no signal of {dialect}"));
        for role in row.roles {
            let kind = delivery::SignalKind::named(name).unwrap();
            assert!(kind.may_be_reported_by(*role), "{} and {}", role.label(), signal.name);
        }
    }
}

/// What a decision says, but for how the signal came and how it was written.
fn told(decisions: &[Decision]) -> Vec<(String, String, String, Vec<Option<String>>)> {
    let names = |seen: &[Evidence]| seen.iter().map(|it| it.name.clone()).collect();
    let because = |decision: &Decision| {
        let how = ["by tool call", "in its output"];
        let text = decision.because.as_str();
        if how.contains(&text) { String::new() } else { text.to_owned() }
    };
    decisions
        .iter()
        .map(|it| (it.rule.clone(), it.summary.clone(), because(it), names(&it.evidence)))
        .collect()
}

/// One report, as a text in the dialect and as a call.
type Pair = (String, Call);

fn complete(summary: &str, phase: Option<&str>) -> Call {
    let phase = phase.map(str::to_owned);
    Call::Complete { summary: summary.to_owned(), phase, task: None, evidence: Vec::new() }
}

fn blocked(reason: &str, needs: Need) -> Call {
    Call::Blocked { reason: reason.to_owned(), needs, tried: None, task: None }
}

fn run_report() -> impl Strategy<Value = Pair> {
    prop_oneof![
        Just(("<chorus>COMPLETE</chorus>".to_owned(), complete("", None))),
        (0..=100_u8).prop_map(|percent| {
            let text = format!("<chorus>PROGRESS: {percent}</chorus>");
            let summary = percent.to_string();
            let (percent, remaining, task) = (Some(percent), None, None);
            (text, Call::Progress { summary, percent, remaining, task })
        }),
        Just((
            "<chorus>BLOCKED: no database</chorus>".to_owned(),
            blocked("no database", Need::Environment)
        )),
        Just(("<chorus>NEEDS_HUMAN: keep it</chorus>".to_owned(), {
            let (question, options) = ("keep it".to_owned(), Vec::new());
            Call::AskHuman { question, options, default: None, task: None }
        })),
    ]
}

fn phase_report() -> impl Strategy<Value = Pair> {
    let block = |name: &str, rest: &str| format!("---\nSIGNAL: {name}\n{rest}---\n");
    let done = |name: &str, phase: &str| {
        let at = "TIMESTAMP: 2026-03-02T10:00:00Z\nNEXT: none\n";
        block(name, &format!("PHASE: {phase}\nSTATUS: complete\n{at}"))
    };
    let phases = ["expansion", "init", "planning", "qa"];
    let mut pairs: Vec<Pair> = phases
        .iter()
        .map(|phase| {
            let name = format!("{}_COMPLETE", phase.to_uppercase());
            (done(&name, phase), complete("", Some(phase)))
        })
        .collect();
    pairs.push((done("AUTO_COMPLETE", "expansion"), complete("", Some(ALL_PHASES))));
    let error = "STATUS: error\nTIMESTAMP: 2026-03-02T10:00:00Z\n\
                 ERROR: no key\nRECOVERABLE: false\n";
    pairs.push((block("PHASE_ERROR", error), blocked("no key", Need::Access)));
    proptest::sample::select(pairs)
}

fn delivery_report() -> impl Strategy<Value = Pair> {
    proptest::sample::select(vec![
        ("READY_FOR_REVIEW: t1\nSummary: written\n".to_owned(), complete("written", None)),
        (
            "TASK_INCOMPLETE: t1\nBlocker: no key\nNeeded: access\n".to_owned(),
            blocked("no key", Need::Access),
        ),
        (
            "INFRA_BLOCKED: t1\nIssue: no build\nNeeded: environment\n".to_owned(),
            blocked("no build", Need::Environment),
        ),
        ("CHECKPOINT: t1\nProgress: 40%\nCurrent Activity: x\n".to_owned(), {
            let (summary, percent) = ("x".to_owned(), Some(40));
            Call::Progress { summary, percent, remaining: None, task: None }
        }),
    ])
}

fn at(step: usize) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + step as i64 * 60_000)
}

fn signal_in(text: &str) -> Signal {
    let found = scan(Rules::builtin(), text.as_bytes(), &Origin::assistant());
    let signal = found.into_iter().find_map(|finding| match finding {
        Finding::Signal(signal) => Some(*signal),
        Finding::NearMiss(_) => None,
    });
    signal.unwrap_or_else(|| panic!("no signal in {text}"))
}

fn signal_of(reported: Result<Reported, Unreportable>) -> Signal {
    match reported {
        Ok(Reported::Signal(signal)) => *signal,
        other => panic!("{other:?}"),
    }
}

proptest! {
    /// A supervised run decides the same, whichever way its agent reports.
    #[test]
    fn a_run_decides_the_same(reports in vec(run_report(), 1..6)) {
        let outcome = |by_call: bool| {
            let mut state = run::State::start(at(0), run::Start {
                task: "Add CSV export".to_owned(),
                dialect: "chorus".to_owned(),
                instructions: String::new(),
                launch: String::new(),
                config: run::Config::default(),
            });
            let mut decisions = state.on_event(at(0), &run::Event::Begin).decisions;
            let launched = run::Event::Launched { agent: "1".to_owned() };
            decisions.extend(state.on_event(at(0), &launched).decisions);
            for (step, (text, call)) in reports.iter().enumerate() {
                let signal = match by_call {
                    true => signal_of(call.in_run(Via::Call)),
                    false => signal_in(text),
                };
                let signals = vec![RunSignal::new(&signal, step as u64)];
                let event = run::Event::Reported { signals };
                decisions.extend(state.on_event(at(step + 1), &event).decisions);
            }
            let exit = run::AgentExit { code: Some(0), ..run::AgentExit::default() };
            decisions.extend(state.on_event(at(9), &run::Event::Exited(exit)).decisions);
            let looked = run::Event::Looked(run::WorkTree::default());
            decisions.extend(state.on_event(at(9), &looked).decisions);
            (told(&decisions), state.ending(), state.progress())
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    /// So do phases at a stop.
    #[test]
    fn phases_decide_the_same(reports in vec(phase_report(), 1..5)) {
        let outcome = |by_call: bool| {
            let mut state = phases::State::start(at(0), phases::Start {
                task: "Add CSV export".to_owned(),
                pipeline: Pipeline::caw(),
                config: phases::Config::default(),
                phase: "expansion".to_owned(),
                max_iterations: 20,
                session: Some("S1".to_owned()),
                token: None,
            });
            let mut decisions = Vec::new();
            for (step, (text, call)) in reports.iter().enumerate() {
                let now = at(step + 1);
                let findings: Vec<PhaseFinding> = if by_call {
                    let signal = signal_of(call.in_phases(&state, Via::Call));
                    vec![call_finding(&signal, &[], now)]
                } else {
                    let message = phases::AgentMessage {
                        text,
                        origin: Origin::assistant(),
                        at: Some(now),
                        new_by_position: false,
                        is_final: true,
                    };
                    scan_messages(Rules::builtin(), &Token::Off, &[message])
                };
                let session = Some("S1".to_owned());
                let event = phases::Event::Stop(Stop { session, findings, ..Stop::default() });
                decisions.extend(state.on_event(now, &event).decisions);
            }
            (told(&decisions), state.phase.clone(), state.active)
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    /// So does a delivery when an agent ends.
    #[test]
    fn a_delivery_decides_the_same(reports in vec(delivery_report(), 1..4)) {
        let read = |by_call: bool| {
            let mut reply = AgentReply::default();
            for (text, call) in &reports {
                if by_call {
                    let of = (Role::Developer, Some("t1"));
                    reply.add_call(&signal_of(call.in_delivery(of, Via::Call)));
                } else {
                    reply.signals.extend(AgentReply::read(Rules::builtin(), &Token::Off, text).signals);
                }
            }
            reply.signals.iter().map(|it| (it.name.clone(), it.subject.clone(), it.fields.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(read(true), read(false));
    }
}
