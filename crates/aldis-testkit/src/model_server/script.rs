//! What the model will say, in order.

/// One answer of the model: text, a tool call, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What it says.
    pub text: String,
    /// The shell command it runs, with whatever tool the host offers for that.
    pub command: Option<String>,
}

impl Reply {
    /// A final answer: the host's turn ends with it.
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: text.into(), command: None }
    }

    /// A tool call: the host runs the command and asks again.
    pub fn runs(command: impl Into<String>) -> Self {
        Self { text: String::new(), command: Some(command.into()) }
    }
}

/// The replies, in the order of the main agent's requests. The last one is repeated for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    replies: Vec<Reply>,
    next: usize,
}

impl Script {
    /// Creates a script. One without replies says nothing.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: replies.into_iter().collect(), next: 0 }
    }

    /// The reply to the next request.
    pub(super) fn next_reply(&mut self) -> Reply {
        let last = self.replies.len().saturating_sub(1);
        let reply = self.replies.get(self.next.min(last)).cloned();
        self.next = self.next.saturating_add(1);
        reply.unwrap_or_default()
    }
}
