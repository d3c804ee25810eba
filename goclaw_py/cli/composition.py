"""The doors to ``goclaw_py.app``. Only commands that go through one pay for its imports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from goclaw_py.config import Settings
from goclaw_py.core.errors import ChannelError, NotSent
from goclaw_py.ports.control import Control

if TYPE_CHECKING:
    from goclaw_py.app.service import Front
    from goclaw_py.app.simulated_beats import KnownHeartbeat
    from goclaw_py.app.simulation import Assumed, Forecast
    from goclaw_py.core.ids import JobId
    from goclaw_py.core.jobs import Job
    from goclaw_py.store.migrate import Status
    from goclaw_py.store.postgres.pool import Connection


def open_control(settings: Settings) -> AbstractAsyncContextManager[Control]:
    """Work on the database alone."""
    from goclaw_py.app.control import open_control as opened  # noqa: PLC0415

    return opened(settings)


def run_gateway(
    settings: Settings, *, say: Callable[[str], None], front: Front | None, may_migrate: bool
) -> int:
    """Run a gateway until it is asked to stop; the exit code."""
    from goclaw_py.app.gateway import run_gateway as gateway  # noqa: PLC0415
    from goclaw_py.app.loop import run  # noqa: PLC0415

    return run(gateway(settings, say=say, front=front, may_migrate=may_migrate))


def simulate(
    settings: Settings,
    jobs: Sequence[Job],
    assumed: Mapping[JobId, Assumed],
    heartbeats: Sequence[KnownHeartbeat],
    *,
    since: datetime,
    days: int,
) -> Forecast:
    """Let jobs and heartbeats run on a virtual clock."""
    from goclaw_py.app.simulation import simulate as simulated  # noqa: PLC0415

    return simulated(settings, jobs, assumed, heartbeats, since=since, days=days)


async def check_parts(settings: Settings) -> None:
    """Make every channel and agent, and throw them away.

    Raises ``SettingError`` for a setting that only they can judge, ``HookConflict`` for hooks that
    do not go together. Nothing touches the network.
    """
    from goclaw_py.app.parts import build_agents, build_channels  # noqa: PLC0415
    from goclaw_py.web.hooks import collect_hooks  # noqa: PLC0415

    channels = build_channels(settings)
    collect_hooks(channels.values())
    for channel in channels.values():
        await channel.close()
    for agent in build_agents(settings).values():
        await agent.close()


PROBE_S = 15.0


async def probe_channels(settings: Settings) -> list[tuple[str, str | ChannelError]]:
    """Ask the servers of all channels but the console; by name what each said."""
    from goclaw_py.app.parts import CONSOLE, build_channels  # noqa: PLC0415

    found: list[tuple[str, str | ChannelError]] = []
    for (name, account), channel in build_channels(settings).items():
        try:
            async with asyncio.timeout(PROBE_S):
                answer: str | ChannelError = "" if name == CONSOLE else await channel.probe()
        except ChannelError as error:
            answer = error
        except TimeoutError:
            answer = NotSent(f"no answer within {PROBE_S:.0f} s")
        finally:
            await channel.close()
        if name != CONSOLE:
            found.append((f"{name}/{account}", answer))
    return found


@asynccontextmanager
async def _connection(settings: Settings) -> AsyncIterator[Connection]:
    from goclaw_py.app.database import Database  # noqa: PLC0415
    from goclaw_py.store.postgres import connection  # noqa: PLC0415

    database = Database(settings, say=lambda _line: None)
    try:
        async with connection(await database.address()) as one:
            yield one
    finally:
        await database.close()


async def schema(settings: Settings) -> Status:
    """Compare the database with this release. Starts the embedded server if there is no other."""
    from goclaw_py.store.migrate import status  # noqa: PLC0415

    async with _connection(settings) as one:
        return await status(one)


async def migrate(settings: Settings) -> list[str]:
    """Bring the schema up to date, as a start does; the names of the files that were run."""
    from goclaw_py.app.database import Database  # noqa: PLC0415

    database = Database(settings, say=lambda _line: None)
    try:
        return await database.migrate(await database.address())
    finally:
        await database.close()
