"""What MCP servers send, before a library reads it (SPEC AGENT-13). Heavy imports.

The library parses a message of any size in the event loop, joins a long line again for each piece
of it, and logs an error for each line that is no message. So it gets whole messages only, and an
error in place of one that is too long. That costs the call its answer, and nobody else anything.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx2
import mcp.client.stdio
from fastmcp.client.transports import ClientTransport, SSETransport, StreamableHttpTransport
from fastmcp.mcp_config import infer_transport_type_from_url
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import LoggingMessageNotificationParams, jsonrpc_message_adapter
from pydantic import TypeAdapter, ValidationError

from goclaw_py.agents.models.responses.limits import (
    BATCH_BYTES,
    END_BYTES,
    EVENT_END,
    ask_for_limited,
    decoded,
)
from goclaw_py.agents.models.scrub import scrub
from goclaw_py.core.storable import storable_json

_log = logging.getLogger(__name__)

MOST_BYTES: Final = 1_000_000
"""The size of a message. The library ends a connection with an event of more than 1 MiB."""

MOST_VALUES: Final = 10_000
"""The number of values in a message, texts excepted: each costs as much as a long text."""

MOST_SKIPPED: Final = 128 * 2**20
"""The size of a message after which its connection is closed: its end may never come."""

UNREADABLE: Final = "the answer cannot be read: nobody knows whether the server has done this"
TOO_LONG: Final = (
    f"the answer is too long (at most {MOST_BYTES:,} bytes with {MOST_VALUES:,} values), "
    "ask for less: nobody knows whether the server has done this"
)

_PARSE_ERROR = -32700
_EDGE_BYTES = 4_096
_MOST_BEFORE = 200
_LINE_END = re.compile(rb"\n")
_NO_END = re.compile(rb"(?!)")
_VALUE_OR_TEXT = re.compile(rb'[\[{,]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_MEMBER = re.compile(r'\s*[{,]\s*("(?:[^"\\]|\\.)*")\s*:\s*')
_ID_MEMBER = re.compile(r',\s*("id"\s*:)')
_JSON = json.JSONDecoder()


class _NeverEnding(Exception):
    """A message goes on after ``MOST_SKIPPED`` bytes."""


class _Messages:
    """Cuts what a server sends into whole messages, and replaces those that are too long.

    Args:
        end: What ends a message.
        replacement: Returns what is read in place of a message with the given head and tail.
    """

    def __init__(
        self, end: re.Pattern[bytes], replacement: Callable[[bytes, bytes], bytes]
    ) -> None:
        self._end = end
        self._replacement = replacement
        self._rest = bytearray()
        self._head = b""
        """The beginning of a message that is too long, and whose end is not there yet."""
        self._skipped = 0

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Add a piece, and yield the messages that have ended, a few at a time."""
        rest = self._rest
        searched = max(0, len(rest) - END_BYTES + 1)
        rest += piece
        batch, begin = bytearray(), 0
        for found in self._end.finditer(rest, searched):
            batch += self._read(bytes(rest[begin : found.end()]))
            begin = found.end()
            if len(batch) > BATCH_BYTES:
                yield bytes(batch)
                batch.clear()
        if batch:
            yield bytes(batch)
        del rest[:begin]
        if len(rest) > (_EDGE_BYTES if self._head else MOST_BYTES):
            self._head = self._head or bytes(rest[:_EDGE_BYTES])
            self._skipped += len(rest) - _EDGE_BYTES
            del rest[:-_EDGE_BYTES]
            if self._skipped > MOST_SKIPPED:
                raise _NeverEnding

    def rest(self) -> bytes:
        """Return the last message, which the end of the stream has ended."""
        return self._read(bytes(self._rest)) if self._rest else b""

    def _read(self, message: bytes) -> bytes:
        if not self._head and len(message) <= MOST_BYTES and not _has_many_values(message):
            return message
        head = self._head or message[:_EDGE_BYTES]
        self._head, self._skipped = b"", 0
        return self._replacement(head, message[-_EDGE_BYTES:])


