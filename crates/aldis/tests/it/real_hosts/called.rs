//! The hosts themselves call the tools: what they tell of a call is what is relied on.

use std::fs;
use std::path::Path;

use aldis_testkit::model_server::{ModelServer, Recorded, Reply, Script};
use aldis_testkit::real_host::{HostKind, HostSession};
use serde_json::json;

use super::stage::{Conversation, Stage};
use super::{SHORT, assert_told, model};
use crate::sandbox::ALDIS;

mod claude {
    //! Claude Code: the environment names the session, each call its id.

    use aldis_testkit::real_host::HostKind::Claude;

    #[test]
    fn phases_end_by_call() {
        super::phases_end_by_call(Claude);
    }

    #[test]
    fn a_refusal_is_cured_in_the_same_turn() {
        super::a_refusal_is_cured_in_the_same_turn(Claude);
    }

    #[test]
    fn another_session_is_refused() {
        super::another_session_is_refused(Claude);
    }

    #[test]
    fn a_sub_agent_does_not_end_the_run() {
        super::a_sub_agent_does_not_end_the_run();
    }
}

mod codex {
    //! Codex: each call names its session.

    use aldis_testkit::real_host::HostKind::Codex;

    #[test]
    fn phases_end_by_call() {
        super::phases_end_by_call(Codex);
    }

    #[test]
    fn a_refusal_is_cured_in_the_same_turn() {
        super::a_refusal_is_cured_in_the_same_turn(Codex);
    }

    #[test]
    fn another_session_is_refused() {
        super::another_session_is_refused(Codex);
    }
}

/// Sets up a host that knows the server, as its registration would.
fn stage(kind: HostKind) -> Option<Stage> {
    Stage::new(kind).map(|stage| {
        let state = stage.state_dir();
        match kind {
            HostKind::Claude => {
                let server = json!({"command": ALDIS, "args": ["mcp"]});
                let servers = json!({"mcpServers": {"aldis": server}});
                let file = stage.host().project().join(".mcp.json");
                fs::write(file, servers.to_string()).unwrap();
                stage.with_arguments(&["--allowedTools", "mcp__aldis,Bash"])
            }
            HostKind::Codex => stage.with_arguments(&server_of_codex(&state)),
        }
    })
}

/// What the configuration of Codex would say. It passes no variables on but those that are named.
fn server_of_codex(state: &Path) -> Vec<String> {
    let variables =
        format!("mcp_servers.aldis.env={{ALDIS_STATE_DIR={:?}}}", state.display().to_string());
    let settings = [
        format!("mcp_servers.aldis.command={ALDIS:?}"),
        "mcp_servers.aldis.args=[\"mcp\"]".to_owned(),
        variables,
    ];
    settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect()
}

fn complete(summary: &str) -> Reply {
    Reply::calls("complete", json!({ "summary": summary }))
}

fn run(stage: &Stage, session: &Conversation, replies: Vec<Reply>) -> Vec<Recorded> {
    let model = model(replies);
    stage.run(&model, session);
    model.main_requests()
}

/// The tool is there at once and allowed, its answer reaches the model, and the phase ends. What the
/// transcript shows counts as `call`.
fn phases_end_by_call(kind: HostKind) {
    let Some(stage) = stage(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let each = || [complete("this phase is done"), Reply::says("I am through.")];
    let asked = run(&stage, &session, [each(), each(), each()].concat());
    stage.assert_complete();
    assert_eq!(asked.len(), 6);
    assert_told(&asked[1], "It counts when you stop");
    let log = stage.aldis(&["why", "--all", "--json", &stage.run_name()]);
    let attested = log.matches("\"via\":\"call\"").count();
    assert!(attested > 0, "{log}");
}

fn a_refusal_is_cured_in_the_same_turn(kind: HostKind) {
    let Some(stage) = stage(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let too_early = Reply::calls("complete", json!({"summary": "x", "phase": "execution"}));
    let replies = vec![
        too_early,
        complete("prepared"),
        Reply::says("I am through."),
        complete("planned"),
        Reply::says("I am through."),
        complete("carried out"),
        Reply::says("I am through."),
    ];
    let asked = run(&stage, &session, replies);
    stage.assert_complete();
    assert_told(&asked[1], "call/out-of-order");
    assert_told(&asked[2], "It counts when you stop");
    // The refusal cost no stop.
    assert_eq!(asked.len(), 7);
}

fn another_session_is_refused(kind: HostKind) {
    let Some(stage) = stage(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    // The run belongs to a session from its start.
    let stranger = model(vec![complete("not mine"), Reply::says("Fine.")]);
    stage.host().run(&stranger, "What is in this directory?", &HostSession::New).unwrap();
    let asked = stranger.main_requests();
    assert_told(&asked[1], "call/other-session");
    assert_eq!(stage.status()["phase"], "init");
}

/// A sub-agent of Claude Code calls under the session of the main agent: its transcript tells.
fn a_sub_agent_does_not_end_the_run() {
    let Some(stage) = stage(HostKind::Claude) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let all = Reply::calls("complete", json!({"summary": "all of it", "phase": "all"}));
    let replies = [Reply::delegates("prepare everything"), Reply::says("The helper is at it.")];
    let script = Script::new(replies).with_subagent_replies([all, Reply::says("I am done.")]);
    let server = ModelServer::start(script).unwrap();
    let _run = stage.host().run(&server, "Begin.", session.next()).unwrap();
    let status = stage.status();
    assert_ne!(status["exit_reason"], "auto_complete_signal", "{status}");
    let log = stage.aldis(&["why", "--all", "--json", &stage.run_name()]);
    assert!(!log.contains("\"phases/auto-complete\""), "{log}");
    assert!(
        server.requests().iter().any(|it| it.is_told("aldis-call-")),
        "the tool was not called"
    );
}
