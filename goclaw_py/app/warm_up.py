"""Imports what channels and agents need, while the database starts."""

from __future__ import annotations

import asyncio
import logging
from typing import Self

from goclaw_py.app.parts import Parts
from goclaw_py.core.ids import AgentName
from goclaw_py.runs.agent_loop import AgentLoop

log = logging.getLogger(__name__)


async def warm_up(name: AgentName, agent: AgentLoop) -> None:
    """Prepare an agent for its first run, which will report an error again to its user."""
    try:
        await agent.warm_up()
    except Exception:
        log.exception("agent_warm_up_failed", extra={"agent": name})


class WarmUp:
    """Warms up all channels, then all agents, as soon as it is created.

    Use it as a context manager, which ends it; an import in progress is always finished.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._channels = asyncio.create_task(self._warm_up_channels(), name="channel imports")
        self._agents = asyncio.create_task(self._warm_up_agents(), name="agent imports")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channels.cancel()
        self._agents.cancel()

    async def until_channels_are_ready(self) -> bool:
        """Wait until every channel can receive, or has failed."""
        await asyncio.wait([self._channels])
        return True

    async def _warm_up_channels(self) -> None:
        for channel in self._parts.channels.values():
            try:
                await channel.warm_up()
            except Exception:
                # ``receive`` raises it again, and the supervisor retries.
                facts = {"channel": channel.name, "account": channel.account}
                log.exception("channel_warm_up_failed", extra=facts)

    async def _warm_up_agents(self) -> None:
        await asyncio.wait([self._channels])
        for name, agent in self._parts.agents.items():
            await warm_up(name, agent)
