//! What a host asked, and who in it was asking.

use serde_json::Value;

use super::http::HttpRequest;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The agent the user talks to. Its requests advance the script.
    Main,
    /// An agent it started.
    Subagent,
    /// The host itself: a title, a summary, a quota.
    Auxiliary,
    /// Not a question to the model.
    Probe,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Who asks.
    pub speaker: Speaker,
    /// The method, such as `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null if it is not JSON.
    pub body: Value,
}

impl Recorded {
    pub(super) fn new(request: HttpRequest) -> Self {
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let speaker = speaker(&request, &body);
        let HttpRequest { method, path, headers, .. } = request;
        Self { speaker, method, path, headers, body }
    }

    /// The path without its query.
    pub fn endpoint(&self) -> &str {
        endpoint(&self.path)
    }

    /// The texts the model was told since it last spoke: a prompt, the result of a tool, what a hook
    /// added.
    pub fn told(&self) -> Vec<String> {
        let spoke = self
            .input()
            .iter()
            .rposition(|item| item["role"] == "assistant" || item["type"] == "function_call");
        let since = spoke.map_or(0, |at| at + 1);
        self.input().iter().skip(since).flat_map(texts).collect()
    }

    /// Whether the model was told this, now or ever.
    pub fn knows(&self, text: &str) -> bool {
        self.input().iter().flat_map(texts).any(|told| told.contains(text))
    }

    /// Whether the model was told this since it last spoke.
    pub fn is_told(&self, text: &str) -> bool {
        self.told().iter().any(|told| told.contains(text))
    }

    fn input(&self) -> &[Value] {
        let input = self.body["messages"].as_array().or_else(|| self.body["input"].as_array());
        input.map_or(&[], Vec::as_slice)
    }
}

fn endpoint(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

fn speaker(request: &HttpRequest, body: &Value) -> Speaker {
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    match (request.method.as_str(), endpoint(&request.path)) {
        ("POST", "/v1/messages") => {
            let model = body["model"].as_str().unwrap_or_default();
            if request.header("x-claude-code-agent-id").is_some() {
                Speaker::Subagent
            } else if !has_tools || model.contains("haiku") {
                Speaker::Auxiliary
            } else {
                Speaker::Main
            }
        }
        ("POST", "/v1/responses") => {
            let metadata = request.header("x-codex-turn-metadata").unwrap_or_default();
            let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
            if request.header("x-codex-parent-thread-id").is_some() {
                Speaker::Subagent
            } else if !has_tools
                || metadata["request_kind"].as_str().is_some_and(|kind| kind != "turn")
            {
                Speaker::Auxiliary
            } else {
                Speaker::Main
            }
        }
        _ => Speaker::Probe,
    }
}

/// The texts of one message or item, also of the results of tools.
fn texts(item: &Value) -> Vec<String> {
    match item {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => ["content", "text", "output"]
            .iter()
            .filter_map(|key| members.get(*key))
            .flat_map(texts)
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
