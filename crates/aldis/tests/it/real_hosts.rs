//! The hosts themselves with `aldis install` done, against a model that follows a script.
//!
//! Slow beside the others, so only what needs a real host is here: that the hook is found and run,
//! that its words reach the model, that the host's own limit is survived, and that nobody else's
//! session notices. What the hook decides is tested without a host.

mod by_name;
mod called;
mod checked;
mod drift;
mod limits;
mod long;
mod plugin;
mod postmortem;
mod stage;
mod supervised;

use aldis_testkit::model_server::{ModelServer, Recorded, Script, ScriptedReply};
use aldis_testkit::real_host::{HostKind, SessionChoice};
use serde_json::json;

use self::stage::Stage;

mod claude {
    //! Claude Code ends a turn that was blocked nine times in a row.

    use aldis_testkit::real_host::HostKind::Claude;

    #[test]
    fn goes_through_all_nine_phases() {
        super::goes_through_all_nine_phases(Claude);
    }

    #[test]
    fn a_mention_does_not_count() {
        super::a_mention_does_not_count(Claude);
    }

    #[test]
    fn a_capped_run_is_resumed() {
        super::a_capped_run_is_resumed(Claude);
    }

    #[test]
    fn another_session_is_left_alone() {
        super::another_session_is_left_alone(Claude);
    }

    #[test]
    fn a_near_miss_is_corrected() {
        super::a_near_miss_is_corrected(Claude);
    }

    #[test]
    fn a_subagent_completes_its_phase() {
        super::a_subagent_completes_its_phase(Claude);
    }

    /// Only this host can be woken in place.
    #[test]
    fn an_answer_wakes_the_session() {
        super::an_answer_wakes_the_session(Claude);
    }

    #[test]
    fn a_promise_ends_a_loop() {
        super::a_promise_ends_a_loop(Claude);
    }
}

mod codex {
    //! Codex has no limit: ours must do.

    use aldis_testkit::real_host::HostKind::Codex;

    #[test]
    fn goes_through_all_nine_phases() {
        super::goes_through_all_nine_phases(Codex);
    }

    #[test]
    fn a_mention_does_not_count() {
        super::a_mention_does_not_count(Codex);
    }

    #[test]
    fn a_capped_run_is_resumed() {
        super::a_capped_run_is_resumed(Codex);
    }

    #[test]
    fn another_session_is_left_alone() {
        super::another_session_is_left_alone(Codex);
    }

    #[test]
    fn a_near_miss_is_corrected() {
        super::a_near_miss_is_corrected(Codex);
    }

    #[test]
    fn a_promise_ends_a_loop() {
        super::a_promise_ends_a_loop(Codex);
    }
}

fn goes_through_all_nine_phases(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &[]);
    let model = model(work(&PHASES));
    stage.run(&model, &session);
    stage.assert_complete();
    stage.assert_user_told(
        "Phase init is complete. Kept the agent working on phase planning, 3 of 9.",
    );
    stage.assert_user_told("is complete.");
    // One request that runs the tool and one that ends the phase, for each of them.
    let asked = model.main_requests();
    assert_eq!(asked.len(), 2 * PHASES.len());
    for (phase, request) in PHASES.iter().zip(asked.iter().step_by(2)) {
        assert_told(request, &signal_name(phase));
    }
    for request in asked.iter().skip(1).step_by(2) {
        assert_told(request, TOOL_OUTPUT);
    }
}

fn a_mention_does_not_count(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let mention = "I have read the task. When the setup is done I will say SIGNAL: INIT_COMPLETE \
                   in a block of its own, but there is work to do before.";
    let model = model([vec![ScriptedReply::says(mention)], work(&SHORT_PHASES)].concat());
    stage.run(&model, &session);
    stage.assert_complete();
    // The mention cost one request: the model was asked for the same phase again.
    let asked = model.main_requests();
    assert_eq!(asked.len(), 1 + 2 * SHORT_PHASES.len());
    assert_told(&asked[1], "INIT_COMPLETE");
}

fn a_capped_run_is_resumed(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &[&SHORT[..], &["--max-iterations", "50"]].concat());
    let lazy = model(vec![ScriptedReply::says("Still thinking about it.")]);
    let run = stage.run(&lazy, &session);
    stage.assert_user_told("is paused, not finished");
    assert!(!run.text().contains("invalid"), "{}", run.text());
    // The stops that were refused, and the one that was let go: before the host gives up, or where
    // it never does, before the user does.
    let stops = match kind {
        HostKind::Claude => 8 + 1,
        HostKind::Codex => 20 + 1,
    };
    assert_eq!(lazy.main_requests().len(), stops);
    let status = stage.status();
    for (member, wanted) in
        [("phase", json!("init")), ("active", json!(true)), ("capped", json!(true))]
    {
        assert_eq!(status[member], wanted, "{status}");
    }
    let why = stage.json(&["why", "--last", "--json"]);
    assert_eq!(why["rule"], "phases/capped", "{why}");

    stage.aldis(&["auto", "resume"]);
    let model = model(work(&SHORT_PHASES));
    stage.run(&model, &session.resumed());
    stage.assert_complete();
    assert_eq!(model.main_requests().len(), 2 * SHORT_PHASES.len());
}

