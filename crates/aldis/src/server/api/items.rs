//! What the signed link of a notice opens: one thing that needs a person, to be seen and acted on
//! without a login. Looking changes nothing; what is done uses the link up.

use std::sync::Arc;

use aldis_machine::HumanCommand;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::describe::{Operation, RequestPart};
use super::forms::Answer;
use super::request::Sent;
use crate::server::app::{App, AppState};
use crate::server::dashboard;
use crate::server::error::ApiError;
use crate::server::tickets;
use crate::settings::item_link::{ItemLinks, ItemScope};
use crate::view::wire::card::{InboxAction, InboxItem};

/// The header with what stands behind `#` in the link.
const TOKEN: &str = "x-aldis-item";
/// Who commands by it, for the journal.
const BY: &str = "the link of a notice";

/// What a link says.
pub(super) struct LinkToken(String);

impl<S: Send + Sync> FromRequestParts<S> for LinkToken {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let token = parts.headers.get(TOKEN).and_then(|token| token.to_str().ok());
        Ok(Self(token.unwrap_or_default().to_owned()))
    }
}

impl RequestPart for LinkToken {
    fn describe(operation: &mut Operation<'_>) {
        operation.header(TOKEN, "what stands behind `#` in the link of a notice");
    }
}

/// One thing that needs a person.
#[derive(Serialize, JsonSchema)]
pub(super) struct ItemForm {
    /// The thing, as long as it needs somebody.
    item: Option<InboxItem>,
    /// What there is to say.
    said: String,
}

impl LinkToken {
    /// Returns what the link opens, unless it is not ours, its time is over, or it was used.
    async fn scope(&self, app: &App, now: Timestamp) -> Result<ItemScope, ApiError> {
        let gone = |message: &str| ApiError::new(StatusCode::GONE, "link_gone", message);
        let links = ItemLinks::read(&app.state_dir);
        let scope = links.and_then(|links| links.check(&self.0, now));
        let scope = scope.ok_or_else(|| gone("this link is not valid, or not any more"))?;
        let link = self.0.clone();
        if app.with_engine(move |engine| tickets::USED.has(engine.store(), &link)).await? {
            return Err(gone("this link was used already"));
        }
        Ok(scope)
    }
}

/// Finds the thing among those of its run that need a person now.
async fn find(
    app: &Arc<App>,
    scope: ItemScope,
    now: Timestamp,
) -> Result<(RunId, Option<InboxItem>), ApiError> {
    let id = RunId::new(&*scope.run).map_err(|error| ApiError::not_found(error.to_string()))?;
    let run = id.clone();
    let read = app.with_engine(move |engine| engine.snapshot(&run)).await?;
    let items = read.map(|snapshot| dashboard::needs(&snapshot, now)).unwrap_or_default();
    let is_meant = |item: &InboxItem| {
        let same_time = item.at == scope.at || scope.need != "question";
        json!(item.need) == json!(scope.need)
            && same_time
            && (scope.task.is_none() || item.task == scope.task)
    };
    Ok((id, items.into_iter().find(is_meant)))
}

pub(super) async fn show(
    State(app): AppState,
    link: LinkToken,
) -> Result<Answer<ItemForm>, ApiError> {
    let now = app.now();
    let (_, item) = find(&app, link.scope(&app, now).await?, now).await?;
    let said = match &item {
        Some(item) => item.title.clone(),
        None => "This does not need anybody any more.".to_owned(),
    };
    Ok(ItemForm { item, said }.into())
}

/// What to do about it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemAction {
    /// One of its actions: `answer`, `resume`, `pause` or `abort`.
    action: String,
    /// The answer.
    text: Option<String>,
}

impl ItemAction {
    /// Returns what is meant, if the thing offers it.
    fn command(self, item: &InboxItem) -> Result<HumanCommand, ApiError> {
        let offered = |wanted: &InboxAction| item.actions.contains(wanted);
        let command = match (&*self.action, self.text) {
            ("answer", Some(text)) if !text.trim().is_empty() => {
                let asked = item.actions.iter().find_map(|action| match action {
                    InboxAction::Answer { question } => Some(question.clone()),
                    _ => None,
                });
                asked.map(|id| HumanCommand::Answer { id, text })
            }
            ("resume", _) if offered(&InboxAction::Resume) => Some(HumanCommand::Resume),
            ("pause", _) if offered(&InboxAction::Pause) => Some(HumanCommand::Pause),
            ("abort", _) if offered(&InboxAction::Abort) => Some(HumanCommand::Abort),
            _ => None,
        };
        command.ok_or_else(|| ApiError::bad("this link does not offer that"))
    }
}

pub(super) async fn act(
    State(app): AppState,
    link: LinkToken,
    Sent { body, .. }: Sent<ItemAction>,
) -> Result<Answer<ItemForm>, ApiError> {
    let now = app.now();
    let scope = link.scope(&app, now).await?;
    let until = scope.until;
    let (run, item) = find(&app, scope, now).await?;
    let over = "this does not need anybody any more";
    let item = item.ok_or_else(|| ApiError::new(StatusCode::CONFLICT, "conflict", over))?;
    let command = body.command(&item)?;
    let used = link.0.clone();
    let first = app.with_engine(move |engine| tickets::USED.put(engine.store(), &used, until, now));
    if !first.await? {
        return Err(ApiError::new(StatusCode::GONE, "link_gone", "this link was used already"));
    }
    let answered = matches!(command, HumanCommand::Answer { .. });
    match app.runs.command(now, run, command, (BY, None)).await {
        Ok(taken) => {
            let done = if answered { "Answer sent" } else { "Done" };
            let warnings = taken.warnings.iter().map(|warning| format!(" {warning}"));
            let said = format!("{done}: {}.{}", item.title, warnings.collect::<String>());
            Ok(ItemForm { item: None, said }.into())
        }
        Err(error) => {
            // Nothing came of it, so it can be tried again.
            app.with_engine(move |engine| tickets::USED.take(engine.store(), &link.0, now)).await?;
            Err(error)
        }
    }
}
