//! What 0.1.0 stored is read, and its journals replay to the same decisions and the same state.
//!
//! `v0.1.0.jsonl` holds runs as 0.1.0 itself wrote them: their events, the rule and summary of each
//! decision, and the state after the last one.

use serde::Deserialize as _;
use serde_json::Value;

use super::*;

/// One run of the file.
struct Recorded {
    name: String,
    events: Vec<(Timestamp, Value)>,
    decisions: Vec<(String, String)>,
    state: Value,
}

fn recorded() -> Vec<Recorded> {
    let mut runs: Vec<Recorded> = Vec::new();
    for line in include_str!("v0.1.0.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let time = |value: &Value| value.as_str().unwrap().parse().unwrap();
        if let Some(name) = line.get("run") {
            let (name, events, decisions) = (text(name), Vec::new(), Vec::new());
            runs.push(Recorded { name, events, decisions, state: Value::Null });
            continue;
        }
        let run = runs.last_mut().unwrap();
        if let Some(event) = line.get("event") {
            run.events.push((time(&event["at"]), event["body"].clone()));
        } else if let Some(decision) = line.get("decision") {
            run.decisions.push((text(&decision["rule"]), text(&decision["summary"])));
        } else {
            run.state = line["state"].clone();
        }
    }
    assert_eq!(runs.len(), 4);
    runs
}

/// Decisions that have another rule today, and why.
fn today(run: &str, number: usize, rule: Rule) -> Rule {
    match (run, number) {
        // A sub-agent's AUTO_COMPLETE and PHASE_ERROR are named, not only recorded.
        ("phases-subagents", 4 | 5) => Rule::SubagentSignalIgnored,
        _ => rule,
    }
}

#[test]
fn journals_of_0_1_0_replay_to_the_same_decisions() {
    for run in recorded() {
        let name = &run.name;
        let ((at, start), rest) = run.events.split_first().unwrap();
        let mut state = State::start(*at, Start::deserialize(start).unwrap());
        let mut rules = vec![Rule::Started];
        for (at, event) in rest {
            let event = Event::deserialize(event).unwrap_or_else(|error| panic!("{name}: {error}"));
            let outcome = state.on_event(*at, &event);
            let decisions = outcome.decisions.iter();
            rules.extend(decisions.map(|it| Rule::of_stored(&it.rule, &it.summary).unwrap()));
        }
        let stored = run.decisions.iter().enumerate().map(|(number, (rule, summary))| {
            today(name, number, rule_of_0_1_0(rule, summary).unwrap())
        });
        assert_eq!(rules, stored.collect::<Vec<_>>(), "{name}");
        let mut then = State::deserialize(&run.state).unwrap();
        // Prompts have other words, and refused claims and questions are remembered, since.
        then.block_limit.last_prompt.clone_from(&state.block_limit.last_prompt);
        then.last_refused.clone_from(&state.last_refused);
        then.parked.clone_from(&state.parked);
        then.questions_asked = state.questions_asked;
        then.handover.prompted.clone_from(&state.handover.prompted);
        assert_eq!(state, then, "{name}");
    }
}

/// Every member of a state that has another name today.
#[test]
fn states_of_0_1_0_are_read() {
    let mut stored = recorded().remove(0).state;
    let members = stored.as_object_mut().unwrap();
    for (name, value) in [
        ("heard_until", r#""2026-11-02T10:03:00Z""#),
        ("heard_to", r#""1234/5678""#),
        ("response", r#"{"session":"S1","said":[],"closing_words":"Half done."}"#),
        ("untold", "true"),
        ("handed_over", "true"),
        ("over", "true"),
        ("turn", r#"{"began":"2026-11-02T10:02:30Z","after":"2026-11-02T10:02:00Z"}"#),
        (
            "governor",
            r#"{"turn":"t1","blocks":3,"capped":true,"hint":"x/y","hint_times":2,"told":"d"}"#,
        ),
        ("counted", r#"["a2/QA_COMPLETE","a1/QA_COMPLETE"]"#),
    ] {
        assert!(members.contains_key(name), "{name} is no member of 0.1.0");
        members.insert(name.to_owned(), serde_json::from_str(value).unwrap());
    }
    let state = State::deserialize(&stored).unwrap();
    let at = |time: &str| Some(time.parse::<Timestamp>().unwrap());
    assert_eq!(state.reading.read_until, at("2026-11-02T10:03:00Z"));
    assert_eq!(state.reading.read_cursor.as_deref(), Some("1234/5678"));
    assert_eq!(state.reading.pending_response.as_ref().unwrap().closing_text, "Half done.");
    assert!(
        state.handover.prompt_pending
            && state.handover.advanced_by_subagent
            && state.handover.ends_at_next_stop
    );
    assert_eq!(state.clock.turn.as_ref().unwrap().active_before, at("2026-11-02T10:02:00Z"));
    let limit = &state.block_limit;
    assert_eq!((limit.blocks, limit.capped, limit.hint_times), (3, true, 2));
    assert_eq!(limit.last_prompt.as_deref(), Some("d"));
    assert!(
        state.reading.counted.contains("a1/QA_COMPLETE")
            && !state.reading.counted.contains("a3/QA_COMPLETE")
    );
    assert!(!state.paused && state.handover.human_messages.is_empty());
    let again = serde_json::to_value(&state).unwrap();
    assert_eq!(State::deserialize(&again).unwrap(), state);
}

/// Programs that drive the machine themselves may still write what 0.1.0 understood.
#[test]
fn events_of_0_1_0_are_read() {
    let stop = r#"{"event":"stop","session":"S1","host":"codex","said":[],"closing_words":"Half.",
        "hold":{"why":"background","what":"make"},"heard_to":"12"}"#;
    let Event::Stop(stop) = serde_json::from_str(stop).unwrap() else { panic!("not a stop") };
    assert_eq!((&*stop.closing_text, stop.read_cursor.as_deref()), ("Half.", Some("12")));
    assert_eq!(stop.must_allow, Some(MustAllow::Background { what: "make".to_owned() }));
    for event in [
        r#"{"event":"subagent_stop","session":"S1","agent":"a1","said":[]}"#,
        r#"{"event":"responded","session":"S1","said":[],"closing_words":"Half."}"#,
        r#"{"event":"resume"}"#,
        r#"{"event":"cancel","by":"a human"}"#,
    ] {
        let read: Event = serde_json::from_str(event).unwrap();
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&again).unwrap(), read, "{event}");
    }
}
