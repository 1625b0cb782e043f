"""Tells what coding agents report from what they merely mention.

    >>> import aldis
    >>> rules = aldis.Rules("chorus", "promise=ALL TESTS PASS")
    >>> [f.meaning for f in rules.scan("All green.\\n\\n<promise>ALL TESTS PASS</promise>")]
    ['done']
    >>> [f.reason for f in rules.scan("I will print <promise>ALL TESTS PASS</promise> when it is.")]
    ['in_sentence']
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Union

from ._native import Finding, Message, Rules, Scanner
from ._native import explain as _explain
from ._native import read_transcript as _read_transcript

__all__ = ["Finding", "Message", "Rules", "Scanner", "explain", "read_transcript", "scan"]

if TYPE_CHECKING:
    from ._native import _Origin

Text = Union[str, bytes]


def scan(text: Text, *dialects: str, origin: Optional[_Origin] = None) -> list[Finding]:
    """Scans one text for these dialects, or for all that are built in.

    Programs that scan more than one text make their ``Rules`` once.
    """
    return Rules(*dialects).scan(text, origin=origin)


def read_transcript(
    source: Union[str, "os.PathLike[str]", bytes],
    format: str = "auto",
    *,
    agent: Optional[str] = None,
    rules: Optional[Rules] = None,
    token: Optional[str] = None,
    require_token: bool = False,
) -> list[Message]:
    """Reads the transcript of a host as messages, each with its origin.

    ``source`` is a path, or the bytes of a transcript. ``format`` is a host (``claude-code``,
    ``codex``) or a format; ``agent`` chooses one agent's conversation. With ``rules``, each message
    has its ``findings``.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    return _read_transcript(data, format, agent, rules, token, require_token)


def explain(text: Text, rules: Optional[Rules] = None, *, origin: Optional[_Origin] = None) -> str:
    """Describes each signal and near miss in a text: whether it counts, and if not, why."""
    return _explain((rules or Rules()).scan(text, origin=origin))
