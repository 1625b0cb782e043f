"""A termination condition for AutoGen that the prompt, a tool or a quotation cannot trigger.

In place of ``TextMentionTermination("DONE")``::

    termination = SignalTermination("promise=DONE")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

from autogen_agentchat.base import TerminatedException, TerminationCondition
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    StopMessage,
    StructuredMessage,
    TextMessage,
)
from autogen_core import Component
from pydantic import BaseModel
from typing_extensions import Self

from . import Rules
from ._reply import Reply


class SignalTerminationConfig(BaseModel):
    dialects: list[str]
    meanings: list[str]
    sources: Optional[list[str]]
    strict: bool


class SignalTermination(TerminationCondition, Component[SignalTerminationConfig]):
    """Ends a conversation when an agent reports that it is done.

    Neither the task (``user``) nor tools can end it. ``sources`` are the agents that can, all by
    default; ``meanings`` are the reports that do, such as ``("done", "blocked")``.
    """

    component_type = "termination"
    component_config_schema = SignalTerminationConfig
    component_provider_override = "aldis.autogen.SignalTermination"

    def __init__(
        self,
        *dialects: str,
        meanings: Sequence[str] = ("done",),
        sources: Optional[Sequence[str]] = None,
        strict: bool = False,
    ) -> None:
        self._config = SignalTerminationConfig(
            dialects=list(dialects),
            meanings=list(meanings),
            sources=None if sources is None else list(sources),
            strict=strict,
        )
        self._rules = Rules(*dialects, strict=strict)
        self._terminated = False

    @property
    def terminated(self) -> bool:
        return self._terminated

    async def __call__(
        self, messages: Sequence[Union[BaseAgentEvent, BaseChatMessage]]
    ) -> Optional[StopMessage]:
        if self._terminated:
            raise TerminatedException("Termination condition has already been reached")
        for message in messages:
            if not self._may_end(message):
                continue
            reply = Reply.read(self._rules, message.to_text())
            if signal := reply.signal(frozenset(self._config.meanings)):
                self._terminated = True
                content = f"{message.source} reported {signal.signal} ({signal.meaning})"
                return StopMessage(content=content, source="SignalTermination")
        return None

    def _may_end(self, message: Union[BaseAgentEvent, BaseChatMessage]) -> bool:
        if not isinstance(message, (TextMessage, StructuredMessage)):
            return False
        sources = self._config.sources
        return message.source != "user" if sources is None else message.source in sources

    async def reset(self) -> None:
        self._terminated = False

    def _to_config(self) -> SignalTerminationConfig:
        return self._config

    @classmethod
    def _from_config(cls, config: SignalTerminationConfig) -> Self:
        return cls(*config.dialects, **config.model_dump(exclude={"dialects"}))
