// Written by `aldis install openclaw`; remove it with `aldis uninstall openclaw`.
//
// Before an agent's last answer counts, asks `aldis hook openclaw` whether it may. Whatever goes
// wrong here lets it.

import { spawn } from "node:child_process";

const PROGRAM = "aldis";
const ARGUMENTS = ["hook", "openclaw"];
const TIMEOUT_MS = 10000;
const OUTPUT_MAX = 256 * 1024;
const ATTEMPTS_MAX = 3;

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

export default {
  id: "aldis",
  name: "Aldis",
  description: "Calls aldis before an agent's last answer counts",
  register(api) {
    api.on("before_agent_finalize", beforeFinalize);
  },
};
