"""What a model server was told to do, as an answer that any protocol can speak."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import orjson

_WORDS = (
    "say exactly slow big think status fail limit advise quota overflow cut pause half fault "
    "refuse hang tool tools again halftool many mute calls short usage raw "
    "wait fake walk"
)
ORDERS = frozenset(_WORDS.split())


class Finish(Enum):
    """Why a model says that it has ended."""

    STOP = auto()
    CALLS = auto()
    FILTER = auto()
    LENGTH = auto()


class End(Enum):
    """How a stream ends that does not end as it should."""

    CUT = auto()
    HALF = auto()
    SILENCE = auto()
    FAULT = auto()


_FINISHES = {"refuse": Finish.FILTER, "short": Finish.LENGTH}
_ENDS = {"cut": End.CUT, "half": End.HALF, "pause": End.SILENCE, "fault": End.FAULT}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. ``arguments`` are sent as they are, also where they are no JSON."""

    name: str
    arguments: str
    call_id: str


COUNTED: dict[str, Any] = {}
"""The usage that is right."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Thoughts, then text in pieces ``delay_s`` apart, then calls of tools, then the end.

    ``usage`` is reported as it is; None reports none.
    """

    pieces: Sequence[str]
    delay_s: float = 0
    thought: str = ""
    calls: Sequence[Call] = ()
    end: Finish | End = Finish.STOP
    usage: Any = field(default_factory=lambda: COUNTED)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def tokens(self) -> int:
        return len(self.pieces) + len(self.calls)


def long_text(count: int) -> str:
    """A text of that many bytes, in which no two pieces are the same."""
    text = "".join(f"{number:07d} " for number in range(count // 8 + 1))
    return text[:count]


def answer(order: str, results: Sequence[str], messages: int) -> Answer:
    """The successful answer to an order.

    Args:
        order: What to do.
        results: What the tools gave that the last answer called; empty if it called none.
        messages: How many there were in the request: calls are named after it.
    """
    verb, _, rest = order.partition(" ")
    if verb in _ENDS:
        return _words(_numbered(*rest.split()), end=_ENDS[verb])
    match [verb, *rest.split()]:
        case ["say" | "exactly", *words]:
            return _words(words) if verb == "say" else _exactly(orjson.loads(rest))
        case ["slow", count, delay]:
            return _words(_numbered(count), delay_s=float(delay))
        case ["big", size, *more]:
            return Answer(_cut_up(long_text(int(size)), int(more[0]) if more else 1024))
        case ["think", *_]:
            return _words(["thought", "about", "it"], thought=rest)
        case ["refuse" | "short", *words]:
            return _words(words, end=_FINISHES[verb])
        case ["usage", *_]:
            usage, _, order = rest.partition(" ")
            return replace(answer(order, results, messages), usage=orjson.loads(usage))
        case _:
            return _with_tools(order, results, messages)


def _with_tools(order: str, results: Sequence[str], messages: int) -> Answer:
    verb, _, rest = order.partition(" ")
    match [verb, *rest.split(maxsplit=1)]:
        case ["fail" | "limit" | "wait" | "fake", *_]:
            return _words(["ok"])
        case ["tool" | "tools" | "calls" | "raw", *_] if results:
            return _words(["tool", "gave:", *results])
        case ["mute", *_] if results:
            return _words([])
        case ["tool" | "mute", name, arguments]:
            return _calls([(name, arguments)], messages)
        case ["tools" | "again", *_]:
            given = [(name, _raw(arguments)) for name, arguments in orjson.loads(rest)]
            return _calls(given, messages)
        case ["calls", *_]:
            calls = [Call(name, _raw(given), one) for one, name, given in orjson.loads(rest)]
            return Answer(["looking"], calls=calls, end=Finish.CALLS)
        case ["many" | "halftool", name]:
            end = Finish.CALLS if verb == "many" else End.HALF
            return _calls([(name, "{}")], messages, end=end)
        case _:
            is_walk = verb == "walk"
            return (
                _walk(orjson.loads(rest), messages) if is_walk else _words(["you", "said:", order])
            )


def _words(
    words: Sequence[str], *, delay_s: float = 0, thought: str = "", end: Finish | End = Finish.STOP
) -> Answer:
    pieces = [word if position == 0 else f" {word}" for position, word in enumerate(words)]
    return Answer(pieces, delay_s=delay_s, thought=thought, end=end)


def _exactly(text: str) -> Answer:
    return Answer(re.findall(r"\s*\S+\s*", text))


def _calls(
    wanted: Sequence[tuple[str, str]], messages: int, *, end: Finish | End = Finish.CALLS
) -> Answer:
    calls = [
        Call(name, arguments, f"call_{messages}" + (f"_{place}" if place else ""))
        for place, (name, arguments) in enumerate(wanted)
    ]
    return Answer(["looking"], calls=calls, end=end)


def _walk(steps: Sequence[tuple[str, float, list[Any]]], messages: int) -> Answer:
    """The next step of a new conversation: its words, so long apart, and its calls."""
    before = 2
    for place, (text, delay_s, calls) in enumerate(steps):
        if messages <= before:
            end = Finish.CALLS if calls else Finish.STOP
            made = [
                Call(name, _raw(given), f"call_{place}_{number}")
                for number, (name, given) in enumerate(calls)
            ]
            return replace(_exactly(text), delay_s=delay_s, calls=made, end=end)
        before += 1 + len(calls)
    return _words(["done"])


def _raw(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def _numbered(count: str = "3") -> list[str]:
    return [f"w{number}" for number in range(1, int(count) + 1)]


def _cut_up(text: str, size: int) -> list[str]:
    return [text[begin : begin + size] for begin in range(0, len(text), size)]
