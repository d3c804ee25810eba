"""Approved people and access requests."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.pagination import Cursor
from goclaw_py.core.web_links import WEB_PLACE
from goclaw_py.records import Notice, PairingRequest, Person, Place, Standing
from goclaw_py.records.people import AccessVerdict
from goclaw_py.store.text import storable
from tests.support.memory_store import access_requests
from tests.support.memory_store.pages import newest
from tests.support.memory_store.tables import MemoryPart


class MemoryPeople(MemoryPart):
    """Implements ``PeopleStore``."""

    async def people(
        self, *, limit: int | None = None, before: Cursor | None = None
    ) -> list[Person]:
        return newest(self._db.people.values(), limit, before)

    async def pairing_requests(self, *, now: datetime) -> list[PairingRequest]:
        return self._valid_requests(now)

    async def approve(self, code_hash: str, *, guest: bool, now: datetime) -> Person | None:
        valid = self._valid_requests(now)
        code_hash = storable(code_hash)
        request = next((request for request in valid if request.code_hash == code_hash), None)
        if request is None:
            return None
        standing = Standing.GUEST if guest else Standing.OWNER
        return await access_requests.admit(self._db, request, standing, "", now)

    async def decide(
        self, request_id: str, verdict: AccessVerdict, *, place: Place, by: str, now: datetime
    ) -> PairingRequest | None:
        found = self._db.requests.values()
        request = next((one for one in found if one.id == storable(request_id)), None)
        if request is None or (request.channel, request.account) != place:
            return None
        if request.expires_at > now:
            if request.is_group or verdict is AccessVerdict.DENY:
                await access_requests.decide_chat(self._db, request, verdict, by, now)
            else:
                standing = Standing.GUEST if verdict is AccessVerdict.GUEST else Standing.OWNER
                await access_requests.admit(self._db, request, standing, by, now)
        return request

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        gone = self._db.people.pop(storable((channel, account, sender_id)), None)
        if gone is not None:
            if (gone.channel, gone.account) == WEB_PLACE:
                links = self._db.web_links
                for link in [one for one in links.values() if one.name == gone.sender.id]:
                    del links[link.link_hash]
            self._db.notify(Notice.PEOPLE)
        return gone is not None

    def _valid_requests(self, now: datetime) -> list[PairingRequest]:
        """Return the requests that have not expired, the oldest first."""
        valid = [item for item in self._db.requests.items() if item[1].expires_at > now]
        valid.sort(key=lambda item: (item[1].created_at, item[0]))
        return [request for _, request in valid]
