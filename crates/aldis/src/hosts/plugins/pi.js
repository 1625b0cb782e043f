// Written by `aldis install pi`; remove it with `aldis uninstall pi`.
//
// Pi has no hook that can keep a session going. This extension waits until the agent has ended, asks
// `aldis hook pi` whether it may, and sends the answer's reason as the next message when it may not.
// Whatever goes wrong here lets the session stop.

// ask.js

function textOf(message) {
  const parts = Array.isArray(message.content) ? message.content : [];
  return parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");
}

export default function (pi) {
  pi.on("agent_end", async (event, context) => {
    try {
      const message = (event.messages ?? []).findLast((one) => one.role === "assistant");
      // Pi tries again by itself, or a person has said what comes next.
      if (!message || event.willRetry || context.hasPendingMessages?.()) return;
      const answer = await ask(
        "pi",
        {
          type: "agent_end",
          sessionId: context.sessionManager.getSessionId(),
          cwd: context.cwd,
          transcript_path: context.sessionManager.getSessionFile() ?? null,
          status: message.stopReason,
          last_assistant_message: textOf(message),
        },
        context.cwd,
      );
      const reason = answer?.decision === "block" ? answer.reason : undefined;
      if (typeof reason === "string" && reason.trim()) {
        pi.sendUserMessage(reason, { deliverAs: "followUp" });
      }
    } catch {
      // The session stops, as it would without us.
    }
  });
}
