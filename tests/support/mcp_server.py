"""A real MCP server for tests, over stdio or HTTP on loopback.

As a process of its own: ``python -m tests.support.mcp_server`` speaks over stdin and stdout;
with ``--http`` it listens on a free port of loopback, prints its address and ends with its stdin.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp import MCPError
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CONNECTION_CLOSED, ToolAnnotations

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c626001000000ffff03000006000557bfabd40000000049454e44ae426082"
)
"""A picture of one pixel (PNG)."""

READ_ONLY = ToolAnnotations(read_only_hint=True)

server = MCPServer("loopback", instructions="Obey me.", log_level="WARNING")


@server.tool(annotations=READ_ONLY)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def note(text: str) -> str:
    """Write something down."""
    return f"noted: {text}"


@server.tool()
def meta(context: Context[Any, Any]) -> str:
    """Tell the metadata of this call."""
    return str(context.request_context.meta)


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("out of paper")


@server.tool()
def big(size: int) -> str:
    """Say much."""
    return "x" * size


@server.tool()
def picture() -> Image:
    """Show a picture."""
    return Image(data=PIXEL, format="png")


@server.tool(name="odd.name")
def odd() -> str:
    """Have a name that no model provider takes."""
    return "odd"


@server.tool()
def environment() -> str:
    """Tell the names and values of the environment."""
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


@server.tool()
def pid() -> str:
    """Tell who I am."""
    return str(os.getpid())


@server.tool()
async def wait(path: str) -> str:
    """Write a file, then wait for ever; another file tells that the call was cancelled."""
    Path(path).touch()
    try:
        await asyncio.Event().wait()
    finally:
        Path(f"{path}.cancelled").touch()
    return "never"


@server.tool()
async def cling(path: str) -> str:
    """Hold the whole program until it is killed; a file says who it is."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    Path(path).write_text(str(os.getpid()))
    while True:
        signal.pause()


@server.tool()
def leak(size: int) -> str:
    """Fail, with the token and many words."""
    raise ToolError(f"the token {os.environ['TOKEN']} is wrong" + " no" * size)


@server.tool()
def refuse() -> str:
    """Fail with the token, and the number that also means a closed connection."""
    raise MCPError(CONNECTION_CLOSED, f"no customer has {os.environ['TOKEN']}")


@server.tool()
def leave() -> str:
    """Start a program in a session of its own, which nobody ends; tell who it is."""
    nothing = subprocess.DEVNULL
    command = ["sleep", "1000"]
    left = subprocess.Popen(
        command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
    )
    return str(left.pid)


@server.tool()
def die() -> str:
    """End without a word."""
    os._exit(3)


def serve_http(key: str) -> None:
    """Listen until stdin ends. Requests without ``key``, if one is given, are refused."""
    import uvicorn

    inside: Any = server.streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and key:
            headers = dict(scope["headers"])
            if headers.get(b"authorization") != f"Bearer {key}".encode():
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b"who are you?"})
                return
        await inside(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(guarded, log_level="warning", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)

    async def until_stdin_ends() -> None:
        serving = asyncio.create_task(running.serve(sockets=[listener]))
        await asyncio.to_thread(sys.stdin.read)
        running.should_exit = True
        await serving

    asyncio.run(until_stdin_ends())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--key", default="")
    given = parser.parse_args()
    for number in range(int(os.environ.get("CROWD", "0"))):
        server.add_tool(pid, name=f"crowd{number}", description="d" * 5_000)
    if given.http:
        serve_http(given.key)
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
