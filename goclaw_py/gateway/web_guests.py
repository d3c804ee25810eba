"""Invited people of the web chat, and their links (SPEC CHAN-13)."""

from __future__ import annotations

import logging
import secrets
from datetime import UTC, datetime
from typing import Final

from goclaw_py.core.errors import AlreadyInvited, NotFound
from goclaw_py.core.session_keys import chat_of
from goclaw_py.core.web_links import (
    LINK_LASTS,
    NAME_RULE,
    SECRET_BYTES,
    WEB,
    WEB_PLACE,
    guest_of,
    is_guest_name,
    join_path,
    secret_hash,
)
from goclaw_py.operations.web_guests import WebGuest, WebInvitation
from goclaw_py.records import Store

log = logging.getLogger(__name__)

_LOOKED_AT: Final = 1000


async def invite(store: Store, name: str, *, again: bool, now: datetime) -> WebInvitation:
    """Create a link; see ``Control.invite_web_guest``."""
    if not is_guest_name(name):
        raise ValueError(NAME_RULE)
    is_known = await _is_known(store, name)
    if again and not is_known:
        raise NotFound(f"nobody called {name} is invited; see: goclaw web list")
    secret, until = secrets.token_urlsafe(SECRET_BYTES), now + LINK_LASTS
    stored = secret_hash(secret)
    # A person who was removed has left conversations: they are for nobody else of this name.
    if (is_known and not again) or not await store.invite(
        name, stored, again=again, now=now, expires_at=until
    ):
        raise AlreadyInvited(
            f"{name} is, or was, invited: take another name, or for the same person: "
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


async def _is_known(store: Store, name: str) -> bool:
    """Return whether a person is invited, or has conversations from before."""
    if any(one.name == name for one in await guests(store, now=datetime.min.replace(tzinfo=UTC))):
        return True
    found = await store.sessions(limit=_LOOKED_AT, search=f":{WEB}:direct:{name}")
    chats = filter(None, (chat_of(one.key) for one in found))
    return any(one.channel == WEB and guest_of(one.chat) == name for one in chats)
