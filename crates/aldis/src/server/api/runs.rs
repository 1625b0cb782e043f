//! Runs of any machine: begun, stepped, shown, paused, answered, explained.

use std::sync::Arc;

use aldis_engine::{Engine, EngineError, Members, NewRun, Snapshot, State as RunState};
use aldis_machine::HumanCommand;
use aldis_store::{Cursor, DecisionFilter, Driver, RunFilter, RunId, Source};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::describe::EventStream;
use super::forms::{
    Answer, AskedQuestion, Change, DecisionPage, EventPage, QuestionPage, RunPage, ShownRun,
    TaskPage,
};
use super::request::{Asked, Named, Page, Sent, cursor};
use crate::server::access::Asker;
use crate::server::access::need::insufficient;
use crate::server::app::{App, AppState};
use crate::server::error::ApiError;
use crate::server::events::{self, CloudEvent, Followed};
use crate::server::output::{self, OutputPiece, OutputQuery};
use crate::server::runs::RunInput;
use crate::settings::tokens::Grant;
use crate::view::wire::effects::StartForm;
use crate::view::wire::run::{DecisionForm, EventForm};
use crate::view::wire::task::TaskLine;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunQuery {
    /// Only those that can still step, or only those that cannot.
    active: Option<bool>,
    /// Only of this machine.
    machine: Option<String>,
    /// Where the page begins: `next` of the page before.
    after: Option<String>,
    /// How many at most: 1 to 1000 (default: 100).
    limit: Option<usize>,
}

pub(super) async fn list(
    State(app): AppState,
    asker: Asker,
    Asked(query): Asked<RunQuery>,
) -> Result<Answer<RunPage>, ApiError> {
    let RunQuery { active, machine, after, limit } = query;
    let projects = asker.projects();
    let filter = RunFilter { active, machine, projects, ..RunFilter::default() };
    let (runs, next) = page_of_runs(&app, filter, &Page { after, limit }).await?;
    Ok(RunPage { runs, next }.into())
}

/// Reads a page of runs, and where the next one begins.
pub(super) async fn page_of_runs(
    app: &Arc<App>,
    filter: RunFilter,
    page: &Page,
) -> Result<(Vec<ShownRun>, Option<String>), ApiError> {
    let (runs, next) = page_of_snapshots(app, filter, page).await?;
    Ok((runs.into_iter().map(ShownRun::new).collect(), next))
}

async fn page_of_snapshots(
    app: &Arc<App>,
    filter: RunFilter,
    page: &Page,
) -> Result<(Vec<Snapshot>, Option<String>), ApiError> {
    let limit = page.limit()?;
    let filter = RunFilter { after: page.after()?, limit: limit + 1, ..filter };
    let read = app.with_engine(move |engine| {
        let listed = engine.store().list(&filter)?;
        let (listed, next) = Page::cut(listed, limit, |run| run.page.to_string());
        // One that was pruned in between is not there.
        let runs = listed.iter().filter_map(|run| engine.snapshot(&run.id).transpose());
        Ok::<_, EngineError>((runs.collect::<Result<_, _>>()?, next))
    });
    read.await
}

/// How a run begins.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRunBody {
    /// `delivery`, `phases`, `run` or `turns`.
    machine: String,
    /// Its name; one is made where none is given.
    id: Option<String>,
    /// How it begins, as the first line for `aldis step MACHINE` says it.
    #[schemars(with = "StartForm")]
    start: Members,
}

pub(super) async fn create(
    State(app): AppState,
    asker: Asker,
    Sent { body, source }: Sent<NewRunBody>,
) -> Result<(StatusCode, Answer<Change>), ApiError> {
    let id =
        body.id.map(RunId::new).transpose().map_err(|error| ApiError::bad(error.to_string()))?;
    // Without a name of its own, a repeated request would begin a second run.
    let id = id.or_else(|| source.as_ref().and_then(|source| name_of(&source.key)));
    begin(&app, &asker, body.machine, id, body.start, source).await
}

/// Begins a run that the server drives.
pub(super) async fn begin(
    app: &Arc<App>,
    asker: &Asker,
    machine: String,
    id: Option<RunId>,
    start: Members,
    source: Option<Source>,
) -> Result<(StatusCode, Answer<Change>), ApiError> {
    match &id {
        Some(id) => check_free(app, asker, id).await?,
        None if asker.grant.run.is_some() => return Err(only_one_run()),
        None => {}
    }
    // What a token of a project begins belongs to it.
    let project = asker.grant.project.clone().unwrap_or_default();
    let new = NewRun { id, source, ..NewRun::of(project, Driver::Server) };
    let taken = app.runs.begin(app.now(), machine, new, start).await?;
    let status = if taken.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Change::from(taken).into()))
}

