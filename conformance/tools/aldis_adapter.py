"""Aldis: `aldis scan`, once for each text. A claim is a signal that means done, approved or handed over.

    python3 aldis_adapter.py [COMMAND]      (default: aldis)

Text of a user or a tool reaches it the way it does in practice, inside a transcript.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from typing import Any

CLAIMS = {"approved", "done", "handoff"}


def data_of(row: dict[str, Any]) -> bytes:
    return row["text"].encode() if "text" in row else base64.b64decode(row["bytes"])


def transcript(row: dict[str, Any]) -> bytes:
    """A session of Claude Code in which a user or a tool wrote the text."""
    text = data_of(row).decode(errors="replace")
    content: Any = text
    if row["origin"] == "tool":
        content = [{"type": "tool_result", "tool_use_id": "t1", "content": text}]
    entries = [("user", "Go."), ("assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]),
               ("user", content), ("assistant", [{"type": "text", "text": "I continue."}])]
    lines = []
    for number, (role, content) in enumerate(entries):
        parent = f"u{number - 1}" if number else None
        lines.append({"type": role, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s",
                      "isSidechain": False, "message": {"role": role, "id": f"m{number}", "content": content}})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def main() -> None:
    words = sys.argv[1:] or ["aldis"]
    # The settings of nobody's project.
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            row = json.loads(line)
            own = row["origin"] == "assistant"
            data = data_of(row) if own else transcript(row)
            form = "text" if own else "claude-code"
            scan = [*words, "scan", "--dialect", row["dialect"], "--input", form, "--json", "-"]
            done = subprocess.run(scan, input=data, capture_output=True, cwd=folder)
            if done.returncode not in (0, 1):
                sys.exit(f"{row['id']}: {done.stderr.decode(errors='replace')}")
            found = [json.loads(it) for it in done.stdout.decode().splitlines()]
            claim = any(it["kind"] == "signal" and it["meaning"] in CLAIMS for it in found)
            print(json.dumps({"id": row["id"], "claim": claim}))


main()
