// A model that says what a file tells it to, on loopback: `node try-hosts-model.mjs SCRIPT ASKED`. It
// speaks the Chat Completions of OpenAI, prints its port, keeps every request, and ends by itself.
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

const [script, asked] = process.argv.slice(2);
const replies = JSON.parse(readFileSync(script));
const LIFETIME_MS = 180_000;
let next = 0;

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    let question;
    try {
      question = JSON.parse(body);
    } catch {
      response.writeHead(404).end();
      return;
    }
    // Only the agent has tools; titles and summaries are asked for without.
    const isAgent = (question.tools ?? []).length > 0;
    const reply = isAgent ? replies[Math.min(next++, replies.length - 1)] : { text: "A title" };
    if (isAgent) appendFileSync(asked, `${JSON.stringify(question.messages)}\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (value) => response.write(`data: ${JSON.stringify(value)}\n\n`);
    const chunk = (delta, finish_reason = null) => {
      const choices = [{ index: 0, delta, finish_reason }];
      send({ id: `c${next}`, object: "chat.completion.chunk", created: 1, model: "m", choices });
    };
    chunk({ role: "assistant", content: reply.text ?? "" });
    if (reply.tool) {
      const call = { name: reply.tool, arguments: JSON.stringify(reply.input) };
      chunk({ tool_calls: [{ index: 0, id: `call_${next}`, type: "function", function: call }] });
    }
    chunk({}, reply.tool ? "tool_calls" : "stop");
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    send({ id: "u", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage });
    response.end("data: [DONE]\n\n");
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
setTimeout(() => process.exit(0), LIFETIME_MS);
