"""A Bot API client and an intake that do what a test has written down, in virtual time.

::

    client = ScriptedClient([[update(5)], PollConflict("Conflict")])
    client.fail("edit_message", MarkupRefused("can't parse"))
    channel = channel_over(client, streaming=Streaming.NATIVE)
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import (
    Bot,
    BotClient,
    Buttons,
    ChatPlace,
    MessageGone,
    Text,
    Upload,
    WebhookState,
)
from channels.telegram.polling import Poller
from channels.telegram.settings import TelegramSettings
from channels.telegram.updates import Updates
from goclaw_py.core.errors import ChannelError, StoreUnavailable
from goclaw_py.core.messages import Inbound, InboundMessage

Answer = ChannelError | list[object]

SETTINGS = TelegramSettings(token="4242:AAtest-token_for-tests-only-12345")
BOT = Bot(4242, "GoclawTestBot")
TEXT_AT = 1_790_000_000
"""When ``update`` was written, in seconds since 1970."""


def update(number: int, text: str = "hello", **more: object) -> dict[str, object]:
    """An update with a private text message."""
    message = {
        "message_id": number,
        "from": {"id": 7, "is_bot": False, "first_name": "Ann"},
        "chat": {"id": 7, "type": "private", "first_name": "Ann"},
        "date": TEXT_AT,
        "text": text,
        **more,
    }
    return {"update_id": number, "message": message}


def pressed(number: int, data: str = "stop:run", *, press: str = "") -> dict[str, object]:
    """An update with the press of a button."""
    query = {
        "id": press or f"press-{number}",
        "from": {"id": 7, "is_bot": False, "first_name": "Ann"},
        "message": {"message_id": 3, "date": TEXT_AT, "chat": {"id": 7, "type": "private"}},
        "data": data,
    }
    return {"update_id": number, "callback_query": query}


@dataclass(frozen=True, slots=True)
class Poll:
    at: float
    offset: int | None
    wait_s: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as people see it; ``id`` is what the channel hands out."""

    id: int
    place: ChatPlace
    text: str
    html: bool = False
    reply_to: int | None = None
    buttons: tuple[tuple[tuple[str, str], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """Something that was shown at a time: typing, a reaction, a native draft."""

    at: float
    what: str
    place: ChatPlace
    number: int = 0


@dataclass(frozen=True, slots=True)
class HookSet:
    at: float
    url: str
    secret: str
    kinds: tuple[str, ...]
    connections: int


@dataclass(slots=True)
class ScriptedClient:
    """Answers polls from ``answers``; when they are used up, polls bring nothing."""

    answers: list[Answer] = field(default_factory=list)
    hook: WebhookState = field(default_factory=WebhookState)
    """The webhook that is set at the server."""
    bot: Bot = BOT
    hook_stays: bool = False
    """Another program sets its webhook again at once."""
    messages: dict[int, Sent] = field(default_factory=dict)
    """What stands in the chats now, by id."""
    polls: list[Poll] = field(default_factory=list)
    kinds: set[tuple[str, ...]] = field(default_factory=set)
    sent: list[Sent] = field(default_factory=list)
    edits: list[tuple[float, Sent]] = field(default_factory=list)
    files: list[tuple[ChatPlace, Upload, Text | None, int | None]] = field(default_factory=list)
    fetched: list[tuple[str, Path, int]] = field(default_factory=list)
    typed: list[Shown] = field(default_factory=list)
    reactions: list[Shown] = field(default_factory=list)
    drafts: list[Shown] = field(default_factory=list)
    presses: list[tuple[float, str]] = field(default_factory=list)
    toasts: list[str] = field(default_factory=list)
    bare: list[tuple[int, int]] = field(default_factory=list)
    """Messages whose buttons were taken away."""
    looked: list[int] = field(default_factory=list)
    """Messages below which buttons were set."""
    hooks: list[HookSet] = field(default_factory=list)
    menus: dict[int | None, Mapping[str, str]] = field(default_factory=dict)
    """The menus of chats, None for all others."""
    calls: list[str] = field(default_factory=list)
    """The names of all calls, in their order, successful or not."""
    takes_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By method: how long a call takes."""
    hook_deleted: int = 0
    closed: bool = False
    active: int = 0
    """How many calls are under way."""
    most_active: int = 0
    _failures: defaultdict[str, deque[ChannelError]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    def fail(self, method: str, *errors: ChannelError) -> None:
        """Let the next calls of a method fail, one after the other, without any effect."""
        self._failures[method].extend(errors)

    def forgive(self) -> None:
        """Let no more calls fail."""
        self._failures.clear()

    async def _begin(self, method: str) -> None:
        self.calls.append(method)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            await asyncio.sleep(self.takes_s[method])
        finally:
            self.active -= 1
        if self._failures[method]:
            raise self._failures[method].popleft()

    async def get_me(self) -> Bot:
        await self._begin("get_me")
        return self.bot

    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        self.polls.append(Poll(now(), offset, wait_s))
        self.kinds.add(tuple(kinds))
        await self._begin("get_updates")
        if not self.answers:
            await asyncio.sleep(max(wait_s, 0.001))
            return []
        answer = self.answers.pop(0)
        if isinstance(answer, ChannelError):
            raise answer
        if not answer:
            await asyncio.sleep(wait_s)
        return answer

    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        await self._begin("send_message")
        number = 101 + len(self.sent) + len(self.files)
        new = Sent(number, place, text.text, text.html, reply_to, _rows(buttons))
        self.sent.append(new)
        self.messages[new.id] = new
        return new.id

    async def edit_message(
        self, chat_id: int, message_id: int, text: Text, *, buttons: Buttons = ()
    ) -> None:
        await self._begin("edit_message")
        new = Sent(message_id, ChatPlace(chat_id), text.text, text.html, None, _rows(buttons))
        self.edits.append((now(), new))
        self.messages[message_id] = new

    async def delete_message(self, chat_id: int, message_id: int) -> None:
        await self._begin("delete_message")
        self.messages.pop(message_id, None)

    async def send_draft(self, place: ChatPlace, draft_id: int, text: Text) -> None:
        self.drafts.append(Shown(now(), text.text, place, draft_id))
        await self._begin("send_draft")

    async def send_file(
        self, place: ChatPlace, upload: Upload, *, caption: Text | None = None, reply_to: int | None
    ) -> int:
        await self._begin("send_file")
        self.files.append((place, upload, caption, reply_to))
        return self._shown_file(place, caption)

    def _shown_file(self, place: ChatPlace, caption: Text | None) -> int:
        number = 100 + len(self.sent) + len(self.files)
        text = caption or Text("")
        self.messages[number] = Sent(number, place, text.text, text.html)
        return number

    async def edit_caption(self, chat_id: int, message_id: int, caption: Text | None) -> None:
        await self._begin("edit_caption")
        text = caption or Text("")
        new = Sent(message_id, ChatPlace(chat_id), text.text, text.html)
        self.edits.append((now(), new))
        self.messages[message_id] = new

    async def send_album(
        self,
        place: ChatPlace,
        uploads: Sequence[Upload],
        *,
        captions: Sequence[Text | None],
        reply_to: int | None,
    ) -> list[int]:
        await self._begin("send_album")
        numbers = []
        for upload, caption in zip(uploads, captions, strict=True):
            self.files.append((place, upload, caption, reply_to))
            numbers.append(self._shown_file(place, caption))
        return numbers

    async def fetch_file(self, file_id: str, to: Path, *, limit_bytes: int) -> int:
        await self._begin("fetch_file")
        self.fetched.append((file_id, to, limit_bytes))
        return 0

    async def send_action(self, place: ChatPlace, action: str) -> None:
        self.typed.append(Shown(now(), action, place))
        await self._begin("send_action")

    async def set_reaction(self, chat_id: int, message_id: int, emoji: str) -> None:
        self.reactions.append(Shown(now(), emoji, ChatPlace(chat_id), message_id))
        await self._begin("set_reaction")

    async def answer_press(self, press_id: str, text: str = "") -> None:
        await self._begin("answer_press")
        self.presses.append((now(), press_id))
        self.toasts.append(text)

    async def set_buttons(self, chat_id: int, message_id: int, buttons: Buttons) -> bool:
        await self._begin("set_buttons")
        self.looked.append(message_id)
        message = self.messages.get(message_id)
        if message is None:
            raise MessageGone("message to edit not found")
        self.messages[message_id] = replace(message, buttons=_rows(buttons))
        return message.buttons != _rows(buttons)

    async def remove_buttons(self, chat_id: int, message_id: int) -> None:
        await self._begin("remove_buttons")
        self.bare.append((chat_id, message_id))
        if message_id in self.messages:
            self.messages[message_id] = replace(self.messages[message_id], buttons=())

    async def administrators(self, chat_id: int) -> frozenset[int]:
        await self._begin("administrators")
        return frozenset({chat_id})

    async def set_commands(
        self, commands: Mapping[str, str], *, chat_id: int | None = None
    ) -> None:
        await self._begin("set_commands")
        self.menus[chat_id] = commands

    async def webhook(self) -> WebhookState:
        await self._begin("webhook")
        return self.hook

    async def set_webhook(
        self, url: str, *, secret: str, kinds: Sequence[str], connections: int
    ) -> None:
        await self._begin("set_webhook")
        self.hooks.append(HookSet(now(), url, secret, tuple(kinds), connections))
        self.hook = replace(self.hook, url=url)

    async def delete_webhook(self) -> None:
        await self._begin("delete_webhook")
        self.hook_deleted += 1
        if not self.hook_stays:
            self.hook = replace(self.hook, url="")

    async def close(self) -> None:
        self.closed = True


def _rows(buttons: Buttons) -> tuple[tuple[tuple[str, str], ...], ...]:
    return tuple(tuple(row) for row in buttons)


@dataclass(slots=True)
class Notebook:
    """An intake that writes down what it was offered.

    The first ``failures`` offers fail, then every one fails with ``bug``, if there is one.
    """

    failures: int = 0
    bug: Exception | None = None
    takes_s: float = 0.0
    offers: list[list[Inbound]] = field(default_factory=list)
    taken: list[Inbound] = field(default_factory=list)

    async def accept(self, batch: Sequence[Inbound]) -> None:
        self.offers.append(list(batch))
        await asyncio.sleep(self.takes_s)
        if self.failures > 0:
            self.failures -= 1
            raise StoreUnavailable("the database does not answer")
        if self.bug is not None:
            raise self.bug
        self.taken.extend(batch)

    @property
    def texts(self) -> list[list[str]]:
        """What was offered, batch by batch."""
        return [[m.text for m in batch if isinstance(m, InboundMessage)] for batch in self.offers]

    def redelivered(self) -> list[list[bool]]:
        return [
            [m.redelivered for m in batch if isinstance(m, InboundMessage)] for batch in self.offers
        ]


def channel_over(
    client: BotClient, settings: TelegramSettings = SETTINGS, *, connect_s: float = 0.0
) -> TelegramChannel:
    async def connect(_settings: TelegramSettings) -> BotClient:
        await asyncio.sleep(connect_s)
        return client

    return TelegramChannel("default", settings, connect)


@asynccontextmanager
async def over(
    client: ScriptedClient, settings: TelegramSettings = SETTINGS
) -> AsyncIterator[TelegramChannel]:
    """A channel, closed at the end, after which nothing of it may be left."""
    channel = channel_over(client, settings)
    try:
        yield channel
    finally:
        await channel.close()
    assert [task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}] == []


async def run_for(work: Awaitable[object], seconds: float) -> None:
    """Let something that never ends by itself run for so long; errors of it are raised."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    task.cancel()
    await asyncio.wait({task})
    assert not done or task.result() is None
    assert not done, "it ended by itself"


@asynccontextmanager
async def meanwhile(work: Awaitable[object]) -> AsyncIterator[asyncio.Future[object]]:
    """Let something that never ends by itself run within the block."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def poller(client: BotClient) -> Poller:
    return Poller(client, Updates(client, BOT, "default"), account="default", wait_s=30)


async def poll_for(client: ScriptedClient, notebook: Notebook, seconds: float) -> None:
    updates = Updates(client, BOT, "default")
    await run_for(Poller(client, updates, account="default", wait_s=30).run(notebook), seconds)
    await updates.close()


@contextmanager
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The channel's log lines within the block, from INFO on: level, event, and what is wrong."""
    lines: list[str] = []
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="channels.telegram"):
        yield lines
    for record in caplog.records:
        warning = getattr(record, "warning", "")
        lines.append(f"{record.levelname} {record.getMessage()} {warning}".rstrip())


def outage(what: str) -> list[str]:
    """The lines of the log for a trouble that is over."""
    return [
        f"WARNING channel_outage_started {what}",
        f"INFO channel_outage_ended {what}",
    ]


def now() -> float:
    return asyncio.get_running_loop().time()
