//! `aldis serve`: the HTTP API, the event stream, the dashboard and the turn manager.
//!
//! The only part of the program with an asynchronous runtime, so that a hook never pays for one.
//! Requests wait here; [`runs`] lets runs decide and writes, on threads that may block where a run is not
//! at hand.
//!
//! [`app::App`] is what all requests share, [`access`] says who may ask, [`api`] has one file per kind
//! of request, [`events`] is the stream, [`timers`] fires timers. A
//! [`Courier`](crate::notify::courier::Courier) carries effects to sinks.

pub(crate) mod access;
mod api;
mod app;
mod assets;
pub(crate) mod connections;
mod dashboard;
mod error;
mod events;
mod fleet;
mod journal;
mod mcp;
mod metrics;
pub(crate) mod oidc;
mod output;
mod place;
mod request_log;
mod runs;
mod sessions;
pub(crate) mod state_files;
pub(crate) mod tickets;
mod timers;
mod tls;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use aldis_machine::turns::Persona;
use aldis_store::Store;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::task::JoinHandle;

use self::access::{Access, Names};
use self::app::App;
use self::connections::Limits;
use self::error::ApiError;
use self::oidc::Issuers;
use self::place::ServerDirectory;
pub(crate) use self::place::running;
use self::tls::Tls;
use crate::app::dismissed;
use crate::app::formats::turn_state::ChannelSet;
use crate::app::retention::Retention;
use crate::error::CommandError;
use crate::notify::configured::Sinks;
use crate::notify::courier::{Courier, CourierRole, SinkReport};
use crate::settings::config::Serve;
use crate::settings::item_link::ItemLinks;
use crate::settings::store::StorePlace;
use crate::settings::{clock, tokens};
use crate::telemetry::{ExportScope, Exporter};

/// Threads for requests, at most: they also decide what takes no time.
const WORKERS_MAX: usize = 8;
/// Threads that may wait for the disk: those that wait together are written together, and alarms
/// must not queue behind requests.
const BLOCKING_MAX: usize = 512;

/// What to serve, and where.
#[derive(Debug)]
pub(crate) struct Options {
    /// Where runs are kept.
    pub(crate) state_dir: PathBuf,
    /// The address to listen on; port 0 for any.
    pub(crate) listen: SocketAddr,
    /// How many connections there may be.
    pub(crate) limits: Limits,
    /// Where posts and notices go.
    pub(crate) sinks: Sinks,
    /// Who there is, in channels that do not say.
    pub(crate) personas: BTreeMap<String, Persona>,
    /// Channels to take over.
    pub(crate) board: ChannelSet,
    /// How it is reached.
    pub(crate) serve: Serve,
    /// Whose identity tokens are believed.
    pub(crate) issuers: Issuers,
    /// Under which names, besides its address.
    pub(crate) allow_hosts: Vec<String>,
}

impl Options {
    /// Refuses to listen where others could read along, or where nobody is known by name.
    fn check(&self, tls: Option<&Tls>) -> Result<(), CommandError> {
        let is_named = !self.allow_hosts.is_empty() || self.serve.public_url.is_some();
        if self.listen.ip().is_loopback() || tls.is_some() && is_named {
            return Ok(());
        }
        let refused = CommandError::new(format!(
            "{} is not a loopback address, and whoever is on the way could read along",
            self.listen
        ));
        match (tls, self.allow_hosts.is_empty()) {
            (None, false) => Ok(()),
            (None, true) => Err(refused.with_help(
                "set serve.tls_cert and serve.tls_key; or, behind a proxy that ends TLS, name the \
                 host that it passes on: --allow-host NAME",
            )),
            (Some(_), _) => Err(CommandError::new("clients elsewhere reach a server by a name")
                .with_help("name it: --allow-host NAME, or serve.public_url")),
        }
    }
}

