//! The description and the implementation say the same.

use axum::http::Method;
use serde_json::json;

use super::*;

#[tokio::test]
async fn everything_described_is_there_and_nothing_else() {
    let bench = Bench::new();
    let document = bench.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let all = [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH];
    for (path, methods) in paths {
        let concrete =
            path.replace("{channel}", "none").replace("{run}", "none").replace("{agent}", "pm");
        for method in &all {
            let described = methods.get(method.as_str().to_lowercase()).is_some();
            let request =
                request(method.as_str(), &concrete).header("content-type", "application/json");
            let response = bench.router.clone().oneshot(request.body(Body::from("{}")).unwrap());
            let status = response.await.unwrap().status();
            let there = status != StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(there, described, "{method} {path}: {status}");
        }
    }
    assert!(paths.len() >= 25, "{}", paths.len());
}

#[tokio::test]
async fn members_that_are_described_as_needed_are_needed() {
    let bench = Bench::new();
    bench.post("/v1/channels", json!({ "channel": "c1", "agents": ["pm"] })).await;
    let document = bench.get("/openapi.json").await.json();
    let mut checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let place = schema["$ref"].as_str().unwrap_or("#/none").trim_start_matches('#');
            let schema = document.pointer(place).unwrap_or(schema);
            let needed = schema["required"].as_array().cloned().unwrap_or_default();
            if needed.is_empty() {
                continue;
            }
            let concrete = path.replace("{channel}", "c1").replace("{run}", "c1");
            let got = bench.send(&method.to_uppercase(), &concrete, &json!({})).await;
            assert_eq!(got.status.as_u16(), 400, "{method} {path}: {}", got.text);
            checked += 1;
        }
    }
    assert!(checked >= 12, "{checked}");
}
