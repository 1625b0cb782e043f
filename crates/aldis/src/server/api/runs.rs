//! Runs of any machine: begun, stepped, shown, paused, answered, explained.

use std::sync::Arc;

use aldis_engine::{Engine, EngineError, Members, NewRun, Snapshot, State as RunState};
use aldis_machine::HumanCommand;
use aldis_store::{Cursor, DecisionFilter, Driver, RunFilter, RunId, Source};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Route;
use super::answer::{answered, shown};
use super::request::{Asked, Named, Sent};
use crate::server::app::App;
use crate::server::error::ApiError;
use crate::server::events;
use crate::server::runs::Input;
use crate::view::wire::run::{DecisionForm, EventForm};
use crate::view::wire::task::TaskLine;

/// How many rows a list has at most.
const LIST_MAX: usize = 1_000;
const LIST_USUAL: usize = 100;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "get",
        path: "/v1/runs",
        summary: "List runs, the latest first",
        body: &[],
        query: &[
            ("active?", "only those that can still step, or only those that cannot"),
            ("machine?", "only of this machine"),
            ("limit?", "how many at most"),
        ],
        handler: || get(list).post(create),
    },
    Route {
        method: "post",
        path: "/v1/runs",
        summary: "Begin a run of a machine",
        body: &[
            ("machine", "`delivery`, `phases`, `run` or `turns`"),
            ("id?", "its name"),
            ("start", "how it begins, as the machine wants it"),
        ],
        query: &[],
        handler: axum::routing::MethodRouter::new,
    },
    Route {
        method: "get",
        path: "/v1/runs/{run}",
        summary: "Show a run",
        body: &[],
        query: &[],
        handler: || get(show),
    },
    Route {
        method: "get",
        path: "/v1/runs/{run}/why",
        summary: "Say what was decided about a run last, and why",
        body: &[],
        query: &[("limit?", "how many decisions at most; 1 where nothing is said")],
        handler: || get(why),
    },
    Route {
        method: "get",
        path: "/v1/runs/{run}/tasks",
        summary: "List the tasks of a delivery; other runs have none",
        body: &[],
        query: &[],
        handler: || get(tasks),
    },
    Route {
        method: "get",
        path: "/v1/runs/{run}/events",
        summary: "Read the journal of a run",
        body: &[],
        query: &[("after?", "only behind this number"), ("limit?", "how many at most")],
        handler: || get(journal).post(step),
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/events",
        summary: "Let a run take an event, and get the effects",
        body: &[("event", "what happened; the other members belong to it")],
        query: &[],
        handler: axum::routing::MethodRouter::new,
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/pause",
        summary: "Let a run rest",
        body: &[],
        query: &[],
        handler: || post(|app, id, body| plain(HumanCommand::Pause, app, id, body)),
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/resume",
        summary: "Let a run go on",
        body: &[],
        query: &[],
        handler: || post(|app, id, body| plain(HumanCommand::Resume, app, id, body)),
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/abort",
        summary: "End a run",
        body: &[],
        query: &[],
        handler: || post(|app, id, body| plain(HumanCommand::Abort, app, id, body)),
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/answer",
        summary: "Answer a question of a run",
        body: &[("id", "the question"), ("text", "the answer")],
        query: &[],
        handler: || post(answer),
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/tell",
        summary: "Tell the agents of a run something",
        body: &[("text", "what"), ("to?", "whom or what it is about: a task, a role, an agent")],
        query: &[],
        handler: || post(tell),
    },
    Route {
        method: "get",
        path: "/v1/questions",
        summary: "List the questions that wait for a human",
        body: &[],
        query: &[],
        handler: || get(questions),
    },
    Route {
        method: "get",
        path: "/v1/decisions",
        summary: "Read the decisions about all runs, newest first",
        body: &[],
        query: &[("before?", "only before this number"), ("limit?", "how many at most")],
        handler: || get(decisions),
    },
    Route {
        method: "get",
        path: "/v1/events",
        summary: "Follow what is decided, as server-sent events; `Last-Event-ID` resumes",
        body: &[],
        query: &[
            ("run?", "only of this run"),
            ("channel?", "only of this channel"),
            ("after?", "begin behind this number"),
        ],
        handler: || get(follow),
    },
];

