"""Measures how fast Python scans a text of the benchmark, in MB/s: see `scripts/bindings bench`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import aldis

MESSAGE = 8192


def main() -> None:
    rules = aldis.Rules()
    data = Path(sys.argv[1]).read_bytes()
    text = data.decode()
    pieces = [data[at : at + MESSAGE] for at in range(0, len(data), MESSAGE)]
    texts = [piece.decode() for piece in pieces]

    def rate(scan: Callable[[], object]) -> float:
        begin = time.perf_counter()
        scan()
        return len(data) / 1e6 / (time.perf_counter() - begin)

    figures: dict[str, float] = {
        "whole": rate(lambda: rules.scan(data)),
        "messages": rate(lambda: [rules.scan(piece) for piece in pieces]),
        "whole_text": rate(lambda: rules.scan(text)),
        "messages_text": rate(lambda: [rules.scan(piece) for piece in texts]),
        "found": len(rules.scan(data)),
    }
    print(json.dumps(figures))


main()
