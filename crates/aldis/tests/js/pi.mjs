// Plays Pi: tells the extension that the agent ended and watches what it does.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const { default: extension } = await import(process.env.PLUGIN);
const handlers = {};
let sent = [];
let isStale = false;
extension({
  on: (event, handler) => (handlers[event] = handler),
  sendUserMessage: (text, options) => {
    if (isStale) throw new Error("the session was replaced");
    sent.push([text, options]);
  },
});
const context = {
  cwd: process.cwd(),
  hasPendingMessages: () => false,
  sessionManager: { getSessionId: () => "s1", getSessionFile: () => undefined },
};
const answer = (script) => writeFileSync(process.env.ANSWER, script);
const block = (reason) => answer(`printf '%s' '${JSON.stringify({ decision: "block", reason })}'`);
const seen = () => {
  const text = existsSync(process.env.SEEN) ? readFileSync(process.env.SEEN, "utf8") : "";
  rmSync(process.env.SEEN, { force: true });
  return text.split("\n").filter(Boolean);
};
const said = (stopReason = "stop") => ({
  role: "assistant",
  stopReason,
  content: [
    { type: "thinking", thinking: "no" },
    { type: "text", text: "All" },
    { type: "toolCall", id: "1", name: "x", arguments: {} },
    { type: "text", text: "done." },
  ],
});
const end = (event = {}, more = {}) =>
  handlers.agent_end(
    { type: "agent_end", messages: [said(), { role: "toolResult" }], ...event },
    { ...context, ...more },
  );

// It may stop.
answer("");
await end();
const [payload, args] = seen();
assert.deepEqual(JSON.parse(payload), {
  type: "agent_end",
  sessionId: "s1",
  cwd: process.cwd(),
  transcript_path: null,
  status: "stop",
  last_assistant_message: "All\ndone.",
});
assert.equal(args, "hook pi");
assert.deepEqual(sent, []);

// It must go on, and is told why behind what it still does.
block("Two tests fail.");
await end();
assert.deepEqual(sent, [["Two tests fail.", { deliverAs: "followUp" }]]);
seen();
sent = [];

// Pi goes on by itself, or there is nothing to ask about: nobody is asked.
await end({ willRetry: true });
await end({}, { hasPendingMessages: () => true });
await end({ messages: [{ role: "user", content: "x" }] });
await end({ messages: undefined });
assert.deepEqual(seen(), []);

// How the agent ended is told, and what is decided about it is not ours.
await end({ messages: [said("aborted")] });
assert.equal(JSON.parse(seen()[0]).status, "aborted");
sent = [];

// Whatever goes wrong lets the session stop.
for (const broken of ["exit 3", "echo hello", "echo null", "echo '{}'", "kill -9 $$"]) {
  answer(broken);
  await end();
}
block(" ");
await end();
block("Go on.");
isStale = true;
await end();
assert.deepEqual(sent, []);