fn another_session_is_left_alone(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let before = stage.status();
    // Even words that would end the phase do not, from another's mouth.
    let stranger = model(vec![ScriptedReply::says(signal("init"))]);
    stage.host().run(&stranger, "What is in this directory?", &SessionChoice::New).unwrap();
    let asked = stranger.main_requests();
    assert_eq!(asked.len(), 1, "the stop of another session was blocked");
    assert!(!asked[0].knows("INIT_COMPLETE"), "another session was told of the run");
    let after = stage.status();
    for member in ["phase", "active", "iteration", "exit_reason", "capped"] {
        assert_eq!(before[member], after[member], "{member}");
    }

    let model = model(work(&SHORT_PHASES));
    stage.run(&model, &session);
    stage.assert_complete();
}

fn a_near_miss_is_corrected(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let misspelled = signal("init").replace("INIT_COMPLETE", "INIT_COMPLETED");
    let model = model([vec![ScriptedReply::says(misspelled)], work(&SHORT_PHASES)].concat());
    stage.run(&model, &session);
    stage.assert_complete();
    let asked = model.main_requests();
    assert_eq!(asked.len(), 1 + 2 * SHORT_PHASES.len());
    // What was wrong, and what would have been right.
    assert_told(&asked[1], "INIT_COMPLETED");
    let right = asked[1].told().concat().replace("INIT_COMPLETED", "");
    assert!(right.contains("INIT_COMPLETE"), "{right}");
    let why = stage.aldis(&["why", "--all", "--json", &stage.run_name()]);
    assert!(why.contains("\"misspelled\"") || why.contains("\"unknown_name\""), "{why}");
}

fn a_subagent_completes_its_phase(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let delegated = vec![
        ScriptedReply::delegates("prepare everything"),
        ScriptedReply::says("The helper is at it."),
    ];
    let script = Script::new([delegated, work(&["planning", "execution"])].concat());
    let model = ModelServer::start(script.with_subagent(signal("init"))).unwrap();
    stage.run(&model, &session);
    stage.assert_complete();
    let log = stage.aldis(&["why", "--all", "--json", &stage.run_name()]);
    assert!(log.contains("sub-agent"), "{log}");
}

/// The host's process does not end meanwhile: it is one turn with a pause in it.
fn an_answer_wakes_the_session(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let settings = stage.host().project().join("aldis.toml");
    std::fs::write(settings, "phases.wake_headless = \"2m\"\n").unwrap();
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let asks = "---\nSIGNAL: PHASE_ERROR\nPHASE: init\nSTATUS: error\nERROR: which branch?\n\
                RECOVERABLE: true\n---\n";
    let model = model([vec![ScriptedReply::says(asks)], work(&SHORT_PHASES)].concat());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| stage.run(&model, &session));
        stage.wait_until(&["status", "--json"], "which branch?");
        stage.aldis(&["answer", "q1", "Use the release branch."]);
        run.join().unwrap();
    });
    stage.assert_complete();
    let asked = model.main_requests();
    assert_eq!(asked.len(), 1 + 2 * SHORT_PHASES.len());
    assert_told(&asked[1], "Use the release branch.");
    assert_told(&asked[1], "aldis woke this session for run");
    let rules = stage.aldis(&["why", "--all", "--json", &stage.run_name()]);
    assert!(rules.contains("phases/woken"), "{rules}");
}

fn a_promise_ends_a_loop(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &["--dialect", "promise=ALL TESTS PASS"]);
    let promised = "They do now.\n\n<promise>ALL TESTS PASS</promise>";
    let model =
        model(vec![ScriptedReply::says("I am nearly there."), ScriptedReply::says(promised)]);
    stage.run(&model, &session);
    stage.assert_complete();
    let asked = model.main_requests();
    assert_eq!(asked.len(), 2);
    assert_told(&asked[0], "<promise>ALL TESTS PASS</promise>");
    // Codex escapes what a hook says.
    let again = asked[1].told().concat().replace("&lt;", "<").replace("&gt;", ">");
    assert!(again.contains("    <promise>ALL TESTS PASS</promise>"), "{again}");
}

fn model(replies: Vec<ScriptedReply>) -> ModelServer {
    ModelServer::start(Script::new(replies)).unwrap()
}

/// A tool call and the signal, for each phase.
fn work(phases: &[&str]) -> Vec<ScriptedReply> {
    let tool = format!("echo {TOOL_OUTPUT}");
    phases
        .iter()
        .flat_map(|phase| [ScriptedReply::runs(&tool), ScriptedReply::says(signal(phase))])
        .collect()
}

fn signal_name(phase: &str) -> String {
    format!("{}_COMPLETE", phase.to_uppercase())
}

/// A message that ends a phase.
fn signal(phase: &str) -> String {
    let name = signal_name(phase);
    let next = PHASES.iter().skip_while(|other| **other != phase).nth(1).unwrap_or(&"complete");
    format!(
        "The work of this phase is done.\n\n---\nSIGNAL: {name}\nPHASE: {phase}\nSTATUS: complete\n\
         TIMESTAMP: 2026-03-02T10:00:00Z\nNEXT: {next}\n---\n"
    )
}

fn assert_told(request: &Recorded, text: &str) {
    assert!(request.is_told(text), "`{text}` is not in {:#?}", request.told());
}

const PHASES: [&str; 9] =
    ["expansion", "init", "planning", "execution", "qa", "review", "fix", "check", "reflect"];

/// A run with fewer phases, where their number is not the point.
const SHORT: [&str; 4] = ["--skip-expansion", "--skip-qa", "--skip-review", "--skip-reflect"];
const SHORT_PHASES: [&str; 3] = ["init", "planning", "execution"];

const TOOL_OUTPUT: &str = "tool-output-ok";
