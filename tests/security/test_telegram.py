"""Forged buttons, files and webhook calls over Telegram (SPEC CHAN-2, CHAN-5, CHAN-6, SEC-1).

Promised: the data of a button permits nothing, a file stays where files are received and is opened
by nobody, and a webhook takes updates with its own secret only. Tried: each with both libraries, on
a strict emulator of the Bot API. Ann is the owner, Bob a guest, Eve a stranger, Mia a member.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import aiohttp
import pytest

from channels.telegram.settings import Library
from channels.telegram.webhook import SECRET_HEADER, secret_of
from goclaw_py.chat.inbound.attachments import FOLDER
from goclaw_py.core.chat_commands import AccessAction, JobAction, stop_data
from goclaw_py.core.messages import Target
from goclaw_py.records import Standing
from goclaw_py.runs.agent_loop import FilePart
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.testing.channel import RecordingChannel
from tests.botapi import BotApi
from tests.botapi.files import FileKind
from tests.botapi.server import TOKEN
from tests.security.test_files import BOMBS, NAMES
from tests.security.test_people import Bank
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.jobs import Wanted, log_of, make
from tests.support.telegram import PATH, Line, connected

pytest_plugins = ["tests.support.telegram_fixtures"]
pytestmark = pytest.mark.real_time

ANN, BOB, EVE, MIA, TEAM = 7, 8, 9, 10, -1001


class TelegramGateway(GatewayProcess):
    """A gateway whose channel is not made for tests: nobody is trusted, and nothing is cut off."""

    def _rules(self, channel: RecordingChannel) -> ChatRules:
        rules = super()._rules(RecordingChannel(trusted=False))
        return replace(rules, access=replace(rules.access, allow=frozenset({str(ANN)})))

    def kill(self) -> None:
        self.channels = {}
        super().kill()

    async def bury(self) -> None:
        # A second cancellation would not wait for the end of polling.
        await asyncio.wait(self._tasks[-1:])
        await super().bury()


@dataclass(slots=True)
class Home:
    """A gateway with its people."""

    api: BotApi
    gateway: TelegramGateway
    bank: Bank

    def data(self, chat: int) -> str:
        """The data of the first button of the newest message that has some; "" without one."""
        shown = [one for one in self.api.view(chat) if one.mine and one.buttons]
        return (shown[-1].buttons[0][0].data or "") if shown else ""

    async def until_asked(self, chat: int, kind: str) -> str:
        await until(lambda: self.data(chat).startswith(kind), within_s=20)
        return self.data(chat)

    async def press(self, who: int, data: str, chat: int) -> str:
        """Press below the newest message of the bot there; return the popup."""
        below = [one.message_id for one in self.api.view(chat) if one.mine][-1]
        number = self.api.press(who, below, data, chat_id=chat)

        def answered() -> list[str]:
            found = [one for one in self.api.presses() if one.id == number]
            return [one.text for one in found if one.waited_s is not None]

        await until(lambda: bool(answered()), within_s=20)
        return answered()[0]

    async def standings(self) -> dict[str, Standing]:
        return {one.sender.id: one.standing for one in await self.gateway.store.people()}


@asynccontextmanager
async def a_home(api: BotApi, library: Library) -> AsyncIterator[Home]:
    bank = Bank()
    async with connected(api, library, streaming="off") as line:
        channel = cast("RecordingChannel", line.channel)
        ways = Ways(main_lane=9)
        made = a_process(bank.agent(), ways, channels=(channel,), kind=TelegramGateway)
        async with made as gateway:
            assert isinstance(gateway, TelegramGateway)
            home = Home(api, gateway, bank)
            api.say(ANN, "hello", name="Ann")
            await until(lambda: bool(api.texts(ANN)), within_s=20)
            api.say(BOB, "hello", name="Bob")
            await home.press(ANN, await home.until_asked(ANN, "access:"), ANN)
            await until(lambda: "re: hello" in api.texts(BOB), within_s=20)
            api.add_group(TEAM, "Team")
            now = gateway.clock.now()
            place = (channel.name, channel.account, str(TEAM))
            await gateway.store.allow_chat(*place, allowed=True, now=now)
            await gateway.access_control.refresh()
            api.say(MIA, "@GoclawTestBot hello", chat_id=TEAM, name="Mia")
            await until(lambda: bool(api.texts(TEAM)), within_s=20)
            yield home


NONSENSE = (
    "x",
    "approval:",
    "approval:once:",
    "approval:once:' or 1=1 --",
    "approval:once:ffffffffffffffff",
    "access:owner:0000000000000000",
    "access:root:0000000000000000",
    "job:done:00000000-0000-0000-0000-000000000000",
    "retry:" + ",".join(["9" * 18] * 3),
    "retry:-1",
    "stop:",
    "stop:\x00",
    "stop:" + "é" * 29,
    "\ud83d",
    "{}",
    "/approve",
)


@pytest.mark.slow
async def test_data_that_no_button_has_is_harmless(
    api: BotApi, library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    """Tried: data that nothing made, with no one, unknown, too many and impossible ids.

    Happened: for a guest it is at most a text for the agent, for a stranger nothing, and no error.
    """
    async with a_home(api, library) as home:
        api.say(EVE, "let me in", name="Eve")
        await until(lambda: bool(api.texts(EVE)), within_s=20)
        for data in NONSENSE:
            for who in (BOB, EVE):
                await home.press(who, data, who)
        api.say(BOB, "still there?", name="Bob")
        await until(lambda: api.texts(BOB)[-1].endswith("still there?"), within_s=60)
        (greeting,) = api.texts(EVE)
        assert "You do not have access yet" in greeting
        assert not any(one.levelno >= logging.ERROR for one in caplog.records)


@pytest.mark.slow
async def test_forged_buttons_do_nothing(api: BotApi, library: Library) -> None:
    """Tried: the data of every button of others, in each variant.

    Happened: every press was answered, nothing was decided, stopped, paid or told; the buttons
    still work for Ann.
    """
    async with a_home(api, library) as home:
        gateway, store = home.gateway, home.gateway.store
        soon = At(gateway.clock.now() + timedelta(seconds=0.5))
        place = Target("telegram", "default", str(ANN))
        job = await make(gateway, Wanted(soon, "secret tea", message=True, target=place))
        reminder = await home.until_asked(ANN, "job:")
        api.say(ANN, "@GoclawTestBot work", chat_id=TEAM)
        await until(lambda: len(gateway.dispatcher.runs()) == 1, within_s=20)
        (running,) = [run.id for run in gateway.dispatcher.runs()]
        api.say(EVE, "let me in", name="Eve")
        access = await home.until_asked(ANN, "access:")
        api.say(BOB, "pay", name="Bob")
        approval = await home.until_asked(ANN, "approval:")
        before = await home.standings()

        forged = [
            stop_data(running),
            *(access.replace("guest", action) for action in AccessAction),
            *(approval.replace("once", step) for step in ("once", "always", "sure", "deny")),
            *(reminder.replace("done", action) for action in JobAction),
        ]
        for data in forged:
            for who, chat in ((BOB, BOB), (EVE, EVE), (MIA, TEAM)):
                await home.press(who, data, chat)
        (question,) = await store.approvals()
        assert question.decision is None
        assert await store.grants() == []
        assert [run.id for run in gateway.dispatcher.runs()] == [running]
        assert await home.standings() == before
        assert len(await log_of(gateway, job)) == 1
        assert home.bank.paid == 0
        assert not any("secret" in text for chat in (BOB, EVE, TEAM) for text in api.texts(chat))

        await home.press(ANN, approval, ANN)
        await until(lambda: home.bank.paid == 1, within_s=20)


KINDS = (FileKind.DOCUMENT, FileKind.AUDIO, FileKind.VIDEO, FileKind.PHOTO, FileKind.VOICE)
MIMES = ("text/html\r\nX-Evil: 1", "../../x", "image/png", "x" * 5_000, "application/x-sh")


def received(gateway: GatewayProcess) -> list[FilePart]:
    requests = gateway.scripted.requests
    return [part for one in requests for part in one.parts if isinstance(part, FilePart)]


async def until_received(gateway: GatewayProcess, count: int) -> Sequence[FilePart]:
    await until(lambda: len(received(gateway)) >= count, within_s=60)
    return received(gateway)


@pytest.mark.slow
async def test_names_of_files_lead_nowhere(api: BotApi, library: Library) -> None:
    """Tried: names with paths, links, devices, NUL, 5,000 signs and hidden signs, and odd types.

    Happened: each file is one of the folder of received files, with what was sent in it.
    """
    async with a_home(api, library) as home:
        outside = set(home.gateway.workspace.parent.iterdir())
        for place, name in enumerate(NAMES):
            how: dict[str, Any] = {"file_name": name, "mime": MIMES[place % len(MIMES)]}
            api.send(BOB, KINDS[place % len(KINDS)], content=name.encode(errors="replace"), **how)
        sent = sorted(name.encode(errors="replace") for name in NAMES)
        parts = await until_received(home.gateway, len(NAMES))
        folder = (home.gateway.workspace / FOLDER).resolve()
        assert {part.path.resolve().parent for part in parts} == {folder}
        assert sorted(part.path.read_bytes() for part in parts) == sent
        assert all(not part.path.is_symlink() and part.path.is_file() for part in parts)
        assert all(part.path.name[0].isalnum() for part in parts)
        assert all(part.name.isprintable() and "/" not in part.name for part in parts)
        assert all(part.mime in {"", *MIMES[2::2]} or "/" in part.mime for part in parts)
        assert not any("evil" in part.mime.lower() for part in parts)
        assert set(home.gateway.workspace.parent.iterdir()) == outside


@pytest.mark.slow
async def test_bombs_are_neither_opened_nor_read_without_end(api: BotApi, library: Library) -> None:
    """Tried: a picture of 2,500 megapixels, an archive of 100 MB, a file larger than announced.

    Happened: the first two are stored as they came; of the third no byte is kept, and the agent is
    told.
    """
    async with a_home(api, library) as home:
        for kind, name, data in BOMBS.values():
            api.send(BOB, FileKind(kind.value), content=data, file_name=name)
        parts = await until_received(home.gateway, len(BOMBS))
        sent = [data for _, _, data in BOMBS.values()]
        assert sorted(part.path.read_bytes() for part in parts) == sorted(sent)
        files = set((home.gateway.workspace / FOLDER).iterdir())
        api.send(BOB, FileKind.DOCUMENT, content=bytes(21 << 20), size=1_000, file_name="small")
        asked = len(home.gateway.scripted.requests)
        await until(lambda: len(home.gateway.scripted.requests) > asked, within_s=60)
        assert "small" in home.gateway.scripted.requests[-1].prompt
        assert set((home.gateway.workspace / FOLDER).iterdir()) == files


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {SECRET_HEADER: ""},
        {SECRET_HEADER: TOKEN},
        {SECRET_HEADER: secret_of(TOKEN)[:-1]},
        {SECRET_HEADER: secret_of(TOKEN) + "0"},
        {SECRET_HEADER: secret_of(TOKEN).upper()},
        {SECRET_HEADER: secret_of("654321:another-bot-of-the-same-gateway-0000")},
        {"authorization": f"Bearer {secret_of(TOKEN)}"},
        {"cookie": f"{SECRET_HEADER}={secret_of(TOKEN)}"},
    ],
    ids=["none", "empty", "token", "prefix", "longer", "case", "other bot", "bearer", "cookie"],
)
async def test_a_webhook_takes_its_own_secret_only(hooked: Line, headers: dict[str, str]) -> None:
    """The comparison in constant time is in ``tests/unit/channels/telegram/test_webhook.py``."""
    ann = {"id": ANN, "first_name": "Ann"}
    said = {"message_id": 1, "date": 1_700_000_000, "text": "/stopall"}
    message = {**said, "chat": {**ann, "type": "private"}, "from": {**ann, "is_bot": False}}
    body = json.dumps({"update_id": 1, "message": message}).encode()
    async with hooked.receiving(), aiohttp.ClientSession() as session:
        await hooked.ready()
        url = f"http://127.0.0.1:{hooked.port}{PATH}"
        async with session.post(url, data=body, headers=headers) as answer:
            assert (answer.status, await answer.read()) == (403, b"")
        assert hooked.inbox.offered == []
        assert await hooked.post(body) == 200
        assert hooked.inbox.texts == ["/stopall"]
