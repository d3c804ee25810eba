"""An MCP server with tools that may be repeated, and one that must not: ``pay``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from tests.chaos.kills.history import History
from tests.chaos.kills.script import Moment
from tests.chaos.kills.trap import Trap


@asynccontextmanager
async def shop(node: int, history: History, trap: Trap) -> AsyncIterator[str]:
    """Serve one node over HTTP; the address."""
    server = MCPServer("shop", log_level="ERROR")

    async def work(tool: str, call: str) -> str:
        start = history.start(tool, call)
        trap.reach(Moment.CALL, node, call)
        task = history.tasks[int(call.partition(".")[0])]
        await asyncio.sleep(task.tool_s / 2)
        trap.reach(Moment.WORK, node, call)
        await asyncio.sleep(task.tool_s / 2)
        start.ended = True
        trap.reach(Moment.RESULT, node, call)
        return start.result

    @server.tool()
    async def pay(call: str) -> str:
        """Pay."""
        return await work("pay", call)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def look(call: str) -> str:
        """Look at something."""
        return await work("look", call)

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    async def put(call: str) -> str:
        """Put something where it belongs."""
        return await work("put", call)

    app = server.streamable_http_app(session_idle_timeout=60)
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(running.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            await serving
