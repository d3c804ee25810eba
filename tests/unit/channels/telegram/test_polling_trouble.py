"""``channels.telegram.polling`` while the server or the network fails, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from channels.telegram.client import PollConflict, WebhookState
from goclaw_py.core.errors import ChannelRefused, MaybeSent, NotSent, RateLimited
from goclaw_py.scheduler.views import ChannelState
from tests.unit.channels.telegram.scripted import (
    Answer,
    Notebook,
    ScriptedClient,
    logged,
    meanwhile,
    outage,
    poll_for,
    poller,
    update,
)

LOST = NotSent("no connection")
TAKEN = PollConflict("Conflict: terminated by other getUpdates request")
HOUR = 3600.0


async def test_an_hour_without_network_takes_two_lines_and_is_over_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8: backoff, no log flood, and ``trouble`` tells the truth."""
    client = ScriptedClient([[], *([LOST] * 124), [update(5)]])
    notebook = Notebook()
    taking = poller(client)
    with logged(caplog) as lines:
        async with meanwhile(taking.run(notebook)):
            await asyncio.sleep(0.5)
            assert taking.health.detail == "Telegram cannot be reached, for 1 s now: no connection"
            await asyncio.sleep(HOUR - 10)
            assert taking.health.detail.startswith("Telegram cannot be reached, for 60 min now")
            await asyncio.sleep(60)
            assert taking.health.detail == ""
    assert notebook.texts == [["hello"]]
    assert len(lines) == 2


@pytest.mark.parametrize("error", [LOST, MaybeSent("HTTP 404 with a page"), TAKEN])
async def test_an_hour_of_trouble_that_comes_and_goes_does_not_flood_the_log(
    caplog: pytest.LogCaptureFixture, error: Answer
) -> None:
    """SPEC CHAN-8."""
    flapping: list[Answer] = []
    for number in range(5, 5000):
        flapping += [error, [update(number)]]
    client = ScriptedClient(flapping)
    with logged(caplog) as lines:
        await poll_for(client, Notebook(), HOUR)
    assert len(client.polls) > 300
    assert len(lines) <= 24


async def test_the_server_says_how_long_a_flooded_poller_waits() -> None:
    client = ScriptedClient([[], RateLimited("slow down", 17.0), []])
    await poll_for(client, Notebook(), 20)
    assert client.polls[2].at - client.polls[1].at == 17.0


async def test_a_poll_that_never_comes_back_is_given_up() -> None:
    """SPEC CHAN-8: a watchdog for a deaf poller, whatever the client's own limits do."""
    client = ScriptedClient([[], [update(5)]])
    notebook = Notebook()
    taking = poller(client)
    async with meanwhile(taking.run(notebook)):
        await asyncio.sleep(0)
        client.takes_s["get_updates"] = 10 * HOUR
        await asyncio.sleep(60.5)
        assert taking.health.detail.endswith("a request for updates never came back")
        client.takes_s["get_updates"] = 0
        await asyncio.sleep(60.5)
        assert notebook.texts == [["hello"]]
        assert taking.health.detail == ""


async def test_two_pollers_are_told_once_and_retried_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    answers: list[Answer] = [[], *([TAKEN] * 3), [update(5)]]
    client = ScriptedClient(answers)
    notebook = Notebook()
    taking = poller(client)
    with logged(caplog) as lines:
        async with meanwhile(taking.run(notebook)):
            await asyncio.sleep(25)
            assert taking.health.detail.startswith(
                "another program takes this bot's updates; stop it there, for 25 s now: Conflict"
            )
            assert taking.health.state is ChannelState.CONFLICT
            await asyncio.sleep(25)
            assert taking.health.detail == ""
    assert [poll.at for poll in client.polls[1:5]] == [0, 10, 20, 30]
    assert notebook.texts == [["hello"]]
    assert lines == outage("another program takes this bot's updates; stop it there")
    assert client.hook_deleted == 0


