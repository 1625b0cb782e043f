// Written by `aldis install opencode`; remove it with `aldis uninstall opencode`.
//
// OpenCode has no hook that can keep a session going. This plugin waits until a session is idle,
// asks `aldis hook opencode` whether it may be, and sends the answer's reason as the next prompt
// when it may not. Whatever goes wrong here lets the session stop.

// ask.js

const HOST = "opencode";

// The last assistant message: its text, whether it ended in an error, and its id.
async function lastMessage(client, sessionID) {
  const { data } = await client.session.messages({ path: { id: sessionID } });
  const message = (data ?? []).findLast((entry) => entry.info?.role === "assistant");
  if (!message) return undefined;
  const text = (message.parts ?? [])
    .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
    .map((part) => part.text)
    .join("");
  return { id: message.info.id, failed: Boolean(message.info.error), text };
}

export const AldisPlugin = async ({ client, directory }) => {
  // Sessions that are being asked about, and the message each was last asked about: both
  // `session.idle` and `session.status` tell of the same stop.
  const busy = new Set();
  const asked = new Map();
  const failed = new Set();

  // Returns why a session must go on, or nothing.
  async function verdict(sessionID) {
    if (failed.delete(sessionID)) return undefined;
    const { data: session } = await client.session.get({ path: { id: sessionID } });
    if (!session || session.parentID) return undefined;
    const message = await lastMessage(client, sessionID);
    if (!message || message.failed || asked.get(sessionID) === message.id) return undefined;
    asked.set(sessionID, message.id);
    const cwd = session.directory ?? directory;
    // The event in the host's own form, with what it leaves out.
    const answer = await ask(
      HOST,
      {
        type: "session.idle",
        client: HOST,
        properties: { sessionID },
        cwd,
        last_assistant_message: message.text,
      },
      cwd,
    );
    const reason = answer?.decision === "block" ? answer.reason : undefined;
    return typeof reason === "string" && reason.trim() ? reason : undefined;
  }

  async function stopped(sessionID) {
    if (busy.has(sessionID)) return;
    busy.add(sessionID);
    let reason;
    try {
      reason = await verdict(sessionID);
    } catch {
      // The session stops, as it would without us.
    } finally {
      busy.delete(sessionID);
    }
    if (!reason) return;
    try {
      // Lasts as long as the agent works; the next stop comes before it ends.
      await client.session.prompt({
        path: { id: sessionID },
        body: { parts: [{ type: "text", text: reason }] },
      });
    } catch {
      // As above.
    }
  }

  return {
    event: async ({ event }) => {
      const { sessionID, status } = event?.properties ?? {};
      if (!sessionID) return;
      if (event.type === "session.error") failed.add(sessionID);
      if (event.type === "session.status" && status?.type === "busy") failed.delete(sessionID);
      if (event.type === "session.deleted") asked.delete(sessionID);
      const idle =
        event.type === "session.idle" ||
        (event.type === "session.status" && status?.type === "idle");
      // Not awaited: the host must not wait for us.
      if (idle) void stopped(sessionID);
    },
  };
};
