"""The store that knows the node of its process and can wait for the database."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.errors import Fenced, StoreUnavailable
from goclaw_py.core.ids import NodeId
from goclaw_py.records.bound import BoundStore, bind
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.stores import a_node

HERE = NodeId("here")


def here(store: FlakyStore) -> BoundStore:
    return bind(store, lambda: HERE)


async def test_a_call_of_the_bound_store_fails_while_the_database_is_away() -> None:
    store = FlakyStore()
    store.away = True
    with pytest.raises(StoreUnavailable):
        await here(store).backlog()
    assert store.calls["backlog"] == 1


async def test_a_retried_call_waits_for_the_database() -> None:
    store = FlakyStore()
    store.broken.add("nodes")
    waiting = asyncio.create_task(here(store).retried.nodes())
    await asyncio.sleep(60)
    assert not waiting.done()
    store.broken.clear()
    assert await waiting == []
    assert store.calls["nodes"] > 10


async def test_a_retried_call_whose_answer_was_lost_has_the_same_arguments_again() -> None:
    store, clock = FlakyStore(), LoopClock()
    await store.join(a_node(HERE, started_at=clock.now()))
    store.lose_answer["claim_lease"] = 1
    assert await here(store).retried.claim_lease("bot:1", HERE, now=clock.now())
    assert store.calls["claim_lease"] == 2


async def test_a_retried_call_raises_any_other_error_at_once() -> None:
    store = FlakyStore()
    store.errors["nodes"] = Fenced("another node has it")
    with pytest.raises(Fenced):
        await here(store).retried.nodes()
    assert store.calls["nodes"] == 1


async def test_a_node_that_lost_its_lease_has_another_id_and_is_not_live() -> None:
    """SPEC QUEUE-2."""
    ids = [HERE]
    store = bind(FlakyStore(), lambda: ids[-1], lambda: None if len(ids) > 1 else HERE)
    assert (store.node(), store.live()) == (HERE, HERE)
    ids.append(NodeId("after"))
    assert (store.node(), store.live()) == (NodeId("after"), None)


def test_without_a_lease_the_node_is_always_live() -> None:
    assert here(FlakyStore()).live() == HERE
