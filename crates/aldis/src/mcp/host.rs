//! Who calls, by what its host tells: variables of the server's process, members of the request.

use std::path::PathBuf;
use std::sync::Arc;

use aldis_signal::signal::Via;
use rmcp::model::{Extensions, RequestMetaObject};
use serde_json::Value;

use crate::app::calls::caller::Caller;
use crate::error::CommandError;
use crate::hosts::{ALL, Env, calls};
use crate::settings::project;
use crate::settings::tokens::Grant;

/// What is known of every caller of a server.
#[derive(Clone, Debug)]
pub(crate) enum CallerSource {
    /// One host started the server: its variables are the caller's.
    Process(Arc<Caller>),
    /// Anybody with a token: each request says more.
    Http,
}

impl CallerSource {
    /// The host that started this process.
    pub(crate) fn of_process() -> Result<Self, CommandError> {
        let env = Env::of_process();
        let named = ALL.iter().flat_map(|host| host.spec().project_variables);
        let named = named.into_iter().find_map(|name| env.path(name));
        let directory = named.map_or_else(project::current, Ok)?;
        Ok(Self::Process(Arc::new(of_variables(directory, &env, Via::Call))))
    }

    /// Returns who makes a request.
    pub(super) fn caller(&self, meta: &RequestMetaObject, extensions: &Extensions) -> Caller {
        let mut caller = match self {
            Self::Process(caller) => (**caller).clone(),
            Self::Http => of_request(extensions),
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        for members in ALL.iter().map(|host| host.spec().calls) {
            caller.call_id = caller.call_id.or_else(|| meta.get(members.id).and_then(text));
            let Some(turn) = meta.get(members.turn) else { continue };
            let session = turn.get("thread_id").or_else(|| turn.get("session_id"));
            caller.session = session.and_then(text).or(caller.session);
            let source = turn.get("thread_source").map(Value::to_string).unwrap_or_default();
            caller.subagent = source.replace(['_', '-'], "").to_lowercase().contains("subagent");
        }
        caller
    }
}

/// Returns who a process is, by its variables.
pub(crate) fn of_variables(directory: PathBuf, env: &Env, via: Via) -> Caller {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (session, agent) = (env.session().map(str::to_owned), variable(calls::AGENT));
    let run = variable(calls::RUN);
    // Whoever knows neither run nor session may be anybody who works in this directory.
    let via = match via {
        Via::Receipt if run.is_none() && session.is_none() => Via::Said,
        via => via,
    };
    Caller {
        inherits: session.is_some(),
        session,
        run,
        agent: agent.as_deref().and_then(|agent| agent.parse().ok()),
        name: agent,
        ..Caller::at(directory, via)
    }
}

/// Whoever asks over HTTP is who its token says.
fn of_request(extensions: &Extensions) -> Caller {
    let parts = extensions.get::<axum::http::request::Parts>();
    let grant = parts.and_then(|parts| parts.extensions.get::<Grant>().cloned());
    // Nothing reaches this without one.
    let grant = grant.unwrap_or(Grant { run: Some(String::new()), ..Grant::ADMIN });
    let project = grant.project.as_deref().unwrap_or("/");
    Caller {
        run: grant.run.clone(),
        agent: grant.agent.as_deref().and_then(|agent| agent.parse().ok()),
        name: grant.agent.clone(),
        ..Caller::at(project.into(), Via::Receipt)
    }
    .within(grant)
}
