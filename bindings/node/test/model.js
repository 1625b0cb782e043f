// A scripted model on loopback: Anthropic Messages (streaming) and OpenAI Responses. An answer is a text, or
// `{ text, call }` with the name of a tool to call after it.

import { createServer } from "node:http";
import { once } from "node:events";

export async function startModel() {
  const model = { answers: [], requests: [], next: () => (model.answers.length > 1 ? model.answers.shift() : model.answers[0]) };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const send = (kind, text) => response.writeHead(200, { "content-type": kind }).end(text);
    if (request.method !== "POST") return response.writeHead(404).end();
    const asked = JSON.parse(body || "{}");
    const path = request.url.split("?")[0];
    if (path.endsWith("/messages")) return anthropic(model, asked, send);
    if (path.endsWith("/responses")) return openai(model, asked, send);
    return response.writeHead(404).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  model.url = `http://127.0.0.1:${server.address().port}`;
  model.stop = () => server.close() && server.closeAllConnections();
  return model;
}

function anthropic(model, asked, send) {
  // Hosts also ask for titles and quotas; those requests carry no tools.
  const main = Boolean(asked.tools?.length);
  if (main) model.requests.push(asked);
  const text = main ? model.next() : "ok";
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "m", type: "message", role: "assistant", model: asked.model, content: [], stop_reason: null, stop_sequence: null, usage };
  if (!asked.stream) {
    const done = { ...message, content: [{ type: "text", text }], stop_reason: "end_turn" };
    return send("application/json", JSON.stringify(done));
  }
  const events = [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  send("text/event-stream", events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
}

function openai(model, asked, send) {
  model.requests.push(asked);
  const next = model.next();
  const { text, call } = typeof next === "string" ? { text: next } : next;
  const content = [{ type: "output_text", text, annotations: [] }];
  const output = [{ id: "m", type: "message", role: "assistant", status: "completed", content }];
  if (call) {
    const id = `call_${model.requests.length}`;
    output.push({ type: "function_call", id: `f${id}`, call_id: id, name: call, arguments: "{}", status: "completed" });
  }
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const answer = { id: "r", object: "response", created_at: 0, status: "completed", model: asked.model, output, usage };
  if (!asked.stream) return send("application/json", JSON.stringify(answer));
  const events = [
    { type: "response.created", response: { ...answer, status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { ...output[0], content: [], status: "in_progress" } },
    // Every character by itself: a signal is cut anywhere.
    ...Array.from(text, (delta) => ({ type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0, delta })),
    { type: "response.output_item.done", output_index: 0, item: output[0] },
    { type: "response.completed", response: answer },
  ];
  send("text/event-stream", events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
}
