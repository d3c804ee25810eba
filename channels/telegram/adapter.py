"""Telegram as a channel (SPEC CHAN-1, CHAN-2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from channels.telegram.activity import TypingBoard
from channels.telegram.bot import ChatMenus, probe, publish_commands
from channels.telegram.client import ROOM_FOR_LINE, TEXT_LIMIT, Bot, BotClient, ChatPlace, Text
from channels.telegram.format import plain, render
from channels.telegram.identity import key, number_in, numbered
from channels.telegram.inbound.reader import CHANNEL
from channels.telegram.lost_drafts import LostDrafts
from channels.telegram.marks import Marks
from channels.telegram.native import NativeDrafts
from channels.telegram.outage import STARTING, Outage, health_of
from channels.telegram.polling import Poller
from channels.telegram.sending import ALBUMS, MessageSender, number_of, place_of, with_retries
from channels.telegram.settings import Streaming, TelegramSettings
from channels.telegram.updates import Updates
from channels.telegram.webhook import WebhookReceiver
from goclaw_py.chat.channel import Hook, InboundHandler
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.rate_limit import RateLimit
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import ChannelError, ChannelRefused, NotSent, SettingError
from goclaw_py.core.messages import (
    Attachment,
    LostDraft,
    OutboundMessage,
    OutFile,
    PeerKind,
    Target,
)
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import (
    ButtonsUsed,
    PressAnswered,
    RoleChanged,
    RunEnded,
    RunSignal,
    RunStarted,
    RunText,
    RunWaiting,
    RunWaits,
)
from goclaw_py.scheduler.views import HEALTHY, ChannelHealth, ChannelState

_T = TypeVar("_T")

Connect = Callable[[TelegramSettings], Awaitable[BotClient]]

_log = logging.getLogger("channels.telegram")

_LONGEST_PAUSE_S = 30.0
_CLOSE_WITHIN_S = 2.0
_REFUSED_FOR_S = 300.0
"""Seconds for which the server must refuse the token before the channel stops."""
_TOKEN_LOOK_S = 5.0
_ASK_AGAIN_S = 60.0
"""Seconds between checks of a refused token."""
_MOST_SENT = 1_000
_CURE = "get a token from @BotFather and write it into token_file, which is read again"


class TelegramChannel:
    """A bot. ``connect`` is called when the bot is first needed, and for each new token."""

    name = CHANNEL
    trusted = False

    def __init__(
        self,
        account: str,
        settings: TelegramSettings,
        connect: Connect,
        read_again: Callable[[], TelegramSettings] | None = None,
    ) -> None:
        """``read_again`` reads the settings again; raises ``SettingError``."""
        self.account = account
        self._read_again = read_again or (lambda: settings)
        self.handle: str | None = None
        self._settings = settings
        self._connect = connect
        self._connecting = asyncio.Lock()
        self._client: BotClient | None = None
        self._refused = False
        self._ending = False
        self._closed = False
        self._refusal = Outage(
            "requests are refused", account, _LONGEST_PAUSE_S, ChannelState.UNAUTHORIZED
        )
        hooked = bool(settings.webhook_url)
        self._webhook = WebhookReceiver(settings, account, self._accepted) if hooked else None
        self._poller: Poller | None = None
        # Until the server has answered once it is not connected, however long imports take.
        self._start: Outage | None = self._starting()
        self._sending = MessageSender(self._open, self._on_sent)
        self._lost = LostDrafts(self._open, self._close_later)
        self._sent_at = LruCache[ChatPlace, float](_MOST_SENT)
        self._forums = LruCache[int, None](_MOST_SENT)
        self._typing = TypingBoard(self._show_typing, self._sent_at)
        self._marks = Marks(self._react, self._sent_at)
        self._native = NativeDrafts(self._show_draft)
        self._menus = ChatMenus()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def lease(self) -> str | None:
        """The lease for polling, which one process may do; webhooks need none."""
        return None if self._webhook is not None else self.identity

    @property
    def identity(self) -> str:
        """The bot."""
        return f"{CHANNEL}:{self._settings.bot_id}"

    @property
    def health(self) -> ChannelHealth:
        """The health of the connection."""
        return replace(self._health(), proxy=str(self._settings.proxy or ""))

    def _health(self) -> ChannelHealth:
        if refusal := self._refusal.sentence:
            # The token itself may be accepted, and a request refused by some proxy.
            state = self._refusal.state if self._refused else ChannelState.RECONNECTING
            return ChannelHealth(state, refusal)
        if self._start is not None:
            return health_of([self._start]) if self._start.sentence else STARTING
        part = self._poller or self._webhook
        return HEALTHY if part is None else part.health

    @property
    def hook(self) -> Hook | None:
        """The endpoint for the server's updates, unless the bot polls."""
        return None if self._webhook is None else self._webhook.hook

    def reaches(self, chat: str) -> bool:  # noqa: ARG002  every chat shares the bot's fate
        """Return False while the token is refused, or that of a bot that is not connected."""
        return not (self._refused or self._ending)

    def chat_problem(self, chat: str) -> str:
        """Chats of Telegram have numbers; a bot cannot write to a name."""
        return "" if number_of(chat) is not None else "the id of a Telegram chat is a number"

    def pace(self, chat: str) -> RateLimit:
        """Return the server's limits, see https://core.telegram.org/bots/faq."""
        return self._settings.pace(is_group=chat.startswith("-"))

    def parts(self, text: str) -> list[str]:
        """Return Telegram's HTML, split at its limit (CHAN-3), with room for a line (IO-5)."""
        return render(text, TEXT_LIMIT - ROOM_FOR_LINE)

    def readable(self, part: str) -> str:
        """Return the text, with link addresses in brackets."""
        return plain(part)

    async def warm_up(self) -> None:
        """Import the library of the bot."""
        await self._open()

    async def probe(self) -> str:
        """Return the bot's name, and problems of webhook or polling. Raises ``ChannelError``."""
        bot, line = await probe(await self._open(), self._settings)
        self._named(bot)
        return line

    async def receive(self, intake: InboundHandler) -> None:
        """Receive updates until cancelled, or until there is another token.

        Raises ``ChannelRefused`` for a token that is refused for minutes.
        """
        client = await self._open()
        bot = await self._identify(client)
        if bot is None:
            return
        self._named(bot)
        if not bot.reads_groups:
            _log.info("privacy_mode_is_on", extra={"account": self.account})
        self._accepted()
        updates = Updates(client, bot, self.account, self._forums)
        menu = asyncio.create_task(publish_commands(client, self.account, self._menus), name="menu")
        name = asyncio.create_task(updates.follow_name(self._named), name="telegram name")
        try:
            await self._receive(client, updates, intake)
        finally:
            menu.cancel()
            name.cancel()
            await asyncio.wait({menu, name})
            await updates.close()

    async def until_retry(self) -> None:
        """Wait for another token, and check the old one every minute."""
        while not await self._has_new_token(within_s=_ASK_AGAIN_S):
            with suppress(ChannelError):
                await (await self._open()).get_me()
                return

    async def send(self, message: OutboundMessage) -> str:
        """Send a message or complete a draft; return the id of the message."""
        bot = self._settings.bot_id
        mine = numbered(bot, message)
        if message.draft is not None and mine.draft is None and not (mine.text or mine.file):
            return message.draft  # a draft of another bot, which only that bot could remove
        return key(bot, await self._noting_refusal(self._sending.send(mine)))

    def album(self, file: OutFile) -> str:
        """Return the key: pictures with videos, documents, music; "" for voice messages."""
        return ALBUMS.get(file.kind, "")

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:
        """Send files as an album; return the ids of its messages."""
        bot = self._settings.bot_id
        mine = [numbered(bot, message) for message in messages]
        numbers = await self._noting_refusal(self._sending.send_album(mine))
        return [key(bot, number) for number in numbers]

    def drafts(self, target: Target, peer: PeerKind) -> bool:
        """Return whether replies are streamed by edits there."""
        if place_of(target) is None or self._settings.streaming is Streaming.OFF:
            return False
        return peer is PeerKind.GROUP or self._settings.streaming is Streaming.EDIT

    async def post_draft(self, beginning: OutboundMessage) -> str:
        """Post the beginning of a reply, but only while the bot is connected.

        Otherwise a post that waits for the connection could arrive after the run has ended.
        """
        if self._refused or self._connecting.locked():
            raise NotSent("the bot is being connected")
        bot = self._settings.bot_id
        posted = self._sending.post_draft(numbered(bot, beginning))
        return key(bot, await self._noting_refusal(posted))

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        """Edit the draft."""
        mine = numbered(self._settings.bot_id, so_far)
        await self._noting_refusal(self._sending.edit_draft(mine))

    def counts_everywhere(self, chat: str) -> bool:
        """A supergroup counts by itself; direct chats and small groups share the bot's count."""
        return not chat.startswith("-100")

    async def find_draft(
        self, target: Target, lost: LostDraft, *, before: str | None, known: Collection[str]
    ) -> str | None:
        """Search a draft by its stop button."""
        search = self._lost.search(self._settings.bot_id, target, lost, before, known)
        return await self._noting_refusal(search)

    async def unmark(
        self,
        message: OutboundMessage,
        sent: str,
        *,
        earlier: Collection[str],
        known: Collection[str],
    ) -> bool:
        """Look at each message of ours that may be a copy; edit text or caption if none is."""
        bot = self._settings.bot_id
        mine, number = numbered(bot, message), number_in(bot, sent)
        if number is None:
            return False
        is_alone = self._lost.is_alone(bot, mine, number, earlier, known)
        if not await self._noting_refusal(is_alone):
            return False
        await self._noting_refusal(self._sending.show_as_written(mine, number))
        return True

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Download a file up to the size limit."""
        client = await self._open()
        limit_bytes = self._settings.download_mb << 20
        await client.fetch_file(attachment.ref, to, limit_bytes=limit_bytes)

    async def administrators(self, chat: str) -> frozenset[str]:
        """Return the ids of a group's administrators."""
        number = number_of(chat)
        if number is None:
            return frozenset()
        client = await self._open()
        return frozenset(map(str, await client.administrators(number)))

    def signal(self, signal: RunSignal) -> None:
        """Show "typing…" during runs, and marks on messages that wait or failed."""
        place = place_of(signal.target)
        if place is None or self._ending:
            return
        match signal:
            case RunWaits():
                self._wait(place, signal)
            case RunStarted(run_id=run, messages=messages):
                self._typing.begin(run, place)
                self._marks.begin(place, self._numbers(messages))
            case RunText() | RunWaiting():
                if self._settings.streaming is Streaming.NATIVE and place.chat_id > 0:
                    self._native.on_signal(place, signal)
            case ButtonsUsed(message=message):
                self._remove_buttons(signal.target, message)
            case PressAnswered(press=press, text=text):
                self._close_later(partial(self._answer_press, press, text))
            case RoleChanged(is_owner=is_owner):
                self._menus.change(place.chat_id, is_owner=is_owner)
            case RunEnded(run_id=run):
                self._typing.end(run, place)
                self._native.end(run)
                self._end(place, signal)

    def _remove_buttons(self, target: Target, message: str) -> None:
        if (mine := number_in(self._settings.bot_id, message)) is not None:
            self._close_later(partial(self._sending.remove_buttons, target, mine))

    async def close(self) -> None:
        """Stop all signals and close connections. Call it after ``receive`` has ended."""
        self._ending = True
        await self._typing.close()
        await self._marks.close()
        await self._native.close()
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_WITHIN_S)
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        async with self._connecting:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    # ------------------------------------------------------------------ receiving

    async def _receive(self, client: BotClient, updates: Updates, intake: InboundHandler) -> None:
        """Receive updates while the bot has its token."""
        if self._webhook is not None:
            take = partial(self._webhook.run, client, updates, intake)
        else:
            wait_s = self._settings.poll_timeout_s
            self._poller = Poller(
                client, updates, account=self.account, wait_s=wait_s, on_answer=self._accepted
            )
            take = partial(self._poller.run, intake)
        try:
            while True:
                try:
                    await take()
                except ChannelRefused as error:
                    # One refusal proves nothing: a restart of the server, or a proxy, can cause it.
                    await asyncio.sleep(self._refusal.again(str(error)))
                    if await self._identify(client) is None:
                        return
        finally:
            self._poller = None

    async def _identify(self, client: BotClient) -> Bot | None:
        """Request the bot until the server responds; None if there is another token meanwhile.

        Raises ``ChannelRefused`` if the token was refused for minutes.
        """
        start = self._start = self._starting()
        now = asyncio.get_running_loop().time
        refused_at: float | None = None
        try:
            while True:
                try:
                    bot = await client.get_me()
                except ChannelRefused as error:
                    self._refused = True
                    refused_at = now() if refused_at is None else refused_at
                    if now() - refused_at >= _REFUSED_FOR_S:
                        raise ChannelRefused(f"{error}; {_CURE}") from None
                    pause = self._refusal.again(str(error))
                except ChannelError as error:
                    pause = max(start.again(str(error)), error.retry_after_s or 0)
                else:
                    start.over()
                    self._refused = False
                    return bot
                if await self._has_new_token(within_s=pause):
                    return None
        finally:
            self._start = None

    async def _has_new_token(self, *, within_s: float) -> bool:
        """Wait, or until the settings have another token."""
        now = asyncio.get_running_loop().time
        until = now() + within_s
        while (left := until - now()) > 0:
            await asyncio.sleep(min(left, _TOKEN_LOOK_S))
            if await self._use_new_token():
                return True
        return False

    async def _use_new_token(self) -> bool:
        """Use the token that the settings have now, if it is another one."""
        try:
            settings = self._read_again()
        except SettingError:
            return False  # it is being written, perhaps
        if settings.token == self._settings.token:
            return False
        _log.info("token_changed", extra={"account": self.account})
        async with self._connecting:
            client, self._client = self._client, None
            before, self._settings = self._settings, settings
        if client is not None:
            await client.close()
        if self._webhook is not None:
            self._webhook.use(settings)
        self._accepted()
        # Another bot may be that of another account, so nothing is sent before it receives.
        self._refused = settings.bot_id != before.bot_id
        return True

    # ------------------------------------------------------------------ showing

    def _wait(self, place: ChatPlace, waits: RunWaits) -> None:
        if not waits.late:
            self._typing.wait(waits.run_id, place)
        if self._settings.reactions:
            self._marks.wait(place, self._numbers(waits.messages), marked=waits.late)

    def _on_sent(self, place: ChatPlace) -> None:
        self._sent_at[place] = asyncio.get_running_loop().time()
        self._typing.sent(place)

    def _end(self, place: ChatPlace, ended: RunEnded) -> None:
        if self._settings.reactions:
            self._marks.end(place, self._numbers(ended.messages), ended.outcome)
        if (draft := number_in(self._settings.bot_id, ended.draft)) is not None:
            self._close_later(self._closer(ended, draft))

    def _closer(self, ended: RunEnded, draft: str) -> Callable[[], Awaitable[None]]:
        """Return a call that marks an incomplete draft, or removes one without text."""
        sending, target = self._sending, ended.target
        if ended.outcome is Outcome.COMPLETED:
            return partial(sending.delete_draft, target, draft)
        mark = texts.interrupted_draft(ended.outcome)
        return partial(sending.close_draft, target, draft, ended.shown, mark)

    async def _answer_press(self, press: str, text: str) -> None:
        number = number_in(self._settings.bot_id, press.partition(":")[2])
        if number is not None:
            await (await self._open()).answer_press(number, text)

    def _numbers(self, messages: Sequence[str]) -> list[int]:
        bot = self._settings.bot_id
        numbers = [number_of(number_in(bot, message)) for message in messages]
        return [number for number in numbers if number is not None]

    def _close_later(self, close: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(with_retries(close), name="telegram close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _starting(self) -> Outage:
        state = ChannelState.RECONNECTING if self.handle else ChannelState.STARTING
        return Outage("Telegram cannot be reached", self.account, _LONGEST_PAUSE_S, state)

    def _named(self, bot: Bot) -> None:
        self.handle = bot.username or None

    def _accepted(self) -> None:
        self._refused = False
        self._refusal.over()

    async def _noting_refusal(self, call: Awaitable[_T]) -> _T:
        try:
            return await call
        except ChannelRefused as error:
            self._refused = True
            self._refusal.again(str(error))
            raise

    async def _open(self) -> BotClient:
        if self._client is not None:
            return self._client
        async with self._connecting:
            if self._closed:
                raise NotSent("the channel is closed")
            if self._client is None:
                self._client = await self._connect(self._settings)
            return self._client

    async def _show_typing(self, place: ChatPlace) -> None:
        shown = place.in_forum() if place.chat_id in self._forums else place
        await (await self._open()).send_action(shown, "typing")

    async def _react(self, chat_id: int, message_id: int, emoji: str) -> None:
        await (await self._open()).set_reaction(chat_id, message_id, emoji)

    async def _show_draft(self, place: ChatPlace, number: int, text: Text) -> None:
        await (await self._open()).send_draft(place, number, text)
