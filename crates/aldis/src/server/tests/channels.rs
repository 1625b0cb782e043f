//! Channels over HTTP.

use serde_json::json;

use super::*;

async fn opened() -> Bench {
    let bench = Bench::new();
    let got = bench.post("/v1/channels", json!({ "channel": "c1", "agents": ["pm", "dev"] })).await;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.text);
    bench
}

#[tokio::test]
async fn messages_are_answered_as_the_specification_says() {
    let bench = opened().await;
    let say = async |body: Value| bench.post("/v1/channels/c1/messages", body).await;
    let got = say(json!({ "agent": "pm", "text": "Yes.\n\nTURN_COMPLETE" })).await;
    let result =
        json!({ "posted": true, "turnAdvanced": true, "nextAgent": "dev", "display": "Yes." });
    assert_eq!(got.json()["result"], result, "{}", got.text);
    let got = say(json!({ "agent": "pm", "text": "More." })).await;
    assert_eq!(
        got.json()["result"],
        json!({ "posted": false, "turnAdvanced": false, "reason": "not_active_agent" })
    );
    let got = say(json!({ "agent": "dev", "texts": ["One.", "TURN_COMPLETE", "Three."] })).await;
    let reasons: Vec<Value> =
        got.json()["results"].as_array().unwrap().iter().map(|r| r["reason"].clone()).collect();
    assert_eq!(reasons, [Value::Null, Value::Null, json!("after_turn_end")]);
    let got = bench.post("/v1/channels/c9/messages", json!({ "agent": "pm", "text": "x" })).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]["code"]),
        (404, &json!("unknown_channel"))
    );
    let shown = bench.get("/v1/channels/c1").await.json();
    assert_eq!((&shown["active_agent"], &shown["turn"]), (&json!("pm"), &json!(3)));
    assert_eq!(shown["agents"]["dev"]["state"], "QUEUED");
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_and_changes_nothing() {
    let bench = opened().await;
    let path = "/v1/channels/c1/messages";
    let body = json!({ "agent": "pm", "text": "Yes. TURN_COMPLETE" });
    let first = bench.post_once("k1", path, body.clone()).await.json();
    let second = bench.post_once("k1", path, body.clone()).await.json();
    assert_eq!((&first["repeated"], &second["repeated"]), (&json!(false), &json!(true)));
    assert_eq!(first["result"], second["result"]);
    assert_eq!(bench.get("/v1/channels/c1").await.json()["turn"], 2);
    let other = bench.post_once("k2", path, body).await.json();
    assert_eq!(other["result"]["reason"], "not_active_agent");
    // Opening a channel, too.
    let start = json!({ "channel": "c2", "agents": ["pm"] });
    assert_eq!(bench.post_once("k3", "/v1/channels", start.clone()).await.status.as_u16(), 201);
    assert_eq!(bench.post_once("k3", "/v1/channels", start.clone()).await.status.as_u16(), 200);
    assert_eq!(bench.post("/v1/channels", start).await.status.as_u16(), 409);
    let long = "x".repeat(300);
    let got = bench.post_once(&long, path, json!({ "agent": "pm", "text": "x" })).await;
    assert_eq!(got.status.as_u16(), 400);
}

