//! What the model will say, in order.

use serde_json::Value;

/// One answer of the model: text, a tool call, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What it says.
    pub text: String,
    /// The tool it calls; then the host asks again.
    pub call: Option<Call>,
}

/// What a tool is called for. Which tool that is, and how, the host says in its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
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

impl Reply {
    /// A final answer: the host's turn ends with it.
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: text.into(), call: None }
    }

    /// A tool call: the host runs the command and asks again.
    pub fn runs(command: impl Into<String>) -> Self {
        Self { text: String::new(), call: Some(Call::Command(command.into())) }
    }

    /// A tool call that writes a file.
    pub fn writes(path: impl Into<String>, content: impl Into<String>) -> Self {
        let call = Call::Write { path: path.into(), content: content.into() };
        Self { text: String::new(), call: Some(call) }
    }

    /// A call of a tool of the MCP server `aldis`.
    pub fn calls(tool: impl Into<String>, arguments: Value) -> Self {
        let call = Call::Aldis { tool: tool.into(), arguments };
        Self { text: String::new(), call: Some(call) }
    }

    /// A tool call that starts another agent, which answers with [`Script::with_subagent`].
    pub fn delegates(prompt: impl Into<String>) -> Self {
        Self { text: String::new(), call: Some(Call::Delegate(prompt.into())) }
    }
}

/// The replies, in the order of the main agent's requests. The last one is repeated for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    replies: Vec<Reply>,
    next: usize,
    subagent: Vec<Reply>,
    next_of_subagent: usize,
}

impl Script {
    /// Creates a script. One without replies says nothing.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: replies.into_iter().collect(), ..Self::default() }
    }

    /// Says what every agent answers that the main one starts.
    #[must_use]
    pub fn with_subagent(self, text: impl Into<String>) -> Self {
        self.with_subagent_replies([Reply::says(text)])
    }

    /// Says what the agents that the main one starts answer, in the order of their requests. The last
    /// reply is repeated for ever.
    #[must_use]
    pub fn with_subagent_replies(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.subagent = replies.into_iter().collect();
        self
    }

    /// The reply to a request of an agent that the main one started.
    pub(super) fn subagent_reply(&mut self) -> Reply {
        following(&self.subagent, &mut self.next_of_subagent)
    }

    /// The reply to the next request.
    pub(super) fn next_reply(&mut self) -> Reply {
        following(&self.replies, &mut self.next)
    }
}

fn following(replies: &[Reply], next: &mut usize) -> Reply {
    let last = replies.len().saturating_sub(1);
    let reply = replies.get((*next).min(last)).cloned();
    *next = next.saturating_add(1);
    reply.unwrap_or_default()
}
