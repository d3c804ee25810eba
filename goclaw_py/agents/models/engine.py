"""One agent over pydantic-ai. Imports heavy libraries: only ``ModelAgent`` may import it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import httpx2
import pydantic_ai
from pydantic_ai import Agent, AgentRun
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from goclaw_py.agents.models.connection import Connection, Provider
from goclaw_py.agents.models.failures import cut_off, explain
from goclaw_py.agents.models.history import BETWEEN_PARTS, to_entries, to_messages
from goclaw_py.agents.models.transport import retrying_client, timeout
from goclaw_py.core.errors import AgentError
from goclaw_py.core.events import TextDelta, ToolEnded, ToolStarted, Usage
from goclaw_py.ports.agent import AgentResult, Emit, RunRequest, TakeMessages

# On a terminal the library would print an advertisement at the first run.
pydantic_ai.BANNER_ENABLED = False

MAX_REQUESTS = 50
"""Model requests in one run: the brake for an agent that calls tools in circles."""

_NO_KEY = "none"
"""Sent to servers of one's own that need no key; the libraries insist on one."""


class Engine:
    """Runs requests against one model over one HTTP client. Any number at once."""

    def __init__(
        self,
        connection: Connection,
        *,
        system_prompt: str,
        tools: Sequence[Callable[..., object]],
    ) -> None:
        """Make client and agent. Reads certificates from disk: not in the event loop's thread."""
        self._connection = connection
        self._system_prompt = system_prompt
        self._http = retrying_client(connection.retry)
        self._agent: Agent[None, str] = Agent(_model(connection, self._http), tools=list(tools))

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """See ``ModelAgent.run``."""
        answer = await self._answer(request, emit)
        # Raised here and not where it was caught: the foreign exception, whose text may hold parts
        # of the key, must not hang on ours as its context and reach a log.
        if isinstance(answer, AgentError):
            raise answer
        return answer

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _answer(self, request: RunRequest, emit: Emit) -> AgentResult | AgentError:
        instructions = [line for line in (self._system_prompt, *request.system) if line.strip()]
        reply = _Reply(emit)
        try:
            async with self._agent.iter(
                request.prompt,
                message_history=to_messages(request.history),
                instructions="\n\n".join(instructions) or None,
                usage_limits=UsageLimits(request_limit=MAX_REQUESTS),
            ) as run:
                await _follow(run, reply, request.take_messages)
        except AgentRunError as error:
            return explain(error, self._connection.secrets)
        except AgentError as error:
            return error
        return AgentResult(
            reply.text,
            entries=to_entries(request.prompt, reply.text, run.new_messages()),
            usage=_usage(run.usage),
            context_tokens=_context_tokens(run.new_messages()),
        )


class _Reply:
    """The text so far. What is emitted and what is kept cannot differ."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self._pieces: list[str] = []
        self._new_part = False

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def begin_part(self) -> None:
        """The next piece starts a text of its own, for example after a tool call."""
        self._new_part = bool(self._pieces)

    def add(self, piece: str) -> None:
        if not piece:
            return
        if self._new_part:
            piece = BETWEEN_PARTS + piece
            self._new_part = False
        self._pieces.append(piece)
        self.emit(TextDelta(piece))


async def _follow(run: AgentRun[None, str], reply: _Reply, take: TakeMessages) -> None:
    first = True
    async for node in run:
        if Agent.is_model_request_node(node):
            # Between two requests only: after the last one the answer is complete, and a message
            # that came meanwhile gets an answer of its own.
            if not first and (parts := take()):
                run.enqueue("\n".join(part.text for part in parts))
            first = False
            async with node.stream(run.ctx) as events:
                async for event in events:
                    _report(event, reply)
        elif Agent.is_call_tools_node(node):
            # Before any tool runs: the arguments of a cut call are not what the model meant.
            if node.model_response.finish_reason is None:
                raise cut_off()
            async with node.stream(run.ctx) as results:
                async for result in results:
                    _report(result, reply)


def _report(event: object, reply: _Reply) -> None:
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            reply.begin_part()
            reply.add(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            reply.add(text)
        case FunctionToolCallEvent(part=call):
            reply.emit(ToolStarted(call.tool_call_id, call.tool_name, call.args_as_json_str()))
        case FunctionToolResultEvent(part=part):
            ok = part.outcome == "success"
            reply.emit(ToolEnded(event.tool_call_id, part.tool_name, ok))
        case _:
            # Thinking, and bookkeeping of the library.
            pass


def _context_tokens(messages: Sequence[ModelMessage]) -> int | None:
    """What the last request and its answer took; None if the server does not count."""
    answers = [message for message in messages if isinstance(message, ModelResponse)]
    return answers[-1].usage.total_tokens or None if answers else None


def _usage(used: RunUsage) -> Usage:
    return Usage(
        requests=used.requests,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cache_read_tokens,
        cost_usd=used.cost,
    )


def _model(connection: Connection, http: httpx2.AsyncClient) -> Model:
    match connection.provider:
        case Provider.OPENAI:
            return _openai(connection, http)
        case Provider.ANTHROPIC:
            return _anthropic(connection, http)
        case _:
            assert_never(connection.provider)


# Each provider's library costs 25 MB and 0.6 s, so only the one in use is imported. Retries are
# the transport's business: the libraries would multiply them.


def _openai(connection: Connection, http: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI  # noqa: PLC0415 - see above
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    client = AsyncOpenAI(
        api_key=connection.key or _NO_KEY,
        base_url=connection.base_url,
        default_headers=connection.headers,
        timeout=timeout(),
        max_retries=0,
        http_client=http,
    )
    # Other servers are not assumed to have what only OpenAI's own has, nor to cost the same.
    provider = (
        OpenAIProvider(openai_client=client)
        if connection.base_url is None
        else OpenAICompatibleProvider("openai-compatible", openai_client=client)
    )
    return OpenAIChatModel(
        connection.model,
        provider=provider,
        # Else a stream that just ends is taken for a complete answer.
        profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
    )


def _anthropic(connection: Connection, http: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic  # noqa: PLC0415 - see above
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    client = AsyncAnthropic(
        api_key=connection.key or _NO_KEY,
        base_url=connection.base_url,
        default_headers=connection.headers,
        timeout=timeout(),
        max_retries=0,
        http_client=http,
    )
    return AnthropicModel(connection.model, provider=AnthropicProvider(anthropic_client=client))
