//! The cases of the collection, as far as a machine can answer them.

use serde_json::Value;

use super::*;
use crate::stagnation::Level;

fn cases(system: &str) -> Vec<Value> {
    let text = include_str!("../../../../../testdata/conformance/cases.jsonl");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rows: Vec<Value> = rows.filter(|row| row["system"] == system).collect();
    assert!(rows.len() >= 20, "only {} cases of {system}", rows.len());
    rows
}

fn number(value: &Value, or: u32) -> u32 {
    value.as_u64().map_or(or, |value| u32::try_from(value).unwrap())
}

/// A run that has heard the case's input and whose agent then ended.
struct Played {
    state: State,
    checks: u32,
    last: Outcome,
}

fn play(dialect: &str, case: &Value) -> Played {
    let given = &case["given"];
    let mut state = begun(|config| {
        config.verify = given["requireTests"] == true;
        config.max_iterations = number(&given["maxIterations"], 50);
        config.max_crashes = number(&given["maxCrashes"], 2);
    });
    state.iteration = number(&given["iteration"], 1);
    state.on_event(
        at(1),
        &Event::Reported { signals: reports(dialect, case["input"].as_str().unwrap()) },
    );
    let code = given["exitCode"].as_i64().map_or(0, |code| i32::try_from(code).unwrap());
    let mut last = state.on_event(at(1), &exited(Some(code), None));
    let mut checks = 0;
    if state.status == Status::Looking {
        last = state.on_event(at(1), &Event::Looked(WorkTree::default()));
    }
    if state.status == Status::Checking {
        checks += 1;
        let passed = given["testExit"] == 0;
        last = state.on_event(at(1), &Event::Checked { passed, output: String::new() });
    }
    Played { state, checks, last }
}

fn action(state: &State) -> &'static str {
    match (&state.status, state.ending()) {
        (_, Some(Ending::Done)) => "success",
        (_, Some(Ending::Blocked)) => "blocked",
        (_, Some(_)) => "failed",
        (Status::Asking, None) => "needs_help",
        (_, None) => "continue",
    }
}

#[test]
fn chorus() {
    for case in cases("chorus") {
        let (id, expect) = (&case["id"], &case["expect"]);
        let Played { state, checks, last } = play("chorus", &case);
        for (key, want) in expect.as_object().unwrap() {
            let got: Value = match &**key {
                "action" => action(&state).into(),
                "isComplete" => (state.ending() == Some(Ending::Done)).into(),
                "isBlocked" => (state.ending() == Some(Ending::Blocked)).into(),
                "progress" => state.reported.progress.into(),
                "tests_run" => checks.into(),
                "task_closed" => (state.ending() == Some(Ending::Done)).into(),
                "question" => state.question.as_ref().map(|asked| &*asked.text).into(),
                "action_reason" => match state.ending() {
                    Some(Ending::Crashed) => "crash".into(),
                    Some(Ending::IterationsUsedUp) => "max_iterations".into(),
                    other => panic!("{id}: {other:?}"),
                },
                // Where nothing is given as the reason, the decision says so in words.
                "reason" if want.is_null() => Value::Null,
                "reason" => last.decision().cloned().unwrap().because.into(),
                "parse_twice_same" => (play("chorus", &case).state == state).into(),
                // What the scanner alone can answer.
                "first" | "all" | "unknown" | "malformed" | "quoted" => continue,
                other => panic!("{id}: {other} is not checked"),
            };
            assert_eq!(got, *want, "{id}: {key}");
        }
    }
}

#[test]
fn pilot() {
    for case in cases("pilot") {
        let (id, expect) = (&case["id"], &case["expect"]);
        if expect.get("levels").is_some() {
            continue;
        }
        let Played { state, last, .. } = play("pilot", &case);
        for (key, want) in expect.as_object().unwrap() {
            let got: Value = match &**key {
                "exit" => matches!(state.ending(), Some(Ending::Done | Ending::Failed)).into(),
                "success" => (state.ending() != Some(Ending::Failed)).into(),
                "task_outcome" => state.ending().unwrap().as_str().into(),
                "phase" => state.reported.phase.clone().into(),
                "progress" => state.reported.progress.into(),
                "reason" => last.decision().cloned().unwrap().because.into(),
                "decline" | "no_op_reason" => continue,
                // What the scanner or a display alone can answer.
                "count" | "v" | "type" | "handled" | "warnings" | "indicators" | "legacy"
                | "navigator" | "iteration" | "display" | "progress_default" => continue,
                other => panic!("{id}: {other} is not checked"),
            };
            assert_eq!(got, *want, "{id}: {key}");
        }
    }
}

/// The states of a stagnation case, as an agent reports them: each level is what the run does.
#[test]
fn stagnation() {
    let mut played = 0;
    for case in cases("pilot") {
        let Some(levels) = case["expect"]["levels"].as_array() else { continue };
        let watched = serde_json::from_value(case["given"]["config"].clone()).unwrap();
        let mut state = begun(|config| config.stagnation = watched);
        state.on_event(at(0), &Event::Looked(WorkTree { dirty: true, ..WorkTree::default() }));
        for (row, level) in case["given"]["states"].as_array().unwrap().iter().zip(levels) {
            let text = format!(
                "```pilot-signal\n{{\"v\":2,\"phase\":{},\"progress\":{},\"iteration\":{}}}\n```\n",
                row[0], row[1], row[2]
            );
            let now = at(row[3].as_i64().unwrap());
            let outcome =
                state.on_event(now, &Event::Reported { signals: reports("pilot", &text) });
            let id = &case["id"];
            assert_eq!(state.monitor.level().as_str(), level.as_str().unwrap(), "{id}");
            match state.monitor.level() {
                Level::None | Level::Warn => assert_eq!(state.status, Status::Working, "{id}"),
                Level::Pause => {
                    assert_eq!(state.status, Status::Paused { stagnated: true }, "{id}");
                }
                Level::Abort => {
                    let notice = |effect: &Effect| {
                        matches!(effect, Effect::Notice { notice: Notice::StagnationAbort, .. })
                    };
                    assert!(outcome.effects.contains(&Effect::End { grace: 30 }), "{id}");
                    assert!(outcome.effects.iter().any(notice), "{id}");
                    let over = state.on_event(now, &clean());
                    assert_eq!(state.ending(), Some(Ending::Stagnated), "{id}: never complete");
                    assert!(keeps_work(&over), "{id}");
                }
            }
        }
        played += 1;
    }
    assert!(played >= 5, "only {played} cases");
}
