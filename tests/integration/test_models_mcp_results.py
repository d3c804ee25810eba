"""Results of MCP servers that no library would write (SPEC AGENT-6)."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from goclaw_py.agents.spec import McpServer
from tests.support.model_agents import ModelAgents
from tests.support.process import ROOT
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

PROGRAM = McpServer(
    (sys.executable, "-m", "tests.support.odd_mcp_server"),
    env={"PYTHONPATH": str(ROOT)},
    call_timeout_s=20,
)


def text(escaped: str) -> str:
    return f'{{"content": [{{"type": "text", "text": "{escaped}"}}]}}'


def value(written: str) -> str:
    return f'{{"content": [], "structuredContent": {{"a": {written}}}}}'


RESULTS = {
    "half of a pair": (text("x \\ud83d y"), "x \ufffd y"),
    "a pair": (text("x \\ud83d\\ude00 y"), "x 😀 y"),
    "NUL": (text("x \\u0000 y"), "x \ufffd y"),
    "a large number": (value("1" + "0" * 30), "0" * 30),
    "no number": (value("NaN"), "null"),
    "half of a pair in a value": (value('"\\ud83d"'), "\ufffd"),
    "nested": (value("[" * 180 + "]" * 180), "[]"),
    "nested deeper": (value("[" * 240 + "]" * 240), "[]"),
    "nested too deep": (value("[" * 600 + "]" * 600), "…"),
    "no object": ("7", "cannot be read"),
    "null": ("null", "cannot be read"),
    "no content": ('{"content": 7}', "cannot be read"),
    "content of an unknown kind": ('{"content": [{"type": "odd"}]}', "cannot be read"),
}


async def test_no_answer_of_a_server_is_waited_for_in_vain(agents: ModelAgents) -> None:
    """The library drops what it cannot read, and the call waited for its time limit."""
    agent = agents.make(mcp={"odd": PROGRAM})

    async def ask(content: str) -> str:
        order = f"tool odd_give {json.dumps({'content': content})}"
        return (await agent.run(request(order), Events())).text

    said = await asyncio.gather(*(ask(sent) for sent, _ in RESULTS.values()))
    told = dict(zip(RESULTS, said, strict=True))
    wrong = {name: told[name] for name, (_, words) in RESULTS.items() if words not in told[name]}
    assert wrong == {}
