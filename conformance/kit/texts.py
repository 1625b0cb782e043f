"""Asks any command about texts: text in, verdict out."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Optional

from .corpus import Text

#: Seconds for one text, and for all of them where one process is asked.
ONE = 20
ALL = 900

Claims = dict[str, Optional[bool]]


class ToolError(Exception):
    """The command did not do what its protocol asks for."""


def ask(command: list[str], texts: list[Text], protocol: str, folder: Optional[str] = None) -> Claims:
    """Returns what the command, run in a folder, says of each text: a claim, no claim, or None for no answer."""
    judge = by_exit if protocol == "exit" else by_lines
    return judge(command, texts, folder)


def by_exit(command: list[str], texts: list[Text], folder: Optional[str]) -> Claims:
    """One process a text, which it reads from standard input: 0 is a claim, 1 is none, anything else is
    no answer. `{literal}`, `{dialect}` and `{origin}` in the command are the text's."""
    return {text.id: exit_of(command, text, folder) for text in texts}


def exit_of(command: list[str], text: Text, folder: Optional[str]) -> Optional[bool]:
    values = {"literal": text.literal or "", "dialect": text.dialect, "origin": text.origin}
    words = []
    for word in command:
        for name, value in values.items():
            word = word.replace("{" + name + "}", value)
        words.append(word)
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            input=text.data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=ONE,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        raise ToolError(f"{words[0]}: {error}") from error
    return {0: True, 1: False}.get(done.returncode)


def by_lines(command: list[str], texts: list[Text], folder: Optional[str]) -> Claims:
    """One process for all. It reads one JSON object a line (`id`, `text` or `bytes`, `literal`, `dialect`,
    `origin`) and answers each with one: `{"id": ..., "claim": true | false | null}`."""
    asked = "".join(json.dumps(request(text)) + "\n" for text in texts)
    try:
        done = subprocess.run(command, cwd=folder, input=asked.encode(), capture_output=True, timeout=ALL)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{command[0]}: no end after {ALL} s") from error
    except OSError as error:
        raise ToolError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise ToolError(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')[-2000:]}")
    claims: Claims = {}
    for line in done.stdout.decode().splitlines():
        # Tools print what they like; answers are the lines that look like one.
        if line.startswith("{"):
            answer = json.loads(line)
            claims[answer["id"]] = answer["claim"]
    missing = [text.id for text in texts if text.id not in claims]
    if missing:
        raise ToolError(f"{command[0]}: no answer for {len(missing)} texts, the first is {missing[0]}")
    return claims


def request(text: Text) -> dict[str, Optional[str]]:
    made: dict[str, Optional[str]] = {
        "id": text.id, "literal": text.literal, "dialect": text.dialect, "origin": text.origin,
    }
    try:
        made["text"] = text.data.decode()
    except UnicodeDecodeError:
        made["bytes"] = base64.b64encode(text.data).decode()
    return made
