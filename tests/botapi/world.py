"""What the server knows: chats, messages, the updates that wait for the bot."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count

from tests.botapi.files import Files
from tests.botapi.markup import Formatted
from tests.botapi.records import Sightings
from tests.botapi.rules import Json, Refusal, bad_request, forbidden, is_object
from tests.botapi.updates import Updates

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
GENERAL_TOPIC = 1
PRESS_S = 150.0
"""How long a press can be answered."""
DRAFT_S = 30.0


class Standing(StrEnum):
    """How the bot stands in a chat."""

    MEMBER = "member"
    BLOCKED = "blocked"
    KICKED = "kicked"


@dataclass(slots=True)
class Draft:
    """A growing answer, shown until ``until`` on the world's clock."""

    id: int
    text: str
    thread: int | None
    can_stop: bool
    until: float


@dataclass(slots=True)
class Press:
    """A press of a button, and how it was answered."""

    id: str
    user_id: int
    chat_id: int
    data: str
    pressed_at: float
    answered_at: float | None = None
    text: str = ""


@dataclass(slots=True)
class Hook:
    """The webhook. Errors are those of deliveries; 0 and empty if there was none."""

    url: str = ""
    secret: str = ""
    connections: int = 40
    error_date: int = 0
    error: str = ""


@dataclass(slots=True)
class Chat:
    """A chat. ``topics``: threads, General not among them; a supergroup with any is a forum."""

    id: int
    kind: str = "private"
    title: str = ""
    username: str | None = None
    standing: Standing = Standing.MEMBER
    moved_to: int | None = None
    topics: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)
    messages: dict[int, Json] = field(default_factory=dict)
    own: dict[int, None] = field(default_factory=dict)
    """Messages of the bot that can be seen, in their order."""
    source: dict[int, str] = field(default_factory=dict)
    """The HTML that a message of the bot was made of."""
    drafts: dict[int, Draft] = field(default_factory=dict)
    """By thread; 0 is none."""
    last_message: int = 0
    forum: bool = False
    admins: dict[int, str] = field(default_factory=lambda: {1: "Ada"})
    """Who administers a group, by id with their name; the first one has made it."""

    @property
    def private(self) -> bool:
        return self.kind == "private"

    def json(self) -> Json:
        shown: Json = {"id": self.id, "type": self.kind}
        shown["first_name" if self.private else "title"] = self.title
        if self.username:
            shown["username"] = self.username
        if self.forum and not self.private:
            shown["is_forum"] = True
        return shown


@dataclass(slots=True)
class World:
    """One bot and everything around it.

    ``clock`` is in seconds and only ever grows; ``now`` is in whole seconds since 1970. ``local``:
    the server is a Bot API server of one's own, which takes any webhook.
    """

    bot_id: int
    username: str
    clock: Callable[[], float] = time.monotonic
    local: bool = False
    privacy: bool = False
    """The bot's privacy mode is on. It only says so: all updates are told."""
    chats: dict[int, Chat] = field(default_factory=dict)
    updates: Updates = field(default_factory=Updates)
    sightings: Sightings = field(default_factory=Sightings)
    files: Files = field(default_factory=Files)
    hook: Hook = field(default_factory=Hook)
    commands: list[Json] = field(default_factory=list)
    chat_commands: dict[int, list[Json]] = field(default_factory=dict)
    """The menus of chats that have their own."""
    """The menu that everybody sees."""
    presses: dict[str, Press] = field(default_factory=dict)
    skipped_s: float = 0.0
    last_message: int = 0
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def now(self) -> int:
        return int(time.time() + self.skipped_s)

    @property
    def webhook(self) -> str:
        """Its URL; empty if none is set."""
        return self.hook.url

    def number(self) -> int:
        """A number that was never given before."""
        return next(self._numbers)

    def me(self) -> Json:
        names = {"first_name": "Test bot", "username": self.username}
        return {"id": self.bot_id, "is_bot": True, **names}

    def chat(self, chat_id: int) -> Chat:
        """The chat, if the bot may act in it. Raises ``Refusal``."""
        chat = self.chats.get(chat_id)
        if chat is None:
            raise bad_request("chat not found")
        if chat.moved_to is not None:
            words = "Bad Request: group chat was upgraded to a supergroup chat"
            raise Refusal(400, words, migrate_to_chat_id=chat.moved_to)
        match chat.standing:
            case Standing.BLOCKED:
                raise forbidden("bot was blocked by the user")
            case Standing.KICKED:
                raise forbidden(f"bot was kicked from the {chat.kind} chat")
            case Standing.MEMBER:
                return chat

    def post(self, chat: Chat, sender: Json, content: Json, *, number: int | None = None) -> Json:
        """Put a message into a chat and return it; ``number`` if it has to have that id."""
        if number is None:
            # Direct chats and small groups have one count for all; a supergroup has its own.
            counted: Chat | World = chat if chat.kind == "supergroup" else self
            number = counted.last_message + 1
            while number in chat.messages:
                number += 1
            counted.last_message = number
        message: Json = {
            "message_id": number,
            "from": sender,
            "chat": chat.json(),
            "date": self.now(),
            **content,
        }
        chat.messages[number] = message
        if sender["id"] == self.bot_id:
            chat.own[number] = None
            self.sightings.show(chat.id, number, words_of(message), self.clock())
        return message

    def remove(self, chat: Chat, number: int) -> None:
        """Take a message out of its chat."""
        del chat.messages[number]
        chat.own.pop(number, None)
        chat.source.pop(number, None)
        self.sightings.hide(chat.id, number, self.clock())

    def in_topic(self, chat: Chat, thread: int | None) -> Json:
        """The fields of a message in a topic; its root counts as what it replies to."""
        if not thread:
            return {}
        fields: Json = {"message_thread_id": thread, "is_topic_message": True}
        root = chat.messages.get(thread)
        return {**fields, "reply_to_message": quoted(root)} if root else fields


def quoted(message: Json) -> Json:
    """A message as another one shows it that replies to it."""
    left_out = ("reply_to_message", "quote", "reactions")
    return {key: value for key, value in message.items() if key not in left_out}


def words_of(message: Json) -> str:
    """Its text or caption."""
    return str(message.get("text", message.get("caption", "")))


def with_text(formatted: Formatted, *, caption: bool = False) -> Json:
    """The fields of a message for a text; none for an empty caption."""
    if caption and not formatted.text:
        return {}
    fields: Json = {"caption" if caption else "text": formatted.text}
    if formatted.entities:
        fields["caption_entities" if caption else "entities"] = formatted.entities
    return fields


def sender_of(message: Json) -> int:
    """The id of who wrote a message; 0 if nobody did."""
    user = message.get("from")
    number = user.get("id") if is_object(user) else 0
    return number if isinstance(number, int) else 0
