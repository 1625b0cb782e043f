//! Who may ask.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use super::*;

/// A request with these headers and nothing else.
fn bare(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from("{}")).unwrap()
}

#[tokio::test]
async fn host_origin_and_token_are_compared_exactly() {
    let bench = Bench::new();
    let token = format!("Bearer {TOKEN}");
    let auth = ("authorization", &*token);
    for (name, headers, want) in [
        ("right", vec![("host", HOST), auth], 200),
        ("localhost", vec![("host", "localhost:7373"), auth], 200),
        ("no host", vec![auth], 403),
        ("rebound name", vec![("host", "evil.example:7373"), auth], 403),
        ("other port", vec![("host", "127.0.0.1:80"), auth], 403),
        ("longer host", vec![("host", "127.0.0.1:7373.evil.example"), auth], 403),
        ("two hosts", vec![("host", HOST), ("host", "evil.example"), auth], 400),
        ("own origin", vec![("host", HOST), ("origin", "http://127.0.0.1:7373"), auth], 200),
        ("other origin", vec![("host", HOST), ("origin", "http://evil.example"), auth], 403),
        ("null origin", vec![("host", HOST), ("origin", "null"), auth], 403),
        (
            "longer origin",
            vec![("host", HOST), ("origin", "http://127.0.0.1:7373.evil"), auth],
            403,
        ),
        ("cross-site", vec![("host", HOST), ("sec-fetch-site", "cross-site"), auth], 403),
        ("same-site", vec![("host", HOST), ("sec-fetch-site", "same-site"), auth], 403),
        ("same-origin", vec![("host", HOST), ("sec-fetch-site", "same-origin"), auth], 200),
        ("no token", vec![("host", HOST)], 401),
        ("short token", vec![("host", HOST), ("authorization", "Bearer 0123")], 401),
        ("other scheme", vec![("host", HOST), ("authorization", TOKEN)], 401),
        ("foreign cookie", vec![("host", HOST), ("cookie", "aldis_session=abc")], 401),
    ] {
        let got = bench.raw(bare("GET", "/v1/runs", &headers)).await;
        assert_eq!(got.status.as_u16(), want, "{name}: {}", got.text);
    }
}

#[tokio::test]
async fn a_host_in_the_first_line_is_one_too() {
    let bench = Bench::new();
    for (uri, want) in [
        ("http://127.0.0.1:7373/v1/runs", 200),
        ("http://evil.example/v1/runs", 403),
        ("http://127.0.0.1:7373@evil.example/v1/runs", 403),
    ] {
        assert_eq!(bench.get(uri).await.status.as_u16(), want, "{uri}");
    }
}

