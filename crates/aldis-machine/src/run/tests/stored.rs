//! What 0.1.0 stored is still read, and its rules are still known.

use serde_json::{Value, json};

use super::*;
use crate::stagnation::Level;

/// Events as 0.1.0 stored them, and what they are today.
#[test]
fn events_of_0_1_0_are_read() {
    let signal = json!({
        "name": "STATUS", "meaning": "progress", "progress": 40, "phase": "IMPL", "implied": 50,
        "iteration": 3, "message": 2, "quote": "q", "line": 1,
    });
    let read = RunSignal {
        name: "STATUS".into(),
        meaning: Meaning::Progress,
        text: None,
        options: Vec::new(),
        default: None,
        progress: Some(40),
        phase: Some("IMPL".into()),
        phase_progress: Some(50),
        iteration: Some(3),
        no_op: false,
        message: 2,
        quote: "q".into(),
        line: 1,
        via: Via::Said,
    };
    let tree = WorkTree { dirty: true, ..WorkTree::default() };
    for (stored, event) in [
        (json!({ "event": "heard", "said": [signal] }), Event::Reported { signals: vec![read] }),
        (json!({ "event": "missed", "hint": "h" }), Event::NearMiss { hint: "h".into() }),
        (json!({ "event": "worked" }), Event::Activity),
        (json!({ "event": "refused", "what": "w" }), Event::HostFailed { what: "w".into() }),
        (
            json!({ "event": "told", "text": "t" }),
            Event::Tell { text: "t".into(), by: String::new() },
        ),
        (json!({ "event": "exited", "code": null, "signal": 9 }), exited(None, Some(9))),
        (json!({ "event": "looked", "conflicts": false, "dirty": true }), Event::Looked(tree)),
        (json!({ "event": "pause" }), Event::Pause { by: String::new() }),
    ] {
        assert_eq!(serde_json::from_value::<Event>(stored.clone()).unwrap(), event, "{stored}");
    }
}

#[test]
fn effects_of_0_1_0_are_read() {
    for (stored, effect) in [
        (json!({ "effect": "keep_work" }), Effect::KeepWork { base: None }),
        (json!({ "effect": "look" }), Effect::Look),
        (
            json!({ "effect": "start", "iteration": 2, "prompt": "p" }),
            Effect::Start { iteration: 2, prompt: "p".into() },
        ),
    ] {
        assert_eq!(serde_json::from_value::<Effect>(stored.clone()).unwrap(), effect, "{stored}");
    }
}

/// A state as 0.1.0 stored it.
const STATE: &str = r#"{"task":"Add CSV export","dialect":"chorus","instructions":"Report with a tag.",
"launch":"{}","config":{"max_iterations":50,"iteration_timeout":1800,"timeout":86400,"max_tokens":null,
"max_micro_dollars":null,"verify":true,"require_commit":false,"require_clean":false,"no_wait":false,
"limit_wait":900,"max_limit_waits":40,"max_attempts":3,"stagnation":{"enabled":true,"warn_repeats":3,
"pause_repeats":5,"abort_repeats":7,"warn_timeout":600,"pause_timeout":1200,"abort_timeout":0,
"warn_at_iteration":0,"pause_at_iteration":0,"abort_at_iteration":0,"grace_period":30,
"commit_partial_work":true,"state_history_size":0}},"status":{"status":"working"},"iteration":4,
"started_at":"2026-03-02T10:00:00Z","seen_at":"2026-03-02T10:01:30Z",
"iteration_started_at":"2026-03-02T10:01:00Z","waited":5000,"waiting_since":null,"phase":"IMPL",
"progress":40,"bar":50,"own_iteration":3,"said":[{"name":"COMPLETE","meaning":"done","message":0,
"quote":"<chorus>COMPLETE</chorus>","line":1}],"claimed_at":"2026-03-02T10:01:20Z",
"feedback":["You said that the work is done, but no."],"limited":null,"refused":null,"retrying":false,
"limit_waits":1,"attempts":2,"question":null,"questions":3,"spent":{"tokens":10,"micro_dollars":20},
"spending":{"tokens":1,"micro_dollars":2},"warned_of_budget":true,"agent":"{\"pid\":1}",
"last_exit":{"code":0,"signal":null},"cut_off":true,"base":"abc","based":true,
"tree":{"fingerprint":"f","head":"abc","dirty":true,"conflicts":false},
"monitor":{"config":{"enabled":true,"warn_repeats":3,"pause_repeats":5,"abort_repeats":7,
"warn_timeout":600,"pause_timeout":1200,"abort_timeout":0,"warn_at_iteration":0,"pause_at_iteration":0,
"abort_at_iteration":0,"grace_period":30,"commit_partial_work":true,"state_history_size":0},
"started":"2026-03-02T10:00:00Z","last_progress":"2026-03-02T10:00:50Z","state":["IMPL",40,4,"f"],
"repeats":1,"best":40,"idle_iterations":1,"evidence":false,"iteration":4,"waiting_since":null,
"level":"none"}}"#;

