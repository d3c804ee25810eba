"""Ends a response that says too much, or nothing more (SPEC AGENT-13). Heavy imports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)

from goclaw_py.agents.models.responses.limits import ResponseTooLong
from goclaw_py.core.errors import AgentError

MOST_CHARS: Final = 1_000_000
"""The length of a response: its text, its thoughts and the arguments of its calls together."""

MOST_CALLS: Final = 128
"""The number of tool calls in a response."""

MOST_PARTS: Final = 1_000
"""The number of texts, thoughts and calls in a response."""

MOST_EVENTS: Final = 250_000
"""The number of events of a response: a library works on one for up to a millisecond."""

NO_PROGRESS_S = 900.0
"""Seconds without anything new. A server may keep a connection open with empty events for ever."""


class ResponseProgress:
    """What a response has said so far."""

    def __init__(self) -> None:
        self._chars = 0
        self._parts = 0
        self._calls = 0
        self._events = 0
        self._timer: asyncio.TimerHandle | None = None

    def count(self, event: object) -> None:
        """Count an event of the library. Raises ``ResponseTooLong``."""
        self._events += 1
        match event:
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._chars += len(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text, signature_delta=sign)):
                self._chars += len(text or "") + len(sign or "")
            case PartDeltaEvent(delta=ToolCallPartDelta(tool_name_delta=name, args_delta=args)):
                self._chars += len(name or "") + (len(args) if isinstance(args, str) else 0)
            case PartStartEvent(part=part):
                self._parts += 1
                if isinstance(part, ToolCallPart):
                    self._calls += 1
                    self._chars += len(part.tool_name)
                    self._chars += len(part.args) if isinstance(part.args, str) else 0
                elif isinstance(part, TextPart | ThinkingPart):
                    self._chars += len(part.content)
        for number, most, what in (
            (self._events, MOST_EVENTS, "events"),
            (self._chars, MOST_CHARS, "characters"),
            (self._calls, MOST_CALLS, "tool calls"),
            (self._parts, MOST_PARTS, "parts"),
        ):
            if number > most:
                raise ResponseTooLong(f"more than {most:,} {what} in one response")

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Raise ``AgentError`` inside, after ``NO_PROGRESS_S`` without an event."""
        clock = asyncio.timeout(None)
        self._check(clock, before=-1)
        try:
            async with clock:
                yield
        except TimeoutError:
            if not clock.expired():
                raise
            raise AgentError(
                "The model did not go on with its answer, so I stopped waiting for it.",
                f"nothing new in its response for {NO_PROGRESS_S:g} s",
                retryable=True,
            ) from None
        finally:
            assert self._timer is not None
            self._timer.cancel()

    def _check(self, clock: asyncio.Timeout, before: int) -> None:
        # Not at each event: there may be hundreds of them in a second.
        loop = asyncio.get_running_loop()
        if self._events == before:
            clock.reschedule(loop.time())
        else:
            self._timer = loop.call_later(NO_PROGRESS_S, self._check, clock, self._events)
