"""Troubles that operators are told about, once each (SPEC CHAN-10)."""

from __future__ import annotations

import pytest

from goclaw_py.model.messages import OutboundMessage
from goclaw_py.ports.store import Incident
from tests.support.stores import ANN, World, at

pytestmark = pytest.mark.real_time

TOLD = OutboundMessage(ANN, "My channel has a problem.")


async def test_an_incident_is_told_once_over_all_nodes_until_it_comes_again(world: World) -> None:
    """Also after a restart: a second store over the same database is one."""
    one, two = world.a, world.b
    assert await one.open_incident("channel:x", "no network", say=[TOLD], now=at(0))
    assert not await one.open_incident("channel:x", "no network", say=[TOLD], now=at(1))
    assert not await two.open_incident("channel:x", "still none", say=[TOLD], now=at(2))
    assert [row.message.text for row in await one.outbox()] == [TOLD.text]
    assert await two.incidents() == [Incident("channel:x", "still none", at(0))]
    assert await two.close_incident("channel:x")
    assert not await one.close_incident("channel:x")
    assert await one.incidents() == []
    assert await one.open_incident("channel:x", "no network", say=[TOLD], now=at(9))
    assert len(await one.outbox()) == 2


async def test_incidents_are_listed_the_oldest_first(world: World) -> None:
    store = world.a
    await store.open_incident("b", "second", say=[], now=at(2))
    await store.open_incident("a", "third", say=[], now=at(2))
    await store.open_incident("c", "first", say=[], now=at(1))
    assert [incident.key for incident in await store.incidents()] == ["c", "a", "b"]
