"""Plays the Stop hook of a host against any command: what the host sends, and what it makes of the answer.

Two hosts are played: Claude Code 2.1 and Codex 0.169. Each session has its own home, project and
transcript, and the command sees nothing of the caller's.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Optional

#: Seconds that a hook has. The hosts give it more (60 s and 600 s); people do not wait so long.
TIMEOUT = 10

Payload = dict[str, Any]


class Answer:
    """What a hook answered, as the host reads it: `block`, `allow` or `broken`, and why."""

    def __init__(self, word: str, reason: str = "") -> None:
        self.word = word
        self.reason = reason


class Host:
    """One session of a host in a new project."""

    name = ""
    folder = ""
    #: How many blocked stops in a row the host allows; None if there is no limit.
    block_cap: Optional[int] = None

    def __init__(self, command: list[str], setup: Optional[str]) -> None:
        self.command = command
        self.root = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.home = self.root / "home"
        self.project = self.root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.session = str(uuid.uuid4())
        self.turn = str(uuid.uuid4())
        self.now = datetime.now(timezone.utc)
        self.active = False
        self.calls = 0
        self.transcript = self.transcript_path(self.session)
        self.transcript.parent.mkdir(parents=True)
        self.begin()
        self.run(["git", "init", "-q", "-b", "main", "."], b"")
        if setup:
            done = self.run(["sh", "-c", setup], b"")
            if done.returncode:
                output = (done.stdout + done.stderr).decode(errors="replace")
                raise RuntimeError(f"the setup command failed:\n{output}")

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        return {**kept, "HOME": str(self.home), "NO_COLOR": "1", "CONFORMANCE_SESSION": self.session}

    def run(self, command: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=TIMEOUT, cwd=self.project,
            env=self.environment(),
        )

    def hook(self, stdin: bytes) -> Answer:
        self.calls += 1
        try:
            return self.read(self.run(self.command, stdin))
        except subprocess.TimeoutExpired:
            return Answer("broken", f"no answer within {TIMEOUT} s")

    def send(self, payload: Payload) -> Answer:
        return self.hook(json.dumps(payload).encode())

    def stop(self, message: Optional[str], **more: Any) -> Answer:
        """The agent stops. After a block it is told why and continues."""
        answer = self.send(self.stop_payload(message, **more))
        self.active = answer.word == "block"
        if self.active:
            self.feedback(answer.reason)
        return answer

    def other_session(self) -> Host:
        """Another session of the same project, for one stop."""
        other = copy.copy(self)
        other.session, other.turn, other.active = str(uuid.uuid4()), str(uuid.uuid4()), False
        other.transcript = other.transcript_path(other.session)
        other.begin()
        other.prompted("What is wrong with the README?")
        return other

    def at(self) -> str:
        self.now += timedelta(seconds=1)
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03}Z"

    def write(self, entry: Payload) -> None:
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    # What differs between hosts.

    def transcript_path(self, session: str) -> Path:
        raise NotImplementedError

    def begin(self) -> None:
        """What the host writes at the start of a transcript."""

    def start_payloads(self, prompt: str) -> list[Payload]:
        raise NotImplementedError

    def stop_payload(self, message: Optional[str], **more: Any) -> Payload:
        raise NotImplementedError

    def prompted(self, text: str) -> None:
        raise NotImplementedError

    def said(self, text: str) -> None:
        raise NotImplementedError

    def tool_said(self, text: str) -> None:
        raise NotImplementedError

    def subagent_said(self, text: str) -> None:
        raise NotImplementedError

    def feedback(self, reason: str) -> None:
        raise NotImplementedError

    def read(self, done: subprocess.CompletedProcess[bytes]) -> Answer:
        raise NotImplementedError


class ClaudeCode(Host):
    name = "claude-code"
    block_cap = 8

    def transcript_path(self, session: str) -> Path:
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(self.project))
        return self.home / ".claude/projects" / slug / f"{session}.jsonl"

    def begin(self) -> None:
        self.last: Optional[str] = None

    def entry(self, kind: str, content: Any, **more: Any) -> None:
        id = str(uuid.uuid4())
        message: Payload = {"role": kind, "content": content}
        if kind == "assistant":
            message.update(id=f"msg_{id[:8]}", type="message", model="claude-opus-5", stop_reason="end_turn")
        self.write({
            "parentUuid": self.last, "isSidechain": False, "userType": "external", "cwd": str(self.project),
            "sessionId": self.session, "version": "2.1.326", "gitBranch": "main", "type": kind,
            "message": message, "uuid": id, "timestamp": self.at(), **more,
        })
        self.last = id

    def common(self, event: str) -> Payload:
        return {
            "session_id": self.session, "transcript_path": str(self.transcript),
            "cwd": str(self.project), "permission_mode": "default", "hook_event_name": event,
        }

    def start_payloads(self, prompt: str) -> list[Payload]:
        return [
            {**self.common("SessionStart"), "source": "startup", "model": "claude-opus-5"},
            {**self.common("UserPromptSubmit"), "prompt": prompt, "source": "user"},
        ]

    def stop_payload(self, message: Optional[str], **more: Any) -> Payload:
        made = {**self.common("Stop"), "stop_hook_active": self.active}
        if message is not None:
            made.update(last_assistant_message=message, background_tasks=[], session_crons=[])
        if more.get("background"):
            task = {"id": "b1", "type": "shell", "status": "running", "description": "the test suite"}
            made["background_tasks"] = [task]
        return made

    def prompted(self, text: str) -> None:
        self.entry("user", text, origin={"kind": "human"}, promptSource="typed")

    def said(self, text: str) -> None:
        self.entry("assistant", [{"type": "text", "text": text}])

    def tool_said(self, text: str) -> None:
        id = f"toolu_{uuid.uuid4().hex[:12]}"
        read = {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "README.md"}}
        self.entry("assistant", [read])
        self.entry("user", [{"type": "tool_result", "tool_use_id": id, "content": text}])

    def subagent_said(self, text: str) -> None:
        self.entry("assistant", [{"type": "text", "text": text}], isSidechain=True)

    def feedback(self, reason: str) -> None:
        self.entry("user", f"Stop hook feedback:\n{reason}", isMeta=True)

    def read(self, done: subprocess.CompletedProcess[bytes]) -> Answer:
        text = done.stdout.decode(errors="replace").strip()
        found: Any = None
        if text.startswith("{"):
            try:
                found = json.loads(text)
            except ValueError:
                return Answer("broken", f"standard output is not one JSON object: {text[:200]}")
        if done.returncode == 2:
            reason = found.get("reason") if found else done.stderr.decode(errors="replace")
            return Answer("block", reason or "")
        if done.returncode and not found:
            return Answer("broken", f"exit code {done.returncode}")
        if not found or found.get("continue") is False:
            return Answer("allow")
        more = (found.get("hookSpecificOutput") or {}).get("additionalContext")
        if found.get("decision") == "block":
            reason = found.get("reason")
            return Answer("block", reason) if reason else Answer("broken", "a block without a reason")
        return Answer("block", more) if more else Answer("allow")


class Codex(Host):
    name = "codex"
    block_cap = None
    #: What the host takes; anything else makes the whole answer invalid.
    keys = {"continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason"}

    def transcript_path(self, session: str) -> Path:
        return self.home / ".codex/sessions/2026/11/15" / f"rollout-2026-11-15T09-00-00-{session}.jsonl"

    def begin(self) -> None:
        self.line("session_meta", {
            "id": self.session, "session_id": self.session, "cwd": str(self.project),
            "originator": "codex_cli_rs", "cli_version": "0.169.0", "source": "cli", "history_mode": "legacy",
        })
        self.line("turn_context", {"turn_id": self.turn, "cwd": str(self.project), "model": "gpt-5.5-codex"})

    def line(self, kind: str, payload: Payload) -> None:
        self.write({"timestamp": self.at(), "type": kind, "payload": payload})

    def message(self, role: str, kind: str, text: str, **more: Any) -> None:
        content = [{"type": kind, "text": text}]
        self.line("response_item", {"type": "message", "role": role, "content": content, **more})

    def common(self, event: str) -> Payload:
        return {
            "session_id": self.session, "transcript_path": str(self.transcript),
            "cwd": str(self.project), "hook_event_name": event, "model": "gpt-5.5-codex",
            "permission_mode": "default",
        }

    def start_payloads(self, prompt: str) -> list[Payload]:
        return [
            {**self.common("SessionStart"), "source": "startup"},
            {**self.common("UserPromptSubmit"), "turn_id": self.turn, "prompt": prompt},
        ]

    def stop_payload(self, message: Optional[str], **more: Any) -> Payload:
        return {
            **self.common("Stop"), "turn_id": self.turn, "stop_hook_active": self.active,
            "last_assistant_message": message,
        }

    def prompted(self, text: str) -> None:
        self.message("user", "input_text", text)
        self.line("event_msg", {"type": "user_message", "message": text})

    def said(self, text: str) -> None:
        self.message("assistant", "output_text", text, phase="final_answer")
        self.line("event_msg", {"type": "agent_message", "message": text})

    def tool_said(self, text: str) -> None:
        id = f"call_{uuid.uuid4().hex[:12]}"
        arguments = json.dumps({"cmd": "cat README.md"})
        call = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": id}
        self.line("response_item", call)
        self.line("response_item", {"type": "function_call_output", "call_id": id, "output": text})

    def feedback(self, reason: str) -> None:
        escaped = reason.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        text = f'<hook_prompt hook_run_id="{uuid.uuid4()}">{escaped}</hook_prompt>'
        self.message("user", "input_text", text)

    def read(self, done: subprocess.CompletedProcess[bytes]) -> Answer:
        text, errors = done.stdout.decode(errors="replace").strip(), done.stderr.decode(errors="replace")
        if done.returncode == 2:
            return Answer("block", errors) if errors.strip() else Answer("broken", "exit code 2 says nothing")
        if done.returncode:
            return Answer("broken", f"exit code {done.returncode}")
        if not text:
            return Answer("allow")
        try:
            found = json.loads(text)
        except ValueError:
            return Answer("broken", f"standard output is not one JSON object: {text[:200]}")
        if not isinstance(found, dict) or set(found) - self.keys:
            return Answer("broken", f"members that Codex refuses: {text[:200]}")
        if found.get("continue") is False or found.get("decision") != "block":
            return Answer("allow")
        reason = (found.get("reason") or "").strip()
        return Answer("block", reason) if reason else Answer("broken", "a block without a reason")


HOSTS: dict[str, type[Host]] = {host.name: host for host in (ClaudeCode, Codex)}
