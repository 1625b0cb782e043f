"""The line protocol of the kit, for adapters in Python: a function from a text to a verdict."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from typing import Any, Optional


def text_of(row: dict[str, Any]) -> str:
    """Programs that take strings get what is not UTF-8 with replacement characters."""
    if "text" in row:
        return str(row["text"])
    return base64.b64decode(row["bytes"]).decode(errors="replace")


def answer(judge: Callable[[str, dict[str, Any]], Optional[bool]]) -> None:
    # What a tool prints belongs elsewhere.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        row = json.loads(line)
        print(json.dumps({"id": row["id"], "claim": judge(text_of(row), row)}), file=out)
