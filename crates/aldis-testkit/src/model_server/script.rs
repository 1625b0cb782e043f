//! What the model will say, in order.

use serde_json::{Value, json};

/// One answer of the model: text, a tool call, or both; or an error of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedReply {
    /// What it says.
    pub text: String,
    /// The tool it calls; then the host asks again.
    pub call: Option<ScriptedCall>,
    /// The error in its place.
    pub error: Option<ServiceError>,
}

/// What a service answers when it does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// The status of HTTP.
    pub status: u16,
    /// The body.
    pub body: Value,
}

/// What a tool is called for. Which tool that is, and how, the host says in its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptedCall {
    /// Run this shell command.
    Command(String),
    /// Start an agent with this prompt.
    Delegate(String),
    /// Call a tool of the MCP server `aldis`.
    Aldis {
        /// Which.
        tool: String,
        /// With what.
        arguments: Value,
    },
    /// Write a file.
    Write {
        /// Its absolute path.
        path: String,
        /// What is to be in it.
        content: String,
    },
}

impl ScriptedReply {
    /// A final answer: the host's turn ends with it.
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A tool call: the host runs the command and asks again.
    pub fn runs(command: impl Into<String>) -> Self {
        Self { call: Some(ScriptedCall::Command(command.into())), ..Self::default() }
    }

    /// A tool call that writes a file.
    pub fn writes(path: impl Into<String>, content: impl Into<String>) -> Self {
        let call = ScriptedCall::Write { path: path.into(), content: content.into() };
        Self { call: Some(call), ..Self::default() }
    }

    /// An error of the service, in the form of both protocols: 429 with `rate_limit_error` is a limit.
    pub fn fails(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self { error: Some(ServiceError { status, body }), ..Self::default() }
    }

    /// A usage limit of Codex, which is over at this time, in seconds since 1970.
    pub fn usage_limit(resets_at: u64) -> Self {
        let error = json!({
            "type": "usage_limit_reached", "message": "limit", "plan_type": "pro",
            "resets_at": resets_at,
        });
        Self {
            error: Some(ServiceError { status: 429, body: json!({"error": error}) }),
            ..Self::default()
        }
    }

    /// A call of a tool of the MCP server `aldis`.
    pub fn calls(tool: impl Into<String>, arguments: Value) -> Self {
        let call = ScriptedCall::Aldis { tool: tool.into(), arguments };
        Self { call: Some(call), ..Self::default() }
    }

    /// A tool call that starts another agent, which answers with [`Script::with_subagent`].
    pub fn delegates(prompt: impl Into<String>) -> Self {
        Self { call: Some(ScriptedCall::Delegate(prompt.into())), ..Self::default() }
    }
}

/// The replies, in the order of the main agent's requests. The last one is repeated for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    replies: Vec<ScriptedReply>,
    next: usize,
    subagent: Vec<ScriptedReply>,
    next_of_subagent: usize,
}

impl Script {
    /// Creates a script. One without replies says nothing.
    pub fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self { replies: replies.into_iter().collect(), ..Self::default() }
    }

    /// Says what every agent answers that the main one starts.
    #[must_use]
    pub fn with_subagent(self, text: impl Into<String>) -> Self {
        self.with_subagent_replies([ScriptedReply::says(text)])
    }

    /// Says what the agents that the main one starts answer, in the order of their requests. The last
    /// reply is repeated for ever.
    #[must_use]
    pub fn with_subagent_replies(
        mut self,
        replies: impl IntoIterator<Item = ScriptedReply>,
    ) -> Self {
        self.subagent = replies.into_iter().collect();
        self
    }

    /// The reply to a request of an agent that the main one started.
    pub(super) fn subagent_reply(&mut self) -> ScriptedReply {
        following(&self.subagent, &mut self.next_of_subagent)
    }

    /// The reply to the next request.
    pub(super) fn next_reply(&mut self) -> ScriptedReply {
        following(&self.replies, &mut self.next)
    }
}

fn following(replies: &[ScriptedReply], next: &mut usize) -> ScriptedReply {
    let last = replies.len().saturating_sub(1);
    let reply = replies.get((*next).min(last)).cloned();
    *next = next.saturating_add(1);
    reply.unwrap_or_default()
}
