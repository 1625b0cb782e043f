//! Channels: who takes part, what is said, who has the floor.

use std::collections::BTreeMap;
use std::sync::Arc;

use aldis_engine::{EngineError, Members, State as RunState};
use aldis_machine::Machine as _;
use aldis_machine::turns::{self, Config, Persona, ReplyReason};
use aldis_store::{RunFilter, RunId, Source};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post, put};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Route;
use super::answer::{Parts, answered, shown};
use super::request::{Named, Sent, SentNothing, event};
use super::runs::{begin, snapshot};
use crate::app::formats::turn_state::ChannelSet;
use crate::server::app::App;
use crate::server::error::ApiError;
use crate::server::runs::{Input, Taken};

/// The machine of channels.
const TURNS: &str = turns::State::NAME;
/// How many channels are listed at most.
const LIST_MAX: usize = 1_000;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "get",
        path: "/v1/channels",
        summary: "List the open channels",
        body: &[],
        query: &[],
        handler: || get(list).post(create),
    },
    Route {
        method: "post",
        path: "/v1/channels",
        summary: "Open a channel",
        body: &[
            ("channel", "its name"),
            ("agents", "who takes part, in order"),
            ("config?", "how it is run"),
            ("personas?", "what is known about the agents"),
        ],
        query: &[],
        handler: axum::routing::MethodRouter::new,
    },
    Route {
        method: "get",
        path: "/v1/channels/{channel}",
        summary: "Show a channel: its floor, queue, agents and history",
        body: &[],
        query: &[],
        handler: || get(show),
    },
    Route {
        method: "post",
        path: "/v1/channels/{channel}/messages",
        summary: "Take what an agent says",
        body: &[
            ("agent", "who says it"),
            ("text?", "one message"),
            ("texts?", "several messages"),
            ("turn?", "the turn it belongs to, from the notification"),
        ],
        query: &[],
        handler: || post(say),
    },
    Route {
        method: "post",
        path: "/v1/channels/{channel}/human",
        summary: "Take what a human says",
        body: &[("text", "what"), ("from?", "who"), ("to?", "whom it asks")],
        query: &[],
        handler: || post(|app, id, body| tell("human", app, id, body)),
    },
    Route {
        method: "post",
        path: "/v1/channels/{channel}/queue",
        summary: "Add an agent to the queue",
        body: &[
            ("agent", "who"),
            ("position?", "`start`, `end` or a place from 0"),
            ("persona?", "what is known about it"),
        ],
        query: &[],
        handler: || post(|app, id, body| tell("add", app, id, body)),
    },
    Route {
        method: "delete",
        path: "/v1/channels/{channel}/queue/{agent}",
        summary: "Take an agent out of the queue",
        body: &[],
        query: &[],
        handler: || delete(remove),
    },
    Route {
        method: "post",
        path: "/v1/channels/{channel}/crashed",
        summary: "Report that an agent is gone",
        body: &[("agent", "who")],
        query: &[],
        handler: || post(|app, id, body| tell("crashed", app, id, body)),
    },
    Route {
        method: "post",
        path: "/v1/channels/{channel}/next",
        summary: "Give the floor to an agent",
        body: &[("agent", "who"), ("turn?", "the turn this ends")],
        query: &[],
        handler: || post(|app, id, body| tell("next", app, id, body)),
    },
    Route {
        method: "put",
        path: "/v1/channels/{channel}/config",
        summary: "Change how a channel is run",
        body: &[("config", "the whole new configuration")],
        query: &[],
        handler: || put(|app, id, body| tell("configure", app, id, body)),
    },
    Route {
        method: "get",
        path: "/v1/turns/state",
        summary: "Export all channels as a state file",
        body: &[],
        query: &[],
        handler: || get(export).post(import),
    },
    Route {
        method: "post",
        path: "/v1/turns/state",
        summary: "Import channels from a state file",
        body: &[
            ("state", "the state file"),
            ("config?", "how the channels are run"),
            ("personas?", "what is known about the agents"),
        ],
        query: &[],
        handler: axum::routing::MethodRouter::new,
    },
];

type Shared = State<Arc<App>>;

fn open_channels() -> RunFilter {
    let machine = Some(TURNS.to_owned());
    RunFilter { machine, active: Some(true), limit: LIST_MAX, ..RunFilter::default() }
}

