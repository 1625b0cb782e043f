//! Channels: who takes part, what is said, who has the floor.

use std::collections::BTreeMap;
use std::sync::Arc;

use aldis_machine::turns::{Config, Persona, Reply, ReplyReason, State as Channel};
use aldis_store::{Loaded, RunFilter, RunId};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post, put};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Route;
use super::request::{Named, Sent, Source, event};
use super::runs::answered;
use crate::app::formats::turn_state::ChannelSet;
use crate::engine::keeper::{Answer, Keeper, KeeperError};
use crate::engine::machines::{self, Members, TURNS, shown};
use crate::server::app::App;
use crate::server::error::ApiError;

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
        handler: || post(|app, id, source, body| tell("human", app, id, source, body)),
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
        handler: || post(|app, id, source, body| tell("add", app, id, source, body)),
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
        handler: || post(|app, id, source, body| tell("crashed", app, id, source, body)),
    },
    Route {
        method: "post",
        path: "/v1/channels/{channel}/next",
        summary: "Give the floor to an agent",
        body: &[("agent", "who"), ("turn?", "the turn this ends")],
        query: &[],
        handler: || post(|app, id, source, body| tell("next", app, id, source, body)),
    },
    Route {
        method: "put",
        path: "/v1/channels/{channel}/config",
        summary: "Change how a channel is run",
        body: &[("config", "the whole new configuration")],
        query: &[],
        handler: || put(|app, id, source, body| tell("configure", app, id, source, body)),
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
    let channels = app
        .keep(|keeper| {
            let runs = keeper.store().loaded(&open_channels())?;
            Ok(runs.iter().map(|it| shown(keeper.store(), &it.run)).collect::<Vec<Value>>())
        })
        .await?;
    Ok(Json(json!({ "v": 1, "channels": channels })))
}

async fn create(
    State(app): Shared,
    Source(source): Source,
    Sent(mut body): Sent<Members>,
) -> Result<Response, ApiError> {
    if !body.contains_key("personas") {
        body.insert("personas".to_owned(), json!(app.personas));
    }
    let name = body.get("channel").and_then(Value::as_str).unwrap_or_default();
    let id =
        RunId::new(name).map_err(|_| ApiError::bad(format!("`{name}` cannot name a channel")))?;
    let now = app.now();
    let begin = move |keeper: &Keeper| keeper.begin(now, TURNS, Some(id), body, source.as_deref());
    let answer = app.keep(begin).await?;
    let status = if answer.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(answered(&app, &answer))).into_response())
}

async fn show(State(app): Shared, Named(id): Named) -> Result<Json<Value>, ApiError> {
    let shown = app.keep(move |keeper| Ok(shown(keeper.store(), &channel(keeper, &id)?))).await?;
    Ok(Json(shown))
}

/// A message: its answer is about the message, not about the channel.
async fn say(
    State(app): Shared,
    Named(id): Named,
    Source(source): Source,
    Sent(body): Sent<Members>,
) -> Result<Response, ApiError> {
    let several = body.contains_key("texts");
    let kept = app.advance_only(TURNS, id, event("said", body), source).await?;
    let Some(answer) = kept else {
        let reply = Reply::ignored(ReplyReason::UnknownChannel);
        return Ok(
            (StatusCode::NOT_FOUND, Json(json!({ "v": 1, "result": reply }))).into_response()
        );
    };
    let Answer { effects, replies, repeated, .. } = answer;
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
    Source(source): Source,
    Sent(body): Sent<Members>,
) -> Result<Json<Value>, ApiError> {
    happen(&app, id, event(kind, body), source).await
}

async fn remove(
    State(app): Shared,
    Path((_, agent)): Path<(String, String)>,
    Named(id): Named,
    Source(source): Source,
) -> Result<Json<Value>, ApiError> {
    let body = Members::from_iter([("agent".to_owned(), Value::String(agent))]);
    happen(&app, id, event("remove", body), source).await
}

async fn happen(
    app: &Arc<App>,
    id: RunId,
    event: Members,
    source: Option<String>,
) -> Result<Json<Value>, ApiError> {
    let missing = KeeperError::NoSuchRun(id.clone());
    let answer = app.advance_only(TURNS, id, event, source).await?.ok_or(missing)?;
    Ok(Json(answered(app, &answer)))
}

/// Returns the run of a channel, and of nothing else.
fn channel(keeper: &Keeper, id: &RunId) -> Result<aldis_store::Run, KeeperError> {
    let run = keeper.load(id)?;
    if run.record.machine == TURNS { Ok(run) } else { Err(KeeperError::NoSuchRun(id.clone())) }
}

async fn export(State(app): Shared) -> Result<Json<Value>, ApiError> {
    let runs = app.keep(|keeper| Ok(keeper.store().loaded(&open_channels())?)).await?;
    let mut board = ChannelSet::default();
    for Loaded { run, .. } in &runs {
        let state: Result<Channel, _> = machines::restore(&run.record.state);
        board.channels.extend(state.map(|state| (state.channel.clone(), state)));
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
async fn import(State(app): Shared, Sent(body): Sent<Import>) -> Result<Json<Value>, ApiError> {
    let now = app.now();
    let Import { state, config, personas } = body;
    config.check().map_err(|error| ApiError::bad(error.to_string()))?;
    let board = ChannelSet::import(&state.to_string(), &config, &personas, now)
        .map_err(|error| ApiError::bad(error.to_string()))?;
    let (imported, skipped) = app.adopt(board).await?;
    Ok(Json(json!({ "v": 1, "imported": imported, "skipped": skipped })))
}
