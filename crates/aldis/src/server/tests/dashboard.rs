//! What the dashboard is told, and what links of notices open.

use aldis_engine::{Engine, NewRun};
use aldis_machine::run::{self, AgentExit};
use aldis_store::{Driver, RunId};
use axum::http::Request;
use serde_json::json;

use super::*;
use crate::settings::item_link::ItemLinks;

/// A supervised run that has taken these events.
fn run(bench: &Bench, name: &str, task: &str, events: &[Value]) -> RunId {
    let launch = json!({ "command": [], "host": { "name": "somehost" } }).to_string();
    let start = run::Start {
        task: task.to_owned(),
        dialect: "chorus".to_owned(),
        instructions: String::new(),
        launch,
        config: run::Config::default(),
    };
    let engine = Engine::new(Arc::clone(&bench.store));
    let id = Some(RunId::new(name).unwrap());
    let new = NewRun { id, ..NewRun::of("/p/shop", Driver::Server) };
    let now = bench.app.now();
    let (mut handle, _) = engine.begin::<run::State>(now, &new, start).unwrap();
    for event in events {
        let event: run::Event = serde_json::from_value(event.clone()).unwrap();
        handle.advance(&engine, now, event).unwrap();
    }
    handle.id().clone()
}

fn signal(name: &str, meaning: &str, text: &str) -> Value {
    json!({ "event": "reported", "signals": [{ "name": name, "meaning": meaning, "text": text }] })
}

fn exited() -> Value {
    let exit = AgentExit { code: Some(0), ..AgentExit::default() };
    serde_json::to_value(run::Event::Exited(exit)).unwrap()
}

fn asks(question: &str) -> Vec<Value> {
    vec![
        json!({ "event": "begin" }),
        json!({ "event": "launched", "agent": "1" }),
        signal("NEEDS_HUMAN", "needs_human", question),
        exited(),
    ]
}

