"""Invitations to the web chat, over both stores (SPEC CHAN-13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from goclaw_py.core.errors import AlreadyInvited, NotFound
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import chat_session
from goclaw_py.core.web_links import LINK_LASTS, secret_hash
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.operations.control import Control
from goclaw_py.operations.web_guests import WebGuest
from goclaw_py.schedule.heartbeat.alert_targets import AlertTargetResolver
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, LastChat
from goclaw_py.schedule.jobs.models import OPERATOR
from goclaw_py.schedule.jobs.targets import owners_chat
from tests.support.stores import ANN, A, World, at, inbox
from tests.unit.gateway.test_control_post import StoppedClock

pytestmark = pytest.mark.real_time

NOW = at(100)


@pytest.fixture
def control(world: World) -> Control:
    return StoreControl(world.b, StoppedClock(NOW))


async def use(world: World, path: str, cookie: str, until: timedelta) -> None:
    stored = secret_hash(path.removeprefix("/join/"))
    assert await world.a.use_web_link(stored, cookie, now=NOW, until=NOW + until)


async def test_the_secret_of_a_link_is_not_stored(world: World, control: Control) -> None:
    """SEC-2."""
    made = await control.invite_web_guest("ann")
    (stored,) = await world.a.web_links()
    secret = made.path.removeprefix("/join/")
    assert (made.name, made.expires_at, len(secret)) == ("ann", NOW + LINK_LASTS, 43)
    assert stored.link_hash == secret_hash(secret)
    assert secret not in repr(stored)
    assert secret not in repr(made)


async def test_guests_are_listed_with_their_link_and_browsers(
    world: World, control: Control
) -> None:
    first = await control.invite_web_guest("ann")
    await use(world, first.path, "c1", timedelta(days=1))
    second = await control.invite_web_guest("ann", again=True)
    await use(world, second.path, "c2", timedelta())
    third = await control.invite_web_guest("ann", again=True)
    assert await control.web_guests() == [WebGuest("ann", NOW, third.expires_at, 1)]


async def test_a_name_with_earlier_conversations_is_for_the_same_person_only(
    world: World, control: Control
) -> None:
    """Somebody else of this name would read them."""
    with pytest.raises(NotFound, match="nobody called ann is invited"):
        await control.invite_web_guest("ann", again=True)
    await control.invite_web_guest("ann")
    with pytest.raises(AlreadyInvited):
        await control.invite_web_guest("ann")
    await control.revoke("web", "default", "ann")
    await control.invite_web_guest("ann")
    await control.revoke("web", "default", "ann")
    chat = Target("web", "default", "ann.trip")
    key = chat_session(MAIN_AGENT, chat, PeerKind.DIRECT)
    await world.a.accept([replace(inbox(1, target=chat), session=key)], node=A, now=NOW)
    with pytest.raises(AlreadyInvited, match="--again"):
        await control.invite_web_guest("ann")
    assert (await control.invite_web_guest("ann", again=True)).name == "ann"
    assert (await control.invite_web_guest("an")).name == "an"


@pytest.mark.parametrize("name", ["", "a b", "ann.trip", "-ann", "x" * 33, "Änne", "a/b", "a:b"])
async def test_a_name_that_cannot_be_is_refused(control: Control, name: str) -> None:
    with pytest.raises(ValueError, match="1 to 32 characters"):
        await control.invite_web_guest(name)
    assert await control.web_guests() == []


async def test_alerts_and_results_of_operators_do_not_go_to_guests(world: World) -> None:
    """HB-8, CRON-13: also if a guest was the last who wrote."""
    guest = Target("web", "default", "ann")
    for number, target in enumerate((ANN, guest)):
        key = chat_session(MAIN_AGENT, target, PeerKind.DIRECT)
        row = replace(inbox(number, target=target), session=key, agent=MAIN_AGENT)
        await world.a.accept([row], node=A, now=at(number))
    places = {("telegram", "default"), ("web", "default")}
    alerts = AlertTargetResolver(world.b, places)
    assert (await alerts.find(MAIN_AGENT, HeartbeatPolicy())).route.target == ANN
    of_web = HeartbeatPolicy(target=LastChat("web"))
    assert (await alerts.find(MAIN_AGENT, of_web)).route.target == guest
    job: Any = SimpleNamespace(owner=OPERATOR, spec=SimpleNamespace(agent=MAIN_AGENT))
    assert await owners_chat(world.b, places, job) == ANN
