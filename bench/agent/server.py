"""A model server that takes no time: chat completions of OpenAI, streamed, ready-made.

``python -m bench.agent.server`` prints its port and serves until its input ends. A request for the
model ``tool`` that holds no result of a tool yet is answered with a call of ``look_up``, and one
for the model ``tools`` that holds less than ``CALLS`` results.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import orjson

WORDS: Final = 20
CALLS: Final = 20
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def _chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    return b"data: %s\n\n" % orjson.dumps(
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "bench",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
    )


def _usage() -> bytes:
    counts = {"prompt_tokens": 100, "completion_tokens": WORDS, "total_tokens": 100 + WORDS}
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return b"data: %s\n\n" % orjson.dumps({**base, "choices": [], "usage": counts})


def _stream(*chunks: bytes) -> bytes:
    pieces = (*chunks, _usage(), b"data: [DONE]\n\n")
    return _HEAD + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"


_ANSWER: Final = _stream(
    _chunk({"role": "assistant", "content": ""}),
    *(_chunk({"content": f"word{number} "}) for number in range(WORDS)),
    _chunk({}, "stop"),
)


def _call(number: int) -> bytes:
    call = {
        "index": 0,
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "look_up", "arguments": '{"word": "owl"}'},
    }
    said = _chunk({"role": "assistant", "tool_calls": [call]})
    return _stream(said, _chunk({}, "tool_calls"))


_CALLS: Final = [_call(number) for number in range(CALLS)]
_WANTED: Final = {b'"model":"tool"': 1, b'"model":"tools"': CALLS}


class _Connection(asyncio.Protocol):
    """Reads requests with a length, one after the other."""

    def __init__(self) -> None:
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            head = self._rest[:end].lower()
            at = head.index(b"content-length:") + len(b"content-length:")
            length = int(head[at:].split(b"\r\n", 1)[0])
            whole = end + 4 + length
            if len(self._rest) < whole:
                return
            body = self._rest[end + 4 : whole]
            self._rest = self._rest[whole:]
            wanted = next((count for name, count in _WANTED.items() if name in body), 0)
            results = body.count(b'"role":"tool"')
            self._transport.write(_CALLS[results] if results < wanted else _ANSWER)


async def serve() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
