"""AutoGen: `TextMentionTermination`, set to the literal. A tool's output never reaches it as a message that
it looks at by default; the task does, as a message of `user`."""

import asyncio
from typing import Any

from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.messages import TextMessage
from lines import answer


def judge(text: str, row: dict[str, Any]) -> bool:
    source = "coder" if row["origin"] == "assistant" else row["origin"]
    condition = TextMentionTermination(row["literal"])
    return asyncio.run(condition([TextMessage(content=text, source=source)])) is not None


answer(judge)
