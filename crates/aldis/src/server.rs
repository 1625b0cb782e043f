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
mod error;
mod events;
mod mcp;
mod metrics;
mod output;
mod place;
mod request_log;
mod runs;
pub(crate) mod state_files;
mod timers;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use aldis_machine::turns::Persona;
use aldis_store::{GroupStore, Store};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::task::JoinHandle;

use self::access::Access;
use self::app::App;
use self::connections::Limits;
use self::error::ApiError;
use self::place::Place;
use crate::app::formats::turn_state::ChannelSet;
use crate::app::retention::Retention;
use crate::error::CommandError;
use crate::notify::configured::Sinks;
use crate::notify::courier::{Courier, Report, Role};

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
}

/// Serves until the process is asked to stop. `ready` is told where, and how to log in.
pub(crate) fn serve(
    options: Options,
    ready: impl FnOnce(SocketAddr, &str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let place = Place::claim(&options.state_dir)?;
    let store = Arc::new(GroupStore::open(&options.state_dir)?);
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let _beside = Retention::new(shared, options.state_dir.clone())?.spawn();
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
        place.announce(address)?;
        let access = Access::new(place.token()?, address);
        let (routes, sinks) = options.sinks.into_parts();
        let state = options.state_dir;
        routes
            .publish(&state)
            .map_err(|error| CommandError::new(format!("writing down the sinks: {error}")))?;
        let for_app = Arc::clone(&store) as Arc<dyn Store>;
        let app = App::new(for_app, access, routes, options.personas, state.clone());
        let counts = Arc::clone(&app);
        let count = move |report: Report<'_>| counts.metrics.reported(report);
        let _courier = Courier::start(store, &state, Role::Server(sinks), count);
        app.recover().await?;
        app.adopt(options.board).await?;
        let link = app.access.login_link(address)?;
        let stop = stopped();
        ready(address, &link)?;
        tracing::info!(%address, "listening");
        let tasks = [
            background("events", &app, events::publish(app.clone())),
            background("timers", &app, timers::watch(app.clone())),
        ];
        let router = api::router(app.clone());
        connections::accept(listener, router, &app, options.limits, stop).await;
        for task in tasks {
            // It only waits for another one.
            task.await.ok();
        }
        tracing::info!("stopped");
        Ok(())
    })
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
