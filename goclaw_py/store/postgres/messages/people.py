"""Approved people and access requests."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.pagination import Cursor
from goclaw_py.records import Notice, PairingRequest, Person, Place
from goclaw_py.records.people import AccessVerdict
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.messages import access_requests
from goclaw_py.store.postgres.pages import place
from goclaw_py.store.postgres.part import PostgresPart, notify
from goclaw_py.store.sql import queries

_SQL = queries("people")


class PostgresPeople(PostgresPart):
    """Implements ``PeopleStore``."""

    async def people(
        self, *, limit: int | None = None, before: Cursor | None = None
    ) -> list[Person]:
        found = await self._pool.fetch(_SQL["people"], limit, *place(before, keys=3))
        return [rows.person(row) for row in found]

    async def pairing_requests(self, *, now: datetime) -> list[PairingRequest]:
        found = await self._pool.fetch(_SQL["requests"], now)
        return [rows.pairing_request(row) for row in found]

    async def approve(self, code_hash: str, *, guest: bool, now: datetime) -> Person | None:
        async with self._pool.transaction() as connection:
            taken = await connection.row(_SQL["pop_request"], code_hash, now)
            if taken is None:
                return None
            verdict = AccessVerdict.GUEST if guest else AccessVerdict.APPROVE
            return await access_requests.admit(connection, taken, verdict, by="", now=now)

    async def decide(
        self, request_id: str, verdict: AccessVerdict, *, place: Place, by: str, now: datetime
    ) -> PairingRequest | None:
        async with self._pool.transaction() as connection:
            found = await connection.row(_SQL["request"], request_id, *place)
            if found is None:
                return None
            request = rows.pairing_request(found)
            if request.expires_at <= now:
                return request
            await connection.fetch(_SQL["remove_request"], request_id)
            if request.is_group or verdict is AccessVerdict.DENY:
                await access_requests.decide_chat(connection, found, verdict, by=by, now=now)
            else:
                await access_requests.admit(connection, found, verdict, by=by, now=now)
        return request

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        async with self._pool.transaction() as connection:
            gone = await connection.row(_SQL["revoke"], channel, account, sender_id)
            if gone is not None:
                await notify(connection, [Notice.PEOPLE])
        return gone is not None
