//! The plugins, installed by the hosts' own commands: what `aldis install` would have registered.

use std::path::Path;
use std::process::Command;

use aldis_testkit::model_server::ScriptedReply;
use aldis_testkit::real_host::{HostKind, Installed};
use serde_json::json;

use super::stage::Stage;
use super::{SHORT, SHORT_PHASES, assert_told, model, work};

/// Installs the plugin of the repository, which is a marketplace, into the scratch home of a host.
fn stage(kind: HostKind) -> Option<Stage> {
    let stage = Stage::without_registration(kind)?;
    let installed = Installed::find()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let (program, install) = match kind {
        HostKind::Claude => (installed.claude, "install"),
        HostKind::Codex => (installed.codex, "add"),
    };
    let market = ["plugin", "marketplace", "add", root.to_str().unwrap()];
    for arguments in [&market[..], &["plugin", install, "aldis@aldis"]] {
        let output = Command::new(&program)
            .args(arguments)
            .current_dir(stage.host().project())
            .env_clear()
            .envs(stage.host().environment())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {printed}");
    }
    Some(stage)
}

#[test]
fn claude_code_calls_the_hook_of_the_plugin() {
    calls_the_hook(HostKind::Claude);
}

#[test]
fn codex_calls_the_hook_of_the_plugin() {
    calls_the_hook(HostKind::Codex);
}

fn calls_the_hook(kind: HostKind) {
    let Some(stage) = stage(kind) else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let model = model(work(&SHORT_PHASES));
    stage.run(&model, &session);
    stage.assert_complete();
}

#[test]
fn claude_code_calls_the_server_of_the_plugin() {
    // Tools of a plugin have its name before that of its server.
    let stage = stage(HostKind::Claude)
        .map(|stage| stage.with_arguments(&["--allowedTools", "mcp__plugin_aldis_aldis,Bash"]));
    calls_the_server(stage);
}

#[test]
fn codex_calls_the_server_of_the_plugin() {
    calls_the_server(stage(HostKind::Codex));
}

fn calls_the_server(stage: Option<Stage>) {
    let Some(stage) = stage else { return };
    let session = stage.open_session();
    stage.start(&session, &SHORT);
    let each = || {
        [
            ScriptedReply::calls("complete", json!({"summary": "this phase is done"})),
            ScriptedReply::says("I am through."),
        ]
    };
    let model = model([each(), each(), each()].concat());
    stage.run(&model, &session);
    stage.assert_complete();
    assert_told(&model.main_requests()[1], "It counts when you stop");
}
