//! Runs of any machine over HTTP, signals, and what is said about failures.

use aldis_store::{Fault, FaultKind, When};
use serde_json::json;

use super::*;
use crate::server::error::ApiError;

#[tokio::test]
async fn signals_are_found_and_explained() {
    let bench = Bench::new();
    let text =
        "All green.\n\nREADY_FOR_REVIEW: task-1\n\nI will print <chorus>COMPLETE</chorus> later.";
    let got = bench.post("/v1/scan", json!({ "text": text, "near_misses": true })).await.json();
    let findings = got["findings"].as_array().unwrap();
    assert_eq!(findings[0]["name"], "READY_FOR_REVIEW");
    assert_eq!(findings[1]["reason"], "in_sentence");
    let got = bench.post("/v1/scan", json!({ "text": text, "dialects": ["chorus"] })).await.json();
    assert_eq!(got["findings"], json!([]));
    let got = bench.post("/v1/explain", json!({ "text": text })).await.json();
    assert!(got["text"].as_str().unwrap().contains("near miss: chorus COMPLETE"), "{got}");
    for bad in
        [json!({ "text": "x", "dialects": ["--help"] }), json!({ "text": "x", "input": "../x" })]
    {
        assert_eq!(bench.post("/v1/scan", bad).await.status.as_u16(), 400);
    }
    let got = bench.post("/v1/scan", json!({ "text": "x", "dialects": ["nonsense"] })).await;
    assert_eq!(got.status.as_u16(), 400);
}

#[tokio::test]
async fn phases_are_driven_from_outside() {
    let bench = Bench::new();
    let start = json!({ "machine": "phases", "id": "p1", "start": { "task": "Add CSV export", "phase": "qa" } });
    let got = bench.post("/v1/runs", start).await;
    assert_eq!(got.status.as_u16(), 201, "{}", got.text);
    let stop = |text: &str| json!({ "event": "stop", "session": "S1", "text": text });
    let got = bench.post("/v1/runs/p1/events", stop("Half done.")).await.json();
    assert_eq!(got["effects"][0]["effect"], "block", "{got}");
    let done = "Done.\n\n---\nSIGNAL: QA_COMPLETE\nPHASE: qa\nSTATUS: complete\nTIMESTAMP: 2026-03-02T10:00:00Z\n---\n";
    let got = bench.post("/v1/runs/p1/events", stop(done)).await.json();
    assert_eq!(got["run"]["phase"], "review", "{got}");
    let why = bench.get("/v1/runs/p1/why").await.json();
    assert!(why["decisions"][0]["rule"].as_str().unwrap().starts_with("phases/"), "{why}");
    let journal = bench.get("/v1/runs/p1/events?after=1").await.json();
    assert_eq!(journal["events"].as_array().unwrap().len(), 2);
    for (command, status) in [("resume", 409), ("pause", 200), ("pause", 409), ("resume", 200)] {
        let got = bench.post(&format!("/v1/runs/p1/{command}"), json!({})).await;
        assert_eq!(got.status.as_u16(), status, "{command}: {}", got.text);
    }
    let got = bench.post("/v1/runs/p1/abort", json!({})).await.json();
    assert_eq!(
        (&got["run"]["active"], &got["run"]["exit_reason"]),
        (&json!(false), &json!("user_cancelled"))
    );
}

#[tokio::test]
async fn a_supervised_run_asks_and_is_answered() {
    let bench = Bench::new();
    let config = json!({ "task": "t", "dialect": "chorus", "instructions": "i",
                         "config": serde_json::to_value(aldis_machine::run::Config::default()).unwrap() });
    let start = json!({ "machine": "run", "start": config });
    let first = bench.post_once("k", "/v1/runs", start.clone()).await;
    assert_eq!(first.status.as_u16(), 201, "{}", first.text);
    let again = bench.post_once("k", "/v1/runs", start).await;
    let id = first.json()["run"]["run"].as_str().unwrap().to_owned();
    assert_eq!((again.status.as_u16(), &again.json()["run"]["run"]), (200, &json!(id)));
    let got = bench.post(&format!("/v1/runs/{id}/events"), json!({ "event": "begin" })).await;
    let effects = got.json()["effects"].as_array().unwrap().clone();
    assert!(effects.iter().any(|effect| effect["effect"] == "start"), "{}", got.text);
    let said = json!({ "event": "heard", "said": [{ "name": "NEEDS_HUMAN", "meaning": "needs_human", "text": "keep or drop?" }] });
    bench.post(&format!("/v1/runs/{id}/events"), said).await;
    let exited = json!({ "event": "exited", "code": 0, "signal": null });
    bench.post(&format!("/v1/runs/{id}/events"), exited).await;
    let questions = bench.get("/v1/questions").await.json();
    let question = &questions["questions"][0];
    assert_eq!((&question["run"], &question["text"]), (&json!(id), &json!("keep or drop?")));
    let answer = json!({ "id": question["id"], "text": "drop" });
    let got = bench.post(&format!("/v1/runs/{id}/answer"), answer).await.json();
    assert_eq!(got["effects"][0]["effect"], "start", "{got}");
    assert_eq!(bench.get("/v1/questions").await.json()["questions"], json!([]));
}

