"""Both client libraries understand every update of the emulator.

That they understand its answers is seen in ``tests/integration/test_telegram_clients.py``.
"""

from __future__ import annotations

import json

import pytest

from tests.botapi import BotApi, FileKind
from tests.botapi.caller import ANN, OLD, TEAM, Wire
from tests.botapi.people import OTHER
from tests.botapi.rules import Json

_WITH_FIELDS = ("message", "edited_message", "callback_query", "my_chat_member")


@pytest.fixture
async def updates(api: BotApi, wire: Wire) -> list[Json]:
    """An update of every kind."""
    api.say(ANN, "/start @Some_bot https://x.example", username="ann")
    api.say(ANN, "why?", reply_to=1, quote="start")
    for kind in FileKind:
        api.send(ANN, kind, caption="see")
    for content in OTHER.values():
        api.send_other(ANN, content)
    api.album(ANN, [FileKind.PHOTO, FileKind.VIDEO])
    api.edit(ANN, 1, "changed")
    api.press(ANN, 1, "x")
    api.block(ANN)
    api.unblock(ANN)
    api.add_group(TEAM, "Team", topics=[55])
    api.say(ANN, "x", chat_id=TEAM, thread=55)
    api.open_topic(TEAM, 66, "New")
    api.close_topic(TEAM, 66)
    api.kick(TEAM)
    api.invite(TEAM)
    api.add_group(OLD, "Old", kind="group")
    api.migrate(OLD, -1006)
    return await wire.updates()


async def test_python_telegram_bot_reads_all(updates: list[Json]) -> None:
    import telegram

    for update in updates:
        read = telegram.Update.de_json(update, None)
        found = [getattr(read, name, None) for name in _WITH_FIELDS]
        assert not [one.api_kwargs for one in found if one is not None and one.api_kwargs], update


@pytest.mark.slow
async def test_aiogram_reads_all(updates: list[Json]) -> None:
    import aiogram

    read = [aiogram.types.Update.model_validate_json(json.dumps(update)) for update in updates]
    for one, update in zip(read, updates, strict=True):
        assert one.event_type in update
        assert one.event.model_extra in (None, {}), update
