//! The application as a function: requests in, answers out, no socket.

mod access;
mod channels;
mod dashboard;
mod description;
mod journal;
mod keys;
mod machines;
mod matrix;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use aldis_store::{MemoryStore, Store};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use super::access::need::Need;
use super::access::{Access, Names};
use super::api;
use super::app::App;
use crate::notify::routes::Routes;
use crate::settings::config::Serve;
use crate::settings::public_url::PublicUrl;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const HOST: &str = "127.0.0.1:7373";

/// A server without a socket.
struct Bench {
    app: Arc<App>,
    router: Router,
    store: Arc<dyn Store>,
    state: tempfile::TempDir,
}

/// An answer, read to its end.
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }
}

impl Bench {
    fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()))
    }

    fn on(store: Arc<dyn Store>) -> Self {
        let address: SocketAddr = HOST.parse().unwrap();
        let state = tempfile::tempdir().unwrap();
        let public_url = PublicUrl::try_from("https://aldis.example.org".to_owned()).ok();
        let serve = Serve { public_url, ..Serve::default() };
        let names = Names { address, is_tls: false, allowed: Vec::new() };
        let access = Access::new(TOKEN, names, serve);
        let path = state.path().to_owned();
        let app = App::new(store.clone(), access, Routes::default(), BTreeMap::new(), path);
        let router = api::router(app.clone());
        Self { app, router, store, state }
    }

    /// Sends a request exactly as it is.
    async fn raw(&self, request: Request<Body>) -> Got {
        let response: Response<Body> = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Got { status: parts.status, headers: parts.headers, text }
    }

    async fn get(&self, path: &str) -> Got {
        self.raw(request("GET", path).body(Body::empty()).unwrap()).await
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Got {
        let request = request(method, path).header("content-type", "application/json");
        self.raw(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn post(&self, path: &str, body: Value) -> Got {
        self.send("POST", path, &body).await
    }

    async fn post_once(&self, key: &str, path: &str, body: Value) -> Got {
        let request = request("POST", path)
            .header("content-type", "application/json")
            .header("idempotency-key", key);
        self.raw(request.body(Body::from(body.to_string())).unwrap()).await
    }
}

/// A request as a program with the token makes it.
fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", HOST)
        .header("authorization", format!("Bearer {TOKEN}"))
}
