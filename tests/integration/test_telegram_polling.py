"""Long polling that goes wrong, over both libraries, against a strict Bot API emulator.

``tests/unit/channels/telegram/test_polling_trouble.py`` has every kind of trouble.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from channels.telegram.settings import Library
from goclaw_py.model.errors import ChannelError, ChannelRefused
from goclaw_py.scheduler.views import ChannelState
from tests.botapi import BotApi, Fault, FaultKind
from tests.support.bot_clients import connected as client_over
from tests.support.telegram import ANN, Line, connected, eventually, reply

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


async def test_a_webhook_that_is_set_meanwhile_is_removed(polling: Line) -> None:
    """SPEC CHAN-8."""
    async with polling.receiving():
        await polling.ready()
        polling.api.set_webhook("https://old.example/hook")
        polling.api.say(ANN, "one")
        await polling.inbox.until_accepted("one")
    assert polling.api.world.webhook == ""


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


async def test_the_token_is_in_no_log_and_no_error(
    line: Line, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8: what the channel logs; for calls see ``test_telegram_secrecy.py``."""
    caplog.set_level(logging.DEBUG)
    errors: list[str] = []
    line.api.say(ANN, "hello")
    kinds = (FaultKind.BROKEN_AFTER, FaultKind.RESET, FaultKind.PAGE, FaultKind.HANG)
    for kind in kinds:
        line.api.fault(Fault("sendMessage", kind, seconds=0.5))
    for method in ("getMe", "getUpdates", "setWebhook"):
        line.api.fault(Fault(method, FaultKind.PAGE))
        line.api.fault(Fault(method, FaultKind.BROKEN_AFTER))
    async with line.receiving():
        for _ in kinds:
            with pytest.raises(ChannelError) as caught:
                await line.channel.send(reply())
            error = caught.value
            errors.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")
        await line.inbox.until_accepted("hello")
    line.api.revoke()
    monkeypatch.setattr("channels.telegram.adapter._REFUSED_FOR_S", 0.0)
    with pytest.raises(ChannelRefused) as refused:
        await line.channel.receive(line.inbox)
    secret = line.api.token.partition(":")[2]
    assert secret not in caplog.text
    assert secret not in str([vars(record) for record in caplog.records])
    assert secret not in str([*errors, repr(refused.value)])