/// Whatever is wrong, the answer says so in the form that is described.
#[tokio::test]
async fn every_refusal_is_an_error_in_json() {
    let bench = Bench::new();
    for (method, path, headers, want) in [
        ("GET", "/v1/events?after=x", vec![], 400),
        ("GET", "/v1/runs?limit=-1", vec![], 400),
        ("GET", "/v1/runs?nothing=1", vec![], 400),
        ("GET", "/v1/runs/r1/abort", vec![], 405),
        ("PUT", "/v1/runs", vec![], 405),
        ("GET", "/v1/nowhere", vec![], 404),
        ("GET", "/v1/runs/r1", vec![], 404),
        ("GET", "/v1/events", vec![("last-event-id", &b"+1"[..])], 400),
        ("GET", "/v1/events", vec![("last-event-id", b"")], 400),
        ("GET", "/v1/events", vec![("last-event-id", b"1.5")], 400),
        ("GET", "/v1/events", vec![("last-event-id", b"\xff")], 400),
        (
            "POST",
            "/v1/scan",
            vec![("content-type", b"application/json"), ("content-length", b"99999999")],
            413,
        ),
    ] {
        let mut request = request(method, path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let got = bench.raw(request.body(Body::empty()).unwrap()).await;
        assert_eq!(got.status.as_u16(), want, "{method} {path}: {}", got.text);
        assert!(got.json()["error"]["code"].is_string(), "{method} {path}: {}", got.text);
    }
    let got = bench.get("/v1/runs/r1/abort").await;
    assert_eq!(got.headers["allow"], "POST");
}

/// Every answer names its request, also the one that refuses it.
#[tokio::test]
async fn requests_have_ids() {
    let bench = Bench::new();
    for (given, path, kept) in [
        (Some("deploy-7_a.b"), "/v1/runs", true),
        (Some("deploy-7"), "/v1/nowhere", true),
        (Some("deploy-7"), "/healthz", true),
        (Some("two words"), "/v1/nowhere", false),
        (Some("<b>"), "/v1/runs", false),
        (Some(&*"x".repeat(65)), "/v1/runs", false),
        (None, "/v1/runs/none", false),
    ] {
        let mut request = request("GET", path);
        if let Some(id) = given {
            request = request.header("x-request-id", id);
        }
        let got = bench.raw(request.body(Body::empty()).unwrap()).await;
        let id = got.headers["x-request-id"].to_str().unwrap();
        assert!(!id.is_empty() && kept == (given == Some(id)), "{given:?} {path}: {id}");
        if !got.status.is_success() {
            assert_eq!(
                (&got.json()["v"], &got.json()["error"]["request_id"]),
                (&json!(1), &json!(id))
            );
        }
    }
    let refused = bench.raw(bare("GET", "/v1/runs", &[("host", HOST)])).await;
    assert_eq!(
        refused.json()["error"]["request_id"],
        refused.headers["x-request-id"].to_str().unwrap()
    );
}

#[tokio::test]
async fn only_health_and_the_way_in_need_no_token() {
    let bench = Bench::new();
    for (path, want) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 401),
        ("/openapi.json", 401),
        ("/", 303),
        ("/login", 200),
        ("/assets/app.js", 200),
        ("/assets/none", 404),
        ("/answer", 200),
        ("/v1/item", 410),
        ("/v1/overview", 401),
        ("/v1/logout", 401),
        ("/nowhere", 401),
    ] {
        let got = bench.raw(bare("GET", path, &[("host", HOST)])).await;
        assert_eq!(got.status.as_u16(), want, "{path}");
    }
    let got = bench.raw(bare("GET", "/healthz", &[("host", "evil.example")])).await;
    assert_eq!(got.status.as_u16(), 403, "the host is checked before anything else");
}

