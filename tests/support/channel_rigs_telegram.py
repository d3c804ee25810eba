"""Rigs of Telegram, for the suite that every channel has to pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from channels.telegram import factory as telegram_kind
from channels.telegram.identity import key
from channels.telegram.settings import Library
from goclaw_py.chat.channel import Channel
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.testing.conformance import Offer, Rig, SeenMessage, Trouble
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import FileKind as StoredKind
from tests.support.telegram import ANN, BEN, Line, Mode, connected

_AWAY_S = 1.5
_TOO_LONG = "Bad Request: text is too odd"


class TelegramRig(Rig):
    """A bot on a strict emulator of its server."""

    offers = frozenset(Offer) - {Offer.HOOK}
    troubles = frozenset(Trouble) - {Trouble.CHAT_MOVED}
    ann = Target("telegram", "default", str(ANN))
    ben = Target("telegram", "default", str(BEN))
    patience_s = 20.0
    largest_file = 1 << 20
    kind = telegram_kind
    mode = Mode.POLLING

    def __init__(self, api: BotApi, library: Library) -> None:
        self.api = api
        self._library = library
        self._stack = AsyncExitStack()
        self._line: Line | None = None
        self._back_at = 0.0

    async def open(self) -> None:
        """Connect. Both have written to the bot long ago."""
        self.know()
        for serial in list(self.api.world.updates.waiting):
            self.api.world.updates.done(self.api.world.updates.waiting[serial])
        await self._connect()

    def know(self) -> None:
        """Let the chats be there."""
        self.api.say(ANN, "hello")
        self.api.say(BEN, "hello")

    async def close(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self._stack.aclose()
        await self._connect()

    def say(self, chat: Target, text: str) -> None:
        self.api.say(int(chat.chat), text)

    def say_again(self) -> None:
        assert self.api.repeat(1) == 1

    def say_file(self, chat: Target, content: bytes) -> None:
        self.api.send(int(chat.chat), StoredKind.DOCUMENT, content=content, file_name="a.bin")

    def unconfirmed(self) -> int:
        return self.api.pending()

    def seen(self, chat: Target) -> list[SeenMessage]:
        return [
            SeenMessage(
                key(self.api.world.bot_id, one.message_id),
                one.text,
                None if one.file is None else self.api.file(one.file.file_id),
            )
            for one in self.api.view(int(chat.chat))
            if one.mine and one.service is None
        ]

    def delete(self, chat: Target, message_id: str) -> None:
        self.api.delete(int(chat.chat), int(message_id.rpartition(":")[2]))

    async def cause(self, trouble: Trouble) -> None:
        match trouble:
            case Trouble.AWAY:
                self.api.go_away(_AWAY_S)
                self._back_at = asyncio.get_running_loop().time() + _AWAY_S
                # What is sent before the client knows that its connections have ended may arrive.
                await asyncio.sleep(0.05)
            case Trouble.CHAT_GONE:
                self.lose_ann()
            case Trouble.CHAT_MOVED:
                self.api.migrate(int(self.ann.chat), -1009)
            case Trouble.ACCOUNT_REFUSED:
                self.api.revoke()
            case _:
                for fault in self._faults()[trouble]:
                    self.api.fault(fault)

    def lose_ann(self) -> None:
        self.api.block(ANN)

    def regain_ann(self) -> None:
        self.api.unblock(ANN)

    async def calm(self) -> None:
        self.api.clear_faults()
        self.api.restore()
        self.regain_ann()
        # The emulator comes back by itself, a moment after this.
        await asyncio.sleep(max(self._back_at - asyncio.get_running_loop().time(), 0))
        await self._until_back()

    async def _until_back(self) -> None:
        port = int(self.api.url.rpartition(":")[2])
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            await writer.wait_closed()
            return

    async def _connect(self) -> None:
        line = connected(self.api, self._library, self.mode, download_mb=1, send_timeout_s=5)
        self._line = await self._stack.enter_async_context(line)
        self.channel: Channel = self._line.channel

    def _faults(self) -> Mapping[Trouble, list[Fault]]:
        ann = int(self.ann.chat)
        hang = FaultKind.HANG
        return {
            Trouble.ANSWER_LOST: [
                Fault("sendMessage", FaultKind.RESET_AFTER),
                Fault("editMessageText", FaultKind.RESET_AFTER),
            ],
            Trouble.HANGS: [
                Fault("sendMessage", hang, count=99, chat=ann),
                Fault("download", hang, count=99),
            ],
            Trouble.FLOOD: [Fault("sendMessage", FaultKind.FLOOD, seconds=7)],
            Trouble.MESSAGE_REFUSED: [
                Fault("sendMessage", FaultKind.ERROR, status=400, words=_TOO_LONG)
            ],
        }


class WebhookRig(TelegramRig):
    """The same, called by its server."""

    offers = frozenset(Offer)
    mode = Mode.WEBHOOK


class GroupRig(TelegramRig):
    """The same in groups, which can move.

    Whether the server can be reached has nothing to do with the kind of a chat: those checks, which
    wait for seconds, are left to the other two.
    """

    troubles = frozenset(Trouble) - {Trouble.AWAY}
    ann = Target("telegram", "default", "-500")
    ben = Target("telegram", "default", "-501")
    peer = PeerKind.GROUP

    def know(self) -> None:
        for chat in (self.ann, self.ben):
            self.api.add_group(int(chat.chat), "Team", kind="group")

    def say(self, chat: Target, text: str) -> None:
        self.api.say(ANN, text, chat_id=int(chat.chat))

    def say_file(self, chat: Target, content: bytes) -> None:
        number = int(chat.chat)
        self.api.send(ANN, StoredKind.DOCUMENT, content=content, file_name="a.bin", chat_id=number)

    def lose_ann(self) -> None:
        self.api.kick(int(self.ann.chat))

    def regain_ann(self) -> None:
        """Somebody lets the bot in again, without a word of the server in the chat."""
        self.api.unmute(int(self.ann.chat))


@asynccontextmanager
async def telegram(rig: type[TelegramRig], library: Library) -> AsyncIterator[TelegramRig]:
    """One of the three, over one of the libraries."""
    async with BotApi(local=True) as api:
        made = rig(api, library)
        await made.open()
        try:
            yield made
        finally:
            await made.close()
