// Plays OpenClaw: asks the plugin before an answer counts.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const { default: plugin } = await import(process.env.PLUGIN);
const hooks = {};
plugin.register({ on: (name, handler) => (hooks[name] = handler) });
assert.equal(plugin.id, "aldis");
const ask = hooks.before_agent_finalize;
const answer = (script) => writeFileSync(process.env.ANSWER, script);
const event = {
  runId: "run_7",
  sessionId: "s1",
  sessionKey: "agent:ops:main",
  cwd: process.cwd(),
  transcriptPath: "t.jsonl",
  stopHookActive: false,
  lastAssistantMessage: "Done.",
};

answer("");
assert.deepEqual(await ask(event, {}), { action: "continue" });
const [payload, args] = readFileSync(process.env.SEEN, "utf8").split("\n");
assert.deepEqual(JSON.parse(payload), event);
assert.equal(args, "hook openclaw");

answer(`echo '{"action":"revise","reason":"Two tests fail."}'`);
assert.deepEqual(await ask(event, {}), {
  action: "revise",
  reason: "Two tests fail.",
  retry: { instruction: "Two tests fail.", idempotencyKey: "aldis:run_7", maxAttempts: 3 },
});

for (const script of ["exit 3", "echo nonsense", "echo '{\"action\":\"revise\",\"reason\":\" \"}'"]) {
  answer(script);
  assert.deepEqual(await ask(event, {}), { action: "continue" });
}
assert.deepEqual(await ask({ cwd: "/no/such/place" }, undefined), { action: "continue" });
assert.deepEqual(await ask(undefined, undefined), { action: "continue" });

// Turns: a server that answers as told.
assert.equal(hooks.message_sending, undefined, "not without a configuration");
let reply;
const seen = [];
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    seen.push({ url: request.url, token: request.headers.authorization, key: request.headers["idempotency-key"], body: JSON.parse(body) });
    response.writeHead(reply.status, { "content-type": "application/json" });
    response.end(reply.text);
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
writeFileSync("token", "secret\n");
const turnsUrl = `http://127.0.0.1:${server.address().port}`;
plugin.register({ on: (name, handler) => (hooks[name] = handler), pluginConfig: { turnsUrl, turnsTokenFile: "token" } });
const send = (content, context) => hooks.message_sending({ to: "discord:1234", content }, context);
const pm = { sessionKey: "agent:pm:main" };
const result = (status, result) => (reply = { status, text: JSON.stringify({ result }) });

result(200, { posted: true, turnAdvanced: true, display: "Yes." });
assert.deepEqual(await send("Yes. TURN_COMPLETE", pm), { content: "Yes." });
assert.equal(seen[0].url, "/v1/channels/1234/messages");
assert.equal(seen[0].token, "Bearer secret");
assert.ok(seen[0].key);
assert.deepEqual(seen[0].body, { agent: "pm", text: "Yes. TURN_COMPLETE" });
result(200, { posted: false, turnAdvanced: false, reason: "not_active_agent" });
assert.deepEqual(await send("Me too.", { agentId: "dev", conversationId: "c1" }), { cancel: true });
assert.equal(seen[1].url, "/v1/channels/c1/messages");
result(404, { posted: false, reason: "unknown_channel" });
assert.equal(await send("Hello.", pm), undefined, "not a channel of ours");
reply = { status: 200, text: "nonsense" };
assert.equal(await send("Hello.", pm), undefined);
assert.equal(await send("Hello.", { agentId: "../x" }), undefined);
assert.equal(seen.length, 4, "a bad name is not sent");
server.close();
server.closeAllConnections();
assert.equal(await send("Hello.", pm), undefined, "nobody answers");
process.exit(0);
