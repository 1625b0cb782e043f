//! The table is what the documentation shows, and a call decides what the same signal in a text does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::delivery::{self, AgentReply};
use crate::phases::{PhaseFinding, Pipeline, Stop, call_finding};
use crate::run::{self, RunSignal};
use crate::turns;
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
        let how = ["by tool call", "in its output", "it reported TURN_COMPLETE by tool call"];
        let said = "its message ends with TURN_COMPLETE";
        let text = decision.because.as_str();
        if how.contains(&text) || text == said { String::new() } else { text.to_owned() }
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

    /// So do phases at one stop.
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
                proof: crate::proof::Proof::default(),
            });
            let mut findings = Vec::<PhaseFinding>::new();
            for (step, (text, call)) in reports.iter().enumerate() {
                let signal = match by_call {
                    true => signal_of(call.in_phases(&state, Via::Call)),
                    false => signal_in(text),
                };
                findings.push(call_finding(&signal, &findings, at(step + 1)));
            }
            let session = Some("S1".to_owned());
            let event = phases::Event::Stop(Stop { session, findings, ..Stop::default() });
            let decisions = state.on_event(at(9), &event).decisions;
            (told(&decisions), state.phase().to_owned(), state.is_active())
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    /// So does a delivery when an agent ends.
    #[test]
    fn a_delivery_decides_the_same(reports in vec(delivery_report(), 1..4)) {
        let outcome = |by_call: bool| {
            let mut state = delivery_of_one_task();
            let mut reply = AgentReply::default();
            for (text, call) in &reports {
                if by_call {
                    let of = (Role::Developer, Some("t1"));
                    reply.add_call(&signal_of(call.in_delivery(of, Via::Call)));
                } else {
                    reply.signals.extend(AgentReply::read(Rules::builtin(), &Token::Off, text).signals);
                }
            }
            let read: Vec<_> = reply
                .signals
                .iter()
                .map(|it| (it.name.clone(), it.subject.clone(), it.fields.clone()))
                .collect();
            let exit = Some(run::Exit { code: Some(0), signal: None });
            let event = delivery::Event::Finished { agent: 1, exit, reply };
            let outcome = state.on_event(at(1), &event);
            (read, told(&outcome.decisions))
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    /// So does a channel, whoever ends which turn.
    #[test]
    fn a_channel_decides_the_same(ends in vec((0..3_usize, proptest::option::of(0..4_u64)), 1..8)) {
        let names = ["pm", "dev", "eve"];
        let outcome = |by_call: bool| {
            let agents = vec!["pm".to_owned(), "dev".to_owned()];
            let start = turns::Start { channel: "c1".to_owned(), agents, ..turns::Start::default() };
            let mut state = turns::State::start(at(0), start).unwrap().0;
            let reader = turns::MessageReader::new(state.config());
            let mut decisions = Vec::new();
            for (step, (agent, turn)) in ends.iter().enumerate() {
                let message = match by_call {
                    true => Call::EndTurn { channel: "c1".to_owned(), turn: *turn }.ends_turn(Via::Call),
                    false => reader.read("TURN_COMPLETE"),
                };
                let (agent, messages) = (names[*agent].to_owned(), vec![message]);
                let event = turns::Event::Message { agent, turn: *turn, messages };
                decisions.extend(state.on_event(at(step + 1), &event).decisions);
            }
            (told(&decisions), state.active_agent().map(str::to_owned))
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }
}

/// A delivery whose only task is with its developer.
fn delivery_of_one_task() -> delivery::State {
    let mut state = delivery_with(delivery::Config::default());
    state.on_event(at(0), &delivery::Event::Begin);
    state
}

/// A delivery of one task that has not begun.
fn delivery_with(config: delivery::Config) -> delivery::State {
    let task = delivery::TaskSpec {
        id: "t1".to_owned(),
        title: "Export".to_owned(),
        acceptance: vec!["the tests pass".to_owned()],
        ..delivery::TaskSpec::default()
    };
    let plan = delivery::Plan { title: "Plan".to_owned(), tasks: vec![task] };
    delivery::State::start(at(0), delivery::Start { plan, config, token: None })
}

/// Where the tools are there, every prompt shows the call first and the text as the way out, and is no
/// signal itself, wherever it is written down.
#[test]
fn prompts_prefer_the_call_and_are_no_signals() {
    let run_prompt = |prefer_calls: bool| {
        let mut state = run::State::start(
            at(0),
            run::Start {
                task: "Add CSV export".to_owned(),
                dialect: "chorus".to_owned(),
                instructions: "Write this:\n\n    <chorus>COMPLETE</chorus>".to_owned(),
                launch: String::new(),
                config: run::Config { prefer_calls, ..run::Config::default() },
            },
        );
        let effects = state.on_event(at(0), &run::Event::Begin).effects;
        effects.into_iter().find_map(|effect| match effect {
            run::Effect::Start { prompt, .. } => Some(prompt),
            _ => None,
        })
    };
    let phase_prompt = |prefer_calls: bool| {
        let state = phases::State::start(
            at(0),
            phases::Start {
                task: "Add CSV export".to_owned(),
                pipeline: Pipeline::caw(),
                config: phases::Config { prefer_calls, ..phases::Config::default() },
                phase: "init".to_owned(),
                max_iterations: 20,
                session: Some("S1".to_owned()),
                token: None,
                proof: crate::proof::Proof::default(),
            },
        );
        Some(state.start_prompt())
    };
    let delivery_prompt = |prefer_calls: bool| {
        let mut state = delivery_with(delivery::Config { prefer_calls, ..Default::default() });
        let effects = state.on_event(at(0), &delivery::Event::Begin).effects;
        effects.into_iter().find_map(|effect| match effect {
            delivery::Effect::Dispatch(dispatch) => Some(dispatch.prompt),
            _ => None,
        })
    };
    for (name, [with, without], written) in [
        ("run", [true, false].map(run_prompt), "COMPLETE</chorus>"),
        ("phases", [true, false].map(phase_prompt), "SIGNAL: INIT_COMPLETE"),
        ("delivery", [true, false].map(delivery_prompt), "READY_FOR_REVIEW: t1"),
    ] {
        let (with, without) = (with.unwrap(), without.unwrap());
        let call = with.find("    complete {\"summary\": \"what you did\"}");
        let text = with.find(written).unwrap_or_else(|| panic!("{name}: {with}"));
        assert!(call.is_some_and(|call| call < text), "{name}: {with}");
        assert!(with.contains("    blocked {"), "{name}: {with}");
        assert!(!without.contains("MCP"), "{name}: {without}");
        for said in [with.clone(), with.replace("\n", "\r\n"), format!("{with}\n\nOk.")] {
            let found = scan(Rules::builtin(), said.as_bytes(), &Origin::assistant());
            let signal = found.into_iter().find(|it| matches!(it, Finding::Signal(_)));
            assert!(signal.is_none(), "{name}: {signal:?}");
        }
    }
    // A role is shown its own tools.
    let of = |role| preference(DELIVERY, Some(role));
    assert!(of(Role::Critic).contains("    verdict {") && !of(Role::Critic).contains("complete {"));
    assert_eq!(of(Role::Planner), "");
}
