"""Plays the scenarios of corpus/hooks-v1.json against a Stop hook."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .corpus import HERE
from .hosts import HOSTS, Answer, Host

Step = dict[str, Any]


@dataclass
class Result:
    """How a hook did in a scenario: `right`, `false stop`, `miss` or `broken`."""

    host: str
    scenario: str
    word: str
    detail: str = ""


def scenarios(file: Path = HERE / "corpus/hooks-v1.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    if found["v"] != 1:
        raise ValueError(f"version {found['v']} of the scenarios is not known to this kit")
    return found


def play_all(
    command: list[str], hosts: list[str], literal: str, setup: Optional[str], events: bool
) -> list[Result]:
    data = scenarios()
    results = []
    for name in hosts:
        for scenario in data["scenarios"]:
            if name in scenario.get("hosts", [name]):
                words = [word.replace("{host}", name) for word in command]
                session = HOSTS[name](words, setup)
                try:
                    word, detail = play(session, data["prompt"], scenario["steps"], literal, events)
                finally:
                    session.close()
                results.append(Result(name, scenario["id"], word, detail))
    return results


def play(
    session: Host, prompt: str, steps: list[Step], literal: str, events: bool
) -> tuple[str, str]:
    prompt = prompt.replace("{literal}", literal)
    if events:
        for payload in session.start_payloads(prompt):
            session.send(payload)
    session.prompted(prompt)
    for number, step in enumerate(steps, 1):
        filled = {
            key: value.replace("{literal}", literal) if isinstance(value, str) else value
            for key, value in step.items()
        }
        answer, stops = take(session, filled)
        # An error lets the agent stop on both hosts, which is all that a hook can do with such input.
        if "raw" in step and answer.word == "broken":
            continue
        if answer.word != step["expect"]:
            words = {"allow": "false stop", "block": "miss", "broken": "broken"}
            detail = answer.reason if answer.word == "broken" else f"at stop {number}"
            if stops > 1:
                detail = f"still blocks after {stops} stops"
            return words[answer.word], detail
    return "right", ""


def take(session: Host, step: Step) -> tuple[Answer, int]:
    """One step: what happened before, and the stop; its answer, and how many stops it took."""
    if "raw" in step:
        return session.hook(step["raw"].encode()), 1
    if "tool" in step:
        session.tool_said(step["tool"])
    if "subagent" in step:
        session.subagent_said(step["subagent"])
    if step.get("session") == "other":
        session = session.other_session()
    message = step["message"]
    stops = 0
    while True:
        stops += 1
        if step.get("transcript") != "late":
            session.said(message)
        given = None if step.get("payload") == "without_message" else message
        answer = session.stop(given, background=step.get("background"))
        if step.get("transcript") == "late":
            session.said(message)
        if answer.word != "block" or stops >= step.get("within", 1):
            return answer, stops