#[tokio::test]
async fn a_supervised_run_is_driven_as_by_the_filter() {
    let bench = Bench::new();
    let start = json!({ "machine": "run", "id": "r1", "start": { "task": "t" } });
    assert_eq!(bench.post("/v1/runs", start).await.status.as_u16(), 201);
    for event in [
        json!({ "event": "begin" }),
        json!({ "event": "heard", "text": "All of it. <chorus>COMPLETE</chorus>" }),
        json!({ "event": "exited", "code": 0, "signal": null }),
        json!({ "event": "looked" }),
    ] {
        let got = bench.post("/v1/runs/r1/events", event).await;
        assert_eq!(got.status.as_u16(), 200, "{}", got.text);
    }
    assert_eq!(bench.get("/v1/runs/r1").await.json()["exit_reason"], "done");
    let endless = json!({ "task": "t", "config": { "max_iterations": 0 } });
    let got = bench.post("/v1/runs", json!({ "machine": "run", "start": endless })).await;
    assert_eq!(got.status.as_u16(), 400, "{}", got.text);
    assert!(got.text.contains("max_iterations"), "{}", got.text);
}

#[tokio::test]
async fn a_delivery_is_driven_from_outside() {
    let bench = Bench::new();
    let plan = json!({ "title": "Export", "tasks": [{ "id": "csv", "acceptance": ["it works"] }] });
    let begin = json!({ "machine": "delivery", "id": "d1", "start": { "plan": plan } });
    let got = bench.post_once("open", "/v1/runs", begin.clone()).await;
    assert_eq!(got.status.as_u16(), 201, "{}", got.text);
    let got = bench.post_once("open", "/v1/runs", begin).await;
    assert_eq!((got.status.as_u16(), &got.json()["repeated"]), (200, &json!(true)));
    let events = "/v1/runs/d1/events";
    let mut got = bench.post(events, json!({ "event": "begin" })).await.json();
    for (role, words) in [
        ("developer", "READY_FOR_REVIEW: csv"),
        ("critic", "REVIEW_PASSED: csv"),
        ("auditor", "AUDIT_PASSED: csv"),
    ] {
        let dispatch = &got["effects"][0];
        assert_eq!((&dispatch["effect"], &dispatch["role"]), (&json!("dispatch"), &json!(role)));
        let said = json!({ "event": "finished", "agent": dispatch["agent"], "text": words });
        got = bench.post_once(role, events, said.clone()).await.json();
        let again = bench.post_once(role, events, said).await.json();
        assert_eq!((&again["repeated"], &again["effects"]), (&json!(true), &got["effects"]));
    }
    assert_eq!(bench.get("/v1/runs/d1").await.json()["exit_reason"], "complete");
    assert_eq!(bench.get("/v1/runs/d1/tasks").await.json()["tasks"][0]["status"], "complete");
}

#[tokio::test]
async fn a_served_delivery_asks_waits_and_is_answered() {
    let bench = Bench::new();
    let plan = json!({ "tasks": [{ "id": "csv", "acceptance": ["it works"] }] });
    let start = json!({ "plan": plan, "config": { "checkpoint_every": 60 } });
    bench.post("/v1/runs", json!({ "machine": "delivery", "id": "d1", "start": start })).await;
    let events = "/v1/runs/d1/events";
    bench.post(events, json!({ "event": "begin" })).await;
    // Its timer asks for a sign of life.
    let due = bench.app.now().after(std::time::Duration::from_secs(61));
    assert_eq!(bench.app.fire(due, false).await.unwrap(), 1);
    let why = bench.get("/v1/runs/d1/why").await.json();
    assert_eq!(why["decisions"][0]["rule"], "delivery/checkpoint-requested", "{why}");
    let asks = "SEEKING_DIVINE_CLARIFICATION\nTask: csv\nQuestion: keep or drop?";
    bench.post(events, json!({ "event": "finished", "agent": 1, "text": asks })).await;
    let question = bench.get("/v1/questions").await.json()["questions"][0].clone();
    assert_eq!(question["text"], "keep or drop?");
    let answer = json!({ "id": question["id"], "text": "drop" });
    let got = bench.post_once("a", "/v1/runs/d1/answer", answer).await.json();
    assert_eq!(got["effects"][0]["effect"], "dispatch", "{got}");
    let got = bench.post("/v1/runs/d1/abort", json!({})).await.json();
    assert_eq!(got["run"]["exit_reason"], "aborted", "{got}");
}

