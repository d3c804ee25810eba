"""An MCP server writes more than anybody reads (SPEC AGENT-13).

Promised: a message that is too long fails its call, with the reason, and nothing else; nothing long
is parsed. Tried: texts, lists, pictures and errors of up to 100 MB, ids in front and behind, lists
of tools, a million lines that are no messages, log messages and others that nobody asked for, a
message without an end, over a program's output, JSON, events, and the stream of the first version
of the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import pytest
from mcp.client import stdio
from mcp.types import jsonrpc_message_adapter

from goclaw_py.agents.models import mcp
from goclaw_py.agents.models.mcp import Servers
from goclaw_py.agents.models.responses import mcp_messages
from goclaw_py.agents.models.responses.mcp_messages import MOST_BYTES, MOST_VALUES
from goclaw_py.agents.spec import McpServer
from goclaw_py.core.errors import ToolFailed
from tests.support.odd_mcp_server import serving
from tests.support.process import ROOT

pytestmark = pytest.mark.real_time

PROGRAM = (sys.executable, "-m", "tests.support.odd_mcp_server")
WAYS = ("program", "json", "events", "sse")
BEGIN = '{"jsonrpc": "2.0", "id": ID, "result": {"content": '
TEXT = BEGIN + '[{"type": "text", "text": "'
KEY = "sk-planted0123456789"
FINE = '{"content": [{"type": "text", "text": "fine"}]}'

LONG = {
    "a text": (TEXT, "x", '"}]}}'),
    "a text with escapes": (TEXT, "\\n", '"}]}}'),
    "halves of pairs": (TEXT, "\\ud83d", '"}]}}'),
    "lists": (BEGIN + '[], "structuredContent": {"a": [', "[],", "[]]}}}"),
    "objects": (BEGIN + '[], "structuredContent": {"a": [', '{"a":1},', "1]}}}"),
    "deep lists": (BEGIN + '[], "_meta": {"a": ', "[", "}}}"),
    "many texts": (BEGIN + "[", '{"type":"text","text":"a"},', '{"type":"text","text":"a"}]}}'),
    "a picture": (BEGIN + '[{"type":"image","mimeType":"image/png","data":"', "AAAA", '"}]}}'),
    "an error": ('{"id":ID,"error":{"code":1,"message":"', "x", '"},"jsonrpc":"2.0"}'),
    "an id at the end": (
        '{"result":{"content":[{"type":"text","text":"',
        "x",
        '"}]},"jsonrpc":"2.0","id":ID}',
    ),
    "sorted keys": (
        '{"id":ID,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"',
        "x",
        '"}]}}',
    ),
    "keys of others": (
        '{"jsonrpc":"2.0","_meta":{"id":0,"a":["{,"]},"id":ID,"result":{"content":[],"_meta":"',
        "x",
        '"}}',
    ),
    "ids in the result": ('{"result":{"content":[],"_meta":[', '{"a":1,"id":0},', '0]},"id":ID}'),
    "keys behind the id": (
        '{"error":{"code":1,"message":"',
        "x",
        '"},"id":ID,"jsonrpc":"2.0","_meta":{"a":[1]}}',
    ),
    "quotes in a text": (TEXT, '\\"id\\":1,', '"}]}}'),
}


@asynccontextmanager
async def connected(way: str) -> AsyncIterator[mcp.ServerTools]:
    async with serving() as address:
        if way == "program":
            spec = McpServer(PROGRAM, env={"PYTHONPATH": str(ROOT)}, call_timeout_s=30)
        else:
            spec = McpServer(url=f"{address}/{way}", call_timeout_s=30)
        servers = Servers({"odd": spec})
        try:
            yield await servers.tools()
        finally:
            await servers.close()


async def write(tools: mcp.ServerTools, parts: tuple[str, str, str], size: int) -> str:
    begin, again, end = parts
    times = size // len(again)
    return await tools.call(
        "odd_write", {"begin": begin, "again": again, "times": times, "end": end}
    )


@pytest.fixture(autouse=True)
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the library has parsed."""
    monkeypatch.setattr(mcp, "PATIENCE_S", 60.0)
    read, seen = jsonrpc_message_adapter.validate_json, list[bytes]()

    def record(data: str | bytes, **options: Any) -> object:
        seen.append(data.encode() if isinstance(data, str) else data)
        return read(data, **options)

    monkeypatch.setattr(jsonrpc_message_adapter, "validate_json", record)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_is_too_long_fails_its_call_only(
    way: str, parsed: list[bytes]
) -> None:
    async with connected(way) as tools:
        said = await asyncio.gather(
            *(write(tools, parts, 3_000_000) for parts in LONG.values()),
            tools.call("odd_give", {"content": FINE}),
            return_exceptions=True,
        )
        assert said.pop() == "fine"
        wrong = [
            (name, str(error)[:200])
            for name, error in zip(LONG, said, strict=True)
            if not (isinstance(error, ToolFailed) and "the answer is too long" in str(error))
        ]
        assert wrong == []
        assert await tools.call("odd_give", {"content": FINE}) == "fine"
    assert max(map(len, parsed)) <= MOST_BYTES


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ('{"id":7,"jsonrpc":"2.0","method":"a/b","params":{"a":"', '"}}'),
        ('{"params":{"result":"', '"},"method":"a/b","id":7}'),
        ('{"id":7,"params":{"a":"', '"},"method":"a/b"}'),
        ('{"id":7,"params":{"a":"', '","method":"a/b","result":1}}'),
        ('{"jsonrpc":"2.0","result":{"a":"', '","id":7}}'),
        ('{"result":"', ',\\"id\\":7}"}'),
        ('{"id":true,"result":"', '"}'),
        ('{"id":', "1"),
        ('{"a":' + "[" * 5_000, '","id":7}'),
        ("{", ""),
    ],
)
async def test_only_an_answer_gets_an_error(begin: str, end: str) -> None:
    """The number of a request of the server may also be that of a call."""
    message = f"{begin}{'x' * MOST_BYTES}{end}\n".encode()

    async def output() -> AsyncIterator[bytes]:
        yield message

    lines = vars(stdio)["TextReceiveStream"](output(), "utf-8", "strict")
    assert [line async for line in lines] == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow
