"""What ``goclaw doctor`` hears from Telegram where no gateway runs (SPEC CHAN-8, OPS-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.telegram.settings import Library
from goclaw_py.cli import composition
from goclaw_py.config import Settings, load
from goclaw_py.core.errors import ChannelError, ChannelRefused, NotSent
from tests.botapi import BotApi, Fault, FaultKind

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]


def _settings(api: BotApi, folder: Path, **more: str) -> Settings:
    env = {
        "HOME": str(folder),
        "GOCLAW_HOME": str(folder),
        "GOCLAW_TELEGRAM_TOKEN": api.token,
        "GOCLAW_CHANNELS__TELEGRAM__BASE_URL": api.url,
        **more,
    }
    return load(env=env)


async def _asked(settings: Settings) -> str | ChannelError:
    ((name, answer),) = await composition.probe_channels(settings)
    assert name == "telegram/default"
    return answer


@pytest.mark.parametrize("library", [one.value for one in Library])
async def test_a_bot_that_works_tells_its_name_and_its_privacy_mode(
    api: BotApi, tmp_path: Path, library: str
) -> None:
    """SPEC CHAN-12: in privacy mode it gets no messages that do not mention it."""
    settings = _settings(api, tmp_path, GOCLAW_CHANNELS__TELEGRAM__LIBRARY=library)
    answer = await _asked(settings)
    assert isinstance(answer, str)
    assert "@GoclawTestBot" in answer
    assert await composition.bot_name(settings) == "GoclawTestBot"
    assert "privacy mode" not in answer
    api.world.privacy = True
    assert "privacy mode is on" in str(await _asked(settings))
    assert set(api.counts()) <= {"getMe", "getWebhookInfo"}, "it changes nothing"


async def test_what_is_wrong_is_told_after_a_while(
    api: BotApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "123456789:AAbbCCwrongwrongwrongwrongwrongwrong"
    refused = await _asked(_settings(api, tmp_path, GOCLAW_TELEGRAM_TOKEN=wrong))
    assert isinstance(refused, ChannelRefused)
    with pytest.raises(ChannelRefused):
        await composition.bot_name(_settings(api, tmp_path, GOCLAW_TELEGRAM_TOKEN=wrong))
    monkeypatch.setattr(composition, "PROBE_S", 0.3)
    api.fault(Fault("getMe", FaultKind.DELAY, seconds=30))
    silent = await _asked(_settings(api, tmp_path))
    assert isinstance(silent, NotSent)
    assert "no answer within" in str(silent)
    # A console alone asks nobody.
    env = {"HOME": str(tmp_path), "GOCLAW_HOME": str(tmp_path)}
    assert await composition.probe_channels(load(env=env)) == []
    assert await composition.bot_name(load(env=env)) == ""
