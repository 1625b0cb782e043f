"""A condition and a node for LangGraph: the graph ends when the model reports how its work ended.

::

    graph.add_node("remind", remind(rules))
    graph.add_conditional_edges("model", ended(rules, otherwise="remind"))
    graph.add_edge("remind", "model")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END

from . import Rules
from ._reply import STOPS, Reply

#: A state with `messages`, as typed by the graph.
State = Any


class Node(Protocol):
    """A node of a graph, with the parameter's name that LangGraph asks for."""

    def __call__(self, state: State) -> dict[str, list[HumanMessage]]: ...


def ended(
    rules: Rules, *, otherwise: str, end: str = END, meanings: frozenset[str] = STOPS
) -> Callable[[State], str]:
    """Returns a condition for ``add_conditional_edges`` over a state with ``messages``.

    Only the model's own last message counts, and not while it calls tools.
    """

    def condition(state: State) -> str:
        return end if _reply(rules, state).signal(meanings) else otherwise

    return condition


def remind(rules: Rules) -> Node:
    """Returns a node that tells the model what was missing in its last message."""

    def node(state: State) -> dict[str, list[HumanMessage]]:
        return {"messages": [HumanMessage(_reply(rules, state).feedback(rules))]}

    return node


def _reply(rules: Rules, state: State) -> Reply:
    messages = state["messages"]
    last = messages[-1] if messages else None
    if not isinstance(last, AIMessage) or last.tool_calls:
        return Reply([])
    text = last.content if isinstance(last.content, str) else last.text
    return Reply.read(rules, str(text))
