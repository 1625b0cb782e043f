//! What the hosts promise to a hook, asked of the hosts themselves with a hook that is a few lines of
//! shell. When a new version breaks a promise, this fails before anything of ours does.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;

use aldis_testkit::model_server::{ModelServer, Script, ScriptedReply};
use aldis_testkit::real_host::{HostKind, HostRun, Installed, RealHost, SessionChoice};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A host with the recording hook registered in its project.
struct Bench {
    host: RealHost,
    directory: TempDir,
}

impl Bench {
    fn new(kind: HostKind) -> Option<Self> {
        let installed = Installed::find()?;
        let directory = TempDir::new().unwrap();
        let host = match kind {
            HostKind::Claude => RealHost::claude(&installed.claude, directory.path()),
            HostKind::Codex => RealHost::codex(&installed.codex, directory.path()),
        };
        let bench = Self { host: host.unwrap(), directory };
        fs::write(bench.path("hook.sh"), HOOK).unwrap();
        let script = bench.path("hook.sh");
        let groups = EVENTS.map(|event| {
            let command = format!("sh '{}' {event}", script.display());
            let handler = json!({"type": "command", "command": command, "timeout": 3});
            (event.to_owned(), json!([{"hooks": [handler]}]))
        });
        let groups: serde_json::Map<_, _> = groups.into_iter().collect();
        let settings = bench.host.project().join(match kind {
            HostKind::Claude => ".claude/settings.json",
            HostKind::Codex => ".codex/hooks.json",
        });
        fs::create_dir_all(settings.parent().unwrap()).unwrap();
        fs::write(settings, json!({"hooks": groups}).to_string()).unwrap();
        Some(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Says what the hook answers: to its nth call, or without a number to every one.
    fn answer(&self, event: &str, call: Option<usize>, answer: &Value) {
        let call = call.map(|call| format!(".{call}")).unwrap_or_default();
        fs::write(self.path(&format!("{event}.answer{call}")), answer.to_string()).unwrap();
    }

    fn block(&self, call: Option<usize>, reason: &str) {
        self.answer("Stop", call, &json!({"decision": "block", "reason": reason}));
    }

    fn run(&self, model: &ModelServer, session: &SessionChoice) -> HostRun {
        let run = self.host.run(model, "do the task", session).unwrap();
        assert!(run.status.success(), "{}", run.text());
        run
    }

    /// What the hook was told, call by call.
    fn payloads(&self, event: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(&format!("{event}.payloads"))).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn says(texts: &[&str]) -> ModelServer {
    ModelServer::start(Script::new(texts.iter().map(|text| ScriptedReply::says(*text)))).unwrap()
}

fn column<'a>(payloads: &'a [Value], key: &str) -> Vec<&'a Value> {
    payloads.iter().map(|payload| &payload[key]).collect()
}

fn keys(payload: &Value) -> Vec<&str> {
    payload.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn claude_tells_the_hook_what_was_said_and_goes_on_when_blocked() {
    let Some(bench) = Bench::new(HostKind::Claude) else { return };
    bench.block(Some(0), "REASON-0");
    bench.block(Some(1), "REASON-1");
    let model = says(&["first", "second", "third"]);
    bench.run(&model, &SessionChoice::New);
    let stops = bench.payloads("Stop");
    let expected = [
        "background_tasks",
        "cwd",
        "effort",
        "hook_event_name",
        "last_assistant_message",
        "permission_mode",
        "prompt_id",
        "session_crons",
        "session_id",
        "stop_hook_active",
        "transcript_path",
    ];
    assert_eq!(keys(&stops[0]), expected);
    assert_eq!(column(&stops, "last_assistant_message"), ["first", "second", "third"]);
    assert_eq!(column(&stops, "stop_hook_active"), [false, true, true]);
    let turn = &bench.payloads("UserPromptSubmit")[0]["prompt_id"];
    assert_eq!(column(&stops, "prompt_id"), [turn; 3]);
    let asked = model.main_requests();
    assert_eq!(asked.len(), 3);
    assert!(asked[1].is_told("Stop hook feedback:\nREASON-0"), "{:?}", asked[1].told());
    assert!(asked[2].is_told("Stop hook feedback:\nREASON-1"), "{:?}", asked[2].told());
    assert_eq!(column(&bench.payloads("SessionStart"), "source"), ["startup"]);
    assert_eq!(column(&bench.payloads("SessionEnd"), "reason"), ["other"]);
}

#[test]
fn claude_overrides_the_ninth_block_and_begins_anew_when_resumed() {
    let Some(bench) = Bench::new(HostKind::Claude) else { return };
    bench.block(None, "go on");
    let model = says(&["no"]);
    let run = bench.run(&model, &SessionChoice::New);
    assert_eq!(bench.payloads("Stop").len(), 9);
    assert_eq!(model.main_requests().len(), 9);
    let warned = |event: &Value| {
        event["subtype"] == "informational"
            && event["content"].as_str().is_some_and(|text| text.contains("9 consecutive times"))
    };
    assert_eq!(run.events().filter(warned).count(), 1, "{}", run.text());
    let result = run.events().last().unwrap();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));

