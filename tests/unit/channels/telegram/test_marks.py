"""``channels.telegram.marks`` in virtual time (SPEC CHAN-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from channels.telegram.client import ChatPlace
from channels.telegram.marks import AFTER_S, FAILED, WAITS, Marks
from goclaw_py.core.errors import NotSent, RateLimited, Undeliverable
from goclaw_py.core.outcomes import Outcome
from tests.unit.channels.telegram.scripted import ScriptedClient

HERE = ChatPlace(7)
DONE = Outcome.COMPLETED


@asynccontextmanager
async def marking() -> AsyncIterator[tuple[ScriptedClient, Marks]]:
    client = ScriptedClient()
    marks = Marks(client.set_reaction)
    yield client, marks
    await marks.close()


def shown(client: ScriptedClient) -> list[tuple[float, int, str]]:
    return [(one.at, one.number, one.what) for one in client.reactions]


async def test_a_message_is_marked_after_two_seconds_and_cleared_at_the_end() -> None:
    async with marking() as (client, marks):
        marks.wait(HERE, [12])
        await asyncio.sleep(1.99)
        assert shown(client) == []
        await asyncio.sleep(3)
        marks.begin(HERE, [12])
        await asyncio.sleep(5)
        assert shown(client) == [(AFTER_S, 12, WAITS)]
        marks.end(HERE, [12], DONE)
        await asyncio.sleep(0)
        await marks.close()
        assert shown(client)[1:] == [(9.99, 12, "")]


async def test_what_is_worked_on_or_over_within_two_seconds_is_never_marked() -> None:
    async with marking() as (client, marks):
        marks.wait(HERE, [12, 13])
        await asyncio.sleep(1.9)
        marks.begin(HERE, [12])
        marks.end(HERE, [13], Outcome.DROPPED)
        await asyncio.sleep(60)
        marks.end(HERE, [12], DONE)
        await asyncio.sleep(60)
        assert client.calls == []


@pytest.mark.parametrize(
    ("outcome", "mark"),
    [
        (Outcome.FAILED, FAILED),
        (Outcome.TIMED_OUT, FAILED),
        (Outcome.ABANDONED, FAILED),
        (Outcome.LOST, FAILED),
        (Outcome.COMPLETED, None),
        (Outcome.CANCELLED, None),
        (Outcome.INTERRUPTED, None),
    ],
)
async def test_only_a_failure_leaves_a_mark_on_the_last_message(
    outcome: Outcome, mark: str | None
) -> None:
    async with marking() as (client, marks):
        marks.begin(HERE, [12, 13])
        marks.end(HERE, [12, 13], outcome)
        await asyncio.sleep(1)
        assert [(one.number, one.what) for one in client.reactions] == (
            [(13, mark)] if mark else []
        )


async def test_a_failure_takes_the_place_of_the_mark_of_one_that_waits() -> None:
    async with marking() as (client, marks):
        marks.wait(HERE, [12, 13])
        await asyncio.sleep(5)
        marks.end(HERE, [12, 13], Outcome.FAILED)
        await asyncio.sleep(5)
        assert shown(client)[2:] == [(5.0, 12, ""), (5.0, 13, FAILED)]


async def test_an_end_without_messages_shows_nothing() -> None:
    async with marking() as (client, marks):
        marks.end(HERE, [], Outcome.FAILED)
        await asyncio.sleep(5)
        assert client.calls == []


async def test_messages_with_one_number_in_two_chats_are_two() -> None:
    async with marking() as (client, marks):
        marks.wait(HERE, [12])
        marks.wait(ChatPlace(8), [12])
        marks.begin(ChatPlace(8), [12])
        await asyncio.sleep(5)
        assert [one.place for one in client.reactions] == [HERE]


async def test_the_end_is_shown_after_the_beginning_however_slow_that_was() -> None:
    async with marking() as (client, marks):
        client.takes_s["set_reaction"] = 10.0
        marks.wait(HERE, [12])
        await asyncio.sleep(3)
        marks.end(HERE, [12], DONE)
        await asyncio.sleep(30)
        assert shown(client) == [(2.0, 12, WAITS), (12.0, 12, "")]
        assert client.most_active == 1


async def test_a_mark_that_fails_is_tried_three_times() -> None:
    async with marking() as (client, marks):
        client.fail("set_reaction", NotSent("reset"), RateLimited("slow", 7.0))
        marks.end(HERE, [12], Outcome.FAILED)
        await asyncio.sleep(60)
        assert [one.at for one in client.reactions] == [0, 2, 9]
        client.fail("set_reaction", *[NotSent("reset")] * 9)
        marks.end(HERE, [13], Outcome.FAILED)
        await asyncio.sleep(60)
        assert len(client.reactions) == 6


async def test_where_reactions_are_refused_nothing_is_tried_again() -> None:
    async with marking() as (client, marks):
        client.fail("set_reaction", Undeliverable("REACTION_INVALID"))
        marks.end(HERE, [12], Outcome.FAILED)
        await asyncio.sleep(60)
        assert len(client.reactions) == 1


async def test_many_marks_leave_connections_to_typing_and_presses() -> None:
    async with marking() as (client, marks):
        client.takes_s["set_reaction"] = 1.0
        marks.wait(HERE, range(1, 3001))
        await asyncio.sleep(20)
        assert client.most_active == 2
        marks.end(HERE, range(1, 3001), DONE)
        await asyncio.sleep(2000)
        marked = {one.number for one in client.reactions if one.what == WAITS}
        assert len(client.reactions) <= 1000 + len(marked)
        last = {one.number: one.what for one in client.reactions}
        assert {last[number] for number in marked} == {""}


async def test_what_starts_or_ends_before_its_mark_was_sent_is_never_marked() -> None:
    """Under load marks wait for each other: late ones would only cost calls."""
    async with marking() as (client, marks):
        client.takes_s["set_reaction"] = 1.0
        for number in range(1, 11):
            marks.wait(HERE, [number])
            await asyncio.sleep(0.01)
        await asyncio.sleep(2.4)
        marks.begin(HERE, [3, 4, 5])
        marks.end(HERE, range(1, 9), DONE)
        marks.end(HERE, [9], Outcome.FAILED)
        await asyncio.sleep(60)
        assert {(one.number, one.what) for one in client.reactions} == {
            *((number, what) for number in (1, 2) for what in (WAITS, "")),
            (9, FAILED),
            (10, WAITS),
        }


async def test_no_message_is_marked_while_answers_come() -> None:
    """SPEC CHAN-4."""
    client, sent_at = ScriptedClient(), dict[ChatPlace, float]()
    marks = Marks(client.set_reaction, sent_at)
    marks.wait(HERE, [12])
    marks.wait(ChatPlace(8), [12])
    for second in range(1, 10):
        await asyncio.sleep(1)
        sent_at[HERE] = second
    await asyncio.sleep(60)
    assert shown(client) == [(2, 12, WAITS), (11, 12, WAITS)]
    await marks.close()


async def test_closing_ends_marks_that_are_due_or_under_way() -> None:
    async with marking() as (client, marks):
        client.takes_s["set_reaction"] = 100.0
        marks.wait(HERE, [12, 13])
        await asyncio.sleep(3)
        marks.end(HERE, [12], Outcome.FAILED)
        marks.wait(HERE, [14])
        await asyncio.sleep(0)
        await marks.close()
        assert asyncio.get_running_loop().time() == 3
        assert len(asyncio.all_tasks()) == 1
        await asyncio.sleep(300)
        assert [one.number for one in client.reactions] == [12, 13]


async def test_the_mark_of_an_earlier_process_is_cleared_at_the_end() -> None:
    """It may be there: whoever died cannot tell."""
    async with marking() as (client, marks):
        marks.wait(HERE, [12], marked=True)
        marks.begin(HERE, [12])
        await asyncio.sleep(1)
        assert shown(client) == []
        marks.end(HERE, [12], DONE)
        await asyncio.sleep(0)
        assert shown(client) == [(1.0, 12, "")]