#[tokio::test]
async fn queues_and_configurations_change() {
    let bench = opened().await;
    let got =
        bench.post("/v1/channels/c1/queue", json!({ "agent": "qa", "position": "start" })).await;
    assert_eq!(got.json()["run"]["queue"], json!(["qa", "pm", "dev"]), "{}", got.text);
    let got = bench.send("DELETE", "/v1/channels/c1/queue/pm", &json!({})).await;
    assert_eq!(got.json()["run"]["active_agent"], "dev");
    let got = bench.send("DELETE", "/v1/channels/c1/queue/nobody", &json!({})).await;
    assert_eq!(got.json()["warnings"], json!(["nobody is not in the queue"]));
    let config = json!({ "config": { "turn_order": "manual", "human_interrupt": "parallel" } });
    let got = bench.send("PUT", "/v1/channels/c1/config", &config).await;
    assert_eq!(got.json()["run"]["config"]["turn_order"], "manual");
    let got = bench.post("/v1/channels/c1/next", json!({ "agent": "qa" })).await;
    assert_eq!(got.json()["run"]["active_agent"], "qa");
    let got = bench.post("/v1/channels/c1/human", json!({ "text": "lunch", "from": "ada" })).await;
    assert_eq!(got.json()["effects"][0]["to"], json!(["qa", "dev"]));
    let got = bench.post("/v1/channels/c1/crashed", json!({ "agent": "qa" })).await;
    assert_eq!(got.json()["run"]["agents"]["qa"]["state"], "OFFLINE");
    let got =
        bench.send("PUT", "/v1/channels/c1/config", &json!({ "config": { "nonsense": 1 } })).await;
    assert_eq!(got.status.as_u16(), 400);
}

#[tokio::test]
async fn channels_rest_go_on_and_close() {
    let bench = opened().await;
    let got = bench.post("/v1/runs/c1/pause", json!({})).await;
    assert_eq!(got.json()["run"]["floor"], "paused", "{}", got.text);
    let got = bench.post("/v1/runs/c1/resume", json!({})).await;
    assert_eq!(got.json()["run"]["floor"], "held");
    let got = bench.post("/v1/runs/c1/abort", json!({})).await;
    assert_eq!(got.json()["run"]["floor"], "closed");
    assert_eq!(bench.get("/v1/channels").await.json()["channels"], json!([]));
    let got = bench.post("/v1/channels/c1/messages", json!({ "agent": "pm", "text": "x" })).await;
    assert_eq!(got.json()["result"]["reason"], "channel_closed");
}

#[tokio::test]
async fn state_files_come_in_and_go_out() {
    let bench = opened().await;
    bench.post("/v1/channels/c1/messages", json!({ "agent": "pm", "text": "TURN_COMPLETE" })).await;
    let exported = bench.get("/v1/turns/state").await.json();
    assert_eq!(exported["channels"]["c1"]["activeAgent"], "dev");
    let other = Bench::new();
    let got = other.post("/v1/turns/state", json!({ "state": exported })).await;
    assert_eq!(got.json()["imported"], json!(["c1"]), "{}", got.text);
    let got = other.post("/v1/turns/state", json!({ "state": exported })).await;
    assert_eq!(got.json()["skipped"], json!(["c1"]));
    let got = other
        .post("/v1/channels/c1/messages", json!({ "agent": "dev", "text": "TURN_COMPLETE" }))
        .await;
    assert_eq!(got.json()["result"]["nextAgent"], "pm");
    let got = other.post("/v1/turns/state", json!({ "state": { "version": "7" } })).await;
    assert_eq!(got.status.as_u16(), 400);
}

#[tokio::test]
async fn timers_end_turns_and_recover_them() {
    let bench = opened().await;
    let store = &bench.store;
    let due = store.next_timer().unwrap().unwrap();
    let before = due.before(std::time::Duration::from_millis(1));
    assert_eq!(bench.app.fire(before, false).await.unwrap(), 0);
    assert_eq!(bench.app.fire(due, false).await.unwrap(), 1);
    let shown = bench.get("/v1/channels/c1").await.json();
    assert_eq!(
        (&shown["active_agent"], &shown["history"][1]["reason"]),
        (&json!("dev"), &json!("TIMEOUT"))
    );
    let next = store.next_timer().unwrap().unwrap();
    assert!(next > due, "the next turn has its own timer");
    assert_eq!(bench.app.fire(next, true).await.unwrap(), 1);
    let shown = bench.get("/v1/channels/c1").await.json();
    assert_eq!(
        shown["history"].as_array().unwrap().iter().rev().nth(1).unwrap()["reason"],
        "RECOVERY"
    );
}
