"""``/api/people``, ``/api/chats`` and ``/api/web/guests`` (SPEC OPS-2, CHAN-5, CHAN-13)."""

from __future__ import annotations

import re

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import AlreadyInvited, NotAccepted, NotFound
from goclaw_py.core.messages import Sender
from goclaw_py.core.session_keys import AccessRules, DirectPolicy
from goclaw_py.core.web_links import LINK_LASTS
from goclaw_py.operations.people.operations import DirectAccess
from goclaw_py.records import ActivityQuery, Standing
from tests.unit.web import fake_names, fake_people
from tests.unit.web.harness import Gateway

pytestmark = pytest.mark.real_time


async def test_everything_comes_back_as_it_was(made: Gateway, remote: RemoteControl) -> None:
    ann, *guests = await remote.people.list()
    assert (ann, [one.sender.id for one in guests]) == (fake_people.ANN, ["ben", "lea"])
    assert await remote.people.list(limit=1) == [ann]
    assert await remote.people.list(before=ann.cursor) == guests
    assert await remote.people.requests() == [fake_people.ASKED]
    assert await remote.people.requests(code="co de") == [fake_people.ASKED]
    assert await remote.people.requests(code="OTHER") == []
    assert await remote.people.activity() == [fake_names.SPOKE]
    assert await remote.people.activity(before=fake_names.SPOKE.cursor) == []
    assert await remote.people.chats(limit=2) == [fake_names.FAMILY, fake_names.DIRECT]
    made.control.crowd.access = AccessRules(allow=frozenset({"44", "43"}))
    made.control.crowd.named = {"44": "Cleo"}
    allowed = (Sender("43"), Sender("44", "Cleo"))
    access = DirectAccess("telegram", "default", DirectPolicy.PAIRING, allowed)
    assert await remote.people.direct_access() == [access]
    assert await remote.people.guests() == [fake_people.BEN, fake_people.LEA]
    # One more than was asked for tells whether there is another page.
    for call in (("people", 1001), ("people", 2), ("chats", 3)):
        assert call in made.control.calls
    assert ("activity", ActivityQuery(limit=51)) in made.control.calls


async def test_everything_that_can_be_done_is_done(made: Gateway, remote: RemoteControl) -> None:
    await remote.people.allow_chat("telegram", "default", "-1001", allowed=False)
    guest = await remote.people.approve("CODE", guest=True)
    await remote.people.revoke("telegram", "default", "42", forget=True)
    invited = await remote.people.invite("ann")
    assert guest.standing is Standing.GUEST
    assert (invited.name, invited.expires_at) == ("ann", fake_names.AT + LINK_LASTS)
    assert re.fullmatch(r"/join/[\w-]{43}", invited.path)
    names = [name for name, *_ in made.control.calls]
    assert names.index("forget_name") < names.index("revoke")
    for call in (
        ("allow_chat", "telegram", "default", "-1001", False),
        ("revoke", "telegram", "default", "42"),
        ("invite", "ann", False),
    ):
        assert call in made.control.calls


async def test_what_cannot_be_done_raises_the_same_error(remote: RemoteControl) -> None:
    with pytest.raises(NotFound, match="no valid pairing request has the code 'WRONG'"):
        await remote.people.approve("WRONG", guest=False)
    with pytest.raises(NotFound, match="nobody with the id 'x'"):
        await remote.people.revoke("telegram", "default", "x")
    with pytest.raises(AlreadyInvited, match="--again"):
        await remote.people.invite("ben")
    with pytest.raises(NotFound, match="nobody called ann is invited"):
        await remote.people.invite("ann", again=True)
    with pytest.raises(NotAccepted, match="code: "):
        await remote.people.approve("", guest=False)
    with pytest.raises(NotAccepted, match="chat: "):
        await remote.people.allow_chat("telegram", "default", "-1\n2", allowed=True)
