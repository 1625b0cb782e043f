//! The file beside the store: adopted, rewritten, its foreign members kept.

use super::*;
use aldis_machine::phases::{AgentMessage, Event, Stop, scan_messages};
use aldis_signal::{Dialect, Origin, Rules};

const FILE: &str = r#"{
  "schema_version": "2.0", "active": true, "phase": "qa", "iteration": 3, "max_iterations": 500,
  "task_description": "Add CSV export", "started_at": "2026-03-02T09:00:00Z",
  "config": {"skip_qa": false, "skip_review": true, "skip_reflect": false, "verbose": false, "theirs": 1.10},
  "qa": {"cycles": 2}, "their_number": 12345678901234567890123, "signals": {"last_checked": "2026-03-02T09:59:00Z", "detected_signals": [{"signal": "EXECUTION_COMPLETE", "detected_at": "2026-03-02T09:30:00Z"}], "more": []}
}"#;

/// Minutes after ten o'clock.
fn at(minutes: i64) -> Timestamp {
    let ten: Timestamp = "2026-03-02T10:00:00Z".parse().unwrap();
    Timestamp::from_millis(ten.as_millis() + minutes * 60_000)
}

/// The block with this signal.
fn block(name: &str) -> String {
    format!("---\nSIGNAL: {name}\nSTATUS: complete\nTIMESTAMP: 2026-03-02T10:00:00Z\n---\n")
}

/// A run bound to session S1.
fn run_in(phase: &str) -> State {
    let start = Start {
        task: "Add CSV export".to_owned(),
        pipeline: Pipeline::caw(),
        config: Config::default(),
        phase: phase.to_owned(),
        max_iterations: 20,
        session: Some("S1".to_owned()),
        token: None,
        proof: Proof::default(),
    };
    State::start(at(0), start)
}

/// A stop of session S1 with this final message.
fn stops(state: &mut State, minutes: i64, text: &str) {
    let rules = Rules::new([Dialect::builtin("caw").unwrap().clone()]);
    let origin = Origin::assistant();
    let message = AgentMessage { text, origin, at: None, new_by_position: false, is_final: true };
    let findings = scan_messages(&rules, &state.expected_token(), &[message]);
    let stop = Stop { session: Some("S1".to_owned()), findings, ..Stop::default() };
    state.on_event(at(minutes), &Event::Stop(stop));
}

fn adopted(text: &str) -> Result<State, AutoStateError> {
    AutoStateFile::parse(text)?.adopt(&Config::default())
}

#[test]
fn a_file_is_adopted_with_its_limits_clamped() {
    let state = adopted(FILE).unwrap();
    assert_eq!((state.phase(), state.iteration(), state.max_iterations()), ("qa", 3, 50));
    assert_eq!(state.phase_started_at(), "2026-03-02T09:30:00Z".parse().unwrap());
    assert_eq!(state.last_activity(), "2026-03-02T09:59:00Z".parse().ok());
    assert!(state.config().skip.contains("skip_review") && !state.is_prompt_pending());
}

