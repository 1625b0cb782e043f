//! Every route with every kind of token: who gets in, who does not, and with what words.

use aldis_engine::{Engine, NewRun};
use aldis_signal::time::Timestamp;
use aldis_store::{Cursor, Driver, RunId};
use axum::http::Method;
use serde_json::json;

use super::*;
use crate::settings::catalog::Catalog;
use crate::settings::tokens::{self, Grant, Scope};

/// What each route needs, said once more: a route that is added or that needs something else must be
/// written down here, too. `-` is nothing, `page` the cookie of a browser.
const ROUTES: &[(&str, &str, &str)] = &[
    ("* /mcp", "signal", "request"),
    ("DELETE /v1/channels/{channel}/queue/{agent}", "coordinate", "run"),
    ("GET /", "page", ""),
    ("GET /answer", "-", ""),
    ("GET /healthz", "-", ""),
    ("GET /fleet", "page", ""),
    ("GET /inbox", "page", ""),
    ("GET /login", "-", ""),
    ("GET /metrics", "observe", "everywhere"),
    ("GET /openapi.json", "observe", "request"),
    ("GET /readyz", "-", ""),
    ("GET /runs/{run}", "page", ""),
    ("GET /v1/channels", "observe", "project"),
    ("GET /v1/channels/{channel}", "observe", "run"),
    ("GET /v1/decisions", "observe", "everywhere"),
    ("GET /v1/events", "observe", "request"),
    ("GET /v1/health", "observe", "everywhere"),
    ("GET /v1/item", "-", ""),
    ("GET /v1/fleet", "observe", "everywhere"),
    ("GET /v1/overview", "observe", "project"),
    ("GET /v1/questions", "observe", "project"),
    ("GET /v1/runs", "observe", "project"),
    ("GET /v1/runs/{run}", "observe", "run"),
    ("GET /v1/runs/{run}/details", "observe", "run"),
    ("GET /v1/runs/{run}/events", "observe", "run"),
    ("GET /v1/runs/{run}/output", "observe", "run"),
    ("GET /v1/runs/{run}/report", "observe", "run"),
    ("GET /v1/runs/{run}/tasks", "observe", "run"),
    ("GET /v1/runs/{run}/why", "observe", "run"),
    ("GET /v1/turns/state", "observe", "project"),
    ("POST /v1/calls", "signal", "request"),
    ("POST /v1/calls/read", "signal", "request"),
    ("POST /v1/channels", "coordinate", "request"),
    ("POST /v1/channels/{channel}/crashed", "work", "run"),
    ("POST /v1/channels/{channel}/human", "coordinate", "run"),
    ("POST /v1/channels/{channel}/messages", "signal", "run"),
    ("POST /v1/channels/{channel}/next", "coordinate", "run"),
    ("POST /v1/channels/{channel}/queue", "coordinate", "run"),
    ("POST /v1/explain", "observe", "request"),
    ("POST /v1/hooks", "work", "request"),
    ("POST /v1/item", "-", ""),
    ("POST /v1/login", "-", ""),
    ("POST /v1/logout", "observe", "request"),
    ("POST /v1/runs", "coordinate", "request"),
    ("POST /v1/runs/{run}/abort", "coordinate", "run"),
    ("POST /v1/runs/{run}/answer", "coordinate", "run"),
    ("POST /v1/runs/{run}/dismiss", "coordinate", "run"),
    ("POST /v1/runs/{run}/events", "work", "run"),
    ("POST /v1/runs/{run}/pause", "coordinate", "run"),
    ("POST /v1/runs/{run}/resume", "coordinate", "run"),
    ("POST /v1/runs/{run}/tell", "coordinate", "run"),
    ("POST /v1/scan", "observe", "request"),
    ("POST /v1/tokens/exchange", "-", ""),
    ("POST /v1/turns/state", "admin", "everywhere"),
    ("PUT /v1/channels/{channel}/config", "coordinate", "run"),
];

/// Which scopes may do what a scope allows.
fn may(scope: Scope) -> &'static [&'static str] {
    match scope {
        Scope::Observe => &["observe"],
        Scope::Signal => &["signal"],
        Scope::Work => &["observe", "signal", "work"],
        Scope::Coordinate => &["observe", "signal", "work", "coordinate"],
        Scope::Admin => &["observe", "signal", "work", "coordinate", "admin"],
    }
}

const MINE: &str = "/p/mine";

