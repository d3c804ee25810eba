"""Faults, limits and the transcript."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.botapi import (
    BotApi,
    Call,
    Chaos,
    Fault,
    FaultKind,
    most_in_window,
)
from tests.botapi.caller import Wire
from tests.botapi.records import MESSAGES

ANN, BOB, TEAM = 7, 8, -1005


# ---------------------------------------------------------------------------- faults


async def test_a_fault_can_be_for_one_chat(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "x")
    api.say(BOB, "x")
    api.fault(Fault("*", FaultKind.FLOOD, chat=BOB))
    await wire.result("sendMessage", chat_id=ANN, text="x")
    assert "Too Many Requests" in await wire.refusal("sendMessage", chat_id=BOB, text="x")
    await wire.result("sendMessage", chat_id=BOB, text="x")


async def test_the_bot_api_can_refuse_in_any_words(chat: Wire) -> None:
    chat.api.fault(Fault("getMe", FaultKind.ERROR, status=400, words="Bad Request: no"))
    chat.api.fault(Fault("getMe", FaultKind.ERROR))
    answers = [await chat.call("getMe") for _ in range(2)]
    assert [answer["description"] for answer in answers] == ["Bad Request: no", "Bad Gateway"]


async def test_a_late_answer_had_its_effect_at_once(chat: Wire) -> None:
    chat.api.fault(Fault("sendMessage", FaultKind.DELAY_AFTER, seconds=3))
    call = asyncio.create_task(chat.result("sendMessage", chat_id=ANN, text="x"))
    await chat.api.wait_texts(ANN)
    assert not call.done()
    assert (await call)["text"] == "x"


async def test_an_answer_can_drip(chat: Wire) -> None:
    chat.api.fault(Fault("getMe", FaultKind.DRIP, seconds=0.5))
    began = asyncio.get_running_loop().time()
    assert (await chat.result("getMe"))["username"] == "GoclawTestBot"
    assert asyncio.get_running_loop().time() - began > 50


async def test_an_answer_can_be_cut(chat: Wire) -> None:
    chat.api.fault(Fault("sendMessage", FaultKind.CUT))
    with pytest.raises(aiohttp.ClientPayloadError):
        await chat.result("sendMessage", chat_id=ANN, text="x")
    assert chat.api.texts(ANN) == ["x"]
    assert [call.status for call in chat.api.transcript("sendMessage")] == [0]


async def test_a_lost_batch_comes_again(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "x")
    api.fault(Fault("getUpdates", FaultKind.RESET_AFTER))
    with pytest.raises(aiohttp.ClientError):
        await wire.updates()
    assert len(await wire.updates()) == 1


async def test_the_server_can_be_away_for_a_while(api: BotApi, wire: Wire) -> None:
    poll = asyncio.create_task(wire.updates(timeout=50))
    await api.wait_calls("getUpdates")
    url = api.url
    api.go_away(5)
    with pytest.raises(aiohttp.ClientError):
        await poll
    with pytest.raises(ValueError, match="away already"):
        api.go_away(5)
    with pytest.raises(aiohttp.ClientConnectorError):
        await wire.call("getMe")
    api.say(ANN, "meanwhile")
    await asyncio.sleep(5.1)
    assert api.url == url
    assert len(await wire.updates()) == 1


async def test_chaos_is_the_same_for_the_same_seed(chat: Wire) -> None:
    kinds = (FaultKind.FLOOD, FaultKind.PAGE)
    runs: list[list[FaultKind | None]] = []
    for _ in range(2):
        chat.api.chaos(Chaos(seed=4, probability=0.5, kinds=kinds, methods=("sendMessage",)))
        for number in range(20):
            with_fault = chat.session.post(
                f"{chat.api.url}/bot{chat.api.token}/sendMessage",
                json={"chat_id": ANN, "text": str(number)},
            )
            async with with_fault as answer:
                await answer.read()
        runs.append([call.fault for call in chat.api.transcript("sendMessage")[-20:]])
    assert runs[0] == runs[1]
    assert set(runs[0]) == {None, *kinds}
    await chat.result("getMe")
    chat.api.clear_faults()
    await chat.result("sendMessage", chat_id=ANN, text="x")


async def test_chaos_can_be_for_one_chat(chat: Wire) -> None:
    chat.api.chaos(Chaos(seed=1, probability=1, kinds=(FaultKind.FLOOD,), chat=BOB))
    await chat.result("sendMessage", chat_id=ANN, text="x")
    assert "Too Many" in await chat.refusal("sendMessage", chat_id=BOB, text="x")


async def test_a_revoked_token_ends_the_poll_and_can_be_restored(api: BotApi, wire: Wire) -> None:
    poll = asyncio.create_task(wire.refusal("getUpdates", timeout=50))
    await api.wait_calls("getUpdates")
    api.revoke()
    assert await poll == "Unauthorized"
    api.restore()
    await wire.result("getMe")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("application/json", b"{nonsense"), ("multipart/form-data; boundary=x", b"--x--")],
)
async def test_an_unreadable_body_is_no_crash(chat: Wire, content_type: str, body: bytes) -> None:
    url = f"{chat.api.url}/bot{chat.api.token}/sendMessage"
    headers = {"Content-Type": content_type}
    async with chat.session.post(url, data=body, headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["ok"] is False


async def test_an_unknown_address_is_not_found(wire: Wire) -> None:
    async with wire.session.get(f"{wire.api.url}/") as answer:
        assert answer.status == 404


# ---------------------------------------------------------------------------- limits


async def test_a_chat_takes_so_many_a_second_and_edits_count(chat: Wire) -> None:
    chat.api.limit(2)
    await chat.result("sendMessage", chat_id=ANN, text="a")
    await chat.result("editMessageText", chat_id=ANN, message_id=2, text="b")
    refused = await chat.call("editMessageText", chat_id=ANN, message_id=2, text="c")
    assert refused["parameters"] == {"retry_after": 1}
    for method in ("sendChatAction", "sendMessageDraft"):
        await chat.result(method, chat_id=ANN, action="typing", draft_id=1, text="x")
    chat.api.say(BOB, "x")
    await chat.result("sendMessage", chat_id=BOB, text="a")
    chat.api.skip(1.01)
    await chat.result("editMessageText", chat_id=ANN, message_id=2, text="c")


async def test_a_group_takes_so_many_a_minute(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.say(ANN, "x")
    api.limit(group_per_minute=2)
    for _ in range(2):
        await wire.result("sendMessage", chat_id=TEAM, text="x")
        await wire.result("sendMessage", chat_id=ANN, text="x")
    api.skip(20)
    refused = await wire.call("sendMessage", chat_id=TEAM, text="x")
    assert refused["parameters"] == {"retry_after": pytest.approx(40, abs=1)}
    await wire.result("sendMessage", chat_id=ANN, text="x")


async def test_all_chats_together_take_so_many_a_second(api: BotApi, wire: Wire) -> None:
    api.limit(overall_per_second=2)
    for user in (1, 2, 3):
        api.say(user, "x")
    answers = [await wire.call("sendMessage", chat_id=user, text="x") for user in (1, 2, 3)]
    assert [answer["ok"] for answer in answers] == [True, True, False]


def test_the_busiest_window_is_found() -> None:
    def call(at: float, method: str = "sendMessage", chat: int | None = ANN) -> Call:
        return Call(at, method, {}, 200, None, None, chat)

    calls = [call(0), call(1), call(1.5), call(1.6, "sendChatAction"), call(1.7, chat=BOB)]
    busiest = most_in_window(calls, 1)
    assert (busiest.chats, busiest.overall) == ({ANN: 2, BOB: 1}, 3)
    assert most_in_window(calls, 0.5).chats == {ANN: 1, BOB: 1}
    assert most_in_window([], 1).overall == 0
    assert most_in_window(calls, 1, methods=MESSAGES | {"sendChatAction"}).overall == 4


# ---------------------------------------------------------------------------- transcript


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
