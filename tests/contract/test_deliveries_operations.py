"""What operators do about messages, over both stores (SPEC OPS-4)."""

from __future__ import annotations

import pytest

from goclaw_py.core.errors import NotFound
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.records import DeadLetterQuery, IncomingState, Notice, OutboxQuery, OutboxState
from tests.support.stores import (
    ANN,
    BOB,
    T0,
    A,
    CollectedNotices,
    World,
    at,
    say,
    until,
)
from tests.support.work import SetClock

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def deliveries(world: World) -> Deliveries:
    return Deliveries(world.b, SetClock(at(100)))


async def test_a_dead_message_is_shown_and_tried_again(
    world: World, deliveries: Deliveries
) -> None:
    """SPEC IO-3."""
    await world.put(say("never arrives"))
    row = await world.claimed()
    # What is being sent is neither dropped nor tried again.
    assert await deliveries.drop_outbox([row.id]) == await deliveries.retry_outbox([row.id]) == 0
    assert (await deliveries.outbox_row(row.id)).state is OutboxState.SENDING
    await world.a.mark_dead(row, "chat not found", now=T0)
    shown = await deliveries.outbox_row(row.id)
    assert (shown.state, shown.error) == (OutboxState.FAILED, "chat not found")
    assert await deliveries.retry_outbox([row.id, row.id + 1]) == 1
    again = await deliveries.outbox_row(row.id)
    assert (again.state, again.attempts) == (OutboxState.WAITING, 0)
    assert again.next_attempt_at == at(100)


async def test_a_dropped_message_waits_until_it_is_retried(
    world: World, deliveries: Deliveries
) -> None:
    (waits,) = await world.put(say("waits"))
    assert await deliveries.drop_outbox([waits.id, waits.id + 1]) == 1
    assert (await deliveries.outbox_row(waits.id)).state is OutboxState.DROPPED
    assert await deliveries.outbox(OutboxQuery(OutboxState.FAILED)) == []
    assert await world.a.claim_next(ANN, node=A, now=at(200)) is None
    assert await deliveries.retry_outbox([waits.id]) == 1
    assert await world.a.claim_next(ANN, node=A, now=at(200)) is not None


async def test_an_unknown_message_is_named(deliveries: Deliveries) -> None:
    with pytest.raises(NotFound, match="there is no delivery 99"):
        await deliveries.outbox_row(99)
    with pytest.raises(NotFound, match="there is no incoming message 98"):
        await deliveries.dead_letter(98)


async def test_a_failed_message_is_listed_until_dismissed(
    world: World, deliveries: Deliveries
) -> None:
    failed, lost, waits = await world.accept(ANN, BOB, BOB)
    await world.a.settle([failed.id], Outcome.DROPPED, reason=Reason.QUEUE_DROPPED, now=at(5))
    await world.a.settle([lost.id], Outcome.LOST, reason=Reason.CRASHED, now=at(5))
    assert [one.row.id for one in await deliveries.dead_letters()] == [lost.id, failed.id]
    (letter,) = (await deliveries.dead_letters())[1:]
    assert (letter.session, letter.attempts) == (failed.session, 0)
    assert (letter.row.outcome, letter.row.reason) == (Outcome.DROPPED, Reason.QUEUE_DROPPED)
    assert await deliveries.dead_letter(failed.id) == letter
    assert [one.row.id for one in await deliveries.dead_letters(DeadLetterQuery(limit=1))] == [
        lost.id
    ]
    assert await deliveries.dismiss_dead_letters([failed.id, 999]) == 1
    assert (await deliveries.dead_letter(failed.id)).row.outcome is Outcome.DROPPED
    notices = CollectedNotices()
    world.a.on_notice(notices.append)
    assert await deliveries.retry_dead_letters([lost.id, waits.id]) == 1
    await until(notices.expect(Notice.INBOX))
    assert await deliveries.dead_letters() == []
    waiting = await deliveries.dead_letters(DeadLetterQuery(IncomingState.WAITING))
    assert [one.row.id for one in waiting] == [waits.id, lost.id]
    assert (
        await deliveries.dead_letters(DeadLetterQuery(IncomingState.WAITING, limit=1))
        == waiting[:1]
    )
    claimed = await world.a.claim_pending(A, now=at(101), places=[("telegram", "default")])
    assert {row.id for row in claimed} == {lost.id, waits.id}
