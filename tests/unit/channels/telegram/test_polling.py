"""``channels.telegram.polling`` in virtual time, against a scripted client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from channels.telegram.client import PollConflict
from channels.telegram.polling import Poller
from goclaw_py.core.errors import ChannelRefused, MaybeSent, NotSent, RateLimited
from tests.unit.channels.telegram.scripted import Answer, Notebook, Poll, ScriptedClient, update

LOST = NotSent("no connection")


async def run_for(client: ScriptedClient, notebook: Notebook, seconds: float) -> None:
    poller = Poller(client, account="default", wait_s=30)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await poller.run(notebook)


def offsets(client: ScriptedClient) -> list[int | None]:
    return [poll.offset for poll in client.polls]


@contextmanager
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The channel's log lines within the block."""
    lines: list[str] = []
    with caplog.at_level(logging.INFO, logger="channels.telegram"):
        yield lines
    lines.extend(f"{record.levelname} {record.getMessage()}" for record in caplog.records)


async def test_the_offset_moves_only_after_the_batch_was_accepted() -> None:
    """SPEC IO-1."""
    client = ScriptedClient([[update(5)], [update(6), update(7)]])
    notebook = Notebook()
    await run_for(client, notebook, 10)
    assert notebook.texts == [["hello"], ["hello", "hello"]]
    assert offsets(client) == [None, 6, 8]


async def test_only_the_first_batch_may_have_been_acted_on_before() -> None:
    """SPEC CMD-1."""
    client = ScriptedClient([[update(5)], [update(6)]])
    notebook = Notebook()
    await run_for(client, notebook, 10)
    assert [[m.redelivered for m in batch] for batch in notebook.offers] == [[True], [False]]


async def test_the_first_poll_does_not_wait_for_what_comes_new() -> None:
    client = ScriptedClient([[], [update(5)]])
    notebook = Notebook()
    await run_for(client, notebook, 10)
    assert client.polls[:2] == [Poll(0, None, 0), Poll(0, None, 30)]
    assert not notebook.offers[0][0].redelivered


async def test_an_uncommitted_batch_comes_again_with_what_is_new() -> None:
    """SPEC DB-4, CMD-1: a new ``/stop`` reaches the intake while the database is away."""
    client = ScriptedClient(
        [[update(5)], [update(5), update(6, "/stop")], [update(5), update(6, "/stop")], []]
    )
    notebook = Notebook(failures=2)
    await run_for(client, notebook, 10)
    assert notebook.texts == [["hello"], ["hello", "/stop"], ["hello", "/stop"]]
    assert [m.redelivered for m in notebook.offers[1]] == [True, False]
    assert offsets(client)[:4] == [None, None, None, 7]
    assert [poll.wait_s for poll in client.polls[:4]] == [0, 0, 0, 30]


async def test_while_nothing_can_be_committed_polls_stay_less_than_a_second_apart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ScriptedClient([[update(5)] for _ in range(20)])
    with logged(caplog) as lines:
        await run_for(client, Notebook(failures=19), 60)
    pauses = [b.at - a.at for a, b in zip(client.polls, client.polls[1:20], strict=False)]
    assert max(pauses) <= 1.0
    assert pauses[-1] == 1.0
    assert lines == [
        "WARNING telegram messages cannot be committed",
        "INFO telegram messages cannot be committed: over",
    ]


async def test_a_poison_update_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    poison: dict[str, object] = {"update_id": 6, "message": {"message_id": "x", "text": "secret"}}
    client = ScriptedClient([[update(5, "a"), poison, "junk", update(7, "b")]])
    notebook = Notebook()
    with logged(caplog) as lines:
        await run_for(client, notebook, 10)
    assert notebook.texts == [["a", "b"]]
    assert offsets(client) == [None, 8]
    assert lines == ["WARNING an update was skipped: it is malformed"] * 2
    assert "secret" not in caplog.text


async def test_a_batch_of_which_nothing_is_left_is_confirmed_without_the_intake() -> None:
    client = ScriptedClient([[{"update_id": 6, "message": 5}]])
    notebook = Notebook()
    await run_for(client, notebook, 10)
    assert notebook.offers == []
    assert offsets(client) == [None, 7]


async def test_updates_that_cannot_be_confirmed_do_not_make_a_busy_loop() -> None:
    client = ScriptedClient([["junk"] for _ in range(500)])
    await run_for(client, Notebook(), 60)
    assert len(client.polls) < 10


