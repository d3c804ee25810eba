"""Every channel of ours passes the suite that is shipped for all (SPEC CHAN-1)."""

from __future__ import annotations

import pytest

from channels.telegram import client_class
from channels.telegram.settings import Library
from goclaw_py.testing.conformance import Check, checks_for
from tests.support.channel_rigs import ConsoleRig, RecordingRig, console, recording
from tests.support.channel_rigs_telegram import GroupRig, TelegramRig, WebhookRig, telegram


@pytest.mark.parametrize("check", checks_for(RecordingRig), ids=str)
async def test_the_recording_channel_keeps_the_contract(check: Check) -> None:
    async with recording() as rig:
        await check(rig)


@pytest.mark.parametrize("check", checks_for(ConsoleRig), ids=str)
async def test_the_console_keeps_the_contract(check: Check) -> None:
    """SPEC CHAN-9."""
    async with console() as rig:
        await check(rig)


@pytest.mark.real_time
@pytest.mark.parametrize("library", list(Library))
@pytest.mark.parametrize(
    ("kind", "check"),
    [
        pytest.param(kind, check, id=f"{kind.__name__}-{check}")
        for kind in (TelegramRig, WebhookRig, GroupRig)
        for check in checks_for(kind)
    ],
)
async def test_telegram_keeps_the_contract(
    kind: type[TelegramRig], check: Check, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-2: over both libraries, by long polling and by webhook."""
    monkeypatch.setattr("channels.telegram.adapter._REFUSED_FOR_S", 0.0)
    # Here, where it may take its time: aiogram needs a second, under load many more.
    client_class(library)
    async with telegram(kind, library) as rig:
        await check(rig)
