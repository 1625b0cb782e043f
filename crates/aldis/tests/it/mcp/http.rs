//! `/mcp` of the server: the same tools, behind its checks and tokens.

use serde_json::{Value, json};

use crate::phases::project::Project;
use crate::sandbox::ALDIS;
use crate::serve::client::Server;

fn token(project: &Project, args: &[&str]) -> String {
    let args = [&["token", "new", "--scope", "signal", "--agent", "helper", "--json"], args];
    let done = project.command(ALDIS).env_remove("ALDIS_NOW").args(args.concat()).output().unwrap();
    let line: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    line["token"].as_str().unwrap().to_owned()
}

fn server(project: &Project) -> Server {
    Server::start(&project.state_dir())
}

/// Posts a request of the new era. Returns the status and the body.
fn post(server: &Server, token: &str, origin: Option<&str>, body: &Value) -> (u16, Value) {
    let mut body = body.clone();
    body["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                                     "io.modelcontextprotocol/clientCapabilities": {}});
    let method = body["method"].as_str().unwrap().to_owned();
    let name = body["params"]["name"].as_str().map(|name| format!("mcp-name: {name}\r\n"));
    let (body, name) = (body.to_string(), name.unwrap_or_default());
    let origin = origin.map(|origin| format!("origin: {origin}\r\n")).unwrap_or_default();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}{origin}\
         content-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let got = server.raw(request.as_bytes()).unwrap();
    // The body may come in one chunk with its length around it.
    let json = got.text.find('{').zip(got.text.rfind('}')).map(|(from, to)| &got.text[from..=to]);
    (got.status, json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default())
}

fn complete() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
           "params": {"name": "complete", "arguments": {"summary": "analysed"}}})
}

#[test]
fn a_token_reports_and_does_nothing_else() {
    let project = Project::new();
    project.start(&[]);
    let server = server(&project);
    let secret = token(&project, &[]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let (status, body) = post(&server, &secret, None, &list);
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["result"]["tools"].as_array().map(Vec::len), Some(7), "{body}");
    let (_, body) = post(&server, &secret, None, &complete());
    let told = &body["result"]["structuredContent"];
    assert_eq!(told["accepted"], true, "{body}");
    project.stop("I am through.");
    assert_eq!(project.status()["phase"], "init");
    assert_eq!(project.why()["evidence"][0]["via"], "receipt");
    // Nothing else, no other site, and nothing without a token.
    assert_eq!(get(&server, "/v1/runs", &secret), 403);
    assert_eq!(post(&server, &secret, Some("https://example.com"), &list).0, 403);
    assert_eq!(post(&server, "wrong", None, &list).0, 401);
    // The server's own token says nothing of an agent: it may look, and reports for nobody.
    let own = std::fs::read_to_string(project.state_dir().join("serve.token")).unwrap();
    let (_, body) = post(&server, own.trim(), None, &complete());
    assert_eq!(body["result"]["structuredContent"]["rule"], "call/no-run", "{body}");
}

#[test]
fn tokens_are_hashed_expire_and_are_revoked() {
    let project = Project::new();
    let server = server(&project);
    let secret = token(&project, &[]);
    // The database, and its log.
    for file in ["aldis.db", "aldis.db-wal"] {
        let stored = std::fs::read(project.state_dir().join(file)).unwrap_or_default();
        assert!(!stored.windows(secret.len()).any(|it| it == secret.as_bytes()), "{file}");
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    assert_eq!(post(&server, &secret, None, &list).0, 200);
    let listed = project.run(&["token", "list", "--json"]).json();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["agent"], "helper");
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(project.run(&["token", "revoke", id]).code, 0);
    assert_eq!(project.run(&["token", "revoke", id]).code, 1);
    assert_eq!(post(&server, &secret, None, &list).0, 401);
    // Made in the past, it is over now.
    let args = ["token", "new", "--scope", "signal", "--agent", "a", "--expires", "1s", "--json"];
    let old = project.run(&args).json().remove(0);
    assert_eq!(post(&server, old["token"].as_str().unwrap(), None, &list).0, 401);
}

fn get(server: &Server, path: &str, token: &str) -> u16 {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n",
        server.address
    );
    server.raw(request.as_bytes()).unwrap().status
}
