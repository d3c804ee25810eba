"""An MCP server that writes what no library would: results as they are given.

Its tool ``give`` has the argument ``content``: the text of JSON that it writes as its result, as it
is. Its tool ``write`` writes, in place of a whole message, ``begin``, ``again`` as many ``times``,
and ``end``; ``ID`` in them is the id of the call.

``python -m tests.support.odd_mcp_server`` speaks over stdin and stdout, ``serving`` over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

_SCHEMA = {
    "type": "object",
    "properties": {"content": {"type": "string"}},
    "required": ["content"],
}
_GIVE = {"name": "give", "description": "Give that back.", "inputSchema": _SCHEMA}
_WRITE = {"name": "write", "description": "Write that.", "inputSchema": {"type": "object"}}


def _answer(method: str, parameters: dict[str, Any]) -> str:
    match method:
        case "initialize":
            version = parameters["protocolVersion"]
            about = {"name": "odd", "version": "1"}
            told = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            return json.dumps(told)
        case "tools/list":
            return json.dumps({"tools": [_GIVE, _WRITE]})
        case "tools/call":
            return str(parameters["arguments"]["content"])
        case _:
            return "{}"


def _message(line: str | bytes) -> str | None:
    """Return what is written for a message of a client."""
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        return None
    number, parameters = json.dumps(asked["id"]), asked.get("params") or {}
    if parameters.get("name") == "write":
        given = parameters["arguments"]
        begin, end = (given[name].replace("ID", number) for name in ("begin", "end"))
        return str(begin + given["again"] * given["times"] + end)
    result = _answer(asked["method"], parameters)
    return f'{{"jsonrpc": "2.0", "id": {number}, "result": {result}}}'


class _Http:
    """Answers with JSON, or with events; at ``/sse`` as the first version of the protocol."""

    def __init__(self) -> None:
        self.writers = set[asyncio.StreamWriter]()
        self._events: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                _, _, length = head.partition("content-length:")
                body = await reader.readexactly(int(length.split()[0])) if length else b""
                await self._answer(head.split()[0:2], body, writer)
        writer.close()
        self.writers.discard(writer)

    async def _answer(self, line: list[str], body: bytes, writer: asyncio.StreamWriter) -> None:
        method, path = line
        if method == "get" and path == "/sse":
            self._events = writer
            _write_head(writer, "200 OK", "text/event-stream")
            writer.write(b"event: endpoint\ndata: /sse\n\n")
        elif method != "post" or (message := _message(body)) is None:
            status = "202 Accepted" if method == "post" else "405 No"
            writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
        elif path == "/sse":
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            assert self._events is not None
            self._events.write(f"event: message\ndata: {message}\n\n".encode())
            await self._events.drain()
        else:
            is_json = path == "/json"
            data = (message if is_json else f"event: message\ndata: {message}\n\n").encode()
            kind = "application/json" if is_json else "text/event-stream"
            _write_head(writer, "200 OK", kind, f"content-length: {len(data)}")
            writer.write(data)
        await writer.drain()


def _write_head(writer: asyncio.StreamWriter, status: str, kind: str, more: str = "a: b") -> None:
    writer.write(f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}\r\n\r\n".encode())


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Listen on loopback. Yields the address of ``/json``, ``/events`` and ``/sse``."""
    http = _Http()
    listening = await asyncio.start_server(http.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        for writer in http.writers:
            writer.close()


def main() -> None:
    for line in sys.stdin:
        if (message := _message(line)) is not None:
            print(message, flush=True)


if __name__ == "__main__":
    main()
