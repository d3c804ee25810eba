"""``/api/outbox`` and ``/api/inbox``: messages and their delivery (SPEC OPS-2, IO-3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import RunId
from goclaw_py.operations.deliveries.operations import MessageCounts
from goclaw_py.records import (
    DeadLetterQuery,
    IncomingState,
    MessageFilter,
    OutboxQuery,
    OutboxState,
)
from tests.unit.web import fakes
from tests.unit.web.fake_names import ANSWERED, AT, BEGUN, DROPPED, LOST, NEXT, TOPIC
from tests.unit.web.harness import Api, Gateway

pytestmark = pytest.mark.real_time

FEW = MessageFilter("telegram", replace(TOPIC, thread=None), AT - timedelta(hours=1), "a&b", "work")
DEAD = OutboxQuery(OutboxState.FAILED)


async def test_everything_comes_back_as_it_was(made: Gateway, remote: RemoteControl) -> None:
    assert await remote.deliveries.outbox(DEAD) == [fakes.DEAD]
    assert await remote.deliveries.outbox_row(fakes.DEAD.id) == fakes.DEAD
    assert await remote.deliveries.dead_letters() == [LOST, DROPPED]
    for state, one in ((IncomingState.WAITING, NEXT), (IncomingState.RUNNING, BEGUN)):
        assert await remote.deliveries.dead_letters(DeadLetterQuery(state)) == [one]
    assert await remote.deliveries.dead_letter(ANSWERED.row.id) == ANSWERED
    counts = MessageCounts({OutboxState.FAILED: 1}, failed=3, waiting=1, dismissed=0)
    assert await remote.deliveries.channels() == ["telegram"]
    assert await remote.deliveries.dead_letters(DeadLetterQuery(IncomingState.DISMISSED)) == []
    assert await remote.deliveries.counts(FEW) == counts
    assert ("outbox_counts", FEW) in made.control.calls
    with pytest.raises(NotFound, match="there is no incoming message 99"):
        await remote.deliveries.dead_letter(99)


async def test_former_states_are_accepted() -> None:
    api = Api()
    status, rows = await api("GET", "/outbox?state=dead")
    assert (status, {row["state"] for row in rows}) == (200, {"failed"})
    status, rows = await api("GET", "/outbox?state=pending")
    query = OutboxQuery(OutboxState.WAITING, limit=51)
    assert (status, rows, api.control.calls[-1]) == (200, [], ("outbox", query))
    await api("GET", "/inbox?waiting=true")
    waiting = DeadLetterQuery(IncomingState.WAITING, limit=51)
    assert api.control.calls[-1] == ("dead_letters", waiting)


async def test_each_field_of_a_query_selects(made: Gateway, remote: RemoteControl) -> None:
    """One more row than was asked for says whether there is another page."""
    outgoing = OutboxQuery(OutboxState.FAILED, RunId("0190"), FEW, limit=7, before=2**41)
    incoming = DeadLetterQuery(IncomingState.WAITING, FEW, limit=8, before=9)
    await remote.deliveries.outbox(outgoing)
    await remote.deliveries.dead_letters(incoming)
    asked = [("outbox", replace(outgoing, limit=8)), ("dead_letters", replace(incoming, limit=9))]
    assert made.control.calls == asked


async def test_pages_follow_each_other(made: Gateway, remote: RemoteControl) -> None:
    made.control.messages.rows = [replace(fakes.DEAD, id=number) for number in (9, 7, 4)]
    assert [row.id for row in await remote.deliveries.outbox(OutboxQuery(before=7))] == [4]
    assert await remote.deliveries.outbox(OutboxQuery(run=RunId("other"))) == []
    assert len(await remote.deliveries.outbox(replace(DEAD, run=fakes.RUN_ID))) == 3
    assert await remote.deliveries.dead_letters(DeadLetterQuery(before=9)) == [LOST]


async def test_messages_are_retried_and_dropped(made: Gateway, remote: RemoteControl) -> None:
    assert await remote.deliveries.retry_outbox([fakes.DEAD.id, 1]) == 1
    assert await remote.deliveries.drop_outbox([fakes.DEAD.id, 1]) == 1
    assert await remote.deliveries.retry_dead_letters([8, 1]) == 1
    assert await remote.deliveries.dismiss_dead_letters([8, 9]) == 1
    assert made.control.calls == [
        ("retry_outbox", (fakes.DEAD.id, 1)),
        ("drop_outbox", (fakes.DEAD.id, 1)),
        ("retry_dead_letters", (8, 1)),
        ("dismiss_dead_letters", (8, 9)),
    ]
