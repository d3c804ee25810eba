"""A Bot API client and an intake that do what a test has written down, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from channels.telegram.client import Bot, Place
from channels.telegram.settings import Settings
from goclaw_py.core.errors import ChannelError, StoreUnavailable
from goclaw_py.core.messages import InboundMessage

Answer = ChannelError | list[object]

SETTINGS = Settings(token="4242:AAtest-token_for-tests-only-12345")


def update(number: int, text: str = "hello", **more: object) -> dict[str, object]:
    """An update with a private text message."""
    message = {
        "message_id": number,
        "from": {"id": 7, "is_bot": False, "first_name": "Ann"},
        "chat": {"id": 7, "type": "private", "first_name": "Ann"},
        "date": 1_790_000_000,
        "text": text,
        **more,
    }
    return {"update_id": number, "message": message}


@dataclass(frozen=True, slots=True)
class Poll:
    at: float
    offset: int | None
    wait_s: int


@dataclass(slots=True)
class ScriptedClient:
    """Answers polls from ``answers``; when they are used up, polls bring nothing."""

    answers: list[Answer] = field(default_factory=list)
    me: list[ChannelError] = field(default_factory=list)
    sends: list[ChannelError] = field(default_factory=list)
    actions: list[ChannelError] = field(default_factory=list)
    webhooks: list[str | ChannelError] = field(default_factory=list)
    menu_error: ChannelError | None = None
    action_takes_s: float = 0.0
    polls: list[Poll] = field(default_factory=list)
    kinds: set[tuple[str, ...]] = field(default_factory=set)
    sent: list[tuple[Place, str, int | None]] = field(default_factory=list)
    typed: list[tuple[float, Place]] = field(default_factory=list)
    menu: Mapping[str, str] = field(default_factory=dict)
    webhook_deleted: int = 0
    closed: bool = False

    async def get_me(self) -> Bot:
        if self.me:
            raise self.me.pop(0)
        return Bot(4242, "GoclawTestBot")

    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        self.polls.append(Poll(now(), offset, wait_s))
        self.kinds.add(tuple(kinds))
        if not self.answers:
            await asyncio.sleep(max(wait_s, 0.001))
            return []
        answer = self.answers.pop(0)
        if isinstance(answer, ChannelError):
            raise answer
        if not answer:
            await asyncio.sleep(wait_s)
        return answer

    async def send_message(self, place: Place, text: str, *, reply_to: int | None) -> int:
        if self.sends:
            raise self.sends.pop(0)
        self.sent.append((place, text, reply_to))
        return 100 + len(self.sent)

    async def send_typing(self, place: Place) -> None:
        self.typed.append((now(), place))
        await asyncio.sleep(self.action_takes_s)
        if self.actions:
            raise self.actions.pop(0)

    async def set_commands(self, commands: Mapping[str, str]) -> None:
        if self.menu_error is not None:
            raise self.menu_error
        self.menu = commands

    async def webhook(self) -> str:
        found = self.webhooks.pop(0) if self.webhooks else ""
        if isinstance(found, ChannelError):
            raise found
        return found

    async def delete_webhook(self) -> None:
        self.webhook_deleted += 1

    async def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class Notebook:
    """An intake that writes down what it was offered; the first ``failures`` offers fail."""

    failures: int = 0
    offers: list[list[InboundMessage]] = field(default_factory=list)

    async def accept(self, batch: Sequence[InboundMessage]) -> None:
        self.offers.append(list(batch))
        if self.failures > 0:
            self.failures -= 1
            raise StoreUnavailable("the database does not answer")

    @property
    def texts(self) -> list[list[str]]:
        return [[message.text for message in batch] for batch in self.offers]


def now() -> float:
    return asyncio.get_running_loop().time()
