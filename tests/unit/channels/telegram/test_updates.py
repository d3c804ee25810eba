"""``channels.telegram.updates`` in virtual time: what was taken is handed over and answered."""

from __future__ import annotations

import asyncio
import logging

import pytest

from channels.telegram.updates import Updates
from goclaw_py.core.errors import NotSent, RateLimited, StoreUnavailable, Undeliverable
from goclaw_py.core.messages import ChatMigrated, ChatReached, InboundMessage
from tests.unit.channels.telegram.scripted import (
    BOT,
    Notebook,
    ScriptedClient,
    logged,
    pressed,
    update,
)


def never(_number: int | None, _message: InboundMessage) -> bool:
    return False


async def take(client: ScriptedClient, *updates: object, notebook: Notebook | None = None) -> None:
    """Take updates in and let ten seconds pass."""
    taking = Updates(client, BOT, "default")
    try:
        await taking.commit(updates, notebook or Notebook(), never)
        await asyncio.sleep(10)
    finally:
        await taking.close()


async def test_all_kinds_are_handed_over_in_one_batch_and_in_their_order() -> None:
    """SPEC IO-1."""
    moved = update(6, migrate_to_chat_id=-1007)
    gone = {
        "update_id": 7,
        "my_chat_member": {
            "chat": {"id": 7, "type": "private"},
            "new_chat_member": {"status": "kicked"},
        },
    }
    notebook = Notebook()
    await take(ScriptedClient(), update(5), moved, gone, pressed(8), notebook=notebook)
    (batch,) = notebook.offers
    assert [type(one) for one in batch] == [
        InboundMessage,
        ChatMigrated,
        ChatReached,
        InboundMessage,
    ]


async def test_what_may_have_been_seen_before_is_marked_and_nothing_else() -> None:
    """SPEC CMD-1."""
    notebook = Notebook()
    taking = Updates(ScriptedClient(), BOT, "default")
    await taking.commit([update(5), update(6)], notebook, lambda number, _: number == 5)
    assert notebook.redelivered() == [[True, False]]


async def test_a_malformed_update_is_told_with_its_number_but_not_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notebook = Notebook()
    with logged(caplog) as lines:
        await take(ScriptedClient(), {"update_id": 9, "message": "secret"}, notebook=notebook)
    assert lines == ["WARNING update_malformed"]
    assert vars(caplog.records[0])["update_id"] == 9
    assert "secret" not in str([vars(record) for record in caplog.records])
    assert notebook.offers == []


async def test_an_update_that_is_for_nobody_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    post = {"update_id": 7, "channel_post": {"message_id": 1}}
    odd = [post, update(8, is_automatic_forward=True)]
    with caplog.at_level(logging.DEBUG, "channels.telegram"):
        await take(ScriptedClient(), *odd)
    found = [(record.getMessage(), vars(record)["kind"]) for record in caplog.records]
    assert found == [("update_ignored", "channel_post"), ("update_ignored", "message")]


async def test_a_press_of_a_malformed_update_is_answered_too() -> None:
    odd = {"update_id": 5, "callback_query": {"id": "p", "data": "x", "message": 5}}
    client = ScriptedClient()
    await take(client, odd)
    assert client.presses == [(0, "p")]


async def test_presses_are_answered_at_once_however_many() -> None:
    client = ScriptedClient()
    client.takes_s["answer_press"] = 1.0
    await take(client, *(pressed(number) for number in range(5, 25)))
    assert [at for at, _ in client.presses] == [1.0] * 20


async def test_a_press_whose_result_is_told_is_not_answered_before() -> None:
    """SPEC CHAN-5: whoever carries it out answers it."""
    client = ScriptedClient()
    await take(client, pressed(5, "access:ok:0123456789abcdef"))
    assert client.presses == []


async def test_a_press_is_not_answered_before_it_is_committed() -> None:
    """SPEC IO-1."""
    client = ScriptedClient()
    with pytest.raises(StoreUnavailable):
        await take(client, pressed(5), notebook=Notebook(failures=1))
    assert client.calls == []


async def test_an_answer_that_fails_is_given_again_within_two_seconds() -> None:
    client = ScriptedClient()
    client.fail("answer_press", NotSent("reset"), NotSent("reset"))
    await take(client, pressed(5))
    ((at, press),) = client.presses
    assert press == "press-5"
    assert at <= 2


async def test_a_flooded_answer_waits_as_long_as_the_server_says() -> None:
    client = ScriptedClient()
    client.fail("answer_press", RateLimited("slow down", 4.0))
    await take(client, pressed(5))
    assert client.presses == [(4.0, "press-5")]


@pytest.mark.parametrize(
    ("errors", "calls"), [([Undeliverable("query is too old")], 1), ([NotSent("reset")] * 9, 3)]
)
async def test_an_answer_that_is_refused_or_fails_for_ever_is_given_up(
    errors: list[NotSent | Undeliverable], calls: int
) -> None:
    client = ScriptedClient()
    client.fail("answer_press", *errors)
    await take(client, pressed(5), pressed(6))
    assert client.calls.count("answer_press") >= calls
    assert client.calls.count("answer_press") <= calls + 3


async def test_closing_ends_the_answers_under_way_and_begins_no_more() -> None:
    client = ScriptedClient()
    client.takes_s["answer_press"] = 5.0
    notebook = Notebook()
    taking = Updates(client, BOT, "default")
    await taking.commit([pressed(5)], notebook, never)
    notebook.takes_s = 1.0
    late = asyncio.create_task(taking.commit([pressed(6)], notebook, never))
    await asyncio.sleep(0.5)
    await taking.close()
    await late
    await asyncio.sleep(10)
    assert client.calls == ["answer_press"]
    assert client.presses == []
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("stop:run", "⏹ Asked to stop…"),
        ("job:s10:0190d2a4-7a2b-7c3d-8e4f-123456789abc", "💤 Snoozed for 10 minutes"),
        ("job:sX:0190d2a4-7a2b-7c3d-8e4f-123456789abc", ""),
        ("something else", ""),
    ],
)
async def test_a_press_is_answered_with_what_it_does(data: str, words: str) -> None:
    """SPEC CRON-13."""
    client = ScriptedClient()
    await take(client, pressed(5, data))
    assert client.toasts == [words]
