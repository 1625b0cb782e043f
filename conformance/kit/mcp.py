"""Plays the MCP clients of two hosts against a server on standard input and output.

Claude Code asks for `server/discover` first and falls back to `initialize` (2025-11-25); Codex begins with
`initialize` (2025-06-18). Both name the call in `_meta`.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any, Optional

#: Seconds for an answer, and for the end.
ANSWER = 10
END = 5

Object = dict[str, Any]


@dataclass
class Check:
    client: str
    rule: str
    passed: bool
    detail: str = ""


class Client:
    """A connection to a server."""

    def __init__(self, command: list[str], name: str) -> None:
        self.name = name
        self.folder = tempfile.TemporaryDirectory(prefix="conformance-")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=self.folder.name,
        )
        self.lines: Queue[Optional[bytes]] = Queue()
        self.foreign: list[str] = []
        self.next = 0
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def notify(self, method: str) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode())

    def request(self, method: str, params: Optional[Object] = None) -> Object:
        """The answer with the request's id; empty if there is none."""
        self.next += 1
        asked = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params or {}}
        self.write(json.dumps(asked).encode())
        while True:
            answer = self.receive(ANSWER)
            if answer is None or answer.get("id") == self.next:
                return answer or {}

    def receive(self, seconds: float) -> Optional[Object]:
        try:
            line = self.lines.get(timeout=seconds)
        except Empty:
            return None
        if line is None:
            # Also for whoever asks next.
            self.lines.put(None)
            return None
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
            self.foreign.append(line.decode(errors="replace")[:100])
            return {}
        return found

    def close(self) -> Optional[int]:
        """Closes the server's input; its exit code, or None if it had to be ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.listener.join(END)
            if self.process.stdout and not self.listener.is_alive():
                self.process.stdout.close()
            self.folder.cleanup()


def meta(client: str) -> Object:
    if client == "claude-code":
        return {"claudecode/toolUseId": f"toolu_{uuid.uuid4().hex[:12]}"}
    turn = {"session_id": str(uuid.uuid4()), "turn_id": str(uuid.uuid4()), "codex_version": "0.169.0"}
    return {"callId": f"call_{uuid.uuid4().hex[:8]}", "x-codex-turn-metadata": turn}


VERSIONS = {"claude-code": "2025-11-25", "codex": "2025-06-18"}
MODERN = "2026-07-28"


def check(command: list[str]) -> list[Check]:
    return [result for client in VERSIONS for result in checks(command, client)]


def checks(command: list[str], name: str) -> Iterator[Check]:
    client = Client(command, name)
    passed = lambda rule, truth, detail="": Check(name, rule, bool(truth), str(detail)[:200])  # noqa: E731
    if name == "claude-code":
        yield from discovers(client, passed)
    version = VERSIONS[name]
    info = {"name": name, "version": "1"}
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
    result = client.request("initialize", asked).get("result", {})
    named = result.get("serverInfo", {}).get("name") and "capabilities" in result
    yield passed("answers initialize with its name and capabilities", named, result)
    yield passed(f"speaks the client's version, {version}", result.get("protocolVersion") == version,
                 result.get("protocolVersion"))
    client.notify("notifications/initialized")
    yield passed("does not answer a notification", client.receive(0.3) is None)
    yield passed("answers ping", client.request("ping").get("result") == {})
    yield from lists(client, passed)
    yield from refuses(client, passed)
    client.write(b"this is not JSON")
    client.write(b"{\"jsonrpc\": \"2.0\", \"id\": ")
    yield passed("survives lines that are not JSON", client.request("ping").get("result") == {})
    yield passed("writes nothing but JSON-RPC on standard output", not client.foreign, client.foreign[:1])
    code = client.close()
    yield passed(f"ends within {END} s when its input ends", code == 0, f"exit code {code}")


def discovers(client: Client, passed: Any) -> Iterator[Check]:
    """A server of any age answers the probe of a new client: with what it speaks, or with an error."""
    key = "io.modelcontextprotocol"
    about = {f"{key}/protocolVersion": MODERN, f"{key}/clientCapabilities": {}}
    answer = client.request("server/discover", {"_meta": about})
    known = MODERN in answer.get("result", {}).get("supportedVersions", [])
    refused = answer.get("error", {}).get("code") in (-32601, -32022)
    yield passed("answers server/discover, or refuses it so that the client falls back", known or refused, answer)


def lists(client: Client, passed: Any) -> Iterator[Check]:
    first = client.request("tools/list").get("result", {}).get("tools", [])
    again = client.request("tools/list").get("result", {}).get("tools", [])
    yield passed("lists tools", first)
    yield passed("lists them in the same order again", first == again)
    bad = [tool.get("name") for tool in first if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", tool.get("name", ""))]
    yield passed("names them in letters, digits, `_`, `.` and `-`", not bad, bad)
    bad = [tool["name"] for tool in first if tool.get("inputSchema", {}).get("type") != "object"]
    yield passed("describes the input of each as an object", not bad, bad)
    bad = [tool["name"] for tool in first if not 0 < len(tool.get("description", "")) <= 4096]
    yield passed("describes each in at most 4,096 characters", not bad, bad)


def refuses(client: Client, passed: Any) -> Iterator[Check]:
    unknown = client.request("no/such/method").get("error", {}).get("code")
    yield passed("refuses an unknown method with -32601", unknown == -32601, unknown)

    def call(tool: str, arguments: Any) -> Object:
        params = {"name": tool, "arguments": arguments, "_meta": meta(client.name)}
        return client.request("tools/call", params)

    is_refusal = lambda answer: "error" in answer or answer.get("result", {}).get("isError")  # noqa: E731
    yield passed("refuses an unknown tool", is_refusal(call("no_such_tool", {})))
    tools = client.request("tools/list").get("result", {}).get("tools", [])
    strict = [tool["name"] for tool in tools if tool.get("inputSchema", {}).get("required")]
    if strict:
        answer = call(strict[0], {})
        told = is_refusal(answer) or refuses_in_words(answer)
        yield passed("refuses a call without its required arguments", told, answer)


def refuses_in_words(answer: Object) -> bool:
    """Whether a tool's own result says that the call was not accepted."""
    return (answer.get("result", {}).get("structuredContent") or {}).get("accepted") is False
