"""The kit itself: python3 -m unittest discover -s conformance/tests"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from kit import corpus, hooks, mcp, texts, tools  # noqa: E402
from kit.hosts import HOSTS, ClaudeCode, Codex  # noqa: E402

LITERAL = "<promise>COMPLETE</promise>"


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").rstrip("\n").split("\n")]


def problems(value: Any, schema: Any, root: Any, at: str = "") -> list[str]:
    """What is wrong with a value, by the part of JSON Schema that the schemas of the kit use."""
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, at)
    found = []
    names = {"string": str, "null": type(None), "object": dict, "array": list, "integer": int}
    kinds = schema.get("type", list(names))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(value, tuple(names[kind] for kind in kinds)):
        return [f"{at}: not {kinds}"]
    if "enum" in schema and value not in schema["enum"] or value != schema.get("const", value):
        found.append(f"{at}: {value!r} is not allowed")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{at}: {value!r} does not match")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{at}.{key} is missing" for key in schema.get("required", []) if key not in value]
        found += [f"{at}.{key} is unknown" for key in value if key not in known]
        choices = schema.get("oneOf", [{}])
        if sum(set(choice.get("required", [])) <= set(value) for choice in choices) != 1:
            found.append(f"{at}: not one of {choices}")
        for key in set(known) & set(value):
            found += problems(value[key], known[key], root, f"{at}.{key}")
    for number, item in enumerate(value if isinstance(value, list) else []):
        found += problems(item, schema.get("items", {}), root, f"{at}[{number}]")
    return found


class Data(unittest.TestCase):
    def check(self, value: Any, schema: str) -> None:
        root = json.loads((HERE / schema).read_text("utf-8"))
        self.assertEqual(problems(value, root, root), [])

    def test_every_text_fits_the_schema(self) -> None:
        for row in lines("corpus/v1.jsonl"):
            self.check(row, "corpus/v1.schema.json")

    def test_the_scenarios_fit_the_schema(self) -> None:
        self.check(json.loads((HERE / "corpus/hooks-v1.json").read_text("utf-8")), "corpus/hooks-v1.schema.json")

    def test_the_schemas_refuse_what_is_wrong(self) -> None:
        schema = json.loads((HERE / "corpus/v1.schema.json").read_text("utf-8"))
        good = lines("corpus/v1.jsonl")[0]
        for wrong in ({"v": 2}, {"origin": "me"}, {"bytes": "AA=="}, {"more": 1}, {"literal": 1}, {"id": ""}):
            self.assertTrue(problems({**good, **wrong}, schema, schema), wrong)
        self.assertTrue(problems({key: good[key] for key in good if key != "text"}, schema, schema))

    def test_ids_are_unique_and_both_verdicts_are_there_in_every_dialect(self) -> None:
        found = corpus.load()
        self.assertEqual(len({it.id for it in found}), len(found))
        self.assertGreater(len(found), 600)
        for dialect in {it.dialect for it in found} - {"event"}:
            expected = {it.expected for it in found if it.dialect == dialect}
            self.assertLessEqual({"claim", "no_claim"}, expected, dialect)

    def test_it_is_what_the_test_data_give(self) -> None:
        if sys.version_info < (3, 11) or not (HERE.parent / "testdata").is_dir():
            self.skipTest("needs tomllib and the project")
        subprocess.run([sys.executable, str(HERE / "build-corpus"), "--check"], check=True)

    def test_every_tool_names_its_version_and_what_was_adapted(self) -> None:
        for tool in tools.load():
            self.assertTrue(tool.adapted.endswith("."), tool.id)
            self.assertEqual(tool.package is None, tool.version is None, tool.id)
            script = [word for word in tool.command if word.startswith("tools/")]
            self.assertTrue(all((HERE / word).is_file() for word in script), tool.id)


def text(expected: str, data: bytes = b"", id: str = "t") -> corpus.Text:
    return corpus.Text(id, "endings", "g", "promise", "assistant", data, LITERAL, expected, None, "why")


class Scores(unittest.TestCase):
    def test_scores(self) -> None:
        rows = [("claim", True, 0, 0), ("claim", False, 1, 0), ("claim", None, 1, 0), ("no_claim", True, 0, 1),
                ("no_claim", False, 0, 0), ("no_claim", None, 0, 0), ("slip", True, 0, 0)]
        for expected, claim, misses, stops in rows:
            it = corpus.score([text(expected)], {"t": claim})
            self.assertEqual((it.misses, it.false_stops), (misses, stops), (expected, claim))
            self.assertEqual(bool(corpus.wrong([text(expected)], {"t": claim})), bool(misses or stops))


class Commands(unittest.TestCase):
    def test_exit_codes_are_verdicts(self) -> None:
        given = text("claim", b"a\n" + LITERAL.encode())
        for command, claim in [
            (["grep", "-qF", "{literal}"], True),
            (["grep", "-q", "{origin}"], False),
            (["sh", "-c", "exit 3"], None),
        ]:
            self.assertEqual(texts.ask(command, [given], "exit"), {"t": claim}, command)
        with self.assertRaises(texts.ToolError):
            texts.ask(["no-such-command"], [given], "exit")

    def test_lines(self) -> None:
        given = [text("claim", b"x"), text("claim", b"\xff", "u")]
        echo = (
            "import json, sys\nprint('hello')\nfor line in sys.stdin:\n row = json.loads(line)\n"
            " print(json.dumps({'id': row['id'], 'claim': 'text' in row}))"
        )
        self.assertEqual(texts.ask([sys.executable, "-c", echo], given, "jsonl"), {"t": True, "u": False})
        for silent in ("pass", "raise SystemExit(1)"):
            with self.assertRaises(texts.ToolError):
                texts.ask([sys.executable, "-c", silent], given, "jsonl")


class Hosts(unittest.TestCase):
    def test_answers_are_read_as_the_hosts_do(self) -> None:
        block = '{"decision": "block", "reason": "go on"}'
        rows = [
            # exit code, standard output, standard error, Claude Code, Codex
            (0, "", "", "allow", "allow"),
            (0, block, "", "block", "block"),
            (0, '{"decision": "block"}', "", "broken", "broken"),
            (0, '{"continue": false, "decision": "block", "reason": "x"}', "", "allow", "allow"),
            (0, "all is well", "", "allow", "broken"),
            (0, '{"decision": ', "", "broken", "broken"),
            (0, '{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "x"}}', "", "block", "broken"),
            (2, "", "go on", "block", "block"),
            (2, "", "", "block", "broken"),
            (1, "", "oops", "broken", "broken"),
            (1, block, "", "block", "broken"),
        ]
        for code, out, errors, claude, codex in rows:
            done = subprocess.CompletedProcess([], code, out.encode(), errors.encode())
            for host, word in ((ClaudeCode, claude), (Codex, codex)):
                self.assertEqual(host.read(host.__new__(host), done).word, word, (host.name, code, out))

    def play(self, script: str, host: str = "claude-code") -> dict[str, str]:
        # A shell starts at once; some sessions have sixty stops.
        results = hooks.play_all(["sh", "-c", script], [host], LITERAL, None, False)
        return {it.scenario: it.word for it in results}

    def test_a_hook_that_never_blocks_ends_everything_falsely(self) -> None:
        words = self.play("cat >/dev/null")
        self.assertEqual({words.pop("never-done"), words.pop("not-json")}, {"right"})
        self.assertEqual(set(words.values()), {"false stop"})

    def test_a_hook_that_always_blocks_is_found_out(self) -> None:
        for host in HOSTS:
            words = self.play("cat >/dev/null; echo 'go on' >&2; exit 2", host)
            self.assertEqual(set(words.values()), {"miss"}, host)

    def test_sessions_see_nothing_of_the_caller(self) -> None:
        script = """
            input=$(cat)
            transcript=$(printf '%s' "$input" | sed -n 's/.*"transcript_path": "\\([^"]*\\)".*/\\1/p')
            case "$transcript" in '' | "$HOME"/*) ;; *) exit 3 ;; esac
            { [ -z "$transcript" ] || [ -f "$transcript" ]; } && [ -d .git ] && [ -z "$CANARY" ] || exit 3
            echo '{"decision": "block", "reason": "x"}'
        """
        os.environ["CANARY"] = "sings"
        self.addCleanup(os.environ.pop, "CANARY")
        for host in HOSTS:
            words = self.play(script, host)
            self.assertEqual(set(words.values()), {"miss"}, host)


SERVER = """
import json, sys
for line in sys.stdin:
    try:
        asked = json.loads(line)
    except ValueError:
        continue
    method, id = asked["method"], asked.get("id")
    if id is None:
        continue
    tool = {"name": "done", "description": "d", "inputSchema": {"type": "object", "required": ["a"]}}
    params = asked.get("params", {})
    answer = {
        "initialize": {"result": {"protocolVersion": params.get("protocolVersion"), "capabilities": {},
                                  "serverInfo": {"name": "s"}}},
        "ping": {"result": {}},
        "tools/list": {"result": {"tools": [tool]}},
        "tools/call": {"error": {"code": -32602, "message": "m"}},
    }.get(method, {"error": {"code": -32601, "message": "m"}})
    print(json.dumps({"jsonrpc": "2.0", "id": id, **answer}), flush=True)
"""


class Servers(unittest.TestCase):
    def failed(self, script: str) -> set[str]:
        return {it.rule for it in mcp.check([sys.executable, "-c", script]) if not it.passed}

    def test_a_server_that_keeps_the_contract_passes(self) -> None:
        self.assertEqual(self.failed(SERVER), set())

    def test_what_a_server_does_wrong_is_found(self) -> None:
        for before, after, rule in [
            ("import json, sys\n", "import json, sys\nprint('starting', flush=True)\n",
             "writes nothing but JSON-RPC on standard output"),
            ("        continue\n    method", "        raise\n    method", "survives lines that are not JSON"),
            ('"name": "done"', '"name": "all done"', "names them in letters, digits, `_`, `.` and `-`"),
            ("-32601", "-32600", "refuses an unknown method with -32601"),
            ('"tools/call": {"error": {"code": -32602, "message": "m"}}', '"tools/call": {"result": {"content": []}}',
             "refuses an unknown tool"),
            ("if id is None:\n        continue", "if id is None:\n        id = 0", "does not answer a notification"),
        ]:
            self.assertIn(before, SERVER)
            self.assertIn(rule, self.failed(SERVER.replace(before, after)))


if __name__ == "__main__":
    unittest.main()
