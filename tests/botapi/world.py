"""What the server knows: chats, messages, the updates that wait for the bot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.botapi.rules import Json, Refusal, bad_request

TEXT_LIMIT = 4096
_COMMAND = re.compile(r"(?:^|(?<=\s))/[A-Za-z0-9_]{1,32}(?:@[A-Za-z0-9_]{3,32})?\b")


@dataclass(slots=True)
class Chat:
    """A chat that the bot is in. ``topics``: threads of a forum, General not among them."""

    id: int
    kind: str = "private"
    title: str = ""
    username: str | None = None
    blocked: bool = False
    topics: set[int] = field(default_factory=set)
    messages: dict[int, Json] = field(default_factory=dict)

    def json(self) -> Json:
        shown: Json = {"id": self.id, "type": self.kind}
        shown["first_name" if self.kind == "private" else "title"] = self.title
        if self.username:
            shown["username"] = self.username
        if self.topics:
            shown["is_forum"] = True
        return shown


@dataclass(slots=True)
class World:
    """One bot and everything around it. ``now`` is in whole seconds since 1970."""

    bot_id: int
    username: str
    now: Callable[[], int]
    chats: dict[int, Chat] = field(default_factory=dict)
    updates: list[Json] = field(default_factory=list)
    allowed: frozenset[str] = frozenset()
    webhook: str = ""
    commands: list[Json] = field(default_factory=list)
    presses: set[str] = field(default_factory=set)
    _last_update: int = 731_000_000
    _last_message: dict[int, int] = field(default_factory=dict)

    def me(self) -> Json:
        return {
            "id": self.bot_id,
            "is_bot": True,
            "first_name": "Test bot",
            "username": self.username,
        }

    def chat(self, chat_id: int) -> Chat:
        """The chat, if the bot may write to it."""
        chat = self.chats.get(chat_id)
        if chat is None:
            raise bad_request("chat not found")
        if chat.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        return chat

    def post(self, chat: Chat, sender: Json, text: str, more: Json) -> Json:
        """Put a message into a chat and return it."""
        number = self._last_message.get(chat.id, 0) + 1
        self._last_message[chat.id] = number
        message: Json = {
            "message_id": number,
            "from": sender,
            "chat": chat.json(),
            "date": self.now(),
            "text": text,
            **more,
        }
        if entities := command_entities(text):
            message["entities"] = entities
        chat.messages[number] = message
        return message

    def tell(self, kind: str, content: object) -> None:
        """Queue an update for the bot, unless it does not want this kind."""
        if not self.allowed or kind in self.allowed:
            self.tell_raw({kind: content})

    def tell_raw(self, update: Json) -> int:
        """Queue an update as it is, with the next id, and return that id."""
        self._last_update += 1
        self.updates.append({"update_id": self._last_update, **update})
        return self._last_update

    def confirm(self, offset: int) -> None:
        """Forget the updates before ``offset``; negative: all but the last ``-offset``."""
        if offset < 0:
            self.updates = self.updates[offset:]
        elif offset > 0:
            self.updates = [u for u in self.updates if int(str(u["update_id"])) >= offset]

    def renumber(self, last_update: int) -> None:
        """Let update ids start anew, as they do after a week without updates."""
        self._last_update = last_update

    def say(
        self, user_id: int, text: str, *, name: str, username: str | None, more: Json
    ) -> list[Json]:
        """A user writes to the bot in their private chat, in as many messages as it takes."""
        chat = self.chats.setdefault(user_id, Chat(user_id, "private", name, username))
        return self.write(chat, user_id, text, name=name, username=username, more=more)

    def write(
        self, chat: Chat, user_id: int, text: str, *, name: str, username: str | None, more: Json
    ) -> list[Json]:
        """A user writes in a chat, which also takes back that they blocked the bot."""
        chat.blocked = False
        sender: Json = {"id": user_id, "is_bot": False, "first_name": name, "language_code": "en"}
        if username:
            sender["username"] = username
        pieces = [text[at : at + TEXT_LIMIT] for at in range(0, len(text), TEXT_LIMIT)]
        messages = [self.post(chat, sender, piece, more) for piece in pieces]
        for message in messages:
            self.tell("message", message)
        return messages


def command_entities(text: str) -> list[Json]:
    """The ``bot_command`` entities of a text, in UTF-16 units."""
    return [
        {
            "type": "bot_command",
            "offset": _units(text[: match.start()]),
            "length": _units(match[0]),
        }
        for match in _COMMAND.finditer(text)
    ]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
