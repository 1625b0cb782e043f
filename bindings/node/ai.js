// For the Vercel AI SDK: `signalled` ends a loop of tool calls, `generateUntilDone` continues where
// `generateText` would end because the model stopped calling tools.

import { generateText } from "ai";

import { STOPS, feedback, signalOf } from "./reply.js";

export function signalled(rules, { meanings = STOPS } = {}) {
  return ({ steps }) => signalOf(rules.scan(steps.at(-1)?.text ?? ""), meanings) !== undefined;
}

export async function generateUntilDone({ rules, meanings = STOPS, maxRounds = 10, prompt, ...options }) {
  const messages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : [...prompt];
  for (let rounds = 1; ; rounds += 1) {
    const result = await generateText({ ...options, messages });
    const findings = rules.scan(result.text);
    const signal = signalOf(findings, meanings);
    if (signal || rounds >= maxRounds) return { result, signal, rounds };
    messages.push(...result.response.messages, { role: "user", content: feedback(rules, findings) });
  }
}
