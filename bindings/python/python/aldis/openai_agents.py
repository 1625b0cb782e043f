"""Runs an agent of the OpenAI Agents SDK until it reports how its work ended.

``Runner.run`` ends when the model stops calling tools, whatever it answers then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from agents import Agent, Runner, RunResult, TResponseInputItem

from . import Finding, Rules
from ._reply import STOPS, Reply


@dataclass(frozen=True)
class Ended:
    """How a run ended. ``signal`` is None if there was none in ``max_rounds`` answers."""

    result: RunResult
    signal: Optional[Finding]
    rounds: int


async def run_until_done(
    agent: Agent[Any],
    task: str,
    rules: Rules,
    *,
    meanings: frozenset[str] = STOPS,
    max_rounds: int = 10,
    **options: Any,
) -> Ended:
    """Runs the agent, and again with feedback, until its answer has a signal.

    ``options`` are those of ``Runner.run``.
    """
    items: list[TResponseInputItem] = [{"role": "user", "content": task}]
    rounds = 0
    while True:
        rounds += 1
        result = await Runner.run(agent, items, **options)
        reply = Reply.read(rules, str(result.final_output))
        signal = reply.signal(meanings)
        if signal or rounds >= max_rounds:
            return Ended(result, signal, rounds)
        items = [*result.to_input_list(), {"role": "user", "content": reply.feedback(rules)}]
