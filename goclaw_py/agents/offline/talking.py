"""What the offline agent does without any tool."""

from __future__ import annotations

import asyncio
import re

from goclaw_py.agents.offline.turn import OfflineTurn, phrase, quote
from goclaw_py.model.errors import AgentError
from goclaw_py.model.run_events import TextDelta
from goclaw_py.ports.agent import Role

MAX_COUNT = 1000
MAX_WAIT = 3600
_COUNTING = re.compile(r"\bcount\s+to\s+(\d+)", re.IGNORECASE)


async def _echo(turn: OfflineTurn) -> str:
    return turn.reply(turn.said)


async def _count(turn: OfflineTurn) -> str:
    goal = _goal(turn.said)
    if goal is None:
        return turn.reply(f"I can count to anything from 1 to {MAX_COUNT}.")
    pieces: list[str] = []

    def say(piece: str) -> None:
        pieces.append(piece)
        turn.emit(TextDelta(piece))

    number = 1
    say("1")
    while number < goal:
        await asyncio.sleep(turn.tick_s)
        for part in turn.request.take_messages():
            goal = _new_goal(part.text) or goal
            say(f" (you said: {quote(part.text)})")
        if number < goal:
            number += 1
            say(f" {number}")
    return "".join(pieces)


def _goal(digits: str) -> int | None:
    """The number to count to, if I can."""
    # int() of a text of thousands of digits is an error of its own.
    number = int(digits) if len(digits) <= len(str(MAX_COUNT)) else MAX_COUNT + 1
    return number if 1 <= number <= MAX_COUNT else None


def _new_goal(text: str) -> int | None:
    """What a message in mid-count changes the goal to, if it is about that."""
    match = _COUNTING.search(text)
    return None if match is None else _goal(match[1])


async def _slow(turn: OfflineTurn) -> str:
    ticks = int(turn.said or "30") if len(turn.said) <= len(str(MAX_WAIT)) else MAX_WAIT
    ticks = min(ticks, MAX_WAIT)
    await asyncio.sleep(ticks * turn.tick_s)
    return turn.reply(f"That took {ticks} ticks of {turn.tick_s:g} s.")


async def _fail(turn: OfflineTurn) -> str:
    raise AgentError("You asked me to fail, so I did.", f"offline agent was told: {turn.said}")


async def _how_many(turn: OfflineTurn) -> str:
    before = sum(entry.role is Role.USER for entry in turn.request.history)
    return turn.reply(f"Your messages in this conversation before this one: {before}.")


TALKING = (
    phrase("echo TEXT", "repeats TEXT", r"echo\s+(.+)", _echo),
    phrase("count to N", "counts, one number a second", r"count\s+to\s+(\d+)", _count),
    phrase("slow [N]", "is silent for N seconds (30), then answers", r"slow(?:\s+(\d+))?", _slow),
    phrase(
        "how many messages",
        "counts the messages of this chat",
        r"(how many messages)\W*",
        _how_many,
    ),
    phrase("error", "fails; so does `fail`", r"(error|fail)\b.*", _fail),
)
"""Phrases in the order in which they are tried."""
