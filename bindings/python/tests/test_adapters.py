"""Each adapter with the real package and a scripted model on loopback, in a conversation that the
package's own condition, or the one its users write, ends falsely."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from aldis import Rules
from conftest import Model

TASK = "Fix the tests. When they all pass, end your message with <promise>GREEN</promise>."
PLAN = "I will print <promise>GREEN</promise> once the tests pass. First I look at the log."
LOG = "The log is empty."
DONE = "12 passed.\n\n<promise>GREEN</promise>"
AFTER = "must not be asked for"
RULES = Rules("promise=GREEN")


async def autogen_run(model: Model, termination: Any) -> list[str]:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_core.models import ModelInfo
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    model.answers[:] = [PLAN, LOG, DONE, AFTER]
    info = ModelInfo(
        vision=False, function_calling=True, json_output=False, family="any", structured_output=False
    )
    client = OpenAIChatCompletionClient(
        model="any", base_url=model.url, api_key="none", model_info=info
    )
    agent = AssistantAgent("coder", model_client=client)
    team = RoundRobinGroupChat([agent], termination_condition=termination, max_turns=8)
    result = await team.run(task=TASK)
    return [m.to_text() for m in result.messages if m.source == "coder"]


async def test_autogen(model: Model) -> None:
    pytest.importorskip("autogen_ext")
    from autogen_agentchat.conditions import TextMentionTermination

    from aldis.autogen import SignalTermination

    mention = "<promise>GREEN</promise>"
    # The prompt alone ends it: the model is never asked.
    assert await autogen_run(model, TextMentionTermination(mention)) == []
    assert model.requests == []
    # Restricted to the agent, it is ended by a plan.
    assert await autogen_run(model, TextMentionTermination(mention, sources=["coder"])) == [PLAN]
    assert await autogen_run(model, SignalTermination("promise=GREEN")) == [PLAN, LOG, DONE]


async def test_autogen_asks_for_a_reset_and_obeys_sources_and_meanings() -> None:
    pytest.importorskip("autogen_ext")
    from autogen_agentchat.base import TerminatedException
    from autogen_agentchat.messages import TextMessage, ToolCallSummaryMessage

    from aldis.autogen import SignalTermination

    done = TextMessage(content=DONE, source="coder")
    ends = SignalTermination("promise=GREEN")
    stop = await ends([done])
    assert stop is not None and stop.content == "coder reported PROMISE (done)"
    with pytest.raises(TerminatedException):
        await ends([done])
    await ends.reset()
    assert not ends.terminated
    tool = ToolCallSummaryMessage(content=DONE, source="coder", tool_calls=[], results=[])
    assert await ends([tool, TextMessage(content=DONE, source="user")]) is None
    assert await SignalTermination("promise=GREEN", sources=["critic"])([done]) is None
    assert await SignalTermination("promise=GREEN", meanings=["failed"])([done]) is None


def test_autogen_components_are_loaded_again() -> None:
    pytest.importorskip("autogen_ext")
    from aldis.autogen import SignalTermination

    written = SignalTermination("promise=GREEN", sources=["coder"], strict=True).dump_component()
    again = SignalTermination.load_component(written)
    assert again.dump_component() == written
    assert again.dump_component().config["sources"] == ["coder"]


async def claude_run(model: Model, folder: Path, **options: Any) -> list[str]:
    from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, TextBlock, query

    model.answers[:] = [PLAN, LOG, DONE]
    environment = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    texts: list[str] = []
    settings = ClaudeAgentOptions(cwd=folder, env={**os.environ, **environment}, **options)
    async for message in query(prompt=TASK, options=settings):
        if isinstance(message, AssistantMessage):
            texts += [block.text for block in message.content if isinstance(block, TextBlock)]
    return texts


async def test_claude(model: Model, tmp_path: Path) -> None:
    pytest.importorskip("claude_agent_sdk")
    from claude_agent_sdk import HookMatcher

    from aldis.claude import stop_hook

    async def mentions(input: Any, tool_use_id: Any, context: Any) -> Any:
        if "<promise>GREEN</promise>" in input["last_assistant_message"]:
            return {}
        return {"decision": "block", "reason": "Continue."}

    # Alone, and with the hook that everybody writes, it ends with the plan.
    assert await claude_run(model, tmp_path) == [PLAN]
    assert await claude_run(model, tmp_path, hooks={"Stop": [HookMatcher(hooks=[mentions])]}) == [PLAN]
    ours = HookMatcher(hooks=[stop_hook(RULES)])
    assert await claude_run(model, tmp_path, hooks={"Stop": [ours]}) == [PLAN, LOG, DONE]
    prompts = str(model.requests)
    assert "in_sentence" in prompts and "You stopped without reporting" in prompts


async def test_claude_hook_lets_go() -> None:
    pytest.importorskip("claude_agent_sdk")
    from aldis.claude import stop_hook

    hook = stop_hook(RULES, limit=2)

    async def blocks(active: bool, **more: Any) -> bool:
        given: Any = {"hook_event_name": "Stop", "session_id": "s", "stop_hook_active": active, **more}
        return "decision" in await hook(given, None, {"signal": None})

    texts = [await blocks(i > 0, last_assistant_message="Hm.") for i in range(3)]
    assert texts == [True, True, False]
    assert not await blocks(False), "without the last message"
    assert not await blocks(False, last_assistant_message="Hm.", background_tasks=[{"id": "b"}])
    assert not await blocks(False, last_assistant_message=DONE)


async def test_openai_agents(model: Model) -> None:
    pytest.importorskip("agents")
    from agents import Agent, OpenAIResponsesModel, RunConfig, Runner
    from openai import AsyncOpenAI

    from aldis.openai_agents import run_until_done

    client = AsyncOpenAI(base_url=model.url, api_key="none")
    agent = Agent(name="coder", model=OpenAIResponsesModel("any", client))
    quiet = RunConfig(tracing_disabled=True)

    model.answers[:] = [PLAN, LOG, DONE, AFTER]
    assert (await Runner.run(agent, TASK, run_config=quiet)).final_output == PLAN

    model.answers[:] = [PLAN, LOG, DONE, AFTER]
    ended = await run_until_done(agent, TASK, RULES, run_config=quiet)
    assert (ended.result.final_output, ended.rounds) == (DONE, 3)
    assert ended.signal is not None and ended.signal.meaning == "done"
    assert "in_sentence" in str(model.requests[-1]["input"])

    model.answers[:] = [PLAN]
    given_up = await run_until_done(agent, TASK, RULES, max_rounds=2, run_config=quiet)
    assert (given_up.signal, given_up.rounds) == (None, 2)


def test_langgraph(model: Model) -> None:
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from pydantic import SecretStr

    from aldis.langgraph import ended, remind

    llm = ChatOpenAI(model="any", base_url=model.url, api_key=SecretStr("none"))

    def run(condition: Any) -> list[str]:
        model.answers[:] = [PLAN, LOG, DONE, AFTER]
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [llm.invoke(state["messages"])]})
        graph.add_node("remind", remind(RULES))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", condition)
        graph.add_edge("remind", "model")
        messages = graph.compile().invoke({"messages": [HumanMessage(TASK)]})["messages"]
        return [str(m.content) for m in messages if isinstance(m, AIMessage)]

    def mentioned(state: Any) -> str:
        return "__end__" if "<promise>GREEN</promise>" in state["messages"][-1].content else "remind"

    assert run(mentioned) == [PLAN]
    assert run(ended(RULES, otherwise="remind")) == [PLAN, LOG, DONE]


def test_langgraph_neither_tools_nor_people_end_it() -> None:
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from aldis.langgraph import ended

    condition = ended(RULES, otherwise="remind", end="end")
    calls = [{"name": "ls", "args": {}, "id": "1", "type": "tool_call"}]
    blocks: Any = [{"type": "text", "text": DONE}]
    for message, goes in [
        (AIMessage(DONE), "end"),
        (AIMessage(blocks), "end"),
        (AIMessage(DONE, tool_calls=calls), "remind"),
        (ToolMessage(DONE, tool_call_id="1"), "remind"),
        (HumanMessage(DONE), "remind"),
    ]:
        assert condition({"messages": [message]}) == goes, message
    assert condition({"messages": []}) == "remind"
