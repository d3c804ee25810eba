"""What operators do with people, groups and guests, over both stores (SPEC CHAN-5, CHAN-13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from goclaw_py.core.errors import AlreadyInvited, NotFound
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import chat_session
from goclaw_py.core.web_links import LINK_LASTS, secret_hash
from goclaw_py.operations.people.operations import PairingApplicant, People, WebGuest
from goclaw_py.records import FixedAccounts, Notice, SeenChat
from goclaw_py.schedule.heartbeat.alert_targets import AlertTargetResolver
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, LastChat
from goclaw_py.schedule.jobs.models import OPERATOR
from goclaw_py.schedule.jobs.targets import owners_chat
from tests.support.stores import ANN, BOB, T0, A, CollectedNotices, World, at, inbox, pairing, until

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

NOW = at(100)


class StoppedClock:
    def now(self) -> datetime:
        return NOW


@pytest.fixture
def people(world: World) -> People:
    return People(world.b, StoppedClock())


async def use(world: World, path: str, cookie: str, until: timedelta) -> None:
    stored = secret_hash(path.removeprefix("/join/"))
    assert await world.a.use_web_link(stored, cookie, now=NOW, until=NOW + until)


async def test_the_secret_of_a_link_is_not_stored(world: World, people: People) -> None:
    """SEC-2."""
    made = await people.invite("ann")
    (stored,) = await world.a.web_links()
    secret = made.path.removeprefix("/join/")
    assert (made.name, made.expires_at, len(secret)) == ("ann", NOW + LINK_LASTS, 43)
    assert stored.link_hash == secret_hash(secret)
    assert secret not in repr(stored)
    assert secret not in repr(made)


async def test_guests_are_listed_with_their_link_and_browsers(world: World, people: People) -> None:
    first = await people.invite("ann")
    await use(world, first.path, "c1", timedelta(days=1))
    second = await people.invite("ann", again=True)
    await use(world, second.path, "c2", timedelta())
    third = await people.invite("ann", again=True)
    assert await people.guests() == [WebGuest("ann", NOW, third.expires_at, 1)]


async def test_a_name_with_earlier_conversations_is_for_the_same_person_only(
    world: World, people: People
) -> None:
    """Somebody else of this name would read them."""
    with pytest.raises(NotFound, match="nobody called ann is invited"):
        await people.invite("ann", again=True)
    await people.invite("ann")
    with pytest.raises(AlreadyInvited):
        await people.invite("ann")
    await people.revoke("web", "default", "ann")
    await people.invite("ann")
    await people.revoke("web", "default", "ann")
    chat = Target("web", "default", "ann.trip")
    key = chat_session(MAIN_AGENT, chat, PeerKind.DIRECT)
    await world.a.accept([replace(inbox(1, target=chat), session=key)], node=A, now=NOW)
    with pytest.raises(AlreadyInvited, match="--again"):
        await people.invite("ann")
    assert (await people.invite("ann", again=True)).name == "ann"
    assert (await people.invite("an")).name == "an"


@pytest.mark.parametrize("name", ["", "a b", "ann.trip", "-ann", "x" * 33, "a😀", "a/b", "a:b"])
async def test_a_name_that_cannot_be_is_refused(people: People, name: str) -> None:
    with pytest.raises(ValueError, match="1 to 32 characters"):
        await people.invite(name)
    assert await people.guests() == []


async def test_alerts_and_results_of_operators_do_not_go_to_guests(
    world: World, people: People
) -> None:
    """HB-8, CRON-13: nor to a group in which a guest was the last who wrote."""
    telegram, web, console = (Target(one, "default", "") for one in ("telegram", "web", "console"))
    accounts = FixedAccounts(
        [("telegram", "default"), ("web", "default"), ("console", "default")],
        [("telegram", "default", "listed"), ("console", "default", None)],
    )
    for person, is_guest in (("owner", False), ("guest", True)):
        asked = pairing(person, person, now=T0)
        await world.a.accept([], node=A, now=T0, pairings=[asked])
        await world.a.approve(asked.request.code_hash, guest=is_guest, now=T0)
    await people.invite("ann")
    group = replace(telegram, chat="-100")
    heard = (
        (replace(telegram, chat="owner"), "owner", True),
        (replace(telegram, chat="guest"), "guest", False),
        (replace(telegram, chat="stranger"), "stranger", False),
        (replace(telegram, chat="listed"), "listed", True),
        (replace(web, chat="ann"), "ann", False),
        (replace(group, thread="4"), "owner", True),
        (group, "owner", True),
        (group, "guest", False),
        (replace(console, chat="browser"), "operator", True),
    )
    alerts, last = AlertTargetResolver(world.b, accounts), None
    job: Any = SimpleNamespace(owner=OPERATOR, spec=SimpleNamespace(agent=MAIN_AGENT))
    for number, (target, sender, is_owner) in enumerate(heard):
        peer = PeerKind.GROUP if target.chat == group.chat else PeerKind.DIRECT
        row = inbox(number, target=target, sender=sender)
        message = replace(row.message, peer=peer)
        row = replace(
            row, message=message, session=chat_session(MAIN_AGENT, target, peer), agent=MAIN_AGENT
        )
        await world.a.accept([row], node=A, now=at(number))
        if is_owner:
            last = target
        elif last == target:
            last = replace(group, thread="4")
        assert (await alerts.find(MAIN_AGENT, HeartbeatPolicy())).route.target == last
        assert await owners_chat(world.b, accounts, job) == last
    for channel, expected in (("web", "ann"), ("telegram", "-100")):
        of_channel = HeartbeatPolicy(target=LastChat(channel))
        route = (await alerts.find(MAIN_AGENT, of_channel)).route
        assert route.target is not None
        assert route.target.chat == expected


async def test_a_group_that_is_decided_about_stays_so(world: World, people: People) -> None:
    """SPEC CHAN-5."""
    group = Target("telegram", "default", "-1001")
    await world.a.note_chats([SeenChat(group, PeerKind.GROUP, "Family")], now=T0)
    (seen,) = await people.chats()
    assert (seen.name, seen.allowed) == ("Family", None)
    notices = CollectedNotices()
    world.a.on_notice(notices.append)
    for allowed in (True, False):
        await people.allow_chat("telegram", "default", "-1001", allowed=allowed)
        assert (await people.chats()) == [replace(seen, allowed=allowed)]
    await until(notices.expect(Notice.PEOPLE))


async def test_a_group_can_be_allowed_before_it_is_seen(world: World, people: People) -> None:
    await people.allow_chat("telegram", "work", "-2", allowed=True)
    (known,) = await people.chats()
    assert (known.account, known.chat, known.allowed) == ("work", "-2", True)
    assert known.peer is PeerKind.GROUP


async def test_who_asks_is_told_without_their_code_hash(world: World, people: People) -> None:
    """SPEC SEC-2."""
    request = pairing("50", "hash", now=at(90)).request
    await world.a.accept([], node=A, now=at(90), pairings=[pairing("50", "hash", now=at(90))])
    since, until_then = request.created_at, request.expires_at
    asking = PairingApplicant("telegram", "default", request.sender, since, until_then, "50")
    assert await people.requests() == [asking]


async def test_where_a_person_spoke_last_is_known(world: World, people: People) -> None:
    """SPEC HB-8."""
    assert await people.activity() == []
    await world.a.accept([inbox(1, ANN)], node=A, now=T0)
    await world.a.accept([inbox(2, BOB, sender="8")], node=A, now=at(1))
    heard = await people.activity(limit=1)
    assert [(one.target, one.sender_id) for one in heard] == [(BOB, "8")]
