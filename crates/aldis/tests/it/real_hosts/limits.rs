//! A service that refuses to work for a while: the same iteration is repeated in the same session, and
//! is not counted.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use aldis_testkit::model_server::{ModelServer, ScriptedReply};
use aldis_testkit::real_host::HostKind;

use super::by_name::ended;
use super::model;
use super::supervised::Stage;

mod claude {
    //! It says what its service answered.

    use aldis_testkit::real_host::HostKind::Claude;

    #[test]
    fn a_rate_limit_is_waited_for() {
        super::a_rate_limit_is_waited_for(Claude, &super::rate_limited());
    }

    #[test]
    fn a_service_that_fails_is_waited_for() {
        super::a_rate_limit_is_waited_for(Claude, &super::overloaded());
    }
}

mod codex {
    //! It says no more than the status.

    use aldis_testkit::real_host::HostKind::Codex;

    #[test]
    fn a_rate_limit_is_waited_for() {
        super::a_rate_limit_is_waited_for(Codex, &super::rate_limited());
    }
}

fn rate_limited() -> ScriptedReply {
    ScriptedReply::fails(429, "rate_limit_error", "This request would exceed your rate limit.")
}

fn overloaded() -> ScriptedReply {
    ScriptedReply::fails(529, "overloaded_error", "Overloaded")
}

/// The host gives up at once, as it does in the end when a limit lasts.
fn a_rate_limit_is_waited_for(kind: HostKind, error: &ScriptedReply) {
    let Some(stage) = Stage::new(kind) else { return };
    let stage = stage.with_env("CLAUDE_CODE_MAX_RETRIES", "0");
    let model = interrupted_by(error.clone());
    let text = waits(&stage, &model, "2s");
    assert!(text.contains("waiting for the service; retrying at"), "{text}");
}

/// Codex says to the minute when its limit is over.
pub(super) fn the_end_of_a_usage_limit_is_waited_for() {
    let Some(stage) = Stage::new(HostKind::Codex) else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let model = interrupted_by(ScriptedReply::usage_limit(now + 70));
    // Nobody would wait an hour for this test: the time that the service names counts.
    let text = waits(&stage, &model, "1h");
    assert!(text.contains("waiting for the service; retrying at"), "{text}");
}

/// The agent begins, then its service refuses, then the agent goes on and is done.
fn interrupted_by(error: ScriptedReply) -> ModelServer {
    let begins = ScriptedReply {
        text: "I looked at the heron.".to_owned(),
        ..ScriptedReply::runs("echo half > work.txt")
    };
    let done = "It is there.\n\n<chorus>COMPLETE</chorus>";
    model(vec![begins, error, ScriptedReply::says(done)])
}

fn waits(stage: &Stage, model: &ModelServer, limit_wait: &str) -> String {
    let settings = format!("[run]\nlimit_wait = \"{limit_wait}\"\nmax_iterations = 1\n");
    fs::write(stage.host.project().join("aldis.toml"), settings).unwrap();
    let allow = match stage.host.kind() {
        HostKind::Claude => &["--host", "claude-code", "--allow", "Bash"][..],
        HostKind::Codex => &["--yolo"],
    };
    let (code, text) = ended(stage.by_name(model, allow, &["Write the parser"]));
    assert_eq!(code, Some(0), "{text}");
    let status = stage.status();
    // It is the only one that may be, so that a second would not be done.
    assert_eq!(
        (&status["iteration"], &status["exit_reason"]),
        (&1.into(), &"done".into()),
        "{status}"
    );
    let asked = model.main_requests();
    assert_eq!(asked.len(), 3, "{text}");
    assert!(asked[2].knows("I looked at the heron."), "it is another session: {text}");
    text
}