/// A state as 0.1.0 stored it, with other members.
fn stored(change: &Value) -> State {
    let mut state: Value = serde_json::from_str(STATE).unwrap();
    for (key, value) in change.as_object().unwrap() {
        assert!(state.get(key).is_some(), "0.1.0 had no `{key}`");
        state[key] = value.clone();
    }
    serde_json::from_value(state).unwrap()
}

#[test]
fn states_of_0_1_0_are_read_and_continued() {
    let state = stored(&json!({}));
    assert_eq!(
        (state.clock.waited_ms, state.reported.shown_progress, state.attempt.reported_iteration),
        (5_000, Some(50), Some(3))
    );
    assert_eq!(
        (
            state.attempt.signals.len(),
            state.counts.refused_resolutions,
            state.counts.questions_asked
        ),
        (1, 2, 3)
    );
    assert_eq!(state.cost(), Usage { tokens: 11, micro_dollars: 22 });
    assert!(state.spending.budget_warned && state.iteration_unfinished && state.trees.base_known);
    assert_eq!(
        (state.start.config.max_crashes, state.start.config.stagnation.pause_limit),
        (2, Some(3_600))
    );

    let mut working = stored(&json!({}));
    send(&mut working, 100, &clean());
    assert_eq!(working.status, Status::Checking, "its claim is checked");

    let until = json!({ "until": at(7_200).to_string() });
    let mut limited = stored(&json!({ "limited": until }));
    limited.on_event(at(100), &clean());
    assert_eq!(limited.status, Status::Limited { until: at(7_200) });

    let mut refused = stored(&json!({ "refused": "OAuth token has expired" }));
    refused.on_event(at(100), &clean());
    assert_eq!(refused.ending(), Some(Ending::Crashed));

    // What was in its prompt is not known, what waited for the next one is.
    let mut lost = stored(&json!({ "said": [] }));
    let outcome = lost.on_event(at(100), &Event::Recovered);
    let Some(Effect::Start { iteration: 4, prompt }) = outcome.effects.last() else { panic!() };
    assert!(prompt.contains("but no."), "{prompt}");

    let mut looking = stored(&json!({ "status": { "status": "looking" } }));
    looking.on_event(at(100), &Event::Looked(WorkTree::default()));
    assert_eq!(looking.status, Status::Checking);

    let paused = json!({ "status": { "status": "paused", "stagnated": true },
                         "waiting_since": at(90).to_string() });
    let mut paused = stored(&paused);
    paused.on_event(at(100), &Event::Resume { by: String::new() });
    assert_eq!((&paused.status, paused.monitor.level()), (&Status::Working, Level::None));

    let ended = json!({ "status": { "status": "ended", "ending": "stagnated" } });
    assert_eq!(stored(&ended).ending(), Some(Ending::Stagnated));
}