#[tokio::test]
async fn every_answer_tells_browsers_what_not_to_do() {
    let bench = Bench::new();
    for path in ["/", "/v1/runs", "/nowhere", "/healthz"] {
        let got = bench.get(path).await;
        let policy = got.headers["content-security-policy"].to_str().unwrap();
        for rule in
            ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"]
        {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert_eq!(got.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(got.headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(got.headers["cross-origin-resource-policy"], "same-origin", "{path}");
    }
}

/// Sends a JSON body with these headers, as a browser does.
async fn sent(bench: &Bench, path: &str, headers: &[(&str, &str)], body: Value) -> Got {
    let mut request = Request::builder().method("POST").uri(path).header("host", HOST);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header("content-type", "application/json");
    bench.raw(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_link_logs_one_browser_in_once() {
    let bench = Bench::new();
    let code = crate::server::access::login_code(&*bench.store, bench.app.now()).unwrap();
    // Programs of chats look at links before people do.
    for path in ["/login".to_owned(), format!("/login?code={code}")] {
        assert_eq!(bench.raw(bare("GET", &path, &[("host", HOST)])).await.status.as_u16(), 200);
    }
    let wrong = sent(&bench, "/v1/login", &[], json!({ "code": "wrong" })).await;
    assert_eq!(wrong.status.as_u16(), 401);
    let got = sent(&bench, "/v1/login", &[], json!({ "code": code })).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.text);
    let key = got.json()["key"].as_str().unwrap().to_owned();
    let cookie = got.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("Secure"), "it came over plain HTTP: {cookie}");
    let session = cookie.split(';').next().unwrap();
    let (cookie, key) = (("cookie", session), ("x-aldis-key", &*key));
    for (path, headers, want) in [
        ("/", vec![cookie], 200),
        ("/inbox", vec![cookie], 200),
        ("/runs/none", vec![cookie], 200),
        ("/v1/runs", vec![cookie], 401),
        ("/v1/overview", vec![cookie], 401),
        ("/v1/events", vec![cookie], 401),
        ("/v1/runs", vec![key], 401),
        ("/v1/runs", vec![cookie, ("x-aldis-key", "abc")], 401),
        ("/v1/runs", vec![cookie, key], 200),
    ] {
        let headers = [vec![("host", HOST)], headers].concat();
        let got = bench.raw(bare("GET", path, &headers)).await;
        assert_eq!(got.status.as_u16(), want, "{path} {headers:?}");
    }
    let again = sent(&bench, "/v1/login", &[], json!({ "code": code })).await;
    assert_eq!(again.status.as_u16(), 401, "a link works once");
    // Signed out, by the browser itself.
    assert_eq!(sent(&bench, "/v1/logout", &[cookie], json!({})).await.status.as_u16(), 401);
    let out = sent(&bench, "/v1/logout", &[cookie, key], json!({})).await;
    assert!(out.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"), "{}", out.text);
    let gone = bench.raw(bare("GET", "/v1/runs", &[("host", HOST), cookie, key])).await;
    assert_eq!(gone.status.as_u16(), 401);
}

#[tokio::test]
async fn the_token_logs_a_browser_in_as_often_as_it_likes() {
    let bench = Bench::new();
    let public = [("host", "aldis.example.org"), ("origin", "https://aldis.example.org")];
    for (body, want) in [
        (json!({ "token": TOKEN }), 200),
        (json!({ "token": TOKEN }), 200),
        (json!({ "token": "0123" }), 401),
        (json!({ "token": "" }), 401),
        (json!({}), 400),
        (json!({ "token": TOKEN, "code": "x" }), 400),
    ] {
        assert_eq!(
            sent(&bench, "/v1/login", &[], body.clone()).await.status.as_u16(),
            want,
            "{body}"
        );
    }
    // Through a tunnel that ends TLS, the cookie never travels without it.
    let mut request = Request::builder().method("POST").uri("/v1/login");
    for (name, value) in public {
        request = request.header(name, value);
    }
    let request = request.header("content-type", "application/json");
    let body = Body::from(json!({ "token": TOKEN }).to_string());
    let got = bench.raw(request.body(body).unwrap()).await;
    assert!(got.headers["set-cookie"].to_str().unwrap().ends_with("; Secure"), "{}", got.text);
    let other = [("host", "aldis.example.org"), ("origin", "http://aldis.example.org")];
    let got = bench.raw(bare("GET", "/login", &other)).await;
    assert_eq!(got.status.as_u16(), 403, "the origin is compared whole");
}

#[tokio::test]
async fn browsers_are_sent_to_the_login_and_programs_are_not() {
    let bench = Bench::new();
    for (path, want) in [
        ("/", "/login"),
        ("/inbox", "/login?next=/inbox"),
        ("/runs/7f3k", "/login?next=/runs/7f3k"),
        ("/runs/%22%3E&x=//evil.example", "/login?next=/runs/%2522%253E%26x%3D//evil.example"),
    ] {
        let got = bench.raw(bare("GET", path, &[("host", HOST)])).await;
        assert_eq!(got.status.as_u16(), 303, "{path}");
        assert_eq!(got.headers["location"].to_str().unwrap(), want, "{path}");
    }
    let got = bench.raw(bare("GET", "/v1/overview", &[("host", HOST)])).await;
    assert_eq!(got.status.as_u16(), 401);
}

#[tokio::test]
async fn bodies_are_json_small_and_flat() {
    let bench = Bench::new();
    let send = async |kind: &str, body: String| {
        let request = request("POST", "/v1/scan").header("content-type", kind);
        bench.raw(request.body(Body::from(body)).unwrap()).await.status.as_u16()
    };
    let text = json!({ "text": "hello" }).to_string();
    assert_eq!(send("application/json; charset=utf-8", text.clone()).await, 200);
    assert_eq!(send("text/plain", text.clone()).await, 415);
    assert_eq!(send("application/x-www-form-urlencoded", text).await, 415);
    assert_eq!(send("application/json", "{".to_owned()).await, 400);
    assert_eq!(send("application/json", "[".repeat(100)).await, 400);
    assert_eq!(
        send("application/json", json!({ "text": "x".repeat(2 << 20) }).to_string()).await,
        413
    );
    assert_eq!(send("application/json", json!({ "text": "x", "y": 1 }).to_string()).await, 400);
}
