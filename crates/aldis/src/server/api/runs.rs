//! Runs of any machine: begun, stepped, shown, paused, answered, explained.

use std::sync::Arc;

use aldis_store::{Cursor, DecisionFilter, Loaded, RunFilter, RunId};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Route;
use super::request::{Asked, Named, Sent, Source};
use crate::engine::keeper::{Answer, Keeper, KeeperError};
use crate::engine::machines::{Members, Wish, shown};
use crate::server::app::App;
use crate::server::error::ApiError;
use crate::server::events;
use crate::view::known::Known;
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
        handler: || post(|app, id, source, body| wish(Wish::Pause, app, id, source, body)),
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/resume",
        summary: "Let a run go on",
        body: &[],
        query: &[],
        handler: || post(|app, id, source, body| wish(Wish::Resume, app, id, source, body)),
    },
    Route {
        method: "post",
        path: "/v1/runs/{run}/abort",
        summary: "End a run",
        body: &[],
        query: &[],
        handler: || post(|app, id, source, body| wish(Wish::Abort, app, id, source, body)),
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

/// What a change led to.
pub(super) fn answered(app: &App, answer: &Answer) -> Value {
    json!({
        "v": 1,
        "run": shown(app.keeper.store(), &answer.run),
        "effects": answer.effects,
        "replies": answer.replies,
        "warnings": answer.warnings,
        "decision": answer.decision,
        "repeated": answer.repeated,
    })
}

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
    let runs = app
        .keep(move |keeper| {
            let runs = keeper.store().loaded(&filter)?;
            Ok(runs.iter().map(|it| shown(keeper.store(), &it.run)).collect::<Vec<Value>>())
        })
        .await?;
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
    Source(source): Source,
    Sent(body): Sent<Begin>,
) -> Result<Response, ApiError> {
    let id =
        body.id.map(RunId::new).transpose().map_err(|error| ApiError::bad(error.to_string()))?;
    let now = app.now();
    let (machine, start) = (body.machine, body.start);
    // Without a name of its own, a repeated request would begin a second run.
    let id = id.or_else(|| source.as_deref().and_then(name_of));
    let begin = move |keeper: &Keeper| keeper.begin(now, &machine, id, start, source.as_deref());
    let answer = app.keep(begin).await?;
    let status = if answer.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(answered(&app, &answer))).into_response())
}

/// A name that the same request gets again.
fn name_of(source: &str) -> Option<RunId> {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(source.as_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    RunId::new(name).ok()
}

async fn show(State(app): Shared, Named(id): Named) -> Result<Json<Value>, ApiError> {
    let run = app.keep(move |keeper| Ok(shown(keeper.store(), &keeper.load(&id)?))).await?;
    Ok(Json(run))
}

async fn tasks(State(app): Shared, Named(id): Named) -> Result<Json<Value>, ApiError> {
    let tasks = app
        .keep(move |keeper| {
            let known = Known::of(keeper.store(), keeper.load(&id)?)
                .map_err(|error| KeeperError::Failed(error.to_string()))?;
            let Known::Delivery(run, state) = known else { return Ok(Vec::new()) };
            let tasks = state.tasks().iter();
            Ok(tasks.map(|task| TaskLine::new(&run.id, &state, task)).collect())
        })
        .await?;
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
        .keep(move |keeper| {
            run.map(|run| keeper.load(&run)).transpose()?;
            Ok(keeper.store().decisions(&filter)?)
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
        .keep(move |keeper| {
            keeper.load(&id)?;
            Ok(keeper.store().events(&id, after, limit)?)
        })
        .await?;
    let forms: Vec<EventForm> = events.iter().map(EventForm::new).collect();
    Ok(Json(json!({ "v": 1, "events": forms })))
}

async fn step(
    State(app): Shared,
    Named(id): Named,
    Source(source): Source,
    Sent(event): Sent<Members>,
) -> Result<Json<Value>, ApiError> {
    let now = app.now();
    let advance = move |keeper: &Keeper| keeper.advance(now, &id, &event, source.as_deref());
    Ok(Json(answered(&app, &app.keep(advance).await?)))
}

/// Nothing but an empty object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

async fn wish(
    wish: Wish,
    State(app): Shared,
    Named(id): Named,
    Source(source): Source,
    Sent(Nothing {}): Sent<Nothing>,
) -> Result<Json<Value>, ApiError> {
    grant(&app, id, wish, source).await
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
    Source(source): Source,
    Sent(Reply { id, text }): Sent<Reply>,
) -> Result<Json<Value>, ApiError> {
    grant(&app, run, Wish::Answer { id, text }, source).await
}

async fn grant(
    app: &Arc<App>,
    id: RunId,
    wish: Wish,
    source: Option<String>,
) -> Result<Json<Value>, ApiError> {
    let now = app.now();
    let granted = move |keeper: &Keeper| keeper.wish(now, &id, &wish, source.as_deref());
    Ok(Json(answered(app, &app.keep(granted).await?)))
}

async fn questions(State(app): Shared) -> Result<Json<Value>, ApiError> {
    let filter = RunFilter { active: Some(true), limit: LIST_MAX, ..RunFilter::default() };
    let all = app
        .keep(move |keeper| {
            let mut all = Vec::new();
            for Loaded { run, .. } in keeper.store().loaded(&filter)? {
                let name = run.id.to_string();
                let known = Known::of(keeper.store(), run).ok();
                for (id, text, at) in known.map(|known| known.questions()).unwrap_or_default() {
                    all.push(json!({ "run": name, "id": id, "text": text, "asked_at": at }));
                }
            }
            Ok(all)
        })
        .await?;
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
