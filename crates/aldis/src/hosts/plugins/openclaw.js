// Written by `aldis install openclaw`; remove it with `aldis uninstall openclaw`.
//
// Before an agent's last answer counts, asks `aldis hook openclaw` whether it may. Whatever goes
// wrong here lets it.
//
// With `turnsUrl` and `turnsTokenFile` in its configuration it also tells `aldis serve` what agents say
// in channels, shows what it decided, and holds back what is said out of turn. Channels that are not
// open there are left alone, and so is everything while the server does not answer.

// ask.js
import { readFile } from "node:fs/promises";

const ATTEMPTS_MAX = 3;
const TURNS_TIMEOUT_MS = 5000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

async function beforeFinalize(event, context) {
  try {
    const cwd = event.cwd ?? context?.workspaceDir;
    // The event in the host's own form, without the conversation.
    const { runId, turnId, transcriptPath, stopHookActive, lastAssistantMessage } = event;
    const sessionId = event.sessionId ?? context?.sessionId;
    const sessionKey = event.sessionKey ?? context?.sessionKey;
    const answer = await ask(
      "openclaw",
      {
        runId,
        turnId,
        sessionId,
        sessionKey,
        cwd,
        transcriptPath,
        stopHookActive: Boolean(stopHookActive),
        lastAssistantMessage,
      },
      cwd,
    );
    const reason = answer?.action === "revise" ? answer.reason : undefined;
    if (typeof reason !== "string" || !reason.trim()) return { action: "continue" };
    const key = runId ?? turnId ?? sessionId;
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