    let resumed = bench.run(&model, &SessionChoice::Resumed(run.session_id.clone().unwrap()));
    assert_eq!(resumed.session_id, run.session_id);
    let stops = bench.payloads("Stop");
    assert_eq!(stops.len(), 18);
    assert_eq!(stops[9]["stop_hook_active"], false);
    assert_ne!(stops[9]["prompt_id"], stops[8]["prompt_id"]);
}

#[test]
fn claude_does_not_count_a_continuation_that_used_a_tool() {
    let Some(bench) = Bench::new(HostKind::Claude) else { return };
    for call in 0..11 {
        bench.block(Some(call), "go on");
    }
    let rounds = (0..12).flat_map(|_| [ScriptedReply::runs("echo ok"), ScriptedReply::says("no")]);
    let model = ModelServer::start(Script::new(rounds)).unwrap();
    bench.run(&model, &SessionChoice::New);
    assert_eq!(bench.payloads("Stop").len(), 12);
    assert_eq!(model.main_requests().len(), 24);
    assert!(model.main_requests()[1].is_told("ok"));
}

#[test]
fn codex_tells_the_hook_what_was_said_and_goes_on_when_blocked() {
    let Some(bench) = Bench::new(HostKind::Codex) else { return };
    bench.block(Some(0), "REASON <0>");
    for call in 1..11 {
        bench.block(Some(call), "again");
    }
    let model = ModelServer::start(Script::new([
        ScriptedReply::runs("echo ok"),
        ScriptedReply::says("first"),
        ScriptedReply::says("second"),
    ]));
    let model = model.unwrap();
    bench.run(&model, &SessionChoice::New);
    let stops = bench.payloads("Stop");
    let expected = [
        "cwd",
        "hook_event_name",
        "last_assistant_message",
        "model",
        "permission_mode",
        "session_id",
        "stop_hook_active",
        "transcript_path",
        "turn_id",
    ];
    assert_eq!(keys(&stops[0]), expected);
    assert_eq!(stops.len(), 12, "there is no cap");
    assert_eq!(column(&stops[..3], "last_assistant_message"), ["first", "second", "second"]);
    assert_eq!(column(&stops[..3], "stop_hook_active"), [false, true, true]);
    let turn = &bench.payloads("UserPromptSubmit")[0]["turn_id"];
    assert_eq!(column(&stops, "turn_id"), [turn; 12]);
    let asked = model.main_requests();
    assert!(asked[1].is_told("ok"), "{:?}", asked[1].told());
    let told = &asked[2].told()[0];
    assert!(told.starts_with("<hook_prompt hook_run_id=\"stop:"), "{told}");
    assert!(told.ends_with(">REASON &lt;0&gt;</hook_prompt>"), "{told}");
}

#[test]
fn codex_begins_a_new_turn_when_resumed() {
    let Some(bench) = Bench::new(HostKind::Codex) else { return };
    let run = bench.run(&says(&["one"]), &SessionChoice::New);
    let resumed =
        bench.run(&says(&["two"]), &SessionChoice::Resumed(run.session_id.clone().unwrap()));
    assert_eq!(resumed.session_id, run.session_id);
    let stops = bench.payloads("Stop");
    assert_eq!(column(&stops, "session_id"), [&json!(run.session_id); 2]);
    assert_eq!(column(&stops, "stop_hook_active"), [false, false]);
    assert_ne!(stops[0]["turn_id"], stops[1]["turn_id"]);
    assert_eq!(column(&bench.payloads("SessionStart"), "source"), ["startup", "resume"]);
}

#[test]
fn codex_skips_a_hook_that_nobody_reviewed() {
    let Some(mut bench) = Bench::new(HostKind::Codex) else { return };
    bench.host = bench.host.reviewing_hooks();
    let run = bench.run(&says(&["one"]), &SessionChoice::New);
    assert_eq!(bench.payloads("Stop"), [json!(null); 0], "{}", run.text());
}

