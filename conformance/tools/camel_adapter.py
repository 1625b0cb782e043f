"""CAMEL: `ResponseWordsTerminator`, set to the literal."""

from typing import Any

from camel.messages import BaseMessage
from camel.terminators import ResponseWordsTerminator
from lines import answer


def judge(text: str, row: dict[str, Any]) -> bool:
    message = BaseMessage.make_assistant_message("coder", text)
    ended, _ = ResponseWordsTerminator(words_dict={row["literal"]: 1}).is_terminated([message])
    return ended


answer(judge)
