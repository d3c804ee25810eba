"""One turn of an agent: ours, and the least that a program over pydantic-ai does.

Both keep the conversation as JSON, stream the answer, and offer the same tool. The bare one is a
program that was written for this purpose alone: no events, budgets, permissions, compaction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from goclaw_py.agents import AgentSpec, build_agent
from goclaw_py.core.ids import MAIN_AGENT, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import LoopEvent, RunRequest, TextPart
from goclaw_py.runs.toolbox import ToolSpec

SYSTEM: Final = "You are a helpful assistant."
SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"word": {"type": "string", "description": "what to look up"}},
    "required": ["word"],
    "additionalProperties": False,
}
ABOUT: Final = "Look a word up."

Turn: TypeAlias = Callable[[str], Awaitable[str]]
"""Answers a prompt."""


class Lookup:
    """A toolbox with one tool."""

    guidance: tuple[str, ...] = ()
    specs = (ToolSpec("look_up", ABOUT, SCHEMA, side_effects=False),)

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        """The result of the tool."""
        return f"{name}: {arguments['word']} is a bird"


@asynccontextmanager
async def ours(url: str, model: str, history: int) -> AsyncIterator[Turn]:
    """The agent loop of the gateway, with a history of so many turns."""
    agent = build_agent(AgentSpec(MAIN_AGENT, f"openai:{model}", SYSTEM, url, "key"))
    entries: tuple[HistoryEntry, ...] = ()

    def emit(event: LoopEvent) -> None:
        del event

    async def turn(prompt: str) -> str:
        nonlocal entries
        result = await agent.run(
            RunRequest(
                run_id=RunId("run"),
                session=SessionKey("agent:main:console:direct:local"),
                agent=MAIN_AGENT,
                trigger=Trigger.CHAT,
                parts=(TextPart(prompt),),
                history=entries,
                tools=Lookup(),
            ),
            emit,
        )
        entries = (*entries, *result.entries)
        kept = [place for place, entry in enumerate(entries) if entry.role is Role.USER]
        entries = entries[kept[-history] if len(kept) > history else 0 :]
        return result.text

    try:
        yield turn
    finally:
        await agent.close()


@asynccontextmanager
async def bare(url: str, model: str, history: int) -> AsyncIterator[Turn]:
    """The same over pydantic-ai alone."""
    from openai import AsyncOpenAI
    from pydantic_ai import Agent, Tool
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        PartDeltaEvent,
        PartStartEvent,
        TextPartDelta,
    )
    from pydantic_ai.messages import TextPart as Text
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def look_up(word: str) -> str:
        return f"look_up: {word} is a bird"

    client = AsyncOpenAI(base_url=url, api_key="key", max_retries=0)
    agent = Agent(
        OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client)),
        instructions=SYSTEM,
        tools=[Tool.from_schema(look_up, "look_up", ABOUT, dict(SCHEMA))],
    )
    turns: list[bytes] = []

    async def turn(prompt: str) -> str:
        said: list[str] = []
        before: list[ModelMessage] = []
        for raw in turns:
            before += ModelMessagesTypeAdapter.validate_json(raw)
        async with agent.iter(prompt, message_history=before) as run:
            async for node in run:
                if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                    async with node.stream(run.ctx) as events:
                        async for event in events:
                            match event:
                                case PartStartEvent(part=Text(content=text)):
                                    said.append(text)
                                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                                    said.append(text)
        assert run.result is not None
        turns.append(run.result.new_messages_json())
        del turns[:-history]
        return "".join(said)

    try:
        yield turn
    finally:
        await client.close()


CONTENDERS: Final = {"goclaw_py": ours, "bare pydantic-ai": bare}