/// Serves until the process is asked to stop. `ready` is told where, and how to log in.
pub(crate) fn serve(
    options: Options,
    ready: impl FnOnce(&str, &str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let tls = Tls::of(&options.serve)?;
    options.check(tls.as_ref())?;
    let at = StorePlace::of(&options.state_dir)?;
    let place = ServerDirectory::claim(&options.state_dir, &at)?;
    let store = at.open_busy()?;
    take_over(&options.state_dir, &*store)?;
    let _beside = Retention::new(Arc::clone(&store), options.state_dir.clone())?.spawn();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(processors.clamp(2, WORKERS_MAX))
        .max_blocking_threads(BLOCKING_MAX)
        .enable_all()
        .build()
        .map_err(|error| CommandError::new(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.listen).await.map_err(|error| {
            CommandError::new(format!("cannot listen on {}: {error}", options.listen))
                .with_help("another port: --listen 127.0.0.1:0")
        })?;
        let address =
            listener.local_addr().map_err(|error| CommandError::new(error.to_string()))?;
        let here = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
        place.announce(&here)?;
        let state = options.state_dir;
        let base = options.serve.public_url.clone().map_or_else(|| here.clone(), String::from);
        let names = Names { address, is_tls: tls.is_some(), allowed: options.allow_hosts };
        let access = Access::new(&place.token()?, names, options.serve).believing(options.issuers);
        ItemLinks::publish(&state, &*store, base)
            .map_err(|error| CommandError::new(format!("writing down the links: {error}")))?;
        let (routes, sinks) = options.sinks.into_parts();
        let routes = routes.with_links(&state);
        routes
            .publish(&state)
            .map_err(|error| CommandError::new(format!("writing down the sinks: {error}")))?;
        let app = App::new(Arc::clone(&store), access, routes, options.personas, state.clone());
        let counts = Arc::clone(&app);
        let count = move |report: SinkReport<'_>| counts.metrics.reported(report);
        let _telemetry = Exporter::start(&store, ExportScope::Server, &state);
        let _courier = Courier::start(store, &state, CourierRole::Server(sinks), count);
        app.recover().await?;
        app.adopt(options.board).await?;
        let code = access::login_code(app.runs.engine().store(), app.now())?;
        let link = login_link(&here, &code);
        let stop = stopped();
        ready(&here, &link)?;
        tracing::info!(%address, "listening");
        let tasks = [
            background("events", &app, events::publish(app.clone())),
            background("timers", &app, timers::watch(app.clone())),
            background("metrics", &app, journal::count(app.clone())),
        ];
        let router = api::router(app.clone());
        connections::accept(listener, router, &app, (options.limits, tls), stop).await;
        for task in tasks {
            // It only waits for another one.
            task.await.ok();
        }
        tracing::info!("stopped");
        Ok(())
    })
}

/// Takes over what an older version kept in files of this directory.
fn take_over(state: &Path, store: &dyn Store) -> Result<(), CommandError> {
    let now = clock::now()?;
    tokens::take_over(state, store)?;
    sessions::take_over(state, store, now)?;
    dismissed::take_over(state, store, now)?;
    for kind in [tickets::LOGINS, tickets::USED] {
        kind.take_over(state, store, now)?;
    }
    Ok(())
}

/// Returns a link that logs a browser in which finds the server under this address. What stands behind
/// `#` reaches no server on the way.
pub(crate) fn login_link(base: &str, code: &str) -> String {
    format!("{base}/login#code={code}")
}

/// Starts work that goes on beside the requests. If it panics, `/readyz` says so from then on.
fn background(
    part: &'static str,
    app: &Arc<App>,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let (app, work) = (Arc::clone(app), tokio::spawn(work));
    tokio::spawn(async move {
        if work.await.is_err() {
            app.noted::<()>(part, Err(ApiError::internal("ended by a defect; restart the server")));
        }
    })
}

/// Waits until the process is asked to stop. From the call on, not only from the first poll.
#[cfg(unix)]
fn stopped() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok());
    async move {
        let [interrupted, terminated] = signals.map(|signal| async {
            match signal {
                Some(mut signal) => drop(signal.recv().await),
                // It ends the process by itself then.
                None => std::future::pending().await,
            }
        });
        tokio::select! {
            () = interrupted => {}
            () = terminated => {}
        }
    }
}

/// Waits until the process is asked to stop.
#[cfg(not(unix))]
async fn stopped() {
    tokio::signal::ctrl_c().await.ok();
}
