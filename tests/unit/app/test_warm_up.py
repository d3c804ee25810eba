"""``goclaw_py.app.warm_up``: what is prepared while the database starts."""

from __future__ import annotations

import asyncio
import logging

import pytest

from goclaw_py.agents.tools import Registry
from goclaw_py.app.parts import Parts
from goclaw_py.app.warm_up import WarmUp
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.testing.agents import ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel


class Channel(RecordingChannel):
    """Notes that it was warmed up; may take long or fail."""

    def __init__(self, notes: list[str], error: Exception | None = None) -> None:
        super().__init__()
        self.may_end = asyncio.Event()
        self._notes, self._error = notes, error

    async def warm_up(self) -> None:
        await self.may_end.wait()
        self._notes.append("channel")
        if self._error is not None:
            raise self._error


class Agent(ScriptedAgent):
    """Notes that it was warmed up; takes for ever afterwards."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__()
        self._notes = notes

    async def warm_up(self) -> None:
        self._notes.append("agent")
        await asyncio.Event().wait()


def _parts(channel: Channel, agent: Agent) -> Parts:
    return Parts({(channel.name, channel.account): channel}, {}, {MAIN_AGENT: agent}, Registry({}))


async def test_a_gateway_waits_for_channels_and_not_for_agents() -> None:
    notes: list[str] = []
    channel = Channel(notes)
    with WarmUp(_parts(channel, Agent(notes))) as warm_up:
        ready = asyncio.create_task(warm_up.until_channels_are_ready())
        await asyncio.sleep(1)
        assert not ready.done()
        channel.may_end.set()
        assert await ready
        await asyncio.sleep(1)
        assert notes == ["channel", "agent"]


async def test_a_channel_that_cannot_be_imported_does_not_stop_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notes: list[str] = []
    channel = Channel(notes, ImportError("no library"))
    channel.may_end.set()
    with caplog.at_level(logging.ERROR), WarmUp(_parts(channel, Agent(notes))) as warm_up:
        assert await warm_up.until_channels_are_ready()
        await asyncio.sleep(1)
    assert notes == ["channel", "agent"]
    assert [record.message for record in caplog.records] == ["channel_warm_up_failed"]
