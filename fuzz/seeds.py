"""Makes the fuzzers' first inputs from the test data, one directory a target.

An input is a text and eight bytes behind it (see `src/lib.rs`): a choice, where and how to pad, and
five chunk lengths, of which 255 is all the rest.
"""

import hashlib
import json
import pathlib
import sys

# As long as `scripts/fuzz` lets an input be: short ones run fast, and say as much.
TEXT_MAX = {"scan": 1024 - 8, "transcript": 2048 - 8, "dialect": 2048 - 8, "hook": 2048 - 8}
CUTS = [bytes([255] * 5), bytes([7] * 5), bytes([1, 64, 3, 200, 255])]
FORMATS = [
    "acp", "antigravity", "antigravity", "claude_code", "amp", "cline", "codex", "codex", "copilot",
    "cursor", "cursor", "droid", "droid", "gemini", "gemini", "goose", "kimi", "kimi", "kiro",
    "opencode", "pi",
]  # fmt: skip
DETECT = 31
SIGNALS_ONLY = 32

root = pathlib.Path(__file__).resolve().parent.parent
testdata = root / "testdata"


def write(target, text, choices):
    """Writes a text, the start and the end of a long one."""
    folder = root / "fuzz" / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    most = TEXT_MAX[target]
    for part in {text[:most], text[-most:]}:
        for choice in choices:
            for lengths in CUTS:
                seed = part + bytes([choice, 0, 0]) + lengths
                (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


def conformance():
    """Yields the texts of the labelled cases."""
    for file in sorted((testdata / "conformance").glob("*.jsonl")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            for text in (row.get("input"), row.get("text")):
                if isinstance(text, str):
                    yield text.encode()


def scan():
    hostile = sorted(p for p in (testdata / "hostile").iterdir() if p.suffix in (".txt", ".md"))
    for text in [p.read_bytes() for p in hostile] + list(conformance()):
        write("scan", text, [0])


def transcript():
    for file in sorted((testdata / "hosts" / "samples").rglob("*.json*")):
        host = file.relative_to(testdata / "hosts" / "samples").parts[0]
        formats = [index for index, name in enumerate(FORMATS) if name == host]
        write("transcript", file.read_bytes(), [*formats, *(f | SIGNALS_ONLY for f in formats), DETECT])
    for file in sorted((testdata / "hostile").glob("*.json*")):
        claude = FORMATS.index("claude_code")
        write("transcript", file.read_bytes(), [claude, claude | SIGNALS_ONLY, DETECT])


def dialect():
    builtin = root / "crates" / "aldis-signal" / "src" / "dialect" / "builtin"
    for file in [*sorted(builtin.glob("*.toml")), *sorted((root / "examples").rglob("*.toml"))]:
        write("dialect", file.read_bytes(), [0])


def hook():
    files = [*(testdata / "hosts" / "samples").rglob("*.json"), *(testdata / "hostile").glob("hook_*")]
    for file in sorted(files):
        write("hook", file.read_bytes(), range(10))


{"scan": scan, "transcript": transcript, "dialect": dialect, "hook": hook}[sys.argv[1]]()
