//! What one line of a transcript file is, seen alone.
//!
//! A [`Reader`](super::Reader) needs a file from its start. Whoever reads one from its end needs to
//! know of each line by itself whether a turn begins there, and of the last lines whether the agent
//! has answered, used a tool or asked something.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Format;
use super::json::{self, Malformed, Str, lenient, parse_shape, time};
use super::lines::trim;
use aldis_signal::time::Timestamp;

/// One line, as far as it concerns the main agent of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Glance {
    /// When the host wrote it.
    pub at: Option<Timestamp>,
    /// What happens in it, in order.
    pub marks: Vec<Mark>,
}

/// One thing that happens in a line. Exhaustive: whoever folds over these must judge each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The agent calls a tool.
    Call {
        /// The host's id for the call, if it has one.
        id: String,
        /// The tool.
        name: String,
    },
    /// Something else than a prompt is said to the agent: hook feedback, a notice, a summary.
    Heard,
    /// A human says something: a turn begins.
    Prompt,
    /// A call is answered.
    Result {
        /// The id of the call.
        id: String,
    },
    /// The agent says something.
    Speech,
}

/// Looks at one line of a transcript file. Lines of sub-agents and of sessions other than `session`
/// have no marks, nor have lines that make no sense or formats that are no files.
pub fn glance(format: Format, line: &[u8], session: Option<&str>) -> Glance {
    let line = trim(line);
    if line.is_empty() {
        return Glance::default();
    }
    if let Ok(found) = look(format, line, session) {
        return found;
    }
    match String::from_utf8_lossy(line) {
        std::borrow::Cow::Owned(mended) => look(format, mended.as_bytes(), session),
        std::borrow::Cow::Borrowed(_) => Err(Malformed),
    }
    .unwrap_or_default()
}

/// The members of all formats: those that a host does not have are missing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default)]
    role: Str<'a>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_id: Option<&'a RawValue>,
    #[serde(borrow)]
    team_name: Option<&'a RawValue>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
    is_aborted_mid_stream: Option<bool>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    api_error_status: Option<&'a RawValue>,
    #[serde(borrow)]
    origin: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// What is inside an envelope.
#[derive(Debug, Default, Deserialize)]
struct Inner<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default)]
    role: Str<'a>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    phase: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    call_id: Str<'a>,
    #[serde(borrow, default, rename = "toolCallId")]
    tool_call_id: Str<'a>,
    #[serde(borrow, default, rename = "toolName")]
    tool_name: Str<'a>,
    #[serde(borrow, rename = "toolRequests")]
    tool_requests: Option<&'a RawValue>,
    #[serde(borrow, rename = "parentToolCallId")]
    parent_tool_call_id: Option<&'a RawValue>,
}

/// A content block, a call in a list of calls, or the origin of a prompt.
#[derive(Debug, Default, Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    kind: Option<Str<'a>>,
    #[serde(borrow, default, rename = "type")]
    of: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow, default)]
    id: Str<'a>,
    #[serde(borrow, default, rename = "toolCallId")]
    tool_call_id: Str<'a>,
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    tool_use_id: Str<'a>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    /// Gemini's family has parts without a type.
    #[serde(borrow, rename = "functionCall")]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, rename = "functionResponse")]
    function_response: Option<&'a RawValue>,
    thought: Option<bool>,
}

fn look(format: Format, line: &[u8], session: Option<&str>) -> Result<Glance, Malformed> {
    let line: Envelope<'_> = parse_shape(line)?;
    let marks = match format {
        Format::ClaudeCode => of_claude_code(&line, session)?,
        Format::CodexRollout => of_codex(&line)?,
        Format::Copilot => of_copilot(&line)?,
        Format::CursorTranscript => of_message(&line.role, line.message)?,
        Format::Droid if &*line.kind == "message" => {
            let inner = inner(line.message)?;
            of_message(&inner.role, line.message)?
        }
        Format::GeminiSession => of_gemini(&line),
        _ => Vec::new(),
    };
    Ok(Glance { at: line.timestamp.and_then(time), marks })
}

