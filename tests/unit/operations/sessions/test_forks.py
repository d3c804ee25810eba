"""Copies of conversations (SPEC OPS-8)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from goclaw_py.core.errors import NotFound, NotRewindable
from goclaw_py.core.ids import SessionKey
from goclaw_py.operations.sessions.operations import SessionFork, Sessions
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until


@pytest.fixture
async def gateway() -> AsyncIterator[GatewayProcess]:
    """Ann has talked twice with the agent."""
    channels = RecordingChannel(), RecordingChannel(name="console")
    ways = Ways(direct=QueuePolicy())
    async with a_process(ways=ways, channels=channels) as process:
        for text in ("one", "two"):
            await process.ask(text)
        yield process


async def texts(gateway: GatewayProcess, key: SessionKey) -> list[str]:
    return [one.entry.text for one in await gateway.store.history(key)]


async def go_on(gateway: GatewayProcess, made: SessionFork, text: str) -> list[str]:
    """Say something in a fork; returns what the agent had read before it."""
    console = gateway.channels["console", "default"]
    assert made.chat is not None
    await gateway.gateway.accept([message(text, chat=made.chat, channel="console")])
    await until(lambda: console.texts(made.chat or "") == [f"re: {text}"])
    request = gateway.scripted.requests[-1]
    assert request.session == made.session
    return [entry.text for entry in request.history]


async def test_a_fork_goes_on_at_the_console_and_leaves_the_original(
    gateway: GatewayProcess,
) -> None:
    made = await gateway.control.sessions.fork(session_of())
    assert made == SessionFork(made.session, session_of(), 4, made.chat)
    assert made.session == f"agent:main:console:direct:{made.chat}"
    assert await go_on(gateway, made, "three") == ["one", "re: one", "two", "re: two"]
    assert await gateway.texts_in_history() == ["one", "re: one", "two", "re: two"]
    # Also by a message from outside.
    sent = await gateway.control.sessions.send_message(made.session, "four", queue=False)
    await until(lambda: gateway.pending == [])
    assert sent.run is not None
    assert (await texts(gateway, made.session))[-2:] == ["four", "re: four"]


async def test_forks_from_one_point_are_equal(gateway: GatewayProcess) -> None:
    first, _ = reversed(await gateway.store.runs())
    made = [await gateway.control.sessions.fork(session_of(), at=first.id) for _ in range(2)]
    assert made[0].session != made[1].session
    histories = [await gateway.store.history(one.session) for one in made]
    assert histories[0] == histories[1]
    assert [one.entry.text for one in histories[0]] == ["one", "re: one"]
    assert await go_on(gateway, made[0], "else") == await go_on(gateway, made[1], "else")


async def test_a_turn_that_was_undone_can_be_forked_from(gateway: GatewayProcess) -> None:
    _, second = reversed(await gateway.store.runs())
    await gateway.ask("/undo")
    made = await gateway.control.sessions.fork(session_of(), at=second.id)
    assert await texts(gateway, made.session) == ["one", "re: one", "two", "re: two"]


async def test_without_a_gateway_a_fork_is_made_too(gateway: GatewayProcess) -> None:
    made = await Sessions(gateway.store, gateway.clock).fork(session_of())
    assert await go_on(gateway, made, "three") == ["one", "re: one", "two", "re: two"]


async def test_what_cannot_be_forked_is_said(gateway: GatewayProcess) -> None:
    await gateway.ask("hello", chat="bob")
    newest, *_ = await gateway.store.runs()
    with pytest.raises(NotFound, match="there is no session 'nobody'"):
        await gateway.control.sessions.fork(SessionKey("nobody"))
    with pytest.raises(NotFound, match="there is no run 'none'"):
        await gateway.control.sessions.fork(session_of(), at="none")
    with pytest.raises(NotRewindable, match=f"{newest.id} belongs to session {session_of('bob')}"):
        await gateway.control.sessions.fork(session_of(), at=newest.id)
    await gateway.control.sessions.reset(session_of("bob"))
    with pytest.raises(NotRewindable, match="has no history to copy"):
        await gateway.control.sessions.fork(session_of("bob"))