#[tokio::test]
async fn runs_are_listed_and_missing_ones_are_not_found() {
    let bench = Bench::new();
    for channel in ["a", "b"] {
        bench.post("/v1/channels", json!({ "channel": channel, "agents": ["pm"] })).await;
    }
    bench.post("/v1/runs/a/abort", json!({})).await;
    let names = async |query: &str| {
        let got = bench.get(&format!("/v1/runs{query}")).await.json();
        let runs = got["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["b", "a"]);
    assert_eq!(names("?active=true").await, ["b"]);
    assert_eq!(names("?machine=phases").await, [""; 0]);
    assert_eq!(names("?limit=1").await, ["b"]);
    for path in ["/v1/runs/none", "/v1/runs/none/why", "/v1/runs/..%2f", "/v1/channels/none", "/x"]
    {
        assert_eq!(bench.get(path).await.status.as_u16(), 404, "{path}");
    }
    let got = bench.post("/v1/runs", json!({ "machine": "nonsense", "start": {} })).await;
    assert_eq!(got.status.as_u16(), 400);
    assert_eq!(bench.get("/v1/runs?nonsense=1").await.status.as_u16(), 400);
}

#[tokio::test]
async fn a_store_that_fails_is_said_to_fail() {
    let store = Arc::new(MemoryStore::new());
    let bench = Bench::on(store.clone());
    store.fail_next(Fault { when: When::Before, kind: FaultKind::Full });
    let got = bench.post("/v1/channels", json!({ "channel": "c1", "agents": ["pm"] })).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]["code"]),
        (503, &json!("store_unavailable"))
    );
    let got = bench.post("/v1/channels", json!({ "channel": "c1", "agents": ["pm"] })).await;
    assert_eq!(got.status.as_u16(), 201);
    // Written, but not acknowledged: the same request again finds out.
    store.fail_next(Fault { when: When::After, kind: FaultKind::Io });
    let say = json!({ "agent": "pm", "text": "Yes. TURN_COMPLETE" });
    let got = bench.post_once("k", "/v1/channels/c1/messages", say.clone()).await;
    assert_eq!(got.status.as_u16(), 500);
    let got = bench.post_once("k", "/v1/channels/c1/messages", say).await.json();
    assert_eq!((&got["repeated"], &got["result"]["turnAdvanced"]), (&json!(true), &json!(true)));
    assert_eq!(bench.get("/v1/channels/c1").await.json()["turn"], 2);
}

/// What goes wrong beside the requests is seen, until it goes right again.
#[tokio::test]
async fn failures_in_the_background_are_seen() {
    let bench = Bench::new();
    let ready = async || bench.get("/readyz").await;
    assert_eq!(ready().await.status.as_u16(), 200);
    bench.app.noted::<()>("timers", Err(ApiError::internal("no room")));
    let got = ready().await;
    assert_eq!(got.status.as_u16(), 503);
    let error = &got.json()["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("not_ready"), &json!("timers: no room"))
    );
    let health = bench.get("/v1/health").await.json();
    assert_eq!((&health["ok"], &health["troubles"][0]["run"]), (&json!(false), &Value::Null));
    bench.app.noted("timers", Ok(()));
    assert_eq!(ready().await.status.as_u16(), 200);
}

#[tokio::test]
async fn metrics_count() {
    let bench = Bench::new();
    bench.post("/v1/channels", json!({ "channel": "c1", "agents": ["pm"] })).await;
    bench.get("/nowhere").await;
    bench.raw(request("BREW", "/v1/runs").body(Body::empty()).unwrap()).await;
    let got = bench.get("/metrics").await;
    let kind = got.headers["content-type"].to_str().unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let count = "aldis_request_duration_seconds_count";
    for line in [
        format!(
            "aldis_build_info{{version=\"{}\",arch=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH
        ),
        "aldis_runs_active{machine=\"turns\"} 1".to_owned(),
        "aldis_store_writable 1".to_owned(),
        "aldis_decisions_total{machine=\"turns\"} 1".to_owned(),
        format!("{count}{{method=\"POST\",route=\"/v1/channels\",status=\"2xx\"}} 1"),
        format!("{count}{{method=\"GET\",route=\"\",status=\"4xx\"}} 1"),
        format!("{count}{{method=\"other\",route=\"/v1/runs\",status=\"4xx\"}} 1"),
    ] {
        assert!(got.text.lines().any(|found| found == line), "{line}\n{}", got.text);
    }
}
