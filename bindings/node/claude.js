// A Stop hook for the Claude Agent SDK: the agent continues until it reports how its work ended.

import { STOPS, feedback, signalOf } from "./reply.js";

/** Claude Code stops asking its hooks after eight blocked stops in a row. */
const LIMIT = 7;

export function stopHook(rules, { meanings = STOPS, limit = LIMIT } = {}) {
  const blocked = new Map();
  return async (input) => {
    if (input.hook_event_name !== "Stop") return {};
    const { session_id: session, last_assistant_message: message } = input;
    if (!input.stop_hook_active) blocked.delete(session);
    if (message === undefined || input.background_tasks?.length) return {};
    const findings = rules.scan(message);
    const count = blocked.get(session) ?? 0;
    if (signalOf(findings, meanings) || count >= limit) {
      blocked.delete(session);
      return {};
    }
    blocked.set(session, count + 1);
    return { decision: "block", reason: feedback(rules, findings) };
  };
}
