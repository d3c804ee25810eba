"""Another bot behind the same account: its messages are other ones (SPEC IO-1, CHAN-2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import Bot
from channels.telegram.updates import Updates
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage, LostDraft, OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import ButtonsUsed, PressAnswered, RunEnded, RunWaits
from tests.unit.channels.telegram.scripted import (
    SETTINGS,
    TEXT_AT,
    Notebook,
    ScriptedClient,
    channel_over,
    pressed,
    update,
)

ANN = Target("telegram", "default", "7")
RUN = RunId("r0")
OURS = SETTINGS.bot_id
OTHERS = OURS + 1
ANSWER = {
    "message_id": 3,
    "from": {"id": OURS, "is_bot": True, "first_name": "Goclaw"},
    "chat": {"id": 7, "type": "private"},
    "date": TEXT_AT,
    "text": "the answer",
}


async def taken(bot: int, *updates: object) -> list[InboundMessage]:
    """What a bot hands to the gateway of these updates."""
    notebook = Notebook()
    taker = Updates(ScriptedClient(), Bot(bot, "GoclawTestBot"), "default")
    await taker.commit(updates, notebook, lambda _number, _message: False)
    await taker.close()
    return [one for one in notebook.taken if isinstance(one, InboundMessage)]


def edit(number: int) -> dict[str, object]:
    raw = update(number, "hello!", edit_date=TEXT_AT + 5)
    return {"update_id": number + 100, "edited_message": raw["message"]}


async def test_messages_of_another_bot_with_the_same_numbers_are_other_messages() -> None:
    said = (
        *(update(1), update(2, "again", reply_to_message=ANSWER), edit(2)),
        *(
            pressed(4),
            {"update_id": 5, "stopped_message_generation": {"chat": ANSWER["chat"], "draft_id": 9}},
        ),
    )
    first, second = await taken(OURS, *said), await taken(OTHERS, *said)
    assert len(first) == len(second) == 5
    for mine, other in zip(first, second, strict=True):
        assert mine.external_id != other.external_id
        assert (mine.message_id == other.message_id) is (mine.message_id is None)
        assert (mine.reply_to == other.reply_to) is (mine.reply_to is None)
    for one, reply, edited, *_ in (first, second):
        assert edited.edits == reply.external_id
        assert one.external_id.startswith("7:")
    assert len({one.external_id for one in (*first, *second)}) == 10


@asynccontextmanager
async def after_another_bot() -> AsyncIterator[tuple[ScriptedClient, TelegramChannel, str]]:
    """The channel of a bot, and the id of a draft that the former bot has posted."""
    former = channel_over(ScriptedClient(), replace(SETTINGS, token=f"{OTHERS}:{'A' * 35}"))
    draft = await former.post_draft(OutboundMessage(ANN, "old", run_id=RUN))
    await former.close()
    client = ScriptedClient()
    channel = channel_over(client)
    await channel.post_draft(OutboundMessage(ANN, "new", run_id=RunId("r1")))
    client.calls.clear()
    yield client, channel, draft
    await channel.close()
    assert client.messages[101].text == "new …"


async def test_a_message_replies_to_none_and_finishes_no_draft_of_another_bot() -> None:
    async with after_another_bot() as (client, channel, draft):
        message = OutboundMessage(ANN, "done", reply_to=draft, run_id=RUN, draft=draft)
        sent = await channel.send(message)
        assert sent != draft
        assert client.calls == ["send_message"]
        assert (client.sent[-1].text, client.sent[-1].reply_to) == ("done", None)
        assert await channel.send(OutboundMessage(ANN, "x", reply_to=sent, draft=sent)) == sent


async def test_what_removes_a_draft_of_another_bot_removes_none_of_this_one() -> None:
    async with after_another_bot() as (client, channel, draft):
        assert await channel.send(OutboundMessage(ANN, "", run_id=RUN, draft=draft)) == draft
        ended = RunEnded(RUN, ANN, Outcome.CANCELLED, messages=(draft,), draft=draft, shown="old")
        channel.signal(RunWaits(RUN, ANN, (draft,), late=True))
        channel.signal(ended)
        channel.signal(ButtonsUsed(ANN, draft))
        channel.signal(PressAnswered(ANN, f"press:{OTHERS}:77", "Done"))
        await channel.close()
        assert client.calls == []


@pytest.mark.parametrize("late", [False, True])
async def test_a_lost_draft_of_another_bot_is_not_searched(*, late: bool) -> None:
    async with after_another_bot() as (client, channel, draft):
        lost = LostDraft(RUN, draft, draft if late else None)
        found = await channel.find_draft(ANN, lost, before=f"{OURS}:102", known={draft})
        assert (found, client.calls) == (None, [])


async def test_an_id_that_an_earlier_release_stored_is_of_this_bot() -> None:
    client = ScriptedClient()
    channel = channel_over(client)
    await channel.post_draft(OutboundMessage(ANN, "new", run_id=RUN))
    assert await channel.send(OutboundMessage(ANN, "done", draft="101")) == f"{OURS}:101"
    await channel.send(OutboundMessage(ANN, "more", reply_to="90"))
    assert client.sent[-1].reply_to == 90
    await channel.close()
