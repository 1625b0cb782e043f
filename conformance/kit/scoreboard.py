"""Makes the page with the scores of all tools."""

from __future__ import annotations

from typing import Any

from .corpus import Score, Text, score, wrong
from .hooks import Result, scenarios
from .texts import Claims
from .tools import Tool

PROMISE = "<promise>COMPLETE</promise>"
BEGIN = "<!-- made by conformance/run scoreboard; do not edit below -->"


def page(
    texts: list[Text], tools: list[Tool], claims: dict[str, Claims], versions: dict[str, str],
    hooks: dict[str, list[Result]],
) -> str:
    own = [text for text in texts if text.origin == "assistant"]
    promise = [text for text in own if text.literal == PROMISE]
    general = [tool for tool in tools if tool.literal == "any"]
    others = [text for text in texts if text.origin != "assistant"]
    parts = [
        BEGIN,
        "## One signal that every tool knows",
        f"{len(promise)} messages in which `{PROMISE}` is the signal.",
        table(promise, tools, claims, versions),
        "## Nine dialects",
        f"{sum(text.literal is not None for text in own)} messages, by the tools that can be set to any signal.",
        table(own, general, claims, versions),
        "## What decides, and who is wrong",
        "The same messages. *Structure*: where the signal stands and how it is written. *Words*: what the words"
        " around it say; nothing decides these reliably.",
        by_decision(own, general, claims),
        "## Text that the agent did not write",
        f"{len(others)} prompts, files and summaries. Tools that never look at such messages are not asked.",
        table(others, [it for it in tools if len(it.origins) > 1], claims, versions),
        "## Stop hooks",
        f"Sessions that end with `{PROMISE}`, played by the kit. *False stop*: the agent may stop too early; *miss*: it is "
        "kept from stopping when it may. The two beside Aldis are the hooks that people write: `tools/grep_hook.sh` and "
        "`tools/last_message_hook.py`.",
        hook_table(hooks),
        "## Where Aldis loses",
        losses(own, general, claims),
        "## What was adapted",
        adapted(tools, versions),
    ]
    return "\n\n".join(parts) + "\n"


def table(texts: list[Text], tools: list[Tool], claims: dict[str, Claims], versions: dict[str, str]) -> str:
    lines = [
        "| tool | version | asked | false stops | of | misses | of | slips taken | of |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for tool in tools:
        asked = [text for text in texts if tool.takes(text)]
        it = score(asked, claims[tool.id])
        lines.append(
            f"| {tool.name} | {versions[tool.id]} | {len(asked)} | {it.false_stops} | {it.no_claims} | {it.misses} "
            f"| {it.claims} | {it.slips_taken} | {it.slips} |"
        )
    return "\n".join(lines)


def by_decision(texts: list[Text], tools: list[Tool], claims: dict[str, Claims]) -> str:
    kinds = ("structure", "words")
    chosen = {kind: [text for text in texts if text.decided_by == kind and text.literal] for kind in kinds}
    sizes = {kind: score(chosen[kind], {}) for kind in kinds}
    head = "| tool |" + "".join(
        f" {kind}: false stops of {sizes[kind].no_claims} | {kind}: misses of {sizes[kind].claims} |" for kind in kinds
    )
    lines = [head, "|---|" + "--:|" * 4]
    for tool in tools:
        scores = [score(chosen[kind], claims[tool.id]) for kind in kinds]
        cells = "".join(f" {it.false_stops} | {it.misses} |" for it in scores)
        lines.append(f"| {tool.name} |{cells}")
    return "\n".join(lines)


def hook_table(hooks: dict[str, list[Result]]) -> str:
    names = list(hooks)
    why = {it["id"]: it["why"] for it in scenarios()["scenarios"]}
    lines = ["| host | what happens | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for rows in zip(*hooks.values()):
        cells = [row.word if row.word == "right" else f"**{row.word}**, {row.detail}" for row in rows]
        lines.append(f"| {rows[0].host} | {why[rows[0].scenario]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def losses(texts: list[Text], tools: list[Tool], claims: dict[str, Claims]) -> str:
    """Texts that Aldis judges wrongly, with how many of the others judge them rightly."""
    asked = [text for text in texts if text.literal is not None]
    rivals = [tool for tool in tools if tool.registry != "this project"]
    mistakes = wrong(asked, claims["aldis"])
    right = {text.id: sum(is_right(text, claims[it.id]) for it in rivals) for text in mistakes}
    beaten = [text for text in mistakes if right[text.id]]
    total = score(asked, claims["aldis"])
    lines = [
        f"Aldis is wrong about {len(mistakes)} of {len(asked)} messages ({total.false_stops} false stops, "
        f"{total.misses} misses). In {len(beaten)} of them another tool is right. A tool that takes every mention is "
        "right about every claim, and one that takes nothing about every other text.",
        "",
        f"| message | dialect | expected | what makes it hard | others that are right, of {len(rivals)} |",
        "|---|---|---|---|--:|",
    ]
    for text in mistakes:
        lines.append(
            f"| {text.id} | {text.dialect} | {text.expected.replace('_', ' ')} | {text.group} | {right[text.id]} |"
        )
    return "\n".join(lines)


def is_right(text: Text, claims: Claims) -> bool:
    return bool(claims.get(text.id)) == (text.expected == "claim")


def adapted(tools: list[Tool], versions: dict[str, str]) -> str:
    lines = ["| tool | package | version | what was adapted |", "|---|---|---|---|"]
    for tool in tools:
        package = f"`{tool.package}` ({tool.registry})" if tool.package else tool.registry
        lines.append(f"| {tool.name} | {package} | {versions[tool.id]} | {tool.adapted} |")
    return "\n".join(lines)


def as_json(
    texts: list[Text], tools: list[Tool], claims: dict[str, Claims], versions: dict[str, str],
    hooks: dict[str, list[Result]],
) -> dict[str, Any]:
    def numbers(tool: Tool) -> Score:
        return score([text for text in texts if tool.takes(text)], claims[tool.id])

    return {
        "v": 1,
        "tools": [
            {"id": it.id, "package": it.package, "version": versions[it.id], **vars(numbers(it)),
             "claims_by_text": claims[it.id]}
            for it in tools
        ],
        "hooks": {name: [vars(result) for result in results] for name, results in hooks.items()},
    }
