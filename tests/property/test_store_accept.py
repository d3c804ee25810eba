"""Laws of accepting messages, over any sequence of batches (SPEC IO-1, IO-2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import Target
from tests.support.memory_store import MemoryDatabase, MemoryStore
from tests.support.stores import ANN, BOB, PLACES, T0, A, B, a_node, inbox

messages = st.tuples(st.integers(0, 12), st.sampled_from([ANN, BOB]))
batches = st.lists(st.tuples(st.sampled_from([A, B]), st.lists(messages, max_size=8)), max_size=8)


@given(batches)
async def test_every_message_is_handed_out_once_and_in_order(
    offered: list[tuple[NodeId, list[tuple[int, Target]]]],
) -> None:
    database = MemoryDatabase()
    stores = {A: MemoryStore(database), B: MemoryStore(database)}
    for node, store in stores.items():
        await store.join(a_node(node))
    seen: list[str] = []
    listed: list[int] = []
    for node, wanted in offered:
        batch = [inbox(number, target) for number, target in wanted]
        accepted = await stores[node].accept(batch, node=node, now=T0)
        ids = [new.message.external_id for new in batch]
        assert accepted.duplicates == set(ids) & set(seen)
        listed += [row.id for row in accepted.rows]
        seen += [external for external in dict.fromkeys(ids) if external not in seen]
    pending = [
        row
        for node, store in stores.items()
        for row in await store.claim_pending(node, now=T0, places=PLACES)
    ]
    pending.sort(key=lambda row: row.id)
    assert [row.message.external_id for row in pending] == seen
    assert listed == sorted(set(listed))