async def test_network_trouble_is_retried_with_growing_pauses_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    answers: list[Answer] = [[], *([LOST] * 9), [update(5)]]
    client = ScriptedClient(answers)
    notebook = Notebook()
    with logged(caplog) as lines:
        await run_for(client, notebook, 200)
    pauses = [b.at - a.at for a, b in zip(client.polls[1:10], client.polls[2:11], strict=True)]
    assert pauses[0] < 1.0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30.0
    assert notebook.texts == [["hello"]]
    assert lines == [
        "WARNING telegram cannot be reached",
        "INFO telegram cannot be reached: over",
    ]


async def test_a_thousand_failures_do_not_overflow_the_pause() -> None:
    client = ScriptedClient([[], *([LOST] * 2000)])
    await run_for(client, Notebook(), 30 * 1500)
    assert len(client.polls) > 1400


async def test_the_server_says_how_long_a_flooded_poller_waits() -> None:
    client = ScriptedClient([[], RateLimited("slow down", 17.0), []])
    await run_for(client, Notebook(), 20)
    assert client.polls[2].at - client.polls[1].at == 17.0


async def test_two_pollers_are_told_once_and_retried_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    answers: list[Answer] = [[], *([PollConflict("Conflict: terminated")] * 3), [update(5)]]
    client = ScriptedClient(answers)
    notebook = Notebook()
    with logged(caplog) as lines:
        await run_for(client, notebook, 60)
    assert [poll.at for poll in client.polls[1:5]] == [0, 10, 20, 30]
    assert notebook.texts == [["hello"]]
    assert lines == [
        "WARNING another program takes this bot's updates",
        "INFO another program takes this bot's updates: over",
    ]
    assert client.webhook_deleted == 0


async def test_a_webhook_that_is_still_set_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    client = ScriptedClient(
        [PollConflict("Conflict: webhook"), [update(5)]], webhooks=["https://old.example/hook"]
    )
    notebook = Notebook()
    with logged(caplog) as lines:
        await run_for(client, notebook, 5)
    assert client.webhook_deleted == 1
    assert notebook.texts == [["hello"]]
    assert any("a webhook is set" in line for line in lines)


async def test_trouble_while_asking_for_the_webhook_is_survived() -> None:
    conflict = PollConflict("Conflict: webhook")
    client = ScriptedClient([conflict, [update(5)]], webhooks=[MaybeSent("reset")])
    notebook = Notebook()
    await run_for(client, notebook, 15)
    assert notebook.texts == [["hello"]]


@pytest.mark.parametrize(
    "client",
    [
        ScriptedClient([ChannelRefused("Unauthorized")]),
        ScriptedClient([PollConflict("x")], webhooks=[ChannelRefused("Unauthorized")]),
    ],
)
async def test_a_refused_token_ends_the_polling(client: ScriptedClient) -> None:
    """SPEC CHAN-8."""
    with pytest.raises(ChannelRefused):
        await Poller(client, account="default", wait_s=30).run(Notebook())


async def test_after_a_day_without_updates_their_ids_may_start_anew() -> None:
    day = 24 * 60 * 60
    client = ScriptedClient([[update(1_000_000)]])
    await run_for(client, Notebook(), day + 100)
    assert client.polls[1].offset == 1_000_001
    assert client.polls[-1].offset is None
    assert all(poll.offset is not None for poll in client.polls[1:] if poll.at < day)


async def test_every_poll_says_which_updates_it_wants() -> None:
    """What an earlier program asked for is kept by the server otherwise."""
    client = ScriptedClient([[update(5)]])
    await run_for(client, Notebook(), 100)
    assert client.kinds == {("message",)}


async def test_the_bot_is_asked_for_until_the_network_is_there() -> None:
    client = ScriptedClient(me=[LOST, RateLimited("slow", 5.0)])
    bot = await Poller(client, account="default", wait_s=30).identify()
    assert bot.username == "GoclawTestBot"


async def test_a_wrong_token_is_not_asked_for_again() -> None:
    client = ScriptedClient(me=[ChannelRefused("Unauthorized"), LOST])
    with pytest.raises(ChannelRefused):
        await Poller(client, account="default", wait_s=30).identify()
    assert client.me == [LOST]


async def test_a_menu_that_cannot_be_published_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with logged(caplog) as lines:
        client = ScriptedClient(menu_error=LOST)
        await Poller(client, account="default", wait_s=30).publish_commands()
    assert lines == ["INFO the command menu was not published"]


async def test_the_menu_has_the_commands_of_a_chat() -> None:
    """SPEC CMD-5."""
    client = ScriptedClient()
    await Poller(client, account="default", wait_s=30).publish_commands()
    assert {"start", "help", "status", "new", "stop", "stopall"} <= set(client.menu)
