"""What a server is like, for whoever looks for what is wrong (SPEC OPS-4)."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from goclaw_py.ports.clock import Clock
from goclaw_py.store.migrate import Status, status
from goclaw_py.store.postgres.pool import Address, connect
from goclaw_py.store.postgres.store import connection
from goclaw_py.store.sql import queries

_SQL = queries("checkup")
_NOTICE_S = 1.5


@dataclass(frozen=True, slots=True)
class Checkup:
    """What a server said of itself.

    Args:
        schema: How its schema compares with this release.
        version: Such as 160004.
        skew_s: How far its clock is ahead of ours.
        notices: Whether a notice reaches a connection that listens for it.
        used: Connections of all programs, of ``most``.
    """

    schema: Status
    version: int
    skew_s: float
    notices: bool
    is_standby: bool = False
    is_read_only: bool = False
    may_create: bool = True
    encoding: str = "UTF8"
    used: int = 1
    most: int = 100


async def check_up(address: Address, clock: Clock) -> Checkup:
    """Ask a server; nothing is changed. Raises ``StoreError``."""
    async with connection(address) as one:
        before = clock.now()
        row = await one.row(_SQL["server"])
        after = clock.now()
        assert row is not None, "a session has a database"
        return Checkup(
            schema=await status(one),
            version=row["version"],
            skew_s=(row["at"] - (before + (after - before) / 2)).total_seconds(),
            notices=await _hears(address),
            is_standby=row["is_standby"],
            is_read_only=row["is_read_only"],
            may_create=row["may_create"],
            encoding=row["encoding"],
            used=row["used"] or 0,
            most=row["most"],
        )


async def _hears(address: Address) -> bool:
    """Whether LISTEN works: a pooler that gives each transaction another connection breaks it."""
    channel = f"goclaw_doctor_{secrets.token_hex(8)}"
    heard = asyncio.Event()
    ear, mouth = await connect(address), await connect(address)
    try:
        await ear.listen(channel, heard.set)
        await mouth.fetch(_SQL["tell"], channel)
        async with asyncio.timeout(_NOTICE_S):
            await heard.wait()
    except TimeoutError:
        return False
    finally:
        await asyncio.gather(ear.close(), mouth.close())
    return True