async def test_a_webhook_that_is_still_set_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    client = ScriptedClient(
        [PollConflict("Conflict: webhook"), [update(5)]], WebhookState("https://old.example/hook")
    )
    notebook = Notebook()
    with logged(caplog) as lines:
        await poll_for(client, notebook, 5)
    assert client.hook_deleted == 1
    assert notebook.texts == [["hello"]]
    assert any("a webhook is set" in line for line in lines)


async def test_a_webhook_that_another_program_sets_again_and_again_does_not_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    conflicts: list[Answer] = [PollConflict("Conflict: webhook") for _ in range(5000)]
    client = ScriptedClient(conflicts, WebhookState("https://old.example/hook"), hook_stays=True)
    taking = poller(client)
    with logged(caplog) as lines:
        async with meanwhile(taking.run(Notebook())):
            await asyncio.sleep(HOUR)
            assert taking.health.detail.startswith("a webhook is set for this bot")
            assert taking.health.detail.endswith("https://old.example/hook")
            client.answers, client.hook = [[update(5)]], WebhookState()
            await asyncio.sleep(60)
            assert taking.health.detail == ""
    assert len(lines) == 2
    assert client.hook_deleted < 150


async def test_a_poller_instead_of_the_webhook_is_told_apart() -> None:
    webhook = PollConflict("Conflict: webhook")
    client = ScriptedClient([webhook, TAKEN, TAKEN], WebhookState("https://old.example/hook"))
    taking = poller(client)
    async with meanwhile(taking.run(Notebook())):
        await asyncio.sleep(0.5)
        assert taking.health.detail.startswith("a webhook is set")
        await asyncio.sleep(5)
        assert taking.health.detail.startswith("another program takes this bot's updates")


async def test_trouble_while_asking_for_the_webhook_is_survived() -> None:
    client = ScriptedClient([PollConflict("Conflict: webhook"), [update(5)]])
    client.fail("webhook", MaybeSent("reset"))
    notebook = Notebook()
    await poll_for(client, notebook, 15)
    assert notebook.texts == [["hello"]]


async def test_a_refused_token_ends_the_polling() -> None:
    """SPEC CHAN-8."""
    client = ScriptedClient([ChannelRefused("Unauthorized")])
    with pytest.raises(ChannelRefused):
        await poller(client).run(Notebook())
    client = ScriptedClient([TAKEN])
    client.fail("webhook", ChannelRefused("Unauthorized"))
    with pytest.raises(ChannelRefused):
        await poller(client).run(Notebook())


async def test_updates_that_wait_at_the_server_but_do_not_come_make_it_start_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8: the offset may be above the ids that the server gives now."""
    client = ScriptedClient([[update(1_000_000)]], WebhookState(pending=3))
    with logged(caplog) as lines:
        await poll_for(client, Notebook(), 400)
    assert client.polls[1].offset == 1_000_001
    assert next(poll.at for poll in client.polls[1:] if poll.offset is None) <= 330
    assert lines == ["WARNING polling_restarted"]


async def test_a_quiet_bot_is_looked_after_every_five_minutes_and_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ScriptedClient([[update(5)]])
    with logged(caplog) as lines:
        await poll_for(client, Notebook(), HOUR)
    assert 10 <= client.calls.count("webhook") <= 12
    assert lines == []
    assert all(poll.offset == 6 for poll in client.polls[1:])


async def test_trouble_while_looking_for_deafness_changes_nothing() -> None:
    client = ScriptedClient([[update(5)]], WebhookState(pending=3))
    client.fail("webhook", LOST)
    await poll_for(client, Notebook(), 400)
    assert client.polls[-1].offset == 6


async def test_a_token_refused_while_looking_for_deafness_ends_the_polling() -> None:
    client = ScriptedClient([[update(5)]])
    client.fail("webhook", ChannelRefused("Unauthorized"))
    with pytest.raises(ChannelRefused):
        await poller(client).run(Notebook())
