"""What the Python patterns of seeds 000 and 001 find, run by Python itself.

Reads JSON lines of `id` and `text`, writes JSON lines of `id`, `caw` and `delivery`: for every match
of every pattern its key, the byte range, and the group. The tables are the seeds' own, as facts.
"""

import json
import re
import sys

CAW = [
    "EXPANSION_COMPLETE",
    "INIT_COMPLETE",
    "PLANNING_COMPLETE",
    "EXECUTION_COMPLETE",
    "QA_COMPLETE",
    "REVIEW_COMPLETE",
    "FIX_COMPLETE",
    "CHECK_COMPLETE",
    "REFLECT_COMPLETE",
    "AUTO_COMPLETE",
]
CAW_PATTERNS = {name: re.compile(r"SIGNAL:\s*" + name, re.IGNORECASE) for name in CAW}

DELIVERY_PATTERNS = {
    "ready_for_review": re.compile(r"^READY_FOR_REVIEW:\s*(\S+)", re.MULTILINE),
    "task_incomplete": re.compile(r"^TASK_INCOMPLETE:\s*(\S+)", re.MULTILINE),
    "infra_blocked": re.compile(r"^INFRA_BLOCKED:\s*(\S+)", re.MULTILINE),
    "review_passed": re.compile(r"^REVIEW_PASSED:\s*(\S+)", re.MULTILINE),
    "review_failed": re.compile(r"^REVIEW_FAILED:\s*(\S+)", re.MULTILINE),
    "audit_passed": re.compile(r"^AUDIT_PASSED:\s*(\S+)", re.MULTILINE),
    "audit_failed": re.compile(r"^AUDIT_FAILED:\s*(\S+)", re.MULTILINE),
    "audit_blocked": re.compile(r"^AUDIT_BLOCKED:\s*(\S+)", re.MULTILINE),
    "expanded_spec": re.compile(r"^EXPANDED_TASK_SPECIFICATION:\s*(\S+)", re.MULTILINE),
    "remediation_complete": re.compile(r"^REMEDIATION_COMPLETE$", re.MULTILINE),
    "health_healthy": re.compile(r"^HEALTH_AUDIT: HEALTHY$", re.MULTILINE),
    "health_unhealthy": re.compile(r"^HEALTH_AUDIT: UNHEALTHY$", re.MULTILINE),
    "divine_clarification": re.compile(r"^SEEKING_DIVINE_CLARIFICATION$", re.MULTILINE),
    "expert_request": re.compile(r"^EXPERT_REQUEST$", re.MULTILINE),
    "expert_advice": re.compile(r"^EXPERT_ADVICE:\s*(\S+)", re.MULTILINE),
    "expert_unsuccessful": re.compile(r"^EXPERT_UNSUCCESSFUL:\s*(\S+)", re.MULTILINE),
    "expert_created": re.compile(r"^EXPERT_CREATED:\s*(\S+)", re.MULTILINE),
    "file_conflict": re.compile(r"^FILE CONFLICT:\s*(\S+)", re.MULTILINE),
    "checkpoint": re.compile(r"^CHECKPOINT:\s*(\S+)", re.MULTILINE),
}


def matches(patterns, text):
    """Lists every match of every pattern, in text order, the patterns' order at one place."""
    found = []
    for order, (key, pattern) in enumerate(patterns.items()):
        for match in pattern.finditer(text):
            start = len(text[: match.start()].encode())
            end = start + len(match.group(0).encode())
            group = match.group(1) if match.lastindex else None
            found.append((start, order, [key, start, end, group]))
    return [row for _, _, row in sorted(found, key=lambda entry: entry[:2])]


def main():
    # Lines end at LF only: the texts hold every other kind of line end.
    for line in sys.stdin.buffer:
        row = json.loads(line)
        text = row["text"]
        golden = {
            "id": row["id"],
            "caw": matches(CAW_PATTERNS, text),
            "delivery": matches(DELIVERY_PATTERNS, text),
        }
        sys.stdout.buffer.write(json.dumps(golden, ensure_ascii=False).encode() + b"\n")


if __name__ == "__main__":
    main()