/// A server with a channel of a project, and one of another.
fn bench() -> Bench {
    let bench = Bench::new();
    let engine = Engine::new(bench.store.clone());
    for (name, project) in [("c1", MINE), ("c2", "/p/other"), ("c3", "")] {
        let start = json!({ "channel": name, "agents": ["pm", "dev"] });
        let id = Some(RunId::new(name).unwrap());
        let new = NewRun { id, ..NewRun::of(project, Driver::Server) };
        let start = start.as_object().unwrap().clone();
        let now = bench.app.now();
        engine.begin_json(now, "turns", &new, start, &Catalog::builtin()).unwrap();
    }
    bench
}

fn secret(bench: &Bench, scope: Scope, run: Option<&str>, project: Option<&str>) -> String {
    let now = bench.app.now();
    let until = Timestamp::from_millis(now.as_millis() + 60_000);
    let [run, project] = [run, project].map(|it| it.map(str::to_owned));
    let agent = (scope == Scope::Signal).then(|| "dev".to_owned());
    let grant = Grant { scope, agent, run, project };
    tokens::create(&*bench.store, grant, now, until).unwrap().0
}

/// Returns the status and the code of what a request with this token is answered, not its body: some
/// bodies never end.
async fn ask(bench: &Bench, method: &str, path: &str, token: &str) -> (u16, String) {
    let mut request = Request::builder().method(method).uri(path).header("host", HOST);
    request = request.header("content-type", "application/json");
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let response = bench.router.clone().oneshot(request.body(Body::from("{}")).unwrap()).await;
    let (parts, body) = response.unwrap().into_parts();
    if parts.status.is_success() {
        return (parts.status.as_u16(), String::new());
    }
    let bytes = body.collect().await.unwrap().to_bytes();
    let text: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    (parts.status.as_u16(), text["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// The address of a route, about the channel `c1`.
fn concrete(path: &str) -> String {
    path.replace("{channel}", "c1").replace("{run}", "c1").replace("{agent}", "pm")
}

#[test]
fn the_table_says_what_this_test_expects() {
    let found: Vec<(String, String, String)> = api::needs()
        .rows()
        .into_iter()
        .filter(|(path, ..)| !path.starts_with("/assets/"))
        .map(|(path, method, need)| {
            let method = method.as_ref().map_or("*", Method::as_str);
            let (scope, reach) = match need {
                Need::Nothing => ("-".to_owned(), String::new()),
                Need::Page => ("page".to_owned(), String::new()),
                Need::Grant(scope, reach) => {
                    (scope.as_str().to_owned(), format!("{reach:?}").to_lowercase())
                }
            };
            (format!("{method} {path}"), scope, reach)
        })
        .collect();
    let mut found: Vec<_> = found.iter().map(|(a, b, c)| (&**a, &**b, &**c)).collect();
    found.sort_unstable();
    let mut wanted = ROUTES.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn every_route_with_every_token() {
    let bench = bench();
    let reaches = [
        ("all", None, None),
        ("mine", None, Some(MINE)),
        ("other", None, Some("/p/other")),
        ("above", None, Some("/p")),
        ("run", Some("c1"), None),
        ("other run", Some("c2"), Some(MINE)),
    ];
    let mut cells = 0;
    for (route, need, reach) in ROUTES {
        let (method, path) = route.split_once(' ').unwrap();
        let method = if method == "*" { "POST" } else { method };
        let path = concrete(path);
        for scope in Scope::ALL {
            for (whose, run, project) in reaches {
                let token = secret(&bench, scope, run, project);
                let (status, code) = ask(&bench, method, &path, &token).await;
                let is_limited = whose != "all";
                let is_mine = ["all", "mine", "run"].contains(&whose);
                let denied = match (*need, *reach) {
                    ("-" | "page", _) => None,
                    (need, _) if !may(scope).contains(&need) => Some(403),
                    (_, "everywhere") if is_limited => Some(403),
                    (_, "project") if run.is_some() => Some(403),
                    (_, "run") if !is_mine => Some(404),
                    _ if path == "/v1/events" && run.is_some() => Some(403),
                    _ => None,
                };
                let cell = format!("{route}, {scope:?} for {whose}: {status} {code}");
                match denied {
                    Some(wanted) => assert_eq!(status, wanted, "{cell}"),
                    None => assert!(![401, 403, 404].contains(&status), "{cell}"),
                }
                if status == 403 {
                    assert_eq!(code, "insufficient_scope", "{cell}");
                }
                cells += 1;
            }
        }
    }
    assert_eq!(cells, ROUTES.len() * Scope::ALL.len() * reaches.len());
}

#[tokio::test]
async fn tokens_that_are_none_open_nothing() {
    let bench = bench();
    let now = bench.app.now();
    let at = |seconds: i64| Timestamp::from_millis(now.as_millis() + seconds * 1_000);
    let (expired, _) = tokens::create(&*bench.store, Grant::ADMIN, at(-60), at(-1)).unwrap();
    let (revoked, token) = tokens::create(&*bench.store, Grant::ADMIN, now, at(60)).unwrap();
    tokens::revoke(&*bench.store, token.id()).unwrap().unwrap();
    let (good, token) = tokens::create(&*bench.store, Grant::ADMIN, now, at(60)).unwrap();
    let longer = format!("{good}0");
    let other_case = good.to_uppercase();
    let forged = format!("aldis_{}", "0".repeat(64));
    let bad = [
        ("none", ""),
        ("blank", " "),
        ("forged", &*forged),
        ("expired", &*expired),
        ("revoked", &*revoked),
        ("a hash", token.hash()),
        ("an id", token.id()),
        ("shorter", &good[..good.len() - 1]),
        ("longer", &*longer),
        ("another case", &*other_case),
        ("JWT without a signature", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."),
    ];
    for (route, need, _) in ROUTES {
        let (method, path) = route.split_once(' ').unwrap();
        let method = if method == "*" { "POST" } else { method };
        let path = concrete(path);
        for (name, token) in bad {
            let (status, _) = ask(&bench, method, &path, token).await;
            let cell = format!("{route} with {name}: {status}");
            match *need {
                "-" => assert!(![401, 403].contains(&status) || path == "/v1/login", "{cell}"),
                "page" => assert_eq!(status, 303, "{cell}"),
                _ => assert_eq!(status, 401, "{cell}"),
            }
        }
    }
    assert_eq!(ask(&bench, "GET", "/v1/runs", &good).await.0, 200);
}

/// Sends a request with this token.
async fn send(bench: &Bench, token: &str, method: &str, path: &str, body: Value) -> Got {
    let request = Request::builder().method(method).uri(path).header("host", HOST);
    let request = request.header("authorization", format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    let request = request.header("idempotency-key", "one");
    bench.raw(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_project_sees_nothing_of_others() {
    let bench = bench();
    let token = secret(&bench, Scope::Observe, None, Some(MINE));
    for (path, list, name) in [
        ("/v1/runs", "runs", "run"),
        ("/v1/channels", "channels", "run"),
        ("/v1/overview", "active", "run"),
    ] {
        let got = send(&bench, &token, "GET", path, json!({})).await.json();
        let found: Vec<&str> =
            got[list].as_array().unwrap().iter().map(|it| it[name].as_str().unwrap()).collect();
        assert_eq!(found, ["c1"], "{path}: {got}");
        assert!(!got.to_string().contains("other"), "{path}: {got}");
    }
    let state = send(&bench, &token, "GET", "/v1/turns/state", json!({})).await;
    assert!(state.text.contains("c1") && !state.text.contains("c2"), "{}", state.text);
    // Nor whether there is one.
    for run in ["c2", "c3", "none"] {
        let got = send(&bench, &token, "GET", &format!("/v1/runs/{run}"), json!({})).await;
        let (status, text) = (got.status.as_u16(), &got.json()["error"]["message"]);
        let want = format!("no run `{run}`");
        assert!(status == 404 && text.as_str().unwrap().contains(&want), "{run}: {text}");
    }
    let followed = ask(&bench, "GET", "/v1/events?run=c1", &token).await;
    assert_eq!(followed.0, 200);
    assert_eq!(ask(&bench, "GET", "/v1/events?run=c2", &token).await.0, 404);
}

#[tokio::test]
async fn what_a_project_begins_is_its_own() {
    let bench = bench();
    let token = secret(&bench, Scope::Coordinate, None, Some(MINE));
    let new = |name: &str| json!({ "channel": name, "agents": ["pm"] });
    let got = send(&bench, &token, "POST", "/v1/channels", new("c4")).await;
    assert_eq!(got.status.as_u16(), 201, "{}", got.text);
    let run = bench.store.run(&RunId::new("c4").unwrap()).unwrap().unwrap();
    assert_eq!(run.record.project, MINE);
    // The same request of somebody else is told nothing of it.
    let other = secret(&bench, Scope::Coordinate, None, Some("/p/other"));
    for (token, name) in [(&other, "c4"), (&token, "c2"), (&token, "c3")] {
        let got = send(&bench, token, "POST", "/v1/channels", new(name)).await;
        assert_eq!(got.status.as_u16(), 409, "{name}: {}", got.text);
        assert!(!got.text.contains("agents"), "{}", got.text);
    }
    let one = secret(&bench, Scope::Coordinate, Some("c1"), None);
    let unnamed = json!({ "machine": "turns", "start": { "channel": "c6", "agents": ["pm"] } });
    for (path, body) in [("/v1/channels", new("c5")), ("/v1/runs", unnamed)] {
        let got = send(&bench, &one, "POST", path, body).await;
        assert_eq!(got.status.as_u16(), 403, "{path}: {}", got.text);
    }
}

#[tokio::test]
async fn an_agent_speaks_for_itself() {
    let bench = bench();
    let token = secret(&bench, Scope::Signal, None, Some(MINE));
    let say = |agent: &str| json!({ "agent": agent, "text": "Done. @next" });
    let path = "/v1/channels/c1/messages";
    let got = send(&bench, &token, "POST", path, say("pm")).await;
    assert_eq!(got.status.as_u16(), 403, "{}", got.text);
    assert!(got.text.contains("`dev` alone"), "{}", got.text);
    assert_eq!(send(&bench, &token, "POST", path, say("dev")).await.status.as_u16(), 200);
    // Who may work speaks for every agent.
    let worker = secret(&bench, Scope::Work, None, Some(MINE));
    assert_eq!(send(&bench, &worker, "POST", path, say("pm")).await.status.as_u16(), 422);
}

/// What is done by a token is said to be.
#[tokio::test]
async fn the_journal_says_which_token() {
    let bench = bench();
    let token = secret(&bench, Scope::Coordinate, None, Some(MINE));
    let got = send(&bench, &token, "POST", "/v1/runs/c1/pause", json!({})).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.text);
    let id = tokens::list(&*bench.store).unwrap()[0].id().to_owned();
    let journal = send(&bench, &token, "GET", "/v1/runs/c1/events", json!({})).await.text;
    assert!(journal.contains(&format!("token {id}")), "{journal}");
    assert!(!journal.contains(&token));
}

#[tokio::test]
async fn a_browser_that_logs_in_by_a_token_may_do_what_it_may() {
    let bench = bench();
    let token = secret(&bench, Scope::Observe, None, None);
    let log_in = |token: &str| json!({ "token": token });
    let got = bench.post("/v1/login", log_in(&token)).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.text);
    let key = got.json()["key"].as_str().unwrap().to_owned();
    let cookie = got.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let ask = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).header("host", HOST);
        let request = request.header("content-type", "application/json");
        let request = request.header("cookie", &cookie).header("x-aldis-key", &key);
        bench.raw(request.body(Body::from("{}")).unwrap()).await.status.as_u16()
    };
    assert_eq!(ask("GET", "/v1/runs").await, 200);
    assert_eq!(ask("POST", "/v1/runs/c1/pause").await, 403);
    let id = tokens::list(&*bench.store).unwrap()[0].id().to_owned();
    tokens::revoke(&*bench.store, &id).unwrap();
    assert_eq!(ask("GET", "/v1/runs").await, 401, "signed out with its token");
    let signal = secret(&bench, Scope::Signal, None, None);
    assert_eq!(bench.post("/v1/login", log_in(&signal)).await.status.as_u16(), 401);
}

/// The stream of a project has all of its runs, in order, and nothing of others.
#[tokio::test]
async fn a_project_follows_its_own_runs() {
    let bench = bench();
    let admin = secret(&bench, Scope::Admin, None, None);
    for (number, channel) in ["c2", "c1", "c2", "c1"].iter().enumerate() {
        let path = format!("/v1/channels/{channel}/human");
        let request = Request::builder().method("POST").uri(path).header("host", HOST);
        let request = request.header("authorization", format!("Bearer {admin}"));
        let request = request.header("content-type", "application/json");
        let request = request.header("idempotency-key", format!("m{number}"));
        let said = json!({ "from": "me", "text": format!("message {number}") });
        let got = bench.raw(request.body(Body::from(said.to_string())).unwrap()).await;
        assert!(got.status.is_success(), "{}", got.text);
    }
    let all = bench.store.decisions_after(None, &Cursor::START, 1_000).unwrap();
    let own: Vec<_> = all.iter().filter(|it| it.run.as_str() == "c1").collect();
    let last = all.iter().rposition(|it| it.run.as_str() == "c1").unwrap();
    assert!(own.len() > 2 && own.len() < last, "some of others are between");

    let token = secret(&bench, Scope::Observe, None, Some(MINE));
    let request = Request::builder().uri("/v1/events?after=0").header("host", HOST);
    let request = request.header("authorization", format!("Bearer {token}"));
    let response =
        bench.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let (mut body, mut text) = (response.into_body(), String::new());
    while text.matches("\nid: ").count() < own.len() {
        let frame = body.frame().await.expect("it goes on").unwrap();
        text.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
    }
    let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let wanted: Vec<String> = own.iter().map(|decision| decision.cursor.to_string()).collect();
    assert_eq!(ids, wanted, "{text}");
    assert!(!text.contains("\"c2\""), "{text}");
}