#[test]
fn what_a_file_says_twice_or_beyond_its_limit_is_taken_once() {
    let twice = r#""detected_signals": [{"signal": "EXECUTION_COMPLETE", "detected_at": "2026-03-02T09:10:00Z"}, "#;
    let file = FILE
        .replace(r#""detected_signals": ["#, twice)
        .replace(r#""iteration": 3"#, r#""iteration": 60"#);
    let state = adopted(&file).unwrap();
    assert_eq!((state.iteration(), state.max_iterations()), (50, 50));
    assert_eq!(state.detected().len(), 1);
    assert_eq!(state.detected()[0].detected_at, "2026-03-02T09:30:00Z".parse().unwrap());
}

#[test]
fn files_that_tell_of_no_run_are_refused() {
    for (broken, with, wrong) in [
        (
            r#""schema_version": "2.0""#,
            r#""schema_version": "9""#,
            AutoStateError::Member("schema_version"),
        ),
        (r#""iteration": 3"#, r#""iteration": -1"#, AutoStateError::Member("iteration")),
        (r#""iteration": 3"#, r#""iteration": 1e300"#, AutoStateError::Member("iteration")),
        (r#""phase": "qa""#, r#""phase": 4"#, AutoStateError::Member("phase")),
    ] {
        assert_eq!(adopted(&FILE.replacen(broken, with, 1)).unwrap_err(), wrong);
    }
    for text in
        ["", "[]", "{\"active\": true", "{\"active\":true,\"active\":false}", "<<<<<<< HEAD"]
    {
        assert!(matches!(AutoStateFile::parse(text), Err(AutoStateError::Corrupt(_))), "{text}");
    }
}

#[test]
fn illegible_times_are_no_sign_of_life() {
    let broken = FILE.replace("2026-03-02T09:59:00Z", "soon");
    assert_eq!(adopted(&broken).unwrap().last_activity(), None);
    let broken = FILE.replace("2026-03-02T09:00:00Z", "yesterday");
    let state = adopted(&broken).unwrap();
    assert_eq!(state.started_at(), None);
    // It is left as it was found, and that is no edit.
    let text = AutoStateFile::render(&state, AutoStateFile::parse(&broken).ok());
    assert!(text.contains("yesterday"));
    assert_eq!(AutoStateFile::parse(&text).unwrap().edits(&state), Vec::<String>::new());
}

#[test]
fn what_is_not_ours_survives_as_it_was_written() {
    let mut state = adopted(FILE).unwrap();
    stops(&mut state, 1, &block("QA_COMPLETE"));
    let text = AutoStateFile::render(&state, AutoStateFile::parse(FILE).ok());
    for kept in [
        "\"their_number\": 12345678901234567890123",
        "\"theirs\":1.10",
        "\"cycles\":2",
        "\"more\":[]",
    ] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    let view = AutoStateFile::parse(&text).unwrap();
    assert_eq!(view.edits(&state), Vec::<String>::new());
    let again = view.adopt(&Config::default()).unwrap();
    assert_eq!((again.phase(), again.iteration()), ("reflect", 0));
    assert!(again.completed().contains("qa"));
    assert_eq!(AutoStateFile::render(&state, Some(view)), text, "writing twice changes nothing");
}

#[test]
fn edits_are_seen_and_an_older_view_is_none() {
    let mut state = run_in("qa");
    stops(&mut state, 1, "Still going.");
    let older = AutoStateFile::render(&state, None);
    let earlier = state.clone();
    stops(&mut state, 2, "Still going.");
    let current = AutoStateFile::render(&state, AutoStateFile::parse(&older).ok());
    let edits = |text: &str| AutoStateFile::parse(text).unwrap().edits(&state);
    assert_eq!(edits(&current), Vec::<String>::new());
    assert!(!edits(&older).is_empty(), "only the journal knows that this was once right");
    let before = AutoStateFile::parse(&older).unwrap();
    assert_eq!(before.edits(&earlier), Vec::<String>::new());
    assert_eq!(before.started_at(), state.started_at());
    assert_eq!(edits(&current.replace("\"iteration\": 2", "\"iteration\": 0")), ["iteration"]);
    assert_eq!(edits(&current.replace("\"phase\": \"qa\"", "\"phase\": \"complete\"")), ["phase"]);
    assert_eq!(edits(&current.replace("{\n", "{\n  \"theirs\": 1,\n")), Vec::<String>::new());
}

#[test]
fn a_state_survives_its_stored_form() {
    let mut state = adopted(FILE).unwrap();
    stops(&mut state, 1, &block("QA_COMPLETE"));
    let stored = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&stored).unwrap(), state);
}

#[test]
fn the_view_before_a_completed_phase_was_once_right() {
    for phase in ["qa", "reflect"] {
        let mut state = run_in(phase);
        let (before, older) = (state.clone(), AutoStateFile::render(&state, None));
        stops(&mut state, 1, &block(&before.expected()));
        assert_ne!(state.phase(), phase);
        let view = AutoStateFile::parse(&older).unwrap();
        assert_eq!(view.edits(&before), Vec::<String>::new(), "{phase}");
        assert_eq!(view.started_at(), state.started_at());
        let edited = older.replace("\"iteration\": 0", "\"iteration\": 3");
        assert_ne!(AutoStateFile::parse(&edited).unwrap().edits(&before), Vec::<String>::new());
    }
}