type Shared = State<Arc<App>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    active: Option<bool>,
    machine: Option<String>,
    limit: Option<usize>,
}

async fn list(State(app): Shared, Asked(query): Asked<ListQuery>) -> Result<Json<Value>, ApiError> {
    let limit = query.limit.unwrap_or(LIST_USUAL).min(LIST_MAX);
    let filter =
        RunFilter { active: query.active, machine: query.machine, limit, ..RunFilter::default() };
    let runs = app.with_engine(move |engine| engine.snapshots(&filter)).await?;
    let runs: Vec<Value> = runs.into_iter().map(shown).collect();
    Ok(Json(json!({ "v": 1, "runs": runs })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    machine: String,
    #[serde(default)]
    id: Option<String>,
    start: Members,
}

async fn create(
    State(app): Shared,
    Sent { body, source }: Sent<Begin>,
) -> Result<Response, ApiError> {
    let id =
        body.id.map(RunId::new).transpose().map_err(|error| ApiError::bad(error.to_string()))?;
    // Without a name of its own, a repeated request would begin a second run.
    let id = id.or_else(|| source.as_ref().and_then(|source| name_of(&source.key)));
    begin(&app, body.machine, id, body.start, source).await
}

/// Begins a run that the server drives.
pub(super) async fn begin(
    app: &Arc<App>,
    machine: String,
    id: Option<RunId>,
    start: Members,
    source: Option<Source>,
) -> Result<Response, ApiError> {
    let new = NewRun { id, source, ..NewRun::of("", Driver::Server) };
    let taken = app.runs.begin(app.now(), machine, new, start).await?;
    let status = if taken.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, answered(taken)).into_response())
}

