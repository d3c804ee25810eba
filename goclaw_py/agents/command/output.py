"""Parses the output of a program while it is written."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Protocol

from goclaw_py.agents.command.spec import CommandSpec, OutputKind, UsagePaths
from goclaw_py.core.run_events import Usage
from goclaw_py.core.storable import parse_json, storable

MAX_LINE = 4 * 1024 * 1024
"""The longest line of JSON in bytes: it may contain a tool's result."""

_MOST = 10**12
"""Larger numbers of usage are ignored."""

_LONGEST_SESSION = 1_000
"""Longer ids of conversations are ignored: no program could be given one as an argument."""


class Output(Protocol):
    """Parses the output of one run."""

    session: str
    """The program's id of the conversation, "" if there is none."""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Take more output; return the new text for the person."""

    @property
    def result(self) -> str | None:
        """Return the whole reply, if the program reports it separately."""

    @property
    def usage(self) -> Usage:
        """Return the reported usage: at least one request, and a cost only if reported."""


def output_of(spec: CommandSpec) -> Output:
    """Create the parser for the output of a program."""
    return JsonLines(spec) if spec.output is OutputKind.JSONL else PlainOutput()


class PlainOutput:
    """All output is the reply."""

    session = ""
    result: str | None = None
    usage = Usage(requests=1)

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Decode output; invalid bytes become U+FFFD."""
        return self._decoder.decode(data, last)


class JsonLines:
    """Each line is a JSON object. Other lines are ignored: programs write logs in between."""

    def __init__(self, spec: CommandSpec) -> None:
        self._text = [_Path(path) for path in spec.text]
        self._result = _Path(spec.result)
        self._session = _Path(spec.session)
        self._used = _Used(spec.usage)
        self._join = spec.join
        self._begun = False
        self._rest = bytearray()
        self._too_long = False
        self.session = ""
        self.result: str | None = None

    @property
    def usage(self) -> Usage:
        """Return the usage so far."""
        return self._used.usage

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return the text in complete lines."""
        begin, *following = data.split(b"\n")
        self._rest += begin
        lines: list[bytes] = []
        if following:
            lines += [self._pop_rest(), *following[:-1]]
            self._rest += following[-1]
        if last:
            lines.append(self._pop_rest())
        if len(self._rest) > MAX_LINE:
            self._rest.clear()
            self._too_long = True
        # Looked at here first: one that floods makes millions of lines, none of them JSON.
        pieces = [piece for line in lines if b"{" in line for piece in self._read(line)]
        text = self._join.join(pieces)
        if not text:
            return ""
        begun, self._begun = self._begun, True
        return self._join + text if begun else text

    def _pop_rest(self) -> bytes:
        """Return the line that has ended; nothing if it was too long."""
        line = b"" if self._too_long else bytes(self._rest)
        self._rest.clear()
        self._too_long = False
        return line

    def _read(self, line: bytes) -> Iterator[str]:
        try:
            value = parse_json(line)
        except ValueError:
            return
        named = (storable(text) for text in self._session.texts(value))
        self.session = next((one for one in named if len(one) <= _LONGEST_SESSION), self.session)
        self.result = next(self._result.texts(value), self.result)
        self._used.read(value)
        for path in self._text:
            yield from path.texts(value)


class _Used:
    """The usage that a program reports. Impossible numbers are ignored."""

    def __init__(self, paths: UsagePaths) -> None:
        self._input = [_Number(path) for path in paths.input]
        self._output = [_Number(path) for path in paths.output]
        self._cost = [_Number(path) for path in paths.cost]
        self._turns = [_Number(path) for path in paths.turns]

    def read(self, value: object) -> None:
        """Read a line."""
        for number in (*self._input, *self._output, *self._turns):
            number.read(value, whole=True)
        for number in self._cost:
            number.read(value, whole=False)

    @property
    def usage(self) -> Usage:
        return Usage(
            requests=int(_sum(self._turns) or 1),
            input_tokens=int(_sum(self._input) or 0),
            output_tokens=int(_sum(self._output) or 0),
            cost_usd=_sum(self._cost),
        )


class _Number:
    """The last number at a path."""

    def __init__(self, written: str) -> None:
        self._path = _Path(written)
        self.last: Decimal | None = None

    def read(self, value: object, *, whole: bool) -> None:
        for found in self._path.values(value):
            # True is an int for Python.
            if isinstance(found, bool) or not isinstance(found, int | float):
                continue
            if 0 <= found <= _MOST and (found == int(found) or not whole):
                self.last = Decimal(str(found))


def _sum(numbers: Sequence[_Number]) -> Decimal | None:
    told = [number.last for number in numbers if number.last is not None]
    return sum(told, Decimal(0)) if told else None


class _Path:
    """A path to values in a line; an empty one matches nothing."""

    def __init__(self, written: str) -> None:
        *conditions, place = written.split() or [""]
        self._conditions = [condition.partition("=")[::2] for condition in conditions]
        self._place = place

    def values(self, line: object) -> Iterator[object]:
        """Yield the values at the path, if the line meets its conditions."""
        if self._place and all(
            wanted in _leaves(line, place.split(".")) for place, wanted in self._conditions
        ):
            yield from _leaves(line, self._place.split("."))

    def texts(self, line: object) -> Iterator[str]:
        """Yield the texts among them."""
        return (value for value in self.values(line) if isinstance(value, str))


def _leaves(value: object, path: Sequence[str]) -> Iterator[object]:
    """Yield the values at a path; ``*`` matches all elements of a list."""
    if not path:
        yield value
    elif path[0] == "*" and isinstance(value, list):
        for one in value:
            yield from _leaves(one, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _leaves(value[path[0]], path[1:])
