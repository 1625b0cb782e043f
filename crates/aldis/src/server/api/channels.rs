//! Channels: who takes part, what is said, who has the turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use aldis_engine::{EngineError, State as RunState};
use aldis_machine::Machine as _;
use aldis_machine::turns::{self, Config, Persona, QueuePosition, ReplyReason};
use aldis_store::{RunFilter, RunId, Source};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::describe::{Routes, schema_of};
use super::forms::{Answer, Change, ChannelPage, ImportedChannels, Replies, ShownRun};
use super::request::{Asked, Named, Page, Sent, SentNothing, members};
use super::runs::{begin, page_of_runs, snapshot};
use crate::app::formats::turn_state::ChannelSet;
use crate::server::app::App;
use crate::server::error::ApiError;
use crate::server::runs::{Input, Taken};

/// The machine of channels.
const TURNS: &str = turns::State::NAME;

pub(super) fn add(routes: &mut Routes) {
    routes.add("get", "/v1/channels", "List the open channels", list);
    routes.add("post", "/v1/channels", "Open a channel", create);
    let summary = "Show a channel: who has the turn, queue, agents and history";
    routes.add("get", "/v1/channels/{channel}", summary, show);
    let path = "/v1/channels/{channel}/messages";
    routes.add("post", path, "Take messages of an agent", say);
    let path = "/v1/channels/{channel}/human";
    routes.add("post", path, "Take a message of a human", happen::<HumanMessage>);
    let path = "/v1/channels/{channel}/queue";
    routes.add("post", path, "Add an agent to the queue", happen::<NewAgent>);
    let path = "/v1/channels/{channel}/queue/{agent}";
    routes.add("delete", path, "Take an agent out of the queue", remove);
    let path = "/v1/channels/{channel}/crashed";
    routes.add("post", path, "Report that an agent is gone", happen::<Crash>);
    let path = "/v1/channels/{channel}/next";
    routes.add("post", path, "Give the turn to an agent", happen::<NextAgent>);
    let path = "/v1/channels/{channel}/config";
    routes.add("put", path, "Change how a channel is run", happen::<NewConfig>);
    routes.add("get", "/v1/turns/state", "Export all channels as a state file", export);
    routes.add("post", "/v1/turns/state", "Import channels from a state file", import);
}

type Shared = State<Arc<App>>;
type Personas = BTreeMap<String, Persona>;

/// A new channel.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewChannel {
    /// Its name.
    channel: String,
    /// Who takes part, in order.
    agents: Vec<String>,
    /// How it is run; what is left out has its default.
    #[serde(default)]
    #[schemars(schema_with = "config_schema")]
    config: Option<Config>,
    /// What is known about the agents; those of the server where nothing is said.
    #[serde(default)]
    #[schemars(schema_with = "personas_schema")]
    personas: Option<Personas>,
}

/// Messages of an agent: `text` or `texts`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentMessages {
    /// Who sends them.
    agent: String,
    /// One message.
    text: Option<String>,
    /// Several messages.
    texts: Option<Vec<String>>,
    /// The turn they belong to, from the notification.
    turn: Option<u64>,
}

/// Something that happens in a channel, as a request says it.
trait Happening: Serialize + DeserializeOwned + JsonSchema {
    /// The event of the machine.
    const EVENT: &str;
}

/// Declares requests that tell of a happening.
macro_rules! happenings {
    ($($(#[$about:meta])* $name:ident = $event:literal { $($(#[$note:meta])* $member:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $name { $($(#[$note])* $member: $kind,)* }

        impl Happening for $name {
            const EVENT: &str = $event;
        }
    )*};
}
happenings! {
    /// A message of a human.
    HumanMessage = "human" {
        /// The message.
        text: String,
        /// Who sends it.
        from: Option<String>,
        /// Who is asked; whoever has the turn where nobody is named.
        to: Option<String>,
    }
    /// An agent for the queue.
    NewAgent = "add" {
        /// Who.
        agent: String,
        /// `start`, `end` or a place from 0; the end where nothing is said.
        #[serde(default)]
        #[schemars(schema_with = "position_schema")]
        position: Option<QueuePosition>,
        /// What is known about it.
        #[serde(default)]
        #[schemars(schema_with = "persona_schema")]
        persona: Option<Persona>,
    }
    /// An agent that is gone.
    Crash = "crashed" {
        /// Who.
        agent: String,
    }
    /// Who has the turn next.
    NextAgent = "next" {
        /// Who.
        agent: String,
        /// The turn this ends; nothing happens if it has ended already.
        turn: Option<u64>,
    }
    /// How a channel is run from now on.
    NewConfig = "configure" {
        /// The whole new configuration; what is left out has its default.
        #[schemars(schema_with = "config_schema")]
        config: Config,
    }
}

fn config_schema(_: &mut SchemaGenerator) -> Schema {
    schema_of(&Config::default())
}

fn persona_schema(_: &mut SchemaGenerator) -> Schema {
    schema_of(&Persona::default())
}

fn personas_schema(generator: &mut SchemaGenerator) -> Schema {
    let persona = persona_schema(generator);
    schemars::json_schema!({ "type": "object", "additionalProperties": persona })
}

fn position_schema(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "anyOf": [{ "enum": ["start", "end"] }, { "type": "integer", "minimum": 0 }] })
}

