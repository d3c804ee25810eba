"""Where a lost draft is looked for (SPEC IO-5)."""

from __future__ import annotations

import asyncio

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import BotClient
from channels.telegram.lost_drafts import LOOKED_AT, numbers_between
from channels.telegram.settings import TelegramSettings
from goclaw_py.core.errors import NotSent
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import LostDraft, OutboundMessage, Target
from tests.unit.channels.telegram.scripted import SETTINGS, ScriptedClient, over

ANN = Target("telegram", "default", "7")
RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
OTHER_RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abd")


@pytest.mark.parametrize(
    ("after", "before", "numbers"),
    [
        (4, None, list(range(5, 5 + LOOKED_AT))),
        (4, 7, [5, 6]),
        (4, 5, []),
        (9, 5, []),
        (4, 15, [*range(5, 13), 14, 13]),
        (1, 100, [*range(2, 10), *range(99, 91, -1)]),
        (None, 4, [3, 2, 1]),
        (None, None, []),
    ],
)
def test_it_is_looked_for_behind_the_question_and_before_the_reply(
    after: int | None, before: int | None, numbers: list[int]
) -> None:
    assert list(numbers_between(after, before)) == numbers


def test_what_was_said_in_other_chats_meanwhile_does_not_count() -> None:
    """A bot's ids run on over its chats; the draft may be many behind the question."""
    known = {*range(5, 40)} - {23}
    assert list(numbers_between(4, None, known))[:2] == [23, 40]
    assert list(numbers_between(None, 40, known)) == [23, 4, 3, 2, 1]


async def test_a_draft_is_found_behind_the_traffic_of_other_chats() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        others = [
            await channel.send(OutboundMessage(Target("telegram", "default", "8"), "hi"))
            for _ in range(30)
        ]
        number = await channel.post_draft(OutboundMessage(ANN, "one", run_id=RUN))
        lost = LostDraft(RUN, "100")
        assert channel.counts_everywhere("7")
        assert not channel.counts_everywhere("-1001")
        assert await channel.find_draft(ANN, lost, before=None, known=others) == number


async def test_a_draft_whose_id_came_late_is_looked_for_there_only() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        number = await channel.post_draft(OutboundMessage(ANN, "one", run_id=RUN))
        lost = LostDraft(RUN, "90", number)
        assert await channel.find_draft(ANN, lost, before=None, known=()) == number
        assert client.looked == [101]
        assert await channel.find_draft(ANN, lost, before=None, known={number}) is None


async def test_a_look_that_is_cut_off_leaves_no_button_behind() -> None:
    client = ScriptedClient()
    client.takes_s["set_buttons"] = 1.0
    client.fail("remove_buttons", NotSent("reset"))
    async with over(client) as channel:
        await channel.send(OutboundMessage(ANN, "Nothing was running."))
        look = asyncio.ensure_future(
            channel.find_draft(ANN, LostDraft(RUN, "100"), before=None, known=())
        )
        await asyncio.sleep(0.5)
        look.cancel()
        await asyncio.sleep(10)
    assert client.messages[101].buttons == ()
    assert client.looked == [101]


async def test_two_searches_at_once_do_not_find_each_others_button() -> None:
    client = ScriptedClient()
    client.takes_s["set_buttons"] = 1.0
    async with over(client) as channel:
        await channel.post_draft(OutboundMessage(ANN, "one", run_id=OTHER_RUN))
        lost = LostDraft(RUN, "100")
        searches = [channel.find_draft(ANN, lost, before=None, known=()) for _ in range(2)]
        assert await asyncio.gather(*searches) == [None, None]


async def test_a_draft_that_lost_its_button_to_another_search_is_found_by_its_id() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        number = await channel.post_draft(OutboundMessage(ANN, "one", run_id=RUN))
        lost = LostDraft(OTHER_RUN, "100")
        assert await channel.find_draft(ANN, lost, before=None, known=()) is None
        late = LostDraft(RUN, "90", number)
        assert await channel.find_draft(ANN, late, before=None, known=()) == number
        assert await channel.find_draft(ANN, late, before=None, known={number}) is None


async def test_no_draft_is_posted_while_the_bot_is_being_connected() -> None:
    client = ScriptedClient()

    async def connect(_: TelegramSettings) -> BotClient:
        await asyncio.sleep(30)
        return client

    channel = TelegramChannel("default", SETTINGS, connect)
    sending = asyncio.ensure_future(channel.send(OutboundMessage(ANN, "Hello.")))
    await asyncio.sleep(1)
    with pytest.raises(NotSent, match="being connected"):
        await channel.post_draft(OutboundMessage(ANN, "one", run_id=RUN))
    await sending
    await channel.post_draft(OutboundMessage(ANN, "one", run_id=RUN))
    await channel.close()
    assert [message.text for message in client.messages.values()] == ["Hello.", "one …"]
