"""What a server is like, for whoever looks for what is wrong (SPEC OPS-4)."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from goclaw_py.ports.clock import Clock
from goclaw_py.store.migrate import SchemaStatus, own_tables, status
from goclaw_py.store.postgres.fitness import ServerFacts, bare, examine, shares_sessions
from goclaw_py.store.postgres.pool import Address, connect
from goclaw_py.store.sql import queries

_SQL = queries("checkup")
_NOTICE_S = 1.5


@dataclass(frozen=True, slots=True)
class Checkup:
    """What a server said of itself.

    Args:
        schema: How its schema compares with this release; None if we may not read that.
        skew_s: How far its clock is ahead of ours.
        notices: Whether a notice reaches a connection that listens for it.
        pooled: Whether a pooler in between gives our sessions to others.
    """

    schema: SchemaStatus | None
    server: ServerFacts
    skew_s: float
    notices: bool
    pooled: bool = False

    @property
    def pending(self) -> tuple[str, ...]:
        """The migrations that its schema lacks, as far as is known."""
        return () if self.schema is None else self.schema.pending

    @property
    def is_current(self) -> bool:
        """Whether its schema is known to lack nothing."""
        return self.schema is not None and not self.schema.pending


async def check_up(address: Address, clock: Clock) -> Checkup:
    """Ask a server; nothing is changed. Raises ``StoreError``."""
    async with bare(address) as one:
        async with bare(address) as other:
            pooled = await shares_sessions(one, other)
        before = clock.now()
        server, at = await examine(one, own_tables())
        after = clock.now()
        is_readable = "schema_migrations" not in server.lacking.get("SELECT", ())
        return Checkup(
            schema=await status(one) if is_readable else None,
            server=server,
            skew_s=(at - (before + (after - before) / 2)).total_seconds(),
            # What listens behind such a pooler would be left there.
            notices=not pooled and not server.is_standby and await _hears(address),
            pooled=pooled,
        )


async def _hears(address: Address) -> bool:
    """Whether LISTEN works: a pooler that gives each transaction another connection breaks it."""
    channel = f"goclaw_doctor_{secrets.token_hex(8)}"
    heard = asyncio.Event()
    ear = await connect(address)
    try:
        mouth = await connect(address)
    except BaseException:
        await ear.close()
        raise
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
