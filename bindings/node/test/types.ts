// Compiled, not run: what users write must have types.

import { Rules, readTranscript, scan, type Finding } from "../index.js";
import { generateUntilDone, signalled } from "../ai.js";
import { stopHook } from "../claude.js";
import { generateText, type LanguageModel } from "ai";
import { query } from "@anthropic-ai/claude-agent-sdk";

export async function use(model: LanguageModel): Promise<Finding[]> {
  const rules = new Rules(["chorus", "promise=GREEN"], { strict: true });
  const found: Finding[] = scan("text", "chorus", { origin: "tool" });
  for await (const finding of rules.scanStream(["a", new Uint8Array()])) found.push(finding);
  for (const message of await readTranscript("file.jsonl", { rules })) found.push(...message.findings);
  // @ts-expect-error: there is no such origin.
  rules.scan("text", { origin: "me" });
  await generateText({ model, prompt: "x", stopWhen: signalled(rules) });
  const { signal, result } = await generateUntilDone({ model, prompt: "x", rules });
  if (signal) found.push(signal);
  query({ prompt: result.text, options: { hooks: { Stop: [{ hooks: [stopHook(rules)] }] } } });
  return found;
}