#[tokio::test]
async fn an_overview_says_what_needs_somebody_what_runs_and_what_ended() {
    let bench = Bench::new();
    run(
        &bench,
        "works",
        "Add CSV export",
        &[json!({ "event": "begin" }), json!({ "event": "launched", "agent": "1" })],
    );
    run(&bench, "asks", "Drop the endpoint", &asks("keep or drop?"));
    run(
        &bench,
        "over",
        "Old work",
        &[
            json!({ "event": "begin" }),
            json!({ "event": "launch_failed", "what": "no such program" }),
        ],
    );
    let names = |list: &Value| {
        let list = list.as_array().unwrap().iter();
        list.map(|run| run["run"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = bench.get("/v1/overview").await.json();
    assert_eq!(names(&all["active"]).len(), 2, "{all}");
    assert_eq!(names(&all["ended"]), ["over"]);
    let needs: Vec<(&Value, &Value)> =
        all["needs"].as_array().unwrap().iter().map(|it| (&it["run"], &it["need"])).collect();
    assert_eq!(needs, [(&json!("asks"), &json!("question")), (&json!("over"), &json!("failed"))]);
    let asked = &all["needs"][0];
    assert_eq!(asked["text"], "keep or drop?");
    assert_eq!(asked["actions"][0], json!({ "action": "answer", "question": "q1" }));
    assert_eq!((&all["hosts"], &all["projects"]), (&json!(["somehost"]), &json!(["/p/shop"])));
    for (query, want) in [
        ("q=csv", vec!["works"]),
        ("q=endpoint%20drop", vec!["asks"]),
        ("q=nothing", vec![]),
        ("state=needs_you", vec!["asks"]),
        ("state=failed", vec!["over"]),
        ("host=somehost", vec!["asks", "over", "works"]),
        ("host=other", vec![]),
        ("project=%2Fp%2Fshop&machine=run&state=running", vec!["works"]),
        ("machine=delivery", vec![]),
    ] {
        let got = bench.get(&format!("/v1/overview?{query}")).await.json();
        let mut found = [names(&got["active"]), names(&got["ended"])].concat();
        found.sort();
        assert_eq!(found, want, "{query}");
        // What needs a person does not hang on what is looked at.
        assert_eq!(got["needs"], all["needs"], "{query}");
    }
    // What is dismissed is gone, on every screen.
    let item = &all["needs"][1];
    let body = json!({ "id": item["id"], "at": item["at"] });
    assert_eq!(bench.post("/v1/runs/over/dismiss", body).await.status, StatusCode::OK);
    let left = bench.get("/v1/overview").await.json();
    assert_eq!(left["needs"].as_array().unwrap().len(), 1, "{left}");
}

#[tokio::test]
async fn those_that_ended_come_in_pages_without_gaps() {
    let bench = Bench::new();
    for number in 0..25 {
        let failed =
            [json!({ "event": "begin" }), json!({ "event": "launch_failed", "what": "no" })];
        run(&bench, &format!("r{number:02}"), &format!("task {}", number % 5), &failed);
    }
    // All of them need a person, on a page of any length.
    let needs = bench.get("/v1/overview?limit=1").await.json()["needs"].as_array().unwrap().len();
    assert_eq!(needs, 25);
    for (query, want) in [("", 25), ("&q=task%203", 5)] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = bench.get(&format!("/v1/overview?limit=2{query}{after}")).await.json();
            let ended = page["ended"].as_array().unwrap();
            assert!(ended.len() <= 2);
            found.extend(ended.iter().map(|run| run["run"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!((found.len(), count), (want, want), "{query}");
    }
}

#[tokio::test]
async fn the_details_of_a_run_tell_its_story() {
    let bench = Bench::new();
    let progress = json!({ "event": "reported", "signals": [{ "name": "PROGRESS", "meaning": "progress", "progress": 40 }] });
    let spent = json!({ "event": "spent", "tokens": 1200, "micro_dollars": 30_000 });
    let mut events = asks("keep?");
    events.splice(2..2, [progress, spent]);
    run(&bench, "r1", "Add <b>CSV</b>\u{202e} export", &events);
    let got = bench.get("/v1/runs/r1/details").await.json();
    let (card, story) = (&got["card"], &got["story"]);
    assert_eq!(
        (&card["title"], &card["host"]),
        (&json!("Add <b>CSV</b><U+202E> export"), &json!("somehost"))
    );
    assert_eq!((&card["tokens"], &card["micro_dollars"]), (&json!(1200), &json!(30_000)));
    assert_eq!(story["progress"][0]["value"], 40);
    assert_eq!(story["cost"][0]["value"], 30_000);
    assert_eq!(story["questions"][0]["id"], "q1");
    assert!(story["timeline"]["lanes"][0]["marks"][0]["decision"].is_u64(), "{story}");
    let decisions = bench.get("/v1/runs/r1/why?limit=100").await.json();
    assert_eq!(story["decisions"], decisions["decisions"].as_array().unwrap().len());
    // What is new is read, what is known is not read again, and nothing is told twice.
    let answer = json!({ "id": "q1", "text": "keep it" });
    bench.post("/v1/runs/r1/answer", answer).await;
    let later = bench.get("/v1/runs/r1/details").await.json();
    assert_eq!(later["story"]["questions"].as_array().unwrap().len(), 1);
    assert_eq!(later["story"]["questions"][0]["answer"], "keep it");
    assert!(later["story"]["decisions"].as_u64() > story["decisions"].as_u64());
    assert_eq!(bench.get("/v1/runs/none/details").await.status, StatusCode::NOT_FOUND);
}

/// Asks with what stands behind `#` in a link, and nothing else.
async fn with_link(bench: &Bench, token: &str, body: Option<Value>) -> Got {
    let request =
        Request::builder().uri("/v1/item").header("host", HOST).header("x-aldis-item", token);
    let request = request.header("content-type", "application/json");
    let request = match body {
        None => request.method("GET").body(Body::empty()),
        Some(body) => request.method("POST").body(Body::from(body.to_string())),
    };
    bench.raw(request.unwrap()).await
}

#[tokio::test]
async fn the_link_of_a_notice_opens_one_thing_and_works_once() {
    let bench = Bench::new();
    run(&bench, "asks", "Drop the endpoint", &asks("keep or drop?"));
    run(&bench, "other", "Other work", &asks("which one?"));
    let links = ItemLinks::publish(
        bench.state.path(),
        &*bench.store,
        "https://aldis.example.org".to_owned(),
    )
    .unwrap();
    let asked_at = |run: &str| {
        let engine = Engine::new(Arc::clone(&bench.store));
        engine.snapshot(&RunId::new(run).unwrap()).unwrap().unwrap().questions()[0].asked_at
    };
    let at = asked_at("asks");
    let token = |run: &str, need: &str| {
        links.item(run, need, None, at).split_once('#').unwrap().1.to_owned()
    };
    let right = token("asks", "question");
    // Looking changes nothing, however often it is done.
    for _ in 0..3 {
        let got = with_link(&bench, &right, None).await;
        assert_eq!(got.json()["item"]["text"], "keep or drop?", "{}", got.text);
    }
    for (body, want) in [
        (json!({ "action": "pause" }), 400),
        (json!({ "action": "answer" }), 400),
        (json!({ "action": "answer", "text": " " }), 400),
        (json!({ "action": "delete" }), 400),
    ] {
        let got = with_link(&bench, &right, Some(body.clone())).await;
        assert_eq!(got.status.as_u16(), want, "{body}: {}", got.text);
    }
    for wrong in [&right[..right.len() - 2], "", "x.y"] {
        assert_eq!(with_link(&bench, wrong, None).await.status, StatusCode::GONE, "{wrong}");
    }
    // Signed by us, about something else.
    let nothing = with_link(&bench, &token("asks", "stalled"), None).await.json();
    assert_eq!(nothing["item"], Value::Null);
    let answer = json!({ "action": "answer", "text": "Drop it." });
    let got = with_link(&bench, &right, Some(answer.clone())).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text);
    assert_eq!(with_link(&bench, &right, Some(answer)).await.status, StatusCode::GONE);
    assert_eq!(with_link(&bench, &right, None).await.status, StatusCode::GONE);
    let decided = bench.get("/v1/runs/asks/why").await.text;
    assert!(decided.contains("answer"), "{decided}");
    // It opens nothing else.
    for path in ["/v1/runs", "/v1/overview", "/"] {
        let request =
            Request::builder().uri(path).header("host", HOST).header("x-aldis-item", &right);
        let got = bench.raw(request.body(Body::empty()).unwrap()).await;
        assert_ne!(got.status, StatusCode::OK, "{path}");
    }
}

/// Workers are named by whoever may write to the store; their words are shown as words.
#[tokio::test]
async fn the_fleet_is_told_in_harmless_words() {
    let bench = Bench::new();
    let empty = bench.get("/v1/fleet").await.json();
    assert_eq!((&empty["workers"], &empty["queued"]), (&json!([]), &json!(0)), "{empty}");
    let now = bench.app.now();
    let run = run(&bench, "works", "Add CSV export", &[json!({ "event": "begin" })]);
    let ttl = std::time::Duration::from_secs(60);
    bench.store.acquire_lease(&run, "process 7 on laptop [1 2 3 4]", now, ttl).unwrap();
    let agent = json!({ "run": "works", "agent": 3, "role": "developer", "task": "w\u{1b}[2J", "since": now });
    let said = json!({
        "v": 1, "machine": "build\u{202e}box", "slots": 2, "labels": ["\u{7}linux"], "roles": ["critic"],
        "state": "ready", "started": now, "agents": [agent],
    });
    bench.store.announce("one\u{1b}]0;", &said.to_string(), now, ttl).unwrap();
    let fleet = bench.get("/v1/fleet").await.json();
    let worker = &fleet["workers"][0];
    assert_eq!(worker["name"], "one␛]0;", "{fleet}");
    assert_eq!(
        (&worker["machine"], &worker["labels"]),
        (&json!("build<U+202E>box"), &json!(["␇linux"]))
    );
    assert_eq!((&worker["slots"], &worker["agents"][0]["task"]), (&json!(2), &json!("w␛[2J")));
    assert_eq!(fleet["titles"], json!({ "works": "Add CSV export" }));
    let lease = &fleet["leases"][0];
    assert_eq!((&lease["holder"], &lease["over"]), (&json!("process 7 on laptop"), &json!(false)));
    assert_eq!(bench.get("/v1/overview").await.json()["workers"], 1);
}
