"""ralph-orchestrator (Python): what its loop asks of the agent's output, `_check_completion_promise`, with the
literal as the promise. The object is made without its constructor, which wants agents and a prompt file."""

from typing import Any

from lines import answer
from ralph_orchestrator.orchestrator import RalphOrchestrator


def judge(text: str, row: dict[str, Any]) -> bool:
    loop = object.__new__(RalphOrchestrator)
    loop.completion_promise, loop.verbose = row["literal"], False
    return bool(loop._check_completion_promise(text))


answer(judge)
