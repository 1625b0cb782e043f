//! What the dashboard reads, and what is dismissed there.

use std::sync::Arc;

use aldis_engine::EngineError;
use aldis_store::RunId;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::describe::TextAnswer;
use super::forms::Answer;
use super::request::{Asked, Named, Page, Sent, cursor};
use crate::app::{dismissed, report};
use crate::server::access::Asker;
use crate::server::app::AppState;
use crate::server::dashboard::{Overview, RunDetails, RunSelection};
use crate::server::error::ApiError;
use crate::server::fleet::Fleet;
use crate::view::page;
use crate::view::report::outline;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverviewQuery {
    /// Only of this project: its directory.
    project: Option<String>,
    /// Only those whose agents run in this.
    host: Option<String>,
    /// Only of this machine.
    machine: Option<String>,
    /// Only those that are so: `needs_you`, `running`, `done` or `failed`.
    state: Option<String>,
    /// Only those with these words in their title, id or project.
    q: Option<String>,
    /// Where the page of those that ended begins: `next` of the page before.
    after: Option<String>,
    /// How many of each at most: 1 to 1000 (default: 100).
    limit: Option<usize>,
}

pub(super) async fn overview(
    State(app): AppState,
    asker: Asker,
    Asked(query): Asked<OverviewQuery>,
) -> Result<Answer<Overview>, ApiError> {
    let OverviewQuery { project, host, machine, state, q, after, limit } = query;
    let wanted = RunSelection {
        only: asker.projects(),
        project,
        host,
        machine,
        state,
        words: q.filter(|words| !words.trim().is_empty()),
        after: after.as_deref().map(cursor).transpose()?,
        limit: Page { after: None, limit }.limit()?,
    };
    let (dashboard, now) = (Arc::clone(&app.dashboard), app.now());
    let read = app.with_engine(move |engine| dashboard.overview(engine, now, &wanted));
    Ok(read.await?.into())
}

pub(super) async fn details(
    State(app): AppState,
    Named(id): Named,
) -> Result<Answer<RunDetails>, ApiError> {
    let (dashboard, now, dir) = (Arc::clone(&app.dashboard), app.now(), app.state_dir.clone());
    let read = app.with_engine(move |engine| {
        let found = dashboard.details(engine, &dir, &id, now)?;
        found.ok_or(EngineError::NoSuchRun(id))
    });
    Ok(read.await?.into())
}

pub(super) async fn fleet(State(app): AppState) -> Result<Answer<Fleet>, ApiError> {
    let (dashboard, now) = (Arc::clone(&app.dashboard), app.now());
    let read = app.with_engine(move |engine| dashboard.fleet(engine, now));
    Ok(read.await?.into())
}

/// In which form.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReportAs {
    #[default]
    Html,
    Markdown,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportQuery {
    /// `html` (the default) or `markdown`.
    #[serde(default)]
    form: ReportAs,
}

pub(super) async fn reported(
    State(app): AppState,
    Named(id): Named,
    Asked(ReportQuery { form }): Asked<ReportQuery>,
) -> Result<TextAnswer<String>, ApiError> {
    let (now, dir) = (app.now(), app.state_dir.clone());
    let read = app.with_engine(move |engine| {
        report::report(engine, &dir, &id, now)?.ok_or(EngineError::NoSuchRun(id))
    });
    let (told, timeline) = read.await?;
    let blocks = outline(&told, &timeline);
    Ok(match form {
        // Not as a page: what it says would have the origin of the dashboard.
        ReportAs::Html => TextAnswer("text/plain; charset=utf-8", page::html(&told.title, blocks)),
        ReportAs::Markdown => TextAnswer("text/markdown; charset=utf-8", page::markdown(blocks)),
    })
}

/// Something that needs a person.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InboxName {
    /// Its name among those of its run.
    id: String,
    /// Since when it needs somebody, as the overview says it.
    at: String,
}

/// That it is done.
#[derive(Serialize, JsonSchema)]
pub(super) struct Dismissed {
    /// Always true.
    dismissed: bool,
}

pub(super) async fn dismiss(
    State(app): AppState,
    Named(id): Named,
    Sent { body: InboxName { id: name, at }, .. }: Sent<InboxName>,
) -> Result<Answer<Dismissed>, ApiError> {
    let at: aldis_signal::time::Timestamp =
        at.parse().map_err(|_| ApiError::bad("`at` is no time"))?;
    let now = app.now();
    let write = app.with_engine(move |engine| {
        let run: Option<RunId> = engine.store().run(&id)?.map(|run| run.id);
        let run = run.ok_or_else(|| ApiError::from(EngineError::NoSuchRun(id)))?;
        dismissed::dismiss(engine.store(), now, &run, (&name, at.as_millis()))
            .map_err(ApiError::from)
    });
    write.await?;
    Ok(Dismissed { dismissed: true }.into())
}
