//! `/mcp`: the tools by which agents report, over HTTP.
//!
//! The guard before all requests has checked where this one comes from and what its token may do; the
//! protocol's own checks of `Host` and `Origin` are the same ones.

use std::sync::Arc;

use aldis_engine::Engine;
use axum::Router;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::app::App;
use crate::mcp::{AldisServer, CallerSource};

/// Where it is.
pub(super) const PATH: &str = "/mcp";

/// Returns the route. Nothing is kept between two requests.
pub(super) fn route(app: &Arc<App>) -> Router<Arc<App>> {
    let engine = Arc::new(Engine::clone(app.runs.engine()));
    let (hosts, origins) = app.access.places();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let server = move || Ok(AldisServer::of_engine(Arc::clone(&engine), CallerSource::Http));
    let sessions = Arc::new(LocalSessionManager::default());
    Router::new().route_service(PATH, StreamableHttpService::new(server, sessions, config))
}
