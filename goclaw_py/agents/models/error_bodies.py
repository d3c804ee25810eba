"""Finds errors that a server sends with the status of a success (SPEC AGENT-8). Heavy imports.

Proxies have sent their status already when the model behind them fails. Nothing of such a response
was used, so it is an error of that status, and is retried as one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus

import httpx2

from goclaw_py.core.storable import parse_json, storable

_STATUSES: Mapping[object, int] = {
    "authentication_error": 401,
    "billing_error": 402,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_is_overloaded": 503,
}
"""The statuses of errors that have only a name; of any other it is 502."""

_MOST_BYTES = 65_536
"""How much of a response is read to find its first event."""

_NOT_COPIED = {"content-encoding", "content-length", "content-type", "transfer-encoding"}


class _Begun(httpx2.AsyncByteStream):
    """A stream of which the beginning was read."""

    def __init__(
        self, begun: bytes, rest: AsyncIterator[bytes], stream: httpx2.AsyncByteStream
    ) -> None:
        self._begun = begun
        self._rest = rest
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._begun
        async for piece in self._rest:
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def with_true_status(response: httpx2.Response) -> httpx2.Response:
    """Return a response, or the error that it sends with the status of a success."""
    if response.status_code != HTTPStatus.OK:
        return response
    if response.headers.get("content-type", "").startswith("application/json"):
        await response.aread()
        return _error(response, response.content) or response
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    pieces, begun = aiter(response.stream), b""
    try:
        async for piece in pieces:
            begun += piece
            if len(begun) > _MOST_BYTES or _has_event(begun):
                break
        if b"error" in begun and (error := _error(response, _first_data(begun))) is not None:
            await response.aclose()
            return error
    except BaseException:
        await response.aclose()
        raise
    response.stream = _Begun(begun, pieces, response.stream)
    return response


def _lines(begun: bytes) -> list[bytes]:
    """Return the lines that are no comments, such as those that only keep a connection open."""
    return [line for line in begun.splitlines(keepends=True) if line.strip() and line[:1] != b":"]


def _has_event(begun: bytes) -> bool:
    lines = _lines(begun)
    if lines and lines[0].lstrip()[:1] in {b"{", b"["}:
        return False  # no stream: the whole body counts
    last = next((line for line in lines if not line.startswith(b"event:")), b"")
    return last.endswith(b"\n")


def _first_data(begun: bytes) -> bytes:
    lines = _lines(begun)
    if lines and lines[0].startswith(b"event:") and lines[0][6:].strip() == b"error":
        data = next((line[5:] for line in lines if line.startswith(b"data:")), b"")
        return data if b'"error"' in data else b'{"error": %s}' % (data or b"null")
    if lines and lines[0].startswith(b"data:"):
        return lines[0][5:]
    return b"".join(lines)


def _error(response: httpx2.Response, body: bytes) -> httpx2.Response | None:
    try:
        data = parse_json(body)
    except ValueError:
        return None
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict) or not data.get("error") or data.get("choices"):
        return None
    headers = {
        name: value for name, value in response.headers.items() if name.lower() not in _NOT_COPIED
    }
    return httpx2.Response(
        _status(data["error"]), headers=headers, json=storable(data), extensions=response.extensions
    )


def _status(error: object) -> int:
    if isinstance(error, dict):
        for word in (error.get(name) for name in ("code", "status", "type")):
            status = _number(word) or (_STATUSES.get(word) if isinstance(word, str) else None)
            if status is not None:
                return status
    return HTTPStatus.BAD_GATEWAY


def _number(word: object) -> int | None:
    if isinstance(word, str) and word.isdecimal() and len(word) == 3:
        word = int(word)
    return word if isinstance(word, int) and 400 <= word < 600 else None
