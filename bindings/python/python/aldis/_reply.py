"""What an agent reports in a message, and what to answer: shared by the adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from . import Finding, Rules

#: After these an agent may stop: it is done, or cannot go on without somebody else.
STOPS = frozenset({"done", "failed", "blocked", "needs_human", "needs_help"})


@dataclass(frozen=True)
class Reply:
    """What was found in a message of an agent."""

    findings: list[Finding]

    @classmethod
    def read(cls, rules: Rules, text: str) -> Reply:
        return cls(rules.scan(text))

    def signal(self, meanings: frozenset[str]) -> Optional[Finding]:
        """The last signal with one of these meanings."""
        signals = [f for f in self.findings if f.counts and f.meaning in meanings]
        return signals[-1] if signals else None

    def feedback(self, rules: Rules) -> str:
        """What to tell an agent that stopped without such a signal."""
        misses = [f for f in self.findings if not f.counts]
        if misses:
            miss = misses[-1]
            return f"What you wrote about {miss.signal} does not count ({miss.reason}): {miss.hint}"
        return f"You stopped without reporting how your work ended.\n\n{rules.instructions()}"
