//! A reply as OpenAI Responses: one response, or the events that build it.

use serde_json::{Value, json};

use super::http::Response;
use super::script::ScriptedReply;
use super::tool::{self, ToolCall};

/// Renders a reply to the request with this body.
pub(super) fn response(serial: usize, reply: &ScriptedReply, body: &Value) -> Response {
    let mut items = Vec::new();
    if !reply.text.is_empty() {
        let text = json!({"type": "output_text", "text": reply.text, "annotations": []});
        items.push(json!({
            "type": "message",
            "id": format!("msg_{serial:04}"),
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }));
    }
    let call = reply.call.as_ref().and_then(|call| tool::find(body, call));
    if let Some(ToolCall { namespace, name, input }) = call {
        let mut item = json!({
            "type": "function_call",
            "id": format!("fc_{serial:04}"),
            "call_id": format!("call_{serial:04}"),
            "name": name,
            "arguments": input.to_string(),
            "status": "completed",
        });
        if let Some(namespace) = namespace {
            item["namespace"] = json!(namespace);
        }
        items.push(item);
    }
    let id = format!("resp_{serial:04}");
    let completed = json!({
        "id": id,
        "object": "response",
        "status": "completed",
        "model": body["model"],
        "output": items,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    });
    if body["stream"] != true {
        return Response::json(200, &completed);
    }
    let mut events = vec![json!({
        "type": "response.created",
        "response": {"id": id, "object": "response", "status": "in_progress"},
    })];
    for (index, item) in items.iter().enumerate() {
        events.extend(item_events(index, item));
    }
    events.push(json!({"type": "response.completed", "response": completed}));
    Response::events(&events)
}

/// The events of one output item; a text comes in two steps.
fn item_events(index: usize, item: &Value) -> Vec<Value> {
    let mut start = item.clone();
    start["status"] = json!("in_progress");
    let mut events = Vec::new();
    let text = item["content"][0]["text"].as_str();
    if let Some(text) = text {
        start["content"] = json!([]);
        let (left, right) = text.split_at(text.floor_char_boundary(text.len() / 2));
        events.extend([left, right].map(|delta| {
            json!({
                "type": "response.output_text.delta",
                "item_id": item["id"],
                "output_index": index,
                "content_index": 0,
                "delta": delta,
            })
        }));
    }
    let added = json!({
        "type": "response.output_item.added", "output_index": index, "item": start,
    });
    events.insert(0, added);
    events.push(json!({
        "type": "response.output_item.done", "output_index": index, "item": item,
    }));
    events
}
