"""The page of people with access, access requests, and groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.display_names import address
from goclaw_py.core.errors import AlreadyInvited, NotFound
from goclaw_py.core.messages import PeerKind, Sender
from goclaw_py.core.session_keys import DirectPolicy
from goclaw_py.core.text import visible_line
from goclaw_py.core.web_links import OWN_CHANNELS, WEB
from goclaw_py.operations.control import Control
from goclaw_py.records import Chat, LastActivity, unapproved
from goclaw_py.records.people import PersonId
from goclaw_py.web.guard import LOCAL_NAMES
from goclaw_py.web.pages.filters import Field, ListFilters, params_of
from goclaw_py.web.pages.parameters import place
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

_FRAME: Final = "people/page.html"
_FIELDS: Final = (Field("search", "Search", placeholder="name or id"),)
_ROLES: Final = ("owner", "guest")
_TAKEN: Final = "{} is, or was, invited: take another name, or choose “the same person”."

SHOWN: Final = 25
"""The number of people on a page."""

_SEARCHED: Final = 1000
"""The number of approved people, and of chats, the newest first, among which a search looks."""

_HEARD: Final = 200
"""The number of chats, the newest first, by which the page says when people were last seen."""

UNAPPROVED: Final = 10
"""The number of people without approval on a page."""


def routes(service: PageServices, public_url: str, *, has_token: bool) -> list[Route]:
    """Return the page, and its forms.

    ``public_url``: the address for links to the web chat; "" for the one that the operator uses.
    """
    control = service.control

    load, part = partial(_load, control, service.now), "people/people.html"
    params = params_of("search", "chats")
    page = Page("/people", "people", "People", load, params, 3.0, part=part, frame=_FRAME)

    async def approve(request: Request) -> Response:
        fields = await form(request)
        code, role = fields.get("code", "").strip(), fields.get("role", "")
        if not code or role not in _ROLES:
            raise HTTPException(422, "enter the code and choose the role: owner or guest")
        try:
            person = await control.people.approve(code, guest=role == "guest")
        except NotFound as error:
            facts = await service.facts(page, {})
            # The rest of the error is a command.
            typed = {"error": error.text, "code": code}
            return service.answer(request, _FRAME, {**facts, **typed}, 404)
        return back_to(
            "/people", f"approved {role} {person.channel}/{person.account}/{person.sender.id}"
        )

    async def revoke(request: Request) -> Response:
        fields = await form(request)
        names = [fields.get(name, "") for name in ("channel", "account", "sender")]
        if not all(names):
            raise HTTPException(422, "a person has a channel, an account and an id")
        try:
            await control.people.revoke(*names)
        except NotFound:
            # Another person was faster, or the same person in another window.
            return back_to("/people", "nothing")
        return back_to("/people", f"removed person {'/'.join(names)}")

    async def allow(request: Request) -> Response:
        fields = await form(request)
        names = [fields.get(name, "") for name in ("channel", "account", "chat")]
        if not all(names) or fields.get("allowed") not in ("yes", "no"):
            raise HTTPException(422, "a group has a channel, an account and an id")
        channel, account, chat = names
        allowed = fields["allowed"] == "yes"
        await control.people.allow_chat(channel, account, chat, allowed=allowed)
        what = "person" if fields.get("what") == "person" else "group"
        return back_to("/people", f"{'allowed' if allowed else 'denied'} {what} {'/'.join(names)}")

    return [
        *service.routes(page),
        _invite_route(service, page, public_url, has_token=has_token),
        Route("/people/approve", approve, methods=["POST"]),
        Route("/people/revoke", revoke, methods=["POST"]),
        Route("/people/groups", allow, methods=["POST"]),
    ]


def _invite_route(service: PageServices, page: Page, public_url: str, *, has_token: bool) -> Route:
    """Return the form that makes a personal link, which is shown in its answer only."""

    async def invite(request: Request) -> Response:
        fields = await form(request)
        name, again = fields.get("name", "").strip(), fields.get("again") == "yes"
        try:
            made = await service.control.people.invite(name, again=again)
        except (ValueError, AlreadyInvited, NotFound) as error:
            # Their texts name commands, which would help nobody here.
            status, said = 422, str(error)
            if isinstance(error, AlreadyInvited):
                status, said = 409, _TAKEN.format(name)
            elif isinstance(error, NotFound):
                status, said = 404, f"nobody called {name} was invited before"
            facts = await service.facts(page, {})
            typed = {"error": said, "name": name}
            return service.answer(request, _FRAME, {**facts, **typed}, status)
        # A form comes with its origin: by that we know of a proxy's name and TLS.
        base = public_url or request.headers.get("origin") or str(request.base_url).rstrip("/")
        facts = {"title": "Personal link", "path": "/people", "invitation": made}
        facts |= {"url": f"{base}{made.path}", "has_token": has_token}
        facts |= {"is_local": urlsplit(base).hostname in LOCAL_NAMES}
        return service.answer(request, "people/invitation.html", facts)

    return Route("/people/invite", invite, methods=["POST"])


async def _load(control: Control, now: Callable[[], datetime], query: Query) -> Facts:
    filters = ListFilters("/people", "people", query, _FIELDS, anchor="#people")
    search = filters.values["search"].casefold()
    before = place(query, keys=3)
    seen_before = place(query, "chats", keys=3)
    most = _SEARCHED if search else _HEARD
    shown, guests, asking, chats, heard, rules = await asyncio.gather(
        control.people.list(limit=_SEARCHED if search else SHOWN + 1, before=before),
        control.people.guests(),
        control.people.requests(),
        control.people.chats(limit=most),
        control.people.activity(limit=most),
        control.people.direct_access(),
    )
    page = await control.people.chats(limit=most, before=seen_before) if seen_before else chats
    removed = [] if seen_before else await _without_chat(control, heard, chats)
    allow = set(chain.from_iterable(one.ids() for one in rules))
    approved = {(one.channel, one.account, one.sender.id) for one in shown}
    by_settings = [
        (one, sender)
        for one in rules
        for sender in one.allow
        if before is None and (one.channel, one.account, sender.id) not in approved
        if _is_called(sender, search)
    ]
    if search:
        shown = [one for one in shown if _is_called(one.sender, search)]
        guests = [one for one in guests if search in one.name.casefold()]
        asking = [one for one in asking if _is_called(one.sender, search)]
        chats = [one for one in chats if search in f"{one.name}\n{one.chat}".casefold()]
    matching = [one for one in (*page, *removed) if search in f"{one.name}\n{one.chat}".casefold()]
    alone = await unapproved(control.people.list, matching, allow)
    left = [one for one in alone if one in removed][:UNAPPROVED]
    alone = [one for one in alone if one not in removed]
    last = alone[UNAPPROVED - 1] if len(alone) > UNAPPROVED else page[-1] if page else None
    has_more = len(alone) > UNAPPROVED or len(page) == most
    groups = [chat for chat in chats if chat.peer is not PeerKind.DIRECT]
    return {
        "filters": filters,
        # Those of the web chat have a table of their own.
        "people": [one for one in shown[:SHOWN] if one.channel != WEB],
        "by_settings": by_settings[:SHOWN],
        "more_by_settings": max(0, len(by_settings) - SHOWN),
        "allow": allow,
        "next": shown[SHOWN - 1].cursor if len(shown) > SHOWN else None,
        "guests": guests,
        "now": now(),
        "unapproved": [*alone[:UNAPPROVED], *left],
        "open": {(one.channel, one.account) for one in rules if one.direct is DirectPolicy.OPEN},
        "removed": left,
        "next_chats": last.cursor if last and has_more else None,
        "is_older": seen_before is not None,
        # What turns the direction of a name would turn its row, too.
        "line": visible_line,
        "last_seen": _last_seen(heard),
        # Groups that the settings allow need no decision.
        "served": {(one.target.channel, one.target.account, one.target.chat) for one in heard},
        "asking": asking,
        "groups": sorted(groups, key=_undecided_first),
        # What the form shows; only the page after a mistake has more in it.
        "code": "",
        "name": "",
        "called": {
            f"{one.channel}/{one.account}/{one.chat}": visible_line(one.name)
            for one in (*chats, *removed)
        }
        | {
            f"{one.channel}/{one.account}/{one.sender.id}": visible_line(one.sender.name)
            for one in shown
        },
    }


async def _without_chat(
    control: Control, activity: Sequence[LastActivity], chats: Sequence[Chat]
) -> list[Chat]:
    """Return the direct chats of people who wrote and whose chat is not stored, with names.

    Chats are stored of people who were let in without approval: the others are approved, allowed by
    the settings, or were so.
    """
    stored = {(one.channel, one.account, one.chat) for one in chats}
    found: dict[PersonId, LastActivity] = {}
    for one in activity:
        there = one.target
        person = (there.channel, there.account, one.sender_id)
        is_direct = one.peer is PeerKind.DIRECT and there.channel not in OWN_CHANNELS
        if is_direct and person not in stored:
            found.setdefault(person, one)
    names = await control.sessions.names([address(one.target) for one in found.values()])
    return [
        Chat(*person, PeerKind.DIRECT, names[address(one.target)], None, "", one.at, one.at)
        for person, one in found.items()
    ]


def _last_seen(activity: Sequence[LastActivity]) -> dict[tuple[str, str, str], datetime]:
    """Return when people last wrote, by channel, account and id. ``activity``: the newest first."""
    return {
        (one.target.channel, one.target.account, one.sender_id): one.at
        for one in reversed(activity)
    }


def _is_called(sender: Sender, search: str) -> bool:
    """Return whether a person has a text, in small letters, in a name or the id."""
    return search in f"{sender.name}\n{sender.username or ''}\n{sender.id}".casefold()


def _undecided_first(chat: Chat) -> tuple[bool, float]:
    return chat.allowed is not None, -chat.last_seen_at.timestamp()
