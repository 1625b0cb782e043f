// Written by `aldis install openclaw`; remove it with `aldis uninstall openclaw`.
//
// Before an agent's last answer counts, asks `aldis hook openclaw` whether it may. Whatever goes
// wrong here lets it.
//
// With `turnsUrl` and `turnsTokenFile` in its configuration it also tells `aldis serve` what agents say
// in channels, shows what it decided, and holds back what is said out of turn. Channels that are not
// open there are left alone, and so is everything while the server does not answer.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";

const PROGRAM = "aldis";
const ARGUMENTS = ["hook", "openclaw"];
const TIMEOUT_MS = 10000;
const OUTPUT_MAX = 256 * 1024;
const ATTEMPTS_MAX = 3;
const TURNS_TIMEOUT_MS = 5000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

// Asks the hook. Resolves to its answer, or to nothing.
function ask(payload, cwd) {
  return new Promise((resolve) => {
    let output = "";
    let child;
    const finish = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    const timer = setTimeout(() => {
      child?.kill("SIGKILL");
      finish(undefined);
    }, TIMEOUT_MS);
    try {
      child = spawn(PROGRAM, ARGUMENTS, { cwd, stdio: ["pipe", "pipe", "ignore"] });
    } catch {
      finish(undefined);
      return;
    }
    child.on("error", () => finish(undefined));
    child.stdin.on("error", () => {});
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (part) => {
      output += part;
      if (output.length > OUTPUT_MAX) child.kill("SIGKILL");
    });
    child.on("close", (code) => {
      try {
        finish(code === 0 ? JSON.parse(output) : undefined);
      } catch {
        finish(undefined);
      }
    });
    child.stdin.end(JSON.stringify(payload));
  });
}

async function beforeFinalize(event, context) {
  try {
    const cwd = event.cwd ?? context?.workspaceDir;
    const answer = await ask(
      {
        hook_event_name: "Stop",
        session_id: event.sessionId ?? context?.sessionId,
        session_key: event.sessionKey ?? context?.sessionKey,
        run_id: event.runId,
        turn_id: event.turnId,
        cwd,
        transcript_path: event.transcriptPath,
        stop_hook_active: Boolean(event.stopHookActive),
        last_assistant_message: event.lastAssistantMessage,
        host: "openclaw",
      },
      cwd,
    );
    const reason = answer?.decision === "block" ? answer.reason : undefined;
    if (typeof reason !== "string" || !reason.trim()) return { action: "continue" };
    const key = event.runId ?? event.turnId ?? event.sessionId;
    return {
      action: "revise",
      reason,
      retry: { instruction: reason, idempotencyKey: `aldis:${key}`, maxAttempts: ATTEMPTS_MAX },
    };
  } catch {
    return { action: "continue" };
  }
}

// Who speaks, and where, in names that the server takes; nothing if there are none.
function place(event, context) {
  const agent = context?.agentId ?? /^agent:([^:]+)/.exec(context?.sessionKey ?? "")?.[1];
  const chat = context?.conversationId ?? context?.chatId ?? event?.to ?? context?.channelId;
  const channel = String(chat ?? "").split(":").pop();
  return NAME.test(agent ?? "") && NAME.test(channel) ? { agent, channel } : undefined;
}

// Tells the server what an agent says. Resolves to what became of it, or to nothing.
async function tell(turns, { agent, channel }, text) {
  const token = (await readFile(turns.tokenFile, "utf8")).trim();
  const response = await fetch(`${turns.url}/v1/channels/${encodeURIComponent(channel)}/messages`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID(),
    },
    body: JSON.stringify({ agent, text }),
    signal: AbortSignal.timeout(TURNS_TIMEOUT_MS),
  });
  const answer = await response.json();
  return response.ok ? answer.result : undefined;
}

function beforeSending(turns) {
  return async (event, context) => {
    try {
      const where = place(event, context);
      if (!where || typeof event.content !== "string") return undefined;
      const result = await tell(turns, where, event.content);
      if (!result) return undefined;
      return result.posted ? { content: result.display } : { cancel: true };
    } catch {
      return undefined;
    }
  };
}

export default {
  id: "aldis",
  name: "Aldis",
  description: "Calls aldis before an agent's last answer counts",
  register(api) {
    api.on("before_agent_finalize", beforeFinalize);
    const { turnsUrl, turnsTokenFile } = api.pluginConfig ?? {};
    if (turnsUrl && turnsTokenFile) {
      api.on("message_sending", beforeSending({ url: turnsUrl, tokenFile: turnsTokenFile }));
    }
  },
};
