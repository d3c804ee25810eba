"""Updates reach a webhook as the real server brings them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.caller import ANN, BOB, Hooked, Wire
from tests.botapi.faults import DELIVERY
from tests.botapi.site import Site


@pytest.fixture
def hooked() -> Hooked:
    return Hooked()


@pytest.fixture
async def hook_url(api: BotApi, hooked: Hooked) -> AsyncIterator[str]:
    """The address of a webhook that answers, at an emulator that takes it."""
    api.world.local = True
    async with listening(hooked) as url:
        yield url


@asynccontextmanager
async def listening(hooked: Hooked) -> AsyncIterator[str]:
    site = Site(hooked.handle)
    await site.open()
    try:
        yield f"http://127.0.0.1:{site.port}/hook"
    finally:
        await site.close()


async def test_a_chat_gets_one_at_a_time_and_chats_side_by_side(
    api: BotApi, wire: Wire, hooked: Hooked, hook_url: str
) -> None:
    hooked.pause_s = 0.05
    await wire.result("setWebhook", url=hook_url)
    for text in ("a", "b", "c"):
        api.say(ANN, text)
    await api.wait_deliveries(2)
    assert hooked.most_at_once == 1
    api.say(BOB, "x")
    await api.wait_confirmed()
    assert hooked.most_at_once == 2
    assert [text for text in hooked.texts if text != "x"] == ["a", "b", "c"]


async def test_no_more_connections_than_asked_for(
    api: BotApi, wire: Wire, hooked: Hooked, hook_url: str
) -> None:
    hooked.pause_s = 0.02
    await wire.result("setWebhook", url=hook_url, max_connections=3)
    for user in range(10):
        api.say(user + 1, "x")
    await api.wait_confirmed()
    assert (hooked.most_at_once, len(hooked.received)) == (3, 10)


async def test_a_press_is_not_held_back_by_a_message_of_its_chat(
    chat: Wire, hooked: Hooked, hook_url: str
) -> None:
    hooked.answer = lambda update: 200 if "callback_query" in update else 503
    chat.api.webhook_pace(retry_s=10)
    await chat.result("setWebhook", url=hook_url)
    chat.api.say(ANN, "x")
    chat.api.press(ANN, 1, "x")
    await chat.api.wait_deliveries(1, ok=True)
    assert chat.api.pending() == 1


async def test_a_webhook_that_cannot_be_reached_is_told_in_its_info(
    api: BotApi, wire: Wire, hooked: Hooked, hook_url: str
) -> None:
    async with listening(Hooked()) as gone:
        pass
    await wire.result("setWebhook", url=gone)
    api.say(ANN, "x")
    await api.wait_deliveries()
    assert (await wire.result("getWebhookInfo"))["last_error_message"] == "Connection refused"
    hooked.pause_s = 3
    api.webhook_pace(timeout_s=1, retry_s=100)
    await wire.result("setWebhook", url=hook_url)
    await api.wait_deliveries(len(api.deliveries()) + 1)
    info = await wire.result("getWebhookInfo")
    assert info["last_error_message"] == "Read timeout expired"
    assert (info["pending_update_count"], info["max_connections"]) == (1, 40)


async def test_nothing_leaves_this_machine_but_what_is_routed(
    chat: Wire, hooked: Hooked, hook_url: str
) -> None:
    await chat.result("setWebhook", url="https://bot.example/secret-path/hook")
    chat.api.say(ANN, "x")
    delivery = (await chat.api.wait_deliveries())[0]
    assert delivery.error == "Failed to resolve host: Name or service not known"
    chat.api.route("https://bot.example/secret-path", hook_url.removesuffix("/hook"))
    await chat.api.wait_confirmed()
    assert hooked.texts == ["x"]


async def test_several_behind_one_address_are_called_in_turn_and_who_is_away_is_left_out(
    api: BotApi, wire: Wire, hooked: Hooked
) -> None:
    other, busy = Hooked(), Hooked(answer=lambda _update: 503)
    async with listening(Hooked()) as gone:
        pass
    async with listening(hooked) as here, listening(other) as there, listening(busy) as full:
        places = [url.removesuffix("/hook") for url in (here, there, gone, full)]
        api.route("https://bot.example", places)
        await wire.result("setWebhook", url="https://bot.example/hook")
        for text in ("a", "b", "c", "d", "e", "f"):
            api.say(ANN, text)
        await api.wait_confirmed()
    assert (hooked.texts, other.texts) == (["a", "c", "d", "e"], ["b", "f"])
    assert busy.texts == ["c", "d"]
    assert [one.status for one in api.deliveries()] == [200] * 6


async def test_who_hangs_up_on_an_update_may_have_it_so_it_is_brought_again_to_the_next(
    api: BotApi, wire: Wire, hooked: Hooked
) -> None:
    frozen = Hooked(pause_s=60)
    async with listening(frozen) as first, listening(hooked) as second:
        places = [url.removesuffix("/hook") for url in (first, second)]
        api.route("https://bot.example", places)
        api.webhook_pace(timeout_s=0.2)
        await wire.result("setWebhook", url="https://bot.example/hook")
        api.say(ANN, "a")
        await api.wait_confirmed()
    assert hooked.texts == ["a"]
    assert [one.error for one in api.deliveries()] == ["Read timeout expired", ""]


async def test_an_update_whose_answer_is_lost_comes_again(
    api: BotApi, wire: Wire, hooked: Hooked, hook_url: str
) -> None:
    await wire.result("setWebhook", url=hook_url)
    api.fault(Fault(DELIVERY, FaultKind.RESET_AFTER, chat=ANN))
    api.say(ANN, "x")
    await api.wait_confirmed()
    assert hooked.texts == ["x", "x"]


async def test_a_delivery_can_come_twice(
    api: BotApi, wire: Wire, hooked: Hooked, hook_url: str
) -> None:
    await wire.result("setWebhook", url=hook_url)
    api.double()
    api.say(ANN, "x")
    await api.wait_confirmed()
    assert hooked.texts == ["x", "x"]
    api.repeat()
    await api.wait_deliveries(2, ok=True)
    assert hooked.texts == ["x", "x", "x"]


async def test_setting_the_same_webhook_again_changes_nothing(
    api: BotApi, wire: Wire, hooked: Hooked, hook_url: str
) -> None:
    hooked.pause_s = 0.05
    await wire.result("setWebhook", url=hook_url)
    api.say(ANN, "x")
    await api.until(lambda: hooked.received)
    await wire.result("setWebhook", url=hook_url)
    await api.wait_confirmed()
    assert hooked.texts == ["x"]


async def test_the_number_of_connections_is_clamped_and_kinds_are_kept(wire: Wire) -> None:
    await wire.result(
        "setWebhook", url="https://b.example", max_connections=500, allowed_updates=["message"]
    )
    await wire.result("setWebhook", url="https://c.example")
    info = await wire.result("getWebhookInfo")
    assert (info["max_connections"], info["allowed_updates"]) == (40, ["message"])
    await wire.result("setWebhook", url="https://c.example", max_connections=500)
    assert (await wire.result("getWebhookInfo"))["max_connections"] == 100
    await wire.result("setWebhook", url="")
    assert (await wire.result("getWebhookInfo"))["url"] == ""
