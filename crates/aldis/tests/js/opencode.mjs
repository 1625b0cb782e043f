// Plays OpenCode, and what came of it: tells the plugin of stops and watches what it does.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const { AldisPlugin } = await import(process.env.PLUGIN);
const directory = process.cwd();
const host = process.env.HOST;
let messages = [];
let session = { id: "s1", directory };
let prompts = [];
let broken = false;
const client = {
  session: {
    get: async ({ path }) => {
      if (broken) throw new Error("no server");
      assert.equal(path.id, "s1");
      return { data: session };
    },
    messages: async () => ({ data: messages }),
    // Lasts until the next stop, like the real one.
    prompt: (request) => {
      prompts.push(request);
      return new Promise(() => {});
    },
  },
};
const { event } = await AldisPlugin({ client, directory });
const send = (type, properties) => event({ event: { type, properties } });
const idle = () => send("session.idle", { sessionID: "s1" });
let count = 0;
const say = (text, info = {}) => {
  count += 1;
  messages.push({
    info: { id: `m${count}`, role: "assistant", ...info },
    parts: [{ type: "reasoning", text: "no" }, { type: "text", text }],
  });
};
const answer = (script) => writeFileSync(process.env.ANSWER, script);
const seen = () => {
  const text = existsSync(process.env.SEEN) ? readFileSync(process.env.SEEN, "utf8") : "";
  rmSync(process.env.SEEN, { force: true });
  return text.split("\n").filter(Boolean);
};
const settle = () => new Promise((resolve) => setTimeout(resolve, 400));

// It may stop.
answer("");
say("All done.");
await idle();
await settle();
let [payload, args] = seen();
assert.deepEqual(JSON.parse(payload), {
  type: "session.idle",
  client: host,
  properties: { sessionID: "s1" },
  cwd: directory,
  last_assistant_message: "All done.",
});
assert.equal(args, `hook ${host}`);
assert.equal(prompts.length, 0);

// The other event about the same stop is no second stop.
await send("session.status", { sessionID: "s1", status: { type: "idle" } });
await settle();
assert.equal(seen().length, 0);

// It must go on, and the next stop is asked about while the prompt still lasts.
answer(`echo '{"decision":"block","reason":"Go on; $(touch sprung)"}'`);
say("Nearly.");
await send("session.status", { sessionID: "s1", status: { type: "idle" } });
await idle();
await settle();
assert.equal(seen().length, 2);
assert.deepEqual(prompts, [
  { path: { id: "s1" }, body: { parts: [{ type: "text", text: "Go on; $(touch sprung)" }] } },
]);
assert(!existsSync("sprung"));
say("Still nearly.");
await idle();
await settle();
assert.equal(seen().length, 2);
assert.equal(prompts.length, 2);

// Not after an abort, not for a failed message, not for a child, not without words.
prompts = [];
say("Cut off");
await send("session.error", { sessionID: "s1", error: { name: "MessageAbortedError" } });
await idle();
await settle();
say("Failed", { error: { name: "ProviderError" } });
await idle();
await settle();
session = { ...session, parentID: "s0" };
say("A child's.");
await idle();
await settle();
session = { id: "s1", directory };
messages = [];
await idle();
await settle();
assert.equal(seen().length, 0);
assert.equal(prompts.length, 0);

// Whatever goes wrong, the host sees nothing of it.
for (const script of ["exit 3", "echo nonsense", "echo '{\"decision\":\"block\"}'", "echo null"]) {
  answer(script);
  say(script);
  await idle();
  await settle();
}
broken = true;
await idle();
await event({});
await settle();
assert.equal(prompts.length, 0);
process.exit(0);
