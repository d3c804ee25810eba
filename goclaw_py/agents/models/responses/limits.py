"""Limits on what a model server sends, before a library reads it (SPEC AGENT-13). Heavy imports.

The libraries hold an event of any size in memory and parse it at once, which would stop the whole
gateway; and they never give way to other tasks while there is something to read.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import httpx2

from goclaw_py.core.errors import AgentError

MOST_BYTES: Final = 128 * 2**20
"""The size of a streamed response: some servers need 400 bytes for each token."""

MOST_EVENT_BYTES: Final = 2**20
"""The size of an event, and of a response that is not streamed, in bytes."""

MOST_EVENT_LINES: Final = 2_000
"""The number of lines of an event: a library copies what it has of it for each of them."""

BATCH_BYTES: Final = 8_192
"""Bytes of events after which other tasks get their turn: some milliseconds of a library's work."""

_PIECE_BYTES: Final = 64
"""What a piece costs besides its bytes: servers may send each byte on its own."""

_DECODED_BYTES: Final = 65_536
EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
END_BYTES: Final = 4
"""The longest end of an event."""


class ResponseTooLong(AgentError):
    """A model has sent more than is read."""

    def __init__(self, cause: str) -> None:
        super().__init__("The model's answer was far too long, so I stopped it.", cause)


def too_long(error: BaseException) -> ResponseTooLong | None:
    """Return the limit that is behind an error: libraries wrap it in errors of their own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ResponseTooLong):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def ask_for_limited(request: httpx2.Request) -> None:
    """Ask the server for a response that ``limited`` can read."""
    # No other encoding can be decoded in pieces of a chosen size by every Python.
    request.headers["accept-encoding"] = "gzip"


def limited(response: httpx2.Response) -> httpx2.Response:
    """Return a response, decoded, whose stream raises ``ResponseTooLong`` beyond the limits."""
    is_json = response.headers.get("content-type", "").startswith("application/json")
    is_whole = is_json or not response.is_success
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    most = MOST_EVENT_BYTES if is_whole else MOST_BYTES
    response.stream = _LimitedStream(decoded(response), stream, most)
    return response


def decoded(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Return the body of a response in pieces, decoded, and mark the response as decoded."""
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", ""}:
        raise httpx2.DecodingError(f"the server sends {encoding[:40]!r}, which nobody asked for")
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    return _unzipped(stream) if encoding == "gzip" else aiter(stream)


class _LimitedStream(httpx2.AsyncByteStream):
    """Yields whole events, a few at a time; at the end what is left.

    Args:
        stream: What is closed at the end.
        most: The limit of all pieces together, in bytes.
    """

    def __init__(
        self, pieces: AsyncIterator[bytes], stream: httpx2.AsyncByteStream, most: int
    ) -> None:
        self._pieces = pieces
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = cost = 0
        partial = _PartialEvent()
        async for piece in self._pieces:
            total += len(piece)
            cost += len(piece) + _PIECE_BYTES
            if total > self._most:
                raise ResponseTooLong(f"more than {self._most:,} bytes")
            for batch in partial.add(piece):
                yield batch
                if len(piece) > BATCH_BYTES:
                    await asyncio.sleep(0)
            if cost > BATCH_BYTES:
                cost = 0
                await asyncio.sleep(0)
        if partial.rest:
            yield bytes(partial.rest)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _PartialEvent:
    """The beginning of an event whose end is not there yet."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self._lines = 0

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Add a piece, and yield the events that have ended, a few at a time."""
        rest = self.rest
        searched = max(0, len(rest) - END_BYTES + 1)
        rest += piece
        self._lines += _lines(piece)
        begin = end = 0
        for found in EVENT_END.finditer(rest, searched):
            if found.end() - begin > BATCH_BYTES and end > begin:
                yield bytes(rest[begin:end])
                begin = end
            if found.end() - end > MOST_EVENT_LINES:
                _check_lines(_lines(rest[end : found.end()]))
            end = found.end()
        if end:
            yield bytes(rest[begin:end])
            del rest[:end]
            self._lines = _lines(rest)
        if len(rest) > MOST_EVENT_BYTES:
            raise ResponseTooLong(f"more than {MOST_EVENT_BYTES:,} bytes in one event")
        _check_lines(self._lines)


async def _unzipped(stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        async for piece in stream:
            decoded = decoder.decompress(piece, _DECODED_BYTES)
            while decoded:
                yield decoded
                decoded = decoder.decompress(decoder.unconsumed_tail, _DECODED_BYTES)
    except zlib.error as error:
        raise httpx2.DecodingError(str(error)) from error


def _lines(data: bytes | bytearray) -> int:
    return data.count(b"\n") + data.count(b"\r")


def _check_lines(lines: int) -> None:
    if lines > MOST_EVENT_LINES:
        raise ResponseTooLong(f"more than {MOST_EVENT_LINES:,} lines in one event")
