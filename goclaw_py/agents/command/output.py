"""What a program answers, as it comes."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Protocol

import orjson

from goclaw_py.agents.command.spec import CommandSpec, OutputKind

MAX_LINE = 4 * 1024 * 1024
"""Bytes of a line of JSON: a tool's result may be in it."""


class Output(Protocol):
    """Reads the output of one run."""

    session: str
    """The program's own id of the conversation, "" if it has told none."""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """More of it has come; what the person may read of it now."""

    @property
    def result(self) -> str | None:
        """The whole reply, if the program has told it apart from the pieces."""


def output_of(spec: CommandSpec) -> Output:
    """What reads the output of a program."""
    return Lines(spec) if spec.output is OutputKind.JSONL else Plain()


class Plain:
    """All of it is the reply."""

    session = ""
    result: str | None = None

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Bytes that are no text become U+FFFD."""
        return self._decoder.decode(data, last)


class Lines:
    """Each line is a JSON object. What is none is passed over: programs log in between."""

    def __init__(self, spec: CommandSpec) -> None:
        self._text = [_Path(path) for path in spec.text]
        self._result = _Path(spec.result)
        self._session = _Path(spec.session)
        self._join = spec.join
        self._begun = False
        self._rest = b""
        self._too_long = False
        self.session = ""
        self.result: str | None = None

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """The pieces of whole lines."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if last:
            lines.append(self._rest)
        pieces: list[str] = []
        for line in lines:
            if self._too_long:
                self._too_long = False
                continue
            pieces += self._read(line)
        if len(self._rest) > MAX_LINE:
            self._rest, self._too_long = b"", True
        text = self._join.join(pieces)
        if not text:
            return ""
        begun, self._begun = self._begun, True
        return self._join + text if begun else text

    def _read(self, line: bytes) -> Iterator[str]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            return
        self.session = next(self._session.strings(value), self.session)
        self.result = next(self._result.strings(value), self.result)
        for path in self._text:
            yield from path.strings(value)


class _Path:
    """Where texts are in a line; an empty one is nowhere."""

    def __init__(self, written: str) -> None:
        *conditions, place = written.split() or [""]
        self._conditions = [condition.partition("=")[::2] for condition in conditions]
        self._place = place

    def strings(self, value: object) -> Iterator[str]:
        """The texts at it, if the line is as it has to be."""
        if self._place and all(
            wanted in _strings(value, place.split(".")) for place, wanted in self._conditions
        ):
            yield from _strings(value, self._place.split("."))


def _strings(value: object, path: Sequence[str]) -> Iterator[str]:
    """The strings at a path; ``*`` stands for all elements of a list."""
    if not path:
        if isinstance(value, str):
            yield value
    elif path[0] == "*" and isinstance(value, list):
        for one in value:
            yield from _strings(one, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _strings(value[path[0]], path[1:])
