"""``channels.telegram.polling`` in virtual time, against a scripted client."""

from __future__ import annotations

import asyncio

import pytest

from channels.telegram.inbound.reader import KINDS
from goclaw_py.core.errors import NotSent
from tests.unit.channels.telegram.scripted import (
    Answer,
    Notebook,
    Poll,
    ScriptedClient,
    logged,
    meanwhile,
    outage,
    poll_for,
    poller,
    update,
)

LOST = NotSent("no connection")
HOUR = 3600.0


def offsets(client: ScriptedClient) -> list[int | None]:
    return [poll.offset for poll in client.polls]


async def test_the_offset_moves_only_after_the_batch_was_accepted() -> None:
    """SPEC IO-1."""
    client = ScriptedClient([[update(5)], [update(6), update(7)]])
    notebook = Notebook()
    await poll_for(client, notebook, 10)
    assert notebook.texts == [["hello"], ["hello", "hello"]]
    assert offsets(client) == [None, 6, 8]


@pytest.mark.parametrize(
    ("answers", "redelivered"),
    [
        ([[update(5)], [update(6)]], [[True], [False]]),
        ([[], [update(5)]], [[False]]),
        ([[update(1_000_000)], [update(5)]], [[True], [False]]),
        ([LOST, [update(5)], [update(6)]], [[True], [False]]),
    ],
    ids=["first and second", "nothing waits", "ids start anew", "the first poll fails"],
)
async def test_only_what_the_first_poll_brings_may_have_been_acted_on_before(
    answers: list[Answer], redelivered: list[list[bool]]
) -> None:
    """SPEC CMD-1."""
    notebook = Notebook()
    await poll_for(ScriptedClient(list(answers)), notebook, 10)
    assert notebook.redelivered() == redelivered


async def test_the_first_poll_does_not_wait_for_what_comes_new() -> None:
    client = ScriptedClient([[], [update(5)]])
    await poll_for(client, Notebook(), 10)
    assert client.polls[:2] == [Poll(0, None, 0), Poll(0, None, 30)]


async def test_while_nothing_can_be_committed_polls_stay_less_than_a_second_apart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC DB-4, CMD-1."""
    client = ScriptedClient([[update(5)] for _ in range(20)])
    taking = poller(client)
    with logged(caplog) as lines:
        async with meanwhile(taking.run(Notebook(failures=19))):
            await asyncio.sleep(10)
            assert taking.health.detail == (
                "messages cannot be committed, for 10 s now: the database does not answer"
            )
            await asyncio.sleep(50)
            assert taking.health.detail == ""
    pauses = [b.at - a.at for a, b in zip(client.polls, client.polls[1:20], strict=False)]
    assert max(pauses) == pauses[-1] == 1.0
    assert lines == outage("messages cannot be committed")


async def test_every_poll_says_which_updates_it_wants() -> None:
    """What an earlier program asked for is kept by the server otherwise."""
    client = ScriptedClient([[update(5)]])
    await poll_for(client, Notebook(), 100)
    assert client.kinds == {KINDS}


async def test_after_a_day_without_updates_their_ids_may_start_again() -> None:
    day = 24 * HOUR
    client = ScriptedClient([[update(1_000_000)]])
    await poll_for(client, Notebook(), day + 100)
    assert client.polls[1].offset == 1_000_001
    assert client.polls[-1].offset is None
    assert all(poll.offset is not None for poll in client.polls[1:] if poll.at < day)


async def test_a_batch_out_of_order_is_put_in_order() -> None:
    """SPEC IO-2."""
    client = ScriptedClient([[update(7, "c"), update(5, "a"), "junk", update(6, "b")]])
    notebook = Notebook()
    await poll_for(client, notebook, 10)
    assert notebook.texts == [["a", "b", "c"]]
    assert offsets(client) == [None, 8]


async def test_a_poison_update_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    poison: dict[str, object] = {"update_id": 6, "message": {"message_id": "x", "text": "secret"}}
    client = ScriptedClient([[update(5, "a"), poison, "junk", update(7, "b")]])
    notebook = Notebook()
    with logged(caplog) as lines:
        await poll_for(client, notebook, 10)
    assert notebook.texts == [["a", "b"]]
    assert offsets(client) == [None, 8]
    assert lines == ["WARNING update_malformed"] * 2
    assert "secret" not in caplog.text


@pytest.mark.parametrize("odd", [{"message": 5}, {"brand_new_kind": {"id": 1}}, {}])
async def test_a_batch_of_which_nothing_is_left_is_confirmed_without_the_intake(
    odd: dict[str, object],
) -> None:
    client = ScriptedClient([[{"update_id": 6, **odd}]])
    notebook = Notebook()
    await poll_for(client, notebook, 10)
    assert notebook.offers == []
    assert offsets(client) == [None, 7]


async def test_updates_that_cannot_be_confirmed_do_not_make_a_busy_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    junk: list[Answer] = [["junk"] for _ in range(500)]
    client = ScriptedClient([*junk, [update(5)]])
    taking = poller(client)
    async with meanwhile(taking.run(Notebook())):
        await asyncio.sleep(60)
        assert len(client.polls) < 10
        assert taking.health.detail.startswith("updates cannot be confirmed")
        client.answers[:-1] = []
        await asyncio.sleep(60)
        assert taking.health.detail == ""
