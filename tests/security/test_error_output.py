"""A program writes a million lines on its standard error (SPEC AGENT-2b, AGENT-13).

Promised: they cost no line of the log, little memory, and nobody else's turn. Tried: the program of
an MCP server, before it answers, and that of a ``command`` agent.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from goclaw_py.agents.command import CommandSpec
from goclaw_py.agents.models import mcp
from goclaw_py.agents.models.mcp import Servers
from goclaw_py.agents.spec import McpServer
from tests.support.process import ROOT
from tests.unit.agents.programs import ask, python, refused

pytestmark = pytest.mark.real_time

LINES = "import sys\nfor _ in range(1_000): sys.stderr.write('a log line\\n' * 1_000)\n"
SERVER = LINES + "sys.stderr.flush()\nfrom tests.support.odd_mcp_server import main\nmain()"
FINE = '{"content": [{"type": "text", "text": "fine"}]}'
MOST_BYTES = 8 * 2**20


@contextmanager
def little_memory(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Everything within logs next to nothing, and needs much less memory than was written."""
    tracemalloc.start()
    try:
        with caplog.at_level(logging.INFO):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            yield
            _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most - before < MOST_BYTES
    assert sum(len(record.getMessage()) for record in caplog.records) < 10_000
    assert len(caplog.records) < 10


@pytest.mark.slow
async def test_the_program_of_a_server_writes_a_million_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mcp, "PATIENCE_S", 60.0)
    spec = McpServer((sys.executable, "-c", SERVER), env={"PYTHONPATH": str(ROOT)})
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    servers, others = Servers({"odd": spec}), asyncio.create_task(count_turns())
    try:
        with little_memory(caplog):
            tools = await servers.tools()
            assert await tools.call("odd_give", {"content": FINE}) == "fine"
    finally:
        others.cancel()
        await servers.close()
    assert turns > 100


async def test_an_agent_program_writes_a_million_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with little_memory(caplog):
        said = await ask(CommandSpec(python(LINES + "print('fine')")), "", tmp_path)
        error = await refused(CommandSpec(python(LINES + "sys.exit(3)")), "", tmp_path)
    assert said.text.strip() == "fine"
    assert len(str(error)) < 5_000
