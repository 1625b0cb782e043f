//! Every change takes a key, and is made once for it.

use aldis_signal::time::Timestamp;
use serde_json::json;

use super::*;

/// What is asked of each request that changes something, and what must have happened before.
fn asked(method: &str, path: &str) -> Value {
    match (method, path) {
        ("post", "/v1/channels") => json!({ "channel": "c2", "agents": ["pm"] }),
        ("post", "/v1/runs") => {
            json!({ "machine": "turns", "id": "r1", "start": { "channel": "r1", "agents": ["pm"] } })
        }
        ("post", "/v1/channels/{channel}/messages") => json!({ "agent": "pm", "text": "words" }),
        ("post", "/v1/channels/{channel}/human") => json!({ "text": "words" }),
        ("post", "/v1/channels/{channel}/queue") => json!({ "agent": "qa" }),
        ("post", "/v1/channels/{channel}/crashed" | "/v1/channels/{channel}/next") => {
            json!({ "agent": "dev" })
        }
        ("put", "/v1/channels/{channel}/config") => json!({ "config": { "grace": true } }),
        ("post", "/v1/runs/{run}/events") => {
            json!({ "event": "said", "agent": "pm", "text": "words TURN_COMPLETE" })
        }
        ("post", "/v1/runs/{run}/answer") => json!({ "id": "q1", "text": "yes" }),
        ("post", "/v1/runs/{run}/tell") => json!({ "text": "words" }),
        ("post", "/v1/runs/{run}/pause" | "/v1/runs/{run}/resume" | "/v1/runs/{run}/abort")
        | ("delete", _) => json!({}),
        _ => panic!("{method} {path}: say how it is asked"),
    }
}

/// A channel, and a supervised run that waits for an answer.
async fn furnished(path: &str) -> Bench {
    let bench = Bench::new();
    bench.post("/v1/channels", json!({ "channel": "c1", "agents": ["pm", "dev"] })).await;
    if path.ends_with("/resume") {
        bench.post("/v1/runs/c1/pause", json!({})).await;
    }
    if path.ends_with("/answer") {
        let config = serde_json::to_value(aldis_machine::run::Config::default()).unwrap();
        let start =
            json!({ "task": "t", "dialect": "chorus", "instructions": "i", "config": config });
        bench.post("/v1/runs", json!({ "machine": "run", "id": "asks", "start": start })).await;
        let said = json!([{ "name": "NEEDS_HUMAN", "meaning": "needs_human", "text": "which?" }]);
        for event in [
            json!({ "event": "begin" }),
            json!({ "event": "heard", "said": said }),
            json!({ "event": "exited", "code": 0, "signal": null }),
        ] {
            bench.post("/v1/runs/asks/events", event).await;
        }
    }
    bench
}

#[tokio::test]
async fn every_change_is_made_once_for_its_key() {
    // Those that change nothing, or nothing twice: what is imported is left alone the next time.
    // What a browser logs in by, and the link of a notice, work once or as often as one likes by
    // themselves; something that is dismissed twice is dismissed.
    let others = [
        "/v1/scan",
        "/v1/explain",
        "/v1/turns/state",
        "/v1/login",
        "/v1/logout",
        "/v1/item",
        "/v1/runs/{run}/dismiss",
        // Known by ids of their own, which are tried where they are: `serve/elsewhere.rs` and `oidc`.
        "/v1/hooks",
        "/v1/calls",
        "/v1/calls/read",
        "/v1/tokens/exchange",
    ];
    let document = Bench::new().get("/openapi.json").await.json();
    let mut checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().filter(|method| *method != "get") {
            if others.contains(&&**path) {
                continue;
            }
            let bench = furnished(path).await;
            let run = if path.ends_with("/answer") { "asks" } else { "c1" };
            let concrete =
                path.replace("{channel}", run).replace("{run}", run).replace("{agent}", "dev");
            let send = async || {
                let request = request(&method.to_uppercase(), &concrete)
                    .header("content-type", "application/json")
                    .header("idempotency-key", "once");
                let body = asked(method, path).to_string();
                bench.raw(request.body(Body::from(body)).unwrap()).await
            };
            let first = send().await;
            assert!(first.status.is_success(), "{method} {path}: {}", first.text);
            assert_eq!(first.json()["repeated"], false, "{method} {path}");
            let revisions = async || {
                let runs = bench.get("/v1/runs").await.json();
                let runs = runs["runs"].as_array().unwrap().clone();
                runs.iter().map(|run| run["revision"].clone()).collect::<Vec<Value>>()
            };
            let before = revisions().await;
            let again = send().await;
            assert!(again.status.is_success(), "{method} {path}: {}", again.text);
            let (first, again) = (first.json(), again.json());
            assert_eq!(again["repeated"], true, "{method} {path}");
            assert_eq!(again["effects"], first["effects"], "{method} {path}");
            assert_eq!(revisions().await, before, "{method} {path}");
            checked += 1;
        }
    }
    assert!(checked >= 13, "{checked}");
}

