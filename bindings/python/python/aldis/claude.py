"""A Stop hook for the Claude Agent SDK: the agent continues until it reports how its work ended.

::

    options = ClaudeAgentOptions(hooks={"Stop": [HookMatcher(hooks=[stop_hook(rules)])]})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Optional

from claude_agent_sdk.types import HookContext, HookInput, HookJSONOutput, StopHookInput

from . import Rules
from ._reply import STOPS, Reply

#: Claude Code stops asking its hooks after eight blocked stops in a row.
LIMIT = 7

Callback = Callable[[HookInput, Optional[str], HookContext], Awaitable[HookJSONOutput]]


def stop_hook(rules: Rules, *, meanings: frozenset[str] = STOPS, limit: int = LIMIT) -> Callback:
    """Blocks a stop until the agent's last message has a signal with one of these meanings.

    Lets the agent stop after ``limit`` blocked stops in a row, while background work runs, and if
    the host does not pass the agent's last message.
    """
    blocked: dict[str, int] = {}

    async def hook(
        input: HookInput, tool_use_id: Optional[str], context: HookContext
    ) -> HookJSONOutput:
        if input["hook_event_name"] != "Stop":
            return {}
        stop: StopHookInput = input
        session, message = stop["session_id"], stop.get("last_assistant_message")
        if not stop["stop_hook_active"]:
            blocked.pop(session, None)
        if message is None or stop.get("background_tasks"):
            return {}
        reply = Reply.read(rules, message)
        count = blocked.get(session, 0)
        if reply.signal(meanings) or count >= limit:
            blocked.pop(session, None)
            return {}
        blocked[session] = count + 1
        return {"decision": "block", "reason": reply.feedback(rules)}

    return hook