#[test]
fn claude_tells_of_its_agents_and_wakes_for_what_they_bring() {
    let Some(bench) = Bench::new(HostKind::Claude) else { return };
    let replies = [
        ScriptedReply::delegates("the work"),
        ScriptedReply::says("waiting"),
        ScriptedReply::says("done"),
    ];
    let model = ModelServer::start(Script::new(replies).with_subagent("brought")).unwrap();
    let run = bench.run(&model, &SessionChoice::New);
    let stopped = bench.payloads("SubagentStop");
    assert_eq!(column(&stopped, "last_assistant_message"), ["brought"], "{}", run.text());
    assert_eq!(column(&stopped, "session_id"), [&json!(run.session_id)]);
    for key in ["agent_id", "agent_type", "agent_transcript_path", "prompt_id"] {
        assert!(stopped[0][key].is_string(), "{key}: {}", stopped[0]);
    }
    // The main agent does not wait for the other one. What that brings comes as a prompt that no
    // person wrote, and begins a turn.
    let stops = bench.payloads("Stop");
    assert_eq!(column(&stops, "last_assistant_message"), ["waiting", "done"]);
    assert_eq!(column(&stops, "stop_hook_active"), [false, false]);
    assert_ne!(stops[0]["prompt_id"], stops[1]["prompt_id"]);
    let prompts = bench.payloads("UserPromptSubmit");
    assert_eq!(prompts.len(), 2);
    let brought = prompts[1]["prompt"].as_str().unwrap();
    assert!(brought.starts_with("<task-notification>"), "{brought}");
    assert!(brought.contains("<result>brought</result>"), "{brought}");
}

#[test]
fn codex_tells_of_its_agents_under_the_name_of_the_session() {
    let Some(bench) = Bench::new(HostKind::Codex) else { return };
    let replies = [
        ScriptedReply::delegates("the work"),
        ScriptedReply::runs("sleep 1"),
        ScriptedReply::says("done"),
    ];
    let model = ModelServer::start(Script::new(replies).with_subagent("brought")).unwrap();
    let run = bench.run(&model, &SessionChoice::New);
    let stopped = bench.payloads("SubagentStop");
    assert_eq!(column(&stopped, "last_assistant_message"), ["brought"], "{}", run.text());
    assert_eq!(column(&stopped, "session_id"), [&json!(run.session_id)]);
    // The prompt of the other agent is announced like one of the user's, but for its agent.
    let prompts = bench.payloads("UserPromptSubmit");
    assert_eq!(column(&prompts, "prompt"), ["do the task", "the work"]);
    assert_eq!(prompts[0]["agent_id"], Value::Null);
    assert_eq!(prompts[1]["agent_id"], stopped[0]["agent_id"]);
    assert_eq!(column(&prompts, "session_id"), [&json!(run.session_id); 2]);
    let stops = bench.payloads("Stop");
    assert!(stops.iter().all(|stop| stop["turn_id"] == prompts[0]["turn_id"]), "{stops:?}");
}

#[test]
fn a_hook_can_add_to_a_prompt() {
    for kind in [HostKind::Claude, HostKind::Codex] {
        let Some(bench) = Bench::new(kind) else { return };
        let specific = json!({"hookEventName": "UserPromptSubmit", "additionalContext": "CONTEXT"});
        bench.answer("UserPromptSubmit", None, &json!({"hookSpecificOutput": specific}));
        let model = says(&["one"]);
        bench.run(&model, &SessionChoice::New);
        let asked = model.main_requests();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].is_told("do the task"));
        assert!(asked[0].is_told("CONTEXT"), "{kind:?}: {:?}", asked[0].told());
        assert_eq!(column(&bench.payloads("UserPromptSubmit"), "prompt"), ["do the task"]);
    }
}

#[test]
fn the_transcript_holds_the_last_message_or_will() {
    for kind in [HostKind::Claude, HostKind::Codex] {
        let Some(bench) = Bench::new(kind) else { return };
        bench.run(&says(&["the last words"]), &SessionChoice::New);
        let stop = &bench.payloads("Stop")[0];
        assert_eq!(stop["last_assistant_message"], "the last words");
        let transcript = fs::read_to_string(stop["transcript_path"].as_str().unwrap()).unwrap();
        assert!(transcript.contains("the last words"), "{kind:?}");
    }
}

/// Keeps each payload on a line of its own, then answers with what the test has laid out.
const HOOK: &str = r#"
here=$(dirname "$0")
payloads="$here/$1.payloads"
call=$(cat "$payloads" 2>/dev/null | wc -l | tr -d ' ')
tr -d '\n' >>"$payloads"
echo >>"$payloads"
if [ -f "$here/$1.answer.$call" ]; then
    cat "$here/$1.answer.$call"
elif [ -f "$here/$1.answer" ]; then
    cat "$here/$1.answer"
fi
"#;

const EVENTS: [&str; 5] =
    ["SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd"];
