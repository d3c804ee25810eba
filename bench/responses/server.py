"""A model server that sends ``BYTES`` in ``CHUNKS``, and prints its port.

A request whose last message is ``flood BYTES CHUNKS`` gets so many bytes of text: one event in one
chunk, or an event in each chunk. Others get "ok". Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_WRITTEN_AT_ONCE = 65_536


def _event(text: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}
    return b"data: %b\n\n" % json.dumps(data).encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split()[0])
        asked = json.loads(await reader.readexactly(length))
        order = str(asked["messages"][-1]["content"]).split()
        writer.write(_HEAD)
        if order[:1] == ["flood"]:
            total, chunks = map(int, order[1:3])
            piece = _chunk(_event("a" * (total // chunks)))
            at_once = max(1, _WRITTEN_AT_ONCE // len(piece))
            for begun in range(0, chunks, at_once):
                writer.write(piece * min(at_once, chunks - begun))
                await writer.drain()
        writer.write(_chunk(_event("ok", "stop")) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()
    writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
