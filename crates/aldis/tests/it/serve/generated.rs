//! A client that knows nothing but `/openapi.json`: it makes its requests from the document, and holds
//! every body and every answer against the schemas there.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::{Server, place};
use super::stream::Stream;

/// A client made from the document.
pub(super) struct Generated<'s> {
    server: &'s Server,
    document: Value,
    /// The operations that were called.
    called: RefCell<BTreeSet<String>>,
}

/// A described operation.
struct Operation<'d> {
    method: &'d str,
    path: &'d str,
    about: &'d Value,
}

impl<'s> Generated<'s> {
    pub(super) fn new(server: &'s Server) -> Self {
        let document = server.get("/openapi.json").json();
        Self { server, document, called: RefCell::default() }
    }

    fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let paths = self.document["paths"].as_object().unwrap().iter();
        paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, about)| Operation { method, path, about })
        })
    }

    /// Calls an operation by its id: `arguments` are for the path and the query.
    fn call(&self, id: &str, arguments: &Value, body: Option<Value>) -> (u16, Value) {
        let operation = self.operations().find(|it| it.about["operationId"] == id);
        let Operation { method, path, about } = operation.unwrap_or_else(|| panic!("no {id}"));
        self.called.borrow_mut().insert(id.to_owned());
        let (mut path, mut query) = (path.to_owned(), Vec::new());
        let mut left = arguments.as_object().unwrap().clone();
        for parameter in about["parameters"].as_array().unwrap() {
            let name = parameter["name"].as_str().unwrap();
            let Some(value) = left.remove(name) else {
                assert_eq!(parameter["required"], false, "{id}: {name}");
                continue;
            };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match parameter["in"].as_str().unwrap() {
                "path" => path = path.replace(&format!("{{{name}}}"), &text),
                "query" => query.push(format!("{name}={text}")),
                other => panic!("{id}: {name} in {other}"),
            }
            self.check(&parameter["schema"], &value, id);
        }
        assert!(left.is_empty(), "{id}: not described: {left:?}");
        let described = &about["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(body.is_some(), described.is_object(), "{id}: a body, or none");
        if let Some(body) = &body {
            self.check(described, body, id);
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let got = self.server.request(&method.to_uppercase(), &path, &[], body.as_ref()).unwrap();
        let (exact, class) = (got.status.to_string(), format!("{}XX", got.status / 100));
        let answers = &about["responses"];
        let answer = answers.get(&exact).or_else(|| answers.get(&class));
        let answer = answer.unwrap_or_else(|| panic!("{id}: {} is not described", got.status));
        let content = answer["content"].as_object().unwrap();
        let Some(described) = content.get("application/json") else {
            if let Some(described) = content.get("text/*") {
                self.check(&described["schema"], &json!(got.text), id);
            }
            return (got.status, json!(got.text));
        };
        let answer = got.json();
        self.check(&described["schema"], &answer, id);
        (got.status, answer)
    }

    /// Calls an operation that succeeds.
    fn must(&self, id: &str, arguments: &Value, body: Option<Value>) -> Value {
        let (status, answer) = self.call(id, arguments, body);
        assert!((200..300).contains(&status), "{id}: {status} {answer}");
        answer
    }

    /// Reads a list page by page, one item each.
    fn pages(&self, id: &str, mut arguments: Value, items: &str) -> Vec<Value> {
        let mut all = Vec::new();
        arguments["limit"] = json!(1);
        loop {
            let page = self.must(id, &arguments, None);
            let found = page[items].as_array().unwrap();
            assert!(found.len() <= 1, "{id}: {page}");
            all.extend(found.iter().cloned());
            match &page["next"] {
                Value::Null => return all,
                next => arguments["after"] = next.clone(),
            }
        }
    }

    /// Holds an event of a stream against its schema.
    pub(super) fn check_event(&self, path: &str, data: &Value) {
        let answer = &self.document["paths"][path]["get"]["responses"]["200"];
        self.check(&answer["content"]["text/event-stream"]["schema"], data, path);
    }

    fn check(&self, schema: &Value, value: &Value, what: &str) {
        let whole = json!({ "allOf": [schema], "components": self.document["components"] });
        let validator = jsonschema::validator_for(&whole).unwrap();
        let wrong: Vec<String> = validator.iter_errors(value).map(|it| it.to_string()).collect();
        assert!(wrong.is_empty(), "{what}: {wrong:?}\n{value}\n{schema}");
    }
}

/// Everything that can be asked of channels and runs, from the document alone.
#[test]
fn a_client_made_from_the_document_can_do_everything() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let client = Generated::new(&server);
    let none = json!({});
    channels(&client);
    runs(&client);
    let texts = json!({ "text": "READY_FOR_REVIEW: task-1\n", "near_misses": true });
    assert_eq!(client.must("post_scan", &none, Some(texts.clone()))["findings"][0]["v"], 1);
    client.must("post_explain", &none, Some(texts));
    for id in ["get_healthz", "get_readyz", "get_metrics", "get_health", "get_openapi_json"] {
        client.must(id, &none, None);
    }
    dashboard(&client);
    machines(&client);
    let mut stream = Stream::open(&server, "?after=0", None);
    client.check_event("/v1/events", &stream.next().data);
    client.called.borrow_mut().insert("get_events".to_owned());
    let all: BTreeSet<String> = client
        .operations()
        .map(|it| it.about["operationId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(*client.called.borrow(), all, "every operation was called");
}

/// What the dashboard asks for, and the ways in.
/// What workers, machines without a store and platforms ask.
fn machines(client: &Generated<'_>) {
    let none = json!({});
    assert_eq!(client.must("get_fleet", &none, None)["workers"], json!([]));
    let stop = json!({ "hook_event_name": "Stop", "session_id": "S1", "cwd": "/tmp" }).to_string();
    let hook = json!({
        "id": "h1", "host": "claude-code", "payload": stop, "variables": {}, "directory": "/tmp",
    });
    let first = client.must("post_hooks", &none, Some(hook.clone()));
    assert_eq!((&first["output"], &first["repeated"]), (&json!(""), &json!(false)));
    assert_eq!(client.must("post_hooks", &none, Some(hook))["repeated"], true);
    let caller = json!({ "directory": "/tmp", "by_tool": false });
    let report = json!({ "caller": caller, "call": { "tool": "complete", "summary": "done" } });
    let (status, answer) = client.call("post_calls", &none, Some(report));
    assert_eq!(status, 200, "{answer}");
    let question = json!({ "caller": caller, "what": "status" });
    client.must("post_calls_read", &none, Some(question));
    let token = Some(json!({ "token": "nobody signed this" }));
    assert_eq!(client.call("post_tokens_exchange", &none, token).0, 401);
}

fn dashboard(client: &Generated<'_>) {
    let (none, r1) = (json!({}), json!({ "run": "r1" }));
    let overview = client.must("get_overview", &json!({ "limit": 2, "q": "t" }), None);
    assert!(overview["active"].as_array().unwrap().len() <= 2, "{overview}");
    let ended = client.pages("get_overview", json!({ "state": "failed" }), "ended");
    assert!(ended.iter().any(|run| run["run"] == "r1"), "{ended:?}");
    let details = client.must("get_runs_run_details", &r1, None);
    assert_eq!(details["card"]["run"], "r1");
    for form in ["html", "markdown"] {
        client.must("get_runs_run_report", &json!({ "run": "r1", "form": form }), None);
    }
    let item = json!({ "id": "ended", "at": details["card"]["ended"] });
    client.must("post_runs_run_dismiss", &r1, Some(item));
    for (id, body, want) in [
        ("get_item", None, 410),
        ("post_item", Some(json!({ "action": "answer", "text": "yes" })), 410),
        ("post_login", Some(json!({ "code": "wrong" })), 401),
        ("post_logout", Some(json!({})), 200),
    ] {
        assert_eq!(client.call(id, &none, body).0, want, "{id}");
    }
}

/// begin → message → status → decisions → abort
fn channels(client: &Generated<'_>) {
    let (none, c1) = (json!({}), json!({ "channel": "c1" }));
    let new = json!({ "channel": "c1", "agents": ["pm", "dev"], "config": { "grace": true },
                      "personas": { "pm": { "displayName": "Product", "priority": 2 }, "dev": {} } });
    client.must("post_channels", &none, Some(new));
    let (status, answer) =
        client.call("post_channels", &none, Some(json!({ "channel": "c1", "agents": ["pm"] })));
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("conflict")));
    let say = json!({ "agent": "pm", "text": "Yes. TURN_COMPLETE" });
    let answer = client.must("post_channels_channel_messages", &c1, Some(say.clone()));
    assert_eq!(answer["result"]["nextAgent"], "dev");
    let several = json!({ "agent": "dev", "texts": ["One.", "Two."] });
    let answer = client.must("post_channels_channel_messages", &c1, Some(several));
    assert_eq!(answer["results"].as_array().unwrap().len(), 2);
    let c9 = json!({ "channel": "c9" });
    let (status, answer) = client.call("post_channels_channel_messages", &c9, Some(say));
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("unknown_channel")));
    for (id, body) in [
        ("post_channels_channel_human", json!({ "text": "lunch?", "from": "ada" })),
        ("post_channels_channel_queue", json!({ "agent": "qa", "position": "start" })),
        ("post_channels_channel_queue", json!({ "agent": "ux", "position": 1 })),
        ("post_channels_channel_crashed", json!({ "agent": "qa" })),
        ("post_channels_channel_next", json!({ "agent": "pm" })),
        ("put_channels_channel_config", json!({ "config": { "turn_order": "manual" } })),
    ] {
        client.must(id, &c1, Some(body));
    }
    client.must(
        "delete_channels_channel_queue_agent",
        &json!({ "channel": "c1", "agent": "qa" }),
        None,
    );
    assert_eq!(client.must("get_channels_channel", &c1, None)["config"]["turn_order"], "manual");
    client.must("post_channels", &none, Some(json!({ "channel": "c2", "agents": ["pm"] })));
    assert_eq!(client.pages("get_channels", json!({}), "channels").len(), 2);
    let exported = client.must("get_turns_state", &none, None);
    let answer = client.must("post_turns_state", &none, Some(json!({ "state": exported })));
    assert_eq!(answer["skipped"], json!(["c1", "c2"]));
}