/// Refuses a name that somebody has whose runs are none of this one's business.
async fn check_free(app: &Arc<App>, asker: &Asker, id: &RunId) -> Result<(), ApiError> {
    let (run, grant) = (id.clone(), asker.grant.clone());
    if grant.run.as_ref().is_some_and(|own| own != id.as_str()) {
        return Err(only_one_run());
    }
    let known = app.with_engine(move |engine| engine.store().run(&run)).await?;
    let is_other =
        known.is_some_and(|known| !grant.reaches(known.id.as_str(), &known.record.project));
    if is_other { Err(EngineError::Exists(id.clone()).into()) } else { Ok(()) }
}

fn only_one_run() -> ApiError {
    insufficient("this token is for one run, and begins no other")
}

/// A name that the same request gets again.
fn name_of(source: &str) -> Option<RunId> {
    let digest = Sha256::digest(source.as_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    RunId::new(name).ok()
}

pub(super) async fn show(
    State(app): AppState,
    Named(id): Named,
) -> Result<Json<ShownRun>, ApiError> {
    Ok(Json(ShownRun::new(app.with_engine(move |engine| snapshot(engine, &id)).await?)))
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

pub(super) async fn tasks(
    State(app): AppState,
    Named(id): Named,
    Asked(page): Asked<Page>,
) -> Result<Answer<TaskPage>, ApiError> {
    let snapshot = app.with_engine(move |engine| snapshot(engine, &id)).await?;
    let state = match &snapshot.state {
        RunState::Delivery(state) => state,
        RunState::Unreadable(detail) => return Err(ApiError::internal(detail)),
        RunState::Phases(_) | RunState::Run(_) | RunState::Turns(_) => {
            return Ok(TaskPage { tasks: Vec::new(), next: None }.into());
        }
    };
    let (after, limit) =
        (page.after::<usize>()?.map_or(0, |last| last.saturating_add(1)), page.limit()?);
    let tasks = state.tasks().iter().enumerate().skip(after).take(limit + 1).collect();
    let (tasks, next) = Page::cut(tasks, limit, |(place, _)| place.to_string());
    let line = |(_, task)| TaskLine::new(&snapshot.run.id, state, task);
    Ok(TaskPage { tasks: tasks.into_iter().map(line).collect(), next }.into())
}

pub(super) async fn why(
    State(app): AppState,
    Named(id): Named,
    Asked(page): Asked<Page>,
) -> Result<Answer<DecisionPage>, ApiError> {
    // The last one is what people want to know.
    let page = Page { limit: page.limit.or(Some(1)), ..page };
    page_of_decisions(&app, Some(id), &page).await
}

pub(super) async fn decisions(
    State(app): AppState,
    Asked(page): Asked<Page>,
) -> Result<Answer<DecisionPage>, ApiError> {
    page_of_decisions(&app, None, &page).await
}

async fn page_of_decisions(
    app: &Arc<App>,
    run: Option<RunId>,
    page: &Page,
) -> Result<Answer<DecisionPage>, ApiError> {
    let limit = page.limit()?;
    let filter = DecisionFilter { run, before: page.after()?, limit: limit + 1 };
    let read = app.with_engine(move |engine| {
        filter.run.as_ref().map(|run| check_exists(engine, run)).transpose()?;
        Ok::<_, EngineError>(engine.store().decisions(&filter)?)
    });
    let (found, next) = Page::cut(read.await?, limit, |decision| decision.cursor.to_string());
    Ok(DecisionPage { decisions: found.iter().filter_map(DecisionForm::new).collect(), next }
        .into())
}

pub(super) async fn journal(
    State(app): AppState,
    Named(id): Named,
    Asked(page): Asked<Page>,
) -> Result<Answer<EventPage>, ApiError> {
    let (after, limit) = (page.after()?.unwrap_or(0), page.limit()?);
    let read = app.with_engine(move |engine| {
        check_exists(engine, &id)?;
        Ok::<_, EngineError>(engine.store().events(&id, after, limit + 1)?)
    });
    let (events, next) = Page::cut(read.await?, limit, |event| event.seq.to_string());
    Ok(EventPage { events: events.iter().map(EventForm::new).collect(), next }.into())
}

/// Something that happened, as `aldis step` takes it.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NewEvent {
    /// What.
    event: String,
    /// The members that belong to it.
    #[serde(flatten)]
    members: Members,
}

pub(super) async fn step(
    State(app): AppState,
    Named(run): Named,
    Sent { body: NewEvent { event, mut members }, source }: Sent<NewEvent>,
) -> Result<Answer<Change>, ApiError> {
    members.insert("event".to_owned(), event.into());
    let input = RunInput { now: app.now(), run, machine: None, event: members, source };
    Ok(Change::from(app.runs.step(input).await?).into())
}

/// Nothing but an empty object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// A command that needs no further word.
pub(super) async fn command(
    command: HumanCommand,
    State(app): AppState,
    asker: Asker,
    Named(run): Named,
    Sent { body: Nothing {}, source }: Sent<Nothing>,
) -> Result<Answer<Change>, ApiError> {
    Ok(Change::from(app.runs.command(app.now(), run, command, (&asker.name, source)).await?).into())
}

/// The answer to a question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionAnswer {
    /// The question.
    id: String,
    /// The answer.
    text: String,
}