fn of_claude_code(line: &Envelope<'_>, session: Option<&str>) -> Result<Vec<Mark>, Malformed> {
    let own = line.session_id.and_then(|raw| serde_json::from_str::<Str<'_>>(raw.get()).ok());
    let foreign = own.zip(session).is_some_and(|(own, session)| &*own != session);
    if foreign || line.is_sidechain == Some(true) || line.team_name.is_some() {
        return Ok(Vec::new());
    }
    let inner = match line.message {
        Some(_) => inner(line.message)?,
        None => return Ok(Vec::new()),
    };
    let flags = [line.is_api_error_message, line.is_aborted_mid_stream];
    let content = inner.content.or(inner.parts);
    match &*line.kind {
        "assistant" => {
            let by_host = inner.model.as_deref() == Some("<synthetic>")
                || line.error.is_some()
                || line.api_error_status.is_some();
            let unsaid = by_host || flags.contains(&Some(true)) || &*inner.role == "user";
            Ok(if unsaid { Vec::new() } else { of_content(content, true) })
        }
        "user" | "tool_result" => {
            let mut marks = of_content(content, false);
            let origin: Block<'_> = lenient(line.origin);
            let injected = line.is_meta == Some(true)
                || line.is_compact_summary == Some(true)
                || origin.kind.is_some_and(|kind| &*kind != "human");
            if line.tool_use_result.is_some() && !marks.iter().any(is_result) {
                marks = vec![Mark::Result { id: String::new() }];
            }
            if injected {
                marks.iter_mut().filter(|mark| **mark == Mark::Prompt).for_each(|mark| {
                    *mark = Mark::Heard;
                });
            }
            Ok(marks)
        }
        _ => Ok(Vec::new()),
    }
}

fn of_codex(line: &Envelope<'_>) -> Result<Vec<Mark>, Malformed> {
    if &*line.kind != "response_item" {
        return Ok(Vec::new());
    }
    let item = inner(line.payload)?;
    let id = item.call_id.to_owned();
    Ok(match &*item.kind {
        // What is said on the way is no answer.
        "message" if item.phase.as_deref() == Some("commentary") => Vec::new(),
        "message" if matches!(&*item.role, "user" | "assistant") => {
            of_content(item.content, &*item.role == "assistant")
        }
        kind if kind.ends_with("_output") => vec![Mark::Result { id }],
        kind if kind.ends_with("_call") => vec![Mark::Call { id, name: item.name.to_owned() }],
        _ => Vec::new(),
    })
}

fn of_copilot(line: &Envelope<'_>) -> Result<Vec<Mark>, Malformed> {
    let data = if line.data.is_some() { inner(line.data)? } else { Inner::default() };
    if line.agent_id.is_some() || data.parent_tool_call_id.is_some() {
        return Ok(Vec::new());
    }
    let id = data.tool_call_id.to_owned();
    Ok(match &*line.kind {
        "user.message" => of_content(data.content, false),
        "assistant.message" => {
            let mut marks = of_content(data.content, true);
            for raw in data.tool_requests.map(json::blocks).unwrap_or_default() {
                let call: Block<'_> = lenient(Some(raw));
                let (id, name) = (call.tool_call_id.to_owned(), call.name.to_owned());
                marks.push(Mark::Call { id, name });
            }
            marks
        }
        "tool.execution_start" => vec![Mark::Call { id, name: data.tool_name.to_owned() }],
        "tool.execution_complete" => vec![Mark::Result { id }],
        _ => Vec::new(),
    })
}

fn of_message(role: &str, message: Option<&RawValue>) -> Result<Vec<Mark>, Malformed> {
    let inner = inner(message)?;
    Ok(match role {
        "assistant" => of_content(inner.content, true),
        "user" => of_content(inner.content, false),
        _ => Vec::new(),
    })
}

fn of_gemini(line: &Envelope<'_>) -> Vec<Mark> {
    let mut marks = match &*line.kind {
        "user" => of_content(line.content, false),
        "gemini" | "model" | "assistant" => of_content(line.content, true),
        _ => return Vec::new(),
    };
    for raw in line.tool_calls.map(json::blocks).unwrap_or_default() {
        let call: Block<'_> = lenient(Some(raw));
        marks.push(Mark::Call { id: call.id.to_owned(), name: call.name.to_owned() });
        if call.result.is_some() {
            marks.push(Mark::Result { id: call.id.to_owned() });
        }
    }
    marks
}

fn of_content(content: Option<&RawValue>, by_agent: bool) -> Vec<Mark> {
    let mut marks = Vec::new();
    for raw in content.map(json::blocks).unwrap_or_default() {
        let mut block: Block<'_> = lenient(Some(raw));
        if let Ok(text) = serde_json::from_str::<Str<'_>>(raw.get()) {
            block.text = Some(text);
        }
        match &*block.of {
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                marks.push(Mark::Call { id: block.id.to_owned(), name: block.name.to_owned() });
            }
            "tool_result" => marks.push(Mark::Result { id: block.tool_use_id.to_owned() }),
            "" if block.function_call.is_some() => {
                let call: Block<'_> = lenient(block.function_call);
                marks.push(Mark::Call { id: call.id.to_owned(), name: call.name.to_owned() });
            }
            "" if block.function_response.is_some() => {
                let response: Block<'_> = lenient(block.function_response);
                marks.push(Mark::Result { id: response.id.to_owned() });
            }
            "" | "text" | "input_text" | "output_text" if block.thought != Some(true) => {
                let text = block.text.as_deref().unwrap_or_default().trim();
                let mark = match () {
                    () if text.is_empty() => continue,
                    () if by_agent => Mark::Speech,
                    () if MACHINE_MADE.iter().any(|start| text.starts_with(start)) => Mark::Heard,
                    () => Mark::Prompt,
                };
                if marks.last() != Some(&mark) {
                    marks.push(mark);
                }
            }
            _ => {}
        }
    }
    // Hosts add notices beside results: those are no prompts.
    if marks.iter().any(is_result) {
        marks.retain(|mark| *mark != Mark::Prompt);
    }
    marks
}

fn inner<'a>(raw: Option<&'a RawValue>) -> Result<Inner<'a>, Malformed> {
    Ok(serde_json::from_str(raw.ok_or(Malformed)?.get())?)
}

fn is_result(mark: &Mark) -> bool {
    matches!(mark, Mark::Result { .. })
}

/// How texts begin that hosts write in a user's name without marking them.
const MACHINE_MADE: &[&str] = &[
    "Stop hook feedback:",
    "<hook_prompt",
    "[Request interrupted by user",
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
];