async def test_an_answer_of_100_mb_fails_its_call_only(way: str, parsed: list[bytes]) -> None:
    async with connected(way) as tools:
        with pytest.raises(ToolFailed, match="too long"):
            await write(tools, LONG["a text"], 100_000_000)
        assert await tools.call("odd_give", {"content": FINE}) == "fine"
    assert max(map(len, parsed)) < 100_000


@pytest.mark.parametrize("way", WAYS)
async def test_no_message_of_many_values_is_parsed(way: str, parsed: list[bytes]) -> None:
    """They cost a hundred times as much as a text of the same length."""
    async with connected(way) as tools:
        for name in ("lists", "objects", "many texts"):
            with pytest.raises(ToolFailed, match="too long"):
                await write(tools, LONG[name], 100_000)
    assert max(sum(map(data.count, b"[{,")) for data in parsed) <= MOST_VALUES


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("again", ["a, b; ", "[{,", '\\",'])
async def test_a_long_text_is_an_answer(way: str, again: str) -> None:
    """Commas and brackets in a text are no values."""
    async with connected(way) as tools:
        said = await write(tools, (TEXT, again, '"}]}}'), 900_000)
        assert "more characters left out]" in said


async def test_a_message_without_an_end_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mcp_messages, "MOST_SKIPPED", 3_000_000)
    async with connected("program") as tools:
        with pytest.raises(ToolFailed, match="broke"):
            await write(tools, (TEXT, "x", ""), 20_000_000)


