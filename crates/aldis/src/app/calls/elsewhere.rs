//! Reports for a run that a server elsewhere keeps: what is sent of them, and what its own are.

use aldis_machine::calls::Call;
use aldis_signal::signal::Via;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::caller::Caller;
use crate::settings::tokens::Grant;

/// Where reports are sent, and where questions about the run are.
pub(crate) const CALLS: &str = "/v1/calls";
pub(crate) const READ: &str = "/v1/calls/read";

/// Who calls, as its own machine knows it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallerForm {
    /// Where it works.
    directory: String,
    /// Whether the host called a tool; else a command of the agent did.
    by_tool: bool,
    /// The host's session.
    #[serde(default)]
    session: Option<String>,
    /// Whether the host passes the environment on to tools.
    #[serde(default)]
    inherits: bool,
    /// The host's id of the call.
    #[serde(default)]
    call_id: Option<String>,
    /// Whether a sub-agent calls.
    #[serde(default)]
    subagent: bool,
    /// The run that the agent was started for.
    #[serde(default)]
    run: Option<String>,
    /// The agent: its number there, or its name in a channel.
    #[serde(default)]
    agent: Option<String>,
}

/// A report.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallForm {
    /// Makes a second delivery recognisable.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// Who calls.
    pub(crate) caller: CallerForm,
    /// What: `tool`, and its arguments.
    pub(crate) call: Map<String, Value>,
    /// Whether it waited until the server could be reached.
    #[serde(default)]
    #[expect(dead_code, reason = "every delivery of what waited says so")]
    late: bool,
}

/// A question about the caller's run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadForm {
    /// Who asks.
    pub(crate) caller: CallerForm,
    /// `status`, `resource` or `prompt`.
    pub(crate) what: String,
    /// Which resource or prompt.
    #[serde(default)]
    pub(crate) name: String,
}

impl CallerForm {
    /// Returns what a server is told of a caller of this machine.
    pub(crate) fn of(caller: &Caller) -> Self {
        let number = caller.agent.map(|number| number.to_string());
        Self {
            directory: caller.directory.to_string_lossy().into_owned(),
            by_tool: caller.via == Via::Call,
            session: caller.session.clone(),
            inherits: caller.inherits,
            call_id: caller.call_id.clone(),
            subagent: caller.subagent,
            run: caller.run.clone(),
            agent: caller.name.clone().or(number),
        }
    }

    /// Returns the caller, who is nobody else than its token says.
    pub(crate) fn caller(self, grant: Grant) -> Caller {
        let via = if self.by_tool { Via::Call } else { Via::Receipt };
        let agent = grant.agent.clone().or(self.agent);
        let directory = grant.project.clone().unwrap_or(self.directory);
        Caller {
            session: self.session,
            inherits: self.inherits,
            call_id: self.call_id,
            subagent: self.subagent,
            run: grant.run.clone().or(self.run),
            agent: agent.as_deref().and_then(|agent| agent.parse().ok()),
            name: agent,
            ..Caller::at(directory.into(), via)
        }
        .within(grant)
    }
}

/// Returns the request with a report.
pub(crate) fn call(id: Option<&str>, caller: &Caller, call: &Call) -> Value {
    json!({ "id": id, "caller": CallerForm::of(caller), "call": call })
}

/// Returns the request with a question.
pub(crate) fn read(caller: &Caller, what: &str, name: &str) -> Value {
    json!({ "caller": CallerForm::of(caller), "what": what, "name": name })
}
