"""What every store promises about questions between nodes (SPEC NODE-1)."""

from __future__ import annotations

import pytest

from goclaw_py.model.ids import NodeId
from goclaw_py.ports.store import NodeCall, Notice
from tests.support.stores import LEASE_S, T0, A, B, World, at, listen, until

pytestmark = pytest.mark.real_time

QUESTION = '{"what": "stop", "session": "agent:main:telegram:direct:1"}'


async def test_a_question_reaches_the_node_that_is_asked_and_nobody_else(world: World) -> None:
    call = await world.a.ask(B, QUESTION, now=T0)
    assert call is not None
    assert await world.b.asked(B) == [NodeCall(call, QUESTION, T0)]
    assert await world.a.asked(A) == []


async def test_questions_come_in_their_order_until_they_are_answered(world: World) -> None:
    first, second = [await world.a.ask(B, str(n), now=T0) for n in (1, 2)]
    assert first is not None
    assert [call.question for call in await world.b.asked(B)] == ["1", "2"]
    assert await world.a.answer_to(first) is None
    await world.b.answer(first, "stopped")
    await world.b.answer(first, "stopped")
    assert await world.a.answer_to(first) == "stopped"
    assert [call.id for call in await world.b.asked(B)] == [second]


async def test_nobody_asks_a_node_that_is_not_there_or_dead(world: World) -> None:
    assert await world.a.ask(NodeId("nobody"), QUESTION, now=T0) is None
    assert await world.a.ask(B, QUESTION, now=at(LEASE_S + 1)) is None


async def test_what_a_node_was_asked_goes_with_it(world: World) -> None:
    call = await world.a.ask(B, QUESTION, now=T0)
    assert call is not None
    await world.b.leave(B, now=T0)
    assert await world.a.answer_to(call) is None
    await world.a.answer(call, "")
    assert await world.a.answer_to(call) is None


async def test_old_questions_are_forgotten(world: World) -> None:
    await world.a.renew(B, until=at(1000))
    old = await world.a.ask(B, QUESTION, now=T0)
    young = await world.a.ask(B, QUESTION, now=at(50))
    assert await world.b.ask(A, QUESTION, now=at(61)) is None
    assert [call.id for call in await world.b.asked(B)] == [young]
    assert old != young


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
async def test_what_cannot_be_stored_harms_nothing(world: World, text: str) -> None:
    call = await world.a.ask(B, text, now=T0)
    assert call is not None
    (found,) = await world.b.asked(B)
    assert "\ufffd" in found.question


async def test_questions_and_answers_are_told(world: World) -> None:
    heard = listen(world.a)
    world.b.on_notice(heard.append)
    call = await world.a.ask(B, QUESTION, now=T0)
    assert call is not None
    await until(lambda: heard.count(Notice.NODES) == 2)
    await world.a.answer(call, "")
    await until(lambda: heard.count(Notice.NODES) == 4)
