//! The server, asked by hand.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{ModelServer, Script, ScriptedCall, ScriptedReply, Speaker, tool};

fn ask(server: &ModelServer, head: &str, body: &str) -> String {
    let address = server.url().replace("http://", "");
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    // In one piece: the server may close the connection after a first line that it does not understand.
    let request = format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    // A server that does not read to the end may reset the connection: then there is no answer.
    drop(stream.read_to_string(&mut answer));
    answer
}

fn post(server: &ModelServer, path: &str, body: &Value) -> String {
    ask(server, &format!("POST {path} HTTP/1.1\r\nHost: x"), &body.to_string())
}

/// The data of the events in an answer.
fn events(answer: &str) -> Vec<Value> {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn claude(stream: bool) -> Value {
    let properties = json!({"command": {"type": "string"}, "description": {"type": "string"}});
    json!({
        "model": "m",
        "stream": stream,
        "tools": [{"name": "Bash", "input_schema": {"properties": properties}}],
        "messages": [{"role": "user", "content": "go"}],
    })
}

fn codex() -> Value {
    let properties = json!({"cmd": {"type": "string"}});
    json!({
        "model": "m",
        "stream": true,
        "tools": [{"name": "exec_command", "parameters": {"properties": properties}}],
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "go"}]}],
    })
}

#[test]
fn messages_are_streamed_block_by_block() {
    let reply = ScriptedReply {
        text: "wörk".to_owned(),
        call: Some(ScriptedCall::Command("echo ok".to_owned())),
        error: None,
    };
    let server = ModelServer::start(Script::new([reply])).unwrap();
    let events = events(&post(&server, "/v1/messages?beta=true", &claude(true)));
    let block =
        ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"];
    let expected = [&["message_start"], &block[..], &block, &["message_delta", "message_stop"]];
    assert_eq!(kinds(&events), expected.concat());
    let text = [&events[2], &events[3]].map(|event| event["delta"]["text"].as_str().unwrap());
    assert_eq!(text.concat(), "wörk");
    let input =
        [&events[6], &events[7]].map(|event| event["delta"]["partial_json"].as_str().unwrap());
    let input: Value = serde_json::from_str(&input.concat()).unwrap();
    assert_eq!(input["command"], "echo ok");
    assert_eq!(events[9]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn responses_are_streamed_item_by_item() {
    let reply = ScriptedReply {
        text: "work".to_owned(),
        call: Some(ScriptedCall::Command("echo ok".to_owned())),
        error: None,
    };
    let server = ModelServer::start(Script::new([reply])).unwrap();
    let events = events(&post(&server, "/v1/responses", &codex()));
    let expected = [
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_item.done",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[6]["item"]["arguments"], r#"{"cmd":"echo ok"}"#);
}

#[test]
fn a_tool_is_found_by_its_name_and_called_by_its_schema() {
    let delegate = ScriptedCall::Delegate("work".to_owned());
    let message = json!({"properties": {"message": {"type": "string"}}});
    let member = json!({"type": "function", "name": "spawn_agent", "parameters": message});
    let group = json!({"type": "namespace", "name": "agents", "tools": [member]});
    let found = tool::find(&json!({"tools": [group]}), &delegate).unwrap();
    assert_eq!(found.namespace.as_deref(), Some("agents"));
    assert_eq!(found.input, json!({"message": "work"}));

    let command = ScriptedCall::Command("ls".to_owned());
    let list = json!({"properties": {"command": {"type": "array"}}});
    let shell = json!({"tools": [{"name": "shell", "parameters": list}]});
    assert_eq!(tool::find(&shell, &command).unwrap().input["command"], json!(["sh", "-c", "ls"]));
    assert_eq!(tool::find(&shell, &delegate), None);
}

#[test]
fn the_last_reply_is_repeated() {
    let server =
        ModelServer::start(Script::new([ScriptedReply::says("a"), ScriptedReply::says("b")]))
            .unwrap();
    for expected in ["a", "b", "b", "b"] {
        let answer = post(&server, "/v1/messages", &claude(false));
        let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(body["content"][0]["text"], expected);
    }
}

#[test]
fn only_the_main_agent_advances_the_script() {
    let server =
        ModelServer::start(Script::new([ScriptedReply::says("a"), ScriptedReply::says("b")]))
            .unwrap();
    ask(&server, "HEAD / HTTP/1.1", "");
    ask(&server, "GET /v1/models HTTP/1.1", "");
    post(&server, "/v1/messages/count_tokens", &claude(false));
    post(&server, "/v1/messages", &json!({"model": "m", "messages": []}));
    let subagent = "POST /v1/messages HTTP/1.1\r\nX-Claude-Code-Agent-Id: a1";
    ask(&server, subagent, &claude(true).to_string());
    let worker = "POST /v1/responses HTTP/1.1\r\nX-Codex-Parent-Thread-Id: t1";
    ask(&server, worker, &codex().to_string());
    assert!(post(&server, "/v1/messages", &claude(false)).contains(r#""text":"a""#));
    let speakers: Vec<_> = server.requests().iter().map(|request| request.speaker).collect();
    let probes = [Speaker::Probe; 3];
    let others = [Speaker::Auxiliary, Speaker::Subagent, Speaker::Subagent, Speaker::Main];
    assert_eq!(speakers, [&probes[..], &others].concat());
}

#[test]
fn what_the_model_is_told_is_kept() {
    let server = ModelServer::start(Script::default()).unwrap();
    let mut body = claude(true);
    body["messages"] = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]},
        {"role": "user", "content": "Stop hook feedback:\ngo on"},
    ]);
    post(&server, "/v1/messages", &body);
    let request = &server.main_requests()[0];
    assert_eq!(request.told(), ["ok", "Stop hook feedback:\ngo on"]);
    assert!(request.is_told("go on"));
    assert!(!request.is_told("done"));
    assert!(request.knows("done"));
}

#[test]
fn nonsense_does_not_stop_it() {
    let server = ModelServer::start(Script::new([ScriptedReply::says("a")])).unwrap();
    assert_eq!(ask(&server, "nonsense", ""), "");
    assert!(post(&server, "/v1/nothing", &json!({})).starts_with("HTTP/1.1 404"));
    assert!(post(&server, "/v1/messages", &claude(false)).contains(r#""text":"a""#));
}
