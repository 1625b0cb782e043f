"""The corpus, and a scripted model on loopback."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def corpus() -> list[dict[str, Any]]:
    """What Rust finds in the texts and transcripts of testdata, as `scripts/bindings` has written it."""
    file = os.environ.get("ALDIS_CORPUS")
    if not file:
        pytest.fail("ALDIS_CORPUS is not set; run scripts/bindings python")
    return [json.loads(line) for line in Path(file).read_text("utf-8").rstrip("\n").split("\n")]


class Model:
    """Speaks Anthropic Messages (streaming), OpenAI Responses and OpenAI Chat Completions.

    ``answers`` are what it answers, one each turn, the last one again and again; ``requests`` are what
    it was sent."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def next(self) -> str:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    model: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        if self.path.split("?")[0].endswith("/messages"):
            self.answer_messages(body)
        elif self.path.endswith("/responses"):
            self.answer_responses(body)
        elif self.path.endswith("/chat/completions"):
            self.answer_chat(body)
        else:
            self.send(404, b"{}", "application/json")

    def do_GET(self) -> None:
        self.send(404, b"{}", "application/json")

    def do_HEAD(self) -> None:
        self.send(200, b"", "application/json")

    def answer_messages(self, body: dict[str, Any]) -> None:
        # Hosts also ask for titles and quotas; those requests carry no tools.
        main = bool(body.get("tools"))
        if main:
            self.model.requests.append(body)
        text = self.model.next() if main else "ok"
        message: dict[str, Any] = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
            "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        block = {"type": "text", "text": text}
        if not body.get("stream"):
            done = {**message, "content": [block], "stop_reason": "end_turn"}
            self.send(200, json.dumps(done).encode(), "application/json")
            return
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
             "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        self.send(200, stream.encode(), "text/event-stream")

    def answer_responses(self, body: dict[str, Any]) -> None:
        self.model.requests.append(body)
        content = [{"type": "output_text", "text": self.model.next(), "annotations": []}]
        message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                   "content": content}
        answer = {
            "id": "resp_1", "object": "response", "created_at": 0, "status": "completed",
            "model": body["model"], "output": [message], "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [],
        }
        self.send(200, json.dumps(answer).encode(), "application/json")

    def answer_chat(self, body: dict[str, Any]) -> None:
        self.model.requests.append(body)
        message = {"role": "assistant", "content": self.model.next()}
        answer = {
            "id": "chat_1", "object": "chat.completion", "created": 0, "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        self.send(200, json.dumps(answer).encode(), "application/json")

    def send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    handler = type("Bound", (Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield model
    server.shutdown()
    server.server_close()