fn open_channels() -> RunFilter {
    RunFilter { machine: Some(TURNS.to_owned()), active: Some(true), ..RunFilter::default() }
}

async fn list(
    State(app): Shared,
    Asked(page): Asked<Page>,
) -> Result<Answer<ChannelPage>, ApiError> {
    let (channels, next) = page_of_runs(&app, open_channels(), &page).await?;
    Ok(ChannelPage { channels, next }.into())
}

async fn create(
    State(app): Shared,
    Sent { mut body, source }: Sent<NewChannel>,
) -> Result<(StatusCode, Answer<Change>), ApiError> {
    body.personas.get_or_insert_with(|| app.personas.clone());
    let name = &*body.channel;
    let id =
        RunId::new(name).map_err(|_| ApiError::bad(format!("`{name}` cannot name a channel")))?;
    begin(&app, TURNS.to_owned(), Some(id), members(&body)?, source).await
}

async fn show(State(app): Shared, Named(id): Named) -> Result<Json<ShownRun>, ApiError> {
    let channel = app.with_engine(move |engine| {
        let found = snapshot(engine, &id)?;
        // One of another machine is no channel.
        if found.run.record.machine == TURNS { Ok(found) } else { Err(EngineError::NoSuchRun(id)) }
    });
    Ok(Json(ShownRun::new(channel.await?)))
}

/// A message: its answer is about the message, not about the channel.
async fn say(
    State(app): Shared,
    Named(id): Named,
    Sent { body, source }: Sent<AgentMessages>,
) -> Result<Answer<Replies>, ApiError> {
    match step(&app, id, "message", &body, source).await {
        Err(error) if error.is_not_found() => {
            let code = ReplyReason::UnknownChannel.as_str();
            Err(ApiError::new(StatusCode::NOT_FOUND, code, error.to_string()))
        }
        taken => Ok(Replies::new(taken?, body.texts.is_some()).into()),
    }
}

/// Anything else that happens in a channel.
async fn happen<T: Happening>(
    State(app): Shared,
    Named(id): Named,
    Sent { body, source }: Sent<T>,
) -> Result<Answer<Change>, ApiError> {
    Ok(Change::from(step(&app, id, T::EVENT, &body, source).await?).into())
}

async fn remove(
    State(app): Shared,
    Path((_, agent)): Path<(String, String)>,
    Named(id): Named,
    SentNothing(source): SentNothing,
) -> Result<Answer<Change>, ApiError> {
    Ok(Change::from(step(&app, id, "remove", &Crash { agent }, source).await?).into())
}

async fn step(
    app: &Arc<App>,
    run: RunId,
    event: &str,
    body: &impl Serialize,
    source: Option<Source>,
) -> Result<Taken, ApiError> {
    let mut members = members(body)?;
    members.insert("event".to_owned(), event.into());
    let input = Input { now: app.now(), run, machine: Some(TURNS), event: members, source };
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

/// A state file, and what it does not say about its channels.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Import {
    /// The state file.
    state: Value,
    /// How the channels are run.
    #[serde(default)]
    #[schemars(schema_with = "config_schema")]
    config: Config,
    /// What is known about the agents.
    #[serde(default)]
    #[schemars(schema_with = "personas_schema")]
    personas: Personas,
}

/// Imports channels that are not there yet; those that are stay as they are.
async fn import(
    State(app): Shared,
    Sent { body, .. }: Sent<Import>,
) -> Result<Answer<ImportedChannels>, ApiError> {
    let now = app.now();
    let Import { state, config, personas } = body;
    config.check().map_err(|error| ApiError::bad(error.to_string()))?;
    let board = ChannelSet::import(&state.to_string(), &config, &personas, now)
        .map_err(|error| ApiError::bad(error.to_string()))?;
    let (imported, skipped) = app.adopt(board).await?;
    Ok(ImportedChannels { imported, skipped }.into())
}
