"""Updates, polls, and all the ways in which a call can go wrong."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.caller import ANN, BOB, Wire, text_of


async def test_updates_stay_until_they_are_confirmed(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "one")
    api.say(ANN, "two")
    first = await wire.updates()
    assert await wire.updates() == first
    assert await wire.updates(limit=1) == first[:1]
    last = int(str(first[1]["update_id"]))
    assert await wire.updates(offset=last) == first[1:]
    assert await wire.updates(offset=last + 1) == []
    assert api.pending() == 0


async def test_a_negative_offset_forgets_all_but_the_last(api: BotApi, wire: Wire) -> None:
    for text in "abc":
        api.say(ANN, text)
    assert len(await wire.updates(offset=-1)) == 1
    assert api.pending() == 1


async def test_a_long_poll_without_updates_ends_empty(wire: Wire) -> None:
    assert await wire.updates(timeout=1) == []


async def test_the_wanted_kinds_are_kept_between_polls(api: BotApi, wire: Wire) -> None:
    await wire.updates(allowed_updates=["callback_query"])
    await wire.updates()
    api.say(ANN, "one")
    assert api.pending() == 0
    await wire.updates(allowed_updates=[])
    api.say(ANN, "two")
    assert api.pending() == 1


async def test_a_batch_can_come_twice_or_in_reverse(api: BotApi, wire: Wire) -> None:
    api.double()
    api.shuffle()
    assert await wire.updates() == []
    api.say(ANN, "one")
    api.say(ANN, "two")
    texts = [text_of(u) for u in await wire.updates()]
    assert texts == ["two", "two", "one", "one"]
    assert len(await wire.updates()) == 2


async def test_parameters_come_in_query_form_or_json_and_methods_in_any_case(chat: Wire) -> None:
    base = f"{chat.api.url}/bot{chat.api.token}/SENDMESSAGE"
    async with aiohttp.ClientSession() as session:
        await session.get(base, params={"chat_id": "7", "text": "query"})
        await session.post(base, data={"chat_id": "7", "text": "form"})
        await session.post(base, json={"chat_id": 7, "text": "json"})
    assert chat.api.texts(ANN) == ["query", "form", "json"]
    assert [call.method for call in chat.api.calls] == ["sendMessage"] * 3


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        (FaultKind.RESET, 0),
        (FaultKind.RESET_AFTER, 1),
        (FaultKind.HANG, 0),
        (FaultKind.HANG_AFTER, 1),
        (FaultKind.BROKEN_AFTER, 1),
    ],
)
async def test_a_lost_answer_leaves_the_effect_that_it_says(
    chat: Wire, kind: FaultKind, effect: int
) -> None:
    chat.api.fault(Fault("sendMessage", kind))
    with pytest.raises((aiohttp.ClientError, TimeoutError)):
        async with asyncio.timeout(0.3):
            await chat.call("sendMessage", chat_id=7, text="x")
    assert len(chat.api.texts(ANN)) == effect
    call = (await chat.api.wait_calls("sendMessage"))[0]
    assert call.fault is kind
    await chat.call("sendMessage", chat_id=7, text="x")


async def test_faults_happen_as_often_as_said(chat: Wire) -> None:
    chat.api.fault(Fault("getMe", FaultKind.FLOOD, count=2, seconds=9))
    answers = [await chat.call("getMe") for _ in range(3)]
    assert [answer.get("parameters") for answer in answers] == [{"retry_after": 9}] * 2 + [None]


async def test_the_transcript_can_be_asked_by_chat_and_only_counted(chat: Wire) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="x")
    await chat.call("sendMessage", chat_id=BOB, text="x")
    assert [call.status for call in chat.api.transcript(chat=ANN)] == [200]
    assert len(chat.api.transcript("sendMessage", ok=True)) == 1
    chat.api.record(False)
    await chat.result("sendMessage", chat_id=ANN, text="y")
    assert chat.api.counts() == {"sendMessage": 3}
    assert len(chat.api.calls) == 2
    assert [seen.text for seen in chat.api.sightings(ANN)] == ["x"]
    await chat.api.wait_calls("sendMessage", 2, ok=True)


async def test_what_was_answered_does_not_change_with_the_message(chat: Wire) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="one")
    await chat.result("editMessageText", chat_id=ANN, message_id=2, text="two")
    result = chat.api.transcript("sendMessage")[0].result
    assert isinstance(result, dict)
    assert result["text"] == "one"
    await chat.api.wait_visible(ANN, "two")


async def test_a_chat_that_is_not_there_has_nothing_to_see(api: BotApi) -> None:
    assert (api.view(5), api.texts(5), api.drafts(5), api.sightings(5)) == ([], [], [], [])
