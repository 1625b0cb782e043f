// Plays OpenClaw: asks the plugin before an answer counts.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

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
assert.deepEqual(JSON.parse(payload), {
  hook_event_name: "Stop",
  session_id: "s1",
  session_key: "agent:ops:main",
  run_id: "run_7",
  cwd: process.cwd(),
  transcript_path: "t.jsonl",
  stop_hook_active: false,
  last_assistant_message: "Done.",
  host: "openclaw",
});
assert.equal(args, "hook openclaw");

answer(`echo '{"decision":"block","reason":"Two tests fail."}'`);
assert.deepEqual(await ask(event, {}), {
  action: "revise",
  reason: "Two tests fail.",
  retry: { instruction: "Two tests fail.", idempotencyKey: "aldis:run_7", maxAttempts: 3 },
});

for (const script of ["exit 3", "echo nonsense", "echo '{\"decision\":\"block\",\"reason\":\" \"}'"]) {
  answer(script);
  assert.deepEqual(await ask(event, {}), { action: "continue" });
}
assert.deepEqual(await ask({ cwd: "/no/such/place" }, undefined), { action: "continue" });
assert.deepEqual(await ask(undefined, undefined), { action: "continue" });
process.exit(0);
