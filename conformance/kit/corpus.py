"""The labelled texts, and what a tool made of them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Text:
    """A line of corpus/v1.jsonl; corpus/v1.schema.json describes the members."""

    id: str
    set: str
    group: str
    dialect: str
    origin: str
    data: bytes
    literal: Optional[str]
    expected: str
    decided_by: Optional[str]
    why: str


def load(file: Path = HERE / "corpus/v1.jsonl") -> list[Text]:
    lines = file.read_text("utf-8").rstrip("\n").split("\n")
    return [text(json.loads(line)) for line in lines]


def text(row: dict[str, Any]) -> Text:
    if row["v"] != 1:
        raise ValueError(f"version {row['v']} of the corpus is not known to this kit")
    data = base64.b64decode(row["bytes"]) if "bytes" in row else row["text"].encode()
    names = ("id", "set", "group", "dialect", "origin", "literal", "expected", "decided_by", "why")
    return Text(data=data, **{name: row[name] for name in names})


@dataclass
class Score:
    """How often a tool was wrong. Slips have no wrong answer."""

    claims: int = 0
    misses: int = 0
    no_claims: int = 0
    false_stops: int = 0
    slips: int = 0
    slips_taken: int = 0
    unanswered: int = 0

    def add(self, text: Text, claim: Optional[bool]) -> None:
        """`claim` is what the tool says; None if it said nothing, which is counted as no claim too:
        a loop that gets no answer goes on."""
        self.unanswered += claim is None
        taken = bool(claim)
        if text.expected == "claim":
            self.claims += 1
            self.misses += not taken
        elif text.expected == "no_claim":
            self.no_claims += 1
            self.false_stops += taken
        else:
            self.slips += 1
            self.slips_taken += taken


def score(texts: list[Text], claims: dict[str, Optional[bool]]) -> Score:
    total = Score()
    for it in texts:
        total.add(it, claims.get(it.id))
    return total


def wrong(texts: list[Text], claims: dict[str, Optional[bool]]) -> list[Text]:
    right = {"claim": True, "no_claim": False}
    return [it for it in texts if it.expected in right and bool(claims.get(it.id)) != right[it.expected]]
