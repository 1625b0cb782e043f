"""The module itself: the corpus of the Rust tests, chunks, transcripts, errors, threads, memory."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import aldis
from conftest import ROOT, corpus

TESTDATA = ROOT / "testdata"
CLAIMS = {"approved", "done", "handoff"}
MEMBERS = [
    "kind", "counts", "dialect", "signal", "meaning", "subject", "payload", "progress", "fields",
    "warnings", "reason", "hint", "more", "via", "origin", "line", "column", "start", "end", "raw",
]


def plain(finding: aldis.Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in MEMBERS}


def in_order(findings: list[dict[str, Any]]) -> list[str]:
    """A stream gives findings when they are certain, so not in text order."""
    return sorted(json.dumps(finding, sort_keys=True) for finding in findings)


def test_every_text_of_the_corpus_is_judged_as_in_rust() -> None:
    rows = [row for row in corpus() if "input" in row]
    assert len(rows) > 2000
    for row in rows:
        rules = aldis.Rules(*row["dialects"], strict=row["strict"])
        text = row["input"].get("text")
        given = bytes(row["input"]["bytes"]) if text is None else text
        found = [plain(f) for f in rules.scan(given, origin=row["origin"])]
        assert found == row["findings"], row["name"]


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_chunks_of_the_corpus_do_not_matter(size: int) -> None:
    for row in corpus():
        if "input" not in row or row["strict"]:
            continue
        text = row["input"].get("text")
        data = bytes(row["input"]["bytes"]) if text is None else text.encode()
        scanner = aldis.Rules(*row["dialects"]).scanner(origin=row["origin"])
        found = [f for at in range(0, len(data), size) for f in scanner.push(data[at : at + size])]
        found += scanner.finish()
        assert in_order([plain(f) for f in found]) == in_order(row["findings"]), row["name"]


def test_every_transcript_is_read_as_in_rust() -> None:
    rows = [row for row in corpus() if "transcript" in row]
    assert len(rows) > 20
    for row in rows:
        read = aldis.read_transcript(TESTDATA / row["transcript"], rules=aldis.Rules())
        expected = row["messages"]
        assert len(read) == len(expected), row["transcript"]
        for got, want in zip(read, expected):
            findings = [plain(f) for f in got.findings]
            members = {name: getattr(got, name) for name in want if name != "findings"}
            assert {**members, "findings": findings} == want, row["transcript"]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (TESTDATA / name).read_text("utf-8").rstrip("\n").split("\n")]


def test_endings_are_judged_as_labelled() -> None:
    def claims(row: dict[str, Any]) -> bool:
        return any(f.counts and f.meaning in CLAIMS for f in aldis.scan(row["text"], row["dialect"]))

    assert [r for r in rows("conformance/endings.jsonl") if claims(r) != r["claim"]] == []


def test_hostile_files_are_judged_as_labelled() -> None:
    for row in rows("hostile/scan.jsonl"):
        if "priority rule" in row["attack"]:
            continue
        text = (TESTDATA / "hostile" / row["file"]).read_bytes()
        found = aldis.scan(text, row["dialect"])
        assert any(f.counts for f in found) == bool(row["accept"]), (row, found)


def test_only_the_agents_own_words_count() -> None:
    rules = aldis.Rules("chorus")
    origins: list[Any] = ["user", "tool", "system", "host"]
    for origin in origins:
        [found] = rules.scan("<chorus>COMPLETE</chorus>", origin=origin)
        assert (found.kind, found.reason) == ("near_miss", "untrusted_origin"), origin


def test_a_finding_has_all_its_members() -> None:
    [found] = aldis.Rules("pilot").scan(
        '```pilot-signal\n{"v": 2, "type": "status", "progress": 45, "extra": [1, {"a": null}]}\n```'
    )
    assert (found.kind, found.meaning, found.progress) == ("signal", "progress", 45)
    assert found.fields["extra"] == [1, {"a": None}]
    assert found.line == 1 and "pilot-signal" in found.raw
    assert repr(found) == "<signal pilot STATUS (progress) in line 1>"


def test_tokens() -> None:
    rules = aldis.Rules("chorus")
    [found] = rules.scan("<chorus>COMPLETE</chorus>", token="k3", require_token=True)
    assert found.reason == "wrong_token"
    [found] = rules.scan("<chorus>COMPLETE: #k3</chorus>", token="k3", require_token=True)
    assert found.via == "token"
    assert "k3" in rules.instructions("k3")


def test_a_dialect_of_ones_own() -> None:
    source = (ROOT / "crates/aldis-signal/src/dialect/builtin/promise.toml").read_text()
    rules = aldis.Rules(files=[source.replace('name = "promise"', 'name = "ours"')])
    assert rules.dialects == ["ours"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: aldis.Rules("chorous"), "no dialect is named `chorous`; there are caw"),
        (lambda: aldis.Rules("chorus=X"), "`chorus` has no"),
        (lambda: aldis.Rules(files=["name = 1"]), "line 1: missing field `syntax`"),
        (lambda: aldis.Rules().scan("", origin="me"), "no origin is named `me`"),  # type: ignore[arg-type]
        (lambda: aldis.Rules().scan("", require_token=True), "needs a `token`"),
        (lambda: aldis.read_transcript(b"", "word"), "no format is named `word`"),
    ],
)
def test_what_is_wrong_is_named(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        wrong()


def test_half_an_emoji_stops_nobody() -> None:
    rules = aldis.Rules("chorus")
    text = "Done \ud83d\n\n<chorus>COMPLETE</chorus>"
    [found] = rules.scan(text)
    assert (found.meaning, found.line) == ("done", 3)
    scanner = rules.scanner()
    assert [f.meaning for f in scanner.push(text) + scanner.finish()] == ["done"]


@pytest.mark.parametrize("wrong", [None, 1, ["x"]])
def test_only_texts_are_texts(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected str or bytes"):
        aldis.Rules("chorus").scan(wrong)


def test_threads_share_rules_and_scanners() -> None:
    rules = aldis.Rules("chorus")
    scanner = rules.scanner()
    wrong: list[object] = []

    def use() -> None:
        for _ in range(200):
            scanner.push("<chorus>PROGRESS: 4</chorus>\n")
            if [f.meaning for f in rules.scan("<chorus>COMPLETE</chorus>")] != ["done"]:
                wrong.append(1)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    scanner.finish()


def test_a_message_ends_once() -> None:
    scanner = aldis.Rules("chorus").scanner()
    scanner.finish()
    with pytest.raises(ValueError, match="make a new scanner"):
        scanner.push("x")


def test_explain() -> None:
    text = aldis.explain("I print <promise>COMPLETE</promise> later.", aldis.Rules("promise"))
    assert "does not count: in_sentence" in text
    assert aldis.explain("nothing") == "no signals and no near misses\n"


def test_other_threads_run_while_a_text_is_scanned() -> None:
    rules = aldis.Rules()
    text = b"The suite runs, and I look at what the build prints.\n" * 4_000_000
    ticks: list[float] = []
    ended = threading.Event()

    def tick() -> None:
        while not ended.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    rules.scan(text)
    end = time.monotonic()
    ended.set()
    thread.join()
    during = [at for at in ticks if begin < at < end]
    # One tick may be the moment before the lock was taken.
    assert len(during) > 5, f"{len(during)} ticks in {end - begin:.3f} s"


def test_adapters_are_short() -> None:
    for file in (ROOT / "bindings/python/python/aldis").glob("*.py"):
        assert len(file.read_text("utf-8").splitlines()) < 100, file.name


def test_examples() -> None:
    assert doctest.testmod(aldis).failed == 0
    ran = 0
    for page in ("bindings/python/README.md", "docs/embedding.md", "docs/questions/text-mention-termination.md"):
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL):
            try:
                exec(compile(block, page, "exec"), {"__name__": "example"})
            except ModuleNotFoundError as error:
                # The frameworks are installed where the adapters are tested, and not beside every Python.
                assert error.name in ("autogen_agentchat", "claude_agent_sdk")
                assert importlib.util.find_spec("langgraph") is None
            ran += 1
    assert ran >= 6


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_flat() -> None:
    rules = aldis.Rules()
    text = "Half of it.\n\n<chorus>PROGRESS: 45</chorus>\nSIGNAL: NOPE\n" * 4
    transcript = (
        b'{"type":"thread.started","thread_id":"t1"}\n{"type":"item.completed","item":'
        b'{"id":"i1","type":"agent_message","text":"<chorus>COMPLETE</chorus>"}}\n'
    )

    def resident() -> int:
        """In KiB."""
        return int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0])

    def use(times: int) -> int:
        for number in range(times):
            found = rules.scan(text)
            assert found[0].fields is not None
            if number % 10 == 0:
                scanner = rules.scanner()
                scanner.push(text)
                scanner.finish()
                aldis.read_transcript(transcript, rules=rules)
                aldis.Rules("chorus")
        return resident()

    before = use(20_000)
    assert use(100_000) - before < 4 * 1024, "KiB"
