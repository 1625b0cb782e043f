#!/usr/bin/env python3
"""A more careful Stop hook of the usual kind: block until the signal is in the agent's last message, and let go
after ten blocks.

    last_message_hook.py LITERAL
"""

import json
import sys
from pathlib import Path

literal = sys.argv[1]
payload = json.load(sys.stdin)
count = Path(f"blocks-{payload['session_id']}")
blocks = int(count.read_text()) if count.exists() else 0
if literal not in (payload.get("last_assistant_message") or "") and blocks < 10:
    count.write_text(str(blocks + 1))
    print(json.dumps({"decision": "block", "reason": f"Continue. End your message with {literal} when it is done."}))
