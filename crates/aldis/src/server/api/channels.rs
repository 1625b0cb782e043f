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

use super::describe::schema_of;
use super::forms::{Answer, Change, ChannelPage, ImportedChannels, Replies, ShownRun};
use super::request::{Asked, Named, Page, Sent, SentNothing, members};
use super::runs::{begin, page_of_runs, snapshot};
use crate::app::formats::turn_state::ChannelSet;
use crate::server::access::Asker;
use crate::server::app::{App, AppState};
use crate::server::error::ApiError;
use crate::server::runs::{RunInput, Taken};

/// The machine of channels.
const TURNS: &str = turns::State::NAME;

type Personas = BTreeMap<String, Persona>;

/// A new channel.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewChannel {
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
pub(super) struct AgentMessages {
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
pub(super) trait Happening: Serialize + DeserializeOwned + JsonSchema {
    /// The event of the machine.
    const EVENT: &str;
}

/// Declares requests that tell of a happening.
macro_rules! happenings {
    ($($(#[$about:meta])* $name:ident = $event:literal { $($(#[$note:meta])* $member:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name { $($(#[$note])* $member: $kind,)* }

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

fn open_channels(asker: &Asker) -> RunFilter {
    let (machine, projects) = (Some(TURNS.to_owned()), asker.projects());
    RunFilter { machine, projects, active: Some(true), ..RunFilter::default() }
}

pub(super) async fn list(
    State(app): AppState,
    asker: Asker,
    Asked(page): Asked<Page>,
) -> Result<Answer<ChannelPage>, ApiError> {
    let (channels, next) = page_of_runs(&app, open_channels(&asker), &page).await?;
    Ok(ChannelPage { channels, next }.into())
}

pub(super) async fn create(
    State(app): AppState,
    asker: Asker,
    Sent { mut body, source }: Sent<NewChannel>,
) -> Result<(StatusCode, Answer<Change>), ApiError> {
    body.personas.get_or_insert_with(|| app.personas.clone());
    let name = &*body.channel;
    let id =
        RunId::new(name).map_err(|_| ApiError::bad(format!("`{name}` cannot name a channel")))?;
    begin(&app, &asker, TURNS.to_owned(), Some(id), members(&body)?, source).await
}

pub(super) async fn show(
    State(app): AppState,
    Named(id): Named,
) -> Result<Json<ShownRun>, ApiError> {
    let channel = app.with_engine(move |engine| {
        let found = snapshot(engine, &id)?;
        // One of another machine is no channel.
        if found.run.record.machine == TURNS { Ok(found) } else { Err(EngineError::NoSuchRun(id)) }
    });
    Ok(Json(ShownRun::new(channel.await?)))
}

/// A message: its answer is about the message, not about the channel.
pub(super) async fn say(
    State(app): AppState,
    asker: Asker,
    Named(id): Named,
    Sent { body, source }: Sent<AgentMessages>,
) -> Result<Answer<Replies>, ApiError> {
    asker.check_agent(&body.agent)?;
    match step(&app, id, "message", &body, source).await {
        Err(error) if error.is_not_found() => {
            let code = ReplyReason::UnknownChannel.as_str();
            Err(ApiError::new(StatusCode::NOT_FOUND, code, error.to_string()))
        }
        taken => Ok(Replies::new(taken?, body.texts.is_some()).into()),
    }
}

/// Anything else that happens in a channel.
pub(super) async fn happen<T: Happening>(
    State(app): AppState,
    Named(id): Named,
    Sent { body, source }: Sent<T>,
) -> Result<Answer<Change>, ApiError> {
    Ok(Change::from(step(&app, id, T::EVENT, &body, source).await?).into())
}

pub(super) async fn remove(
    State(app): AppState,
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
    let input = RunInput { now: app.now(), run, machine: Some(TURNS), event: members, source };
    app.runs.step(input).await
}

pub(super) async fn export(State(app): AppState, asker: Asker) -> Result<Json<Value>, ApiError> {
    let open = open_channels(&asker);
    let channels = app.with_engine(move |engine| engine.snapshots(&open)).await?;
    let mut board = ChannelSet::default();
    for channel in channels {
        if let RunState::Turns(state) = channel.state {
            board.channels.insert(state.channel().to_owned(), *state);
        }
    }
    Ok(Json(board.export(app.now())))
}

/// A state file, and what it does not say about its channels.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Import {
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
pub(super) async fn import(
    State(app): AppState,
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