async fn list(State(app): Shared) -> Result<Json<Value>, ApiError> {
    let channels = app.with_engine(|engine| engine.snapshots(&open_channels())).await?;
    let channels: Vec<Value> = channels.into_iter().map(shown).collect();
    Ok(Json(json!({ "v": 1, "channels": channels })))
}

async fn create(
    State(app): Shared,
    Sent { mut body, source }: Sent<Members>,
) -> Result<Response, ApiError> {
    if !body.contains_key("personas") {
        body.insert("personas".to_owned(), json!(app.personas));
    }
    let name = body.get("channel").and_then(Value::as_str).unwrap_or_default();
    let id =
        RunId::new(name).map_err(|_| ApiError::bad(format!("`{name}` cannot name a channel")))?;
    begin(&app, TURNS.to_owned(), Some(id), body, source).await
}

async fn show(State(app): Shared, Named(id): Named) -> Result<Json<Value>, ApiError> {
    let channel = app.with_engine(move |engine| {
        let found = snapshot(engine, &id)?;
        // One of another machine is no channel.
        if found.run.record.machine == TURNS { Ok(found) } else { Err(EngineError::NoSuchRun(id)) }
    });
    Ok(Json(shown(channel.await?)))
}

/// A message: its answer is about the message, not about the channel.
async fn say(
    State(app): Shared,
    Named(id): Named,
    Sent { body, source }: Sent<Members>,
) -> Result<Response, ApiError> {
    let several = body.contains_key("texts");
    let taken = match happen(&app, id, event("message", body), source).await {
        Err(error) if error.is_not_found() => {
            let code = ReplyReason::UnknownChannel.as_str();
            return Err(ApiError::new(StatusCode::NOT_FOUND, code, error.to_string()));
        }
        taken => taken?,
    };
    let repeated = taken.repeated;
    let Parts { effects, replies, .. } = Parts::of(taken.effects);
    let (name, result) = if several {
        ("results", Value::Array(replies))
    } else {
        ("result", replies.into_iter().next().unwrap_or_default())
    };
    let form = Members::from_iter([
        ("v".to_owned(), json!(1)),
        ("repeated".to_owned(), Value::Bool(repeated)),
        ("effects".to_owned(), Value::Array(effects)),
        (name.to_owned(), result),
    ]);
    Ok(Json(form).into_response())
}

/// Anything else that happens in a channel.
async fn tell(
    kind: &'static str,
    State(app): Shared,
    Named(id): Named,
    Sent { body, source }: Sent<Members>,
) -> Result<Json<Value>, ApiError> {
    Ok(answered(happen(&app, id, event(kind, body), source).await?))
}

async fn remove(
    State(app): Shared,
    Path((_, agent)): Path<(String, String)>,
    Named(id): Named,
    SentNothing(source): SentNothing,
) -> Result<Json<Value>, ApiError> {
    let body = Members::from_iter([("agent".to_owned(), Value::String(agent))]);
    Ok(answered(happen(&app, id, event("remove", body), source).await?))
}

async fn happen(
    app: &Arc<App>,
    run: RunId,
    event: Members,
    source: Option<Source>,
) -> Result<Taken, ApiError> {
    let input = Input { now: app.now(), run, machine: Some(TURNS), event, source };
    app.runs.step(input).await
}

async fn export(State(app): Shared) -> Result<Json<Value>, ApiError> {
    let channels = app.with_engine(|engine| engine.snapshots(&open_channels())).await?;
    let mut board = ChannelSet::default();
    for channel in channels {
        if let RunState::Turns(state) = channel.state {
            board.channels.insert(state.channel.clone(), *state);
        }
    }
    Ok(Json(board.export(app.now())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Import {
    state: Value,
    #[serde(default)]
    config: Config,
    #[serde(default)]
    personas: BTreeMap<String, Persona>,
}

/// Imports channels that are not there yet; those that are stay as they are.
async fn import(
    State(app): Shared,
    Sent { body, .. }: Sent<Import>,
) -> Result<Json<Value>, ApiError> {
    let now = app.now();
    let Import { state, config, personas } = body;
    config.check().map_err(|error| ApiError::bad(error.to_string()))?;
    let board = ChannelSet::import(&state.to_string(), &config, &personas, now)
        .map_err(|error| ApiError::bad(error.to_string()))?;
    let (imported, skipped) = app.adopt(board).await?;
    Ok(Json(json!({ "v": 1, "imported": imported, "skipped": skipped })))
}
