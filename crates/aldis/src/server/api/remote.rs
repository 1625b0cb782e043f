//! What machines send that keep no runs themselves: calls of hooks, and reports of agents.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, Members};
use aldis_machine::calls::Call;
use aldis_signal::time::Timestamp;
use aldis_store::{Store, StoreError, Ticket};
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::forms::Answer as Versioned;
use super::request::Sent;
use crate::app::calls;
use crate::app::calls::elsewhere::{CallForm, ReadForm};
use crate::hosts::hook::Hook;
use crate::hosts::hook::shipped::{HookForm, HookReply};
use crate::hosts::{Answer, answer, parse};
use crate::mcp;
use crate::server::access::Asker;
use crate::server::app::AppState;
use crate::server::error::ApiError;
use crate::settings::clock::Stopwatch;
use crate::settings::tokens::{Grant, hash};
use crate::view::wire::call::{CallReply, TokenLine};

/// The kind of the tickets by which a second delivery is recognised, and how long they hold: longer than
/// anything waits.
const KIND: &str = "delivered";
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The longest id.
const ID_MAX: usize = 200;

pub(super) async fn hook(
    State(app): AppState,
    asker: Asker,
    Sent { body, .. }: Sent<HookForm>,
) -> Result<Versioned<HookReply>, ApiError> {
    let (now, state) = (app.now(), app.state_dir.clone());
    let handled =
        app.with_engine(move |engine| handle(engine, now, state, (asker.grant, &body))).await;
    app.commits.notify_all();
    Ok(handled?.into())
}

fn handle(
    engine: &Engine,
    now: Timestamp,
    state_dir: PathBuf,
    (grant, form): (Grant, &HookForm),
) -> Result<HookReply, ApiError> {
    let host = form.host().ok_or_else(|| ApiError::bad("`host` is no host with hooks"))?;
    let env = form.env();
    let call = parse(host, form.payload.as_bytes(), &env)
        .map_err(|error| ApiError::bad(format!("{}: {error}", error.code())))?;
    let said = |reply: &Answer| {
        let bytes = answer(call.answer_host(), &call.event, reply);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut reply = HookReply { output: said(&Answer::Allow), run: None, repeated: false };
    if was_delivered(engine.store(), &form.id)? {
        return Ok(HookReply { repeated: true, ..reply });
    }
    let (place, elsewhere) = (form.place(&grant), Some(form.elsewhere(grant)));
    let began = Stopwatch::start();
    let hook = Hook { call: &call, env: &env, place, now, began, state_dir, elsewhere };
    let run = hook.handle_elsewhere(engine, &mut |answer| reply.output = said(answer));
    let run = run.map_err(|error| ApiError::internal(error.to_string()))?;
    note_delivered(engine.store(), &form.id, now)?;
    Ok(HookReply { run: run.map(|run| run.to_string()), ..reply })
}

/// Whether what has this id was taken before.
fn was_delivered(store: &dyn Store, id: &str) -> Result<bool, ApiError> {
    if id.is_empty() || id.len() > ID_MAX {
        return Err(ApiError::bad(format!("`id` must have 1 to {ID_MAX} bytes")));
    }
    Ok(store.ticket(KIND, &hash(id))?.is_some())
}

fn note_delivered(store: &dyn Store, id: &str, created: Timestamp) -> Result<(), StoreError> {
    let (kind, key, body) = (KIND.to_owned(), hash(id), String::new());
    store.put_ticket(&Ticket { kind, key, created, until: created.after(KEPT), body }).map(drop)
}

pub(super) async fn call(
    State(app): AppState,
    asker: Asker,
    Sent { body: CallForm { id, caller, call, .. }, .. }: Sent<CallForm>,
) -> Result<Json<CallReply>, ApiError> {
    let call: Call = serde_json::from_value(Value::Object(call))
        .map_err(|error| ApiError::bad(format!("`call`: {error}")))?;
    let (now, caller) = (app.now(), caller.caller(asker.grant));
    let called = app.with_engine(move |engine| {
        let store = engine.store();
        if let Some(id) = &id
            && was_delivered(store, id)?
        {
            return Ok(CallReply::recorded(caller.run.as_deref(), id.clone()));
        }
        let reply = calls::call(engine, now, &caller, call);
        if let Some(id) = &id {
            note_delivered(store, id, now)?;
        }
        Ok::<_, ApiError>(reply)
    });
    let reply = called.await?;
    app.commits.notify_all();
    Ok(Json(reply))
}

/// What was asked.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReadReply {
    /// In the form of the tool, resource or prompt.
    result: Members,
}

pub(super) async fn read(
    State(app): AppState,
    asker: Asker,
    Sent { body: ReadForm { caller, what, name }, .. }: Sent<ReadForm>,
) -> Result<Versioned<ReadReply>, ApiError> {
    let caller = caller.caller(asker.grant);
    let read = app.with_engine(move |engine| {
        let found = mcp::read(engine, &caller, &what, &name);
        found.map_err(ApiError::not_found)
    });
    match read.await? {
        Value::Object(result) => Ok(ReadReply { result }.into()),
        _ => Err(ApiError::internal("the answer has no members")),
    }
}

/// A token that a platform signed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IdentityToken {
    /// The token, as the platform gives it out.
    token: String,
}

pub(super) async fn exchange(
    State(app): AppState,
    Sent { body: IdentityToken { token }, .. }: Sent<IdentityToken>,
) -> Result<Json<TokenLine>, ApiError> {
    let (now, issuers) = (app.now(), Arc::clone(&app.access.issuers));
    let made = app.with_engine(move |engine| issuers.exchange(engine.store(), &token, now));
    let (secret, token) = made.await?;
    Ok(Json(TokenLine { token: Some(secret), ..token.line(now) }))
}
