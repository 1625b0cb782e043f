"""AG2: what `ConversableAgent` takes for the end unless it is told otherwise. Its word is fixed, so the
literal in the text is replaced by it."""

from typing import Any

from autogen import ConversableAgent
from lines import answer

AGENT = ConversableAgent("coder", llm_config=False, human_input_mode="NEVER")


def judge(text: str, row: dict[str, Any]) -> bool:
    message = {"role": "user", "name": "coder", "content": text.replace(row["literal"], "TERMINATE")}
    return bool(AGENT._is_termination_msg(message))


answer(judge)
