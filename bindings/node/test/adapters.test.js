// Each adapter with the real package and a scripted model on loopback, in a conversation that the
// package's own condition, or the one its users write, ends falsely.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { query } from "@anthropic-ai/claude-agent-sdk";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

import { generateUntilDone, signalled } from "../ai.js";
import { stopHook } from "../claude.js";
import { Rules } from "../index.js";
import { startModel } from "./model.js";

const TASK = "Fix the tests. When they all pass, end your message with <promise>GREEN</promise>.";
const PLAN = "I will print <promise>GREEN</promise> once the tests pass. First I look at the log.";
const LOG = "The log is empty.";
const DONE = "12 passed.\n\n<promise>GREEN</promise>";
const AFTER = "must not be asked for";
const rules = new Rules("promise=GREEN");

let model;
before(async () => (model = await startModel()));
after(() => model.stop());

async function claude(hooks) {
  model.answers = [PLAN, LOG, DONE];
  const home = mkdtempSync(join(tmpdir(), "aldis-node-"));
  const env = {
    ...process.env,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "none",
    CLAUDE_CONFIG_DIR: join(home, "config"),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
  const texts = [];
  for await (const message of query({ prompt: TASK, options: { cwd: home, env, hooks } })) {
    if (message.type !== "assistant") continue;
    texts.push(...message.message.content.filter((block) => block.type === "text").map((block) => block.text));
  }
  rmSync(home, { recursive: true, force: true });
  return texts;
}

test("Claude Agent SDK", async () => {
  const mentions = async (input) =>
    input.last_assistant_message.includes("<promise>GREEN</promise>") ? {} : { decision: "block", reason: "Continue." };
  // Alone, and with the hook that everybody writes, it ends with the plan.
  assert.deepEqual(await claude({}), [PLAN]);
  assert.deepEqual(await claude({ Stop: [{ hooks: [mentions] }] }), [PLAN]);
  assert.deepEqual(await claude({ Stop: [{ hooks: [stopHook(rules)] }] }), [PLAN, LOG, DONE]);
  assert.match(JSON.stringify(model.requests), /in_sentence/);
});

test("the hook lets go", async () => {
  const hook = stopHook(rules, { limit: 2 });
  const blocks = async (active, more) =>
    "decision" in (await hook({ hook_event_name: "Stop", session_id: "s", stop_hook_active: active, ...more }));
  const message = { last_assistant_message: "Hm." };
  assert.deepEqual([await blocks(false, message), await blocks(true, message), await blocks(true, message)], [true, true, false]);
  assert.equal(await blocks(false), false, "without the last message");
  assert.equal(await blocks(false, { ...message, background_tasks: [{}] }), false);
  assert.equal(await blocks(false, { last_assistant_message: DONE }), false);
});

const openai = () => createOpenAI({ baseURL: model.url, apiKey: "none" }).responses("any");

test("Vercel AI SDK: the model stops calling tools", async () => {
  const options = { model: openai(), maxRetries: 0 };

  model.answers = [PLAN, LOG, DONE, AFTER];
  assert.equal((await generateText({ ...options, prompt: TASK })).text, PLAN);

  model.answers = [PLAN, LOG, DONE, AFTER];
  const ended = await generateUntilDone({ ...options, prompt: TASK, rules });
  assert.deepEqual([ended.result.text, ended.rounds, ended.signal?.meaning], [DONE, 3, "done"]);
  assert.match(JSON.stringify(model.requests.at(-1).input), /in_sentence/);

  model.answers = [PLAN];
  const given = await generateUntilDone({ ...options, prompt: TASK, rules, maxRounds: 2 });
  assert.deepEqual([given.signal, given.rounds], [undefined, 2]);
});

test("Vercel AI SDK: a loop of tool calls", async () => {
  const look = tool({ inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => DONE });
  const texts = async (condition) => {
    model.answers = [
      { text: PLAN, call: "look" },
      { text: LOG, call: "look" },
      { text: DONE, call: "look" },
      { text: AFTER, call: "look" },
    ];
    const stopWhen = [condition, stepCountIs(6)];
    const { steps } = await generateText({ model: openai(), maxRetries: 0, prompt: TASK, tools: { look }, stopWhen });
    return steps.map((step) => step.text);
  };
  const mentions = ({ steps }) => steps.at(-1).text.includes("<promise>GREEN</promise>");
  assert.deepEqual(await texts(mentions), [PLAN]);
  assert.deepEqual(await texts(signalled(rules)), [PLAN, LOG, DONE]);
});

test("Vercel AI SDK: a stream", async () => {
  model.answers = [DONE];
  const { textStream } = streamText({ model: openai(), maxRetries: 0, prompt: TASK });
  const found = [];
  for await (const finding of rules.scanStream(textStream)) found.push(finding.meaning);
  assert.deepEqual(found, ["done"]);
});
