//! What is relied on of the hosts as clients of an MCP server, fact by fact: the table that
//! `scripts/host-drift` compares with their newest versions. A fact that drifted is printed with what was
//! found instead.

use std::fs;
use std::path::PathBuf;

use aldis_testkit::model_server::{Recorded, ScriptedReply};
use aldis_testkit::real_host::{HostKind, RealHost, SessionChoice};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::model;
use super::stage::Stage;
use crate::sandbox::ALDIS;

#[test]
fn claude() {
    check(HostKind::Claude, claude_facts());
}

#[test]
fn codex() {
    check(HostKind::Codex, codex_facts());
}

/// One fact: what it is about, what is relied on, what was found.
type Fact = (&'static str, Value, Value);

fn check(kind: HostKind, facts: Option<Vec<Fact>>) {
    let Some(facts) = facts else { return };
    let drifted: Vec<String> = facts
        .iter()
        .filter(|(_, relied, found)| relied != found)
        .map(|(about, relied, found)| format!("drift: {about}: relied on {relied}, found {found}"))
        .collect();
    assert!(drifted.is_empty(), "{kind:?}\n{}", drifted.join("\n"));
    assert!(facts.len() > 8, "{facts:?}");
}

/// A host with a server that keeps what it is sent.
struct Probe {
    host: RealHost,
    place: TempDir,
    _stage: Stage,
}

/// What a session with the server came to.
struct Seen {
    requests: Vec<Recorded>,
    sent: Vec<Value>,
    environment: String,
    directory: String,
}

impl Probe {
    fn new(kind: HostKind) -> Option<Self> {
        let stage = Stage::without_registration(kind)?;
        Some(Self { host: stage.host().clone(), place: TempDir::new().unwrap(), _stage: stage })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    /// Writes the server: `aldis mcp`, with `filter` behind it.
    fn server(&self, filter: &str) -> PathBuf {
        let path = self.file("server.sh");
        let root = self.file("");
        let root = root.display();
        let script = format!(
            "#!/bin/sh\nenv >{root}/environment\npwd >{root}/directory\n\
             tee {root}/sent | {ALDIS} mcp | {filter}\n"
        );
        fs::write(&path, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        path
    }

    /// Lets the model say these, and returns what happened.
    fn run(&self, arguments: &[String], replies: Vec<ScriptedReply>) -> Seen {
        let mut host = self.host.clone();
        for argument in arguments {
            host = host.with_argument(argument.clone());
        }
        let server = model(replies);
        host.run(&server, "Begin.", &SessionChoice::New).unwrap();
        let read = |name: &str| fs::read_to_string(self.file(name)).unwrap_or_default();
        let sent = read("sent");
        let lines = sent.lines().filter_map(|line| serde_json::from_str(line).ok());
        Seen {
            requests: server.main_requests(),
            sent: lines.collect(),
            environment: read("environment"),
            directory: read("directory").trim().to_owned(),
        }
    }
}

impl Seen {
    /// The first request to the server, and the version of the protocol that it names.
    fn first(&self) -> Value {
        let Some(first) = self.sent.first() else { return Value::Null };
        let meta = &first["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let version = if meta.is_null() { &first["params"]["protocolVersion"] } else { meta };
        json!([first["method"], version])
    }

    /// The members of the `_meta` of the first call that are relied on.
    fn call(&self, names: &[&str]) -> Value {
        let call = self.sent.iter().find(|it| it["method"] == "tools/call");
        let meta = call.map(|call| &call["params"]["_meta"]);
        let has = |name: &&&str| {
            meta.is_some_and(|meta| !meta.pointer(name).unwrap_or(&Value::Null).is_null())
        };
        json!(names.iter().filter(has).collect::<Vec<_>>())
    }

    fn has_variable(&self, name: &str) -> Value {
        json!(self.environment.lines().any(|line| line.starts_with(&format!("{name}="))))
    }

    /// Whether the model saw this in a request.
    fn told(&self, request: usize, what: &str) -> Value {
        json!(self.requests.get(request).is_some_and(|it| it.body.to_string().contains(what)))
    }

    /// The names under which the model is offered the tool `status`.
    fn offered(&self) -> Value {
        let tools = self.requests.first().map(|it| it.body["tools"].clone()).unwrap_or_default();
        let mut names = Vec::new();
        for tool in tools.as_array().into_iter().flatten() {
            let inner = tool["tools"].as_array().into_iter().flatten();
            names.extend(inner.map(|it| json!([tool["name"], it["name"]])));
            names.push(tool["name"].clone());
        }
        let is_status = |name: &Value| {
            name.to_string().contains("aldis") && name.to_string().contains("status")
        };
        json!(names.into_iter().filter(is_status).collect::<Vec<_>>())
    }
}

fn status() -> ScriptedReply {
    ScriptedReply::calls("status", json!({}))
}

fn done() -> ScriptedReply {
    ScriptedReply::says("Done.")
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn claude_facts() -> Option<Vec<Fact>> {
    let probe = Probe::new(HostKind::Claude)?;
    let project = probe.host.project();
    let server = probe.server("cat");
    let servers = json!({"mcpServers": {"aldis": {"command": server, "args": []}}});
    fs::write(project.join(".mcp.json"), servers.to_string()).unwrap();
    let allowed = strings(&["--allowedTools", "mcp__aldis,Bash"]);
    let shell =
        ScriptedReply::runs("echo id=$CLAUDE_CODE_SESSION_ID child=$CLAUDE_CODE_CHILD_SESSION.");
    let seen = probe.run(&allowed, vec![status(), shell, done()]);
    let mut facts = vec![
        ("the first request", json!(["server/discover", "2026-07-28"]), seen.first()),
        (
            "a server of the project connects without approval",
            json!(true),
            json!(!seen.sent.is_empty()),
        ),
        ("the server works in the project", json!(project), json!(seen.directory)),
        ("the server knows the session", json!(true), seen.has_variable("CLAUDE_CODE_SESSION_ID")),
        ("the server knows the project", json!(true), seen.has_variable("CLAUDE_PROJECT_DIR")),
        ("the server inherits the environment", json!(true), seen.has_variable("ALDIS_STATE_DIR")),
        (
            "a call carries its id",
            json!(["/claudecode~1toolUseId"]),
            seen.call(&["/claudecode~1toolUseId"]),
        ),
        (
            "tools with alwaysLoad are visible at once",
            json!(["mcp__aldis__status"]),
            seen.offered(),
        ),
        ("an allowed tool is called", json!(true), seen.told(1, "call/no-run")),
        (
            "the model sees the structured answer as JSON",
            json!(true),
            seen.told(1, r#"{\"accepted\":false"#),
        ),
        ("the shell knows the session", json!(false), seen.told(2, "id= ")),
        ("the shell knows that it is a child", json!(false), seen.told(2, "child=.")),
    ];
    let seen = probe.run(&[], vec![status(), done()]);
    facts.push(("without a rule a tool is refused", json!(false), seen.told(1, "call/no-run")));
    probe.server("sed -u s,anthropic/alwaysLoad,other,g");
    let seen = probe.run(&allowed, vec![done()]);
    facts.push(("tools without alwaysLoad are deferred", json!([]), seen.offered()));
    Some(facts)
}

fn codex_facts() -> Option<Vec<Fact>> {
    let probe = Probe::new(HostKind::Codex)?;
    let server = probe.server("cat");
    let arguments = |more: &[&str]| {
        let command = format!("mcp_servers.aldis.command={:?}", server.display().to_string());
        let settings = [&[&*command, "mcp_servers.aldis.args=[]"], more].concat();
        settings.iter().flat_map(|it| ["-c".to_owned(), (*it).to_owned()]).collect::<Vec<_>>()
    };
    let shell = ScriptedReply::runs(
        "echo session=$CODEX_SESSION_ID thread=$CODEX_THREAD_ID call=$CODEX_TOOL_CALL_ID.; \
         touch $HOME/x && echo home is writable",
    );
    let sandbox = "sandbox_mode=\"workspace-write\"";
    // The home of the tests is below the temporary directory.
    let [slash, variable] = ["slash_tmp", "tmpdir_env_var"]
        .map(|it| format!("sandbox_workspace_write.exclude_{it}=true"));
    let settings = [sandbox, &slash, &variable];
    let seen = probe.run(&arguments(&settings), vec![status(), shell, done()]);
    let turn = "/x-codex-turn-metadata";
    let session = "/x-codex-turn-metadata/session_id";
    let mut facts = vec![
        ("the first request", json!(["initialize", "2025-06-18"]), seen.first()),
        ("the server works in the project", json!(probe.host.project()), json!(seen.directory)),
        (
            "the server does not inherit the environment",
            json!(false),
            seen.has_variable("ALDIS_STATE_DIR"),
        ),
        ("the server knows its home", json!(true), seen.has_variable("HOME")),
        ("a call carries its id", json!(["/callId"]), seen.call(&["/callId"])),
        ("a call names its turn", json!([turn, session]), seen.call(&[turn, session])),
        ("tools are visible at once", json!([["mcp__aldis", "status"]]), seen.offered()),
        ("a tool that destroys nothing is called", json!(true), seen.told(1, "call/no-run")),
        (
            "the model sees the structured answer as JSON",
            json!(true),
            seen.told(1, r#"{\"accepted\":false"#),
        ),
        ("the shell knows the session", json!(false), seen.told(2, "session= ")),
        ("the shell knows the thread", json!(false), seen.told(2, "thread= ")),
        ("the shell knows the call", json!(false), seen.told(2, "call=.")),
        ("the sandbox keeps the home", json!(false), seen.told(2, "home is writable\\n")),
    ];
    let seen =
        probe.run(&arguments(&["mcp_servers.aldis.env_vars=[\"ALDIS_STATE_DIR\"]"]), vec![done()]);
    facts.push((
        "a named variable is passed on",
        json!(true),
        seen.has_variable("ALDIS_STATE_DIR"),
    ));
    probe.server("sed -u s,annotations,other,g");
    let claims = vec![ScriptedReply::calls("complete", json!({"summary": "x"})), done()];
    let seen = probe.run(&arguments(&[sandbox]), claims);
    facts.push(("a tool without hints is refused", json!(false), seen.told(1, "call/no-run")));
    Some(facts)
}