def _has_many_values(message: bytes) -> bool:
    if len(message) <= MOST_VALUES or sum(map(message.count, (b"[", b"{", b","))) <= MOST_VALUES:
        return False
    count = 0
    for found in _VALUE_OR_TEXT.finditer(message):
        count += message[found.start()] != ord('"')
        if count > MOST_VALUES:
            return True
    return False


def _error_for(head: bytes, tail: bytes) -> bytes | None:
    """Return an error that ends the call whose answer is too long, or None if that is unclear."""
    members = _last_members(tail.decode(errors="replace"))
    members |= _first_members(head.decode(errors="replace"))
    number = members.get("id")
    # A request of the server has a number too, which may be that of a call.
    if (
        type(number) not in (int, str)
        or "method" in members
        or not {"result", "error"} & {*members}
    ):
        return None
    answer = {"jsonrpc": "2.0", "id": number, "error": {"code": _PARSE_ERROR, "message": TOO_LONG}}
    return json.dumps(answer).encode()


def _first_members(head: str) -> dict[str, Any]:
    """Return the members with which an object begins; the value of the last one is None."""
    members = dict[str, Any]()
    at = head.find("{", 0, _MOST_BEFORE)
    while at >= 0 and (found := _MEMBER.match(head, at)):
        key = found[1].strip('"')
        members[key] = None
        try:
            value, at = _JSON.raw_decode(head, found.end())
        except (ValueError, RecursionError):
            break
        if at == len(head):
            break  # a number may go on
        members[key] = value
    return members


def _last_members(tail: str) -> dict[str, Any]:
    """Return the id with which an object ends, and what is behind it."""
    end = tail.rfind("}") + 1
    for found in _ID_MEMBER.finditer(tail, 0, end):
        # Of an object within it, the brackets would not match. In a text, quotes are escaped.
        try:
            members: dict[str, Any] = json.loads("{" + tail[found.start(1) : end])
        except (ValueError, RecursionError):
            continue
        return members
    return {}


@dataclass(slots=True)
class _Connection:
    """A server whose messages are read."""

    server: str
    has_warned: bool = False

    def warn(self) -> None:
        """Log, once, that it sends what is no message: it may do so a million times."""
        if not self.has_warned:
            self.has_warned = True
            _log.warning("mcp_output_unreadable", extra={"server": self.server})


_SERIOUS = frozenset({"warning", "error", "critical", "alert", "emergency"})


class ServerLog:
    """Logs the first warning or error that a connected server sends as a message, without secrets.

    A server may send a million of them: the others are counted.
    """

    def __init__(self, server: str, secrets: Collection[str]) -> None:
        self._server = server
        self._secrets = secrets
        self._count = 0

    async def on_message(self, message: LoggingMessageNotificationParams) -> None:
        """Handle a message of its log."""
        if message.level not in _SERIOUS:
            return
        self._count += 1
        if self._count == 1:
            facts = {"server": self._server, "text": scrub(str(message.data), self._secrets)}
            _log.warning("mcp_server_message", extra=facts)

    def close(self) -> None:
        """Log how many were left out."""
        if self._count > 1:
            facts = {"server": self._server, "count": self._count - 1}
            _log.warning("mcp_server_messages_left_out", extra=facts)


_connection: ContextVar[_Connection | None] = ContextVar("mcp_connection", default=None)


@contextmanager
def reading(server: str) -> Iterator[None]:
    """Read what comes over a connection that is opened within, in the name of a server."""
    token = _connection.set(_Connection(server))
    try:
        yield
    finally:
        _connection.reset(token)


class _Output(AsyncIterable[bytes], Protocol):
    """The output of a program, which the library reads."""

    async def aclose(self) -> None:
        """Close it, so that the program cannot write any more."""


