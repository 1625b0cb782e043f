//! Which tool does what, in the words of the request that offers it.

use serde_json::{Value, json};

use super::script::ScriptedCall;

/// A tool and what it is called with.
#[derive(Debug, PartialEq)]
pub(super) struct ToolCall {
    /// The group of tools it is in, where there are groups.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) input: Value,
}

/// Finds the tool for a call. The names differ between hosts and versions, the schema says which it
/// is. Nothing if the request offers none: then the reply is only its text.
pub(super) fn find(body: &Value, call: &ScriptedCall) -> Option<ToolCall> {
    if let ScriptedCall::Aldis { tool, arguments } = call {
        return of_aldis(body, tool, arguments);
    }
    let names = match call {
        ScriptedCall::Command(_) => SHELL_TOOLS,
        ScriptedCall::Delegate(_) => AGENT_TOOLS,
        ScriptedCall::Write { .. } => WRITE_TOOLS,
        ScriptedCall::Aldis { .. } => &[],
    };
    let offered = offered(body);
    let (namespace, tool) =
        names.iter().find_map(|name| offered.iter().find(|(_, tool)| tool["name"] == *name))?;
    let schema = if tool["input_schema"].is_object() { "input_schema" } else { "parameters" };
    let properties = &tool[schema]["properties"];
    Some(ToolCall {
        namespace: namespace.map(str::to_owned),
        name: tool["name"].as_str()?.to_owned(),
        input: input(properties, call),
    })
}

/// The tool of the MCP server `aldis`, however the host spells its name.
fn of_aldis(body: &Value, tool: &str, arguments: &Value) -> Option<ToolCall> {
    let (namespace, found) = offered(body).into_iter().find(|(namespace, offered)| {
        let name = offered["name"].as_str().unwrap_or_default();
        let server = namespace.unwrap_or(name);
        server.contains("aldis") && (name == tool || name.ends_with(&format!("__{tool}")))
    })?;
    Some(ToolCall {
        namespace: namespace.map(str::to_owned),
        name: found["name"].as_str()?.to_owned(),
        input: arguments.clone(),
    })
}

/// The tools of a request, those in groups too.
fn offered(body: &Value) -> Vec<(Option<&str>, &Value)> {
    let mut offered = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        if tool["type"] == "namespace" {
            let members = tool["tools"].as_array().into_iter().flatten();
            offered.extend(members.map(|member| (tool["name"].as_str(), member)));
        } else {
            offered.push((None, tool));
        }
    }
    offered
}

fn input(properties: &Value, call: &ScriptedCall) -> Value {
    match call {
        ScriptedCall::Command(command) if properties["cmd"].is_object() => json!({"cmd": command}),
        ScriptedCall::Command(command) if properties["command"]["type"] == "array" => {
            json!({"command": ["sh", "-c", command]})
        }
        ScriptedCall::Command(command) if properties["description"].is_object() => {
            json!({"command": command, "description": "Run a scripted command"})
        }
        ScriptedCall::Command(command) => json!({"command": command}),
        ScriptedCall::Delegate(prompt) if properties["message"].is_object() => {
            json!({"message": prompt})
        }
        ScriptedCall::Delegate(prompt) => json!({
            "description": "Scripted work",
            "prompt": prompt,
            "subagent_type": "general-purpose",
        }),
        ScriptedCall::Aldis { arguments, .. } => arguments.clone(),
        ScriptedCall::Write { path, content } => json!({"file_path": path, "content": content}),
    }
}

const SHELL_TOOLS: &[&str] = &["Bash", "exec_command", "shell_command", "shell"];
const AGENT_TOOLS: &[&str] = &["Agent", "Task", "spawn_agent"];
const WRITE_TOOLS: &[&str] = &["Write"];
