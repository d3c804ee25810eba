"""Properties of a server, for diagnosis (SPEC OPS-4)."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from goclaw_py.core.time.clock import Clock
from goclaw_py.store.migrate import SchemaStatus, own_tables, status
from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.fitness import ServerFacts, bare, examine, shares_sessions
from goclaw_py.store.postgres.pool import connect
from goclaw_py.store.sql import queries

_SQL = queries("checkup")
_NOTICE_S = 1.5


@dataclass(frozen=True, slots=True)
class Checkup:
    """The result of examining a server.

    Args:
        schema: How its schema compares with this release; None if we may not read it.
        skew_s: Seconds by which its clock is ahead of ours.
        notices: Whether a notice reaches a listening connection.
        pooled: Whether a pooler shares our sessions with other clients.
        estimated: Agents of whose newest runs some have an estimated usage.
    """

    schema: SchemaStatus | None
    server: ServerFacts
    skew_s: float
    notices: bool
    pooled: bool = False
    estimated: tuple[str, ...] = ()

    @property
    def pending(self) -> tuple[str, ...]:
        """The migrations that its schema lacks, as far as known."""
        return () if self.schema is None else self.schema.pending

    @property
    def is_current(self) -> bool:
        """Whether its schema is known to be up to date."""
        return self.schema is not None and not self.schema.pending


async def check_up(address: Address, clock: Clock) -> Checkup:
    """Examine a server without changing it. Raises ``StoreError``."""
    async with bare(address) as one:
        async with bare(address) as other:
            pooled = await shares_sessions(one, other)
        before = clock.now()
        server, at = await examine(one, own_tables())
        after = clock.now()
        unreadable = server.lacking.get("SELECT", ())
        schema = None if "schema_migrations" in unreadable else await status(one)
        has_notes = schema is not None and not schema.pending and "runs" not in unreadable
        found = await one.fetch(_SQL["estimated"]) if has_notes else []
        return Checkup(
            schema=schema,
            estimated=tuple(row["agent"] for row in found),
            server=server,
            skew_s=(at - (before + (after - before) / 2)).total_seconds(),
            # What listens behind such a pooler would be left there.
            notices=not pooled and not server.is_standby and await _hears(address),
            pooled=pooled,
        )


async def _hears(address: Address) -> bool:
    """Return whether LISTEN works; a pooler in transaction mode breaks it."""
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
        await mouth.fetch(_SQL["notify"], channel)
        async with asyncio.timeout(_NOTICE_S):
            await heard.wait()
    except TimeoutError:
        return False
    finally:
        await asyncio.gather(ear.close(), mouth.close())
    return True