/// A name that the same request gets again.
fn name_of(source: &str) -> Option<RunId> {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(source.as_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    RunId::new(name).ok()
}

async fn show(State(app): Shared, Named(id): Named) -> Result<Json<Value>, ApiError> {
    Ok(Json(shown(app.with_engine(move |engine| snapshot(engine, &id)).await?)))
}

/// Reads a run that must exist.
pub(super) fn snapshot(engine: &Engine, id: &RunId) -> Result<Snapshot, EngineError> {
    engine.snapshot(id)?.ok_or_else(|| EngineError::NoSuchRun(id.clone()))
}

/// Fails unless the run exists.
fn check_exists(engine: &Engine, id: &RunId) -> Result<(), EngineError> {
    let run = engine.store().run(id)?;
    run.map(drop).ok_or_else(|| EngineError::NoSuchRun(id.clone()))
}

async fn tasks(State(app): Shared, Named(id): Named) -> Result<Json<Value>, ApiError> {
    let snapshot = app.with_engine(move |engine| snapshot(engine, &id)).await?;
    let tasks: Vec<TaskLine> = match &snapshot.state {
        RunState::Delivery(state) => {
            state.tasks().iter().map(|task| TaskLine::new(&snapshot.run.id, state, task)).collect()
        }
        RunState::Unreadable(detail) => return Err(ApiError::internal(detail)),
        RunState::Phases(_) | RunState::Run(_) | RunState::Turns(_) => Vec::new(),
    };
    Ok(Json(json!({ "v": 1, "tasks": tasks })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<u64>,
    before: Option<String>,
    limit: Option<usize>,
}

impl Page {
    fn before(&self) -> Result<Option<Cursor>, ApiError> {
        cursor(self.before.as_deref())
    }
}

fn cursor(text: Option<&str>) -> Result<Option<Cursor>, ApiError> {
    let cursor = text.map(str::parse).transpose();
    cursor.map_err(|error: aldis_store::BadCursor| ApiError::bad(error.to_string()))
}

async fn why(
    State(app): Shared,
    Named(id): Named,
    Asked(page): Asked<Page>,
) -> Result<Json<Value>, ApiError> {
    let limit = page.limit.unwrap_or(1).min(LIST_MAX);
    let filter = DecisionFilter { run: Some(id.clone()), before: page.before()?, limit };
    read_decisions(&app, filter, Some(id)).await
}

async fn decisions(State(app): Shared, Asked(page): Asked<Page>) -> Result<Json<Value>, ApiError> {
    let limit = page.limit.unwrap_or(LIST_USUAL).min(LIST_MAX);
    let filter = DecisionFilter { run: None, before: page.before()?, limit };
    read_decisions(&app, filter, None).await
}

async fn read_decisions(
    app: &Arc<App>,
    filter: DecisionFilter,
    run: Option<RunId>,
) -> Result<Json<Value>, ApiError> {
    let found = app
        .with_engine(move |engine| {
            run.map(|run| check_exists(engine, &run)).transpose()?;
            Ok::<_, EngineError>(engine.store().decisions(&filter)?)
        })
        .await?;
    let forms: Vec<DecisionForm> = found.iter().filter_map(DecisionForm::new).collect();
    Ok(Json(json!({ "v": 1, "decisions": forms })))
}

async fn journal(
    State(app): Shared,
    Named(id): Named,
    Asked(page): Asked<Page>,
) -> Result<Json<Value>, ApiError> {
    let limit = page.limit.unwrap_or(LIST_USUAL).min(LIST_MAX);
    let after = page.after.unwrap_or(0);
    let events = app
        .with_engine(move |engine| {
            check_exists(engine, &id)?;
            Ok::<_, EngineError>(engine.store().events(&id, after, limit)?)
        })
        .await?;
    let forms: Vec<EventForm> = events.iter().map(EventForm::new).collect();
    Ok(Json(json!({ "v": 1, "events": forms })))
}

async fn step(
    State(app): Shared,
    Named(run): Named,
    Sent { body: event, source }: Sent<Members>,
) -> Result<Json<Value>, ApiError> {
    let input = Input { now: app.now(), run, machine: None, event, source };
    Ok(answered(app.runs.step(input).await?))
}

/// Nothing but an empty object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A command that needs no further word.
async fn plain(
    command: HumanCommand,
    State(app): Shared,
    Named(run): Named,
    Sent { body: Nothing {}, source }: Sent<Nothing>,
) -> Result<Json<Value>, ApiError> {
    Ok(answered(app.runs.command(app.now(), run, command, source).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    id: String,
    text: String,
}

async fn answer(
    State(app): Shared,
    Named(run): Named,
    Sent { body: Reply { id, text }, source }: Sent<Reply>,
) -> Result<Json<Value>, ApiError> {
    let command = HumanCommand::Answer { id, text };
    Ok(answered(app.runs.command(app.now(), run, command, source).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    text: String,
    #[serde(default)]
    to: Option<String>,
}

async fn tell(
    State(app): Shared,
    Named(run): Named,
    Sent { body: Message { text, to }, source }: Sent<Message>,
) -> Result<Json<Value>, ApiError> {
    let command = HumanCommand::Tell { text, to };
    Ok(answered(app.runs.command(app.now(), run, command, source).await?))
}

async fn questions(State(app): Shared) -> Result<Json<Value>, ApiError> {
    let filter = RunFilter { active: Some(true), limit: LIST_MAX, ..RunFilter::default() };
    let runs = app.with_engine(move |engine| engine.snapshots(&filter)).await?;
    let asked = |snapshot: &Snapshot| {
        let form = |it: aldis_engine::Question| {
            let (id, text, at) = (it.id, it.text, it.asked_at);
            json!({ "run": snapshot.id().as_str(), "id": id, "text": text, "asked_at": at })
        };
        snapshot.questions().into_iter().map(form).collect::<Vec<Value>>()
    };
    let all: Vec<Value> = runs.iter().flat_map(asked).collect();
    Ok(Json(json!({ "v": 1, "questions": all })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Follow {
    run: Option<String>,
    channel: Option<String>,
    after: Option<String>,
}

async fn follow(
    State(app): Shared,
    Asked(query): Asked<Follow>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let run = query.run.or(query.channel).map(RunId::new).transpose();
    let run = run.map_err(|error| ApiError::not_found(error.to_string()))?;
    let last = headers.get("last-event-id").map(HeaderValue::to_str).transpose();
    let last = last.map_err(|_| ApiError::bad("`Last-Event-ID` is not the id of an event"))?;
    let after = cursor(last.or(query.after.as_deref()))?;
    let body = events::open(&app, run, after).await?;
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}
