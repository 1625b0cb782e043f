import type { HookCallback } from "@anthropic-ai/claude-agent-sdk";
import type { Rules } from "./index.js";

/** Blocks a stop until the agent's last message has a signal with one of these meanings.
 *
 * Lets the agent stop after `limit` blocked stops in a row, while background work runs, and if the host
 * does not pass the agent's last message. */
export function stopHook(rules: Rules, options?: { meanings?: string[]; limit?: number }): HookCallback;