async def _lines(stdout: _Output, encoding: str, errors: str) -> AsyncIterator[str]:
    """Yield what a program writes, in whole lines. Has the arguments of what it replaces."""
    del encoding, errors  # UTF-8, and the library would give up at the first byte that is not
    connection = _connection.get() or _Connection("")

    def replacement(head: bytes, tail: bytes) -> bytes:
        error = _error_for(head, tail)
        _note(connection.server, is_answered=error is not None)
        return b"" if error is None else error + b"\n"

    messages = _Messages(_LINE_END, replacement)
    try:
        async for piece in stdout:
            for lines in messages.add(piece):
                objects = [each for each in lines.split(b"\n") if each.lstrip().startswith(b"{")]
                if len(objects) < lines.count(b"\n"):
                    connection.warn()
                if objects:
                    yield b"\n".join([*objects, b""]).decode(errors="replace")
            await asyncio.sleep(0)
    except _NeverEnding:
        _note(connection.server, is_answered=False)
        # The library would read on until the program ends.
        await stdout.aclose()


class _MessageStream(httpx2.AsyncByteStream):
    """The body of a response, in whole messages."""

    def __init__(self, server: str, response: httpx2.Response) -> None:
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._server = server
        self._stream = stream
        self._pieces = decoded(response)
        content_type = response.headers.get("content-type", "").lower()
        self._has_events = content_type.startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        messages = _Messages(EVENT_END if self._has_events else _NO_END, self._replacement)
        try:
            async for piece in self._pieces:
                for batch in messages.add(piece):
                    yield batch
                await asyncio.sleep(0)
        except _NeverEnding:
            raise httpx2.StreamError(TOO_LONG) from None
        if rest := messages.rest():
            yield rest

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _replacement(self, head: bytes, tail: bytes) -> bytes:
        error = _error_for(head, tail)
        _note(self._server, is_answered=error is not None)
        if self._has_events:
            return b"" if error is None else b"event: message\ndata: %b\n\n" % error
        if error is None:
            raise httpx2.StreamError(TOO_LONG)
        return error


def limited_transport(server: str, url: str, headers: Mapping[str, str]) -> ClientTransport:
    """Return a connection to a server that reads whole messages."""

    async def limit(response: httpx2.Response) -> None:
        response.stream = _MessageStream(server, response)

    async def ask(request: httpx2.Request) -> None:
        ask_for_limited(request)

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_follow_redirects: object,
    ) -> httpx2.AsyncClient:
        made = create_mcp_http_client(headers, timeout, auth)
        made.event_hooks = {"request": [ask], "response": [limit]}
        return made

    if infer_transport_type_from_url(url) == "sse":
        return SSETransport(url, headers=dict(headers), httpx_client_factory=client)
    return StreamableHttpTransport(url, headers=dict(headers), httpx_client_factory=client)


def _note(server: str, *, is_answered: bool) -> None:
    _log.warning("mcp_message_too_long", extra={"server": server, "is_answer": is_answered})


def _lenient(messages: TypeAdapter[Any]) -> Callable[..., Any]:
    """Return a function that reads messages in JSON as ``messages`` does, and some more.

    The library drops a message that it cannot read, and the call would wait for its time limit.
    Many servers cut a text in the middle of an emoji: JSON with half of a UTF-16 pair, which it
    refuses. An answer of another shape becomes an error of its call.
    """
    read = messages.validate_json

    def read_leniently(data: str | bytes | bytearray, **options: Any) -> Any:
        try:
            return read(data, **options)
        except ValidationError:
            given = _object(data)
            try:
                if given is None:
                    raise
                return messages.validate_python(given, **options)
            except ValidationError:
                if given is None or "method" in given or not isinstance(given.get("id"), int | str):
                    if (connection := _connection.get()) is not None:
                        connection.warn()
                    raise
            error = {"code": _PARSE_ERROR, "message": UNREADABLE}
            answer = {"jsonrpc": "2.0", "id": given["id"], "error": error}
            return messages.validate_python(answer, **options)

    return read_leniently


def _object(data: str | bytes | bytearray) -> dict[str, Any] | None:
    """Return an object without what the library cannot write again; None if it is none."""
    try:
        given = json.loads(storable_json(json.loads(data)))
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


# All transports read with it.
jsonrpc_message_adapter.validate_json = _lenient(jsonrpc_message_adapter)  # type: ignore[method-assign]
# The reader of programs gets its lines from it.
vars(mcp.client.stdio)["TextReceiveStream"] = _lines
