"""Channels learn who is an owner (SPEC CMD-5)."""

from __future__ import annotations

from goclaw_py.core.run_events import RoleChanged
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import a_process
from tests.support.memory_store.tables import MemoryDatabase
from tests.unit.chat.access.test_pairing import admit


def roles(channel: RecordingChannel) -> dict[str, bool]:
    """The last signal about each person."""
    changes = [one for one in channel.signals if isinstance(one, RoleChanged)]
    return {one.target.chat: one.is_owner for one in changes}


async def test_who_ceased_to_be_an_owner_while_no_gateway_ran_is_none_at_the_next_start() -> None:
    """A service may show for ever the menu that it was given."""
    database = MemoryDatabase()
    first = RecordingChannel(trusted=False)
    async with a_process(database=database, channels=(first,)) as gateway:
        await admit(gateway, "ann")
        await admit(gateway, "bob")
        await gateway.container.roles.refresh()
        assert roles(first) == {"ann": True, "bob": True}
        seen = len(first.signals)
        await gateway.container.roles.refresh()
        assert first.signals[seen:] == []
        await gateway.control.people.revoke(first.name, first.account, "bob")
        await gateway.container.roles.refresh()
        assert roles(first) == {"ann": True, "bob": False}
    second = RecordingChannel(trusted=False)
    async with a_process(database=database, channels=(second,)) as gateway:
        await gateway.store.revoke(second.name, second.account, "ann")
        await gateway.container.roles.refresh()
        assert roles(second) == {"ann": False, "bob": False}
