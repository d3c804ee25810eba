"""Invited people of the web chat, and their links (SPEC CHAN-13)."""

from __future__ import annotations

import logging
import secrets
from datetime import datetime

from goclaw_py.model.errors import AlreadyInvited, NotFound
from goclaw_py.model.web_links import (
    LINK_LASTS,
    NAME_RULE,
    SECRET_BYTES,
    WEB_PLACE,
    is_guest_name,
    join_path,
    secret_hash,
)
from goclaw_py.ports.control import WebGuest, WebInvitation
from goclaw_py.ports.store import Store

log = logging.getLogger(__name__)


async def invite(store: Store, name: str, *, again: bool, now: datetime) -> WebInvitation:
    """Create a link; see ``Control.invite_web_guest``."""
    if not is_guest_name(name):
        raise ValueError(NAME_RULE)
    secret, until = secrets.token_urlsafe(SECRET_BYTES), now + LINK_LASTS
    if not await store.invite(name, secret_hash(secret), again=again, now=now, expires_at=until):
        if again:
            raise NotFound(f"nobody called {name} is invited; see: goclaw web list")
        raise AlreadyInvited(
            f"{name} is invited already; another link for the same person: "
            f"goclaw web invite {name} --again"
        )
    log.info("web_guest_invited", extra={"person": name, "again": again})
    return WebInvitation(name, join_path(secret), until)


async def guests(store: Store, *, now: datetime) -> list[WebGuest]:
    """Return the invited people, the most recently invited first."""
    links = await store.web_links()
    found = []
    for person in await store.people():
        if (person.channel, person.account) != WEB_PLACE:
            continue
        own = [link for link in links if link.name == person.sender.id]
        unused = [link.expires_at for link in own if link.used_at is None]
        browsers = sum(link.used_at is not None and link.expires_at > now for link in own)
        link_until = unused[0] if unused else None
        found.append(WebGuest(person.sender.id, person.approved_at, link_until, browsers))
    return found
