"""Runs the measurements of all languages in turns, compares each round with the first language's figure in
that round, and fails if a binding's median is too low: `scripts/bindings bench`."""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys

ROUNDS = 5
ROWS = {
    "whole": "one text of 100 MB, bytes",
    "messages": "messages of 8 KiB, bytes",
    "whole_text": "one text of 100 MB, string",
    "messages_text": "messages of 8 KiB, strings",
}
# Rust has no strings that must be converted, so these are compared with its bytes. They are shown, and
# not judged: converting a string is the language's own work.
SHOWN = {"whole_text": "whole", "messages_text": "messages"}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND", help="the first is compared with")
    parser.add_argument("--min", type=int, required=True, help="percent of the first")
    options = parser.parse_args()
    commands = dict(command.split("=", 1) for command in options.commands)
    rounds: list[dict[str, dict[str, float]]] = []
    # In turns: what else the machine does meets all of them.
    for _ in range(ROUNDS):
        measured = {}
        for name, command in commands.items():
            words = [*shlex.split(command), options.text]
            printed = subprocess.run(words, check=True, capture_output=True).stdout
            measured[name] = json.loads(printed)
        rounds.append(measured)
    if len({figures["found"] for measured in rounds for figures in measured.values()}) != 1:
        print(f"error: they do not find the same: {rounds}", file=sys.stderr)
        return 1
    reference, *others = commands
    print(f"MB/s and percent of {reference} in the same round, medians of {ROUNDS} rounds in turns")
    failed = False
    for row, title in ROWS.items():
        base = SHOWN.get(row, row)
        speed = statistics.median(measured[reference][base] for measured in rounds)
        cells = [f"{reference} {speed:7.0f}"]
        for name in others:
            speed = statistics.median(measured[name][row] for measured in rounds)
            percent = statistics.median(
                100 * measured[name][row] / measured[reference][base] for measured in rounds
            )
            failed |= row not in SHOWN and percent < options.min
            cells.append(f"{name} {speed:7.0f} ({percent:3.0f} %)")
        print(f"{title:28}", "   ".join(cells))
    if failed:
        print(f"error: bytes must reach {options.min} %", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