/// Every rule that 0.1.0 could write, with what it wrote beside it.
const RULES_OF_0_1_0: &[(&str, &str, &str)] = &[
    ("run/1", "The run failed: the host cannot work", "run/host-failed"),
    ("run/1", "The run failed: the agent crashed", "run/crashed"),
    ("run/2", "The run is blocked", "run/blocked"),
    ("run/3", "The run failed: the agent gave up", "run/gave-up"),
    ("run/3", "The run waits for a human", "run/needs-human"),
    ("run/3", "Asked a human", "run/question-asked"),
    ("run/4", "Heard that the work is done", "run/done-claimed"),
    ("run/4", "Checks the claim", "run/check-started"),
    ("run/4", "Done after 1 iteration", "run/done"),
    ("run/4", "Done after 12 iterations", "run/done"),
    ("run/5", "The run ended: no iterations left", "run/iterations-used-up"),
    ("run/5", "The run ended: the budget is used up", "run/budget-used-up"),
    ("run/5", "The run ended: no time left", "run/timed-out"),
    ("run/5", "The run ended: nothing moved any more", "run/stagnated"),
    ("run/5", "The run ended: the service does not work", "run/limit-waits-used-up"),
    ("run/5", "The run ended", "run/aborted"),
    ("run/6", "Started iteration 3", "run/iteration-started"),
    ("run/listen", "Started the agent for iteration 3", "run/agent-started"),
    ("run/listen", "Heard PROGRESS", "run/signal-reported"),
    ("run/listen", "Heard that the host tries again", "run/host-retrying"),
    ("run/listen", "Heard that the host cannot work", "run/host-error-reported"),
    ("run/limit", "Heard that the service refuses to work for now", "run/limit-reported"),
    ("run/limit", "Waits until 2026-11-18T06:16:55Z", "run/limit-wait"),
    ("run/limit", "Goes on with the same iteration", "run/limit-over"),
    ("run/grace", "Asked the agent to stop", "run/still-running"),
    ("run/timeout", "Asked the agent to stop", "run/iteration-timeout"),
    ("run/budget", "Warned of the budget", "run/budget-warning"),
    ("run/stagnation/none", "The work moves again", "run/stagnation-cleared"),
    ("run/stagnation/warn", "Warned: the work does not move", "run/stagnation-warn"),
    ("run/stagnation/pause", "Suspended the agent: the work does not move", "run/stagnation-pause"),
    ("run/stagnation/abort", "Ends the run: the work does not move", "run/stagnation-abort"),
    ("run/pause", "Suspended the agent", "run/paused"),
    ("run/resume", "Let the agent go on", "run/resumed"),
    ("run/abort", "Ends the run", "run/abort"),
    ("run/answer", "Goes on with the answer", "run/answered"),
    ("run/answer", "Kept the answer", "run/answer-kept"),
    ("run/recover", "Went on where it was", "run/recovered"),
    ("run/reopen", "Goes on with the same iteration", "run/reopened"),
    ("run/reopen", "Waits for the answer again", "run/question-reopened"),
];

#[test]
fn rules_of_0_1_0_are_known() {
    for (rule, summary, today) in RULES_OF_0_1_0 {
        let found = rule_of_0_1_0(rule, summary).map(Rule::as_str);
        assert_eq!(found, Some(*today), "{rule}: {summary}");
    }
    for rule in ["run/7", "run/done", "phases/1", "", "1"] {
        assert_eq!(rule_of_0_1_0(rule, "Heard"), None, "{rule}");
    }
}

#[test]
fn rules_are_named_and_documented() {
    let page = include_str!("../../../../../docs/rules.md");
    let mut ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    for id in &ids {
        let name = id.strip_prefix("run/").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        let row = format!("| `{id}` | ");
        assert_eq!(page.matches(&row).count(), 1, "docs/rules.md has one row for {id}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `run/")).count();
    assert_eq!(rows, ids.len(), "docs/rules.md has no row for a rule that does not exist");
    ids.dedup();
    assert_eq!(ids.len(), Rule::ALL.len(), "ids are unique");
}
