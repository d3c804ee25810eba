"""Who may talk to the agent."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.pages import Cursor
from goclaw_py.ports.store import Notice, PairingRequest, Person
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.pages import place
from goclaw_py.store.postgres.part import Part, notify
from goclaw_py.store.sql import queries

_SQL = queries("people")


class People(Part):
    """Implements ``PeopleStore``."""

    async def people(
        self, *, limit: int | None = None, before: Cursor | None = None
    ) -> list[Person]:
        """Of all channels and accounts."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["people"], limit, *place(before, keys=3))
        return [rows.person(row) for row in found]

    async def pairing_requests(self, *, now: datetime) -> list[PairingRequest]:
        """Of all channels and accounts."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["requests"], now)
        return [rows.pairing_request(row) for row in found]

    async def approve(self, code_hash: str, *, guest: bool, now: datetime) -> Person | None:
        """One approval at a time, so that only one guest can become owner by being first."""
        async with self._pool.transaction() as connection:
            await connection.script(_SQL["lock_people"])
            request = await connection.row(_SQL["take_request"], code_hash, now)
            if request is None:
                return None
            person = await connection.row(
                _SQL["approve"],
                request["channel"],
                request["account"],
                request["sender_id"],
                request["name"],
                request["username"],
                guest,
                now,
            )
            await notify(connection, [Notice.PEOPLE])
        return None if person is None else rows.person(person)

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        """They may ask for a pairing code again."""
        async with self._pool.transaction() as connection:
            gone = await connection.row(_SQL["revoke"], channel, account, sender_id)
            if gone is not None:
                await notify(connection, [Notice.PEOPLE])
        return gone is not None
