"""The end of the hooks' server: answers that are due are given, and nothing is left (QUEUE-11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from goclaw_py.chat.channel import Hook
from goclaw_py.web.hooks import BODY_S
from goclaw_py.web.server import GRACE_S
from tests.unit.web.hooks_harness import GOOD, Server, Sink, hook, until

TICKS_S = 0.5
"""What uvicorn's own looking around takes."""


def now() -> float:
    return asyncio.get_running_loop().time()


def a_server(folder: Path, *hooks: Hook) -> Server:
    return Server(list(hooks), folder / "hooks.sock")


async def cancel(server: Server) -> None:
    server.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await server.task


async def nothing_is_left(server: Server) -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert server.listener.socket.fileno() == -1
    server.listener.close()


async def test_idle_and_half_asked_connections_are_closed_at_once(tmp_path: Path) -> None:
    server = a_server(tmp_path, hook(Sink()))
    async with server.client() as fresh, server.client() as idle, server.client() as half:
        assert (await idle.ask(GOOD)).status == 200
        await half.send(GOOD[:20])
        await asyncio.sleep(1)
        await server.stop()
        assert now() < 1 + 2 * TICKS_S
        for client in (fresh, idle, half):
            assert await client.closed()
    await nothing_is_left(server)


async def test_a_request_under_way_gets_its_answer(tmp_path: Path) -> None:
    sink = Sink(gate=asyncio.Event())
    server = a_server(tmp_path, hook(sink))
    async with server.client() as client:
        await client.send(GOOD)
        await until(lambda: sink.working)
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(1)
        sink.open()
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await client.closed()
        await stopping
    await nothing_is_left(server)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_request_that_takes_too_long_is_asked_to_come_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, cancelled: bool
) -> None:
    sink = Sink(gate=asyncio.Event())
    server = a_server(tmp_path, hook(sink))
    async with server.client() as client:
        await client.send(GOOD)
        await until(lambda: sink.working)
        started = now()
        if cancelled:
            await cancel(server)
        else:
            await server.stop()
        assert now() - started < GRACE_S + 2 * TICKS_S
        answer = await client.answer()
        assert (answer.status, answer.body) == (503, b"the gateway is shutting down; try again")
        assert await client.closed()
    assert sink.working == 0
    assert "Traceback" not in caplog.text
    await nothing_is_left(server)


async def test_a_body_that_still_comes_is_not_waited_for(tmp_path: Path) -> None:
    sink = Sink()
    server = a_server(tmp_path, hook(sink))
    async with server.client() as client:
        await client.send(b"POST /hook HTTP/1.1\r\ncontent-length: 9\r\n\r\n123")
        await asyncio.sleep(1)
        await server.stop()
        assert now() < BODY_S
        assert (await client.answer()).status == 503
    assert sink.requests == []
    await nothing_is_left(server)


async def test_a_hook_that_ignores_its_end_does_not_keep_the_server(tmp_path: Path) -> None:
    sink = Sink(gate=asyncio.Event(), stubborn_s=60)
    server = a_server(tmp_path, hook(sink))
    async with server.client() as client:
        await client.send(GOOD)
        await until(lambda: sink.working)
        await server.stop()
        assert now() < GRACE_S + 4 * TICKS_S
        assert await client.closed()
    leftover = asyncio.all_tasks() - {asyncio.current_task()}
    assert len(leftover) == 1
    await asyncio.wait(leftover)
    await nothing_is_left(server)


async def test_nobody_connects_any_more(tmp_path: Path) -> None:
    server = a_server(tmp_path, hook(Sink()))
    assert (await server.ask(GOOD)).status == 200
    await server.stop()
    with pytest.raises(ConnectionRefusedError):
        await server.ask(GOOD)
    await nothing_is_left(server)


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_a_server_may_be_stopped_while_it_starts(tmp_path: Path, turns: int) -> None:
    for cancelled in (False, True):
        server = a_server(tmp_path, hook(Sink()))
        for _ in range(turns):
            await asyncio.sleep(0)
        if cancelled and turns:
            await cancel(server)
        else:
            await server.stop()
        await nothing_is_left(server)
