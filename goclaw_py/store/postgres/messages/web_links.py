"""Personal links to the web chat."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.web_links import WEB_PLACE
from goclaw_py.records import Notice, WebLink
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import PostgresPart, notify
from goclaw_py.store.sql import queries

_SQL = queries("web_links")


class PostgresWebLinks(PostgresPart):
    """Implements ``WebLinkStore``."""

    async def invite(
        self, name: str, link_hash: str, *, again: bool, now: datetime, expires_at: datetime
    ) -> bool:
        person = (*WEB_PLACE, name)
        async with self._pool.transaction() as connection:
            approve = _SQL["lock_guest"] if again else _SQL["add_guest"]
            if await connection.row(approve, *person, now) is None:
                return False
            await connection.fetch(_SQL["replace_unused"], *person)
            await connection.fetch(_SQL["add"], link_hash, *person, now, expires_at)
            await notify(connection, [Notice.PEOPLE])
        return True

    async def web_links(self) -> list[WebLink]:
        found = await self._pool.fetch(_SQL["links"])
        return [rows.from_row(WebLink, row) for row in found]

    async def web_link(self, link_hash: str) -> WebLink | None:
        found = await self._pool.row(_SQL["link"], link_hash)
        return None if found is None else rows.from_row(WebLink, found)

    async def use_web_link(
        self, link_hash: str, cookie_hash: str, *, now: datetime, until: datetime
    ) -> WebLink | None:
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["use"], link_hash, cookie_hash, now, until)
            found = await connection.row(_SQL["link"], link_hash)
        return None if found is None else rows.from_row(WebLink, found)

    async def web_link_of_cookie(self, cookie_hash: str, *, now: datetime) -> WebLink | None:
        found = await self._pool.row(_SQL["of_cookie"], cookie_hash, now)
        return None if found is None else rows.from_row(WebLink, found)

    async def end_web_sign_in(self, cookie_hash: str) -> None:
        await self._pool.fetch(_SQL["remove_cookie"], cookie_hash)
