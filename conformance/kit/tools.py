"""The public tools: installs each, alone and at one version, and asks it about texts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .corpus import HERE, Text
from .texts import Claims, ToolError, ask

FOLDER = HERE / "target"


@dataclass(frozen=True)
class Tool:
    """An entry of tools/tools.json."""

    id: str
    name: str
    registry: str
    #: The one signal it knows, or `any`.
    literal: str
    #: Whose messages it looks at.
    origins: tuple[str, ...]
    command: tuple[str, ...]
    #: What was done to make it answer.
    adapted: str
    protocol: str = "jsonl"
    package: Optional[str] = None
    version: Optional[str] = None

    @property
    def folder(self) -> Path:
        return FOLDER / self.id

    def takes(self, text: Text) -> bool:
        """Whether it can be asked: it sees such messages, and can be set to the signal."""
        if text.origin not in self.origins or text.literal is None:
            return False
        return self.literal in ("any", text.literal)


def load() -> list[Tool]:
    found: dict[str, Any] = json.loads((HERE / "tools/tools.json").read_text("utf-8"))
    tools = []
    for entry in found["tools"]:
        lists = {key: tuple(entry[key]) for key in ("origins", "command")}
        tools.append(Tool(**{**entry, **lists}))
    return tools


def install(tool: Tool) -> None:
    """From its registry, by name and version, into a folder of its own."""
    if tool.package is None:
        return
    wanted = f"{tool.package} {tool.version}"
    mark = tool.folder / "installed"
    if mark.is_file() and mark.read_text() == wanted:
        return
    shutil.rmtree(tool.folder, ignore_errors=True)
    tool.folder.mkdir(parents=True)
    print(f"installing {wanted}", file=sys.stderr)
    if tool.registry == "PyPI":
        run([sys.executable, "-m", "venv", str(tool.folder)])
        pip = [str(tool.folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, f"{tool.package}=={tool.version}"])
    else:
        unpack(tool)
    mark.write_text(wanted)


def unpack(tool: Tool) -> None:
    """What these adapters call needs none of the packages that the tool depends on."""
    where = tool.folder / "node_modules" / str(tool.package)
    where.mkdir(parents=True)
    packed = f"{tool.package}@{tool.version}"
    run(["npm", "pack", "--silent", "--pack-destination", str(tool.folder), packed])
    [archive] = tool.folder.glob("*.tgz")
    run(["tar", "xzf", str(archive), "--strip-components", "1", "-C", str(where)])
    archive.unlink()


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def version_of(tool: Tool) -> str:
    return tool.version or ("this checkout" if tool.registry == "this project" else "–")


def judge(tool: Tool, texts: list[Text], aldis: str) -> Claims:
    python = tool.folder / "bin/python" if tool.registry == "PyPI" else Path(sys.executable)
    values = {"{python}": str(python), "{folder}": str(tool.folder), "{aldis}": aldis}
    words = [values.get(word, word) for word in tool.command]
    words = [str(HERE / word) if word.startswith("tools/") else word for word in words]
    asked = [text for text in texts if tool.takes(text)]
    # Some leave their logs where they are started.
    with tempfile.TemporaryDirectory() as folder:
        return ask(words, asked, tool.protocol, folder)
