//! A reply as Anthropic Messages: one message, or the events that build it.

use serde_json::{Value, json};

use super::http::Response;
use super::script::ScriptedReply;
use super::tool::{self, ToolCall};

/// Renders a reply to the request with this body.
pub(super) fn response(serial: usize, reply: &ScriptedReply, body: &Value) -> Response {
    let mut blocks = Vec::new();
    if !reply.text.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    let call = reply.call.as_ref().and_then(|call| tool::find(body, call));
    let stop_reason = if call.is_some() { "tool_use" } else { "end_turn" };
    if let Some(ToolCall { name, input, .. }) = call {
        let id = format!("toolu_{serial:04}");
        blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    let mut message = json!({
        "id": format!("msg_{serial:04}"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    });
    if body["stream"] != true {
        return Response::json(200, &message);
    }
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        events.extend(block_events(index, block));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason, "stop_sequence": null},
        "usage": {"output_tokens": 5},
    }));
    events.push(json!({"type": "message_stop"}));
    Response::events(&events)
}

/// The events of one content block: it starts empty and is filled in two steps, so that a host that
/// looks at the first delta only would be caught.
fn block_events(index: usize, block: &Value) -> Vec<Value> {
    let mut start = block.clone();
    let (whole, kind, key) = if block["type"] == "text" {
        start["text"] = json!("");
        (block["text"].as_str().unwrap_or_default().to_owned(), "text_delta", "text")
    } else {
        start["input"] = json!({});
        (block["input"].to_string(), "input_json_delta", "partial_json")
    };
    let (left, right) = whole.split_at(whole.floor_char_boundary(whole.len() / 2));
    let delta = |part: &str| {
        json!({
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": kind, key: part},
        })
    };
    vec![
        json!({"type": "content_block_start", "index": index, "content_block": start}),
        delta(left),
        delta(right),
        json!({"type": "content_block_stop", "index": index}),
    ]
}
