"""People, groups and guests of the web chat, and a control that knows them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import Sender, Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.session_keys import AccessRules, DirectPolicy
from goclaw_py.core.web_links import WEB_PLACE
from goclaw_py.operations.people.operations import PairingApplicant, People, WebGuest
from goclaw_py.records import (
    ActivityQuery,
    Chat,
    LastActivity,
    PairingRequest,
    Person,
    Place,
    Session,
    SessionQuery,
    Standing,
    Store,
    WebLink,
)
from goclaw_py.records.people import code_hash
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.scheduler.models import QueuePolicy
from tests.unit.web.fake_approvals import FakeApprovals
from tests.unit.web.fake_names import (
    AT,
    DIRECT,
    EVE,
    FAMILY,
    GONE,
    IMPOSTOR,
    SPOKE,
    WORK,
    FixedClock,
    behind,
)

ANN = Person("telegram", "default", Sender("42", "Ann", "ann"), Standing.OWNER, AT)
ASKS = PairingRequest(
    "telegram", "default", Sender("43", "Bob"), code_hash("CODE"), AT, AT, "r1", "43"
)
ASKED = PairingApplicant("telegram", "default", ASKS.sender, AT, AT, "43")
BEN = WebGuest("ben", AT, AT + timedelta(days=7), 2)
LEA = WebGuest("lea", AT, None, 0)


@dataclass
class FakePeopleStore:
    """The people and chats of ``FakeControl``. ``called`` notes what is asked of it."""

    called: Callable[..., None]
    approved: list[Person] = field(default_factory=lambda: [ANN])
    guests: list[WebGuest] = field(default_factory=lambda: [BEN, LEA])
    asking: list[PairingRequest] = field(default_factory=lambda: [ASKS])
    known_chats: list[Chat] = field(
        default_factory=lambda: [FAMILY, DIRECT, GONE, IMPOSTOR, WORK, EVE]
    )
    spoke: list[LastActivity] = field(default_factory=lambda: [SPOKE])
    access: AccessRules = field(default_factory=lambda: AccessRules(DirectPolicy.OPEN))
    """What the settings of the account say."""
    named: dict[str, str] = field(default_factory=dict)
    """Names by chat."""

    def rules(self) -> dict[Place, ChatRules]:
        """What the settings say, also of channels whose people they do not let in."""
        queue = QueuePolicy()
        return {
            ("telegram", "default"): ChatRules(MAIN_AGENT, self.access, queue, queue),
            WEB_PLACE: ChatRules(MAIN_AGENT, AccessRules(invited=True), queue, queue),
            ("console", "default"): ChatRules(MAIN_AGENT, AccessRules(trusted=True), queue, queue),
        }

    async def names(self, targets: Collection[Target]) -> KnownNames:
        found = {one: self.named[one.chat] for one in targets if one.chat in self.named}
        return KnownNames(found)

    async def people(
        self, *, limit: int | None = None, before: Cursor | None = None
    ) -> list[Person]:
        self.called("people", limit)
        guests = [
            Person("web", "default", Sender(one.name, one.name), Standing.GUEST, one.invited_at)
            for one in self.guests
        ]
        return behind([*self.approved, *guests], before)[:limit]

    async def web_links(self) -> list[WebLink]:
        found = []
        for one in self.guests:
            if one.link_until is not None:
                found.append(WebLink(one.name, "unused", AT, one.link_until))
            until = AT + timedelta(days=30)
            found += [WebLink(one.name, "used", AT, until, AT, "cookie")] * one.browsers
        return found

    async def invite(
        self, name: str, link_hash: str, *, again: bool, now: datetime, expires_at: datetime
    ) -> bool:
        del link_hash, now, expires_at
        self.called("invite", name, again)
        return True

    async def sessions(self, _query: SessionQuery) -> list[Session]:
        """None is of a guest who was removed."""
        return []

    async def pairing_requests(self, *, now: datetime) -> list[PairingRequest]:
        self.called("pairing_requests", now)
        return self.asking

    async def approve(self, hashed: str, *, guest: bool, now: datetime) -> Person | None:
        self.called("approve", hashed, guest)
        if hashed in {code_hash(one) for one in ("WRONG", "43", "Bob")}:
            return None
        standing = Standing.GUEST if guest else Standing.OWNER
        return Person("telegram", "default", ANN.sender, standing, now)

    async def forget_name(self, target: Target) -> None:
        self.called("forget_name", target)

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        self.called("revoke", channel, account, sender_id)
        return sender_id == ANN.sender.id

    async def activity(self, query: ActivityQuery) -> list[LastActivity]:
        self.called("activity", query)
        return behind(self.spoke, query.before)[: query.limit]

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        self.called("chats", limit)
        return behind(self.known_chats, before)[:limit]

    async def allow_chat(
        self, channel: str, account: str, chat: str, *, allowed: bool, now: datetime
    ) -> None:
        del now
        self.called("allow_chat", channel, account, chat, allowed)


class FakePeople(FakeApprovals):
    """The part of ``FakeControl`` that is about people: the real operations, a fake store."""

    def __init__(self) -> None:
        super().__init__()
        self.crowd = FakePeopleStore(self._called)
        self.people = People(cast("Store", self.crowd), FixedClock(), self.crowd.rules)