fn runs(client: &Generated<'_>) {
    let none = json!({});
    let r1 = json!({ "run": "r1" });
    let new = json!({ "machine": "run", "id": "r1", "start": { "task": "t" } });
    client.must("post_runs", &none, Some(new));
    for event in [
        json!({ "event": "begin" }),
        json!({ "event": "heard", "text": "<chorus>NEEDS_HUMAN: which?</chorus>" }),
        json!({ "event": "exited", "code": 0, "signal": null }),
    ] {
        client.must("post_runs_run_events", &r1, Some(event));
    }
    let questions = client.pages("get_questions", json!({}), "questions");
    let answer = json!({ "id": questions[0]["id"], "text": "that one" });
    client.must("post_runs_run_answer", &r1, Some(answer));
    for (id, body) in [
        ("post_runs_run_tell", json!({ "text": "hurry" })),
        ("post_runs_run_pause", json!({})),
        ("post_runs_run_resume", json!({})),
    ] {
        client.must(id, &r1, Some(body));
    }
    assert_eq!(client.must("get_runs_run", &r1, None)["kind"], "run");
    let events = client.pages("get_runs_run_events", json!({ "run": "r1" }), "events");
    let output = client.must("get_runs_run_output", &r1, None);
    assert!(output.as_str().unwrap().contains("event: end\n"), "nobody has written: {output}");
    let whole = client.must("get_runs_run_events", &r1, None);
    assert_eq!(json!(events), whole["events"]);
    let why = client.pages("get_runs_run_why", json!({ "run": "r1" }), "decisions");
    assert!(why.len() > 2, "{why:?}");
    let all = client.pages("get_decisions", json!({}), "decisions");
    assert_eq!(json!(all), client.must("get_decisions", &none, None)["decisions"]);
    let tasks = json!([{ "id": "a", "acceptance": ["x"] }, { "id": "b", "acceptance": ["x"] }]);
    let start = json!({ "plan": { "tasks": tasks } });
    let new = json!({ "machine": "delivery", "id": "d1", "start": start });
    client.must("post_runs", &none, Some(new));
    client.must("post_runs_run_events", &json!({ "run": "d1" }), Some(json!({ "event": "begin" })));
    let tasks = client.pages("get_runs_run_tasks", json!({ "run": "d1" }), "tasks");
    assert_eq!(tasks.iter().map(|task| &task["task"]).collect::<Vec<_>>(), ["a", "b"]);
    client.must("post_runs_run_abort", &r1, Some(json!({})));
    let gone = json!({ "event": "exited", "code": null, "signal": 15 });
    let ended = client.must("post_runs_run_events", &r1, Some(gone));
    assert_eq!(ended["run"]["exit_reason"], "aborted", "{ended}");
    let runs = client.pages("get_runs", json!({ "machine": "run", "active": false }), "runs");
    assert_eq!((runs.len(), &runs[0]["run"]), (1, &json!("r1")));
    assert_eq!(client.pages("get_runs", json!({}), "runs").len(), 4);
    for (id, arguments) in [
        ("get_runs_run", json!({ "run": "none" })),
        ("get_runs", json!({ "after": "nonsense" })),
        ("get_decisions", json!({ "limit": 0 })),
    ] {
        let (status, _) = client.call(id, &arguments, None);
        assert!((400..500).contains(&status), "{id}: {status}");
    }
}
