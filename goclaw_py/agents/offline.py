"""The agent that needs no key and no network (SPEC AGENT-2d).

It lets a newcomer try chat, ``/stop`` and streaming minutes after cloning. It is not clever and
says so. A new phrase is a coroutine and one line in ``PHRASES``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.core.errors import AgentError
from goclaw_py.core.events import TextDelta
from goclaw_py.core.messages import FileKind, OutFile
from goclaw_py.ports.agent import AgentResult, Emit, FilePart, Role, RunRequest

MAX_COUNT = 1000
MAX_WAIT = 3600
_QUOTE_CHARS = 120
_COUNTING = re.compile(r"\bcount\s+to\s+(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a phrase works with. ``said`` is its first group, without surrounding blanks."""

    said: str
    request: RunRequest
    tick_s: float
    emit: Emit

    def reply(self, text: str) -> str:
        """Stream ``text`` in one piece; the whole reply of most phrases."""
        self.emit(TextDelta(text))
        return text


@dataclass(frozen=True, slots=True)
class Phrase:
    """Something the offline agent understands. ``pattern`` is matched against the whole prompt."""

    usage: str
    does: str
    pattern: re.Pattern[str]
    answer: Answer


Answer = Callable[[Turn], Awaitable[str | AgentResult]]


def _phrase(usage: str, does: str, pattern: str, answer: Answer) -> Phrase:
    return Phrase(usage, does, re.compile(pattern, re.IGNORECASE | re.DOTALL), answer)


async def _help(turn: Turn) -> str:
    width = max(len(phrase.usage) for phrase in PHRASES)
    lines = [f"{phrase.usage:<{width}}  {phrase.does}" for phrase in PHRASES]
    return turn.reply("\n".join(["I am the offline agent. I understand:", *lines]))


async def _echo(turn: Turn) -> str:
    return turn.reply(turn.said)


async def _count(turn: Turn) -> str:
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
            say(f" (you said: {_quote(part.text)})")
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


def _quote(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= _QUOTE_CHARS else said[: _QUOTE_CHARS - 1] + "…"


async def _slow(turn: Turn) -> str:
    ticks = int(turn.said or "30") if len(turn.said) <= len(str(MAX_WAIT)) else MAX_WAIT
    ticks = min(ticks, MAX_WAIT)
    await asyncio.sleep(ticks * turn.tick_s)
    return turn.reply(f"That took {ticks} ticks of {turn.tick_s:g} s.")


async def _fail(turn: Turn) -> str:
    raise AgentError("You asked me to fail, so I did.", f"offline agent was told: {turn.said}")


async def _how_many(turn: Turn) -> str:
    before = sum(entry.role is Role.USER for entry in turn.request.history)
    return turn.reply(f"Your messages in this conversation before this one: {before}.")


async def _file(turn: Turn) -> AgentResult:
    """Send back a text as a file."""
    folder = turn.request.workspace / "sent"
    path = folder / f"{turn.request.run_id}.txt"
    await asyncio.to_thread(_write, path, f"{turn.said}\n")
    file = OutFile(FileKind.DOCUMENT, str(path), "note.txt", "text/plain")
    return AgentResult(turn.reply("Here it is."), files=(file,))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


async def _thank(turn: Turn) -> str:
    files = [part for part in turn.request.parts if isinstance(part, FilePart)]
    sizes = await asyncio.to_thread(lambda: [file.path.stat().st_size for file in files])
    lines = [
        f"- {file.kind.value} “{file.name}”, {size:,} bytes"
        for file, size in zip(files, sizes, strict=True)
    ]
    return turn.reply("\n".join(["I got this, but I cannot look into it:", *lines]))


async def _introduce(turn: Turn) -> str:
    said = _quote(turn.request.prompt)
    return turn.reply(
        "I am the offline agent: no model is configured, so I cannot think about "
        f"“{said}”. Set the `model` key of the agent in goclaw.toml (for example "
        '`model = "openai:NAME"`) to talk to a model, or say `help`.'
    )


PHRASES = (
    _phrase("help", "this list", r"(help|\?)", _help),
    _phrase("echo TEXT", "says TEXT", r"echo\s+(.+)", _echo),
    _phrase("count to N", "counts, one number a second", r"count\s+to\s+(\d+)", _count),
    _phrase("slow [N]", "is silent for N seconds (30), then answers", r"slow(?:\s+(\d+))?", _slow),
    _phrase("how many messages", "how many you wrote here", r"(how many messages)\W*", _how_many),
    _phrase("file TEXT", "sends TEXT back as a file", r"file\s+(.+)", _file),
    _phrase("error", "fails; so does `fail`", r"(error|fail)\b.*", _fail),
)
"""In the order in which they are tried."""


def _find(request: RunRequest, prompt: str) -> tuple[Answer, str]:
    """What answers a request, and what it works with."""
    if any(isinstance(part, FilePart) for part in request.parts):
        return _thank, prompt
    for phrase in PHRASES:
        if match := phrase.pattern.fullmatch(prompt):
            return phrase.answer, (match[1] or "").strip()
    return _introduce, prompt


class OfflineAgent:
    """Answers a few phrases. ``tick_s`` is the pace of the slow ones, in seconds.

    The same request always gets the same answer.
    """

    def __init__(self, *, tick_s: float = 1.0) -> None:
        self._tick_s = tick_s

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Answer the prompt. What is streamed is exactly the reply."""
        prompt = request.prompt.strip()
        answer, said = _find(request, prompt)
        result = await answer(Turn(said, request, self._tick_s, emit))
        return result if isinstance(result, AgentResult) else AgentResult(result)

    async def warm_up(self) -> None:
        """Nothing is slow here."""

    async def close(self) -> None:
        """Nothing is open."""
