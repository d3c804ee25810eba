"""Long polling that goes wrong, over both libraries, against a strict Bot API emulator."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest

from channels.telegram.settings import Library
from goclaw_py.model.errors import ChannelError, ChannelRefused
from goclaw_py.scheduler.views import HEALTHY, ChannelState
from tests.botapi import BotApi, Fault, FaultKind
from tests.support.bot_clients import connected as client_over
from tests.support.telegram import ANN, CHAT, Line, connected, eventually, reply

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]


async def test_of_two_pollers_the_older_one_steps_back(
    polling: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC CHAN-8."""
    api = polling.api
    async with polling.receiving() as task:
        await polling.ready()
        async with client_over(polling.library, api.url) as other:
            assert await other.get_updates(offset=None, wait_s=0, kinds=["message"]) == []
            await eventually(lambda: polling.channel.health.detail)
            assert "another program takes this bot's updates" in polling.channel.health.detail
            await asyncio.wait({task}, timeout=0.2)
            assert not task.done()
            assert api.counts()["getUpdates"] == 3, "it must not fight for the updates"
    (warning,) = [vars(r)["warning"] for r in caplog.records if r.msg == "channel_outage_started"]
    assert "another program takes this bot's updates" in warning


async def test_it_recovers_when_the_other_poller_has_gone(
    polling: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8."""
    monkeypatch.setattr("channels.telegram.polling._CONFLICT_PAUSE_S", 0.2)
    words = "Conflict: terminated by other getUpdates request"
    async with polling.receiving():
        await polling.ready()
        polling.api.fault(Fault("getUpdates", FaultKind.ERROR, 5, status=409, words=words))
        polling.api.say(ANN, "one")
        await polling.inbox.until_accepted("one")
        polling.api.say(ANN, "two")
        await polling.inbox.until_accepted("two")
        await eventually(lambda: not polling.channel.health.detail)


async def test_a_webhook_that_is_set_is_removed(polling: Line) -> None:
    """SPEC CHAN-8."""
    polling.api.set_webhook("https://old.example/hook")
    polling.api.say(ANN, "one")
    async with polling.receiving():
        await polling.inbox.until_accepted("one")
        await eventually(lambda: not polling.channel.health.detail)
    assert polling.api.world.webhook == ""


async def test_a_webhook_that_is_set_meanwhile_is_removed(polling: Line) -> None:
    """SPEC CHAN-8."""
    async with polling.receiving():
        await polling.ready()
        polling.api.set_webhook("https://old.example/hook")
        polling.api.say(ANN, "one")
        await polling.inbox.until_accepted("one")
    assert polling.api.world.webhook == ""


@pytest.mark.parametrize(("status", "words"), [(401, "Unauthorized"), (404, "Not Found")])
async def test_one_refused_request_is_no_revoked_token(
    line: Line, status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8."""
    monkeypatch.setattr("channels.telegram.webhook._LOOK_S", 0.2)
    for method in ("getMe", "getUpdates", "setWebhook", "getWebhookInfo"):
        line.api.fault(Fault(method, FaultKind.ERROR, status=status, words=words))
    async with line.receiving() as task:
        await eventually(lambda: line.channel.health.detail.endswith(f"({words})"))
        line.api.say(ANN, "one")
        await line.inbox.until_accepted("one")
        await eventually(lambda: line.channel.health == HEALTHY)
        assert not task.done()
    assert line.channel.reaches(CHAT.chat)


async def test_a_revoked_token_ends_the_receiving_with_one_clear_line(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8: also where the server calls a webhook."""
    monkeypatch.setattr("channels.telegram.webhook._LOOK_S", 0.2)
    monkeypatch.setattr("channels.telegram.adapter._REFUSED_FOR_S", 2.0)
    async with line.receiving() as task:
        await line.ready()
        line.api.revoke()
        await eventually(lambda: line.channel.health.state is ChannelState.UNAUTHORIZED)
        await asyncio.wait({task}, timeout=8)
        with pytest.raises(ChannelRefused, match=r"this bot token \(Unauthorized\); get a token"):
            task.result()
    assert not line.channel.reaches(CHAT.chat)


async def test_a_new_token_in_its_file_is_taken_without_a_restart(
    api: BotApi, library: Library, tmp_path: Path
) -> None:
    """SPEC CHAN-8."""
    file = tmp_path / "token"
    file.write_text("4242:AAanother-token-than-the-right-one")
    async with connected(api, library, token=None, token_file=str(file)) as line:
        async with line.receiving() as task:
            await eventually(lambda: line.channel.health.state is ChannelState.UNAUTHORIZED)
            file.write_text(api.token)
            await asyncio.wait({task}, timeout=8)
            task.result()
        api.say(ANN, "one")
        async with line.receiving():
            await line.inbox.until_accepted("one")
        assert await line.channel.send(reply())


@pytest.mark.parametrize("token", ["4242:AAanother-token-than-the-right-one", "1:" + "A" * 35])
async def test_a_wrong_token_is_refused(
    api: BotApi, library: Library, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8."""
    monkeypatch.setattr("channels.telegram.adapter._REFUSED_FOR_S", 0.0)
    async with connected(api, library, token=token) as line:
        with pytest.raises(ChannelRefused) as caught:
            async with asyncio.timeout(5):
                await line.channel.receive(line.inbox)
    assert token not in str(caught.value)


@pytest.mark.parametrize("status", [404, 401, 500, 502])
async def test_a_proxys_page_is_no_word_of_telegram(line: Line, status: int) -> None:
    """SPEC CHAN-8: a 404 page looks like a wrong token to the libraries."""
    for method in ("getMe", "getUpdates", "setWebhook"):
        line.api.fault(Fault(method, FaultKind.PAGE, status=status))
    line.api.say(ANN, "one")
    async with line.receiving():
        await line.inbox.until_accepted("one")
        assert line.channel.health.detail == ""


async def test_a_poll_whose_connection_is_dead_is_given_up(
    polling: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8: the client's own limit."""
    monkeypatch.setattr("channels.telegram.answers._POLL_MARGIN_S", 0.5)
    polling.api.fault(Fault("getUpdates", FaultKind.HANG))
    polling.api.say(ANN, "one")
    async with polling.receiving():
        await polling.inbox.until_accepted("one")


async def test_a_poll_that_a_client_never_gives_up_is_given_up_by_the_watchdog(
    polling: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8."""
    monkeypatch.setattr("channels.telegram.polling._WATCHDOG_S", 0.5)
    polling.api.fault(Fault("getUpdates", FaultKind.HANG))
    polling.api.say(ANN, "one")
    async with polling.receiving():
        await polling.inbox.until_accepted("one")


async def test_flooded_polls_wait_as_long_as_the_server_says(polling: Line) -> None:
    api = polling.api
    api.fault(Fault("getUpdates", FaultKind.FLOOD, seconds=2))
    api.say(ANN, "one")
    async with polling.receiving():
        await polling.inbox.until_accepted("one")
    first, second = (call.at for call in api.transcript("getUpdates")[:2])
    assert second - first >= 2


async def test_a_server_that_goes_away_and_comes_back_is_found_again(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC CHAN-8: recovery by itself, with two lines in the log."""
    async with line.receiving():
        await line.ready()
        line.api.go_away(2)
        line.api.say(ANN, "one")
        await line.inbox.until_accepted("one")
        await eventually(lambda: not line.channel.health.detail)
    about = [vars(r).get("warning", "") for r in caplog.records if r.name == "channels.telegram"]
    assert len([text for text in about if "cannot be reached" in text]) <= 2


async def test_ids_that_start_anew_are_taken(polling: Line) -> None:
    """They do so after a week without updates."""
    async with polling.receiving():
        polling.api.say(ANN, "one")
        await polling.inbox.until_accepted("one")
        await polling.api.wait_confirmed()
        polling.api.renumber(1000)
        polling.api.say(ANN, "two")
        await polling.inbox.until_accepted("two")
        polling.api.say(ANN, "three")
        await polling.inbox.until_accepted("three")
        await polling.api.wait_confirmed()
    assert polling.inbox.texts == ["one", "two", "three"]


async def test_a_long_poll_is_cancelled_quickly(polling: Line) -> None:
    async with polling.receiving() as task:
        await polling.ready()
        began = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        assert time.monotonic() - began < 10
    assert task.cancelled()


async def test_the_token_is_in_no_log_and_no_error(
    line: Line, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8."""
    caplog.set_level(logging.DEBUG)
    errors: list[str] = []
    line.api.say(ANN, "hello")
    kinds = [kind for kind in FaultKind if not kind.value.startswith("delay")]
    for kind in kinds:
        line.api.fault(Fault("sendMessage", kind, seconds=0.5))
    for method in ("getMe", "getUpdates", "setWebhook"):
        line.api.fault(Fault(method, FaultKind.PAGE))
        line.api.fault(Fault(method, FaultKind.BROKEN_AFTER))
    async with line.receiving():
        for _ in kinds:
            try:
                await line.channel.send(reply())
            except ChannelError as error:
                errors.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")
        await line.inbox.until_accepted("hello")
    line.api.revoke()
    monkeypatch.setattr("channels.telegram.adapter._REFUSED_FOR_S", 0.0)
    with pytest.raises(ChannelRefused) as refused:
        await line.channel.receive(line.inbox)
    errors.append(repr(refused.value))
    secret = line.api.token.partition(":")[2]
    assert len(errors) >= len(kinds) - 1
    assert secret not in caplog.text
    assert secret not in str([vars(record) for record in caplog.records])
    assert secret not in str(errors)
