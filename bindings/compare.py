"""Runs the measurements of all languages in turns, prints their best figures, and fails if a binding is
too slow against Rust: `scripts/bindings bench`."""

from __future__ import annotations

import argparse
import json
import shlex
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
    best: dict[str, dict[str, float]] = {name: {} for name in commands}
    # In turns: what else the machine does meets all of them.
    for _ in range(ROUNDS):
        for name, command in commands.items():
            words = [*shlex.split(command), options.text]
            figures = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
            for row, figure in figures.items():
                best[name][row] = max(figure, best[name].get(row, 0))
    reference, *others = commands
    found = {figures["found"] for figures in best.values()}
    if len(found) != 1:
        print(f"error: they do not find the same: {best}", file=sys.stderr)
        return 1
    print(f"MB/s, best of {ROUNDS} rounds in turns; percent of {reference}")
    failed = False
    for row, title in ROWS.items():
        base = best[reference][SHOWN.get(row, row)]
        cells = [f"{reference} {base:7.0f}"]
        for name in others:
            percent = 100 * best[name][row] / base
            failed |= row not in SHOWN and percent < options.min
            cells.append(f"{name} {best[name][row]:7.0f} ({percent:3.0f} %)")
        print(f"{title:28}", "   ".join(cells))
    if failed:
        print(f"error: bytes must reach {options.min} %", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