@pytest.mark.parametrize("way", ["program", "events"])
@pytest.mark.parametrize("level", ["debug", "info", "warning", "emergency"])
@pytest.mark.slow
async def test_log_messages_of_a_server_do_not_fill_the_log(
    way: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server sends its log as messages of the protocol, with whatever is in it."""
    data = f'{{"level": "{level}", "data": "the key is {KEY}"}}'
    message = f'{{"jsonrpc": "2.0", "method": "notifications/message", "params": {data}}}'
    again = f"{message}\n" if way == "program" else f"{message}\n\nevent: message\ndata: "
    answer = BEGIN + '[{"type": "text", "text": "fine"}]}}'
    with caplog.at_level(logging.INFO):
        async with connected(way) as tools:
            said = await write(tools, ("", again, answer), 2_000 * len(again))
            assert said == "fine"
    logged = [record for record in caplog.records if record.name != "httpx2"]
    assert len(logged) <= 2, [record.getMessage() for record in logged][:5]
    assert KEY not in str([vars(record) for record in logged])
    if level in ("warning", "emergency"):
        first, last = map(vars, logged)
        assert (first["message"], first["text"]) == ("mcp_server_message", "the key is [hidden]")
        assert (last["message"], last["count"]) == ("mcp_server_messages_left_out", 1_999)


UNASKED = {
    "an unknown notification": '"method": "notifications/odd", "params": {"a": "KEY"}',
    "a notification of another form": '"method": "notifications/message", "params": {"a": "KEY"}',
    "progress of nothing": (
        '"method": "notifications/progress", "params": {"progressToken": "KEY", "progress": 1}'
    ),
    "an end of nothing": '"method": "notifications/cancelled", "params": {"requestId": "KEY"}',
    "an answer to nothing": '"id": 4711, "result": {"a": "KEY"}',
    "an error of nothing": '"id": 4711, "error": {"code": 1, "message": "KEY"}',
    "a request": '"id": "KEY", "method": "ping"',
    "a question": '"id": 9, "method": "elicitation/create", "params": {"message": "KEY"}',
    "no message": '"method": 5, "params": {"a": "KEY"}',
    "an unknown request": '"id": 9, "method": "odd/odd", "params": {"a": "KEY"}',
}


@pytest.mark.parametrize("way", ["program", "events"])
@pytest.mark.parametrize("said", UNASKED.values(), ids=UNASKED.keys())
@pytest.mark.slow
async def test_messages_that_nobody_asked_for_do_not_fill_the_log(
    way: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    message = f'{{"jsonrpc": "2.0", {said.replace("KEY", KEY)}}}\n'
    again = message if way == "program" else f"{message}\nevent: message\ndata: "
    answer = BEGIN + '[{"type": "text", "text": "fine"}]}}'
    with caplog.at_level(logging.INFO):
        async with connected(way) as tools:
            # Over HTTP the first answer in a response ends it, whichever call it is for.
            with suppress(ToolFailed) if way == "events" else nullcontext():
                assert await write(tools, ("", again, answer), 300 * len(again)) == "fine"
            assert await tools.call("odd_give", {"content": FINE}) == "fine"
    logged = [record for record in caplog.records if record.name != "httpx2"]
    assert len(logged) <= 1, caplog.text[:2_000]
    assert KEY not in str([vars(record) for record in logged])


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("a log line\n", 1_000_000),
        ("\n", 100_000),
        ('{"level": 30, "msg": "a log line"}\n', 10_000),
        ("{\n", 10_000),
        ("{}\n", 10_000),
        ("\u00e9\n", 10_000),
    ],
)
@pytest.mark.slow
async def test_a_million_lines_that_are_no_messages_are_logged_once(
    line: str, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Programs write their logs on the wrong output."""
    message = BEGIN + '[{"type": "text", "text": "fine"}]}}'
    with caplog.at_level(logging.INFO):
        async with connected("program") as tools:
            assert await write(tools, ("", line, message), times * len(line)) == "fine"
            assert await tools.call("odd_give", {"content": FINE}) == "fine"
    logged = [record.getMessage() for record in caplog.records]
    assert logged.count("mcp_output_unreadable") == 1
    assert len(logged) < 10, logged[:20]
