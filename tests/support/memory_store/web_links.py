"""Personal links to the web chat."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from goclaw_py.core.messages import Sender
from goclaw_py.core.web_links import WEB_PLACE
from goclaw_py.records import Notice, Person, Standing, WebLink
from tests.support.memory_store.tables import MemoryPart


class MemoryWebLinks(MemoryPart):
    """Implements ``WebLinkStore``."""

    async def invite(
        self, name: str, link_hash: str, *, again: bool, now: datetime, expires_at: datetime
    ) -> bool:
        key = (*WEB_PLACE, name)
        if key in self._db.people and not again:
            return False
        links = self._db.web_links
        for link in list(links.values()):
            if link.name == name and link.used_at is None:
                del links[link.link_hash]
        person = Person(*WEB_PLACE, Sender(name, name), Standing.GUEST, now)
        self._db.people.setdefault(key, person)
        links[link_hash] = WebLink(name, link_hash, now, expires_at)
        self._db.notify(Notice.PEOPLE)
        return True

    async def web_links(self) -> list[WebLink]:
        found = sorted(self._db.web_links.values(), key=lambda link: link.link_hash)
        return sorted(found, key=lambda link: link.created_at, reverse=True)

    async def web_link(self, link_hash: str) -> WebLink | None:
        return self._db.web_links.get(link_hash)

    async def use_web_link(
        self, link_hash: str, cookie_hash: str, *, now: datetime, until: datetime
    ) -> WebLink | None:
        link = self._db.web_links.get(link_hash)
        if link is not None and link.used_at is None and link.expires_at > now:
            link = replace(link, used_at=now, expires_at=until, cookie_hash=cookie_hash)
            self._db.web_links[link_hash] = link
        return link

    async def web_link_of_cookie(self, cookie_hash: str, *, now: datetime) -> WebLink | None:
        link = self._of_cookie(cookie_hash)
        return None if link is None or link.expires_at <= now else link

    async def end_web_sign_in(self, cookie_hash: str) -> None:
        if (link := self._of_cookie(cookie_hash)) is not None:
            del self._db.web_links[link.link_hash]

    def _of_cookie(self, cookie_hash: str) -> WebLink | None:
        found = self._db.web_links.values()
        return next((link for link in found if link.cookie_hash == cookie_hash), None)