pub(super) async fn answer(
    State(app): AppState,
    asker: Asker,
    Named(run): Named,
    Sent { body: QuestionAnswer { id, text }, source }: Sent<QuestionAnswer>,
) -> Result<Answer<Change>, ApiError> {
    let command = HumanCommand::Answer { id, text };
    Ok(Change::from(app.runs.command(app.now(), run, command, (&asker.name, source)).await?).into())
}

/// A message to the agents of a run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunMessage {
    /// The message.
    text: String,
    /// Whom or what it is about: a task, a role, an agent.
    to: Option<String>,
}

pub(super) async fn tell(
    State(app): AppState,
    asker: Asker,
    Named(run): Named,
    Sent { body: RunMessage { text, to }, source }: Sent<RunMessage>,
) -> Result<Answer<Change>, ApiError> {
    let command = HumanCommand::Tell { text, to };
    Ok(Change::from(app.runs.command(app.now(), run, command, (&asker.name, source)).await?).into())
}

/// The questions of a page of active runs: a page may be empty and yet have a next one.
pub(super) async fn questions(
    State(app): AppState,
    asker: Asker,
    Asked(page): Asked<Page>,
) -> Result<Answer<QuestionPage>, ApiError> {
    let projects = asker.projects();
    let filter = RunFilter { active: Some(true), projects, ..RunFilter::default() };
    let page = Page { limit: page.limit.or(Some(Page::LIMIT_MAX)), ..page };
    let (runs, next) = page_of_snapshots(&app, filter, &page).await?;
    let asked = runs.iter().flat_map(|run| {
        run.questions().into_iter().map(|question| AskedQuestion::new(run.id(), question))
    });
    Ok(QuestionPage { questions: asked.collect(), next }.into())
}

pub(super) async fn read_output(
    State(app): AppState,
    Named(run): Named,
    Asked(query): Asked<OutputQuery>,
    headers: HeaderMap,
) -> Result<EventStream<OutputPiece<'static>>, ApiError> {
    let last = last_event(&headers)?;
    Ok(EventStream::new(output::open(&app, run, query, last).await?))
}

/// The id of the last event that a client of a stream has got.
fn last_event(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let last = headers.get("last-event-id").map(HeaderValue::to_str).transpose();
    last.map_err(|_| ApiError::bad("`Last-Event-ID` is not the id of an event"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Follow {
    /// Only of this run.
    run: Option<String>,
    /// Only of this channel.
    channel: Option<String>,
    /// Begin behind this event; with those to come where nothing is said.
    after: Option<String>,
}

pub(super) async fn follow(
    State(app): AppState,
    asker: Asker,
    Asked(query): Asked<Follow>,
    headers: HeaderMap,
) -> Result<EventStream<CloudEvent<'static>>, ApiError> {
    let run = query.run.or(query.channel).map(RunId::new).transpose();
    let run = run.map_err(|error| ApiError::not_found(error.to_string()))?;
    let followed = match (run, &asker.grant) {
        (Some(run), _) => {
            asker.check_run(&app, &run).await?;
            Followed::Run(run)
        }
        (None, Grant { run: Some(_), .. }) => {
            return Err(insufficient("this token is for one run: name it, as `?run=ID`"));
        }
        (None, Grant { project: Some(project), .. }) => Followed::project(project.clone()),
        (None, _) => Followed::All,
    };
    let last = last_event(&headers)?;
    let after: Option<Cursor> = last.or(query.after.as_deref()).map(cursor).transpose()?;
    Ok(EventStream::new(events::open(&app, followed, after).await?))
}