/// Without a name the key says which run is meant.
#[tokio::test]
async fn a_run_without_a_name_is_begun_once_for_a_key() {
    let bench = Bench::new();
    let begin = async |key: &str, task: &str| {
        let config = serde_json::to_value(aldis_machine::run::Config::default()).unwrap();
        let start =
            json!({ "task": task, "dialect": "chorus", "instructions": "", "config": config });
        bench.post_once(key, "/v1/runs", json!({ "machine": "run", "start": start })).await
    };
    let [first, again] = [begin("k1", "one").await, begin("k1", "one").await];
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!(first.json()["run"], again.json()["run"], "{}", again.text);
    assert_eq!(begin("k1", "two").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(begin("k2", "one").await.status, StatusCode::CREATED);
    assert_eq!(bench.get("/v1/runs").await.json()["runs"].as_array().unwrap().len(), 2);
}

/// A run whose agent a process supervises takes commands; the process finds what it has to do.
#[tokio::test]
async fn a_run_with_a_process_of_its_own_is_commanded_once_for_a_key() {
    use aldis_engine::{Engine, NewRun};
    use aldis_machine::run::{Config, Event, Start, State};
    use aldis_process::LeaseHolder;
    use aldis_store::{Driver, EffectFilter};
    let bench = Bench::new();
    let (store, now) = (&bench.store, bench.app.now());
    let start = Start {
        task: "t".to_owned(),
        dialect: "chorus".to_owned(),
        instructions: String::new(),
        launch: String::new(),
        config: Config::default(),
    };
    let engine = Engine::new(Arc::clone(store));
    let new = NewRun::of("/project", Driver::Process);
    let (mut run, _) = engine.begin::<State>(now, &new, start).unwrap();
    run.advance(&engine, now, Event::Begin).unwrap();
    let id = run.id().clone();
    let path = |what: &str| format!("/v1/runs/{id}/{what}");
    // Whoever supervises it lives.
    let (me, long) = (LeaseHolder::me().to_string(), std::time::Duration::from_secs(600));
    store.acquire_lease(&id, &me, now, long).unwrap();
    let status = async || bench.get(&format!("/v1/runs/{id}")).await.json()["status"].clone();
    for (key, command, repeated, wanted) in [
        ("a", "pause", false, "paused"),
        ("a", "pause", true, "paused"),
        ("b", "resume", false, "working"),
        ("a", "pause", true, "working"),
        ("c", "pause", false, "paused"),
    ] {
        let got = bench.post_once(key, &path(command), json!({})).await.json();
        assert_eq!(got["repeated"], repeated, "{key} {command}: {got}");
        assert_eq!(status().await, wanted, "{key} {command}");
    }
    let got = bench.post(&path("events"), json!({ "event": "abort", "by": "a test" })).await;
    assert_eq!(got.status.as_u16(), 409, "{}", got.text);
    let got = bench.post(&path("abort"), json!({})).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.text);
    let due = EffectFilter::due_by(Timestamp::from_millis(i64::MAX));
    let kept = store.pending_effects(&due).unwrap();
    let end = kept.iter().find(|effect| effect.body.contains(r#""effect":"end""#));
    assert_eq!(end.map(|effect| &*effect.kind), Some("effect"), "{kept:?}");
}

/// Whatever the machine, a command that means nothing is refused in the same way.
#[tokio::test]
async fn refused_commands_have_one_form() {
    let bench = Bench::new();
    let plan = json!({ "tasks": [{ "id": "csv", "acceptance": ["it works"] }] });
    for (machine, start) in [
        ("delivery", json!({ "plan": plan })),
        ("phases", json!({ "task": "t" })),
        ("run", json!({ "task": "t" })),
        ("turns", json!({ "channel": "turns", "agents": ["pm"] })),
    ] {
        let begin = json!({ "machine": machine, "id": machine, "start": start });
        assert_eq!(bench.post("/v1/runs", begin).await.status.as_u16(), 201);
        for (command, body) in [
            ("resume", json!({})),
            ("answer", json!({ "id": "q9", "text": "yes" })),
            ("tell", json!({ "text": " " })),
        ] {
            let got = bench.post(&format!("/v1/runs/{machine}/{command}"), body).await;
            let code = got.json()["error"]["code"].clone();
            assert_eq!((got.status.as_u16(), code), (409, json!("conflict")), "{}", got.text);
        }
    }
    let got = bench.post("/v1/runs/none/abort", json!({})).await;
    assert_eq!(got.status.as_u16(), 404, "{}", got.text);
}
